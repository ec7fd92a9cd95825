//! Claims one slot. Whatever becomes of the caller, a claim is either handed out or given back.

use super::{attempt::Attempt, owed};
use crate::{
    client::Inner,
    core::{Core, random_id},
    error::Error,
    lease::Term,
    transport::Ask,
};
use sereno_api::{ClaimRunRequest, Labels, Millis, RunClaimed};
use sereno_schedule::instant;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// How long a claim is asked for with one request id; well below what the service remembers.
const CLAIM_WITHIN: Duration = Duration::from_secs(10);

/// Everything about a claim but the slot.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub namespace: String,
    pub job: String,
    pub owner: String,
    pub lease_ttl: Option<Duration>,
    pub labels: Labels,
}

/// Claims on the client's thread. Dropping the returned future abandons the claim in the background.
///
/// # Errors
/// [`Error::Refused`] with what the ledger says; [`Error::Unavailable`] when nothing can have been granted;
/// [`Error::Unknown`] when it may have been, and is being abandoned.
pub(super) async fn claim(
    inner: Arc<Inner>,
    wish: Wish,
    version: u64,
    slot: u64,
) -> Result<Attempt, Error> {
    let (mut done, result) = oneshot::channel();
    let background = inner.core.background.clone();
    background.spawn_owed(async move {
        let core = inner.core.clone();
        let request = wish.request(version, slot);
        let outcome = tokio::select! {
            outcome = ask_for(&core, &request) => Some(outcome),
            () = done.closed() => None,
        };
        match outcome {
            Some(Ok((claimed, term))) => {
                // If nobody takes it any more it is dropped here, and that gives it back.
                let _ = done.send(Ok(Attempt::new(inner, request, claimed, term)));
            }
            Some(Err(error)) => {
                let may_hold = matches!(error, Error::Unknown(_));
                let _ = done.send(Err(error));
                drop(inner);
                if may_hold {
                    owed::abandon(&core, &request.namespace, &request.request_id).await;
                }
            }
            None => {
                drop(inner);
                owed::abandon(&core, &request.namespace, &request.request_id).await;
            }
        }
    });
    match result.await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::Unknown("the client's thread has stopped".into())),
    }
}

async fn ask_for(core: &Core, request: &ClaimRunRequest) -> Result<(RunClaimed, Term), Error> {
    let ask =
        |born_at| Ask::post("/v1/jobs/claim-run", &ClaimRunRequest { born_at, ..request.clone() });
    let answer = core.call_for_answer(&ask, CLAIM_WITHIN).await?;
    let claimed: RunClaimed = crate::core::decode(&answer)?;
    let term = Term {
        sent: answer.sent,
        expires_in: Duration::from_millis(claimed.expires_in_ms),
        final_in: claimed.final_deadline_in_ms.map(Duration::from_millis),
    };
    Ok((claimed, term))
}

impl Wish {
    fn request(&self, job_version: u64, slot: u64) -> ClaimRunRequest {
        ClaimRunRequest {
            namespace: self.namespace.clone(),
            job: self.job.clone(),
            job_version,
            slot: instant::format(slot),
            request_id: random_id(),
            owner: self.owner.clone(),
            lease_ttl: self.lease_ttl.map(Millis::from),
            labels: self.labels.clone(),
            born_at: None,
        }
    }
}
