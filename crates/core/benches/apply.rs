//! How fast entries are applied, encoded and decoded, over a state of the size that DESIGN.md section 17 names:
//! 20,000 active leases and 600,000 remembered requests; and how long that state's snapshot takes.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sereno_core::{
    State,
    command::Operation,
    entry::{Body, Entry},
    testing::{Scribe, acquire, release},
};
use std::time::Duration;

const GROUP: u64 = 64;
const ACTIVE: u64 = 20_000;
const REMEMBERED: u64 = 600_000;

/// A state with `ACTIVE` held locks and `REMEMBERED` remembered requests, and the number of the next request.
fn full_state() -> (Scribe, u64) {
    let mut scribe = Scribe::new();
    let hold = |n: u64| {
        let mut operation = acquire(&format!("orders/{n}"), n);
        operation.lease_ttl_ms = Some(3_600_000);
        Operation::Acquire(operation)
    };
    for first in (0..ACTIVE).step_by(500) {
        scribe.batch(0, (first..first + 500).map(hold).collect());
    }
    let mut next = ACTIVE;
    while scribe.state.reply_records() < REMEMBERED {
        scribe.batch(1, cycle(&mut next, 512));
    }
    assert_eq!(scribe.state.leases(), ACTIVE);
    (scribe, next)
}

/// `count` commands: pairs of an acquire and its release, over 100,000 names.
fn cycle(next: &mut u64, count: u64) -> Vec<Operation> {
    let mut operations = Vec::new();
    for _ in 0..count / 2 {
        let name = format!("carts/{}", *next % 100_000);
        operations.push(Operation::Acquire(acquire(&name, *next)));
        operations.push(release(&name, *next));
        *next += 1;
    }
    operations
}

fn apply(criterion: &mut Criterion) {
    let (mut scribe, mut next) = full_state();
    let mut group = criterion.benchmark_group("apply");
    group.throughput(Throughput::Elements(GROUP));
    group.bench_function("acquire and release, 64 commands an entry", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut spent = Duration::ZERO;
            for _ in 0..rounds {
                // Cluster time runs so that as much is forgotten as is remembered anew.
                let after_ms = u64::from(scribe.state.reply_records() > REMEMBERED) * 5;
                let operations = cycle(&mut next, GROUP);
                let entry = entry_of(&scribe, after_ms, operations);
                let hash = entry.seal(scribe.state.log_id()).head.hash;
                let begun = std::time::Instant::now();
                let applied = scribe.state.apply(&entry, hash).expect("the entry fits");
                spent += begun.elapsed();
                assert!(applied.outcomes.iter().all(|outcome| outcome.result.is_ok()));
            }
            spent
        });
    });
    group.finish();
}

fn entry_of(scribe: &Scribe, after_ms: u64, operations: Vec<Operation>) -> Entry {
    let born_at = scribe.state.time();
    let caller = sereno_core::names::Caller::new("").expect("anonymous");
    let command =
        |operation| sereno_core::command::Command { caller: caller.clone(), born_at, operation };
    scribe.entry(after_ms, Body::Batch(operations.into_iter().map(command).collect()))
}

fn codec(criterion: &mut Criterion) {
    let scribe = Scribe::new();
    let entry = entry_of(&scribe, 1, cycle(&mut 0, GROUP));
    let log_id = scribe.state.log_id();
    let sealed = entry.seal(log_id);
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Elements(GROUP));
    group.bench_function("seal an entry of 64 commands", |b| b.iter(|| entry.seal(log_id)));
    group.bench_function("decode an entry of 64 commands", |bencher| {
        bencher.iter(|| Entry::decode(&sealed.bytes).expect("an entry"));
    });
    group.finish();
}

fn snapshot(criterion: &mut Criterion) {
    let (scribe, _) = full_state();
    let bytes = scribe.state.to_snapshot();
    println!("snapshot: {} bytes", bytes.len());
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10);
    group.bench_function("save", |bencher| {
        bencher.iter_batched(|| (), |()| scribe.state.to_snapshot(), BatchSize::PerIteration);
    });
    group.bench_function("restore", |bencher| {
        let restore = |()| State::from_snapshot(&bytes).expect("a snapshot");
        bencher.iter_batched(|| (), restore, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, apply, codec, snapshot);
criterion_main!(benches);
