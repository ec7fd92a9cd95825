//! The tests of the obligations, the same for every engine.
//!
//! An engine's own tests give a [`Factory`] and call the macro; each obligation becomes tests of its number:
//!
//! ```text
//! sereno_log::conformance_tests!(MyFactory::new());
//! ```
//!
//! What cannot be produced from outside (a lost reply, a damaged entry) the factory arranges where its engine
//! allows it; a test that needs more than that is passed by.

mod appends;
mod entries;
mod reads;
mod resolving;
mod snapshots;
mod trims;

pub use appends::*;
pub use entries::{Chain, entry_after, genesis};
pub use reads::*;
pub use resolving::*;
pub use snapshots::*;
pub use trims::*;

use crate::Log;
use async_trait::async_trait;
use sereno_core::ids::Position;
use std::{future::Future, sync::Arc, time::Duration};

/// Makes logs for the tests, and makes trouble for them.
#[async_trait]
pub trait Factory: Send + Sync {
    /// The engine under test.
    type Engine: Log;

    /// A log that nobody has written to.
    async fn fresh(&self) -> Arc<Self::Engine>;

    /// Another client of the same log; the same one where an engine has only one.
    async fn second(&self, engine: &Arc<Self::Engine>) -> Arc<Self::Engine> {
        Arc::clone(engine)
    }

    /// The same log after its last client has gone. `None`: the engine keeps nothing.
    async fn reopen(&self, engine: Arc<Self::Engine>) -> Option<Arc<Self::Engine>>;

    /// Sees to it that the next append through `engine` ends so. `false`: the engine cannot be made to.
    async fn arrange(&self, _engine: &Self::Engine, _trouble: Trouble) -> bool {
        false
    }

    /// Called after that append. What was arranged must be over when this returns.
    async fn end_trouble(&self, _engine: &Self::Engine) {}

    /// Every copy of an append that is still under way arrives at the log before this returns.
    async fn let_late_copies_arrive(&self, _engine: &Self::Engine) {}

    /// Changes a stored byte of the entry at `position`. `false`: the engine's store cannot be got at.
    async fn damage_entry(&self, _engine: &Self::Engine, _position: Position) -> bool {
        false
    }
}

/// What can be arranged for an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It lands and its answer is lost: *unknown*.
    ReplyLost,
    /// It is lost on its way: *unknown*.
    Lost,
    /// *Unknown*, and it is still under way until [`Factory::let_late_copies_arrive`].
    Late,
    /// *Not appended*.
    Refused,
}

/// Makes a test of each obligation for the factory that the expression gives (evaluated for each test).
/// Needs tokio with `macros` and `rt-multi-thread` where it is called.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::conformance_tests! { @tests $factory;
            o01_an_entry_lands_right_after_the_expected_head,
            o01_every_field_of_the_head_is_compared,
            o01_an_entry_that_cannot_follow_its_expected_head_is_not_appended,
            o01_one_of_many_contenders_wins,
            o01_an_old_head_conflicts_after_its_slots_were_trimmed,
            o02_committed_entries_survive_a_restart,
            o03_head_and_slot_are_seen_together,
            o04_a_refused_append_never_shows_up,
            o04_a_lost_append_is_unknown_and_can_be_sent_again,
            o05_a_conflict_tells_the_head_and_the_slot,
            o05_an_append_whose_reply_was_lost_is_found_in_its_slot,
            o05_an_append_whose_future_was_dropped_is_resolved_by_sending_it_again,
            o05_a_late_copy_lands_at_most_once,
            o05_a_late_copy_loses_against_what_landed_meanwhile,
            o05_a_late_copy_that_lands_is_told_to_who_asks_again,
            o06_reads_begin_at_exactly_the_position_asked_for,
            o06_reads_come_in_pages_of_at_least_one_entry,
            o06_the_largest_entries_come_back_as_they_were,
            o06_damaged_bytes_are_never_returned,
            o07_a_wait_ends_when_the_head_passes,
            o08_there_is_no_snapshot_before_the_first,
            o08_the_latest_snapshot_comes_back_as_it_was_saved,
            o08_the_older_of_two_snapshots_can_be_read,
            o08_a_snapshot_that_is_not_of_this_log_is_refused,
            o08_an_older_snapshot_is_refused,
            o08_a_snapshot_can_be_saved_again,
            o08_snapshots_survive_a_restart,
            o08_appends_go_on_while_a_snapshot_is_saved,
            o09_nothing_is_trimmed_without_two_snapshots,
            o09_a_trim_ends_at_the_older_snapshot,
            o09_a_long_trim_removes_all_of_it,
            o09_a_trimmed_log_goes_on_after_a_restart,
        }
    };
    (@tests $factory:expr; $($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::conformance::$name(&$factory).await;
            }
        )*
    };
}

/// A wait that must end: a defect shows as a failure, not as a test that hangs.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took a minute"),
    }
}
