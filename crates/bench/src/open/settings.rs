//! What a load consists of, checked.

use super::{
    phase::Phase,
    schedule::{Arrivals, Rates},
};
use crate::error::Error;
use clap::{Args as _, FromArgMatches as _};
use sereno_api::Millis;
use std::time::Duration;

/// A load. DESIGN.md section 17 says which one the service is built for: these are its defaults.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Acquires a second.
    #[arg(long, default_value_t = 2_000.0, value_name = "RATE")]
    pub acquires: f64,

    /// Releases a second. [default: as many as acquires]
    #[arg(long, value_name = "RATE")]
    pub releases: Option<f64>,

    /// Names that are used.
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    pub resources: u32,

    /// Leases that are held all the time: taken before the warm-up, then renewed. A release that would leave fewer
    /// is skipped.
    #[arg(long, default_value_t = 20_000, value_name = "COUNT")]
    pub active: usize,

    /// Each held lease is renewed this often; 0s: never.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub renew_every: Millis,

    /// Leases in one renewal, like the SDK's one renew-many of a process. 1: single renewals, one for each lease.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    pub renew_batch: usize,

    /// Share of acquires that ask for a held name and wait for it.
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub contended: f64,

    /// How long before its release a name is asked for by those who wait, on average.
    #[arg(long, default_value = "250ms", value_name = "DURATION")]
    pub wait_mean: Millis,

    /// Their waitTimeout.
    #[arg(long, default_value = "5s", value_name = "DURATION")]
    pub wait: Millis,

    /// Share of acquires that wait and give up: the connection is closed and the request abandoned.
    #[arg(long, default_value_t = 0.02, value_name = "SHARE")]
    pub cancelled: f64,

    /// When they give up.
    #[arg(long, default_value = "100ms", value_name = "DURATION")]
    pub cancel_after: Millis,

    /// Share of holders that die: neither renewed nor released.
    #[arg(long, default_value_t = 0.01, value_name = "SHARE")]
    pub dying: f64,

    /// TTL of each lease.
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    pub ttl: Millis,

    /// Unmeasured beginning.
    #[arg(long, default_value = "5s", value_name = "DURATION")]
    pub warm_up: Millis,

    /// What is measured, as `NAME:DURATION[:FACTOR]`, where FACTOR multiplies acquires and releases; can be given
    /// several times. [default: steady:30s]
    #[arg(long, value_name = "PHASE")]
    pub phase: Vec<Phase>,

    /// How calls are spread over time.
    #[arg(long, value_enum, default_value_t)]
    pub arrivals: Arrivals,

    /// Connections at most. Those who wait keep one each.
    #[arg(long, default_value_t = 512, value_name = "COUNT")]
    pub connections: usize,

    /// A call for which no connection is free is dropped after this time.
    #[arg(long, default_value = "1s", value_name = "DURATION")]
    pub drop_after: Millis,

    /// A call without an answer is given up after this time (and its waitTimeout): unknown.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub timeout: Millis,

    /// In this namespace.
    #[arg(long, default_value = "default")]
    pub namespace: String,

    /// Decides names, shares and arrivals.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for Settings {
    /// As the command line has them.
    fn default() -> Self {
        let command = Self::augment_args(clap::Command::new("settings"));
        let matches = command.get_matches_from(["settings"]);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

impl Settings {
    /// Checks what the types do not say.
    ///
    /// # Errors
    /// The first option that breaks a rule.
    pub fn check(&self) -> Result<(), Error> {
        let rules = [
            (self.resources as usize > self.active, "--resources must be more than --active"),
            (self.connections > 0, "--connections must be at least 1"),
            ((1..=1_000).contains(&self.renew_batch), "--renew-batch must be 1 to 1000"),
            (
                [self.contended, self.cancelled, self.dying]
                    .iter()
                    .all(|share| (0.0..=1.0).contains(share)),
                "--contended, --cancelled and --dying must be 0 to 1",
            ),
            (self.contended + self.cancelled <= 1.0, "--contended and --cancelled are over 1"),
            (
                (0.0..=1e6).contains(&self.acquires)
                    && (0.0..=1e6).contains(&self.releases_per_second()),
                "--acquires and --releases must be 0 to 1000000",
            ),
            (
                self.renew_every.0 == 0 || self.renew_every.0 * 2 <= self.ttl.0,
                "--renew-every must be at most half of --ttl",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(Error::Usage(rule.into())),
            None => Ok(()),
        }
    }

    fn releases_per_second(&self) -> f64 {
        self.releases.unwrap_or(self.acquires)
    }

    /// Calls a second of each kind.
    pub(super) fn rates(&self) -> Rates {
        let renewals = match self.renew_every.0 {
            0 => 0.0,
            every => {
                let leases = self.active as f64 * 1e3 / every as f64;
                leases / self.renew_batch as f64
            }
        };
        Rates { acquires: self.acquires, releases: self.releases_per_second(), renewals }
    }

    /// Commands a second that it offers to the log: a renewal of a batch is one, as an acquire is, and a release.
    pub fn commands_per_second(&self) -> f64 {
        let Rates { acquires, releases, renewals } = self.rates();
        acquires + releases + renewals
    }

    /// The warm-up and the phases.
    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut phases = vec![Phase::warm_up(duration(self.warm_up))];
        phases.extend(self.phase.iter().cloned());
        if self.phase.is_empty() {
            let length = Duration::from_secs(30);
            phases.push(Phase { name: "steady".into(), length, factor: 1.0 });
        }
        phases
    }
}

/// As the standard library has it.
pub(super) fn duration(millis: Millis) -> Duration {
    Duration::from_millis(millis.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Settings {
        let command = Settings::augment_args(clap::Command::new("open"));
        let words = std::iter::once("open").chain(line.split_whitespace());
        Settings::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn the_default_is_the_load_of_the_design() {
        let settings = parse("");
        settings.check().unwrap();
        let Rates { acquires, releases, renewals } = settings.rates();
        let found = [acquires, releases, renewals * settings.renew_batch as f64];
        assert!(found.iter().all(|rate| (rate - 2_000.0).abs() < 1e-9), "{found:?}");
        assert_eq!(settings.phases().len(), 2);
        let offered = |line: &str| parse(line).commands_per_second().round() as u64;
        assert_eq!(offered("--renew-batch 1"), 6_000);
        assert_eq!(offered("--renew-batch 100"), 4_020, "a batch is one command");
    }

    #[test]
    fn contradictions_are_refused() {
        for (line, names) in [
            ("--resources 20000", "--resources"),
            ("--contended 0.6 --cancelled 0.6", "--contended"),
            ("--dying 2", "--dying"),
            ("--renew-every 20s", "--renew-every"),
            ("--renew-batch 0", "--renew-batch"),
            ("--acquires -1", "--acquires"),
        ] {
            let line = line.replace("--acquires -1", "--acquires=-1");
            let error = parse(&line).check().unwrap_err().to_string();
            assert!(error.contains(names), "{line}: {error}");
        }
    }
}
