//! A hold that was placed.

use super::{calls::Whose, refusal::HoldError};
use crate::{
    acquire::Holding,
    client::Inner,
    clock::Moment,
    error::NotHeld,
    lease::{Loss, local_deadline},
};
use sereno_api::{HeldAll, HoldExtended, HoldReleased};
use std::{fmt, sync::Arc, time::Duration};

/// A hold on one resource, or on several that were held all at once.
///
/// It is a promise to a customer with an end, so it is **not renewed by itself**, and **dropping it does not release
/// it**: another instance may act for the same owner. It ends with [`Held::release`], with what the sale does, or when
/// its time is over. Every call names the fence, so it never touches somebody else's hold.
pub struct Held {
    inner: Arc<Inner>,
    namespace: String,
    owner: String,
    holdings: Vec<Holding>,
    yours: bool,
    begun: bool,
    end: End,
}

/// When it ends, as far as is known.
#[derive(Clone, Debug)]
struct End {
    deadline: Moment,
    final_deadline: Option<Moment>,
    expires_at: String,
}

impl End {
    fn new(sent: Moment, expires_in_ms: u64, final_in_ms: Option<u64>, expires_at: String) -> Self {
        let at = |ms| local_deadline(sent, Duration::from_millis(ms));
        Self { deadline: at(expires_in_ms), final_deadline: final_in_ms.map(at), expires_at }
    }
}

impl Held {
    pub(super) fn one(
        inner: Arc<Inner>,
        namespace: String,
        sent: Moment,
        held: sereno_api::Held,
    ) -> Self {
        let end = End::new(sent, held.expires_in_ms, held.final_deadline_in_ms, held.expires_at);
        let holding = Holding {
            resource: held.resource,
            fence_key: held.fence_key,
            fencing_token: held.fence,
        };
        Self {
            inner,
            namespace,
            owner: held.owner,
            holdings: vec![holding],
            yours: held.yours,
            begun: held.begun,
            end,
        }
    }

    pub(super) fn all(inner: Arc<Inner>, namespace: String, sent: Moment, held: HeldAll) -> Self {
        let end = End::new(sent, held.expires_in_ms, held.final_deadline_in_ms, held.expires_at);
        let holding = |one: sereno_api::HeldOne| Holding {
            resource: one.resource,
            fence_key: one.fence_key,
            fencing_token: one.fence,
        };
        Self {
            inner,
            namespace,
            owner: held.owner,
            holdings: held.holds.into_iter().map(holding).collect(),
            yours: held.yours,
            begun: held.begun,
            end,
        }
    }

    /// The fencing token: send it along with the sale. Of several resources: the first one's ([`Self::holdings`] has
    /// all); 0 where the service held nothing.
    pub fn fence(&self) -> u64 {
        self.holdings.first().map_or(0, |holding| holding.fencing_token)
    }

    /// Under what the stock remembers the highest fence. Of several resources: the first one's.
    pub fn fence_key(&self) -> &str {
        self.holdings.first().map_or("", |holding| &holding.fence_key)
    }

    /// The resources in the order asked for, with the fence of each.
    pub fn holdings(&self) -> &[Holding] {
        &self.holdings
    }

    /// For whom.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The owner had it already, and it was not extended.
    pub fn is_yours(&self) -> bool {
        self.yours
    }

    /// Payment has begun.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// For people (RFC 3339).
    pub fn expires_at(&self) -> &str {
        &self.end.expires_at
    }

    /// The local deadline: before it nobody else is given the hold, except by an operator.
    pub fn deadline(&self) -> Moment {
        self.end.deadline
    }

    /// No renewal can pass this moment, where the hold as a whole is bounded.
    pub fn final_deadline(&self) -> Option<Moment> {
        self.end.final_deadline
    }

    /// How long it is certain; zero when that is over.
    pub fn remaining(&self) -> Duration {
        Moment::now().until(self.end.deadline)
    }

    /// Whether it is certain at this moment. Looks only at the clock.
    ///
    /// # Errors
    /// [`NotHeld::Lost`] when its time is over.
    pub fn check(&self) -> Result<(), NotHeld> {
        match self.remaining().is_zero() {
            true => Err(NotHeld::Lost(Loss::Deadline)),
            false => Ok(()),
        }
    }

    /// Payment begins: from here on the hold has a deadline of its own, `ttl` from now, which is not renewed, and is
    /// let go or replaced only by its fence. Of several resources each is begun after the other; the first refusal
    /// ends that, and those before it are begun.
    ///
    /// # Errors
    /// [`HoldError::Over`] where it is not this owner's any more: do not take the money.
    pub async fn begin(&mut self, ttl: Duration) -> Result<(), HoldError> {
        self.extend(|whose| whose.begin(ttl)).await?;
        self.begun = true;
        Ok(())
    }

    /// Renews it; `None`: by the TTL last granted. Of several resources each after the other.
    ///
    /// # Errors
    /// [`HoldError::Over`] where it is not this owner's any more; `MAX_HOLD_REACHED` in [`HoldError::Other`] where
    /// nothing is left to add.
    pub async fn renew(&mut self, ttl: Option<Duration>) -> Result<(), HoldError> {
        self.extend(|whose| whose.renew(ttl)).await
    }

    /// Lets it go. `true`: this call ended it (of several: all of them).
    ///
    /// # Errors
    /// [`HoldError::Other`] where the service did not answer: it ends by itself then.
    pub async fn release(self) -> Result<bool, HoldError> {
        let core = &self.inner.core;
        let mut all = true;
        for holding in self.holdings.iter().rev() {
            let ask = self.whose(holding).release();
            let released = core.run_call::<HoldReleased>(ask).await;
            match released.map_err(HoldError::of) {
                Ok(answer) => all &= answer.released,
                // Somebody else's, or nobody's: what was wanted.
                Err(HoldError::Over(_)) => all = false,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    async fn extend<A>(&mut self, ask: impl Fn(Whose) -> A) -> Result<(), HoldError>
    where
        A: Fn(Option<u64>) -> crate::transport::Ask + Send + Sync + 'static,
    {
        let within = self.inner.core.settings.call_timeout;
        let mut end: Option<End> = None;
        for holding in &self.holdings {
            let ask = ask(self.whose(holding));
            let answer = self.inner.core.run_timed_call::<HoldExtended>(ask, within).await;
            let (sent, it) = answer.map_err(HoldError::of)?;
            let one = End::new(sent, it.expires_in_ms, it.final_deadline_in_ms, it.expires_at);
            end = Some(end.filter(|all| all.deadline <= one.deadline).unwrap_or(one));
        }
        if let Some(end) = end {
            self.end = end;
        }
        Ok(())
    }

    fn whose(&self, holding: &Holding) -> Whose {
        Whose {
            namespace: self.namespace.clone(),
            resource: holding.resource.clone(),
            owner: self.owner.clone(),
            fence: Some(holding.fencing_token),
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("namespace", &self.namespace)
            .field("owner", &self.owner)
            .field("holdings", &self.holdings)
            .field("begun", &self.begun)
            .field("expires_at", &self.end.expires_at)
            .finish_non_exhaustive()
    }
}
