//! What a node tells of itself.

use crate::{
    clock::Mono,
    handle::{LeaderView, ReadAt, Role, Status},
    node::{Node, Phase},
};
use sereno_core::ids::Position;

impl Node {
    /// What a read of the present state rests on.
    pub fn read_at(&self, now: Mono) -> ReadAt {
        ReadAt {
            log_id: self.state().log_id(),
            revision: self.state().revision(),
            time: self.state().time(),
            age_ms: now.since_ns(self.applied_at) / 1_000_000,
        }
    }

    /// The node's condition.
    pub fn status(&self, now: Mono) -> Status {
        let state = self.state();
        let due = state.due();
        Status {
            node_id: self.settings.writer.node_id.clone(),
            role: self.role(),
            not_ready: self.not_ready.clone(),
            log_id: state.log_id(),
            position: state.head().position,
            revision: state.revision(),
            time: state.time(),
            level: state.level(),
            level_max: self.settings.level_max,
            region: state.region().cloned(),
            leases: state.leases(),
            waiters: state.waiters(),
            reply_records: state.reply_records(),
            sweep_due: due.objects,
            sweep_oldest_ms: due.oldest_ms,
            snapshot: self.snapshot.position,
            snapshot_age_ms: self.snapshot.saved_at.map(|at| now.since_ns(at) / 1_000_000),
            log_bytes_since_snapshot: self.snapshot.bytes,
            paused_ms: state.paused_ms(),
            trim_held: state.is_trim_held(),
            intake: (self.intake.len() + self.forward.len()) as u64,
            leader: state.leader().map(|leader| LeaderView {
                node_id: leader.writer.node_id.clone(),
                address: leader.address.clone(),
                epoch: Position(state.head().epoch.0),
            }),
            leader_heard_ms: self.leader_heard_ms(now),
            behind_ms: self.behind_ms(),
            silent_ms: self.silent_ms(now),
            twin: self.twin(now),
            peers: self.peers_view(now),
        }
    }

    /// Whether `status` tells of another role or readiness than this.
    pub(crate) fn condition_differs(&self, status: &Status) -> bool {
        status.role != self.role() || status.not_ready != self.not_ready
    }

    fn role(&self) -> Role {
        match self.phase {
            Phase::Following => Role::Follower,
            Phase::Leading | Phase::Resigning => {
                Role::Leader { epoch: Position(self.state().head().epoch.0) }
            }
            Phase::Suspect { .. } | Phase::Distrusted { .. } => Role::Suspect,
            Phase::Stopping { .. } | Phase::Stopped => Role::Stopped,
        }
    }
}
