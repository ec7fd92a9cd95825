//! One attempt at a slot: a lease that is kept until the attempt is finished, given back, or lost.

use super::{
    owed::{self, RunRef},
    renewing::{self, HeldRun},
};
use crate::{
    cell::{Cell, GuardStatus},
    client::Inner,
    clock::Moment,
    core::{decode, random_id},
    error::{Error, NotHeld, RunError},
    guard,
    lease::{GuardState, Lease, Loss, Term},
    renewer::roll,
};
use sereno_api::{ClaimRunRequest, RunClaimed, RunFinished, RunResult};
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// What the service granted, without the state that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunGrant {
    /// The namespace.
    pub namespace: String,
    /// The job.
    pub job: String,
    /// The slot: a UTC instant as RFC 3339. The business key of what the run does.
    pub slot: String,
    /// 1 for the first; counts up when a run died or failed.
    pub attempt: u32,
    /// Under what a protected resource remembers the highest token.
    pub fence_key: String,
    /// Larger than every token granted before.
    pub fencing_token: u64,
    /// Where in the service's total order it was granted.
    pub revision: u64,
}

/// What becomes of an attempt that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nobody has seen it yet: it was never begun.
    GiveBack,
    /// Its work was broken off.
    Fail,
    /// It is finished.
    Nothing,
}

/// A claimed slot of a job, renewed in the background until it is finished or lost.
///
/// **held → at risk → lost**, as with a [`crate::Guard`]: ask [`Attempt::check`] before each step, send
/// [`Attempt::token`] along with every write, and stop when [`Attempt::lost`] resolves. Say at the end how it went:
/// [`Attempt::finish`] is accepted after a loss too, while no later attempt has been claimed. Dropping it says that it
/// failed.
#[must_use = "dropping an attempt says that it failed"]
pub struct Attempt {
    inner: Arc<Inner>,
    held: Arc<HeldRun>,
    grant: RunGrant,
    /// Of the claim: names it for giving it back.
    request_id: String,
    fate: Fate,
}

impl Attempt {
    pub(super) fn new(
        inner: Arc<Inner>,
        request: ClaimRunRequest,
        claimed: RunClaimed,
        term: Term,
    ) -> Self {
        let ClaimRunRequest { namespace, request_id, .. } = request;
        let run = RunRef {
            namespace: namespace.clone(),
            job: claimed.job.clone(),
            lease_id: claimed.lease_id,
        };
        let grant = RunGrant {
            namespace,
            job: claimed.job,
            slot: claimed.slot,
            attempt: claimed.attempt,
            fence_key: claimed.fence_key,
            fencing_token: claimed.fencing_token,
            revision: claimed.original_revision.unwrap_or(claimed.revision),
        };
        let held = Arc::new(HeldRun { run, cell: Cell::new(Lease::new(term, roll())) });
        inner.core.background.spawn(renewing::keep(inner.core.clone(), held.clone()));
        Self { inner, held, grant, request_id, fate: Fate::GiveBack }
    }

    /// It is handed out: from here on it counts as begun.
    pub(super) fn begin(mut self) -> Self {
        self.fate = Fate::Fail;
        self
    }

    /// What was granted: the slot, the attempt's number, fence key and token.
    pub fn grant(&self) -> &RunGrant {
        &self.grant
    }

    /// The fencing token, while the lease is not lost.
    ///
    /// # Errors
    /// The reason, once it is lost.
    pub fn token(&self) -> Result<u64, Loss> {
        match self.held.cell.loss() {
            Some(loss) => Err(loss),
            None => Ok(self.grant.fencing_token),
        }
    }

    /// Whether new work may begin. Looks at the clock, so it is right after a suspend too.
    ///
    /// # Errors
    /// [`NotHeld::AtRisk`] while a renewal is overdue, [`NotHeld::Lost`] once it is over.
    pub fn check(&self) -> Result<(), NotHeld> {
        match self.state() {
            GuardState::Held => Ok(()),
            GuardState::AtRisk => Err(NotHeld::AtRisk),
            GuardState::Lost(loss) => Err(NotHeld::Lost(loss)),
        }
    }

