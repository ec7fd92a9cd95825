//! Wakes the load to a fraction of a millisecond. Tokio's own timers have whole milliseconds: at 6,000 calls a second
//! they would make six calls of one.

use crate::error::Error;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};
use tokio::io::{Interest, unix::AsyncFd};

/// Nearer than this it is not worth going to sleep.
const SHORTEST: Duration = Duration::from_micros(10);

/// A timer of the kernel's.
#[derive(Debug)]
pub(super) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    #[expect(
        deprecated,
        reason = "sound for an OwnedFd, which is this alarm's alone; the replacement is an unsafe function"
    )]
    pub(super) fn new() -> Result<Self, Error> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(std::io::Error::from);
        timer
            .and_then(|timer| AsyncFd::with_interest(timer, Interest::READABLE))
            .map(Self)
            .map_err(Error::io("make a timer"))
    }

    /// Sleeps until `due`; false: it had come already.
    pub(super) async fn until(&self, due: Instant) -> Result<bool, Error> {
        let left = due.saturating_duration_since(Instant::now());
        if left < SHORTEST {
            return Ok(false);
        }
        let spec = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &spec)
            .map_err(|error| Error::io("set a timer")(error.into()))?;
        loop {
            let mut ready = self.0.readable().await.map_err(Error::io("wait for a timer"))?;
            let mut count = [0; 8];
            match rustix::io::read(self.0.get_ref(), &mut count) {
                Ok(_) => return Ok(true),
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(Error::io("read a timer")(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_never_early() {
        let alarm = Alarm::new().unwrap();
        for micros in [200, 1_500, 50] {
            let due = Instant::now() + Duration::from_micros(micros);
            assert!(alarm.until(due).await.unwrap());
            assert!(Instant::now() >= due);
        }
        assert!(!alarm.until(Instant::now()).await.unwrap());
    }
}
