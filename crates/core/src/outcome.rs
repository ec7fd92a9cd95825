//! Outcomes: what the log decided, as types. Figures are those of the moment of the answer.
//!
//! Outcomes are hashed into the outcome chain, so their encoding belongs to the level, like commands'.

mod quota;

pub use quota::{
    Committed, Drift, Excess, Exhausted, Layer, QuotaDone, Reconciled, ReservationState, Reserved,
    ReservedItem, Shared, Shortage,
};

use crate::{
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Slot, Token},
    names::{Invalid, Owner, RegionName, ResourceName, Value},
    policy::Fencing,
};
use borsh::{BorshDeserialize, BorshSerialize};

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Outcome {
    /// When this answer was decided, in the total order.
    pub revision: Revision,
    /// The entry's cluster time.
    pub time: ClusterTime,
    /// For an answer from the reply memory: the revision of the first one.
    pub replayed: Option<Revision>,
    /// Done, or refused.
    pub result: Result<Done, Refusal>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Done {
    /// The lock, or all the locks, are held.
    Granted(Grant),
    /// In the queue.
    Waiting(Waiting),
    /// The lease goes on.
    Renewed(Renewed),
    /// One result per lease, in the order given.
    RenewedMany(Vec<Result<Renewed, Refusal>>),
    /// The lease was ended by this command, or `already` how.
    Released {
        /// `None`: this command ended it.
        already: Option<NotReleased>,
    },
    /// The request can hold nothing any more.
    Abandoned {
        /// What it was before.
        was: AbandonedWas,
    },
    /// The lease with that token was ended.
    ForceReleased {
        /// Its token.
        token: Token,
    },
    /// The namespace has this version now.
    NamespacePut {
        /// 1 for a new one.
        version: u64,
    },
    /// The claim was ended (`true`), or had been asked for, or had ended itself.
    DesertedEnded(bool),
    /// Tokens to come are at least this.
    TokenFloorSet {
        /// The floor in force.
        floor: Token,
    },
    /// The level in force.
    LevelRaised {
        /// The level.
        level: u32,
    },
    /// No node trims from here on.
    TrimHeld,
    /// The candidate leads.
    Elected(Elected),
    /// The leader's value is this one now.
    Proclaimed {
        /// The record's version with it.
        version: u64,
    },
    /// The successor leads.
    HandedOff {
        /// Its term.
        term: Token,
    },
    /// The resources are held for the owner.
    Held(Held),
    /// The hold goes on: renewed, or begun.
    HoldExtended(HoldExtended),
    /// The owner has no such hold any more.
    HoldReleased {
        /// This request ended it.
        released: bool,
    },
    /// The job has this version now.
    JobPut {
        /// 1 for a new one.
        version: u64,
    },
    /// The attempt is the caller's.
    RunClaimed(RunClaimed),
    /// The attempt has ended by its own account.
    RunFinished(RunFinished),
    /// An operator has changed a job.
    JobChanged {
        /// Whether it is paused now.
        paused: bool,
        /// Of a skip or an extra run.
        slot: Option<Slot>,
    },
    /// A guard's report is on record.
    GuardReported,
    /// About a quota.
    Quota(QuotaDone),
    /// The region is on record.
    RegionSet,
}

impl Done {
    /// The grant that it tells of, if it does.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Granted(grant) => Some(grant),
            Self::Elected(elected) => Some(&elected.grant),
            Self::Held(held) => Some(&held.grant),
            Self::RunClaimed(run) => Some(&run.grant),
            _ => None,
        }
    }

    /// The object that holds what was asked for, if something is held.
    pub fn held_by(&self) -> Option<ObjectId> {
        match self {
            Self::Quota(QuotaDone::Reserved(reserved)) => Some(reserved.claim),
            other => other.grant().map(|grant| grant.claim),
        }
    }
}

/// A won campaign, fresh or repeated.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Elected {
    /// The lease; its one token is the term.
    pub grant: Grant,
    /// What the leader proclaims.
    pub value: Value,
    /// Of the record.
    pub version: u64,
}

/// A hold, fresh, repeated, or one that the owner had already.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Held {
    /// The lease; its tokens are the fences.
    pub grant: Grant,
    /// For whom.
    pub owner: Owner,
    /// The owner had it already.
    pub yours: bool,
    /// Payment has begun.
    pub begun: bool,
}

/// A hold that goes on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HoldExtended {
    /// As in [`Renewed`].
    pub renewed: Renewed,
    /// Payment has begun.
    pub begun: bool,
}

