//! Watches over the deadline of one reservation, and extends it where that was asked for.

use super::calls::Named;
use crate::{
    cell::Cell,
    clock::Moment,
    core::{Core, Heard},
    lease::{Loss, NotRenewed, Term},
    renewer::roll,
    servers::Targets,
};
use sereno_api::{ErrorCode, Problem, Reserved};
use std::{
    sync::{Arc, Once},
    time::Duration,
};

/// A timer stands still while the machine is suspended; looking this often finds the time that is gone.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(500);

/// A reservation with its deadline.
pub(super) struct Held {
    pub named: Named,
    pub cell: Cell,
    watched: Once,
}

impl Held {
    pub(super) fn new(named: Named, cell: Cell) -> Self {
        Self { named, cell, watched: Once::new() }
    }

    /// Somebody wants to be told of its end, or to have it extended: nobody else pays for a task.
    pub(super) fn watch_over(self: &Arc<Self>, core: &Arc<Core>) {
        self.watched.call_once(|| core.background.spawn(keep(core.clone(), self.clone())));
    }
}

/// The figures of an answer.
pub(super) fn term(sent: Moment, reserved: &Reserved) -> Term {
    Term {
        sent,
        expires_in: Duration::from_millis(reserved.expires_in_ms),
        final_in: Some(Duration::from_millis(reserved.final_deadline_in_ms)),
    }
}

/// Until it is lost, committed or given back.
async fn keep(core: Arc<Core>, held: Arc<Held>) {
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
                core.background.spawn(extend(core.clone(), held.clone(), server));
            }
        }
        let Some(at) = wake else { return };
        tokio::time::sleep(Moment::now().until(at).min(LOOK_AT_LEAST_EVERY)).await;
    }
}

/// One call. It may hang as long as the reservation lasts; the next one goes out beside it.
async fn extend(core: Arc<Core>, held: Arc<Held>, server: usize) {
    let asked = Moment::now();
    let left = held.cell.with(asked, |lease| asked.until(lease.deadline()));
    let ask = held.named.extend(None)(core.born_at());
    let heard = core.attempt_renewal(server, &ask, left, left / 6).await;
    let now = Moment::now();
    let verdict = judge(heard, asked);
    held.cell.with(now, |lease| match verdict {
        Ok(term) => lease.renewed(term, now, roll()),
        Err(why) => lease.not_renewed(why, now, roll()),
    });
}

/// `asked`: not after the call was sent.
fn judge(heard: Heard, asked: Moment) -> Result<Term, NotRenewed> {
    match heard {
        Heard::Done(answer) => {
            let reserved: Reserved =
                serde_json::from_slice(&answer.body).map_err(|_| NotRenewed::Undecided)?;
            Ok(term(answer.sent, &reserved))
        }
        Heard::Problem(problem) => refused(&problem, asked),
        Heard::Nothing(_) => Err(NotRenewed::Undecided),
    }
}

fn refused(problem: &Problem, asked: Moment) -> Result<Term, NotRenewed> {
    if let Some(loss) = loss_of(problem) {
        return Err(NotRenewed::Lost(loss));
    }
    let final_in = problem.final_deadline_in_ms.map(Duration::from_millis);
    match (problem.code, final_in) {
        (ErrorCode::MaxHoldReached, Some(end)) => {
            Ok(Term { sent: asked, expires_in: end, final_in })
        }
        (ErrorCode::MaxHoldReached, None) => Err(NotRenewed::Final),
        _ => Err(NotRenewed::Undecided),
    }
}

/// What a refusal says about the reservation's end.
pub(super) fn loss_of(problem: &Problem) -> Option<Loss> {
    match problem.code {
        ErrorCode::ReservationEnded | ErrorCode::ExpiredNoCapacity => {
            let how = problem.reason.map_or("expired", |reason| reason.as_str());
            Some(Loss::Ended(how.into()))
        }
        ErrorCode::NotHolder | ErrorCode::NotFound => Some(Loss::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::Reason;

    fn told(code: ErrorCode, more: impl FnOnce(&mut Problem)) -> Result<Term, NotRenewed> {
        let mut problem = Problem::new(code, "because");
        more(&mut problem);
        refused(&problem, Moment::from_boot(Duration::from_secs(9)))
    }

    #[test]
    fn only_what_the_log_has_decided_ends_it() {
        let ended = told(ErrorCode::ReservationEnded, |it| it.reason = Some(Reason::Released));
        assert_eq!(ended, Err(NotRenewed::Lost(Loss::Ended("released".into()))));
        for code in [ErrorCode::NotHolder, ErrorCode::NotFound] {
            assert_eq!(told(code, |_| {}), Err(NotRenewed::Lost(Loss::Unknown)));
        }
        for code in [ErrorCode::Unavailable, ErrorCode::Overloaded, ErrorCode::WrongRegion] {
            assert_eq!(told(code, |_| {}), Err(NotRenewed::Undecided));
        }
    }

    #[test]
    fn the_longest_life_lasts_to_its_end() {
        let last = told(ErrorCode::MaxHoldReached, |it| it.final_deadline_in_ms = Some(700));
        let end = Duration::from_millis(700);
        assert_eq!(last.map(|term| (term.expires_in, term.final_in)), Ok((end, Some(end))));
        assert_eq!(told(ErrorCode::MaxHoldReached, |_| {}), Err(NotRenewed::Final));
    }
}
