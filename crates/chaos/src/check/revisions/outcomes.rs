//! Whether an answer says what the log has decided.

use super::{
    is, quotas,
    refusals::{is_result, refused},
};
use crate::{
    client::door::NAMESPACE,
    history::{Family, Heard},
    truth::Decided,
};
use sereno_core::outcome::{AbandonedWas, Done, Grant, NotReleased, Outcome, Renewed};
use sereno_schedule::instant;

/// # Errors
/// In words: it says something else.
pub(super) fn same(heard: &Heard, decided: &Decided) -> Result<(), String> {
    let outcome = &decided.outcome;
    let time = heard.decided().map(|(_, time)| time);
    is(time == Some(outcome.time.0), "another cluster time")?;
    match (heard, &outcome.result) {
        (Heard::Problem(problem), Err(refusal)) => refused(problem, refusal, outcome),
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
            is_extended(it.fencing_token, it.expires_in_ms, renewed)?;
            let same = (it.final_deadline_in_ms, it.clipped);
            is(same == (renewed.final_deadline_in_ms, renewed.clipped), "another final deadline")
        }
        (Heard::RenewedMany(it), Done::RenewedMany(results)) => {
            let same = it.results.len() == results.len();
            let mut pairs = it.results.iter().zip(results);
            is(same && pairs.all(|(told, logged)| is_result(told, logged)), "other renewals")
        }
        (Heard::Released(it), Done::Released { already }) => {
            let why = already.map(|why| match why {
                NotReleased::Ended(end) => end.as_str(),
                NotReleased::Unknown => "unknown",
            });
            let reason = it.reason.map(|reason| reason.as_str());
            is(it.released == already.is_none() && reason == why, "another release")
        }
        (Heard::Abandoned(it), Done::Abandoned { was }) => {
            let reason = it.reason.map(|reason| reason.as_str().to_owned());
            let code = it.code.map(|code| format!("{code:?}"));
            let due = match was {
                AbandonedWas::Ended(end) => (Some(end.as_str().to_owned()), None),
                AbandonedWas::Refused(code) => (None, Some(format!("{code:?}"))),
                _ => (None, None),
            };
            let same = format!("{:?}", it.was) == was_word(was) && (reason, code) == due;
            is(same, "another abandon")
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
        (Heard::Quota(it), Done::Quota(done)) => quotas::told(it, done, outcome),
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
            let renewed = &extended.renewed;
            is_extended(it.fence, it.expires_in_ms, renewed)?;
            let same = (it.final_deadline_in_ms, it.clipped);
            is(same == (renewed.final_deadline_in_ms, renewed.clipped), "another final deadline")?;
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

/// What is told of a grant besides names, tokens and deadline: its final deadline, who checks, under which keys.
struct Terms<'a> {
    family: Family,
    final_deadline_in_ms: Option<u64>,
    fencing: Option<sereno_api::Fencing>,
    keys: Vec<(&'a str, &'a str)>,
}

fn terms(heard: &Heard) -> Option<Terms<'_>> {
    let (family, final_deadline_in_ms, fencing, keys) = match heard {
        Heard::Granted(it) => {
            let keys = vec![(&*it.resource, &*it.fence_key)];
            (Family::Lock, it.final_deadline_in_ms, Some(it.fencing), keys)
        }
        Heard::Elected(it) => {
            let keys = vec![(&*it.election, &*it.fence_key)];
            (Family::Election, it.final_deadline_in_ms, Some(it.fencing), keys)
        }
        Heard::Held(it) => {
            (Family::Hold, it.final_deadline_in_ms, None, vec![(&*it.resource, &*it.fence_key)])
        }
        Heard::HeldAll(it) => {
            let keys = it.holds.iter().map(|it| (&*it.resource, &*it.fence_key)).collect();
            (Family::Hold, it.final_deadline_in_ms, None, keys)
        }
        Heard::Claimed(it) => {
            (Family::Job, it.final_deadline_in_ms, None, vec![(&*it.job, &*it.fence_key)])
        }
        _ => return None,
    };
    Some(Terms { family, final_deadline_in_ms, fencing, keys })
}

fn are_terms(heard: &Heard, grant: &Grant) -> Result<(), String> {
    let terms = terms(heard).ok_or("no grant")?;
    let deadline = grant.final_deadline_in_ms;
    is(terms.final_deadline_in_ms == deadline, "another final deadline")?;
    let fencing = terms.fencing.map(|it| format!("{it:?}"));
    let due = format!("{:?}", grant.fencing);
    is(fencing.is_none_or(|fencing| fencing == due), "another who checks tokens")?;
    let is_key =
        |(name, key): &(&str, &str)| *key == format!("{NAMESPACE}/{}", terms.family.place(name));
    is(terms.keys.iter().all(is_key), "another fence key")
}

/// The same names, tokens, deadline and terms.
fn is_grant(heard: &Heard, grant: &Grant) -> Result<(), String> {
    let mut told = heard.tokens();
    let mut logged: Vec<_> =
        grant.holdings.iter().map(|(name, token)| (name.as_str(), token.0)).collect();
    told.sort_unstable();
    logged.sort_unstable();
    let same = told == logged && heard.expires_in_ms() == Some(grant.expires_in_ms);
    is(same, "another grant")?;
    are_terms(heard, grant)
}

fn is_extended(token: u64, expires_in_ms: u64, renewed: &Renewed) -> Result<(), String> {
    let same = token == renewed.token.0 && expires_in_ms == renewed.expires_in_ms;
    is(same, "another renewal")
}

pub(super) fn replays(
    replayed: bool,
    original: Option<u64>,
    outcome: &Outcome,
) -> Result<(), String> {
    let first = outcome.replayed.map(|revision| revision.0);
    is(original == first && replayed == first.is_some(), "news, or told before")
}

/// Door and core name their variants alike.
fn was_word(was: &AbandonedWas) -> String {
    let word = format!("{was:?}");
    word.split('(').next().unwrap_or_default().to_owned()
}
