//! An amount over time, which changes in steps.

/// The amount from each moment on, in the order of time. Before the first one it is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(pub Vec<(u64, u64)>);

impl Steps {
    /// The sum of amounts, each from one moment until another. Where one begins in the same microsecond in which another
    /// one ends, both count.
    pub fn sum(parts: impl IntoIterator<Item = ((u64, u64), u64)>) -> Self {
        let mut changes: Vec<(u64, bool, u64)> = Vec::new();
        for ((from, to), amount) in parts {
            changes.push((from, false, amount));
            changes.push((to.max(from), true, amount));
        }
        changes.sort_unstable();
        let (mut now, mut steps) = (0, Vec::new());
        for (at, is_end, amount) in changes {
            now = if is_end { now - amount } else { now + amount };
            steps.push((at, now));
        }
        Self(steps)
    }

    /// The largest amount, and when it was reached first.
    pub fn peak(&self) -> (u64, u64) {
        let highest = self.0.iter().map(|(_, amount)| *amount).max().unwrap_or(0);
        let first = self.0.iter().find(|(_, amount)| *amount == highest);
        first.copied().unwrap_or((0, 0))
    }

    /// What it is at a moment.
    pub fn at(&self, moment: u64) -> u64 {
        let before = self.0.partition_point(|(at, _)| *at <= moment);
        before.checked_sub(1).map_or(0, |last| self.0[last].1)
    }

    /// Amount times time, from the first step to the last.
    pub fn area(&self) -> u128 {
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        pairs.map(|((from, amount), (to, _))| u128::from(*amount) * u128::from(to - from)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up_while_they_last() {
        let steps = Steps::sum([((10, 30), 4), ((20, 40), 8), ((50, 60), 2)]);
        assert_eq!(steps.0, [(10, 4), (20, 12), (30, 8), (40, 0), (50, 2), (60, 0)]);
        assert_eq!(steps.peak(), (20, 12));
        assert_eq!([9, 10, 29, 30, 45, 60].map(|at| steps.at(at)), [0, 4, 12, 8, 0, 0]);
        assert_eq!(steps.area(), 4 * 20 + 8 * 20 + 2 * 10);
        assert_eq!(Steps::default().peak(), (0, 0));
    }

    #[test]
    fn who_begins_when_another_one_ends_counts_beside_it() {
        let steps = Steps::sum([((10, 20), 64), ((20, 30), 1)]);
        assert_eq!(steps.peak(), (20, 65), "a report must not be lenient");
    }
}
