//! From refusals of the log, and from calls that the log did not decide, to problem documents.

use super::{problem::Refused, quota::refused as quota};
use crate::{metrics::Kind, wire};
use sereno_api::{ErrorCode, Holder, InTheWay, Millis, Outcome as Effect, Reason, RetryWith};
use sereno_core::outcome::{self, Code, Detail, Missing, Outcome, Refusal};
use sereno_node::handle::Undecided;

/// The problem that tells of a refusal, which `outcome` carried.
pub(super) fn refused(kind: Kind, refusal: Refusal, outcome: &Outcome) -> Refused {
    let single = !matches!(kind, Kind::AcquireAll | Kind::HoldAll);
    let problem =
        Refused::new(wire::code(refusal.code), sentence(kind, &refusal)).with(|problem| {
            problem.outcome = effect(kind, refusal.code);
            problem.retry_with = retry_with(kind, refusal.code);
            problem.retry_after_ms = refusal.retry_after_ms;
            problem.revision = Some(outcome.revision.0);
            problem.cluster_time_ms = Some(outcome.time.0);
            problem.original_revision = outcome.replayed.map(|first| first.0);
            problem.replayed = outcome.replayed.map(|_| true);
        });
    with_detail(problem, refusal.detail, single)
}

/// A spent acquire had its effect: it was granted once.
pub(super) fn effect(kind: Kind, code: Code) -> Effect {
    match code {
        Code::LeaseEnded | Code::ReservationEnded if kind.asks() => Effect::Applied,
        _ => Effect::NotApplied,
    }
}

pub(super) fn retry_with(kind: Kind, code: Code) -> Option<RetryWith> {
    let has_request_id = kind.has_request_id();
    let anew = if has_request_id { RetryWith::NewRequestId } else { RetryWith::SameRequestId };
    match code {
        Code::Locked | Code::WaitTimeout | Code::QueueFull | Code::LimitReached => Some(anew),
        Code::Taken | Code::RunClaimed | Code::RunPaused | Code::QuotaExhausted => Some(anew),
        Code::Abandoned | Code::LeaseEnded | Code::RequestIdReused if has_request_id => Some(anew),
        Code::ReservationEnded if kind.asks() => Some(anew),
        Code::Overloaded | Code::Unavailable => Some(RetryWith::SameRequestId),
        Code::Abandoned
        | Code::LeaseEnded
        | Code::RequestIdReused
        | Code::InvalidArgument
        | Code::FencingRequired
        | Code::NotFound
        | Code::NotHolder
        | Code::MaxHoldReached
        | Code::VersionConflict
        | Code::RunFinished
        | Code::RetriesExhausted
        | Code::ReservationEnded
        | Code::ExceedsReservation
        | Code::ExpiredNoCapacity
        | Code::StaleReport
        | Code::WrongRegion => None,
    }
}

fn with_detail(refused: Refused, detail: Detail, single: bool) -> Refused {
    refused.with(|problem| match detail {
        Detail::None | Detail::Paused | Detail::BornAt => {}
        Detail::Missing(_) | Detail::Level { .. } => {}
        Detail::Home { home } => problem.home = Some(home.to_string()),
        Detail::Exhausted(of) => quota::exhausted(problem, &of),
        Detail::Excess(of) => quota::excess(problem, &of),
        Detail::Report { epoch, age_ms } => quota::stale(problem, epoch, age_ms),
        Detail::Quarantined { fence } => {
            problem.reason = Some(Reason::Quarantined);
            problem.fencing_token = Some(fence.0);
        }
        Detail::Run { holder: who } => problem.holder = who.as_ref().map(holder),
        Detail::Invalid(invalid) => problem.field = Some(invalid.field),
        Detail::Locked(mut in_the_way) => match in_the_way.pop() {
            Some(one) if single => {
                problem.holder = one.holder.as_ref().map(holder);
                problem.lock_delay_ms = some_unless_zero(one.lock_delay_ms);
                problem.waiters = Some(one.waiters);
            }
            last => {
                problem.in_the_way = in_the_way.into_iter().chain(last).map(in_the_way_of).collect()
            }
        },
        Detail::Ended { end, token } => {
            problem.reason = Some(wire::end(end));
            problem.fencing_token = Some(token.0);
        }
        Detail::Wait(why) => problem.reason = Some(wire::wait_end(why)),
        Detail::FinalDeadline { in_ms, token } => {
            problem.final_deadline_in_ms = Some(in_ms);
            problem.fencing_token = Some(token.0);
        }
        Detail::Version { current } => problem.current_version = Some(current),
        Detail::Limit { limit, max, sweep_pending } => {
            problem.limit = Some(limit);
            problem.max = Some(max);
            problem.sweep_pending = Some(sweep_pending);
        }
    })
}

