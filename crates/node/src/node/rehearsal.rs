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
    /// Of log since the newest snapshot, or since the start.
    pub(crate) bytes: u64,
    /// Those of `bytes` that the rehearsal under way covers.
    pub(super) rehearsed_bytes: u64,
    /// Whether enough bytes make one due; not after one that came to nothing: that waits for its time.
    pub(super) by_bytes: bool,
    pub(super) rehearsing: bool,
    /// Whether snapshots are this node's work, or another's.
    pub(super) is_its_turn: bool,
    pub(crate) position: Option<Position>,
    pub(crate) saved_at: Option<Mono>,
}

impl SnapshotPlan {
    /// Another node has saved one, about now.
    pub(super) fn is_known(&mut self, now: Mono, position: Position) {
        if self.position.is_none_or(|own| own < position) {
            (self.position, self.saved_at, self.bytes) = (Some(position), Some(now), 0);
        }
    }
}

impl Node {
    /// Whether one would make sense: it leads, none is under way, and there is something new.
    pub(super) fn may_rehearse(&self) -> bool {
        let plan = &self.snapshot;
        let is_new = plan.position != Some(self.state.head().position);
        let is_its_turn = match self.phase {
            Phase::Leading | Phase::Following => plan.is_its_turn,
            _ => false,
        };
        is_its_turn && !plan.rehearsing && is_new
    }

    pub(super) fn plan_snapshot(&mut self, now: Mono, out: &mut Vec<Output>) {
        self.snapshot.is_its_turn = self.makes_snapshots(now);
        let plan = &self.snapshot;
        let many_bytes = plan.by_bytes && plan.bytes >= self.settings.snapshot_bytes;
        if !self.may_rehearse() || (plan.at > now && !many_bytes) {
            return;
        }
        (self.snapshot.rehearsing, self.snapshot.rehearsed_bytes) = (true, plan.bytes);
        let (head, outcome_chain) = (self.state.head(), self.state.outcome_chain());
        out.push(Output::Rehearse { head, outcome_chain });
    }

    pub(super) fn rehearsed(&mut self, now: Mono, rehearsal: Rehearsal, out: &mut Vec<Output>) {
        let plan = &mut self.snapshot;
        plan.rehearsing = false;
        plan.by_bytes = matches!(rehearsal, Rehearsal::Saved(_));
        plan.at = now.plus_ms(self.settings.snapshot_interval_ms);
        match rehearsal {
            Rehearsal::Saved(head) => {
                // What was written meanwhile belongs to the next one.
                plan.bytes = plan.bytes.saturating_sub(plan.rehearsed_bytes);
                (plan.position, plan.saved_at) = (Some(head.position), Some(now));
                if !self.state.is_trim_held() {
                    out.push(Output::Trim(head.position));
                }
            }
            Rehearsal::Failed(_) => plan.at = now.plus_ms(REHEARSAL_RETRY_MS),
            Rehearsal::Differs(head) => {
                if self.is_serving() {
                    self.not_ready = Some(format!("a rehearsal differed at {}", head.position));
                    self.phase = Phase::Suspect { reloading: false };
                    self.end_waiting_calls(now, out);
                }
            }
        }
    }

    pub(super) fn reloaded(&mut self, state: State, again: EntryHash) {
        let Phase::Suspect { reloading: true } = self.phase else { return };
        assert!(state.head() == self.state.head(), "nothing was appended meanwhile");
        let is_sound = state.outcome_chain() == again;
        self.state = state;
        self.stamps = None;
        self.phase = if is_sound {
            Phase::Following
        } else {
            self.not_ready = Some("two replays of the log differ: see docs/operating.md".into());
            Phase::Distrusted { told: false }
        };
    }
}
