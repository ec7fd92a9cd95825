//! Quotas, without the log: never above limit and burst by what clients were told (`bounds`), each reservation ends once
//! (`ends`), an order of all operations on a tree that is its root alone (`model`, `project`), and the books when all is
//! over (`books`).

mod books;
mod bounds;
mod ends;
mod known;
mod model;
mod project;

pub use books::Balanced;

use super::Violation;
use crate::{client::quotas::is_solo, history::Call};
use known::Known;

/// What was checked, and what is wrong.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) violations: Vec<Violation>,
    /// Operations put into an order.
    pub(super) ordered: usize,
    /// Moments at which what is surely used was compared with limits and answers.
    pub(super) moments: usize,
    /// Nodes whose books were compared in the end.
    pub(super) balanced: Balanced,
}

/// Runs all of them.
pub(super) fn check(calls: &[Call]) -> Checked {
    let known = Known::of(calls);
    let (mut violations, moments) = bounds::check(&known);
    violations.extend(ends::check(&known));
    let (unbalanced, balanced) = books::check(&known, calls);
    violations.extend(unbalanced);
    let mut ordered = 0;
    for ((quota, path), rules) in &known.rules {
        let Some(rules) = rules.first().filter(|_| is_solo(quota) && path.is_empty()) else {
            continue;
        };
        let operations = project::operations(&known, quota);
        ordered += operations.len();
        if let Err(example) = model::explain(rules.cap(), operations) {
            violations.push(Violation::new("S9, S10", format!("{quota}: {example}")));
        }
    }
    Checked { violations, ordered, moments, balanced }
}
