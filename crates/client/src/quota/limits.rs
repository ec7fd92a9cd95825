//! The rules of a quota's nodes.

use super::plain::Quotas;
use crate::{core::random_id, error::Error, transport::Ask};
use sereno_api::{LimitPut, Millis, NodeRemoved, PutLimitRequest, QuotaNode, RemoveNodeRequest};
use std::time::Duration;

/// The rules of one node, in the quota's own unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much the node and all below it may use, committed and reserved.
    pub limit: u64,
    /// So much may be used on top.
    pub burst: u64,
    /// Kept for this node whatever its siblings use. At most `limit`; 0 at a root.
    pub guaranteed: u64,
    /// Its share of what all want, against its siblings'. At least 1.
    pub weight: u64,
    /// What one owner may have reserved at once, here and below. `None`: unbounded.
    pub owner_reserved_max: Option<u64>,
    /// Of a root: after so long a waiting reservation goes before all that are not under their guarantee. `None`: 30 s.
    pub patience: Option<Duration>,
    /// Of a root or a node right below it: the region that decides about it.
    pub home: Option<String>,
}

/// A node that is to be created or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitChange {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// Its rules: all of them.
    pub limits: Limits,
    /// The version that was read; 0: it must not exist yet.
    pub expected_version: u64,
    /// Refuse a limit below what is claimed, rather than show a debt.
    pub refuse_debt: bool,
}

impl Limits {
    /// A node that may use this much, without anything else.
    pub fn of(limit: u64) -> Self {
        Self {
            limit,
            burst: 0,
            guaranteed: 0,
            weight: 1,
            owner_reserved_max: None,
            patience: None,
            home: None,
        }
    }
}

impl From<&QuotaNode> for Limits {
    fn from(node: &QuotaNode) -> Self {
        Self {
            limit: node.limit,
            burst: node.burst,
            guaranteed: node.guaranteed,
            weight: node.weight,
            owner_reserved_max: node.owner_reserved_max,
            patience: node.patience.map(Millis::to_duration),
            home: node.home.clone(),
        }
    }
}

impl Quotas {
    /// Creates a node, or replaces its rules. What is above it has to be there.
    ///
    /// # Errors
    /// [`Error::Refused`] with `VERSION_CONFLICT` where it has another version by now.
    pub async fn put_limit(&self, change: LimitChange) -> Result<LimitPut, Error> {
        let LimitChange { quota, path, limits, expected_version, refuse_debt } = change;
        let request = PutLimitRequest {
            namespace: self.namespace.clone(),
            quota,
            path,
            limit: limits.limit,
            burst: limits.burst,
            guaranteed: limits.guaranteed,
            weight: limits.weight,
            owner_reserved_max: limits.owner_reserved_max,
            patience: limits.patience.map(Millis::from),
            home: limits.home,
            expected_version,
            refuse_debt,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = PutLimitRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/put-limit", &request)
        };
        self.client.core().run_call(ask).await
    }

    /// Creates a node with this limit and nothing else, unless it is there already with whatever rules.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn create(&self, quota: &str, path: &str, limit: u64) -> Result<(), Error> {
        let change = LimitChange {
            quota: quota.into(),
            path: path.into(),
            limits: Limits::of(limit),
            expected_version: 0,
            refuse_debt: false,
        };
        match self.put_limit(change).await {
            Err(Error::Refused(problem))
                if problem.code == sereno_api::ErrorCode::VersionConflict =>
            {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// Removes a node that nothing uses, and that has none below it.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn remove_node(
        &self,
        quota: &str,
        path: &str,
        expected_version: u64,
    ) -> Result<NodeRemoved, Error> {
        let request = RemoveNodeRequest {
            namespace: self.namespace.clone(),
            quota: quota.into(),
            path: path.into(),
            expected_version,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = RemoveNodeRequest { born_at, ..request.clone() };
            Ask::post("/v1/quotas/remove-node", &request)
        };
        self.client.core().run_call(ask).await
    }
}