fn in_the_way_of(one: outcome::InTheWay) -> InTheWay {
    InTheWay {
        resource: one.resource.to_string(),
        holder: one.holder.as_ref().map(holder),
        lock_delay_ms: some_unless_zero(one.lock_delay_ms),
        waiters: one.waiters,
    }
}

fn holder(holder: &outcome::Holder) -> Holder {
    Holder {
        owner: holder.owner.to_string(),
        fencing_token: holder.token.0,
        held_for_ms: holder.held_for_ms,
        expires_in_ms: holder.expires_in_ms,
    }
}

fn some_unless_zero(ms: u64) -> Option<u64> {
    (ms > 0).then_some(ms)
}

/// What went wrong this time, for people.
fn sentence(kind: Kind, refusal: &Refusal) -> String {
    match (&refusal.detail, refusal.code) {
        (Detail::Invalid(invalid), _) => {
            format!("{}: {}", invalid.field, in_units(&invalid.field, &invalid.rule))
        }
        (Detail::Locked(in_the_way), _) => match in_the_way.as_slice() {
            [one] => held_by(one),
            many => format!("{} resources are not free", many.len()),
        },
        (Detail::Ended { end, token }, Code::ReservationEnded) => {
            quota::ended_sentence(*end, *token)
        }
        (Detail::Ended { end, token }, _) => {
            format!("the lease with token {token} has ended: {}", end.as_str())
        }
        (Detail::Wait(why), _) => match wire::wait_end(*why) {
            Reason::TimedOut => "the wait timed out".into(),
            Reason::Restored => {
                "the wait was cleared when the service was restored from a backup".into()
            }
            Reason::Replaced => {
                "another process with the same candidate name has taken the place in the queue"
                    .into()
            }
            Reason::HomeMoved => {
                "another region has become the namespace's home, and nobody waits here any more"
                    .into()
            }
            _ => "nobody asked for the wait any more, so it was removed".into(),
        },
        // The refusal does not tell which of the two set it.
        (Detail::FinalDeadline { in_ms, .. }, _) if kind == Kind::RenewHold => format!(
            "the deadline is final, for payment has begun or maxHold is used up: the hold ends in {in_ms} ms and cannot \
             be renewed"
        ),
        (Detail::FinalDeadline { in_ms, .. }, _) if kind == Kind::Extend => {
            format!("maxLifetime is used up: the reservation ends in {in_ms} ms")
        }
        (Detail::FinalDeadline { in_ms, .. }, _) => {
            format!("maxHold is used up: the ownership ends in {in_ms} ms and cannot be renewed")
        }
        (Detail::Version { current: 0 }, _) => {
            "it does not exist yet: expectedVersion must be 0".into()
        }
        (Detail::Version { current }, _) => format!("version {current} is in force"),
        (Detail::Limit { limit, max, .. }, _) if limit == "holdCooldown" => {
            format!("this owner held it less than {} ago", Millis(*max))
        }
        (Detail::Limit { limit, max, .. }, _) => {
            format!("{limit}: {max} are in use, and that is the limit")
        }
        (Detail::Paused, _) => {
            let left_ms = refusal.retry_after_ms.unwrap_or_default();
            format!("granting is paused after a restore from a backup, for {left_ms} ms more")
        }
        (Detail::BornAt, _) => {
            "bornAt lies over 30 s of cluster time in the past, or ahead of the log".into()
        }
        (Detail::Missing(Missing::Candidate), _) => {
            "no candidate of that name waits for the election".into()
        }
        (Detail::Missing(Missing::Job), _) => "there is no such job: put it first".into(),
        (Detail::Missing(Missing::Reservation), _) => {
            "no such reservation is known, or not any more".into()
        }
        (Detail::Missing(Missing::Node), _) => "there is no such node: put its limit first".into(),
        (Detail::Missing(Missing::Share), _) => "no such share is known, or not any more".into(),
        (Detail::Home { home }, _) => format!("region {home} decides about it: ask there"),
        (Detail::Exhausted(of), code) => quota::exhausted_sentence(code, of),
        (Detail::Quarantined { fence }, _) => {
            format!("the reservation with fence {fence} waits for an operator to settle it")
        }
        (Detail::Excess(of), _) => quota::excess_sentence(of),
        (Detail::Report { epoch, age_ms }, _) => quota::stale_sentence(kind, *epoch, *age_ms),
        (Detail::Level { needed }, _) => {
            format!("this belongs to level {needed}, which is not in force yet")
        }
        (Detail::Run { holder: Some(holder) }, _) => {
            let (owner, left_ms) = (&holder.owner, holder.expires_in_ms);
            format!(
                "an attempt of {owner:?} is under way, for at most {left_ms} ms without a renewal"
            )
        }
        (Detail::Run { holder: None }, _) => "the job is in its lock delay".into(),
        (Detail::None, code) => plain_sentence(kind, code),
    }
}

