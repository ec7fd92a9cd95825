//! What a caller can say about a campaign, and the loop of those who want to lead for ever.

use super::{
    leadership::Leadership,
    observe::{Observation, Observer},
};
use crate::{
    acquire::{Acquire, Shape, Standing},
    client::{Client, Inner},
    error::Error,
    follow::Following,
};
use sereno_api::Fencing;
use std::{future::Future, ops::ControlFlow, sync::Arc, time::Duration};

/// An election by its name, and a campaign for it that is being described; [`Campaign::campaign`] carries it out.
///
/// By default a campaign takes as long as it takes: it stands in the queue, begins anew when a wait is over (after
/// 10 min, at the end of the queue), and asks on while the service is not reached. [`Campaign::wait`] and
/// [`Campaign::timeout`] bound it.
#[must_use = "nothing is asked before campaign() is awaited"]
#[derive(Clone)]
pub struct Campaign {
    inner: Arc<Inner>,
    acquire: Acquire,
    namespace: String,
    election: String,
}

impl Client {
    /// An election: to campaign for it, or to observe it.
    pub fn election(&self, name: impl Into<String>) -> Campaign {
        let election = name.into();
        let shape = Shape::Campaign { election: election.clone(), value: None };
        let acquire = Acquire::new(self.inner.clone(), shape).wait(Duration::MAX);
        let namespace = self.namespace_or(None);
        Campaign { inner: self.inner.clone(), acquire, namespace, election }
    }
}

impl Campaign {
    /// The namespace. Default: the client's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self.acquire = self.acquire.namespace(self.namespace.clone());
        self
    }

    /// Who campaigns. A hand-off names it; a second campaign by the same name takes the place of a wait by the first.
    /// Default: the client's owner.
    pub fn candidate(mut self, candidate: impl Into<String>) -> Self {
        self.acquire = self.acquire.owner(candidate);
        self
    }

    /// What followers want to know of the leader, an address for instance (at most 4096 bytes). Default: empty.
    /// A leader changes it with [`Leadership::proclaim`].
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.acquire = self.acquire.value(value.into());
        self
    }

    /// How long a term lasts without a renewal. Default: the namespace's. It is renewed at a third of this.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.acquire = self.acquire.ttl(ttl);
        self
    }

    /// How long to stand in the queue; zero: lead at once or not at all. Default: as long as it takes.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.acquire = self.acquire.wait(wait);
        self
    }

    /// Bound of the whole campaign, outages included. Default: the wait plus 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.acquire = self.acquire.timeout(timeout);
        self
    }

    /// Bound of a term over all renewals. Default: the namespace's.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.acquire = self.acquire.max_hold(max_hold);
        self
    }

    /// Whether the resources that the leader writes to check the term. Default: the namespace's.
    pub fn fencing(mut self, fencing: Fencing) -> Self {
        self.acquire = self.acquire.fencing(fencing);
        self
    }

    /// A note for people, shown in reads.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.acquire = self.acquire.label(key, value);
        self
    }

    /// Calls `tell` whenever it is known anew how the campaign is doing: its place in the queue, or that the service
    /// does not answer. On the client's thread, so briefly.
    pub fn on_standing(mut self, tell: impl Fn(&Standing) + Send + Sync + 'static) -> Self {
        self.acquire = self.acquire.on_standing(tell);
        self
    }

    /// Campaigns, and leads. The request id stays the same over all repeats, so a lost answer loses no election.
    /// Dropping the returned future gives up: what was asked is abandoned in the background.
    ///
    /// # Errors
    /// [`Error::Refused`] with `LOCKED` or `WAIT_TIMEOUT` where somebody else leads and the wait is bounded
    /// ([`Error::is_locked`]), or with another code where a rule forbids it; [`Error::Unavailable`] and
    /// [`Error::Unknown`] when the time-out is over.
    pub async fn campaign(self) -> Result<Leadership, Error> {
        self.acquire.acquire().await.map(Leadership::new)
    }

    /// Campaigns and does `work` as the leader, again and again: after a loss, which drops the work where it stands,
    /// it campaigns anew; after the work's end it resigns, and goes on unless the work says [`ControlFlow::Break`].
    ///
    /// # Errors
    /// As for [`Self::campaign`]; a campaign without bounds is only ended by a refusal.
    pub async fn campaign_forever<T, F, W>(self, mut work: F) -> Result<T, Error>
    where
        F: FnMut(Arc<Leadership>) -> W,
        W: Future<Output = ControlFlow<T>>,
    {
        loop {
            let leadership = Arc::new(self.clone().campaign().await?);
            let Ok(end) = leadership.run(work(leadership.clone())).await else { continue };
            // Where no answer comes the term ends by itself.
            let _ = leadership.resign_shared().await;
            if let ControlFlow::Break(output) = end {
                return Ok(output);
            }
        }
    }

    /// Observes who leads: the record as it is, at once, and then each change of it.
    pub fn observe(&self) -> Observation {
        self.observe_after(None)
    }

    /// Observes what came after a cursor that another observation has told.
    pub fn observe_from(&self, cursor: impl Into<String>) -> Observation {
        self.observe_after(Some(cursor.into()))
    }

    fn observe_after(&self, cursor: Option<String>) -> Observation {
        let observer = Observer::new(self.namespace.clone(), self.election.clone(), cursor);
        Observation::new(Following::start(&self.inner, observer))
    }
}
