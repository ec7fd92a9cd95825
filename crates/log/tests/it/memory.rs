//! The memory engine meets the obligations, and makes every trouble that can be planned.

use async_trait::async_trait;
use sereno_core::ids::Position;
use sereno_log::{
    Append, Conflict, Log, LogError, Slot,
    conformance::{Chain, Factory, Trouble, entry_after},
    memory::{AppendFault, Memory, MemoryLog},
};
use std::sync::Arc;

struct MemoryFactory;

#[async_trait]
impl Factory for MemoryFactory {
    type Engine = MemoryLog;

    async fn fresh(&self) -> Arc<MemoryLog> {
        Arc::new(MemoryLog::new())
    }

    async fn second(&self, engine: &Arc<MemoryLog>) -> Arc<MemoryLog> {
        Arc::new(MemoryLog::clone(engine))
    }

    /// What the log holds is carried over, as a disk would.
    async fn reopen(&self, engine: Arc<MemoryLog>) -> Option<Arc<MemoryLog>> {
        Some(Arc::new(MemoryLog::of(engine.contents())))
    }

    async fn arrange(&self, engine: &MemoryLog, trouble: Trouble) -> bool {
        engine.plan_append(match trouble {
            Trouble::ReplyLost => AppendFault::ReplyLost,
            Trouble::Lost => AppendFault::Lost,
            Trouble::Late => AppendFault::Late { after: 1_000 },
            Trouble::Refused => AppendFault::Refused,
        });
        true
    }

    async fn let_late_copies_arrive(&self, engine: &MemoryLog) {
        engine.deliver_late();
    }
}

sereno_log::conformance_tests!(MemoryFactory);

#[tokio::test]
async fn a_late_copy_arrives_after_as_many_appends_as_planned() {
    let log = MemoryLog::new();
    let mut chain = Chain::default();
    chain.grow(&log, 1).await;
    log.plan_append(AppendFault::Late { after: 2 });
    let late = chain.next(1);
    assert!(matches!(log.append(chain.head(), late.clone()).await, Append::Unknown(_)));
    // Two appends that do not move the head: the copy lands after the second.
    for expected in [chain.head(), late.head] {
        let old = entry_after(&chain.head_at(1), 9, 0);
        let stale = sereno_core::entry::Head { epoch: sereno_core::ids::Epoch(5), ..chain.head() };
        assert!(matches!(log.append(stale, old).await, Append::Conflict(_)));
        assert_eq!(log.head().await, Ok(expected));
    }
    chain.push(late);
    chain.assert_is(&log, 1).await;
}

#[tokio::test]
async fn a_planned_rival_is_faster() {
    let log = MemoryLog::new();
    let mut chain = Chain::default();
    chain.grow(&log, 1).await;
    log.plan_append(AppendFault::Pass);
    log.plan_append(AppendFault::Overtaken(Box::new(|head| entry_after(&head, 77, 0))));
    chain.grow(&log, 2).await;
    let rivals = entry_after(&chain.head(), 77, 0);
    let result = log.append(chain.head(), chain.next(1)).await;
    let slot = Slot::Entry(rivals.head.hash);
    assert_eq!(result, Append::Conflict(Conflict { head: rivals.head, slot }));
    chain.push(rivals);
    chain.assert_is(&log, 1).await;
}

#[tokio::test]
async fn planned_errors_come_once_and_change_nothing() {
    let log = MemoryLog::new();
    let mut chain = Chain::default();
    chain.grow(&log, 4).await;
    let error = LogError::Unreachable("planned".into());
    log.plan_read_error(error.clone());
    assert_eq!(log.read(Position(1), 1).await, Err(error.clone()));
    log.plan_write_error(error.clone());
    assert_eq!(log.save_snapshot(chain.snapshot(2, 5)).await, Err(error));
    assert_eq!(log.latest_snapshot().await, Ok(None));
    chain.assert_is(&log, 1).await;
}

#[tokio::test]
async fn a_log_restored_from_a_snapshot_reads_from_the_next_position() {
    let mut chain = Chain::default();
    chain.grow(&MemoryLog::new(), 6).await;
    let log = MemoryLog::of(Memory::from_snapshot(chain.snapshot(6, 10)));
    chain.assert_is(&log, 7).await;
    chain.grow(&log, 8).await;
    chain.assert_is(&log, 7).await;
}
