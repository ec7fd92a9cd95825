//! Plain typed calls about holds: reads, operators' writes, and those of any instance that acts for an owner.

use super::{calls::Whose, refusal::HoldError};
use crate::{
    client::Client,
    core::random_id,
    error::Error,
    plain::Query,
    transport::{Ask, escape},
};
use sereno_api::{
    ForceReleaseHoldRequest, ForceReleased, Hold, HoldExtended, HoldPage, HoldReleased,
};
use std::time::Duration;

/// One hold, named by whoever acts for its owner.
#[derive(Clone, Debug)]
pub struct HoldName {
    /// `None`: the client's namespace.
    pub namespace: Option<String>,
    /// What is held.
    pub resource: String,
    /// For whom.
    pub owner: String,
    /// Its fence, where it is known: another one's is refused then. A begun hold needs it.
    pub fence: Option<u64>,
}

/// Which holds to list, by name.
#[derive(Clone, Debug, Default)]
pub struct ListHolds {
    /// `None`: the client's namespace.
    pub namespace: Option<String>,
    /// Only names that begin so.
    pub prefix: String,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Answer at once from what the node knows: right for a catalogue page.
    pub stale: bool,
}

impl Client {
    /// Payment has begun: the hold gets a deadline of its own, `ttl` from now, which is not renewed.
    ///
    /// # Errors
    /// [`HoldError::Over`] where it is not the owner's (any more).
    pub async fn begin_hold(
        &self,
        hold: &HoldName,
        ttl: Duration,
    ) -> Result<HoldExtended, HoldError> {
        let ask = self.whose(hold).begin(ttl);
        self.core().run_call(ask).await.map_err(HoldError::of)
    }

    /// Renews a hold; `None`: by the TTL last granted.
    ///
    /// # Errors
    /// As [`Self::begin_hold`]; `MAX_HOLD_REACHED` in [`HoldError::Other`] where nothing is left to add.
    pub async fn renew_hold(
        &self,
        hold: &HoldName,
        ttl: Option<Duration>,
    ) -> Result<HoldExtended, HoldError> {
        let ask = self.whose(hold).renew(ttl);
        self.core().run_call(ask).await.map_err(HoldError::of)
    }

    /// Lets a hold go. Repeatable.
    ///
    /// # Errors
    /// As [`Self::begin_hold`].
    pub async fn release_hold(&self, hold: &HoldName) -> Result<HoldReleased, HoldError> {
        let ask = self.whose(hold).release();
        self.core().run_call(ask).await.map_err(HoldError::of)
    }

    /// Ends the hold with this fence, and no other, in an operator's name. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_HOLDER` when nobody has it with that fence.
    pub async fn force_release_hold(
        &self,
        namespace: Option<&str>,
        resource: &str,
        fence: u64,
        reason: &str,
    ) -> Result<ForceReleased, Error> {
        let request = ForceReleaseHoldRequest {
            namespace: self.namespace_or(namespace),
            resource: resource.into(),
            fence,
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ForceReleaseHoldRequest { born_at, ..request.clone() };
            Ask::post("/v1/holds/force-release", &request)
        };
        self.core().run_call(ask).await
    }

    /// Who has a resource. A free one is an answer too.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn get_hold(&self, namespace: Option<&str>, resource: &str) -> Result<Hold, Error> {
        let query = Query::default().with("namespace", Some(self.namespace_or(namespace))).0;
        self.get(format!("/v1/holds/{}{query}", escape(resource, "/:@+"))).await
    }

    /// One page of what is held.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list_holds(&self, list: &ListHolds) -> Result<HoldPage, Error> {
        let query = Query::default()
            .with("namespace", Some(self.namespace_or(list.namespace.as_deref())))
            .with("prefix", Some(&list.prefix).filter(|prefix| !prefix.is_empty()))
            .with("owner", list.owner.as_ref())
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref())
            .with("consistency", list.stale.then_some("stale"));
        self.get(format!("/v1/holds{}", query.0)).await
    }

    fn whose(&self, hold: &HoldName) -> Whose {
        Whose {
            namespace: self.namespace_or(hold.namespace.as_deref()),
            resource: hold.resource.clone(),
            owner: hold.owner.clone(),
            fence: hold.fence,
        }
    }
}
