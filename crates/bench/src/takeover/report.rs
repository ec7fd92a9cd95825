//! What `takeover` writes.

use super::Resumed;
use crate::report::Machine;
use serde::Serialize;
use std::fmt;

const BOUND_MS: u64 = 3_000;

/// The result of `takeover`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeoverReport {
    /// `takeover`
    pub command: &'static str,
    /// Where it was measured.
    pub machine: Machine,
    /// From the kill, or the stop, to the next grant, in the order of the tries.
    pub away_ms: Vec<u64>,
    /// The middle one.
    pub p50_ms: u64,
    /// The longest of 99 in a hundred.
    pub p99_ms: u64,
    /// The longest.
    pub max_ms: u64,
    /// What became of each leader that was stopped and resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumed>,
    /// None is above 3 s, and every promise was kept.
    pub met: bool,
}

impl TakeoverReport {
    pub(super) fn new(machine: Machine, away_ms: Vec<u64>, resumed: Vec<Resumed>) -> Self {
        let (p50_ms, p99_ms, max_ms) =
            (percentile(&away_ms, 50), percentile(&away_ms, 99), percentile(&away_ms, 100));
        let met = max_ms <= BOUND_MS && resumed.iter().all(Resumed::is_sound);
        Self { command: "takeover", machine, away_ms, p50_ms, p99_ms, max_ms, resumed, met }
    }
}

fn percentile(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0)
}

impl fmt::Display for TakeoverReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        let Self { away_ms, p50_ms, p99_ms, max_ms, resumed, met, .. } = self;
        let how = if resumed.is_empty() { "killed" } else { "stopped and resumed" };
        writeln!(f, "{} times the leader was {how}; away for, in ms:\n", away_ms.len())?;
        writeln!(f, "p50 {p50_ms}   p99 {p99_ms}   longest {max_ms}")?;
        if !resumed.is_empty() {
            let sum = |figure: fn(&Resumed) -> usize| resumed.iter().map(figure).sum::<usize>();
            let steps: Vec<u64> = resumed.iter().filter_map(|it| it.stepped_down_ms).collect();
            let (middle, longest) = (percentile(&steps, 50), percentile(&steps, 100));
            writeln!(
                f,
                "\nacknowledged grants {}, lost {}, given to two {}, tokens that fell {}",
                sum(|it| it.acknowledged),
                sum(|it| it.lost),
                sum(|it| it.double),
                sum(|it| usize::from(it.tokens_fell))
            )?;
            writeln!(
                f,
                "stepped down by itself {} of {}: p50 {middle}   longest {longest}",
                steps.len(),
                resumed.len()
            )?;
        }
        writeln!(f, "\nwithin 3 s each time: {}", if *met { "met" } else { "missed" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_and_every_broken_promise_count() {
        let sound = Resumed { stepped_down_ms: Some(9), acknowledged: 7, ..Resumed::default() };
        let report =
            |away: &[u64], resumed| TakeoverReport::new(Machine::look(), away.into(), resumed);
        let found = report(&[3_000, 10, 20], vec![sound.clone()]);
        assert_eq!((found.p50_ms, found.max_ms, found.met), (20, 3_000, true));
        assert!(found.to_string().contains("acknowledged grants 7, lost 0"), "{found}");
        assert!(!report(&[3_001], Vec::new()).met);
        assert!(!report(&[1], vec![Resumed { lost: 1, ..sound }]).met);
    }
}
