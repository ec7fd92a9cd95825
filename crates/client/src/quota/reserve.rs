//! What a caller can say about a reservation before there is one.

use super::{calls::items, keep::term, refusal::QuotaError, reservation::Reservation};
use crate::{
    acquire::{self, Standing, Teller, Terms, Wanted},
    client::Inner,
    clock::Moment,
    core::{Core, Heard},
    lease::{Loss, NotRenewed, Term},
    transport::Ask,
};
use sereno_api::{
    ErrorCode, Family, Labels, Millis, OnExpiry, QuotaItem, ReserveRequest, Reserved,
};
use std::{sync::Arc, time::Duration};

/// Where nothing else is said.
const TTL: Duration = Duration::from_secs(60);

/// A reservation that is being described; [`Reserve::reserve`] asks for it. All its items are granted at all layers, or
/// none is.
#[must_use = "nothing is asked before reserve() is awaited"]
#[derive(Clone)]
pub struct Reserve {
    inner: Arc<Inner>,
    wish: Wish,
    terms: Terms,
    teller: Teller,
}

/// Everything about a request but its id.
#[derive(Clone)]
pub(super) struct Wish {
    pub namespace: String,
    pub owner: String,
    pub items: Vec<QuotaItem>,
    pub ttl: Duration,
    pub max_lifetime: Option<Duration>,
    pub on_expiry: OnExpiry,
    pub priority: u8,
    pub labels: Labels,
    /// Extended by itself.
    pub is_kept: bool,
}

/// What the service granted.
#[derive(Debug)]
pub(super) struct Grant {
    pub reserved: Reserved,
    pub term: Term,
}

impl Reserve {
    pub(super) fn new(
        inner: Arc<Inner>,
        namespace: String,
        owner: String,
        items: Vec<QuotaItem>,
    ) -> Self {
        let wish = Wish {
            namespace,
            owner,
            items,
            ttl: TTL,
            max_lifetime: None,
            on_expiry: OnExpiry::Release,
            priority: 0,
            labels: Labels::default(),
            is_kept: false,
        };
        let terms = Terms { wait: Duration::ZERO, timeout: None };
        Self { inner, wish, terms, teller: Teller::default() }
    }

    /// Another item. Amounts at the same node are added up.
    pub fn and(mut self, quota: impl Into<String>, path: impl Into<String>, amount: u64) -> Self {
        self.wish.items.extend(items([(quota, path, amount)]));
        self
    }

    /// For whom: the one whose use it is, in reads, in the ledger and against a bound for each owner. Default: the
    /// client's owner, which is this one process.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.wish.owner = owner.into();
        self
    }

    /// How long it lasts without an extension. Default: 1 min.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.wish.ttl = ttl;
        self
    }

    /// Bound of its life over all extensions. Default: 24 h.
    pub fn max_lifetime(mut self, max_lifetime: Duration) -> Self {
        self.wish.max_lifetime = Some(max_lifetime);
        self
    }

    /// What becomes of it when its deadline passes and nobody has said anything: also what a crash of this process
    /// leads to, and a drop of the guard. Default: it is given back.
    pub fn on_expiry(mut self, fate: OnExpiry) -> Self {
        self.wish.on_expiry = fate;
        self
    }

    /// Extends it by itself, at a third of its TTL with some jitter, until it is committed, released or dropped, or
    /// its longest life is over.
    pub fn keep_extended(mut self) -> Self {
        self.wish.is_kept = true;
        self
    }

    /// Higher ones go first among those who wait inside one tenant. Default: 0.
    pub fn priority(mut self, priority: u8) -> Self {
        self.wish.priority = priority;
        self
    }

    /// How long to queue for it. Who waits is granted by share, and nobody is passed by for ever; see `docs/quotas.md`.
    /// Default: not at all.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.terms.wait = wait;
        self
    }

    /// Bound of the whole call, outages included. Without [`Self::wait`] a reservation for which there is no room is
    /// tried again until then, with growing random pauses, unless it could never be had. Default: the wait plus 10 s,
    /// and one try where nothing is to be waited for.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = Some(timeout);
        self
    }

    /// A note for people, shown in reads.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.wish.labels.0.insert(key.into(), value.into());
        self
    }

    /// Calls `tell` whenever it is known anew how the request is doing: its place in the queue, or that the service
    /// does not answer. On the client's thread, so briefly.
    pub fn on_standing(mut self, tell: impl Fn(&Standing) + Send + Sync + 'static) -> Self {
        self.teller = Teller::new(tell);
        self
    }

    /// Asks for it. The request id stays the same over all repeats, so a lost answer takes nothing twice. Dropping the
    /// returned future gives up: what was asked is abandoned in the background.
    ///
    /// # Errors
    /// [`QuotaError::Exhausted`] names every layer that is in the way; [`QuotaError::is_exhausted`] is also true of a
    /// wait that is over. After [`crate::Error::Unknown`] it may have been granted, and is being abandoned.
    pub async fn reserve(self) -> Result<Reservation, QuotaError> {
        let Self { inner, wish, terms, teller } = self;
        acquire::acquire(inner, wish, terms, teller).await.map_err(QuotaError::of)
    }
}

impl Wanted for Wish {
    type Grant = Grant;
    type Held = Reservation;

    fn family(&self) -> Family {
        Family::Quota
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn ask(&self, request_id: &str, wait: Option<Duration>, born_at: Option<u64>) -> Ask {
        let request = ReserveRequest {
            namespace: self.namespace.clone(),
            owner: self.owner.clone(),
            items: self.items.clone(),
            request_id: request_id.into(),
            ttl: Millis::from(self.ttl),
            max_lifetime: self.max_lifetime.map(Millis::from),
            on_expiry: Some(self.on_expiry),
            priority: Some(self.priority),
            wait_timeout: wait.map(Millis::from),
            labels: self.labels.clone(),
            born_at,
        };
        Ask::post("/v1/quotas/reserve", &request)
    }

    fn grant(&self, sent: Moment, body: &[u8]) -> Result<Grant, String> {
        let reserved: Reserved = serde_json::from_slice(body)
            .map_err(|error| format!("the answer was not understood: {error}"))?;
        Ok(Grant { term: term(sent, &reserved), reserved })
    }

    /// The same request: its answer says how long the grant lasts from now on.
    fn confirming(&self, core: &Core, request_id: &str, _: &Grant) -> Ask {
        self.ask(request_id, None, core.born_at())
    }

    fn confirm(&self, grant: &mut Grant, _: Moment, heard: &Heard) -> Result<(), NotRenewed> {
        match heard {
            Heard::Done(answer) if answer.status == 200 => {
                *grant =
                    self.grant(answer.sent, &answer.body).map_err(|_| NotRenewed::Undecided)?;
                Ok(())
            }
            Heard::Problem(problem) if problem.code == ErrorCode::ReservationEnded => {
                let how = problem.reason.map_or("expired", |reason| reason.as_str());
                Err(NotRenewed::Lost(Loss::Ended(how.into())))
            }
            _ => Err(NotRenewed::Undecided),
        }
    }

    fn hold(self, inner: Arc<Inner>, grant: Grant) -> Reservation {
        Reservation::new(inner, &self, grant)
    }
}
