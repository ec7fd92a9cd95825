//! Quotas in great numbers: thousands of reservations that end together, thousands that wait, a tenant that hammers.

use sereno_core::{
    Applied,
    command::{Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, QuotaCommand, Reserve},
    entry::Body,
    ids::{ObjectId, ReservationId},
    limits,
    names::{Labels, Owner, QuotaName, QuotaPath, RequestId},
    outcome::{Code, Detail, Done, QuotaDone},
    query::NodeView,
    testing::{Scribe, default_namespace, lease_id},
};

fn node(path: &str) -> NodeRef {
    let quota = QuotaName::new("gpu").expect("a quota");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

fn request(n: u64) -> RequestId {
    RequestId::new(&format!("request-{n}")).expect("an id")
}

fn limit(path: &str, limits: NodeLimits, n: u64) -> Operation {
    Operation::Quota(QuotaCommand::PutLimit(PutLimit {
        namespace: default_namespace(),
        node: node(path),
        limits,
        expected_version: 0,
        refuse_debt: false,
        request_id: request(1 << 40 | n),
    }))
}

fn reserve(path: &str, amount: u64, n: u64, ttl_ms: u64, wait_ms: u64) -> Operation {
    Operation::Quota(QuotaCommand::Reserve(Reserve {
        namespace: default_namespace(),
        owner: Owner::new(&format!("worker-{n}")).expect("an owner"),
        items: vec![Item { node: node(path), amount }],
        request_id: request(n),
        reservation: ReservationId(lease_id(n).0),
        ttl_ms,
        max_lifetime_ms: None,
        on_expiry: OnExpiry::Release,
        priority: 0,
        wait_timeout_ms: wait_ms,
        labels: Labels::default(),
    }))
}

fn view(scribe: &Scribe, path: &str) -> NodeView {
    scribe.state.quota_node(&default_namespace(), &node(path)).flatten().expect("the node is there")
}

fn tree(nodes: &[(&str, NodeLimits)]) -> Scribe {
    let mut scribe = Scribe::new();
    scribe.run(Operation::RaiseLevel { level: 4 });
    for (n, (path, limits)) in nodes.iter().enumerate() {
        let outcome = scribe.run(limit(path, limits.clone(), n as u64));
        assert!(outcome.result.is_ok(), "{outcome:?}");
    }
    scribe
}

fn is_reserved(result: &Result<Done, sereno_core::outcome::Refusal>) -> bool {
    matches!(result, Ok(Done::Quota(QuotaDone::Reserved(_))))
}

/// So many end together. `STORM=1000000` for as many as DESIGN.md speaks of: it takes some gigabytes.
fn storm() -> u64 {
    let text = std::env::var("STORM").unwrap_or_else(|_| "20000".into());
    let storm: u64 = text.parse().expect("STORM is a number");
    assert!(storm > 0 && storm.is_multiple_of(1_000), "STORM={storm}: thousands are wanted");
    storm
}

/// However many end together, each entry ends 1,000 of them, the counters fall with the sweep and never earlier, and
/// other commands are decided in the very entry that they are in.
#[test]
fn an_expiry_storm_delays_nobody() {
    let storm = storm();
    let mut scribe = tree(&[("", NodeLimits::of(storm)), ("side", NodeLimits::of(storm))]);
    for first in (0..storm).step_by(500) {
        let asks = (first..first + 500).map(|n| reserve("", 1, n, 60_000, 0)).collect();
        assert!(scribe.batch(0, asks).outcomes.iter().all(|outcome| is_reserved(&outcome.result)));
    }
    scribe.pass(59_500);
    let sweeps = storm / limits::SWEEP_OBJECTS_MAX as u64;
    for sweep in 1..=sweeps {
        let n = storm + sweep;
        let after_ms = if sweep == 1 { 500 } else { 1 };
        let one = reserve("side", 1, n, 3_600_000, 0);
        let too_much = reserve("", storm, storm * 2 + sweep, 3_600_000, 0);
        let applied = scribe.batch(after_ms, vec![one, too_much]);
        assert!(is_reserved(&applied.outcomes[0].result), "at once, in sweep {sweep}");
        let refusal = applied.outcomes[1].result.as_ref().expect_err("it does not fit");
        assert_eq!(refusal.code, Code::QuotaExhausted);
        let Detail::Exhausted(of) = &refusal.detail else { panic!("{refusal:?}") };
        assert_eq!(of.sweep_pending, sweep < sweeps, "in sweep {sweep}");
        let reserved = storm - sweep * limits::SWEEP_OBJECTS_MAX as u64 + sweep;
        assert_eq!(view(&scribe, "").reserved, reserved, "after sweep {sweep}");
        let due = scribe.state.due().objects;
        assert_eq!(due.min(9_000), ((sweeps - sweep) * 1_000).min(9_000));
    }
    scribe.state.check_invariants();
    // What may be committed late is forgotten in slices, too.
    for _ in 0..3_601 {
        scribe.write(1_000, Body::Batch(Vec::new()));
    }
    scribe.write(0, Body::Batch(Vec::new()));
    scribe.state.check_invariants();
    assert_eq!(view(&scribe, "").reserved, 0);
}

fn granted(applied: &Applied) -> Vec<ObjectId> {
    let settled = applied.settled.iter().filter(|settled| is_reserved(&settled.outcome.result));
    settled.map(|settled| settled.claim).collect()
}

/// As many as may wait are granted in order, at most 1,000 at one look, and the next look is due at once.
#[test]
fn thousands_wait_in_order() {
    let mut scribe = tree(&[("", NodeLimits::of(1))]);
    let waiters = limits::QUOTA_WAITERS_MAX as u64;
    assert!(is_reserved(&scribe.run(reserve("", 1, 0, 3_600_000, 0)).result));
    let mut claims = Vec::new();
    for first in (1..=waiters).step_by(500) {
        let asks = (first..first + 500).map(|n| reserve("", 1, n, 3_600_000, 600_000)).collect();
        for outcome in scribe.batch(0, asks).outcomes {
            let Ok(Done::Waiting(waiting)) = outcome.result else { panic!("{outcome:?}") };
            claims.push(waiting.claim);
        }
    }
    let full = scribe.run(reserve("", 1, waiters + 1, 3_600_000, 600_000));
    assert_eq!(full.result.expect_err("it is full").code, Code::QueueFull);
    let mut raise = limit("", NodeLimits::of(1 + waiters), 9);
    if let Operation::Quota(QuotaCommand::PutLimit(put)) = &mut raise {
        put.expected_version = 1;
    }
    let mut order = granted(&scribe.batch(0, vec![raise]));
    assert_eq!(order.len(), limits::QUOTA_GRANTS_MAX);
    while order.len() < claims.len() {
        assert_eq!(scribe.state.next_deadline(), Some(scribe.state.time()), "look again at once");
        order.extend(granted(&scribe.write(0, Body::Batch(Vec::new()))));
    }
    assert_eq!(order, claims, "in order");
    assert_eq!(view(&scribe, "").reserved, 1 + waiters);
    scribe.state.check_invariants();
}

/// A wait that is over and unswept is passed by: it is dead (S7), whatever has come free.
#[test]
fn a_wait_that_is_over_is_never_granted() {
    const DUE: u64 = 1_100;
    let mut scribe = tree(&[("", NodeLimits::of(DUE))]);
    for first in (0..DUE).step_by(500) {
        let last = (first + 500).min(DUE);
        scribe.batch(0, (first..last).map(|n| reserve("", 1, n, 10_000, 0)).collect());
    }
    let waits = vec![reserve("", 1, DUE, 10_000, 10_000), reserve("", 1, DUE + 1, 10_000, 60_000)];
    let claims = scribe.batch(0, waits).outcomes.into_iter().map(|outcome| match outcome.result {
        Ok(Done::Waiting(waiting)) => waiting.claim,
        other => panic!("{other:?}"),
    });
    let claims: Vec<_> = claims.collect();
    scribe.pass(9_500);
    let applied = scribe.write(500, Body::Batch(Vec::new()));
    assert_eq!(scribe.state.due().objects, DUE + 1 - limits::SWEEP_OBJECTS_MAX as u64);
    assert_eq!(granted(&applied), [claims[1]], "not the one that is due and unswept");
    let applied = scribe.write(0, Body::Batch(Vec::new()));
    let [over] = applied.settled.as_slice() else { panic!("{applied:?}") };
    assert_eq!(over.claim, claims[0]);
    let refusal = over.outcome.result.as_ref().expect_err("it is over");
    assert_eq!(refusal.code, Code::WaitTimeout);
    scribe.state.check_invariants();
}

/// A tenant that asks for a hundred times its share does not delay another's guaranteed reserve: it is granted in the
/// entry that it is in, whatever waits and however long.
#[test]
fn hammering_delays_no_guarantee() {
    let guaranteed = NodeLimits { guaranteed: 10, ..NodeLimits::of(100) };
    let nodes = [("", NodeLimits::of(100)), ("loud", NodeLimits::of(100)), ("quiet", guaranteed)];
    let mut scribe = tree(&nodes);
    for n in 0..10_000 {
        let mut asks = vec![reserve("loud", 1 + n % 3, n, 1_000 + n % 700, 600_000)];
        let quiet = n % 50 == 0;
        if quiet {
            asks.push(reserve("quiet", 5, 1 << 20 | n, 1_000, 0));
        }
        let after_ms = if n % 50 == 49 { 500 } else { 5 };
        let applied = scribe.batch(after_ms, asks);
        if quiet {
            assert!(is_reserved(&applied.outcomes[1].result), "{n}: {:?}", applied.outcomes[1]);
        }
        let root = view(&scribe, "");
        assert!(root.committed + root.reserved <= 100, "never oversold (S9)");
        if n % 1_000 == 0 {
            scribe.state.check_invariants();
        }
    }
    assert!(view(&scribe, "loud").waiters > 1_000, "the others wait");
}
