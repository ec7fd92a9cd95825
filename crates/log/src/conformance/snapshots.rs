//! Obligation 8: snapshots.

use super::{Chain, Factory};
use crate::{Log, LogError, Snapshot};
use bytes::Bytes;
use sereno_core::{
    entry::{EntryHash, Head},
    ids::{Epoch, LogId, Position},
};
use std::sync::Arc;

/// Neither of an empty log nor of one with entries.
pub async fn o08_there_is_no_snapshot_before_the_first(factory: &impl Factory) {
    let log = factory.fresh().await;
    assert_eq!(log.latest_snapshot().await, Ok(None));
    Chain::default().grow(&*log, 2).await;
    assert_eq!(log.latest_snapshot().await, Ok(None));
    assert_eq!(log.usage().await.map(|usage| usage.snapshot), Ok(None));
}

/// Of any size, empty included; a newer one takes its place.
pub async fn o08_the_latest_snapshot_comes_back_as_it_was_saved(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    const CHUNK: usize = 256 * 1024;
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 << 20, (3 << 20) + 17] {
        let count = chain.entries().len() + 2;
        chain.grow(&*log, count).await;
        // Of the entry before the head: a snapshot is of the past by the time it is saved.
        let snapshot = chain.snapshot(count as u64 - 1, length);
        assert_eq!(log.save_snapshot(snapshot.clone()).await, Ok(()));
        assert_eq!(log.latest_snapshot().await, Ok(Some(snapshot.clone())), "{length} bytes");
        let saved = log.usage().await.map(|usage| usage.snapshot);
        assert_eq!(saved, Ok(Some(snapshot.head.position)));
    }
    chain.assert_is(&*log, 1).await;
}

/// Beyond the head, of another log, of another history, of nothing.
pub async fn o08_a_snapshot_that_is_not_of_this_log_is_refused(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    let refused = |head: Head| {
        let log = Arc::clone(&log);
        async move {
            let snapshot = Snapshot { head, bytes: Bytes::from_static(b"state") };
            let result = log.save_snapshot(snapshot).await;
            assert!(matches!(result, Err(LogError::Refused(_))), "{head:?}: {result:?}");
        }
    };
    refused(Head::EMPTY).await;
    chain.grow(&*log, 3).await;
    refused(Head::EMPTY).await;
    let head = chain.head_at(2);
    refused(Head { log_id: LogId([8; 16]), ..head }).await;
    refused(Head { epoch: Epoch(2), ..head }).await;
    refused(Head { hash: EntryHash([8; 32]), ..head }).await;
    refused(Head { hash: EntryHash([8; 32]), ..chain.head() }).await;
    refused(Head { position: Position(4), ..chain.head() }).await;
    assert_eq!(log.latest_snapshot().await, Ok(None));
    log.save_snapshot(chain.snapshot(2, 10)).await.expect("this one is");
}

/// And what was saved stays.
pub async fn o08_an_older_snapshot_is_refused(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 5).await;
    let newest = chain.snapshot(4, 100);
    log.save_snapshot(newest.clone()).await.expect("it saves");
    let result = log.save_snapshot(chain.snapshot(3, 100)).await;
    assert!(matches!(result, Err(LogError::Refused(_))), "{result:?}");
    assert_eq!(log.latest_snapshot().await, Ok(Some(newest)));
}

/// One of the same head takes the place of the first, and the one before both is still kept.
pub async fn o08_a_snapshot_can_be_saved_again(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 8).await;
    log.save_snapshot(chain.snapshot(3, 100)).await.expect("it saves");
    for length in [100, 300_000, 200] {
        let again = chain.snapshot(6, length);
        log.save_snapshot(again.clone()).await.expect("it saves");
        assert_eq!(log.latest_snapshot().await, Ok(Some(again)));
    }
    assert_eq!(log.trim(Position(8)).await, Ok(Position(4)));
}

/// The newest of the kept two that is not after a position.
pub async fn o08_the_older_of_two_snapshots_can_be_read(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 9).await;
    assert_eq!(log.snapshot_before(Position(9)).await, Ok(None));
    let [first, older, newest] = [2, 4, 8].map(|position| chain.snapshot(position, 300_000));
    for snapshot in [&first, &older, &newest] {
        log.save_snapshot(snapshot.clone()).await.expect("it saves");
    }
    for (position, due) in [
        (u64::MAX, Some(&newest)),
        (8, Some(&newest)),
        (7, Some(&older)),
        (4, Some(&older)),
        // The first is not kept.
        (3, None),
        (0, None),
    ] {
        let found = log.snapshot_before(Position(position)).await;
        assert_eq!(found, Ok(due.cloned()), "before {position}");
    }
}

/// Several of them, so that some were replaced.
pub async fn o08_snapshots_survive_a_restart(factory: &impl Factory) {
    let mut log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 10).await;
    for position in [2, 4, 7, 9] {
        let snapshot = chain.snapshot(position, 700_000);
        log.save_snapshot(snapshot.clone()).await.expect("it saves");
        log = match factory.reopen(log).await {
            Some(log) => log,
            None => return,
        };
        assert_eq!(log.latest_snapshot().await, Ok(Some(snapshot)));
    }
    assert_eq!(log.trim(Position(10)).await, Ok(Position(8)), "the older of the two is at 7");
    chain.assert_is(&*log, 8).await;
}

/// And readers see the old snapshot or the new one, never a part.
pub async fn o08_appends_go_on_while_a_snapshot_is_saved(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 4).await;
    let old = chain.snapshot(2, 10);
    let new = chain.snapshot(4, 8 << 20);
    log.save_snapshot(old.clone()).await.expect("it saves");
    let saving = {
        let (log, new) = (factory.second(&log).await, new.clone());
        tokio::spawn(async move { log.save_snapshot(new).await })
    };
    while !saving.is_finished() {
        let count = chain.entries().len() + 1;
        chain.grow(&*log, count).await;
        let seen = log.latest_snapshot().await.expect("it reads").expect("there is one");
        assert!(seen == old || seen == new, "at {:?}", seen.head);
    }
    assert_eq!(saving.await.expect("it does not panic"), Ok(()));
    assert_eq!(log.latest_snapshot().await, Ok(Some(new)));
    chain.assert_is(&*log, 1).await;
}
