//! Placing a hold: what a caller can say about it, and what to do without the service.

use super::{held::Held, refusal::HoldError};
use crate::{
    client::{Client, Inner},
    core::random_id,
    transport::Ask,
};
use sereno_api::{HoldAllRequest, HoldRef, HoldRequest, Labels, Millis};
use std::{sync::Arc, time::Duration};

/// Where nothing else is said.
const TTL: Duration = Duration::from_secs(600);
/// How long a buyer waits for a service that is not there, where the sale goes on without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A hold that is being described; [`PlaceHold::hold`] asks for it.
///
/// It never waits: it is held, or somebody else has it ([`HoldError::Taken`]). Whoever has it already gets the same
/// hold again, not extended.
#[must_use = "nothing is asked before hold() is awaited"]
#[derive(Clone)]
pub struct PlaceHold {
    inner: Arc<Inner>,
    what: What,
    wish: Wish,
    timeout: Option<Duration>,
}

#[derive(Clone)]
enum What {
    One(String),
    All(Vec<String>),
}

#[derive(Clone)]
struct Wish {
    namespace: String,
    owner: String,
    ttl: Duration,
    max_hold: Option<Duration>,
    replaces: Vec<HoldRef>,
    labels: Labels,
}

/// What to do when the service is not reached, or takes nothing now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnavailable {
    /// Give the error.
    #[default]
    Fail,
    /// Go on without a hold: [`Protection::Unprotected`]. The stock transaction decides, which it has to do anyway.
    Degrade,
}

/// What stands behind a sale.
#[derive(Debug)]
pub enum Protection {
    /// A hold: nobody else can buy it meanwhile.
    Held(Held),
    /// None, for the service did not serve. The stock transaction decides who gets it.
    Unprotected {
        /// What it looked like, for the log. The hold may have been placed all the same: the same owner finds it by
        /// asking again, and else it ends by itself.
        reason: HoldError,
    },
}

/// A [`PlaceHold`] that may do without the service.
#[must_use = "nothing is asked before hold() is awaited"]
#[derive(Clone)]
pub struct PlaceHoldOr {
    place: PlaceHold,
    on_unavailable: OnUnavailable,
}

impl Client {
    /// A hold on one resource: name the thing that can be sold once (the SKU, the seat).
    pub fn hold(&self, resource: impl Into<String>) -> PlaceHold {
        PlaceHold::new(self, What::One(resource.into()))
    }

    /// A hold on up to 64 resources, all or none, with one deadline.
    pub fn hold_all(&self, resources: impl IntoIterator<Item = impl Into<String>>) -> PlaceHold {
        PlaceHold::new(self, What::All(resources.into_iter().map(Into::into).collect()))
    }
}

impl PlaceHold {
    fn new(client: &Client, what: What) -> Self {
        let settings = &client.core().settings;
        let wish = Wish {
            namespace: settings.namespace.clone(),
            owner: settings.owner.clone(),
            ttl: TTL,
            max_hold: None,
            replaces: Vec::new(),
            labels: Labels::default(),
        };
        Self { inner: client.inner.clone(), what, wish, timeout: None }
    }

