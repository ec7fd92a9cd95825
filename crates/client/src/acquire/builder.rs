//! What a caller can say about an acquire.

use super::{
    drive,
    plan::Terms,
    request::{Shape, Wish},
    standing::{Standing, Teller},
};
use crate::{client::Inner, error::Error, guard::Guard};
use sereno_api::{Fencing, Labels};
use std::{sync::Arc, time::Duration};

/// An acquire that is being described; [`Acquire::acquire`] carries it out.
#[must_use = "nothing is asked before acquire() is awaited"]
#[derive(Clone)]
pub struct Acquire {
    inner: Arc<Inner>,
    wish: Wish,
    terms: Terms,
    teller: Teller,
}

impl Acquire {
    pub(crate) fn new(inner: Arc<Inner>, shape: Shape) -> Self {
        let settings = &inner.core.settings;
        let wish = Wish {
            namespace: settings.namespace.clone(),
            shape,
            owner: settings.owner.clone(),
            lease_ttl: None,
            max_hold: None,
            fencing: None,
            labels: Labels::default(),
        };
        let terms = Terms { wait: Duration::ZERO, timeout: None };
        Self { inner, wish, terms, teller: Teller::default() }
    }

    /// The namespace. Default: the client's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.wish.namespace = namespace.into();
        self
    }

    /// Who asks, for people. Default: the client's.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.wish.owner = owner.into();
        self
    }

    /// How long the lease lasts without a renewal. Default: the namespace's. The guard renews it at a third of
    /// this; choose it by the longest pause of this process that it has to survive.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.wish.lease_ttl = Some(ttl);
        self
    }

    /// How long to stand in the queue. Waiters are served in order. After each 10 min a longer wait begins anew at the
    /// end of the queue. Default: not at all. Several locks at once ([`crate::Client::lock_all`]) have no queue.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.terms.wait = wait;
        self
    }

    /// Bound of the whole acquire, outages included. Without [`Self::wait`] a lock that somebody else has is tried
    /// again until then, with growing random pauses. Default: the wait plus 10 s, and one try where nothing is to
    /// be waited for.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = Some(timeout);
        self
    }

    /// Bound of the whole ownership, over all renewals. Default: the namespace's.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.wish.max_hold = Some(max_hold);
        self
    }

    /// Whether the protected resource checks the token. Default: the namespace's.
    pub fn fencing(mut self, fencing: Fencing) -> Self {
        self.wish.fencing = Some(fencing);
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

    /// Acquires. The request id stays the same over all repeats, so a lost answer loses no lock. Dropping the
    /// returned future gives up: what was asked is abandoned in the background.
    ///
    /// # Errors
    /// [`Error::Refused`] with `LOCKED` or `WAIT_TIMEOUT` where somebody else has it ([`Error::is_locked`]), or
    /// with another code where a rule forbids it; [`Error::Unavailable`] when nothing can have been granted;
    /// [`Error::Unknown`] when it may have been, and is being abandoned; [`Error::Invalid`] for a wait for several
    /// locks at once.
    pub async fn acquire(self) -> Result<Guard, Error> {
        if matches!(self.wish.shape, Shape::All(_)) && !self.terms.wait.is_zero() {
            let why = "several locks at once are not waited for in queues: use a time-out instead";
            return Err(Error::Invalid(why.into()));
        }
        drive::acquire(self.inner, self.wish, self.terms, self.teller).await
    }

    pub(crate) fn for_resource(&self, resource: &str) -> Self {
        let mut one = self.clone();
        one.wish.shape = Shape::One(resource.into());
        one
    }

    /// What the leader proclaims. Means nothing for locks.
    pub(crate) fn value(mut self, proclaimed: String) -> Self {
        if let Shape::Campaign { value, .. } = &mut self.wish.shape {
            *value = Some(proclaimed);
        }
        self
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }
}
