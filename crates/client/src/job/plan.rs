//! What a replica does next with a job: a pure function of the ledger, the schedule and the time.
//!
//! It only proposes. The service decides each claim, so a plan made from an old read costs a refusal and nothing more.
//!
//! The order: first what was begun or asked for (oldest first), because claiming a newer slot makes the service leave
//! older ones out; then new slots, as `missed` says.

use super::ledger::{Ledger, Row};
use sereno_api::{Missed, Overlap, RunState};
use sereno_schedule::Schedule;

/// With `missed: skip`, how late a slot may be claimed, in milliseconds.
const CLAIM_WITHIN_MS: u64 = 5 * 60 * 1_000;
/// Before a run that failed by its own account is tried again: this, doubled with each attempt.
const RETRY_PAUSE_MS: u64 = 1_000;
const RETRY_PAUSE_MAX_MS: u64 = 10_000;

/// What to do. Instants are Unix milliseconds on this machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Claim this slot.
    Claim(u64),
    /// Nothing before this instant, unless the ledger changes. `None`: nothing in sight.
    Wait(Option<u64>),
    /// Nothing while an operator has it paused.
    Paused,
}

/// See the module.
pub(crate) fn next(ledger: &Ledger, schedule: &Schedule, now: u64) -> Next {
    if ledger.paused {
        return Next::Paused;
    }
    let coming = schedule.next_after(now);
    let under_way = ledger.under_way_until(now);
    let mut wake = [coming, under_way].into_iter().flatten().min();
    if under_way.is_some() && ledger.overlap != Overlap::Allow {
        return Next::Wait(wake);
    }
    for (&slot, row) in ledger.rows.iter().filter(|(_, row)| row.is_claimable()) {
        let from = row.claimable_from();
        if from <= now {
            return Next::Claim(slot);
        }
        wake = wake.into_iter().chain([from]).min();
        if ledger.overlap != Overlap::Allow {
            // A newer slot would take its place.
            return Next::Wait(wake);
        }
    }
    match ledger.fresh(schedule, now) {
        Some(slot) => Next::Claim(slot),
        None => Next::Wait(wake),
    }
}

impl Row {
    fn is_claimable(&self) -> bool {
        matches!(self.state, RunState::Asked | RunState::Retry)
    }

    /// A failure that lasts would use up all retries in an instant.
    fn claimable_from(&self) -> u64 {
        let Some(failed_at) = self.failed_at else { return 0 };
        let doublings = self.attempt.saturating_sub(1).min(10);
        failed_at + (RETRY_PAUSE_MS << doublings).min(RETRY_PAUSE_MAX_MS)
    }

    /// It is a slot of the schedule and has been claimed at some time: older ones are left out.
    fn takes_the_place_of_older(&self) -> bool {
        !self.is_extra && !matches!(self.state, RunState::Asked | RunState::Skipped)
    }
}

impl Ledger {
    /// The first end of an attempt under way, should it not be renewed.
    fn under_way_until(&self, now: u64) -> Option<u64> {
        let live = self.rows.values().filter(|row| row.state == RunState::Claimed);
        live.map(|row| now.saturating_add(row.expires_in)).min()
    }

    /// The slot to claim that nobody has claimed yet.
    fn fresh(&self, schedule: &Schedule, now: u64) -> Option<u64> {
        let over = self.watermark.saturating_sub(1);
        match self.missed {
            Missed::All => self.oldest(schedule, over, now),
            Missed::Skip => {
                let too_late = now.saturating_sub(CLAIM_WITHIN_MS + 1);
                self.oldest(schedule, over.max(too_late), now)
            }
            Missed::Latest => {
                let begun = self.rows.iter().rev().find(|(_, row)| row.takes_the_place_of_older());
                let over = begun.map_or(over, |(&slot, _)| over.max(slot));
                self.latest(schedule, over, now)
            }
            // A rule of a later version: better nothing than the wrong thing.
            _ => None,
        }
    }

    fn oldest(&self, schedule: &Schedule, over: u64, now: u64) -> Option<u64> {
        let mut slot = schedule.next_after(over)?;
        while self.rows.contains_key(&slot) {
            slot = schedule.next_after(slot)?;
        }
        Some(slot).filter(|&slot| slot <= now)
    }

    fn latest(&self, schedule: &Schedule, over: u64, now: u64) -> Option<u64> {
        let mut slot = schedule.last_between(over, now)?;
        while self.rows.contains_key(&slot) {
            slot = schedule.last_between(over, slot - 1)?;
        }
        Some(slot)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
