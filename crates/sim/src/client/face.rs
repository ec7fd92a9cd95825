//! What clients do besides locks: which of it, how it is kept, and how it ends.

use super::{Holding, Job, What};
use crate::world::World;
use sereno_core::command::Operation;
use sereno_node::clock::Mono;

impl World {
    pub(super) fn face_begins(&mut self, client: usize, now: Mono) {
        match self.random.between(0, 99) {
            0..=29 => self.campaign_begins(client, now),
            30..=59 => self.hold_begins(client, now),
            60..=89 => self.run_begins(client, now),
            90..=93 => {
                let operation = self.put_hold_policy();
                self.client_does(client, vec![operation], 9_000);
            }
            _ => self.job_operator_begins(client),
        }
        if matches!(self.clients[client].job, Job::Idle) {
            self.client_rests(client);
        }
    }

    pub(super) fn face_renews(&mut self, holding: &Holding, ttl_ms: Option<u64>) -> Operation {
        match &holding.what {
            What::Locks => unreachable!("locks are renewed elsewhere"),
            What::Term { .. } => self.renew_term(holding, ttl_ms),
            What::Hold { owner, .. } => self.renew_hold(holding, owner, ttl_ms),
            What::Run { job, .. } => self.renew_run(holding, job, ttl_ms),
        }
    }

    /// The last is done first.
    pub(super) fn face_releases(&mut self, holding: &Holding) -> Vec<Operation> {
        match &holding.what {
            What::Locks => unreachable!("locks are released elsewhere"),
            What::Term { .. } => self.end_term(holding),
            What::Hold { owner, .. } => self.end_hold(holding, owner),
            What::Run { job, .. } => self.end_run(holding, job),
        }
    }
}
