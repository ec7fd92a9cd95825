//! One clock for all processes of a run: microseconds since the machine was started. It never goes back, counts a
//! suspended machine's time, and no step of the wall clock moves it.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the machine was started.
pub type Micros = u64;

/// One second.
pub const SECOND: Micros = 1_000_000;

/// Now.
pub fn now() -> Micros {
    let now = clock_gettime(ClockId::Boottime);
    let part = |value: i64| u64::try_from(value).expect("the clock counts from the start up");
    part(now.tv_sec) * SECOND + part(now.tv_nsec) / 1_000
}
