//! Obligations 1 to 4: conditional, durable, atomic, honest.

use super::{Chain, Factory, Trouble, entries::read_from, entry_after, genesis};
use crate::{Append, Conflict, Log, Read, Slot};
use sereno_core::{
    entry::{EntryHash, Head},
    ids::{Epoch, LogId, Position},
};
use std::sync::Arc;
use tokio::task::JoinSet;

/// The first entry lands on an empty log and only there, the next ones on the newest head and only there.
pub async fn o01_an_entry_lands_right_after_the_expected_head(factory: &impl Factory) {
    let log = factory.fresh().await;
    assert_eq!(log.head().await, Ok(Head::EMPTY));
    let mut chain = Chain::default();
    chain.grow(&*log, 5).await;
    for old in 0..5 {
        let entry = match old {
            0 => genesis(9),
            _ => entry_after(&chain.head_at(old), 1, 0),
        };
        let slot = Slot::Entry(chain.head_at(old + 1).hash);
        let conflict = Append::Conflict(Conflict { head: chain.head(), slot });
        assert_eq!(log.append(chain.head_at(old), entry).await, conflict, "on head {old}");
    }
    chain.assert_is(&*log, 1).await;
    chain.grow(&*log, 6).await;
    chain.assert_is(&*log, 1).await;
}

/// A head that differs in any one of its fields is another head.
pub async fn o01_every_field_of_the_head_is_compared(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 3).await;
    let head = chain.head();
    let others = [
        Head { log_id: LogId([8; 16]), ..head },
        Head { position: Position(2), ..head },
        Head { position: Position(4), ..head },
        Head { epoch: Epoch(2), ..head },
        Head { hash: EntryHash([8; 32]), ..head },
        chain.head_at(2),
    ];
    for other in others {
        match log.append(other, entry_after(&other, 1, 0)).await {
            Append::Conflict(conflict) => assert_eq!(conflict.head, head),
            result => panic!("expected {other:?}, found {head:?}: {result:?}"),
        }
    }
    match log.append(Head::EMPTY, genesis(8)).await {
        Append::Conflict(conflict) => assert_eq!(conflict.head, head),
        result => panic!("a second genesis: {result:?}"),
    }
    chain.assert_is(&*log, 1).await;
}

/// A gap, another log's entry, bytes that are not what was sealed: certainly not appended.
pub async fn o01_an_entry_that_cannot_follow_its_expected_head_is_not_appended(
    factory: &impl Factory,
) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    let next = chain.next(1);
    let mut other_bytes = next.clone();
    other_bytes.bytes = chain.next(2).bytes;
    let other_log = entry_after(&Head { log_id: LogId([8; 16]), ..chain.head() }, 1, 0);
    for unfit in [entry_after(&next.head, 1, 0), chain.entries()[1].clone(), other_bytes, other_log]
    {
        let result = log.append(chain.head(), unfit).await;
        assert!(matches!(result, Append::NotAppended(_)), "{result:?}");
    }
    chain.assert_is(&*log, 1).await;
    chain.grow(&*log, 3).await;
}

/// Of many that expect the same head, through several clients at once, one lands; all others are told which.
pub async fn o01_one_of_many_contenders_wins(factory: &impl Factory) {
    const CONTENDERS: u64 = 8;
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 1).await;
    for _ in 0..10 {
        let mut running = JoinSet::new();
        for tag in 0..CONTENDERS {
            let client = if tag % 2 == 0 { Arc::clone(&log) } else { factory.second(&log).await };
            let (head, entry) = (chain.head(), chain.next(tag));
            running.spawn(async move { (entry.clone(), client.append(head, entry).await) });
        }
        let results = running.join_all().await;
        let winners: Vec<_> =
            results.iter().filter(|(_, result)| *result == Append::Committed).collect();
        let [(winner, _)] = &winners[..] else { panic!("{} winners", winners.len()) };
        let slot = Slot::Entry(winner.head.hash);
        let lost = Append::Conflict(Conflict { head: winner.head, slot });
        let losers = results.iter().filter(|(_, result)| *result == lost).count();
        assert_eq!(losers as u64, CONTENDERS - 1, "{results:?}");
        chain.push(winner.clone());
    }
    chain.assert_is(&*log, 1).await;
}

