//! Obligations 6 and 7: ordered reads, and the wake; of 10 what can be asked of every engine.

use super::{Chain, Factory, entries::read_from, entry_after, in_time};
use crate::{Log, LogError, Read};
use sereno_core::{ids::Position, limits};

/// Also at the head, and beyond it, where there is nothing yet.
pub async fn o06_reads_begin_at_exactly_the_position_asked_for(factory: &impl Factory) {
    let log = factory.fresh().await;
    assert_eq!(log.read(Position(1), 1 << 20).await, Ok(Read::Entries(Vec::new())));
    let mut chain = Chain::default();
    chain.grow(&*log, 12).await;
    for from in 1..=12 {
        let expected = chain.entries()[from - 1..].to_vec();
        let read = log.read(Position(from as u64), 1 << 20).await;
        assert_eq!(read, Ok(Read::Entries(expected)), "from {from}");
    }
    for beyond in [13, 14, 1_000, u64::MAX] {
        let read = log.read(Position(beyond), 1 << 20).await;
        assert_eq!(read, Ok(Read::Entries(Vec::new())), "from {beyond}");
    }
}

/// A page has one entry, however large, and then as many as fit.
pub async fn o06_reads_come_in_pages_of_at_least_one_entry(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 1).await;
    for padding in [10_000, 0, 500, 20_000, 1_000, 1_000] {
        let entry = entry_after(&chain.head(), 1, padding);
        chain.append(&*log, entry).await;
    }
    for bytes_max in [0, 1, 1_300, 2_500, 11_000, 1 << 20] {
        let mut from = 1;
        while from <= chain.entries().len() {
            let read = log.read(Position(from as u64), bytes_max).await;
            let Ok(Read::Entries(page)) = read else { panic!("{read:?}") };
            let rest = &chain.entries()[from - 1..];
            let mut bytes = 0;
            let fit = rest.iter().take_while(|entry| {
                bytes += entry.bytes.len();
                bytes <= bytes_max
            });
            let expected = fit.count().max(1);
            assert_eq!(page, rest[..expected], "from {from} with {bytes_max} bytes");
            from += expected;
        }
    }
}

/// A batch may have 512 KiB, and the entry is a little more than its batch.
pub async fn o06_the_largest_entries_come_back_as_they_were(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 1).await;
    for tag in 0..3 {
        let entry = entry_after(&chain.head(), tag, limits::BATCH_BYTES_MAX + 1_024);
        chain.append(&*log, entry).await;
    }
    assert_eq!(read_from(&*log, 1).await, chain.entries());
}

/// Bytes without their hash are an error that names the place.
pub async fn o06_damaged_bytes_are_never_returned(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 5).await;
    if !factory.damage_entry(&log, Position(3)).await {
        return;
    }
    match log.read(Position(1), 1 << 20).await {
        Err(LogError::Damaged(what)) => assert!(what.contains("entry 3"), "{what}"),
        read => panic!("{read:?}"),
    }
}

/// Through another client too; and at once where the head is past already.
pub async fn o07_a_wait_ends_when_the_head_passes(factory: &impl Factory) {
    let log = factory.fresh().await;
    let watcher = factory.second(&log).await;
    let watch = tokio::spawn(async move {
        let mut seen = Position(0);
        while seen.0 < 50 {
            // A hint: it may end early, and then the head tells.
            in_time("a wait", watcher.wait_past(seen)).await;
            seen = watcher.head().await.expect("it has a head").position;
        }
        in_time("a wait for the past", watcher.wait_past(Position(49))).await;
    });
    Chain::default().grow(&*log, 50).await;
    in_time("the watcher", watch).await.expect("it does not panic");
}
