//! What is asked about quotas, and what is heard.

use super::heard::typed;
use serde::{Deserialize, Serialize};
use sereno_api::{
    Committed, LimitPut, OnExpiry, QuotaItem, QuotaNodeRead, ReservationRead, ReservationReleased,
    ReservationWaiting, Reserved, Returned, Settled, Settlement,
};

/// What is asked about quotas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum QuotaOp {
    /// Take capacity, or queue for it.
    Reserve {
        /// For whom.
        owner: String,
        /// What, each node once.
        items: Vec<QuotaItem>,
        /// The same over all attempts.
        request: String,
        /// 0: answer now.
        wait_ms: u64,
        /// How long without an extension.
        ttl_ms: u64,
        /// What becomes of it then.
        on_expiry: OnExpiry,
        /// Among those who wait.
        priority: u8,
    },
    /// The outside work has started.
    Begin {
        /// Which reservation.
        of: ReservationOf,
        /// How long it may take.
        ttl_ms: u64,
        /// What becomes of the reservation then.
        on_expiry: OnExpiry,
    },
    /// Reserved capacity is used.
    Commit {
        /// Which reservation.
        of: ReservationOf,
        /// What of it; `None`: all.
        items: Option<Vec<QuotaItem>>,
        /// The rest is given back.
        is_final: bool,
        /// If it comes late it is admitted like a new reservation.
        readmits: bool,
    },
    /// Move the deadline forward.
    Extend {
        /// Which reservation.
        of: ReservationOf,
        /// From now on.
        ttl_ms: u64,
    },
    /// Set new amounts.
    Resize {
        /// Which reservation.
        of: ReservationOf,
        /// Of these nodes.
        items: Vec<QuotaItem>,
    },
    /// End it without use.
    Release {
        /// Which reservation.
        of: ReservationOf,
    },
    /// An operator ends a quarantined one.
    Settle {
        /// Which reservation.
        of: ReservationOf,
        /// How.
        settlement: Settlement,
    },
    /// Committed use is free again.
    Return {
        /// The commit.
        commit: u64,
        /// Whose.
        owner: String,
        /// Where, and how much.
        item: QuotaItem,
        /// The return's own request id.
        request: String,
    },
    /// Create a node, or change its rules.
    PutLimit {
        /// Which.
        node: NodeRules,
        /// 0: it must not be there.
        expected_version: u64,
        /// The put's own request id.
        request: String,
    },
    /// A consistent read of a node.
    Node {
        /// Of which tree.
        quota: String,
        /// Where in it.
        path: String,
    },
    /// A consistent read of a reservation.
    Reservation {
        /// Its name.
        reservation: String,
        /// The request that it was asked for with: not sent along.
        asked: String,
    },
}

/// A reservation, and the write about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationOf {
    /// Its name.
    pub reservation: String,
    /// Its fence, if it is named.
    pub fence: Option<u64>,
    /// The write's own request id.
    pub request: String,
    /// The request that it was asked for with: not sent along.
    pub asked: String,
}

/// A node and its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRules {
    /// Of which tree.
    pub quota: String,
    /// Where in it.
    pub path: String,
    /// The limit.
    pub limit: u64,
    /// On top of it.
    pub burst: u64,
    /// Kept for it.
    pub guaranteed: u64,
    /// Against its siblings'.
    pub weight: u64,
    /// Of one owner.
    pub owner_reserved_max: Option<u64>,
}

impl NodeRules {
    /// The most that may ever be used.
    pub fn cap(&self) -> u64 {
        self.limit + self.burst
    }
}

impl QuotaOp {
    /// Its own request id.
    pub fn request(&self) -> Option<&str> {
        match self {
            Self::Reserve { request, .. }
            | Self::Return { request, .. }
            | Self::PutLimit { request, .. } => Some(request),
            Self::Node { .. } | Self::Reservation { .. } => None,
            _ => self.of().map(|of| of.request.as_str()),
        }
    }

