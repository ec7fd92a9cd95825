//! How fast commands go through, for `retryAfterMs`.

/// Commands committed and nanoseconds spent on it, lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    commands: u64,
    ns: u64,
}

impl Pace {
    pub(super) fn add(&mut self, commands: usize, ns: u64) {
        if commands == 0 {
            return; // A heartbeat says nothing about load.
        }
        // Halving forgets the past quickly enough to follow a change of load.
        if self.ns > 1_000_000_000 {
            (self.commands, self.ns) = (self.commands / 2, self.ns / 2);
        }
        self.commands += commands as u64;
        self.ns += ns;
    }

    /// How long `queued` commands will take.
    pub(super) fn estimate_ms(&self, queued: usize) -> u64 {
        let per_command_ns = self.ns / self.commands.max(1);
        (per_command_ns.saturating_mul(queued as u64) / 1_000_000).clamp(50, 5_000)
    }
}