    /// Held, at risk or lost, at this moment.
    pub fn state(&self) -> GuardState {
        self.held.cell.state()
    }

    /// How long the lease is certain without another renewal; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        let now = Moment::now();
        self.held.cell.with(now, |lease| match lease.state(now) {
            GuardState::Lost(_) => Duration::ZERO,
            GuardState::Held | GuardState::AtRisk => now.until(lease.deadline()),
        })
    }

    /// The state with its deadlines, and a way to wait for changes.
    pub fn watch(&self) -> watch::Receiver<GuardStatus> {
        self.held.cell.watch()
    }

    /// Resolves when the lease is lost, or the attempt is finished. Independent of the attempt's own life and of the
    /// runtime it is awaited on.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + 'static {
        let mut status = self.watch();
        async move {
            let lost = status.wait_for(|status| matches!(status.state, GuardState::Lost(_))).await;
            match lost.map(|status| status.state.clone()) {
                Ok(GuardState::Lost(loss)) => loss,
                _ => Loss::Released,
            }
        }
    }

    /// Does `work` as long as the lease is not lost; on a loss the work's future is dropped where it stands.
    ///
    /// # Errors
    /// [`RunError::NotBegun`] where [`Attempt::check`] says no; [`RunError::Lost`] when it was lost under the work.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, RunError<F::Output>> {
        self.check().map_err(RunError::NotBegun)?;
        guard::run(self.lost(), || self.held.cell.loss(), work).await
    }

    /// Says how it went, and waits for the answer: what the slot has come to. The same call is repeated until it is
    /// answered, after the end of the lease too; it goes on if the returned future is dropped.
    ///
    /// # Errors
    /// [`Error::Refused`] when the slot has gone on without this attempt; [`Error::Unknown`] when the service did not
    /// answer for an hour.
    pub async fn finish(mut self, result: RunResult) -> Result<RunFinished, Error> {
        self.fate = Fate::Nothing;
        let (inner, answered) = (self.inner.clone(), self.finish_in_background(result));
        drop(self);
        let answer = inner.core.background.run(answered).await;
        match answer {
            Some(Ok(result)) => result,
            _ => Err(Error::Unknown("the client's thread has stopped".into())),
        }
    }

    /// Gives it back: it was never begun, so it does not count as an attempt.
    pub fn give_back(mut self) {
        self.fate = Fate::GiveBack;
    }

    /// The lease is kept meanwhile, so that nobody begins again what is only not yet known to be done.
    fn finish_in_background(
        &self,
        result: RunResult,
    ) -> oneshot::Receiver<Result<RunFinished, Error>> {
        let (done, answered) = oneshot::channel();
        let (core, held) = (self.inner.core.clone(), self.held.clone());
        self.inner.core.background.spawn_owed(async move {
            let finished = match owed::finish(&core, &held.run, result, &random_id()).await {
                Ok(Some(answer)) => decode(&answer),
                Ok(None) => Err(Error::Unknown("no answer to the end of the run".into())),
                Err(problem) => Err(Error::Refused(problem)),
            };
            end(&held);
            let _ = done.send(finished);
        });
        answered
    }
}

/// Nothing is renewed any more.
fn end(held: &HeldRun) {
    let now = Moment::now();
    held.cell.with(now, |lease| lease.end(Loss::Released, now));
}

impl Drop for Attempt {
    fn drop(&mut self) {
        match self.fate {
            Fate::Nothing => {}
            Fate::Fail => drop(self.finish_in_background(RunResult::Failed)),
            Fate::GiveBack => {
                end(&self.held);
                let core = self.inner.core.clone();
                let (namespace, request_id) =
                    (self.grant.namespace.clone(), std::mem::take(&mut self.request_id));
                self.inner.core.background.spawn_owed(async move {
                    owed::abandon(&core, &namespace, &request_id).await;
                });
            }
        }
    }
}

impl fmt::Debug for Attempt {
    /// Without the lease id, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("job", &self.grant.job)
            .field("slot", &self.grant.slot)
            .field("attempt", &self.grant.attempt)
            .field("fencing_token", &self.grant.fencing_token)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
