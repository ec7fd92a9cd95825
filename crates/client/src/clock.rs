//! The clock of leases: it also runs while the machine is suspended.

use std::{fmt, time::Duration};

/// A moment of this machine's `CLOCK_BOOTTIME`, comparable between processes until the next boot.
///
/// `std::time::Instant` stands still during a suspend, and a lease does not: a laptop that was closed for a
/// minute would believe in a lock that others have long been granted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// Elsewhere the monotonic clock has to do; on macOS it counts a suspend too.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl Moment {
    /// The present moment.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanos))
    }

    /// The moment `since_boot` after the machine's start.
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// How long after the machine's start this is.
    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// This moment plus `duration`; stays at the end of time rather than wrap.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// This moment less `duration`; not before the machine's start.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// Time from `self` until `later`; zero when that is past.
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }

    /// Time since `earlier`; zero when that is still to come.
    pub fn since(self, earlier: Self) -> Duration {
        earlier.until(self)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_forward_and_does_not_wrap() {
        let start = Moment::now();
        assert!(Moment::now() >= start);
        assert!(start.since_boot() > Duration::ZERO);
        let end = start.plus(Duration::MAX);
        assert_eq!(end.until(start), Duration::ZERO);
        assert_eq!(start.minus(Duration::MAX), Moment::from_boot(Duration::ZERO));
        assert_eq!(start.plus(Duration::from_secs(2)).since(start), Duration::from_secs(2));
    }
}
