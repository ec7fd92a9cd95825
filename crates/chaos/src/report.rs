//! What is printed of a run, and of all runs together.

use crate::{
    check::{Checked, Losses},
    history::Family,
    liveness::Measured,
    nemesis::Tried,
    run::Report,
};
use std::{collections::BTreeMap, time::Duration};

/// Of one seed.
pub fn print(seed: u64, report: &Report, took: Duration) {
    println!("seed {seed}: {:.0} s in all", took.as_secs_f64());
    println!(
        "  {} faults ({} not possible), {} processes gave up, {} times a new leader, {} entries",
        done(&report.faults),
        report.skipped.len(),
        report.gave_up,
        report.leaders,
        report.entries
    );
    print_faults(&report.faults);
    report.skipped.iter().for_each(|why| println!("    skipped {why}"));
    print_checked(&Numbers::of(&report.checked));
    let answers: Vec<_> =
        report.answers.iter().map(|(what, count)| format!("{count} {what}")).collect();
    println!("  {}", answers.join(", "));
    print_losses(&report.checked.losses);
    report.measured.iter().for_each(print_measured);
    println!("  violations: {}", report.checked.violations.len());
}

fn done(faults: &BTreeMap<&'static str, Tried>) -> usize {
    faults.values().map(|tried| tried.done).sum()
}

/// Each kind with how often it came about, of how often it was meant to.
fn print_faults(faults: &BTreeMap<&'static str, Tried>) {
    for (kind, Tried { scheduled, done, impossible }) in faults {
        let impossible = match impossible {
            0 => String::new(),
            count => format!(", {count} not possible on this machine"),
        };
        println!("    fault: {kind}: {done} of {scheduled}{impossible}");
    }
}

/// What was checked, in numbers.
#[derive(Default)]
struct Numbers {
    calls: usize,
    unknown: usize,
    compared: usize,
    ordered: BTreeMap<Family, usize>,
    guards: usize,
    moments: usize,
    nodes: usize,
    exact: usize,
}

impl Numbers {
    fn of(checked: &Checked) -> Self {
        Self {
            calls: checked.calls,
            unknown: checked.unknown,
            compared: checked.compared,
            ordered: checked.ordered.clone(),
            guards: checked.guards,
            moments: checked.moments,
            nodes: checked.balanced.nodes,
            exact: checked.balanced.exact,
        }
    }

    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.unknown += other.unknown;
        self.compared += other.compared;
        for (family, count) in other.ordered {
            *self.ordered.entry(family).or_default() += count;
        }
        self.guards += other.guards;
        self.moments += other.moments;
        self.nodes += other.nodes;
        self.exact += other.exact;
    }
}

fn print_checked(numbers: &Numbers) {
    println!(
        "  {} calls, {} of unknown outcome; {} answers compared with the log",
        numbers.calls, numbers.unknown, numbers.compared
    );
    let ordered: Vec<_> =
        numbers.ordered.iter().map(|(of, count)| format!("{count} of {}s", of.as_str())).collect();
    println!("  put in order: {}", ordered.join(", "));
    println!(
        "  quotas: {} moments at which so much was surely used; books of {} nodes at the end, {} of them exact",
        numbers.moments, numbers.nodes, numbers.exact
    );
    println!("  {} looks at guards that held", numbers.guards);
}

/// What the protected resource lost.
pub fn print_losses(losses: &Losses) {
    println!(
        "  lock and fence: {} written, {} late ones refused, {} lost",
        losses.fenced, losses.refused, losses.fenced_lost
    );
    println!(
        "  lock only: {} written, {} lost; room: {} entries, {} while another was inside",
        losses.plain, losses.plain_lost, losses.entries, losses.overlapping
    );
}

fn print_measured(measured: &Measured) {
    let late = if measured.is_late() { "  LATE" } else { "" };
    let (took, bound) = (measured.took.as_secs_f64(), measured.bound.as_secs_f64());
    println!("  {}: {took:.2} s (bound {bound} s){late}", measured.what);
}

/// Over all seeds.
#[derive(Default)]
pub struct Sum {
    seeds: usize,
    length: Duration,
    faults: BTreeMap<&'static str, Tried>,
    gave_up: usize,
    leaders: usize,
    entries: u64,
    numbers: Numbers,
    losses: Losses,
    measured: Vec<Measured>,
}

impl Sum {
    /// One more seed.
    pub fn add(&mut self, report: &Report, length: Duration) {
        let (sum, losses) = (&mut self.losses, &report.checked.losses);
        sum.fenced += losses.fenced;
        sum.fenced_lost += losses.fenced_lost;
        sum.refused += losses.refused;
        sum.plain += losses.plain;
        sum.plain_lost += losses.plain_lost;
        sum.entries += losses.entries;
        sum.overlapping += losses.overlapping;
        self.seeds += 1;
        self.length += length;
        for (kind, tried) in &report.faults {
            let sum = self.faults.entry(kind).or_default();
            sum.scheduled += tried.scheduled;
            sum.done += tried.done;
            sum.impossible += tried.impossible;
        }
        self.gave_up += report.gave_up;
        self.leaders += report.leaders;
        self.entries += report.entries;
        self.numbers.add(Numbers::of(&report.checked));
        self.measured.extend(report.measured.iter().cloned());
    }

    /// All of it.
    pub fn print(&self) {
        println!(
            "{} seeds, {:.1} min of faults, without a violation: {} faults, {} processes gave up, {} leaders, {} entries",
            self.seeds,
            self.length.as_secs_f64() / 60.0,
            done(&self.faults),
            self.gave_up,
            self.leaders,
            self.entries
        );
        print_faults(&self.faults);
        print_checked(&self.numbers);
        print_losses(&self.losses);
        for what in ["L1 holder dies", "L2 leader dies", "L1 both die"] {
            let of: Vec<_> = self.measured.iter().filter(|it| it.what == what).collect();
            let mut took: Vec<_> = of.iter().map(|it| it.took.as_secs_f64()).collect();
            took.sort_by(f64::total_cmp);
            let late = of.iter().filter(|it| it.is_late()).count();
            if let (Some(median), Some(most)) = (took.get(took.len() / 2), took.last()) {
                let count = of.len();
                println!(
                    "  {what}: {count} times, median {median:.2} s, at most {most:.2} s, {late} late"
                );
            }
        }
    }
}
