//! Obligation 9: trimming.

use super::{Chain, Factory};
use crate::Log;
use sereno_core::ids::Position;

/// With one snapshot, its damage would be the end of the log.
pub async fn o09_nothing_is_trimmed_without_two_snapshots(factory: &impl Factory) {
    let log = factory.fresh().await;
    assert_eq!(log.trim(Position(5)).await, Ok(Position(1)), "an empty log");
    let mut chain = Chain::default();
    chain.grow(&*log, 5).await;
    assert_eq!(log.trim(Position(5)).await, Ok(Position(1)), "no snapshot");
    log.save_snapshot(chain.snapshot(4, 10)).await.expect("it saves");
    assert_eq!(log.trim(Position(5)).await, Ok(Position(1)), "one snapshot");
    log.save_snapshot(chain.snapshot(4, 20)).await.expect("it saves");
    assert_eq!(log.trim(Position(5)).await, Ok(Position(1)), "one snapshot, saved twice");
    chain.assert_is(&*log, 1).await;
}

/// Whatever is asked for; and it never goes back.
pub async fn o09_a_trim_ends_at_the_older_snapshot(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 20).await;
    for position in [10, 15] {
        log.save_snapshot(chain.snapshot(position, 10)).await.expect("it saves");
    }
    for (up_to, first) in [(0, 1), (3, 4), (2, 4), (3, 4), (12, 11), (20, 11), (u64::MAX, 11)] {
        assert_eq!(log.trim(Position(up_to)).await, Ok(Position(first)), "up to {up_to}");
        chain.assert_is(&*log, first).await;
    }
    log.save_snapshot(chain.snapshot(20, 10)).await.expect("it saves");
    assert_eq!(log.trim(Position(u64::MAX)).await, Ok(Position(16)));
    chain.grow(&*log, 22).await;
    chain.assert_is(&*log, 16).await;
}

/// More entries than an engine may remove at once, while others append.
pub async fn o09_a_long_trim_removes_all_of_it(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2_600).await;
    for position in [2_500, 2_550] {
        log.save_snapshot(chain.snapshot(position, 10)).await.expect("it saves");
    }
    let trimming = {
        let log = factory.second(&log).await;
        tokio::spawn(async move { log.trim(Position(2_500)).await })
    };
    chain.grow(&*log, 2_700).await;
    assert_eq!(trimming.await.expect("it does not panic"), Ok(Position(2_501)));
    chain.assert_is(&*log, 2_501).await;
}

/// Head, first position and snapshot are as before.
pub async fn o09_a_trimmed_log_goes_on_after_a_restart(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 12).await;
    for position in [8, 12] {
        log.save_snapshot(chain.snapshot(position, 10)).await.expect("it saves");
    }
    assert_eq!(log.trim(Position(8)).await, Ok(Position(9)));
    let Some(log) = factory.reopen(log).await else { return };
    chain.assert_is(&*log, 9).await;
    assert_eq!(log.latest_snapshot().await, Ok(Some(chain.snapshot(12, 10))));
    chain.grow(&*log, 14).await;
    chain.assert_is(&*log, 9).await;
}