    /// The namespace. Default: the client's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.wish.namespace = namespace.into();
        self
    }

    /// For whom: a cart, a customer, a session, as every instance of the application knows it. Default: the client's
    /// owner, which is this one process.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.wish.owner = owner.into();
        self
    }

    /// How long it is kept unless it is renewed. Default: 10 min.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.wish.ttl = ttl;
        self
    }

    /// Bound of the whole hold over all renewals. Default: the namespace's.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.wish.max_hold = Some(max_hold);
        self
    }

    /// Ends this hold of the same owner in the same moment; where the new one is refused it stays as it was.
    pub fn replaces(mut self, held: &Held) -> Self {
        let of = |holding: &crate::acquire::Holding| HoldRef {
            resource: holding.resource.clone(),
            fence: Some(holding.fencing_token),
        };
        self.wish.replaces.extend(held.holdings().iter().map(of));
        self
    }

    /// The same by name, for an instance that does not have it. `fence`: where it is known; a begun hold needs it.
    pub fn replaces_named(mut self, resource: impl Into<String>, fence: Option<u64>) -> Self {
        self.wish.replaces.push(HoldRef { resource: resource.into(), fence });
        self
    }

    /// A note for people, shown in reads.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.wish.labels.0.insert(key.into(), value.into());
        self
    }

    /// How long to ask a service that does not answer. Default: the client's call time-out (10 s), or 2 s with
    /// [`OnUnavailable::Degrade`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What to do without the service. Default: [`OnUnavailable::Fail`].
    pub fn on_unavailable(self, on_unavailable: OnUnavailable) -> PlaceHoldOr {
        PlaceHoldOr { place: self, on_unavailable }
    }

    /// Asks for it. The request id stays the same over all repeats, so a lost answer places no second hold.
    ///
    /// # Errors
    /// [`HoldError::Taken`], [`HoldError::Limit`], or else what happened. After an [`crate::Error::Unknown`] it may be
    /// held: the same owner finds it by asking again, and else it ends by itself.
    pub async fn hold(self) -> Result<Held, HoldError> {
        let request_id = random_id();
        let core = self.inner.core.clone();
        let Self { inner, what, wish, timeout } = self;
        let timeout = timeout.unwrap_or(core.settings.call_timeout);
        let namespace = wish.namespace.clone();
        match what {
            What::One(resource) => {
                let ask = move |born_at| wish.ask_one(&resource, &request_id, born_at);
                let (sent, held) =
                    core.run_timed_call(ask, timeout).await.map_err(HoldError::of)?;
                Ok(Held::one(inner, namespace, sent, held))
            }
            What::All(resources) => {
                let ask = move |born_at| wish.ask_all(&resources, &request_id, born_at);
                let (sent, held) =
                    core.run_timed_call(ask, timeout).await.map_err(HoldError::of)?;
                Ok(Held::all(inner, namespace, sent, held))
            }
        }
    }
}

impl PlaceHoldOr {
    /// As [`PlaceHold::hold`].
    ///
    /// # Errors
    /// As [`PlaceHold::hold`], less what [`OnUnavailable::Degrade`] goes on without.
    pub async fn hold(self) -> Result<Protection, HoldError> {
        let Self { mut place, on_unavailable } = self;
        if on_unavailable == OnUnavailable::Degrade {
            let usual = place.inner.core.settings.call_timeout;
            place.timeout.get_or_insert(usual.min(PATIENCE));
        }
        match (place.hold().await, on_unavailable) {
            (Ok(held), _) => Ok(Protection::Held(held)),
            (Err(reason), OnUnavailable::Degrade) if reason.is_unavailable() => {
                Ok(Protection::Unprotected { reason })
            }
            (Err(error), _) => Err(error),
        }
    }
}

impl Wish {
    fn ask_one(&self, resource: &str, request_id: &str, born_at: Option<u64>) -> Ask {
        let request = HoldRequest {
            namespace: self.namespace.clone(),
            resource: resource.into(),
            owner: self.owner.clone(),
            request_id: request_id.into(),
            ttl: Millis::from(self.ttl),
            max_hold: self.max_hold.map(Millis::from),
            replaces: self.replaces.clone(),
            labels: self.labels.clone(),
            born_at,
        };
        Ask::post("/v1/holds/hold", &request)
    }

    fn ask_all(&self, resources: &[String], request_id: &str, born_at: Option<u64>) -> Ask {
        let request = HoldAllRequest {
            namespace: self.namespace.clone(),
            resources: resources.to_vec(),
            owner: self.owner.clone(),
            request_id: request_id.into(),
            ttl: Millis::from(self.ttl),
            max_hold: self.max_hold.map(Millis::from),
            replaces: self.replaces.clone(),
            labels: self.labels.clone(),
            born_at,
        };
        Ask::post("/v1/holds/hold-all", &request)
    }
}
