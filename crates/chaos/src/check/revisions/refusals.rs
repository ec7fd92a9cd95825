//! Whether a problem says what the log has refused: its code, and every figure that belongs to it.

use super::{is, outcomes::replays, quotas};
use sereno_api::{Problem, Reason, RenewResult};
use sereno_core::outcome::{
    Code, Detail, End, Holder, InTheWay, Outcome, Refusal, Renewed, WaitEnd,
};

/// # Errors
/// In words: it says something else.
pub(super) fn refused(
    problem: &Problem,
    refusal: &Refusal,
    outcome: &Outcome,
) -> Result<(), String> {
    is_code(problem.code, refusal.code)?;
    is(problem.retry_after_ms == refusal.retry_after_ms, "another time to try again")?;
    replays(problem.replayed == Some(true), problem.original_revision, outcome)?;
    is(problem.sweep_pending == sweep_pending(&refusal.detail), "a sweep pending or not")?;
    match &refusal.detail {
        // Of several, each that is in the way.
        Detail::Locked(due) if !problem.in_the_way.is_empty() => in_the_way(problem, due),
        Detail::Locked(due) => match due.first() {
            Some(due) => {
                is_holder(problem.holder.as_ref(), due.holder.as_ref())?;
                let told = (problem.lock_delay_ms.unwrap_or(0), problem.waiters);
                is(told == (due.lock_delay_ms, Some(due.waiters)), "another delay or queue")
            }
            // A repeat tells who is in the way now: nobody any more.
            None => is_holder(problem.holder.as_ref(), None),
        },
        Detail::Run { holder } => is_holder(problem.holder.as_ref(), holder.as_ref()),
        Detail::Ended { end, token } => {
            is(problem.fencing_token == Some(token.0), "another token")?;
            is(reason(problem) == Some(end.as_str()), "another end")
        }
        Detail::Wait(why) => is(reason(problem) == Some(wait_word(*why)), "another end of a wait"),
        Detail::FinalDeadline { in_ms, token } => {
            is(problem.fencing_token == Some(token.0), "another token")?;
            is(problem.final_deadline_in_ms == Some(*in_ms), "another final deadline")
        }
        Detail::Version { current } => {
            is(problem.current_version == Some(*current), "another version")
        }
        Detail::Limit { limit, max, .. } => {
            let same = problem.limit.as_deref() == Some(limit) && problem.max == Some(*max);
            is(same, "another limit")
        }
        Detail::Invalid(due) => is(problem.field.as_deref() == Some(&due.field), "another field"),
        Detail::Exhausted(due) => quotas::exhausted(problem, due),
        Detail::Excess(due) => quotas::exceeds(problem, due),
        Detail::Quarantined { fence } => {
            is(problem.fencing_token == Some(fence.0), "another token")?;
            is(problem.reason == Some(Reason::Quarantined), "another end")
        }
        Detail::Home { home } => {
            is(problem.home.as_deref() == Some(home.as_str()), "another region")
        }
        // No client reports.
        Detail::Report { .. } => Err("a report was refused, and nobody reports".into()),
        Detail::None | Detail::Paused | Detail::BornAt => Ok(()),
        Detail::Missing(_) | Detail::Level { .. } => Ok(()),
    }
}

/// Door and core name codes alike.
fn is_code(told: sereno_api::ErrorCode, due: Code) -> Result<(), String> {
    is(format!("{told:?}") == format!("{due:?}"), "another code")
}

fn reason(problem: &Problem) -> Option<&'static str> {
    problem.reason.map(|reason| reason.as_str())
}

fn wait_word(why: WaitEnd) -> &'static str {
    match why {
        WaitEnd::TimedOut => "timedOut",
        // Nobody asked for it: as if it had been abandoned.
        WaitEnd::Deserted => "abandoned",
        WaitEnd::Restored => "restored",
        WaitEnd::HomeMoved => "homeMoved",
        WaitEnd::Replaced => "replaced",
    }
}

fn sweep_pending(detail: &Detail) -> Option<bool> {
    match detail {
        Detail::Limit { sweep_pending, .. } => Some(*sweep_pending),
        Detail::Exhausted(of) => Some(of.sweep_pending),
        _ => None,
    }
}

