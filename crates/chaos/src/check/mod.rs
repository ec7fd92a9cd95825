//! The checkers: what clients saw against what was promised. By revision (`revisions`), without revisions
//! (`linear`, `leased`), and directly (`intervals`, `requests`, `slots`, `resource`); of quotas both (`quota`).

mod intervals;
mod leased;
mod linear;
mod project;
mod quota;
mod requests;
mod resource;
mod revisions;
mod slots;
#[cfg(test)]
mod tests;

pub use quota::Balanced;
pub use resource::Losses;

use crate::{
    history::{Family, Heard, Held, History},
    resource::Visit,
    truth::Truth,
};
use std::{collections::BTreeMap, fmt};

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which, as in DESIGN.md section 1.
    pub promise: &'static str,
    /// By what.
    pub message: String,
}

impl Violation {
    fn new(promise: &'static str, message: impl Into<String>) -> Self {
        Self { promise, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.message)
    }
}

/// What was checked: numbers that show that something was.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// What is wrong.
    pub violations: Vec<Violation>,
    /// Calls, and how many of them nobody knows the end of.
    pub calls: usize,
    /// Calls of unknown outcome.
    pub unknown: usize,
    /// Answers compared with the log.
    pub compared: usize,
    /// Operations put into an order, by family.
    pub ordered: BTreeMap<Family, usize>,
    /// Moments at which a guard of the SDK said that it held.
    pub guards: usize,
    /// Moments at which so much of a quota was surely used, and answers that show what is.
    pub moments: usize,
    /// Nodes of quotas whose books were compared when all was over.
    pub balanced: Balanced,
    /// What the protected resource lost.
    pub losses: Losses,
}

/// Runs every checker.
pub fn all(history: &History, truth: &Truth, visits: &[Visit]) -> Checked {
    let (mut violations, compared) = revisions::check(&history.calls, truth);
    violations.extend(intervals::check(history));
    violations.extend(requests::check(&history.calls, truth));
    violations.extend(slots::check(&history.calls));
    violations.extend(guards(&history.guards, truth));
    let quotas = quota::check(&history.calls);
    violations.extend(quotas.violations);
    let mut ordered = BTreeMap::from([(Family::Quota, quotas.ordered)]);
    for ((family, name), mut projection) in project::by_place(&history.calls) {
        let operations = projection.operations();
        *ordered.entry(family).or_default() += operations.len();
        let contradictions = projection.contradictions.drain(..);
        violations.extend(contradictions.map(|it| Violation::new("S6", it)));
        if let Err(example) = leased::explain(operations) {
            let message = format!("{}: {example}", family.place(name));
            violations.push(Violation::new("S1, S4, S8", message));
        }
    }
    let (lost, losses) = resource::check(visits);
    violations.extend(lost);
    Checked {
        violations,
        calls: history.calls.len(),
        unknown: history.calls.iter().filter(|call| call.heard.is_unknown()).count(),
        compared,
        ordered,
        guards: history.guards.len(),
        moments: quotas.moments,
        balanced: quotas.balanced,
        losses,
    }
}

/// A guard of the SDK holds by a token that the log has granted there.
fn guards(held: &[Held], truth: &Truth) -> Vec<Violation> {
    let wrong = held.iter().filter_map(|held| {
        let granted = truth.granted_with(held.token);
        let message = || format!("a guard holds {held:?}, and the log has {granted:?}");
        (granted != Some(&held.place)).then(|| Violation::new("S5", message()))
    });
    wrong.collect()
}

/// How many answers of each kind there were: for the report.
pub fn answers(history: &History) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in &history.calls {
        let kind: String = match &call.heard {
            Heard::Problem(problem) => problem.code.to_string(),
            Heard::Nothing { sent: true } => "no answer".into(),
            Heard::Nothing { sent: false } => "not reached".into(),
            Heard::Granted(_) => "granted".into(),
            Heard::Elected(_) => "elected".into(),
            Heard::Held(_) | Heard::HeldAll(_) => "held".into(),
            Heard::Claimed(_) => "claimed".into(),
            Heard::Waiting(_) | Heard::Campaigning(_) => "waiting".into(),
            Heard::Proclaimed(_) => "proclaimed".into(),
            Heard::HandedOff(_) => "handed off".into(),
            Heard::JobPut(_) => "put".into(),
            Heard::Finished(_) => "finished".into(),
            Heard::Renewed(_) | Heard::RenewedMany(_) | Heard::HoldExtended(_) => "renewed".into(),
            Heard::Released(_) | Heard::HoldReleased(_) => "released".into(),
            Heard::Abandoned(_) => "abandoned".into(),
            Heard::Forced(_) => "forced".into(),
            Heard::Quota(heard) => heard.word().into(),
            Heard::Read(_) | Heard::Leader(_) | Heard::Shelf(_) | Heard::Ledger(_) => "read".into(),
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}
