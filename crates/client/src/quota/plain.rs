//! The door to all calls about quotas, and its reads.

use super::{calls::items, reserve::Reserve};
use crate::{client::Client, error::Error, plain::Query, transport::escape};
use sereno_api::{
    LedgerPage, QuotaExplanation, QuotaNodeRead, QuotaPage, ReservationPage, ReservationRead,
    ReservationState,
};

/// The quotas of one namespace. Cheap to clone.
#[derive(Clone)]
pub struct Quotas {
    pub(super) client: Client,
    pub(super) namespace: String,
}

/// Which nodes to list, by path.
#[derive(Clone, Debug, Default)]
pub struct ListNodes {
    /// Of which quota. `None`: the roots of all quotas, by name.
    pub quota: Option<String>,
    /// Only paths that begin so.
    pub prefix: String,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which reservations to list, oldest first.
#[derive(Clone, Debug, Default)]
pub struct ListReservations {
    /// Only with something of this quota.
    pub quota: Option<String>,
    /// With a quota: only with something of this node or below it.
    pub path: Option<String>,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only in this state.
    pub state: Option<ReservationState>,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which lines of the ledger to read, in order.
#[derive(Clone, Debug, Default)]
pub struct LedgerFilter {
    /// Only of this quota.
    pub quota: Option<String>,
    /// With a quota: only of this node and those below it.
    pub path: Option<String>,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only from this instant on (RFC 3339).
    pub since: Option<String>,
    /// Only up to this instant.
    pub until: Option<String>,
    /// Only from this line of the audit trail on: `next_from` of the page before.
    pub from: Option<u64>,
    /// Lines of a page.
    pub limit: Option<usize>,
}

impl Client {
    /// The quotas of this client's namespace.
    pub fn quota(&self) -> Quotas {
        Quotas { client: self.clone(), namespace: self.namespace_or(None) }
    }
}

impl Quotas {
    /// Those of another namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Describes a reservation of this much at a node (the empty path is the root); more items can follow.
    pub fn reserve(
        &self,
        quota: impl Into<String>,
        path: impl Into<String>,
        amount: u64,
    ) -> Reserve {
        self.reserve_all([(quota, path, amount)])
    }

    /// The same of several items, as (quota, path, amount): all of them, or none.
    pub fn reserve_all<Q: Into<String>, P: Into<String>>(
        &self,
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Reserve {
        let owner = self.client.core().settings.owner.clone();
        Reserve::new(self.client.inner.clone(), self.namespace.clone(), owner, items(amounts))
    }

    /// One node: its rules and its books, whose use it is, what was reported, what was lent.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_FOUND` where there is no such node: its limit is 0.
    pub async fn get(&self, quota: &str, path: &str) -> Result<QuotaNodeRead, Error> {
        self.get_owners(quota, path, None).await
    }

    /// The same with the next page of owners.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_owners(
        &self,
        quota: &str,
        path: &str,
        cursor: Option<&str>,
    ) -> Result<QuotaNodeRead, Error> {
        let query = self.query().with("cursor", cursor).0;
        let node = match path {
            "" => escape(quota, ":@+"),
            path => format!("{}/{}", escape(quota, ":@+"), escape(path, "/:@+")),
        };
        self.client.get(format!("/v1/quotas/{node}{query}")).await
    }

    /// One page of nodes.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list(&self, list: &ListNodes) -> Result<QuotaPage, Error> {
        let query = self
            .query()
            .with("quota", list.quota.as_ref())
            .with("prefix", Some(&list.prefix).filter(|prefix| !prefix.is_empty()))
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref());
        self.client.get(format!("/v1/quotas{}", query.0)).await
    }

    /// Why a node does not give more: all layers above it, its last refusal, and who has what of it.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn explain(&self, quota: &str, path: &str) -> Result<QuotaExplanation, Error> {
        let path = Some(path).filter(|path| !path.is_empty());
        let query = self.query().with("quota", Some(quota)).with("path", path);
        self.client.get(format!("/v1/quota-explain{}", query.0)).await
    }

    /// One page of reservations that have not ended.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn reservations(&self, list: &ListReservations) -> Result<ReservationPage, Error> {
        let query = self
            .query()
            .with("quota", list.quota.as_ref())
            .with("path", list.path.as_ref().filter(|path| !path.is_empty()))
            .with("owner", list.owner.as_ref())
            .with("state", list.state)
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref());
        self.client.get(format!("/v1/reservations{}", query.0)).await
    }

    /// One reservation that has not ended.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_FOUND` where there is none of that name (any more).
    pub async fn get_reservation(&self, reservation_id: &str) -> Result<ReservationRead, Error> {
        let query = self.query().0;
        self.client.get(format!("/v1/reservations/{}{query}", escape(reservation_id, ""))).await
    }

    /// One page of the ledger: every change of the books, with the sums before and after at every layer.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn ledger(&self, filter: &LedgerFilter) -> Result<LedgerPage, Error> {
        let query = self
            .query()
            .with("quota", filter.quota.as_ref())
            .with("path", filter.path.as_ref().filter(|path| !path.is_empty()))
            .with("owner", filter.owner.as_ref())
            .with("since", filter.since.as_ref())
            .with("until", filter.until.as_ref())
            .with("from", filter.from)
            .with("limit", filter.limit);
        self.client.get(format!("/v1/quota-ledger{}", query.0)).await
    }

    fn query(&self) -> Query {
        Query::default().with("namespace", Some(&self.namespace))
    }
}