/// Trimming makes slots absent again; the compare does not rest on their absence.
pub async fn o01_an_old_head_conflicts_after_its_slots_were_trimmed(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 10).await;
    for position in [6, 8] {
        log.save_snapshot(chain.snapshot(position, 100)).await.expect("it saves");
    }
    assert_eq!(log.trim(Position(5)).await, Ok(Position(6)));
    for old in 0..9 {
        let entry = match old {
            0 => genesis(7),
            _ => entry_after(&chain.head_at(old), 1, 0),
        };
        let slot = match old {
            0..5 => Slot::Trimmed,
            _ => Slot::Entry(chain.head_at(old + 1).hash),
        };
        let conflict = Append::Conflict(Conflict { head: chain.head(), slot });
        assert_eq!(log.append(chain.head_at(old), entry).await, conflict, "on head {old}");
    }
    chain.assert_is(&*log, 6).await;
}

/// What was committed is there when the log is opened again, and the log goes on from there.
pub async fn o02_committed_entries_survive_a_restart(factory: &impl Factory) {
    let mut log = factory.fresh().await;
    let mut chain = Chain::default();
    for count in [1, 2, 20] {
        chain.grow(&*log, count).await;
        log = match factory.reopen(log).await {
            Some(log) => log,
            None => return,
        };
        chain.assert_is(&*log, 1).await;
    }
    chain.grow(&*log, 21).await;
    chain.assert_is(&*log, 1).await;
}

/// Whoever sees a head can read its entry, and nobody reads an entry beyond a head seen later.
pub async fn o03_head_and_slot_are_seen_together(factory: &impl Factory) {
    const ENTRIES: usize = 200;
    let log = factory.fresh().await;
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let client = factory.second(&log).await;
        readers.spawn(async move {
            let mut seen = Head::EMPTY;
            while seen.position.0 < ENTRIES as u64 {
                seen = client.head().await.expect("it has a head");
                if seen == Head::EMPTY {
                    continue;
                }
                let read = client.read(seen.position, 1 << 20).await.expect("it reads");
                let Read::Entries(entries) = read else { panic!("nothing was trimmed") };
                assert_eq!(entries.first().map(|entry| entry.head), Some(seen));
                let last = entries.last().expect("there is one").head;
                let later = client.head().await.expect("it has a head");
                assert!(later.position >= last.position, "{later:?} after {last:?}");
            }
        });
    }
    Chain::default().grow(&*log, ENTRIES).await;
    readers.join_all().await;
}

/// *Not appended* is for ever: it does not show up with what is appended later.
pub async fn o04_a_refused_append_never_shows_up(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    if !factory.arrange(&log, Trouble::Refused).await {
        return;
    }
    let refused = chain.next(1);
    let result = log.append(chain.head(), refused.clone()).await;
    factory.end_trouble(&log).await;
    assert!(matches!(result, Append::NotAppended(_)), "{result:?}");
    chain.assert_is(&*log, 1).await;
    chain.grow(&*log, 4).await;
    factory.let_late_copies_arrive(&log).await;
    chain.assert_is(&*log, 1).await;
    assert!(!read_from(&*log, 1).await.contains(&refused));
}

/// *Unknown* can mean that it did not land: then it lands when it is sent again.
pub async fn o04_a_lost_append_is_unknown_and_can_be_sent_again(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    if !factory.arrange(&log, Trouble::Lost).await {
        return;
    }
    let lost = chain.next(1);
    let result = log.append(chain.head(), lost.clone()).await;
    assert!(matches!(result, Append::Unknown(_)), "{result:?}");
    chain.assert_is(&*log, 1).await;
    chain.append(&*log, lost).await;
    chain.assert_is(&*log, 1).await;
}
