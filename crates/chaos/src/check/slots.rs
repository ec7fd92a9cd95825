//! What replicas are told of the slots of their jobs: one attempt after the other, no slot again once it is over, and no
//! more attempts than the job allows.

use super::Violation;
use crate::{
    clock::Micros,
    history::{Call, Heard, Op},
};
use sereno_api::{AbandonedWas, RunState};
use sereno_schedule::instant;
use std::collections::{BTreeMap, BTreeSet};

/// A job and a slot of it, in milliseconds since 1970.
type Slot<'a> = (&'a str, u64);

/// An attempt that was granted.
#[derive(Clone, Debug)]
struct Attempt<'a> {
    request: &'a str,
    attempt: u32,
    #[expect(dead_code, reason = "it is printed")]
    token: u64,
    /// When its claim was first sent.
    asked: Micros,
}

/// Somebody was told that a slot is over.
#[derive(Clone, Debug)]
struct Over {
    told: Micros,
    #[expect(dead_code, reason = "it is printed")]
    state: RunState,
    #[expect(dead_code, reason = "it is printed")]
    by: String,
}

/// All checks of this kind.
pub(super) fn check(calls: &[Call]) -> Vec<Violation> {
    let (attempts, over) = (attempts(calls), over(calls));
    let (given_back, retries) = (given_back(calls), retries(calls));
    let mut violations = Vec::new();
    for (slot, attempts) in &attempts {
        violations.extend(run_again(slot, attempts, over.get(slot)));
        violations.extend(counted(slot, attempts, &given_back));
        let allowed = retries.get(slot.0).map(|retries| retries + 1);
        for it in attempts.iter().filter(|it| allowed.is_some_and(|most| it.attempt > most)) {
            let message = format!("{slot:?} may be tried {allowed:?} times: {it:?}");
            violations.push(Violation::new("retries", message));
        }
    }
    violations
}

/// By slot, in the order of their tokens.
fn attempts(calls: &[Call]) -> BTreeMap<Slot<'_>, Vec<Attempt<'_>>> {
    let mut asked = BTreeMap::new();
    let mut known: BTreeMap<Slot<'_>, BTreeMap<u64, Attempt<'_>>> = BTreeMap::new();
    for call in calls {
        let Op::Claim { resource, slot, request, .. } = &call.op else { continue };
        let asked = *asked.entry(request.as_str()).or_insert(call.start);
        if let Heard::Claimed(it) = &call.heard {
            let (attempt, token) = (it.attempt, it.fencing_token);
            let new = Attempt { request, attempt, token, asked };
            known.entry((resource, *slot)).or_default().entry(token).or_insert(new);
        }
    }
    known.into_iter().map(|(slot, by_token)| (slot, by_token.into_values().collect())).collect()
}

fn is_over(state: RunState) -> bool {
    matches!(state, RunState::Succeeded | RunState::Failed | RunState::Lost | RunState::Skipped)
}

/// The first answer to say that a slot is over: to whoever finished it, or to a read.
fn over(calls: &[Call]) -> BTreeMap<Slot<'_>, Over> {
    let mut over: BTreeMap<Slot<'_>, Over> = BTreeMap::new();
    for call in calls {
        let Some(told) = call.end else { continue };
        let told_of: Vec<(&str, &str, RunState)> = match &call.heard {
            Heard::Finished(it) => vec![(&it.job, &it.slot, it.state)],
            Heard::Ledger(job) => {
                job.runs.iter().map(|run| (&*job.job, &*run.slot, run.state)).collect()
            }
            _ => continue,
        };
        for (job, slot, state) in told_of.into_iter().filter(|(.., state)| is_over(*state)) {
            let Some(slot) = instant::parse(slot) else { continue };
            let first = over.get(&(job, slot)).is_none_or(|known| told < known.told);
            if first {
                over.insert((job, slot), Over { told, state, by: call.name.clone() });
            }
        }
    }
    over
}

/// Claims that were abandoned, for all that anybody knows: their attempt may be counted again.
fn given_back(calls: &[Call]) -> BTreeSet<&str> {
    let abandons = calls.iter().filter_map(|call| match &call.op {
        Op::Abandon { request, .. } => Some((request.as_str(), &call.heard)),
        _ => None,
    });
    let may_be = |heard: &Heard| match heard {
        Heard::Abandoned(it) => it.was == AbandonedWas::Granted,
        heard => heard.is_unknown(),
    };
    abandons.filter(|(_, heard)| may_be(heard)).map(|(request, _)| request).collect()
}

fn retries(calls: &[Call]) -> BTreeMap<&str, u32> {
    let put = calls.iter().filter_map(|call| match &call.op {
        Op::PutJob { resource, retries, .. } => Some((resource.as_str(), *retries)),
        _ => None,
    });
    put.collect()
}

fn run_again(slot: &Slot<'_>, attempts: &[Attempt<'_>], over: Option<&Over>) -> Vec<Violation> {
    let Some(over) = over else { return Vec::new() };
    let late = attempts.iter().filter(|it| it.asked > over.told);
    let message = |it: &Attempt<'_>| format!("{slot:?} was over ({over:?}) and runs again: {it:?}");
    late.map(|it| Violation::new("one run of a slot", message(it))).collect()
}

/// Each attempt has a number of its own, and they rise with the tokens.
fn counted(
    slot: &Slot<'_>,
    attempts: &[Attempt<'_>],
    given_back: &BTreeSet<&str>,
) -> Vec<Violation> {
    let pairs = attempts.windows(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
    let wrong = pairs.filter(|(before, after)| match given_back.contains(before.request) {
        true => after.attempt < before.attempt,
        false => after.attempt <= before.attempt,
    });
    let message = |(before, after)| format!("{slot:?}: {after:?} after {before:?}");
    wrong.map(|it| Violation::new("one run of a slot", message(it))).collect()
}
