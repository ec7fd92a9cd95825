//! The command: runs seeds until one fails.

#[cfg(feature = "planted")]
use sereno_core::planted::{self, Planted};
use sereno_sim::{Config, Failure, Report, explain, run, seeds_wanted};
use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

const USAGE: &str =
    "sereno-sim [--quotas] [--seeds N] [--from N] [--minutes N] [--seed N [--trace]] [--steps N]
  --seeds N     seeds to run (default 200, of quotas 500, or the variable SEEDS)
  --quotas      histories in which clients use quotas
  --from N      the first of them (default 0)
  --minutes N   go on with further seeds for so long
  --seed N      only this one; on a failure its last events are told
  --all         go on after a failure, and tell only which seeds failed and why
  --planted B   with the planted bug B (only with the feature `planted`)
  --trace       tell everything that happens
  --steps N     stop each run after so many events";

/// Seeds that are run where nobody says otherwise.
const SEEDS: u64 = 200;
const QUOTA_SEEDS: u64 = 500;

struct Options {
    quotas: bool,
    from: u64,
    seeds: u64,
    time: Option<Duration>,
    only: Option<u64>,
    traces: bool,
    all: bool,
    steps: u64,
}

impl Options {
    fn config(&self, seed: u64) -> Config {
        if self.quotas { Config::quotas(seed) } else { Config::of(seed) }
    }
}

fn options() -> Result<Options, String> {
    let mut seeds = None;
    let mut options = Options {
        quotas: false,
        from: 0,
        seeds: 0,
        time: None,
        only: None,
        traces: false,
        all: false,
        steps: u64::MAX,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or(format!("{word} needs a number"))?;
            text.parse::<u64>().map_err(|error| format!("{word} {text}: {error}"))
        };
        match word.as_str() {
            "--seeds" => seeds = Some(number()?),
            "--quotas" => options.quotas = true,
            "--from" => options.from = number()?,
            "--minutes" => options.time = Some(Duration::from_secs(60 * number()?)),
            "--seed" => options.only = Some(number()?),
            "--steps" => options.steps = number()?,
            #[cfg(feature = "planted")]
            "--planted" => {
                let name = words.next().unwrap_or_default();
                let is_it = |bug: &Planted| format!("{bug:?}") == name;
                let bug = Planted::ALL.into_iter().find(is_it);
                let known = || format!("one of {:?}", Planted::ALL);
                planted::plant(Some(bug.ok_or_else(known)?));
            }
            "--all" => options.all = true,
            "--trace" => options.traces = true,
            _ => return Err(USAGE.into()),
        }
    }
    options.seeds = match seeds {
        Some(seeds) => seeds,
        None => seeds_wanted(if options.quotas { QUOTA_SEEDS } else { SEEDS })?,
    };
    if options.seeds == 0 {
        return Err("--seeds 0: at least one seed has to be run".into());
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let result = match options.only {
        Some(seed) => explain(options.config(seed), options.steps, options.traces).map(|report| {
            println!("seed {seed}: {report:?}");
        }),
        None => many(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs seeds one after the other.
fn many(options: &Options) -> Result<(), Box<Failure>> {
    let begun = Instant::now();
    let (mut done, mut sum) = (0, Sum::default());
    let is_due = |done| match options.time {
        Some(time) => begun.elapsed() < time,
        None => done < options.seeds,
    };
    while is_due(done) {
        let config = options.config(options.from + done);
        let report = match run(config.clone(), options.steps) {
            Ok(report) => report,
            Err(failure) if options.all => {
                println!(
                    "seed {} at {} ms: {}",
                    options.from + done,
                    failure.at_ms,
                    failure.message
                );
                done += 1;
                continue;
            }
            // Once more with words: it is the same run.
            Err(silent) => {
                return Err(explain(config, options.steps, false).err().unwrap_or(silent));
            }
        };
        sum.add(&report);
        done += 1;
    }
    sum.print(done, begun.elapsed());
    Ok(())
}

#[derive(Default)]
struct Sum {
    events: u64,
    ms: u64,
    entries: u64,
    leads: u64,
    faults: u64,
    grants: u64,
    answers: u64,
    reads: u64,
    snapshots: u64,
    takeovers_ms: Vec<u64>,
    marks: BTreeMap<&'static str, u64>,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.events += report.events;
        self.ms += report.simulated_ms;
        self.entries += report.entries;
        self.leads += report.leads;
        self.faults += report.faults;
        self.grants += report.grants;
        self.answers += report.answers;
        self.reads += report.reads;
        self.snapshots += report.snapshots;
        for (what, times) in &report.marks {
            *self.marks.entry(what).or_default() += times;
        }
        self.takeovers_ms.extend(Some(report.takeover_ms).filter(|&ms| ms > 0));
    }

    fn print(&self, seeds: u64, took: Duration) {
        let rate = u128::from(self.events) * 1_000 / took.as_millis().max(1);
        println!("{seeds} seeds held, {} s simulated in {took:.1?}", self.ms / 1_000);
        println!("{} events: {rate} a second", self.events);
        let mut takeovers = self.takeovers_ms.clone();
        takeovers.sort_unstable();
        if let Some(longest) = takeovers.last() {
            let at = |part: usize| takeovers[(takeovers.len() - 1) * part / 100];
            println!(
                "takeovers after the leader's death: p50 {} ms, p90 {} ms, p99 {} ms, at most {longest} ms",
                at(50),
                at(90),
                at(99)
            );
        }
        println!(
            "{} entries, {} times a leader, {} faults, {} grants, {} answers, {} reads, {} snapshots",
            self.entries,
            self.leads,
            self.faults,
            self.grants,
            self.answers,
            self.reads,
            self.snapshots
        );
        for (what, times) in &self.marks {
            println!("{times:>8} x {what}");
        }
    }
}