/// Fields that callers write as durations.
const DURATIONS: [&str; 15] = [
    "ttl",
    "maxLifetime",
    "inFlightTtl",
    "patience",
    "maxRun",
    "holdCooldown",
    "leaseTtl",
    "waitTimeout",
    "maxHold",
    "minTtl",
    "defaultTtl",
    "maxTtl",
    "lockDelay",
    "replyMemory.refusals",
    "replyMemory.endings",
];

/// The core counts in milliseconds, and callers write `30s`: its rule for a range, in their words.
fn in_units(field: &str, rule: &str) -> String {
    let rule = rule.replace(" (durations in ms)", "");
    if !DURATIONS.contains(&field) || !rule.starts_with("must be ") {
        return rule;
    }
    let spoken = rule.split(' ').map(|word| {
        let digits = word.trim_end_matches(',');
        match digits.parse() {
            Ok(0) => format!("0s{}", &word[digits.len()..]),
            Ok(ms) => format!("{}{}", Millis(ms), &word[digits.len()..]),
            Err(_) => word.to_owned(),
        }
    });
    spoken.collect::<Vec<_>>().join(" ")
}

fn plain_sentence(kind: Kind, code: Code) -> String {
    match code {
        Code::FencingRequired => "the namespace requires fencing: enforced".into(),
        Code::NotFound => "there is no such namespace".into(),
        Code::NotHolder if matches!(kind, Kind::RenewHold | Kind::BeginHold) => {
            "the owner has no hold on it, or has it by another fence".into()
        }
        Code::NotHolder if kind == Kind::ReleaseHold => {
            "the owner has it by another fence, or payment has begun and the fence, which is needed then, was not named".into()
        }
        Code::NotHolder if matches!(kind, Kind::Hold | Kind::HoldAll) => {
            "replaces: the owner has one of them by another fence, or its payment has begun and its fence, which is needed \
             then, was not named"
                .into()
        }
        Code::NotHolder if kind == Kind::ForceRelease => {
            "nobody holds the resource with that token".into()
        }
        Code::NotHolder if kind.is_quota() => "the reservation has another fence".into(),
        Code::NotHolder => "no such lease on this resource is known".into(),
        Code::Abandoned => "this requestId was abandoned, and is not granted".into(),
        Code::RequestIdReused => "this requestId was used before, with other content".into(),
        other => wire::code(other).title().into(),
    }
}

fn held_by(one: &outcome::InTheWay) -> String {
    let resource = &one.resource;
    match &one.holder {
        Some(holder) => {
            format!(
                "{resource} is held by {:?} for at most {} ms more",
                holder.owner, holder.expires_in_ms
            )
        }
        None => format!("{resource} is in its lock delay for {} ms more", one.lock_delay_ms),
    }
}

