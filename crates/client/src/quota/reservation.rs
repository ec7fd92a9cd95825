//! Capacity that is reserved.

use super::{
    calls::{self, Named, items},
    commit::Commit,
    keep::{Held, loss_of, term},
    named::ReservationName,
    refusal::QuotaError,
    reserve::{Grant, Wish},
};
use crate::{
    cell::{Cell, GuardStatus},
    client::Inner,
    clock::Moment,
    core::decode,
    error::{Error, NotHeld, RunError},
    guard,
    lease::{GuardState, Lease, Loss, NotRenewed},
    owed::until_decided,
    renewer::roll,
    transport::{Answer, Ask},
};
use sereno_api::{
    CommitRequest, Committed, OnExpiry, Problem, QuotaItem, ReservationReleased, Reserved,
    ReservedItem,
};
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// Reserved capacity: nobody else has it until it is committed, released or its deadline passes.
///
/// Say at the end what was used: [`Reservation::commit`], or [`Reservation::release`] for nothing. **Dropping it gives
/// it back**, in the background; but where `on_expiry` says something else (commit, quarantine) it is left to that, for
/// a drop may be the end of work that is half done. A commit whose answer was not heard is repeated in the background
/// until it is decided, also when the guard is dropped meanwhile.
///
/// [`Reservation::check`] and [`Reservation::lost`] tell when its deadline may have passed, by the local clock, which
/// comes first. Whether a commit came in time only the log decides.
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation {
    inner: Arc<Inner>,
    held: Arc<Held>,
    owner: String,
    /// What the service said last.
    told: Reserved,
    is_begun: bool,
    on_expiry: OnExpiry,
    /// A commit that may have been carried out, and when it was first sent.
    unanswered: Option<(CommitRequest, Moment)>,
    /// Nothing is to be given back any more.
    is_over: bool,
}

/// Well within the service's memory of what it has answered: after that a repeat would be another commit.
const REPEAT_PART_FOR: Duration = Duration::from_secs(55);

/// What an owed call came to. `Ok(None)`: nothing, in an hour.
type Decided = Result<Option<Answer>, Box<Problem>>;

impl Reservation {
    pub(super) fn new(inner: Arc<Inner>, wish: &Wish, grant: Grant) -> Self {
        let Grant { reserved, term } = grant;
        let named = Named {
            namespace: wish.namespace.clone(),
            reservation_id: reserved.reservation_id.clone(),
            fence: Some(reserved.fence),
        };
        let lease = match wish.is_kept {
            true => Lease::new(term, roll()),
            false => Lease::unkept(term),
        };
        let held = Arc::new(Held::new(named, Cell::new(lease)));
        if wish.is_kept {
            held.watch_over(&inner.core);
        }
        Self {
            inner,
            held,
            owner: wish.owner.clone(),
            told: reserved,
            is_begun: false,
            on_expiry: wish.on_expiry,
            unanswered: None,
            is_over: false,
        }
    }

    /// Its name, by which any process can act for it.
    pub fn id(&self) -> &str {
        &self.held.named.reservation_id
    }

    /// The fencing token: send it along with what is done under it.
    pub fn fence(&self) -> u64 {
        self.held.named.fence.unwrap_or(0)
    }

    /// Under what a protected resource remembers the highest token.
    pub fn fence_key(&self) -> &str {
        &self.told.fence_key
    }

    /// For whom.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// What is reserved, each node once; with what each layer had left, root first, when that was last told.
    pub fn items(&self) -> &[ReservedItem] {
        &self.told.items
    }

    /// What the service said about it last: when it was granted, begun, extended or resized.
    pub fn told(&self) -> &Reserved {
        &self.told
    }

    /// The outside work has begun.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Whether new work may begin under it. Looks only at the clock, so it is right after a suspend too.
    ///
    /// # Errors
    /// [`NotHeld::AtRisk`] while an extension that was asked for is overdue, [`NotHeld::Lost`] when its deadline may
    /// have passed, or it is known to have ended.
    pub fn check(&self) -> Result<(), NotHeld> {
        match self.held.cell.state() {
            GuardState::Held => Ok(()),
            GuardState::AtRisk => Err(NotHeld::AtRisk),
            GuardState::Lost(loss) => Err(NotHeld::Lost(loss)),
        }
    }

