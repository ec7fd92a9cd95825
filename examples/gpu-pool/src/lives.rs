//! What became of each job, out of the lines of a record.

use crate::record::{Line, What};
use std::collections::BTreeMap;

/// How a job stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has done its work.
    Done,
    /// It lost its reservation, and stopped.
    Lost,
    /// It crashed.
    Crashed,
    /// It never got what it asked for.
    Refused,
}

/// One job. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its name.
    pub job: String,
    /// Whose it is.
    pub tenant: String,
    /// What it asked for.
    pub gpus: u64,
    /// The token of its grant.
    pub fence: u64,
    /// When it asked.
    pub asked_us: u64,
    /// When it had what it asked for.
    pub began_us: Option<u64>,
    /// When it stopped, and how.
    pub stopped: Option<(u64, Stop)>,
    /// It is in the queue, as the service shows it.
    pub is_queued: bool,
    /// Until when the service showed it.
    pub gone_us: Option<u64>,
}

impl Life {
    fn new(line: &Line) -> Self {
        Self {
            job: line.job.clone(),
            tenant: line.tenant.clone(),
            gpus: line.gpus,
            fence: 0,
            asked_us: line.at_us,
            began_us: None,
            stopped: None,
            is_queued: false,
            gone_us: None,
        }
    }

    fn happens(&mut self, line: &Line) {
        let stop = |how| Some((line.at_us, how));
        match line.what {
            What::Asked => self.asked_us = line.at_us,
            What::Began => (self.began_us, self.fence) = (Some(line.at_us), line.fence),
            What::Ended => self.stopped = stop(Stop::Done),
            What::Lost => self.stopped = stop(Stop::Lost),
            What::Refused => self.stopped = stop(Stop::Refused),
            // Of one that was killed when it had stopped already nothing is left to crash.
            What::Killed => self.stopped = self.stopped.or(stop(Stop::Crashed)),
            What::Queued => (self.is_queued, self.gone_us) = (true, None),
            What::Held => (self.is_queued, self.gone_us) = (false, None),
            What::Gone => (self.is_queued, self.gone_us) = (false, Some(line.at_us)),
        }
    }

    /// From when to when it used its GPUs, as it says itself. `end_us`: of the record.
    pub fn use_us(&self, end_us: u64) -> Option<(u64, u64)> {
        let stopped = self.stopped.map_or(end_us, |(at, _)| at);
        self.began_us.map(|began| (began, stopped))
    }

    /// From when to when a crashed job's GPUs were nobody's: until the service took them back.
    pub fn orphaned_us(&self, end_us: u64) -> Option<(u64, u64)> {
        let crashed = self.began_us.is_some() && self.is(Stop::Crashed);
        let (at, _) = self.stopped.filter(|_| crashed)?;
        Some((at, self.gone_us.unwrap_or(end_us).max(at)))
    }

    /// How long it waited for what it got.
    pub fn waited_us(&self) -> Option<u64> {
        self.began_us.map(|began| began.saturating_sub(self.asked_us))
    }

    /// It has its GPUs, and has not stopped.
    pub fn is_running(&self) -> bool {
        self.began_us.is_some() && self.stopped.is_none()
    }

    /// It stopped so.
    pub fn is(&self, how: Stop) -> bool {
        self.stopped.is_some_and(|(_, it)| it == how)
    }
}

/// All jobs of a record, in the order in which they asked.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// The jobs.
    pub all: Vec<Life>,
    /// The first line.
    pub start_us: u64,
    /// The last line.
    pub end_us: u64,
}

impl Lives {
    /// Out of the lines, in the order of time.
    pub fn of(lines: &[Line]) -> Self {
        let mut by_name: BTreeMap<&str, Life> = BTreeMap::new();
        for line in lines {
            by_name.entry(&line.job).or_insert_with(|| Life::new(line)).happens(line);
        }
        let mut all: Vec<Life> = by_name.into_values().collect();
        all.sort_by_key(|life| life.asked_us);
        let at = |line: Option<&Line>| line.map_or(0, |line| line.at_us);
        Self { all, start_us: at(lines.first()), end_us: at(lines.last()) }
    }

    /// Those of a tenant.
    pub fn of_tenant(&self, tenant: &str) -> impl Iterator<Item = &Life> {
        self.all.iter().filter(move |life| life.tenant == tenant)
    }

    /// The job of this name.
    pub fn job(&self, name: &str) -> Option<&Life> {
        self.all.iter().find(|life| life.job == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `at what job`, each with 4 GPUs.
    pub(super) fn lives(text: &str) -> Lives {
        let lines: Vec<Line> = text
            .lines()
            .map(str::trim)
            .map(|line| {
                let (at_and_what, job) = line.rsplit_once(' ').unwrap();
                format!("{at_and_what} vision {job} 4 77").parse().unwrap()
            })
            .collect();
        Lives::of(&lines)
    }

    #[test]
    fn a_job_that_does_its_work() {
        let lives = lives("10 asked a\n20 began a\n21 held a\n50 ended a\n55 gone a");
        let a = lives.job("a").unwrap();
        assert_eq!((a.waited_us(), a.use_us(99), a.fence), (Some(10), Some((20, 50)), 77));
        assert!(a.is(Stop::Done) && a.orphaned_us(99).is_none());
        assert_eq!((lives.start_us, lives.end_us), (10, 55));
    }

    #[test]
    fn what_a_crashed_job_had_is_nobodys_until_the_service_takes_it_back() {
        let crashed = lives("10 asked a\n20 began a\n21 held a\n30 killed a\n90 gone a");
        let a = crashed.job("a").unwrap();
        assert_eq!((a.use_us(99), a.orphaned_us(99)), (Some((20, 30)), Some((30, 90))));
        let still = lives("10 asked a\n20 began a\n21 held a\n30 killed a");
        assert_eq!(still.job("a").unwrap().orphaned_us(99), Some((30, 99)), "not back yet");
        assert!(!still.all[0].is_running());
    }

    #[test]
    fn who_is_killed_while_it_waits_or_after_its_end_leaves_nothing_behind() {
        let waited = lives("10 asked a\n20 queued a\n30 killed a\n31 gone a");
        let a = waited.job("a").unwrap();
        assert!(!a.is_queued);
        assert_eq!((a.use_us(99), a.orphaned_us(99), a.waited_us()), (None, None, None));
        let ended = lives("10 asked a\n20 began a\n30 ended a\n31 killed a");
        assert!(ended.job("a").unwrap().is(Stop::Done));
    }

    #[test]
    fn one_that_still_runs_uses_them_until_the_record_ends() {
        let lives = lives("10 asked a\n20 began a");
        assert!(lives.all[0].is_running());
        assert_eq!(lives.all[0].use_us(40), Some((20, 40)));
    }
}
