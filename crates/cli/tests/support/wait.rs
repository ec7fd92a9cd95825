//! Waiting for what another process brings about, and tells nobody.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::{
    fmt::Display,
    fs, thread,
    time::{Duration, Instant},
};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// What there is to see, as soon as there is.
pub fn until_some<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < within, "never: {what}");
        thread::sleep(INTERVAL);
    }
}

/// Returns as soon as it is so.
pub fn until(what: &str, within: Duration, is_so: impl Fn() -> bool) {
    until_some(what, within, || is_so().then_some(()));
}

/// Whether a process runs: one that has ended and was not waited for does not.
pub fn alive(pid: impl Display) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
