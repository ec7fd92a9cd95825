//! Whether an answer says what the log has decided.

use super::is;
use crate::{history::Heard, truth::Decided};
use sereno_api::Problem;
use sereno_core::outcome::{AbandonedWas, Detail, Done, Grant, Holder, Outcome, Refusal, Renewed};
use sereno_schedule::instant;

/// # Errors
/// In words: it says something else.
pub(super) fn same(heard: &Heard, decided: &Decided) -> Result<(), String> {
    let outcome = &decided.outcome;
    let time = heard.decided().map(|(_, time)| time);
    is(time == Some(outcome.time.0), "another cluster time")?;
    match (heard, &outcome.result) {
        (Heard::Problem(problem), Err(refusal)) => refused(problem, refusal),
        (Heard::Problem(_), Ok(_)) | (_, Err(_)) => Err("another outcome".into()),
        (heard, Ok(done)) => told(heard, done, outcome),
    }
}

fn told(heard: &Heard, done: &Done, outcome: &Outcome) -> Result<(), String> {
    match (heard, done) {
        (Heard::Granted(it), Done::Granted(grant)) => {
            is(it.lease_id == grant.lease_id.to_hex(), "another lease")?;
            is_grant(heard, grant)?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::Renewed(it), Done::Renewed(renewed)) => {
            is_extended(it.fencing_token, it.expires_in_ms, renewed)
        }
        (Heard::RenewedMany(it), Done::RenewedMany(results)) => {
            let same = it.results.len() == results.len();
            let mut pairs = it.results.iter().zip(results);
            is(same && pairs.all(|(told, logged)| is_result(told, logged)), "other renewals")
        }
        (Heard::Released(it), Done::Released { already }) => {
            is(it.released == already.is_none(), "another release")
        }
        (Heard::Abandoned(it), Done::Abandoned { was }) => {
            is(format!("{:?}", it.was) == was_word(was), "another abandon")
        }
        (Heard::Forced(it), Done::ForceReleased { token }) => {
            is(it.fencing_token == token.0, "another forced release")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (
            Heard::Elected(_) | Heard::Proclaimed(_) | Heard::HandedOff(_),
            Done::Elected(_) | Done::Proclaimed { .. } | Done::HandedOff { .. },
        ) => told_of_election(heard, done, outcome),
        (
            Heard::Held(_) | Heard::HeldAll(_) | Heard::HoldExtended(_) | Heard::HoldReleased(_),
            Done::Held(_) | Done::HoldExtended(_) | Done::HoldReleased { .. },
        ) => told_of_hold(heard, done, outcome),
        (
            Heard::JobPut(_) | Heard::Claimed(_) | Heard::Finished(_),
            Done::JobPut { .. } | Done::RunClaimed(_) | Done::RunFinished(_),
        ) => told_of_job(heard, done, outcome),
        _ => Err("another outcome".into()),
    }
}

fn told_of_election(heard: &Heard, done: &Done, outcome: &Outcome) -> Result<(), String> {
    match (heard, done) {
        (Heard::Elected(it), Done::Elected(elected)) => {
            is(it.lease_id == elected.grant.lease_id.to_hex(), "another lease")?;
            is_grant(heard, &elected.grant)?;
            let same = it.value == elected.value.as_str() && it.version == elected.version;
            is(same, "another value")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::Proclaimed(it), Done::Proclaimed { version }) => {
            is(it.version == *version, "another version")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::HandedOff(it), Done::HandedOff { term }) => {
            is(it.term == term.0, "another term")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        _ => Err("another outcome".into()),
    }
}

fn told_of_hold(heard: &Heard, done: &Done, outcome: &Outcome) -> Result<(), String> {
    match (heard, done) {
        (Heard::Held(it), Done::Held(held)) => {
            is_grant(heard, &held.grant)?;
            let same = it.owner == held.owner.as_str() && it.yours == held.yours;
            is(same && it.begun == held.begun, "another hold")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::HeldAll(it), Done::Held(held)) => {
            is_grant(heard, &held.grant)?;
            let same = it.owner == held.owner.as_str() && it.yours == held.yours;
            is(same && it.begun == held.begun, "another hold")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::HoldExtended(it), Done::HoldExtended(extended)) => {
            is(it.begun == extended.begun, "begun or not")?;
            is_extended(it.fence, it.expires_in_ms, &extended.renewed)?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::HoldReleased(it), Done::HoldReleased { released }) => {
            is(it.released == *released, "another release")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        _ => Err("another outcome".into()),
    }
}

fn told_of_job(heard: &Heard, done: &Done, outcome: &Outcome) -> Result<(), String> {
    match (heard, done) {
        (Heard::JobPut(it), Done::JobPut { version }) => {
            is(it.version == *version, "another version")
        }
        (Heard::Claimed(it), Done::RunClaimed(run)) => {
            is(it.lease_id == run.grant.lease_id.to_hex(), "another lease")?;
            is_grant(heard, &run.grant)?;
            let same = instant::parse(&it.slot) == Some(run.slot.0) && it.attempt == run.attempt;
            is(same, "another attempt")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        (Heard::Finished(it), Done::RunFinished(run)) => {
            let same = instant::parse(&it.slot) == Some(run.slot.0) && it.attempt == run.attempt;
            let state = format!("{:?}", it.state) == format!("{:?}", run.state);
            is(same && state, "another end of a run")?;
            replays(it.replayed, it.original_revision, outcome)
        }
        _ => Err("another outcome".into()),
    }
}

/// The same names, tokens and deadline.
fn is_grant(heard: &Heard, grant: &Grant) -> Result<(), String> {
    let mut told = heard.tokens();
    let mut logged: Vec<_> =
        grant.holdings.iter().map(|(name, token)| (name.as_str(), token.0)).collect();
    told.sort_unstable();
    logged.sort_unstable();
    let same = told == logged && heard.expires_in_ms() == Some(grant.expires_in_ms);
    is(same, "another grant")
}

fn is_extended(token: u64, expires_in_ms: u64, renewed: &Renewed) -> Result<(), String> {
    let same = token == renewed.token.0 && expires_in_ms == renewed.expires_in_ms;
    is(same, "another renewal")
}

fn replays(replayed: bool, original: Option<u64>, outcome: &Outcome) -> Result<(), String> {
    let first = outcome.replayed.map(|revision| revision.0);
    is(original == first && replayed == first.is_some(), "news, or told before")
}

fn is_result(told: &sereno_api::RenewResult, logged: &Result<Renewed, Refusal>) -> bool {
    match (told.ok, logged) {
        (true, Ok(renewed)) => told.expires_in_ms == Some(renewed.expires_in_ms),
        (false, Err(refusal)) => {
            told.code.is_some_and(|code| format!("{code:?}") == format!("{:?}", refusal.code))
        }
        _ => false,
    }
}

/// Door and core name their variants alike.
fn was_word(was: &AbandonedWas) -> String {
    let word = format!("{was:?}");
    word.split('(').next().unwrap_or_default().to_owned()
}

fn refused(problem: &Problem, refusal: &Refusal) -> Result<(), String> {
    is(format!("{:?}", problem.code) == format!("{:?}", refusal.code), "another code")?;
    let told = problem.holder.as_ref();
    let is_holder = |told: Option<&sereno_api::Holder>, due: Option<&Holder>| {
        let told = told.map(|it| (it.owner.as_str(), it.fencing_token));
        told == due.map(|it| (it.owner.as_str(), it.token.0))
    };
    match &refusal.detail {
        // Of several, each that is in the way.
        Detail::Locked(due) if !problem.in_the_way.is_empty() => {
            let mut pairs = problem.in_the_way.iter().zip(due);
            let all = pairs.all(|(told, due)| {
                told.resource == due.resource.as_str()
                    && is_holder(told.holder.as_ref(), due.holder.as_ref())
            });
            is(all && problem.in_the_way.len() == due.len(), "other holders")
        }
        Detail::Locked(due) => {
            let due = due.first().and_then(|it| it.holder.as_ref());
            is(is_holder(told, due), "another holder")
        }
        Detail::Run { holder } => is(is_holder(told, holder.as_ref()), "another holder"),
        Detail::Ended { token, .. } | Detail::FinalDeadline { token, .. } => {
            is(problem.fencing_token == Some(token.0), "another token")
        }
        Detail::Version { current } => {
            is(problem.current_version == Some(*current), "another version")
        }
        _ => Ok(()),
    }
}