    /// The reservation that it writes about.
    pub fn of(&self) -> Option<&ReservationOf> {
        match self {
            Self::Begin { of, .. }
            | Self::Commit { of, .. }
            | Self::Extend { of, .. }
            | Self::Resize { of, .. }
            | Self::Release { of }
            | Self::Settle { of, .. } => Some(of),
            _ => None,
        }
    }
}

/// What an answer about quotas means.
#[derive(Clone, Debug, PartialEq)]
pub enum QuotaHeard {
    /// To a reserve, a begin, an extend, a resize.
    Reserved(Reserved),
    /// To a reserve: in the queue.
    Waiting(ReservationWaiting),
    /// To a commit.
    Committed(Committed),
    /// To a release.
    Released(ReservationReleased),
    /// To a settle.
    Settled(Settled),
    /// To a return.
    Returned(Returned),
    /// To a put of a limit.
    Put(LimitPut),
    /// To a read of a node.
    Node(Box<QuotaNodeRead>),
    /// To a read of a reservation.
    Reservation(Box<ReservationRead>),
}

impl QuotaHeard {
    /// Reads an answer that is no error.
    pub(super) fn of(op: &QuotaOp, status: u16, body: &serde_json::Value) -> Result<Self, String> {
        match op {
            QuotaOp::Reserve { .. } if status == 202 => typed(body).map(Self::Waiting),
            QuotaOp::Reserve { .. }
            | QuotaOp::Begin { .. }
            | QuotaOp::Extend { .. }
            | QuotaOp::Resize { .. } => typed(body).map(Self::Reserved),
            QuotaOp::Commit { .. } => typed(body).map(Self::Committed),
            QuotaOp::Release { .. } => typed(body).map(Self::Released),
            QuotaOp::Settle { .. } => typed(body).map(Self::Settled),
            QuotaOp::Return { .. } => typed(body).map(Self::Returned),
            QuotaOp::PutLimit { .. } => typed(body).map(Self::Put),
            QuotaOp::Node { .. } => typed(body).map(Box::new).map(Self::Node),
            QuotaOp::Reservation { .. } => typed(body).map(Box::new).map(Self::Reservation),
        }
    }

    /// Revision and cluster time.
    pub fn decided(&self) -> (u64, u64) {
        match self {
            Self::Reserved(it) => (it.revision, it.cluster_time_ms),
            Self::Waiting(it) => (it.revision, it.cluster_time_ms),
            Self::Committed(it) => (it.revision, it.cluster_time_ms),
            Self::Released(it) => (it.revision, it.cluster_time_ms),
            Self::Settled(it) => (it.revision, it.cluster_time_ms),
            Self::Returned(it) => (it.revision, it.cluster_time_ms),
            Self::Put(it) => (it.revision, it.cluster_time_ms),
            Self::Node(it) => (it.revision, it.cluster_time_ms),
            Self::Reservation(it) => (it.revision, it.cluster_time_ms),
        }
    }

    /// An answer that was given before; its first revision.
    pub fn replays(&self) -> (bool, Option<u64>) {
        match self {
            Self::Reserved(it) => (it.replayed, it.original_revision),
            Self::Waiting(it) => (it.replayed, it.original_revision),
            Self::Committed(it) => (it.replayed, it.original_revision),
            Self::Released(it) => (it.replayed, it.original_revision),
            Self::Settled(it) => (it.replayed, it.original_revision),
            Self::Returned(it) => (it.replayed, it.original_revision),
            Self::Put(it) => (it.replayed, it.original_revision),
            Self::Node(_) | Self::Reservation(_) => (false, None),
        }
    }

    /// It changes nothing.
    pub fn is_look(&self) -> bool {
        matches!(self, Self::Node(_) | Self::Reservation(_) | Self::Waiting(_))
    }

    /// In a word, for the report.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reserved(_) => "reserved",
            Self::Waiting(_) => "waiting",
            Self::Committed(it) if it.readmits.is_some() => "readmitted",
            Self::Committed(_) => "committed",
            Self::Released(_) => "released",
            Self::Settled(_) => "settled",
            Self::Returned(_) => "returned",
            Self::Put(_) => "put",
            Self::Node(_) | Self::Reservation(_) => "read",
        }
    }
}
