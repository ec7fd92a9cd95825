//! A held lock.

use crate::{
    acquire::Grant,
    cell::{Cell, GuardStatus},
    client::Inner,
    clock::Moment,
    core::Core,
    error::{Error, NotHeld, RunError},
    lease::{GuardState, Lease, Loss, NotRenewed},
    owed::{self, Release},
    renewer::{Ownership, OwnershipId, loss_of, roll},
};
use sereno_api::Problem;
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::sync::watch;

/// A held lock, renewed in the background until it is released, dropped or lost.
///
/// **held → at risk → lost**: see [`GuardState`]. Ask [`Guard::check`] before every step that needs the lock,
/// send [`Guard::token`] along with every write, and stop when [`Guard::lost`] resolves. Dropping the guard
/// releases in the background; [`Guard::release`] does it now and says what came of it.
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    inner: Arc<Inner>,
    ownership: Arc<Ownership>,
    grant: Grant,
    id: OwnershipId,
}

impl Guard {
    pub(crate) fn new(inner: Arc<Inner>, grant: Grant) -> Self {
        let lease = Lease::new(grant.term, roll());
        Self::with_lease(inner, grant, lease)
    }

    fn with_lease(inner: Arc<Inner>, grant: Grant, lease: Lease) -> Self {
        let ownership = Arc::new(Ownership {
            family: grant.family,
            namespace: grant.namespace.clone(),
            leases: grant.leases(),
            cell: Cell::new(lease),
        });
        let id = inner.core.renewer.add(ownership.clone());
        Self { inner, ownership, grant, id }
    }

    /// What was granted: names, fence keys, tokens.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The fencing token, while the lock is not lost. Of several resources: the first one's ([`Guard::grant`] has
    /// all).
    ///
    /// # Errors
    /// The reason, once the lock is lost.
    pub fn token(&self) -> Result<u64, Loss> {
        match self.ownership.cell.loss() {
            Some(loss) => Err(loss),
            None => Ok(self.grant.holdings[0].fencing_token),
        }
    }

    /// Under what a protected resource remembers the highest token. Of several resources: the first one's.
    pub fn fence_key(&self) -> &str {
        &self.grant.holdings[0].fence_key
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
        self.ownership.cell.state()
    }

    /// How long the lock is certain without another renewal; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        let now = Moment::now();
        self.ownership.cell.with(now, |lease| match lease.state(now) {
            GuardState::Lost(_) => Duration::ZERO,
            GuardState::Held | GuardState::AtRisk => now.until(lease.deadline()),
        })
    }

    /// The state with its deadlines, and a way to wait for changes.
    pub fn watch(&self) -> watch::Receiver<GuardStatus> {
        self.ownership.cell.watch()
    }

    /// Resolves when the lock is lost, or has been released. Independent of the guard's own life and of the
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

    /// Does `work` as long as the lock is not lost; on a loss the work's future is dropped where it stands.
    ///
    /// Dropping cannot undo what was sent already: send the token along, and let the resource check it.
    ///
    /// # Errors
    /// [`RunError::NotBegun`] where [`Guard::check`] says no; [`RunError::Lost`] when the lock was lost under it.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, RunError<F::Output>> {
        self.check().map_err(RunError::NotBegun)?;
        run(self.lost(), || self.ownership.cell.loss(), work).await
    }

    /// Releases now. Returns once the service has answered, and says whether this ended the lease.
    ///
    /// # Errors
    /// [`Error::Unknown`] when no answer came within the client's call time-out. The release is still repeated in
    /// the background, and the lock ends by itself when its TTL is over.
    pub async fn release(self) -> Result<Release, Error> {
        self.release_shared().await
    }

    /// The same for one that others may still look at: to them it is lost. Its drop finds nothing left to do.
    pub(crate) async fn release_shared(&self) -> Result<Release, Error> {
        let core = &self.inner.core;
        let within = core.settings.call_timeout;
        self.give_up();
        let answered = owed::release(core, &self.ownership);
        let waited = async move { tokio::time::timeout(within, answered).await };
        match core.background.run(waited).await {
            Some(Ok(Ok(released))) => Ok(released),
            _ => Err(Error::Unknown(format!("no answer to the release in {within:?}"))),
        }
    }

    /// Ends it here and not at the service, for a call that may let somebody else in. `None`: it is lost already.
    pub(crate) fn step_aside(&self) -> Option<Lease> {
        let now = Moment::now();
        let lease = self.ownership.cell.with(now, |lease| {
            let is_lost = matches!(lease.state(now), GuardState::Lost(_));
            (!is_lost).then(|| lease.clone())
        })?;
        self.give_up().then_some(lease)
    }

    /// A guard of the same grant again, after a call that has let nobody in.
    pub(crate) fn step_back(&self, lease: Lease) -> Self {
        Self::with_lease(self.inner.clone(), self.grant.clone(), lease)
    }

    /// Releases in the background what it has stepped aside from.
    pub(crate) fn let_go(&self) {
        drop(owed::release(&self.inner.core, &self.ownership));
    }

    /// Another call was refused: if that says that it is over, it is lost.
    pub(crate) fn heed(&self, problem: &Problem) {
        if let Some(loss) = loss_of(Some(problem.code), problem.reason) {
            let now = Moment::now();
            let lost = NotRenewed::Lost(loss);
            self.ownership.cell.with(now, |lease| lease.not_renewed(lost, now, roll()));
            self.inner.core.renewer.look();
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Takes it out of the renewer. `true`: its release is up to the caller.
    fn give_up(&self) -> bool {
        let now = Moment::now();
        let ours = self.inner.core.renewer.remove(self.id);
        self.ownership.cell.with(now, |lease| lease.end(Loss::Released, now));
        ours
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.give_up() {
            drop(owed::release(&self.inner.core, &self.ownership));
        }
    }
}

impl fmt::Debug for Guard {
    /// Without the lease id, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("namespace", &self.grant.namespace)
            .field("holdings", &self.grant.holdings)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Work against loss. When both come together, the loss is told, with the output beside it.
pub(crate) async fn run<F: Future>(
    lost: impl Future<Output = Loss>,
    loss_now: impl Fn() -> Option<Loss>,
    work: F,
) -> Result<F::Output, RunError<F::Output>> {
    tokio::select! {
        biased;
        loss = lost => Err(RunError::Lost { loss, finished: None }),
        output = work => match loss_now() {
            None => Ok(output),
            Some(loss) => Err(RunError::Lost { loss, finished: Some(output) }),
        },
    }
}
