//! One run from a seed: a report, or what failed.

use crate::{config::Config, trace::Trace, world::World};
use sereno_core::planted::{self, Planted};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

/// What a run has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of the whole trace: the same seed, the same hash.
    pub hash: u64,
    /// Events that happened.
    pub events: u64,
    /// Simulated time.
    pub simulated_ms: u64,
    /// Entries that landed.
    pub entries: u64,
    /// Times a node began to lead.
    pub leads: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Grants by the log.
    pub grants: u64,
    /// Answers that clients took.
    pub answers: u64,
    /// Consistent reads answered.
    pub reads: u64,
    /// How long the takeover at the end took.
    pub takeover_ms: u64,
    /// Snapshots saved.
    pub snapshots: u64,
    /// How often each rare thing has come about.
    pub marks: BTreeMap<&'static str, u64>,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the seed stands for.
    pub config: Config,
    /// Which promise, and how.
    pub message: String,
    /// When, in simulated time.
    pub at_ms: u64,
    /// Events until then.
    pub events: u64,
    /// The last things that happened, if they were kept.
    pub lines: Vec<String>,
    /// The bug that was planted.
    pub planted: Option<Planted>,
}

impl Failure {
    /// The command that plays the same run again.
    pub fn again(&self) -> String {
        let seed = self.config.seed;
        let (feature, bug) = match self.planted {
            Some(bug) => (" --features planted", format!("--planted {bug:?} ")),
            None => ("", String::new()),
        };
        if self.config.hammered > 0 {
            return "cargo test --release -p sereno-sim --test hammer".into();
        }
        let kind = if self.config.is_of_quotas() { "--quotas " } else { "" };
        format!("cargo run --release -p sereno-sim{feature} -- {bug}{kind}--seed {seed} --trace")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.lines.len().saturating_sub(60);
        for line in &self.lines[skipped..] {
            writeln!(f, "{line}")?;
        }
        let (seed, at_ms, events) = (self.config.seed, self.at_ms, self.events);
        writeln!(f, "seed {seed} failed at {at_ms} ms, event {events}: {}", self.message)?;
        writeln!(f, "{:?}", self.config)?;
        write!(f, "again: {}", self.again())
    }
}

thread_local! {
    /// While a run is under way its panics are caught, and not printed.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_QUIET.get() {
                let text = info.payload_as_str().unwrap_or("a panic without words").to_owned();
                let at = info.location().map(ToString::to_string).unwrap_or_default();
                MESSAGE.set(format!("{text} [{at}]"));
            } else {
                before(info);
            }
        }));
    });
}

/// Runs a seed, for `steps` events at most.
///
/// # Errors
/// The promise that was broken.
pub fn run(config: Config, steps: u64) -> Result<Report, Box<Failure>> {
    play(config, steps, Trace::default())
}

/// The same with words for what happens: the last ones are kept, and all are printed if wanted.
///
/// # Errors
/// As [`run`].
pub fn explain(config: Config, steps: u64, prints: bool) -> Result<Report, Box<Failure>> {
    play(config, steps, Trace::with_words(prints))
}

fn play(config: Config, steps: u64, trace: Trace) -> Result<Report, Box<Failure>> {
    quieten();
    let mut world = World::new(config, steps, trace);
    IS_QUIET.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(|| world.run()));
    IS_QUIET.set(false);
    let (at_ms, events) = (world.agenda.now / crate::clock::MS, world.trace.events);
    if result.is_err() {
        let (message, lines) = (MESSAGE.take(), world.trace.lines());
        let (config, planted) = (world.config, planted::chosen());
        return Err(Box::new(Failure { config, message, at_ms, events, lines, planted }));
    }
    let chain = world.truth.state.outcome_chain().0;
    for part in chain.chunks_exact(8) {
        let part = part.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        world.trace.mix(&[part]);
    }
    Ok(Report {
        hash: world.trace.hash(),
        events,
        simulated_ms: at_ms,
        entries: world.landings,
        leads: world.leads,
        faults: world.faults,
        grants: world.truth.checks.grants,
        answers: world.answers,
        reads: world.reads,
        takeover_ms: world.takeover_ms,
        snapshots: world.snapshots,
        marks: world.truth.checks.marks.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_and_how_to_see_it_again() {
        let failure = Failure {
            config: Config::of(42),
            message: "S1: one lease".into(),
            at_ms: 1_234,
            events: 99,
            lines: (0..80).map(|n| format!("line {n}")).collect(),
            planted: None,
        };
        let text = failure.to_string();
        let lines: Vec<_> = text.lines().collect();
        let [first, .., last_event, told, config, again] = lines[..] else { panic!("{text}") };
        assert_eq!((first, last_event, lines.len()), ("line 20", "line 79", 63));
        assert_eq!(told, "seed 42 failed at 1234 ms, event 99: S1: one lease");
        assert!(config.starts_with("Config { seed: 42, nodes: "), "{config}");
        assert_eq!(again, "again: cargo run --release -p sereno-sim -- --seed 42 --trace");
        let failure = Failure { planted: Some(Planted::StaysLeader), ..failure };
        let again = "cargo run --release -p sereno-sim --features planted -- --planted StaysLeader \
                     --seed 42 --trace";
        assert_eq!(failure.again(), again);
        let failure = Failure { config: Config::quotas(7), planted: None, ..failure };
        let again = "cargo run --release -p sereno-sim -- --quotas --seed 7 --trace";
        assert_eq!(failure.again(), again);
    }
}
