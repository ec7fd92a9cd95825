//! Obligation 5: a conflict tells enough to know what became of an append whose outcome was unknown.

use super::{Chain, Factory, Trouble, entry_after};
use crate::{Append, Conflict, Log, Slot};
use sereno_core::{entry::Head, ids::Position};
use std::task::{Context, Waker};

fn conflict(head: Head, slot: Slot) -> Append {
    Append::Conflict(Conflict { head, slot })
}

/// Own entry, another's, none yet.
pub async fn o05_a_conflict_tells_the_head_and_the_slot(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 4).await;
    let own = chain.entries()[2].clone();
    let result = log.append(chain.head_at(2), own.clone()).await;
    assert_eq!(result, conflict(chain.head(), Slot::Entry(own.head.hash)), "own entry");
    let other = entry_after(&chain.head_at(2), 1, 0);
    let result = log.append(chain.head_at(2), other).await;
    assert_eq!(result, conflict(chain.head(), Slot::Entry(own.head.hash)), "another's");
    // A client of a log that has lost its end: nothing stands where it wants to append.
    let ahead = Head { position: Position(7), ..chain.head() };
    let result = log.append(ahead, entry_after(&ahead, 1, 0)).await;
    assert_eq!(result, conflict(chain.head(), Slot::Empty), "beyond the head");
    chain.assert_is(&*log, 1).await;
}

/// Sent again, it meets itself; also when others have appended since.
pub async fn o05_an_append_whose_reply_was_lost_is_found_in_its_slot(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    for others in 0..3 {
        if !factory.arrange(&log, Trouble::ReplyLost).await {
            return;
        }
        let (before, entry) = (chain.head(), chain.next(1));
        let result = log.append(before, entry.clone()).await;
        assert!(matches!(result, Append::Unknown(_)), "{result:?}");
        chain.push(entry.clone());
        let count = chain.entries().len() + others;
        chain.grow(&*log, count).await;
        let result = log.append(before, entry.clone()).await;
        assert_eq!(result, conflict(chain.head(), Slot::Entry(entry.head.hash)));
    }
    chain.assert_is(&*log, 1).await;
}

/// Dropping a future takes nothing back and breaks nothing: sending it again tells which.
pub async fn o05_an_append_whose_future_was_dropped_is_resolved_by_sending_it_again(
    factory: &impl Factory,
) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 1).await;
    for tag in 0..20 {
        let entry = chain.next(tag);
        {
            let mut append = log.append(chain.head(), entry.clone());
            let _ = append.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        match log.append(chain.head(), entry.clone()).await {
            Append::Committed => {}
            result => {
                assert_eq!(result, conflict(entry.head, Slot::Entry(entry.head.hash)));
            }
        }
        chain.push(entry);
        chain.assert_is(&*log, 1).await;
    }
}

/// The entry is sent again and lands; its late copy then meets itself.
pub async fn o05_a_late_copy_lands_at_most_once(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    if !factory.arrange(&log, Trouble::Late).await {
        return;
    }
    let entry = chain.next(1);
    let result = log.append(chain.head(), entry.clone()).await;
    assert!(matches!(result, Append::Unknown(_)), "{result:?}");
    chain.append(&*log, entry).await;
    factory.let_late_copies_arrive(&log).await;
    chain.assert_is(&*log, 1).await;
    chain.grow(&*log, 4).await;
    chain.assert_is(&*log, 1).await;
}

/// Another's entry lands first: the late copy never does, and who sends it again is told.
pub async fn o05_a_late_copy_loses_against_what_landed_meanwhile(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    if !factory.arrange(&log, Trouble::Late).await {
        return;
    }
    let (before, late) = (chain.head(), chain.next(1));
    let result = log.append(before, late.clone()).await;
    assert!(matches!(result, Append::Unknown(_)), "{result:?}");
    let client = factory.second(&log).await;
    let other = chain.next(2);
    chain.append(&*client, other.clone()).await;
    factory.let_late_copies_arrive(&log).await;
    chain.assert_is(&*log, 1).await;
    let result = log.append(before, late).await;
    assert_eq!(result, conflict(chain.head(), Slot::Entry(other.head.hash)));
}

/// Nothing else happens: the late copy lands, and who sends it again is told.
pub async fn o05_a_late_copy_that_lands_is_told_to_who_asks_again(factory: &impl Factory) {
    let log = factory.fresh().await;
    let mut chain = Chain::default();
    chain.grow(&*log, 2).await;
    if !factory.arrange(&log, Trouble::Late).await {
        return;
    }
    let (before, late) = (chain.head(), chain.next(1));
    let result = log.append(before, late.clone()).await;
    assert!(matches!(result, Append::Unknown(_)), "{result:?}");
    chain.assert_is(&*log, 1).await;
    factory.let_late_copies_arrive(&log).await;
    chain.push(late.clone());
    chain.assert_is(&*log, 1).await;
    let result = log.append(before, late.clone()).await;
    assert_eq!(result, conflict(chain.head(), Slot::Entry(late.head.hash)));
}