fn is_holder(told: Option<&sereno_api::Holder>, due: Option<&Holder>) -> Result<(), String> {
    let told = told.map(|it| (&*it.owner, it.fencing_token, it.held_for_ms, it.expires_in_ms));
    let due = due.map(|it| (it.owner.as_str(), it.token.0, it.held_for_ms, it.expires_in_ms));
    is(told == due, "another holder")
}

fn in_the_way(problem: &Problem, due: &[InTheWay]) -> Result<(), String> {
    is(problem.in_the_way.len() == due.len(), "other holders")?;
    for (told, due) in problem.in_the_way.iter().zip(due) {
        is_holder(told.holder.as_ref(), due.holder.as_ref())?;
        let same = told.resource == due.resource.as_str()
            && told.lock_delay_ms.unwrap_or(0) == due.lock_delay_ms
            && told.waiters == due.waiters;
        is(same, "another thing in the way")?;
    }
    Ok(())
}

/// One of several renewals.
pub(super) fn is_result(told: &RenewResult, logged: &Result<Renewed, Refusal>) -> bool {
    match logged {
        Ok(due) => {
            let deadlines = (told.expires_in_ms, told.final_deadline_in_ms, told.clipped);
            told.ok
                && told.fencing_token == Some(due.token.0)
                && deadlines == (Some(due.expires_in_ms), due.final_deadline_in_ms, due.clipped)
        }
        Err(refusal) => {
            let same_code = told.code.is_some_and(|code| is_code(code, refusal.code).is_ok());
            let reason = told.reason.map(|reason| reason.as_str());
            let due: (Option<End>, _, _) = match refusal.detail {
                Detail::Ended { end, token } => (Some(end), Some(token.0), None),
                Detail::FinalDeadline { in_ms, token } => (None, Some(token.0), Some(in_ms)),
                _ => (None, None, None),
            };
            let figures = (told.fencing_token, told.final_deadline_in_ms);
            !told.ok && same_code && reason == due.0.map(End::as_str) && figures == (due.1, due.2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::ErrorCode;
    use sereno_core::{
        ids::{ClusterTime, Revision, Token},
        names::{Invalid, Owner, RegionName, ResourceName},
    };

    fn check(problem: &Problem, refusal: &Refusal) -> bool {
        let (revision, time, replayed) = (Revision(7), ClusterTime(9), None);
        let outcome = Outcome { revision, time, replayed, result: Err(refusal.clone()) };
        refused(problem, refusal, &outcome).is_ok()
    }

    fn in_the_way(resource: &str, owner: &str) -> InTheWay {
        let (owner, token) = (Owner::new(owner).unwrap(), Token(5));
        let holder = Some(Holder { owner, token, held_for_ms: 3, expires_in_ms: 4 });
        let resource = ResourceName::new(resource).unwrap();
        InTheWay { resource, holder, lock_delay_ms: 0, waiters: 2 }
    }

    fn told_holder(owner: &str) -> sereno_api::Holder {
        let owner = owner.to_owned();
        sereno_api::Holder { owner, fencing_token: 5, held_for_ms: 3, expires_in_ms: 4 }
    }

    type Told = fn(&mut Problem);

    fn all<const N: usize>(plants: [Told; N]) -> Vec<Told> {
        plants.to_vec()
    }

    /// Of each kind of refusal: what is told, and everything that could be told wrong.
    #[test]
    fn every_figure_of_a_refusal_counts() {
        let run_holder = in_the_way("a", "anna").holder;
        let cases: [(ErrorCode, Code, Detail, Told, Vec<Told>); 12] = [
            (
                ErrorCode::Locked,
                Code::Locked,
                Detail::Locked(Vec::new()),
                |_| {},
                all([|it| it.holder = Some(told_holder("anna"))]),
            ),
            (
                ErrorCode::Locked,
                Code::Locked,
                Detail::Locked(vec![in_the_way("a", "anna")]),
                |it| {
                    it.holder = Some(told_holder("anna"));
                    it.waiters = Some(2);
                },
                all([
                    |it| it.holder = Some(told_holder("bert")),
                    |it| it.holder = None,
                    |it| it.waiters = Some(3),
                    |it| it.lock_delay_ms = Some(1),
                ]),
            ),
            (
                ErrorCode::Taken,
                Code::Taken,
                Detail::Locked(vec![in_the_way("a", "anna"), in_the_way("b", "bert")]),
                |it| {
                    let one = |(resource, owner): (&str, &str)| sereno_api::InTheWay {
                        resource: resource.into(),
                        holder: Some(told_holder(owner)),
                        lock_delay_ms: None,
                        waiters: 2,
                    };
                    it.in_the_way = [("a", "anna"), ("b", "bert")].map(one).to_vec();
                },
                all([
                    |it| drop(it.in_the_way.pop()),
                    |it| it.in_the_way.swap(0, 1),
                    |it| it.in_the_way[1].waiters = 0,
                ]),
            ),
            (
                ErrorCode::RunClaimed,
                Code::RunClaimed,
                Detail::Run { holder: run_holder },
                |it| it.holder = Some(told_holder("anna")),
                all([|it| it.holder = None]),
            ),
            (
                ErrorCode::LeaseEnded,
                Code::LeaseEnded,
                Detail::Ended { end: End::Expired, token: Token(5) },
                |it| (it.reason, it.fencing_token) = (Some(Reason::Expired), Some(5)),
                all([|it| it.reason = Some(Reason::Forced), |it| it.fencing_token = Some(6)]),
            ),
            (
                ErrorCode::WaitTimeout,
                Code::WaitTimeout,
                Detail::Wait(WaitEnd::Deserted),
                |it| it.reason = Some(Reason::Abandoned),
                all([|it| it.reason = Some(Reason::TimedOut), |it| it.reason = None]),
            ),
            (
                ErrorCode::MaxHoldReached,
                Code::MaxHoldReached,
                Detail::FinalDeadline { in_ms: 8, token: Token(5) },
                |it| (it.final_deadline_in_ms, it.fencing_token) = (Some(8), Some(5)),
                all([|it| it.final_deadline_in_ms = Some(9), |it| it.fencing_token = None]),
            ),
            (
                ErrorCode::VersionConflict,
                Code::VersionConflict,
                Detail::Version { current: 2 },
                |it| it.current_version = Some(2),
                all([|it| it.current_version = Some(1)]),
            ),
            (
                ErrorCode::LimitReached,
                Code::LimitReached,
                Detail::Limit { limit: "maxLeases".into(), max: 3, sweep_pending: true },
                |it| {
                    (it.limit, it.max) = (Some("maxLeases".into()), Some(3));
                    it.sweep_pending = Some(true);
                },
                all([
                    |it| it.max = Some(4),
                    |it| it.limit = None,
                    |it| it.sweep_pending = Some(false),
                ]),
            ),
            (
                ErrorCode::InvalidArgument,
                Code::InvalidArgument,
                Detail::Invalid(Invalid::new("ttl", "is wrong")),
                |it| it.field = Some("ttl".into()),
                all([|it| it.field = Some("maxHold".into())]),
            ),
            (
                ErrorCode::ReservationEnded,
                Code::ReservationEnded,
                Detail::Quarantined { fence: Token(5) },
                |it| (it.reason, it.fencing_token) = (Some(Reason::Quarantined), Some(5)),
                all([|it| it.fencing_token = None, |it| it.reason = Some(Reason::Expired)]),
            ),
            (
                ErrorCode::WrongRegion,
                Code::WrongRegion,
                Detail::Home { home: RegionName::new("north").unwrap() },
                |it| it.home = Some("north".into()),
                all([|it| it.home = Some("south".into())]),
            ),
        ];
        for (told, code, detail, tell, wrong) in cases {
            let refusal = Refusal::new(code).with(detail);
            let mut problem = Problem::new(told, "planted");
            tell(&mut problem);
            assert!(check(&problem, &refusal), "{refusal:?}: {problem:?}");
            let common: [Told; 4] = [
                |it| it.code = ErrorCode::Unavailable,
                |it| it.retry_after_ms = Some(77),
                |it| it.replayed = Some(true),
                |it| it.original_revision = Some(1),
            ];
            for plant in wrong.into_iter().chain(common) {
                let mut planted = problem.clone();
                plant(&mut planted);
                assert!(!check(&planted, &refusal), "{refusal:?}: {planted:?}");
            }
        }
    }
}
