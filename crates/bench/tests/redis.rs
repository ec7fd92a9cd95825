//! The closed loop against a real Redis, which has to be installed: a test that was not run has not passed.

use sereno_bench::{
    closed::{Plan, measure},
    process::start_redis,
    stats::Operation,
    target::{RedisTarget, Target},
};
use std::{path::Path, time::Duration};

#[tokio::test]
async fn redis_takes_and_gives_back_locks() {
    let folder = tempfile::tempdir().unwrap();
    let started = start_redis(Path::new("redis-server"), folder.path()).await;
    let (child, address) = started.unwrap_or_else(|error| panic!("{error}"));
    let target = Target::Redis(RedisTarget::prepare(address, 30_000).await.unwrap());
    let plan = Plan {
        clients: 8,
        warm_up: Duration::from_millis(100),
        window: Duration::from_millis(500),
        resources: None,
        wait: None,
        threads: 2,
        seed: 1,
    };
    let own = measure(&target, &plan, &[child.id()]).unwrap();
    assert!(own.cycles > 0);
    let shared = measure(&target, &Plan { resources: Some(1), ..plan }, &[]).unwrap();
    child.stop().unwrap();
    for operation in [Operation::Acquire, Operation::Release] {
        let figures = own.board.of(operation);
        assert_eq!((figures.done, figures.unknown), (figures.offered, 0), "{operation:?}");
    }
    let refused = &shared.board.of(Operation::Acquire).refused;
    assert_eq!(refused.keys().copied().collect::<Vec<_>>(), ["LOCKED"], "eight want the one name");
}