/// A claimed attempt, fresh or repeated.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RunClaimed {
    /// The lease.
    pub grant: Grant,
    /// Which slot.
    pub slot: Slot,
    /// 1 for the first.
    pub attempt: u32,
}

/// What a slot has come to when an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RunFinished {
    /// Which slot.
    pub slot: Slot,
    /// Which attempt.
    pub attempt: u32,
    /// What the slot has come to.
    pub state: RunState,
}

/// What a slot has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum RunState {
    /// An operator asked for it; nobody has claimed it yet.
    Asked,
    /// An attempt is under way.
    Claimed,
    /// The last attempt died or failed, and another may be claimed.
    Retry,
    /// Done.
    Succeeded,
    /// The last attempt failed by its own account, and the retries are used up.
    Failed,
    /// The last attempt died, and the retries are used up.
    Lost,
    /// An operator left it out, or a later slot took its place.
    Skipped,
}

impl RunState {
    /// Whether it may still run, or does.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Asked | Self::Claimed | Self::Retry)
    }
}

/// A grant, fresh or repeated.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Grant {
    /// The claim that holds.
    pub claim: ObjectId,
    /// Proves the ownership.
    pub lease_id: LeaseId,
    /// The resources in the order asked for, each with its token.
    pub holdings: Vec<(ResourceName, Token)>,
    /// Who must check tokens.
    pub fencing: Fencing,
    /// Deadline minus the entry's time.
    pub expires_in_ms: u64,
    /// The end of the whole ownership, where `maxHold` bounds it.
    pub final_deadline_in_ms: Option<u64>,
}

/// In the queue.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Waiting {
    /// The claim that waits.
    pub claim: ObjectId,
    /// 1: next.
    pub place: u64,
    /// Until the wait times out.
    pub wait_expires_in_ms: u64,
}

/// The lease goes on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Renewed {
    /// The token of the holding named.
    pub token: Token,
    /// Deadline minus the entry's time.
    pub expires_in_ms: u64,
    /// Set where `maxHold` bounds the ownership.
    pub final_deadline_in_ms: Option<u64>,
    /// The renewal was cut short by `maxHold`.
    pub clipped: bool,
}

/// How an ownership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum End {
    /// By its owner's Release.
    Released,
    /// The TTL passed without a renewal.
    Expired,
    /// `maxHold` was used up.
    MaxHold,
    /// By an operator.
    Forced,
    /// By the owner's Abandon, or because nobody asked for the hand-over.
    Abandoned,
    /// To a named successor.
    HandedOff,
    /// Of a run: by its own account.
    Finished,
    /// Of a hold: by another of the same owner that takes its place.
    Replaced,
    /// Of a reservation: all of it that was wanted is used.
    Committed,
}

impl End {
    /// As in the HTTP interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::MaxHold => "maxHold",
            Self::Forced => "forced",
            Self::Abandoned => "abandoned",
            Self::HandedOff => "handedOff",
            Self::Finished => "finished",
            Self::Replaced => "replaced",
            Self::Committed => "committed",
        }
    }
}

/// Why a Release did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum NotReleased {
    /// The lease had ended before.
    Ended(End),
    /// No such lease is remembered.
    Unknown,
}

/// What an abandoned request was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum AbandonedWas {
    /// Not seen yet: a copy that arrives later is refused.
    Unseen,
    /// In the queue.
    Waiting,
    /// Holding.
    Granted,
    /// Granted once and ended since.
    Ended(End),
    /// Refused before.
    Refused(Code),
    /// A write that was done, and stays.
    Done,
}

/// Why nothing was done. The code says what happened; the detail has the figures.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// When another try makes sense.
    pub retry_after_ms: Option<u64>,
    /// What belongs to the code.
    pub detail: Detail,
}

impl Refusal {
    /// A refusal without figures.
    pub fn new(code: Code) -> Self {
        Self { code, retry_after_ms: None, detail: Detail::None }
    }

