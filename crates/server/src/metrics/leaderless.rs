//! How long nobody led, as one node sees it: the log names no leader, or it has stood still for longer than a leader
//! that works ever lets it. A node that merely lost its link to the leader knows that there is one.

use sereno_core::ids::Position;
use sereno_node::node::HEARTBEAT_MS;
use std::time::Duration;
use tokio::time::Instant;

/// A log that has not moved for so long has no leader that works.
const SILENCE: Duration = Duration::from_millis(2 * HEARTBEAT_MS);

/// Adds up the time without a leader.
pub(crate) struct Leaderless {
    position: Position,
    moved_at: Instant,
    /// Up to here it is known who led, or counted that nobody did.
    counted_to: Instant,
}

impl Leaderless {
    pub(crate) fn new(now: Instant) -> Self {
        Self { position: Position(0), moved_at: now, counted_to: now }
    }

    /// How much of the time since the last call belongs to nobody, where the log goes up to `position` and names a leader
    /// or none. A silence counts from its first moment on, once it is long enough.
    pub(crate) fn passed(&mut self, now: Instant, position: Position, is_named: bool) -> Duration {
        if position != self.position {
            (self.position, self.moved_at) = (position, now);
        }
        let is_led = is_named && now - self.moved_at < SILENCE;
        if is_led {
            self.counted_to = self.moved_at;
            return Duration::ZERO;
        }
        now - std::mem::replace(&mut self.counted_to, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node's status tells, sample by sample: (milliseconds, position, whether a leader is named).
    fn counted(samples: &[(u64, u64, bool)]) -> u128 {
        let start = Instant::now();
        let mut leaderless = Leaderless::new(start);
        let passed = samples.iter().map(|&(ms, position, is_led)| {
            leaderless.passed(start + Duration::from_millis(ms), Position(position), is_led)
        });
        passed.sum::<Duration>().as_millis()
    }

    #[test]
    fn while_the_log_moves_under_a_leader_nothing_is_counted() {
        let samples: Vec<_> = (0..40).map(|n| (n * 250, n / 2, true)).collect();
        assert_eq!(counted(&samples), 0);
    }

    #[test]
    fn a_silence_is_counted_whole_until_the_log_moves_again() {
        let mut samples: Vec<_> = (0..=10).map(|n| (n * 250, 7, true)).collect();
        samples.push((2_750, 8, true));
        assert_eq!(counted(&samples), 2_500);
        // A short one is a slow append.
        assert_eq!(counted(&[(0, 7, true), (900, 7, true), (950, 8, true), (1_900, 9, true)]), 0);
    }

    #[test]
    fn a_log_without_a_leader_is_counted_at_once() {
        assert_eq!(counted(&[(250, 3, true), (500, 4, false), (750, 5, true)]), 250);
        assert_eq!(counted(&[(250, 0, false), (500, 0, false), (750, 1, true)]), 500);
    }
}
