//! What must be true once all is well: somebody leads, everybody has caught up, and everything comes to its end.

use super::World;
use crate::checks::kept;
use sereno_node::handle::Role;

impl World {
    /// L2, as far as it goes: one leader, and every node ready and caught up.
    pub(super) fn check_ready(&self) {
        if self.is_over() {
            return;
        }
        let head = self.log.memory.head().position;
        let mut leaders = 0;
        for (node, host) in self.hosts.iter().enumerate() {
            let process = host.process.as_ref();
            let process = process.unwrap_or_else(|| panic!("liveness: n{node} runs"));
            let status = process.node.status(host.clock.mono(self.agenda.now));
            leaders += usize::from(matches!(status.role, Role::Leader { .. }));
            assert!(
                status.not_ready.is_none(),
                "liveness: n{node} is ready, long after all was healed: {status:?}"
            );
            assert!(
                status.position.0 + 40 > head.0,
                "liveness: n{node} has caught up: {} of {head}",
                status.position
            );
        }
        assert!(leaders == 1, "liveness: one leader, not {leaders}");
    }

    /// Section 7: nobody trims what a node may need that disagrees with its log.
    pub(crate) fn check_kept(&mut self) {
        if !self.is_over() {
            kept::is_told(&self.truth.state);
            self.mark("a log is kept whole for a node that disagrees with it");
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.is_over() || self.unrest().is_empty()
    }

    /// What has not come to its end.
    pub(super) fn unrest(&self) -> String {
        let mut unrest = String::new();
        for (number, client) in self.clients.iter().enumerate() {
            if !client.is_idle() {
                unrest += &format!("liveness: client {number} comes to an end: {:?}\n", client.job);
            }
        }
        let (waiters, leases) = (self.truth.state.waiters(), self.truth.state.leases());
        if waiters + leases > 0 {
            unrest += &format!("liveness: {leases} leases and {waiters} waits end\n");
        }
        let reserved = self.truth.checks.of_log.quotas.unrest();
        if reserved > 0 {
            unrest += &format!("liveness: {reserved} reservations end\n");
        }
        for (node, host) in self.hosts.iter().enumerate() {
            let Some(process) = &host.process else { continue };
            let status = process.node.status(host.clock.mono(self.agenda.now));
            if status.intake > 0 || !process.calls.is_empty() || !process.reads.is_empty() {
                let (calls, reads) = (&process.calls, &process.reads);
                unrest += &format!("liveness: n{node} has open calls {calls:?}, {reads:?}\n");
            }
        }
        unrest
    }
}
