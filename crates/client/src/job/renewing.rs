//! Keeps the lease of one run, as the renewer does for locks; runs are renewed one by one.

use super::owed::RunRef;
use crate::{
    cell::Cell,
    clock::Moment,
    core::{Core, Heard},
    lease::{Loss, NotRenewed, Term},
    renewer::roll,
    servers::Targets,
    transport::Ask,
};
use sereno_api::{ErrorCode, Problem, RenewRunRequest, Renewed};
use std::{sync::Arc, time::Duration};

/// A timer stands still while the machine is suspended; looking this often finds the time that is gone.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(500);

/// A claimed run under renewal.
pub(super) struct HeldRun {
    pub run: RunRef,
    pub cell: Cell,
}

/// Renews until the lease is lost or given up.
pub(super) async fn keep(core: Arc<Core>, held: Arc<HeldRun>) {
    loop {
        let now = Moment::now();
        let (is_due, wake) = held.cell.with(now, |lease| {
            let is_due = lease.is_due(now);
            if is_due {
                lease.renewal_sent(now);
            }
            (is_due, lease.next_wake(now))
        });
        if is_due {
            let Targets { first, beside } = core.transport.for_renewal();
            for server in [Some(first), beside].into_iter().flatten() {
                core.background.spawn(renew(core.clone(), held.clone(), server));
            }
        }
        let Some(at) = wake else { return };
        tokio::time::sleep(Moment::now().until(at).min(LOOK_AT_LEAST_EVERY)).await;
    }
}

/// One call. It may hang as long as the lease lasts; the next one goes out beside it.
async fn renew(core: Arc<Core>, held: Arc<HeldRun>, server: usize) {
    let now = Moment::now();
    let left = held.cell.with(now, |lease| now.until(lease.deadline()));
    let RunRef { namespace, job, lease_id } = held.run.clone();
    let request =
        RenewRunRequest { namespace, job, lease_id, lease_ttl: None, born_at: core.born_at() };
    let ask = Ask::post("/v1/jobs/renew-run", &request);
    let heard = core.attempt_renewal(server, &ask, left, left / 6).await;
    let (now, sent) = (Moment::now(), now);
    let verdict = judge(heard, sent);
    held.cell.with(now, |lease| match verdict {
        Ok(term) => lease.renewed(term, now, roll()),
        Err(why) => lease.not_renewed(why, now, roll()),
    });
}

/// `sent`: not after the call was.
fn judge(heard: Heard, sent: Moment) -> Result<Term, NotRenewed> {
    match heard {
        Heard::Done(answer) => {
            let renewed: Renewed =
                serde_json::from_slice(&answer.body).map_err(|_| NotRenewed::Undecided)?;
            Ok(Term {
                sent: answer.sent,
                expires_in: Duration::from_millis(renewed.expires_in_ms),
                final_in: renewed.final_deadline_in_ms.map(Duration::from_millis),
            })
        }
        Heard::Problem(problem) => refused(&problem, sent),
        Heard::Nothing(_) => Err(NotRenewed::Undecided),
    }
}

fn refused(problem: &Problem, sent: Moment) -> Result<Term, NotRenewed> {
    let final_in = problem.final_deadline_in_ms.map(Duration::from_millis);
    match problem.code {
        ErrorCode::LeaseEnded => {
            let how = problem.reason.map_or("unknown", |reason| reason.as_str());
            Err(NotRenewed::Lost(Loss::Ended(how.into())))
        }
        ErrorCode::NotHolder | ErrorCode::NotFound => Err(NotRenewed::Lost(Loss::Unknown)),
        ErrorCode::MaxHoldReached => match final_in {
            Some(end) => Ok(Term { sent, expires_in: end, final_in }),
            None => Err(NotRenewed::Final),
        },
        _ => Err(NotRenewed::Undecided),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: ErrorCode, final_deadline_in_ms: Option<u64>) -> Result<Term, NotRenewed> {
        let problem = Problem { final_deadline_in_ms, ..Problem::new(code, "because") };
        refused(&problem, Moment::from_boot(Duration::from_secs(9)))
    }

    #[test]
    fn only_what_the_ledger_says_ends_a_lease() {
        let ended = NotRenewed::Lost(Loss::Ended("unknown".into()));
        assert_eq!(told(ErrorCode::LeaseEnded, None), Err(ended));
        assert_eq!(told(ErrorCode::NotHolder, None), Err(NotRenewed::Lost(Loss::Unknown)));
        for code in [ErrorCode::Unavailable, ErrorCode::Overloaded, ErrorCode::Unrecognised] {
            assert_eq!(told(code, None), Err(NotRenewed::Undecided));
        }
    }

    #[test]
    fn the_longest_run_lasts_to_its_end() {
        let term = told(ErrorCode::MaxHoldReached, Some(700)).unwrap();
        assert_eq!(term.expires_in, Duration::from_millis(700));
        assert_eq!(term.final_in, Some(term.expires_in));
        assert_eq!(told(ErrorCode::MaxHoldReached, None), Err(NotRenewed::Final));
    }
}
