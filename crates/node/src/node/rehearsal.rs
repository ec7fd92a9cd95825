//! Snapshots by rehearsal, and what follows when one differs (DESIGN.md section 7).

use super::{Node, Output, Phase, Rehearsal};
use crate::clock::Mono;
use sereno_core::{State, entry::EntryHash, ids::Position};

/// A failed rehearsal is tried again after this.
const REHEARSAL_RETRY_MS: u64 = 60_000;

/// When the next rehearsal is due, and what the last one led to.
#[derive(Debug)]
pub(crate) struct SnapshotPlan {
    pub(super) at: Mono,
    pub(crate) bytes: u64,
    pub(super) rehearsing: bool,
    pub(crate) position: Option<Position>,
    pub(crate) saved_at: Option<Mono>,
}

impl Node {
    pub(super) fn may_rehearse(&self) -> bool {
        self.phase == Phase::Leading && !self.snapshot.rehearsing
    }

    pub(super) fn plan_snapshot(&mut self, now: Mono, out: &mut Vec<Output>) {
        let plan = &self.snapshot;
        let enough = plan.at <= now || plan.bytes >= self.settings.snapshot_bytes;
        if !self.may_rehearse() || !enough || plan.position == Some(self.state.head().position) {
            return;
        }
        self.snapshot.rehearsing = true;
        let (head, outcome_chain) = (self.state.head(), self.state.outcome_chain());
        out.push(Output::Rehearse { head, outcome_chain });
    }

    pub(super) fn rehearsed(&mut self, now: Mono, rehearsal: Rehearsal, out: &mut Vec<Output>) {
        let plan = &mut self.snapshot;
        (plan.rehearsing, plan.bytes) = (false, 0);
        plan.at = now.plus_ms(self.settings.snapshot_interval_ms);
        match rehearsal {
            Rehearsal::Saved(head) => {
                (plan.position, plan.saved_at) = (Some(head.position), Some(now));
                if !self.state.is_trim_held() {
                    out.push(Output::Trim(head.position));
                }
            }
            Rehearsal::Failed(_) => plan.at = now.plus_ms(REHEARSAL_RETRY_MS),
            Rehearsal::Differs(head) => {
                self.not_ready = Some(format!("a rehearsal differed at {}", head.position));
                if self.phase == Phase::Leading {
                    self.phase = Phase::Suspect { reloading: false };
                    self.end_waiting_calls(out);
                }
            }
        }
    }

    pub(super) fn reloaded(&mut self, now: Mono, state: State, again: EntryHash) {
        let Phase::Suspect { reloading: true } = self.phase else { return };
        assert!(state.head() == self.state.head(), "nothing was appended meanwhile");
        let is_sound = state.outcome_chain() == again;
        self.state = state;
        self.stamps = None;
        self.began_to_try = now;
        self.phase = if is_sound {
            Phase::Following
        } else {
            self.not_ready = Some("two replays of the log differ: see docs/operating.md".into());
            Phase::Distrusted { told: false }
        };
    }
}