    /// How long it is certain without another extension; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        let now = Moment::now();
        self.held.cell.with(now, |lease| match lease.state(now) {
            GuardState::Lost(_) => Duration::ZERO,
            GuardState::Held | GuardState::AtRisk => now.until(lease.deadline()),
        })
    }

    /// The state with its deadlines, and a way to wait for changes.
    pub fn watch(&self) -> watch::Receiver<GuardStatus> {
        self.held.watch_over(&self.inner.core);
        self.held.cell.watch()
    }

    /// Resolves when its deadline may have passed by the local clock, when the service says that it has ended, or when
    /// it was committed or released here. Once lost it stays so; a commit may still come in time.
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

    /// Does `work` as long as the reservation is not lost; on a loss the work's future is dropped where it stands.
    ///
    /// # Errors
    /// [`RunError::NotBegun`] where [`Self::check`] says no; [`RunError::Lost`] when it was lost under the work.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, RunError<F::Output>> {
        self.check().map_err(RunError::NotBegun)?;
        guard::run(self.lost(), || self.held.cell.loss(), work).await
    }

    /// The outside work begins: from here on the reservation has a deadline of its own, `in_flight_ttl` from now (1 h
    /// at most) and never nearer than the one it had, and a fate of its own. Only the first begin counts.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it has ended: do not begin.
    pub async fn begin(
        &mut self,
        in_flight_ttl: Duration,
        on_expiry: OnExpiry,
    ) -> Result<(), QuotaError> {
        self.go_on(self.held.named.begin(in_flight_ttl, on_expiry)).await?;
        if !self.is_begun {
            (self.is_begun, self.on_expiry) = (true, on_expiry);
        }
        Ok(())
    }

    /// Moves its deadline to `ttl` from now, if that is later; `None`: by the time last granted.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it has ended: nothing resurrects it; `MAX_HOLD_REACHED` in [`QuotaError::Other`] where
    /// nothing is left to add.
    pub async fn extend(&mut self, ttl: Option<Duration>) -> Result<(), QuotaError> {
        self.go_on(self.held.named.extend(ttl)).await
    }

    /// Changes what is reserved: names the **new** amounts, as (quota, path, amount), never a difference; nodes that are
    /// not named stay as they are, and 0 gives one back. To shrink always passes.
    ///
    /// # Errors
    /// [`QuotaError::Exhausted`] where there is not so much more: nothing has changed then.
    pub async fn resize<Q: Into<String>, P: Into<String>>(
        &mut self,
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Result<(), QuotaError> {
        self.go_on(self.held.named.resize(items(amounts))).await
    }

    /// All that is reserved is used now.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it had ended before: what was done under it is not on the books. After
    /// [`Error::Unknown`] or [`Error::Unavailable`] call it again, which repeats the same request; or drop the guard:
    /// the request is then repeated in the background.
    pub async fn commit(&mut self) -> Result<Committed, QuotaError> {
        self.commit_with(Commit::all()).await
    }

    /// These amounts are used now, as (quota, path, amount): at most what is reserved. The rest is given back.
    ///
    /// # Errors
    /// As [`Self::commit`]; [`QuotaError::Exceeds`] for more than is reserved: it stays reserved then.
    pub async fn commit_items<Q: Into<String>, P: Into<String>>(
        &mut self,
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Result<Committed, QuotaError> {
        self.commit_with(Commit::of(amounts)).await
    }

    /// These amounts are used now, and the rest stays reserved until its deadline.
    ///
    /// # Errors
    /// As [`Self::commit_items`].
    pub async fn commit_part<Q: Into<String>, P: Into<String>>(
        &mut self,
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Result<Committed, QuotaError> {
        self.commit_with(Commit::of(amounts).keep_rest()).await
    }

    /// A commit with all that can be said about it.
    ///
    /// # Errors
    /// As [`Self::commit_items`]; with [`Commit::or_readmit`] [`QuotaError::ExpiredNoCapacity`].
    pub async fn commit_with(&mut self, commit: Commit) -> Result<Committed, QuotaError> {
        let (request, since) = self.same_again(commit.request(&self.held.named));
        // Before the call: if this future is dropped under way, the commit is still meant.
        self.unanswered = Some((request.clone(), since));
        let is_final = request.is_final;
        let answer = self.inner.core.run_call::<Committed>(calls::commit(request)).await;
        match answer {
            Ok(committed) => {
                self.unanswered = None;
                self.take(&committed, is_final);
                Ok(committed)
            }
            Err(error) => {
                if let Error::Refused(problem) = &error {
                    self.unanswered = None;
                    self.heed(problem);
                }
                Err(QuotaError::of(error))
            }
        }
    }

    /// Gives it back now: nothing was used. Returns once the service has answered.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it was committed, or is in quarantine; [`Error::Unknown`] when no answer came within
    /// the client's call time-out: the release is still repeated in the background.
    pub async fn release(mut self) -> Result<ReservationReleased, QuotaError> {
        let within = self.inner.core.settings.call_timeout;
        self.unanswered = None;
        let answered = self.owe(self.held.named.release(), Duration::MAX);
        self.end();
        let waited = async move { tokio::time::timeout(within, answered).await };
        match self.inner.core.background.run(waited).await {
            Some(Ok(Ok(Ok(Some(answer))))) => decode(&answer).map_err(QuotaError::of),
            Some(Ok(Ok(Err(problem)))) => Err(QuotaError::of(Error::Refused(problem))),
            _ => {
                let why = format!("no answer to the release in {within:?}");
                Err(QuotaError::Other(Error::Unknown(why)))
            }
        }
    }

    /// Ends the guard and leaves the reservation as it is: by its name another process commits or releases it, or it
    /// comes to its deadline.
    pub fn leave(mut self) -> ReservationName {
        let Named { reservation_id, fence, .. } = self.held.named.clone();
        self.unanswered = None;
        self.end();
        ReservationName { reservation_id, fence }
    }

    /// The request that has not been answered yet, if this is the same once more.
    fn same_again(&self, request: CommitRequest) -> (CommitRequest, Moment) {
        let same = self.unanswered.as_ref().filter(|(before, _)| {
            let id = before.request_id.clone();
            *before == CommitRequest { request_id: id, ..request.clone() }
        });
        same.cloned().unwrap_or_else(|| (request, Moment::now()))
    }

    /// A call that leaves it with another deadline.
    async fn go_on(
        &mut self,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync + 'static,
    ) -> Result<(), QuotaError> {
        let within = self.inner.core.settings.call_timeout;
        let answer = self.inner.core.run_timed_call::<Reserved>(ask, within).await;
        let now = Moment::now();
        match answer {
            Ok((sent, reserved)) => {
                let term = term(sent, &reserved);
                self.held.cell.with(now, |lease| lease.renewed(term, now, roll()));
                self.told = reserved;
                Ok(())
            }
            Err(error) => {
                if let Error::Refused(problem) = &error {
                    self.heed(problem);
                }
                Err(QuotaError::of(error))
            }
        }
    }

    /// If a refusal says that it is over, it is lost, and nothing is owed.
    fn heed(&mut self, problem: &Problem) {
        if let Some(loss) = loss_of(problem) {
            let now = Moment::now();
            let lost = NotRenewed::Lost(loss);
            self.held.cell.with(now, |lease| lease.not_renewed(lost, now, roll()));
            self.is_over = true;
        }
    }

    fn take(&mut self, committed: &Committed, is_final: bool) {
        if is_final {
            self.end();
            return;
        }
        let left = |item: &ReservedItem| -> u64 {
            let same = |left: &&QuotaItem| (&left.quota, &left.path) == (&item.quota, &item.path);
            committed.left.iter().find(same).map_or(0, |left| left.amount)
        };
        let items = &mut self.told.items;
        items.iter_mut().for_each(|item| item.amount = left(item));
        items.retain(|item| item.amount > 0);
    }

    /// Nothing is extended any more, and nothing is given back.
    fn end(&mut self) {
        let now = Moment::now();
        self.held.cell.with(now, |lease| lease.end(Loss::Released, now));
        self.is_over = true;
    }

    /// A call that is repeated in the background until it is decided, or until it could be taken for another one.
    fn owe(
        &self,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync + 'static,
        within: Duration,
    ) -> oneshot::Receiver<Decided> {
        let (done, decided) = oneshot::channel();
        let core = self.inner.core.clone();
        self.inner.core.background.spawn_owed(async move {
            let owed = tokio::time::timeout(within, until_decided(&core, ask));
            let _ = done.send(owed.await.unwrap_or(Ok(None)));
        });
        decided
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let is_over = self.is_over;
        self.end();
        match self.unanswered.take() {
            Some((request, since)) => {
                // What ends the reservation can be said twice; a part of it must not be taken twice.
                let within = match request.is_final {
                    true => Duration::MAX,
                    false => REPEAT_PART_FOR.saturating_sub(Moment::now().since(since)),
                };
                drop(self.owe(calls::commit(request), within));
            }
            None if !is_over && self.on_expiry == OnExpiry::Release => {
                drop(self.owe(self.held.named.release(), Duration::MAX));
            }
            None => {}
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("id", &self.id())
            .field("fence", &self.fence())
            .field("owner", &self.owner)
            .field("items", &self.told.items)
            .field("state", &self.held.cell.state())
            .finish_non_exhaustive()
    }
}
