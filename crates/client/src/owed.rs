//! What a client owes the service: releases and abandons, sent until they are answered.

use crate::{
    core::{Core, Heard, retry_pause},
    renewer::Ownership,
    servers::Round,
    tenure,
    transport::{Answer, Ask},
};
use sereno_api::{AbandonRequest, Family, LeaseRef, Problem, Reason, Released};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// An abandon is owed as long as what it takes back can do harm: a lease (1 h at most) that nobody renews is then
/// over by itself. Cluster time may stand still meanwhile, so this is generous.
const ABANDON_FOR: Duration = Duration::from_secs(3_600);
/// What is said about something that has ended. Long after the end of any lease, and as long as what has expired can
/// still be committed: a later attempt has then been claimed, or nobody is there to claim one.
const OWED_FOR: Duration = Duration::from_secs(3_600);

/// How a lease was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// This release ended the lease.
    Now,
    /// It had ended before, and how.
    Before(Reason),
}

/// Releases in the background, in reverse order, until it is answered. The receiver may be dropped.
pub(crate) fn release(core: &Arc<Core>, ownership: &Ownership) -> oneshot::Receiver<Release> {
    let (done, result) = oneshot::channel();
    let (family, namespace) = (ownership.family, ownership.namespace.clone());
    let leases = ownership.leases.clone();
    let core2 = core.clone();
    core.background.spawn_owed(async move {
        let mut all = Release::Now;
        for lease in leases.iter().rev() {
            if let Release::Before(how) = release_one(&core2, family, &namespace, lease).await {
                all = Release::Before(how);
            }
        }
        let _ = done.send(all);
    });
    result
}

async fn release_one(core: &Core, family: Family, namespace: &str, lease: &LeaseRef) -> Release {
    let ask = |born_at| tenure::end(family, namespace, lease, born_at);
    let heard = until_answered(core, ask).await;
    let released = heard.and_then(|body| serde_json::from_slice::<Released>(&body).ok());
    match released {
        Some(Released { released: true, .. }) => Release::Now,
        Some(Released { reason, .. }) => Release::Before(reason.unwrap_or(Reason::Unknown)),
        None => Release::Before(Reason::Unknown),
    }
}

/// Makes sure that a request holds nothing and is granted nothing. `true`: the service has confirmed it.
pub(crate) async fn abandon(
    core: &Core,
    family: Family,
    namespace: &str,
    request_id: &str,
) -> bool {
    let ask = |born_at| {
        let request =
            AbandonRequest { namespace: namespace.into(), request_id: request_id.into(), born_at };
        tenure::abandon(family, &request)
    };
    matches!(tokio::time::timeout(ABANDON_FOR, until_answered(core, ask)).await, Ok(Some(_)))
}

/// Repeats until the service has decided; `None`: it has refused for good.
async fn until_answered(core: &Core, ask: impl Fn(Option<u64>) -> Ask) -> Option<bytes::Bytes> {
    let (mut attempt, mut round) = (0, Round::default());
    loop {
        let heard = {
            let _turn = core.owed_calls.acquire().await;
            core.attempt(&mut round, &ask(core.born_at()), ATTEMPT_TIMEOUT).await
        };
        match heard {
            Heard::Done(answer) => return Some(answer.body),
            Heard::Problem(problem) if problem.retry_with.is_none() => return None,
            Heard::Problem(_) | Heard::Nothing(_) => {}
        }
        tokio::time::sleep(retry_pause(attempt, core.transport.len())).await;
        attempt = attempt.saturating_add(1);
    }
}

/// Repeats the same call until the service has decided. `Ok(None)`: it has not, in an hour.
pub(crate) async fn until_decided(
    core: &Core,
    ask: impl Fn(Option<u64>) -> Ask,
) -> Result<Option<Answer>, Box<Problem>> {
    let decided = async {
        let (mut attempt, mut round) = (0, Round::default());
        loop {
            let heard = {
                let _turn = core.owed_calls.acquire().await;
                core.attempt(&mut round, &ask(core.born_at()), ATTEMPT_TIMEOUT).await
            };
            match heard {
                Heard::Done(answer) => return Ok(answer),
                Heard::Problem(problem) if !may_be_decided_later(&problem) => return Err(problem),
                Heard::Problem(_) | Heard::Nothing(_) => {}
            }
            tokio::time::sleep(retry_pause(attempt, core.transport.len())).await;
            attempt = attempt.saturating_add(1);
        }
    };
    match tokio::time::timeout(OWED_FOR, decided).await {
        Ok(decided) => decided.map(Some),
        Err(_) => Ok(None),
    }
}

/// No answer of the ledger's: the service is busy, or away.
fn may_be_decided_later(problem: &Problem) -> bool {
    use sereno_api::RetryWith::{NewRequestId, SameRequestId};
    match problem.retry_with {
        Some(SameRequestId) => true,
        Some(NewRequestId) => problem.status == 429,
        _ => false,
    }
}
