//! Reads: what can be asked of a state, and the answers. They change nothing and are no commands.

mod quota;

pub use quota::{
    AccountView, Explanation, ListNodes, ListReservations, NodeView, QuotaFigures, RefusalView,
    ReportView, ReservationPage, ReservationView, ShareView,
};

use crate::{
    command::JobDefinition,
    ids::{ObjectId, Slot, Token},
    names::{Caller, Labels, NamespaceName, Owner, Reason, RegionName, ResourceName, Value},
    outcome::{End, Holder, RunState},
    policy::{Fencing, HoldPolicy, Policy},
};

/// One locked or free resource, with its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// The resource.
    pub resource: ResourceName,
    /// Its holder; `None`: free, or in its lock delay.
    pub holder: Option<HolderView>,
    /// Left of the lock delay; 0: none.
    pub lock_delay_ms: u64,
    /// All who wait, also those not shown in `queue`.
    pub waiters: u64,
    /// The first of the queue, in order.
    pub queue: Vec<WaiterView>,
}

/// A holder with everything that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// Owner, token and times.
    pub holder: Holder,
    /// Who asked, as authenticated.
    pub caller: Caller,
    /// The lease's public hash.
    pub lease_hash: u64,
    /// Who checks tokens.
    pub fencing: Fencing,
    /// The caller's notes.
    pub labels: Labels,
    /// Left of the whole ownership, where bounded.
    pub final_deadline_in_ms: Option<u64>,
    /// Since the last renewal (or the grant).
    pub renewed_ago_ms: u64,
    /// What it is besides a lease.
    pub face: FaceView,
}

/// What a lease has beyond a lock's, by its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaceView {
    /// Nothing.
    Plain,
    /// Of a leader.
    Leader {
        /// What it proclaims.
        value: Value,
        /// Rises with each new leader and each proclaim.
        version: u64,
    },
    /// Of a hold.
    Hold {
        /// Payment has begun.
        begun: bool,
    },
}

/// Which holds to list, by name.
#[derive(Clone, Debug)]
pub struct ListHolds {
    /// Where.
    pub namespace: NamespaceName,
    /// Only names that begin so.
    pub prefix: String,
    /// Only of this owner.
    pub owner: Option<Owner>,
    /// Rows at most.
    pub limit: usize,
    /// Only names after this one: the `next` of the page before; empty: from the first.
    pub after: String,
}

/// One page of holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldPage {
    /// Rows.
    pub holds: Vec<LockView>,
    /// Where the next page begins; `None`: this was the last. A page may be empty and still have one.
    pub next: Option<ResourceName>,
}

/// A job with its ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its name.
    pub job: ResourceName,
    /// For the next put's `expectedVersion`, and for claims.
    pub version: u64,
    /// What it is.
    pub definition: JobDefinition,
    /// An operator has paused it.
    pub paused: bool,
    /// Slots before this one that are not in `runs` count as finished.
    pub watermark: Slot,
    /// Newest slot first.
    pub runs: Vec<RunView>,
}

/// One slot of a job's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunView {
    /// The slot.
    pub slot: Slot,
    /// What it has come to.
    pub state: RunState,
    /// Attempts so far.
    pub attempt: u32,
    /// The last attempt.
    pub last: Option<AttemptView>,
    /// Why an operator asked for it or left it out.
    pub reason: Option<Reason>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptView {
    /// Its token.
    pub token: Token,
    /// Who claimed it.
    pub owner: Owner,
    /// By the leader's wall clock, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The same; `None`: under way.
    pub ended_at_ms: Option<u64>,
    /// How its lease ended.
    pub end: Option<End>,
    /// Under way: until its deadline.
    pub expires_in_ms: Option<u64>,
}

/// One waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// 1: next.
    pub place: u64,
    /// In its own words.
    pub owner: Owner,
    /// Since it joined.
    pub waited_ms: u64,
    /// Until its own deadline.
    pub wait_expires_in_ms: u64,
}

/// Which held locks to list, oldest grant first.
#[derive(Clone, Debug)]
pub struct ListLocks {
    /// Where.
    pub namespace: NamespaceName,
    /// Only names that begin so.
    pub prefix: String,
    /// Only of this owner.
    pub owner: Option<Owner>,
    /// Rows at most.
    pub limit: usize,
    /// Only tokens above this: the `next` of the page before.
    pub after: Token,
}

/// One page of held locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPage {
    /// Rows without their queues (`waiters` counts them).
    pub locks: Vec<LockView>,
    /// Where the next page begins; `None`: this was the last. A page may be empty and still have one.
    pub next: Option<Token>,
}

/// A namespace with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceView {
    /// Its name.
    pub namespace: NamespaceName,
    /// For the next PUT's `expectedVersion`.
    pub version: u64,
    /// Its rules.
    pub policy: Policy,
    /// Its rules for holds.
    pub holds: HoldPolicy,
    /// The region that decides about it; `None`: wherever it is asked for.
    pub home: Option<RegionName>,
    /// A fence guard has reported for one of its fence keys.
    pub is_proven: bool,
    /// Active leases.
    pub leases: u64,
    /// Waiting requests.
    pub waiters: u64,
    /// Remembered requests.
    pub reply_records: u64,
}

/// What is due in the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Objects whose deadline has passed and that no sweep has reached (a lower bound above 10,000).
    pub objects: u64,
    /// How long the oldest of them has been due.
    pub oldest_ms: u64,
}

/// A waiting request, as the leader's grace looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingClaim {
    /// The claim.
    pub claim: ObjectId,
}
