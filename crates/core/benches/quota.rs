//! What a reserve and its commit cost with one layer and with three (at most 1.5 times as much), and while others
//! wait; over 20,000 active reservations of a thousand owners.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sereno_core::{
    command::{
        Command, Commit, Item, Late, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit,
        QuotaCommand, ReservationRef, Reserve,
    },
    entry::{Body, Entry},
    ids::ReservationId,
    limits,
    names::{Caller, Labels, Owner, QuotaName, QuotaPath, RequestId},
    testing::{Scribe, default_namespace, lease_id},
};
use std::time::Duration;

const GROUP: u64 = 64;
const ACTIVE: u64 = 20_000;

fn node(path: &str) -> NodeRef {
    let quota = QuotaName::new("gpu").expect("a name");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

fn request_id(n: u64) -> RequestId {
    RequestId::new(&format!("request-{n}")).expect("an id")
}

fn name(n: u64) -> ReservationId {
    ReservationId(lease_id(n).0)
}

fn reserve(path: &str, n: u64, wait_timeout_ms: u64) -> Operation {
    Operation::Quota(QuotaCommand::Reserve(Reserve {
        namespace: default_namespace(),
        owner: Owner::new(&format!("worker-{}", n % 1_000)).expect("an owner"),
        items: vec![Item { node: node(path), amount: 1 }],
        request_id: request_id(2 * n),
        reservation: name(n),
        ttl_ms: 3_600_000,
        max_lifetime_ms: None,
        on_expiry: OnExpiry::Release,
        priority: 0,
        wait_timeout_ms,
        labels: Labels::default(),
    }))
}

fn commit(n: u64) -> Operation {
    let namespace = default_namespace();
    Operation::Quota(QuotaCommand::Commit(Commit {
        of: ReservationRef { namespace, reservation: name(n), fence: None },
        items: None,
        is_final: true,
        late: Late::Reject,
        readmitted: ReservationId::default(),
        request_id: request_id(2 * n + 1),
    }))
}

/// A tree of three layers with reservations in it, and the number of the next one.
fn tree() -> (Scribe, u64) {
    let mut scribe = Scribe::new();
    scribe.run(Operation::RaiseLevel { level: 4 });
    for (at, path) in ["", "acme", "acme/vision", "full"].into_iter().enumerate() {
        let limit = if path == "full" { 1 } else { limits::QUOTA_AMOUNT_MAX };
        scribe.run(Operation::Quota(QuotaCommand::PutLimit(PutLimit {
            namespace: default_namespace(),
            node: node(path),
            limits: NodeLimits::of(limit),
            expected_version: 0,
            refuse_debt: false,
            request_id: request_id(u64::MAX - at as u64),
        })));
    }
    for first in (0..ACTIVE).step_by(500) {
        let path = |n| if n % 2 == 0 { "" } else { "acme/vision" };
        scribe.batch(0, (first..first + 500).map(|n| reserve(path(n), n, 0)).collect());
    }
    (scribe, ACTIVE)
}

/// Many times as many pairs as an entry takes, at one path.
fn measure(scribe: &mut Scribe, next: &mut u64, path: &str, rounds: u64) -> Duration {
    let mut spent = Duration::ZERO;
    for _ in 0..rounds {
        let numbers = *next..*next + GROUP / 2;
        *next += GROUP / 2;
        let operations = numbers.flat_map(|n| [reserve(path, n, 0), commit(n)]).collect();
        // Cluster time runs, so that answers are forgotten.
        let entry = entry_of(scribe, 50, operations);
        let hash = entry.seal(scribe.state.log_id()).head.hash;
        let begun = std::time::Instant::now();
        let applied = scribe.state.apply(&entry, hash).expect("the entry fits");
        spent += begun.elapsed();
        assert!(applied.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    }
    spent
}

fn entry_of(scribe: &Scribe, after_ms: u64, operations: Vec<Operation>) -> Entry {
    let born_at = scribe.state.time();
    let caller = Caller::new("").expect("anonymous");
    let command = |operation| Command { caller: caller.clone(), born_at, operation };
    scribe.entry(after_ms, Body::Batch(operations.into_iter().map(command).collect()))
}

fn layers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quota");
    group.throughput(Throughput::Elements(GROUP));
    for (name, path) in [("one layer", ""), ("three layers", "acme/vision")] {
        let (mut scribe, mut next) = tree();
        group.bench_function(
            format!("reserve and commit, {name}, 64 commands an entry"),
            |bencher| {
                bencher.iter_custom(|rounds| measure(&mut scribe, &mut next, path, rounds));
            },
        );
    }
    let (mut scribe, mut next) = tree();
    scribe.run(reserve("full", 1 << 40, 0));
    let waits = (1..500).map(|n| reserve("full", (1 << 40) + n, 600_000)).collect();
    scribe.batch(0, waits);
    group.bench_function("reserve and commit, three layers, 499 wait elsewhere", |bencher| {
        bencher.iter_custom(|rounds| measure(&mut scribe, &mut next, "acme/vision", rounds));
    });
    group.finish();
}

criterion_group!(benches, layers);
criterion_main!(benches);
