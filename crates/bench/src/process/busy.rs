//! What the whole machine did, from `/proc/stat`: so that what others took can be told from what a run took itself.

use serde::Serialize;
use std::time::Duration;

/// Seconds of all cores; by second of a run, cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Busy {
    /// On which some program of this machine ran.
    pub ran: f64,
    /// That the host gave to other machines although this one wanted them.
    pub stolen: f64,
}

impl Busy {
    /// Since the machine started; zeros where the kernel does not tell.
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        parse(&text, rustix::param::clock_ticks_per_second()).unwrap_or_default()
    }

    /// By second, since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self, length: Duration) -> Self {
        let seconds = length.as_secs_f64().max(1e-9);
        let per_second = |more: f64| (more / seconds * 100.0).round() / 100.0;
        Self {
            ran: per_second(self.ran - earlier.ran),
            stolen: per_second(self.stolen - earlier.stolen),
        }
    }
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal (guests are in user and nice).
fn parse(text: &str, ticks: u64) -> Option<Busy> {
    let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let mut next = || fields.next()?.parse::<f64>().ok();
    let (user, nice, system) = (next()?, next()?, next()?);
    let (_idle, _iowait) = (next()?, next()?);
    let (irq, softirq, steal) = (next()?, next()?, next()?);
    let seconds = |count: f64| count / ticks.max(1) as f64;
    Some(Busy { ran: seconds(user + nice + system + irq + softirq), stolen: seconds(steal) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cores_and_those_that_wait_for_a_disk_are_not_busy() {
        let text = "cpu  100 20 300 9000 800 4 6 50 7 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let earlier = parse(text, 100).unwrap();
        assert_eq!(earlier, Busy { ran: 4.3, stolen: 0.5 });
        let later = Busy { ran: 10.3, stolen: 1.5 };
        let found = later.since(earlier, Duration::from_secs(4));
        assert_eq!(found, Busy { ran: 1.5, stolen: 0.25 });
        assert_eq!(parse("cpu 1 2 3", 100), None);
        assert!(Busy::now().ran > 0.0, "this machine has done something");
    }
}
