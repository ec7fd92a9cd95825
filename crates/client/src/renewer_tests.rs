use super::*;
use crate::lease::Lease;

const SENT: Moment = Moment::from_boot(Duration::from_secs(100));

fn lease_ref(resource: &str) -> LeaseRef {
    LeaseRef { resource: resource.into(), lease_id: "0".repeat(32) }
}

fn result(resource: &str) -> RenewResult {
    RenewResult {
        resource: resource.into(),
        ok: true,
        code: None,
        outcome: None,
        retry_with: None,
        reason: None,
        fencing_token: None,
        expires_at: None,
        expires_in_ms: Some(30_000),
        final_deadline_in_ms: None,
        clipped: false,
    }
}

fn refused(resource: &str, code: ErrorCode) -> RenewResult {
    RenewResult { ok: false, code: Some(code), expires_in_ms: None, ..result(resource) }
}

fn ownership(namespace: &str, resource: &str, ttl: Duration) -> Arc<Ownership> {
    owned_in(Family::Lock, namespace, resource, ttl)
}

fn owned_in(family: Family, namespace: &str, resource: &str, ttl: Duration) -> Arc<Ownership> {
    let term = Term { sent: SENT, expires_in: ttl, final_in: None };
    Arc::new(Ownership {
        family,
        namespace: namespace.into(),
        leases: vec![lease_ref(resource)],
        cell: Cell::new(Lease::new(term, Roll(100))),
    })
}

#[test]
fn what_is_due_in_a_namespace_goes_in_one_call_with_what_is_nearly_due() {
    let renewer = Renewer::default();
    // Cells look at the real clock when they are made; long leases keep that out of the way.
    let long = Duration::from_secs(1 << 40);
    let (due, nearly, fresh) = (long, long + long / 20, long * 2);
    for (namespace, resource, ttl) in
        [("a", "due", due), ("a", "nearly", nearly), ("a", "fresh", fresh), ("b", "fresh", fresh)]
    {
        renewer.add(ownership(namespace, resource, ttl));
    }
    let now = SENT.plus(due / 3);
    let plan = renewer.plan(now);
    let names = |call: &Vec<Arc<Ownership>>| {
        call.iter().map(|o| o.leases[0].resource.clone()).collect::<Vec<_>>()
    };
    assert_eq!(plan.calls.iter().map(names).collect::<Vec<_>>(), [["due", "nearly"]]);
    assert!(renewer.plan(now).calls.is_empty(), "under way: not sent twice");
}

#[test]
fn families_share_no_call_and_elections_have_one_each() {
    let renewer = Renewer::default();
    let ttl = Duration::from_secs(1 << 40);
    for (family, resource) in [
        (Family::Election, "e1"),
        (Family::Lock, "l1"),
        (Family::Election, "e2"),
        (Family::Lock, "l2"),
    ] {
        renewer.add(owned_in(family, "a", resource, ttl));
    }
    let plan = renewer.plan(SENT.plus(ttl / 3));
    let mut calls: Vec<_> = plan.calls.iter().map(|call| leases_of(call)).collect();
    calls.sort_by_key(|leases| leases[0].resource.clone());
    let of = |names: &[&str]| names.iter().map(|name| lease_ref(name)).collect::<Vec<_>>();
    assert_eq!(calls, [of(&["e1"]), of(&["e2"]), of(&["l1", "l2"])]);
}

#[test]
fn a_lost_ownership_leaves_the_renewer_once() {
    let renewer = Renewer::default();
    let id = renewer.add(ownership("a", "r", Duration::from_millis(1)));
    let plan = renewer.plan(SENT.plus(Duration::from_secs(1)));
    assert_eq!((plan.lost.len(), plan.calls.len(), plan.wake), (1, 0, None));
    assert!(!renewer.remove(id));
}

#[test]
fn calls_are_cut_at_a_thousand_leases_and_128_kib() {
    let sizes = |count: usize, name_bytes: usize| {
        let name = "x".repeat(name_bytes);
        let mut calls = Vec::new();
        cut((0..count).map(|_| ownership("a", &name, Duration::from_secs(30))), &mut calls);
        calls.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes(2_001, 10), [1_000, 1_000, 1]);
    let fits = BYTES_PER_CALL_MAX / (256 + BYTES_PER_LEASE);
    assert_eq!(sizes(fits + 1, 256), [fits, 1]);
    assert_eq!(sizes(0, 10), [0; 0]);
}

#[test]
fn several_leases_are_as_good_as_the_worst_of_them() {
    let leases = [lease_ref("a"), lease_ref("b")];
    let judge = |a: RenewResult, b: RenewResult| judge(SENT, &leases, &[a, b]);
    let shorter = RenewResult { expires_in_ms: Some(20_000), ..result("b") };
    let term = judge(result("a"), shorter).unwrap();
    assert_eq!(term.expires_in, Duration::from_secs(20));

    let ended = RenewResult {
        reason: Some(sereno_api::Reason::Forced),
        ..refused("b", ErrorCode::LeaseEnded)
    };
    let lost = Err(NotRenewed::Lost(Loss::Ended("forced".into())));
    assert_eq!(judge(refused("a", ErrorCode::Unavailable), ended), lost);
    let unknown = judge(result("a"), refused("b", ErrorCode::NotHolder));
    assert_eq!(unknown, Err(NotRenewed::Lost(Loss::Unknown)));
    let undecided = judge(result("a"), refused("b", ErrorCode::UnknownOutcome));
    assert_eq!(undecided, Err(NotRenewed::Undecided));
}

#[test]
fn max_hold_reached_is_held_until_the_end_it_names() {
    let leases = [lease_ref("a")];
    let bare = refused("a", ErrorCode::MaxHoldReached);
    assert_eq!(judge(SENT, &leases, std::slice::from_ref(&bare)), Err(NotRenewed::Final));
    let named = RenewResult { final_deadline_in_ms: Some(700), ..bare };
    let end = Duration::from_millis(700);
    let term = Term { sent: SENT, expires_in: end, final_in: Some(end) };
    assert_eq!(judge(SENT, &leases, &[named]), Ok(term));
}

#[test]
fn an_answer_that_does_not_fit_the_question_decides_nothing() {
    let leases = [lease_ref("a")];
    for results in [vec![], vec![result("b")], vec![result("a"), result("a")]] {
        assert_eq!(judge(SENT, &leases, &results), Err(NotRenewed::Undecided));
    }
    let no_figure = RenewResult { expires_in_ms: None, ..result("a") };
    assert_eq!(judge(SENT, &leases, &[no_figure]), Err(NotRenewed::Undecided));
}
