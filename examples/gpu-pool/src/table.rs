//! The report for people: what each tenant used and waited for, what came back from crashed jobs and when, and whether
//! more was ever in use than there is.

use crate::{
    lives::{Life, Lives, Stop},
    pool::{GPUS, TENANTS, Tenant},
    steps::Steps,
};
use std::fmt;

/// The report.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    lives: &'a Lives,
    in_use: Steps,
}

impl<'a> Report<'a> {
    /// Of a record.
    pub fn of(lives: &'a Lives) -> Self {
        Self { lives, in_use: in_use(lives, lives.all.iter()) }
    }

    /// The most GPUs that workers used at the same time, by their own record, and when.
    pub fn peak(&self) -> (u64, u64) {
        self.in_use.peak()
    }

    /// More were in use than there are.
    pub fn is_oversold(&self) -> bool {
        self.peak().1 > GPUS
    }

    fn second(&self, at_us: u64) -> f64 {
        seconds(at_us.saturating_sub(self.lives.start_us))
    }

    fn write_tenants(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<10}{:>9}{:>7}  {:>5}{:>6}{:>9}{:>9}  {:>7}{:>6}  {:>11}{:>8}{:>8}",
            "tenant",
            "promised",
            "weight",
            "jobs",
            "done",
            "crashed",
            "refused",
            "GPU·s",
            "peak",
            "waited p50",
            "p90",
            "max"
        )?;
        for Tenant { name, guaranteed, weight, .. } in TENANTS {
            let own: Vec<&Life> = self.lives.of_tenant(name).collect();
            let count = |how| own.iter().filter(|life| life.is(how)).count();
            let steps = in_use(self.lives, own.iter().copied());
            let mut waited: Vec<u64> = own.iter().filter_map(|life| life.waited_us()).collect();
            waited.sort_unstable();
            let wait = |part| format!("{:.2} s", seconds(percentile(&waited, part)));
            writeln!(
                f,
                "{name:<10}{guaranteed:>9}{weight:>7}  {:>5}{:>6}{:>9}{:>9}  {:>7.1}{:>6}  {:>11}{:>8}{:>8}",
                own.len(),
                count(Stop::Done),
                count(Stop::Crashed),
                count(Stop::Refused) + count(Stop::Lost),
                steps.area() as f64 / 1e6,
                steps.peak().1,
                wait(50),
                wait(90),
                wait(100)
            )?;
        }
        Ok(())
    }

    fn write_crashes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crashed = || self.lives.all.iter().filter(|life| life.is(Stop::Crashed));
        if crashed().next().is_none() {
            return writeln!(f, "Nothing has crashed.");
        }
        writeln!(f, "{:<16}{:<10}{:>5}  {:>10}  came back", "crashed job", "tenant", "GPUs", "at")?;
        for life in crashed() {
            let at = life.stopped.map_or(0, |(at, _)| at);
            let back = match (life.began_us, life.gone_us) {
                (None, _) => "it waited, and had none".into(),
                (_, Some(gone)) => format!("after {:.2} s", seconds(gone.saturating_sub(at))),
                (_, None) => "not yet".into(),
            };
            let Life { job, tenant, gpus, .. } = life;
            writeln!(f, "{job:<16}{tenant:<10}{gpus:>5}  {:>8.2} s  {back}", self.second(at))?;
        }
        let had = || crashed().filter(|life| life.began_us.is_some());
        let back = had().filter(|life| life.gone_us.is_some());
        let sum = |lives: &mut dyn Iterator<Item = &Life>| lives.map(|life| life.gpus).sum::<u64>();
        let (lost, found) = (sum(&mut had()), sum(&mut back.into_iter()));
        writeln!(f, "Of {lost} GPUs that crashed jobs had, {found} came back.")
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (jobs, long) = (self.lives.all.len(), self.second(self.lives.end_us));
        writeln!(f, "{GPUS} GPUs, {jobs} jobs, {long:.1} s\n")?;
        self.write_tenants(f)?;
        writeln!(f)?;
        self.write_crashes(f)?;
        let (at, peak) = self.peak();
        let verdict = if self.is_oversold() { "OVERSOLD" } else { "never oversold" };
        writeln!(
            f,
            "\nAt most {peak} of {GPUS} GPUs were in use at once, by the workers' own record (at {:.2} s): {verdict}.",
            self.second(at)
        )
    }
}

/// What workers used, by their own record.
pub fn in_use<'a>(lives: &Lives, of: impl Iterator<Item = &'a Life>) -> Steps {
    Steps::sum(of.filter_map(|life| Some((life.use_us(lives.end_us)?, life.gpus))))
}

/// What crashed jobs had, until it came back.
pub fn orphaned<'a>(lives: &Lives, of: impl Iterator<Item = &'a Life>) -> Steps {
    Steps::sum(of.filter_map(|life| Some((life.orphaned_us(lives.end_us)?, life.gpus))))
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Of sorted values; 0 of none.
fn percentile(sorted: &[u64], part: usize) -> u64 {
    let rank = (sorted.len() * part).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Line;

    fn lives(text: &str) -> Lives {
        let lines: Vec<Line> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        Lives::of(&lines)
    }

    #[test]
    fn a_report_tells_use_waits_and_what_came_back() {
        let lives = lives(
            "0 asked vision v1 24 0
             500000 began vision v1 24 5
             500000 asked research r1 40 0
             1500000 began research r1 40 6
             2000000 killed research r1 40 0
             2500000 ended vision v1 24 0
             3900000 gone research r1 40 0",
        );
        let report = Report::of(&lives);
        assert_eq!(report.peak(), (1_500_000, 64));
        assert!(!report.is_oversold());
        let text = report.to_string();
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "64 GPUs, 2 jobs, 3.9 s",
            "vision 24 2 1 1 0 0 48.0 24 0.50 s 0.50 s 0.50 s",
            "speech 16 1 0 0 0 0 0.0 0 0.00 s",
            "research 0 1 1 0 1 0 20.0 40 1.00 s",
            "r1 research 40 2.00 s after 1.90 s",
            "Of 40 GPUs that crashed jobs had, 40 came back.",
            "At most 64 of 64 GPUs were in use at once, by the workers' own record (at 1.50 s): never oversold.",
        ] {
            assert!(squeezed.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn one_gpu_too_many_is_told() {
        let lives = lives(
            "0 began vision v1 24 5
             10 began research r1 41 6
             20 ended research r1 41 0
             30 ended vision v1 24 0",
        );
        let report = Report::of(&lives);
        assert!(report.is_oversold());
        assert!(report.to_string().contains("OVERSOLD"), "{report}");
    }

    #[test]
    fn what_has_not_come_back_is_told() {
        let lives = lives(
            "0 began vision v1 24 5
             10 killed vision v1 24 0
             20 asked vision v2 4 0
             30 killed vision v2 4 0",
        );
        let text = Report::of(&lives).to_string();
        for part in ["not yet", "it waited, and had none", "Of 24 GPUs that crashed jobs had, 0 "] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn percentiles_of_few() {
        let of = |part| percentile(&[1, 2, 3, 4], part);
        assert_eq!([of(50), of(90), of(100)], [2, 4, 4]);
        assert_eq!((percentile(&[], 50), percentile(&[7], 50)), (0, 7));
    }
}