/// The problem that tells why the log did not decide. `time`: the cluster time that this node knows.
pub(super) fn undecided(undecided: Undecided) -> Refused {
    match undecided {
        Undecided::Overloaded { retry_after_ms } => retryable(
            ErrorCode::Overloaded,
            "more calls wait than this service takes",
            retry_after_ms,
        ),
        Undecided::RateLimited { namespace, requests_per_second, retry_after_ms } => {
            let detail =
                format!("namespace {namespace} may send {requests_per_second} requests a second");
            retryable(ErrorCode::LimitReached, detail, retry_after_ms).with(|problem| {
                problem.limit = Some("requestsPerSecond".into());
                problem.max = Some(requests_per_second);
            })
        }
        Undecided::Unavailable { reason, retry_after_ms } => {
            Refused::unavailable(reason, retry_after_ms)
        }
        Undecided::Unknown => {
            let detail =
                "it was sent to the log, and no answer came in time: it may have been applied";
            let refused = Refused::new(ErrorCode::UnknownOutcome, detail);
            refused.with(|problem| {
                problem.outcome = Effect::Unknown;
                problem.retry_with = Some(RetryWith::SameRequestId);
            })
        }
        Undecided::HeldCallEnded => {
            let detail =
                "the call was held for a wait and ended by this node; the wait itself goes on";
            Refused::unavailable(detail, 0).with(|problem| problem.outcome = Effect::Unknown)
        }
        Undecided::Invalid(invalid) => {
            Refused::invalid(&invalid.field, in_units(&invalid.field, &invalid.rule))
        }
        Undecided::TooEarly { ahead_ms } => {
            let detail = format!("the slot lies {ahead_ms} ms ahead of the leader's clock");
            let after_ms = ahead_ms.saturating_sub(sereno_core::limits::SLOT_AHEAD_MS_MAX);
            retryable(ErrorCode::TooEarly, detail, after_ms)
        }
        Undecided::TooLarge { bytes } => {
            let max = sereno_core::limits::COMMAND_BYTES_MAX;
            let detail =
                format!("the command has {bytes} bytes in the log's form; {max} is the most");
            Refused::new(ErrorCode::TooLarge, detail)
        }
    }
}

fn retryable(code: ErrorCode, detail: impl Into<String>, retry_after_ms: u64) -> Refused {
    Refused::new(code, detail).with(|problem| {
        problem.retry_with = Some(RetryWith::SameRequestId);
        problem.retry_after_ms = Some(retry_after_ms);
    })
}

/// A read of something that is not there.
pub(super) fn no_namespace(name: &str) -> Refused {
    Refused::new(ErrorCode::NotFound, format!("there is no namespace {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_durations_are_told_as_durations_and_counts_as_numbers() {
        for (field, rule, told) in [
            (
                "leaseTtl",
                "must be 1000 to 3600000 (durations in ms), is 500",
                "must be 1s to 1h, is 500ms",
            ),
            (
                "lockDelay",
                "must be 0 to 60000 (durations in ms), is 61000",
                "must be 0s to 1m, is 61s",
            ),
            ("maxLeases", "must be 0 to 10 (durations in ms), is 11", "must be 0 to 10, is 11"),
            ("minTtl", "must not be above maxTtl", "must not be above maxTtl"),
        ] {
            assert_eq!(in_units(field, rule), told);
        }
    }

    /// The words of a refusal with this detail.
    fn said(kind: Kind, code: Code, detail: Detail) -> String {
        sentence(kind, &Refusal::new(code).with(detail).retry_after(61_000))
    }

    #[test]
    fn a_wait_that_another_process_took_over_says_so() {
        let said = |why| said(Kind::Campaign, Code::WaitTimeout, Detail::Wait(why));
        assert!(said(outcome::WaitEnd::Replaced).contains("the same candidate name"));
        assert!(said(outcome::WaitEnd::Deserted).contains("nobody asked for the wait"));
    }

    #[test]
    fn a_pause_of_granting_says_how_long_it_lasts() {
        let said = said(Kind::Acquire, Code::Unavailable, Detail::Paused);
        assert!(said.ends_with("for 61000 ms more"), "{said}");
    }

    #[test]
    fn of_a_hold_that_may_have_begun_the_payment_is_spoken_of() {
        let detail = Detail::FinalDeadline { in_ms: 5, token: sereno_core::ids::Token(7) };
        let renewed = said(Kind::RenewHold, Code::MaxHoldReached, detail.clone());
        assert!(renewed.contains("payment has begun"), "{renewed}");
        assert!(!said(Kind::Renew, Code::MaxHoldReached, detail).contains("payment"));
        for kind in [Kind::ReleaseHold, Kind::Hold, Kind::HoldAll] {
            let told = said(kind, Code::NotHolder, Detail::None);
            assert!(told.contains("payment has begun") && told.contains("fence"), "{told}");
        }
    }
}