    /// The same with a detail.
    pub fn with(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// The same with a hint when to try again.
    pub fn retry_after(self, ms: u64) -> Self {
        Self { retry_after_ms: Some(ms), ..self }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::new(Code::InvalidArgument).with(Detail::Invalid(invalid))
    }
}

/// Codes that the log decides. The door adds those that no log entry decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Code {
    /// A field breaks a rule of the namespace's policy.
    InvalidArgument,
    /// The namespace demands `enforced`.
    FencingRequired,
    /// No such namespace.
    NotFound,
    /// Held by somebody else, or in its lock delay.
    Locked,
    /// The wait's own deadline passed, or it was deserted or removed.
    WaitTimeout,
    /// Granted once, ended since.
    LeaseEnded,
    /// Never heard of this lease.
    NotHolder,
    /// `maxHold` leaves nothing to add.
    MaxHoldReached,
    /// The request was abandoned before it was decided.
    Abandoned,
    /// The namespace has another version.
    VersionConflict,
    /// The same request id with other content.
    RequestIdReused,
    /// The resource has its maximum of waiters.
    QueueFull,
    /// The namespace has its maximum of leases or waiters.
    LimitReached,
    /// The namespace's reply memory is full.
    Overloaded,
    /// Too late in the log for its `bornAt`, or granting is paused after a restore.
    Unavailable,
    /// Held for somebody else.
    Taken,
    /// Another claim is live.
    RunClaimed,
    /// The slot has finished, or counts as finished.
    RunFinished,
    /// An operator has paused the job.
    RunPaused,
    /// The run's retries are used up.
    RetriesExhausted,
    /// A layer of a quota does not hold the ask.
    QuotaExhausted,
    /// The reservation has ended, or waits for an operator.
    ReservationEnded,
    /// More was named than is reserved, committed or left.
    ExceedsReservation,
    /// A late commit found no room: what was paid for it has to be paid back.
    ExpiredNoCapacity,
    /// The report is too old, or a later one of the reporter is there.
    StaleReport,
    /// Another region is home to it.
    WrongRegion,
}

/// Figures of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Detail {
    /// Nothing to add.
    None,
    /// Which field breaks which rule.
    Invalid(Invalid),
    /// Everything that is in the way, in the order asked for.
    Locked(Vec<InTheWay>),
    /// How the lease ended, and its token.
    Ended {
        /// How.
        end: End,
        /// The token it had.
        token: Token,
    },
    /// Why the wait ended.
    Wait(WaitEnd),
    /// When the ownership ends for good.
    FinalDeadline {
        /// Milliseconds from now.
        in_ms: u64,
        /// The token of the holding.
        token: Token,
    },
    /// The version in force.
    Version {
        /// 0: there is none.
        current: u64,
    },
    /// Which limit, and whether a pending sweep may lower the count.
    Limit {
        /// The policy's field, or what is counted.
        limit: String,
        /// Its value.
        max: u64,
        /// Ended objects are still counted.
        sweep_pending: bool,
    },
    /// Granting is paused after a restore.
    Paused,
    /// Over 30 s of cluster time after the command's `bornAt`, or `bornAt` lies ahead of the log.
    BornAt,
    /// What is not there.
    Missing(Missing),
    /// The command belongs to a level above the one in force.
    Level {
        /// The level that it needs.
        needed: u32,
    },
    /// Who has the run, where somebody has.
    Run {
        /// Its claimer; `None`: in the lock delay after one.
        holder: Option<Holder>,
    },
    /// The layers that are exhausted.
    Exhausted(Exhausted),
    /// The reservation has not ended: an operator has to settle it.
    Quarantined {
        /// Its fence.
        fence: Token,
    },
    /// More than there is.
    Excess(Excess),
    /// The last report of that reporter.
    Report {
        /// Its epoch; 0: there is none.
        epoch: u64,
        /// How long ago it was read.
        age_ms: u64,
    },
    /// Which region decides.
    Home {
        /// Its name.
        home: RegionName,
    },
}

/// What a command names and the state does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Missing {
    /// No candidate of that name waits.
    Candidate,
    /// No such job.
    Job,
    /// No such reservation, or not any more.
    Reservation,
    /// No such node of a quota.
    Node,
    /// No such share, or not any more.
    Share,
}

/// Why a wait ended without a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum WaitEnd {
    /// Its own deadline.
    TimedOut,
    /// Nobody asked for it during the grace.
    Deserted,
    /// Cleared by a restore.
    Restored,
    /// The same candidate campaigned anew.
    Replaced,
    /// Another region decides about the namespace since then.
    HomeMoved,
}

/// One resource that is not free.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct InTheWay {
    /// The resource.
    pub resource: ResourceName,
    /// Its holder; `None` during a lock delay.
    pub holder: Option<Holder>,
    /// Left of the lock delay.
    pub lock_delay_ms: u64,
    /// How many wait.
    pub waiters: u64,
}

/// A holder as others may see it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Holder {
    /// In its own words.
    pub owner: Owner,
    /// Its token.
    pub token: Token,
    /// Since the grant.
    pub held_for_ms: u64,
    /// Until its deadline.
    pub expires_in_ms: u64,
}
