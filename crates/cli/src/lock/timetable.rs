//! When a command has to be stopped, so that it is gone before its lease can end.

use sereno_client::Moment;
use std::time::Duration;

/// How long before the lease's local deadline what happens.
///
/// ```text
///   last renewal          TERM          KILL   local deadline   the service's own
///        |------------------|------grace---|--reserve--|--1 % + 20 ms--|
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Margins {
    /// From TERM to KILL.
    pub grace: Duration,
    /// From KILL to the deadline: for the kernel to end the processes.
    reserve: Duration,
}

/// The moments of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Ask the command to stop.
    pub term_at: Moment,
    /// Stop it.
    pub kill_at: Moment,
}

const GRACE_MAX: Duration = Duration::from_secs(10);
/// After the service has said that the lease is over.
const GRACE_WHEN_LOST: Duration = Duration::from_secs(1);

impl Margins {
    /// For leases of this length. `wanted` is bounded by a third of it, for two thirds are for renewals.
    pub(crate) fn new(lease: Duration, wanted: Option<Duration>) -> Self {
        let grace =
            wanted.map_or_else(|| (lease / 4).min(GRACE_MAX), |wanted| wanted.min(lease / 3));
        let reserve = (lease / 20).min(Duration::from_millis(200));
        Self { grace, reserve }
    }

    /// For a lease with this local deadline.
    pub(crate) fn limits(&self, deadline: Moment) -> Limits {
        let kill_at = deadline.minus(self.reserve);
        Limits { term_at: kill_at.minus(self.grace), kill_at }
    }

    /// When to kill if the lease turns out to be over already.
    pub(crate) fn kill_when_lost(&self, now: Moment) -> Moment {
        now.plus(self.grace.min(GRACE_WHEN_LOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_grace_is_a_quarter_of_the_lease_and_at_most_ten_seconds() {
        assert_eq!(Margins::new(ms(1_000), None), Margins { grace: ms(250), reserve: ms(50) });
        assert_eq!(Margins::new(ms(30_000), None), Margins { grace: ms(7_500), reserve: ms(200) });
        assert_eq!(Margins::new(ms(3_600_000), None).grace, GRACE_MAX);
    }

    #[test]
    fn a_wanted_grace_is_bounded_by_a_third_of_the_lease() {
        assert_eq!(Margins::new(ms(30_000), Some(ms(2_000))).grace, ms(2_000));
        assert_eq!(Margins::new(ms(30_000), Some(ms(60_000))).grace, ms(10_000));
    }

    #[test]
    fn kill_lands_before_the_deadline_and_term_before_that() {
        let deadline = Moment::from_boot(ms(100_000));
        let limits = Margins::new(ms(30_000), None).limits(deadline);
        assert_eq!(limits.kill_at, Moment::from_boot(ms(99_800)));
        assert_eq!(limits.term_at, Moment::from_boot(ms(92_300)));
        let early = Margins::new(ms(30_000), None).limits(Moment::from_boot(ms(10)));
        assert_eq!(early.kill_at, Moment::from_boot(Duration::ZERO), "no underflow after a boot");
    }
}
