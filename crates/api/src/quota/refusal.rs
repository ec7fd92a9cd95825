//! What a problem says about quotas.

use crate::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// Why a layer did not let an ask pass.
    Shortage {
        /// Its limit is used up.
        Limit = "limit",
        /// Its limit and the burst on top are.
        Burst = "burst",
        /// The rest is kept for guarantees of others.
        Guarantee = "guarantee",
        /// The rest is kept for those who wait in front.
        Waiting = "waiting",
        /// One owner may not reserve so much there.
        OwnerMax = "ownerMax",
        /// There is no such node: its limit is 0.
        Unknown = "unknown",
    }
}

/// A layer that did not let an ask pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaLayer {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// Its limit; of an owner's bound that.
    pub limit: u64,
    /// What may be used on top.
    pub burst: u64,
    /// Used, here and below; of an owner's bound 0.
    pub committed: u64,
    /// Reserved, here and below; of an owner's bound by that owner.
    pub reserved: u64,
    /// What of `asked` the layer would let pass.
    pub available: u64,
    /// All items of the ask at or below the node.
    pub asked: u64,
    /// So much has to come free. With a debt it can be more than was asked for.
    pub shortfall: u64,
    /// Of the node's rules; 0: there are none.
    pub version: u64,
    /// Why.
    pub kind: Shortage,
}

/// More was named than there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaExcess {
    /// What is counted.
    pub quota: String,
    /// Where in its tree; empty: the root.
    pub path: String,
    /// Whose.
    pub owner: String,
    /// What there is.
    pub has: u64,
    /// What was named.
    pub asked: u64,
}

/// The last report of one who counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaStale {
    /// Its epoch; 0: there is none.
    pub epoch: u64,
    /// How long ago the read was that it, or the refused one, rests on.
    pub age_ms: u64,
}
