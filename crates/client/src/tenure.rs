//! The calls that keep an ownership or end it, by family: locks share a renewal, and an election has one of its own.

use crate::{
    clock::Moment,
    core::{Core, Heard},
    lease::{NotRenewed, Term},
    renewer::judge,
    transport::Ask,
};
use sereno_api::{
    AbandonRequest, Family, LeaseRef, Problem, ReleaseRequest, RenewManyRequest, RenewResult,
    RenewTermRequest, Renewed, RenewedMany, ResignRequest,
};

/// Whether several ownerships of the family can be renewed by one call.
pub(crate) fn is_shared(family: Family) -> bool {
    family != Family::Election
}

/// Renews these leases; of a family that shares no calls there is one.
pub(crate) fn renew(core: &Core, family: Family, namespace: &str, leases: Vec<LeaseRef>) -> Ask {
    let born_at = core.born_at();
    let namespace = namespace.to_string();
    match (family, leases.first()) {
        (Family::Election, Some(lease)) => {
            let LeaseRef { resource: election, lease_id } = lease.clone();
            let request =
                RenewTermRequest { namespace, election, lease_id, lease_ttl: None, born_at };
            Ask::post("/v1/elections/renew", &request)
        }
        _ => {
            let request = RenewManyRequest { namespace, leases, lease_ttl: None, born_at };
            Ask::post("/v1/locks/renew-many", &request)
        }
    }
}

/// What each lease of a renewal was answered, and when the call that was answered had been sent at the earliest.
/// `None`: nothing was decided.
pub(crate) fn results(
    family: Family,
    leases: &[LeaseRef],
    asked: Moment,
    heard: &Heard,
) -> Option<(Moment, Vec<RenewResult>)> {
    match (family, heard, leases) {
        (Family::Election, Heard::Done(answer), [lease]) => {
            let renewed = serde_json::from_slice::<Renewed>(&answer.body).ok()?;
            Some((answer.sent, vec![renewed_one(lease, renewed)]))
        }
        (Family::Election, Heard::Problem(problem), [lease]) => {
            Some((asked, vec![refused_one(lease, problem)]))
        }
        (Family::Election, ..) => None,
        (_, Heard::Done(answer), _) => {
            let many = serde_json::from_slice::<RenewedMany>(&answer.body).ok()?;
            Some((answer.sent, many.results))
        }
        (_, Heard::Problem(_) | Heard::Nothing(_), _) => None,
    }
}

/// What a renewal of one ownership has brought.
pub(crate) fn verdict(
    family: Family,
    leases: &[LeaseRef],
    asked: Moment,
    heard: &Heard,
) -> Result<Term, NotRenewed> {
    let (sent, results) = results(family, leases, asked, heard).ok_or(NotRenewed::Undecided)?;
    judge(sent, leases, &results)
}

/// The answer to the renewal of one lease, as one of many.
fn renewed_one(lease: &LeaseRef, renewed: Renewed) -> RenewResult {
    RenewResult {
        ok: true,
        fencing_token: Some(renewed.fencing_token),
        expires_at: Some(renewed.expires_at),
        expires_in_ms: Some(renewed.expires_in_ms),
        final_deadline_in_ms: renewed.final_deadline_in_ms,
        clipped: renewed.clipped,
        ..nothing(lease)
    }
}

fn refused_one(lease: &LeaseRef, problem: &Problem) -> RenewResult {
    RenewResult {
        code: Some(problem.code),
        outcome: Some(problem.outcome),
        retry_with: problem.retry_with,
        reason: problem.reason,
        fencing_token: problem.fencing_token,
        final_deadline_in_ms: problem.final_deadline_in_ms,
        ..nothing(lease)
    }
}

fn nothing(lease: &LeaseRef) -> RenewResult {
    RenewResult {
        resource: lease.resource.clone(),
        ok: false,
        code: None,
        outcome: None,
        retry_with: None,
        reason: None,
        fencing_token: None,
        expires_at: None,
        expires_in_ms: None,
        final_deadline_in_ms: None,
        clipped: false,
    }
}

/// Ends a lease.
pub(crate) fn end(family: Family, namespace: &str, lease: &LeaseRef, born_at: Option<u64>) -> Ask {
    let namespace = namespace.to_string();
    let LeaseRef { resource, lease_id } = lease.clone();
    match family {
        Family::Election => {
            let request = ResignRequest { namespace, election: resource, lease_id, born_at };
            Ask::post("/v1/elections/resign", &request)
        }
        _ => {
            let request = ReleaseRequest { namespace, resource, lease_id, born_at };
            Ask::post("/v1/locks/release", &request)
        }
    }
}

/// Takes a request back.
pub(crate) fn abandon(family: Family, request: &AbandonRequest) -> Ask {
    match family {
        Family::Election => Ask::post("/v1/elections/abandon", request),
        Family::Quota => Ask::post("/v1/quotas/abandon", request),
        _ => Ask::post("/v1/locks/abandon", request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lease::Loss, transport::Answer};
    use sereno_api::ErrorCode;
    use std::time::Duration;

    const ASKED: Moment = Moment::from_boot(Duration::from_secs(100));
    const SENT: Moment = Moment::from_boot(Duration::from_secs(101));

    fn leases() -> Vec<LeaseRef> {
        vec![LeaseRef { resource: "e".into(), lease_id: "0".repeat(32) }]
    }

    fn told(heard: &Heard) -> Result<Term, NotRenewed> {
        verdict(Family::Election, &leases(), ASKED, heard)
    }

    #[test]
    fn an_election_is_renewed_by_an_answer_of_its_own() {
        let body = r#"{"fencingToken":5,"expiresAt":"","expiresInMs":7000,"clipped":false,"revision":1,
            "clusterTimeMs":1}"#;
        let answer = Answer { sent: SENT, status: 200, body: body.into() };
        let expires_in = Duration::from_secs(7);
        let term = Term { sent: SENT, expires_in, final_in: None };
        assert_eq!(told(&Heard::Done(answer.clone())), Ok(term));
        let nonsense = Answer { body: "{}".into(), ..answer };
        assert_eq!(told(&Heard::Done(nonsense)), Err(NotRenewed::Undecided));
    }

    #[test]
    fn what_a_problem_decides_is_taken_from_the_problem() {
        let problem = |code| Box::new(Problem::new(code, ""));
        let mut ended = problem(ErrorCode::LeaseEnded);
        ended.reason = Some(sereno_api::Reason::HandedOff);
        let lost = Err(NotRenewed::Lost(Loss::Ended("handedOff".into())));
        assert_eq!(told(&Heard::Problem(ended)), lost);
        let mut last = problem(ErrorCode::MaxHoldReached);
        last.final_deadline_in_ms = Some(900);
        let left = Duration::from_millis(900);
        let term = Term { sent: ASKED, expires_in: left, final_in: Some(left) };
        assert_eq!(told(&Heard::Problem(last)), Ok(term), "counted from before the call was sent");
        for code in [ErrorCode::Unavailable, ErrorCode::UnknownOutcome, ErrorCode::Overloaded] {
            assert_eq!(told(&Heard::Problem(problem(code))), Err(NotRenewed::Undecided), "{code}");
        }
    }
}
