//! Planted bugs: deviations from the rules that the simulator has to find, so that its silence means something.
//!
//! One bug is chosen at run time, for the thread that runs the simulation, so one build serves all. Without the
//! feature `planted`, which only the simulator's own tests switch on, [`has`] is a constant `false` and every
//! deviation is compiled to nothing. A thread-local, and no field of the settings: the state machine has no
//! settings, and production types should not carry the place of a bug.

/// One planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An announce whose outcome is unknown is taken as landed, and applied: its node leads by an entry that may not be
    /// in the log.
    ActsOnUnknownAnnounce,
    /// A node leads from the moment on that it sends its announce, on the state before that.
    ActsBeforeOwnAnnounce,
    /// A batch whose outcome is unknown is applied and answered: before it is durable.
    UnknownIsCommitted,
    /// An append whose outcome is unknown is taken as not applied, and its callers are told so.
    UnknownIsNotApplied,
    /// A refusal of a copy is believed for the copies before it, which were unknown.
    RefusedAfterUnknown,
    /// A conflict is taken as lost without a look at the slot: it may have met its own first copy.
    ConflictIsLost,
    /// A conflict whose head has come so far is taken as committed without a look at the slot.
    HeadAloneResolves,
    /// A leader that meets a conflict goes on leading.
    StaysLeader,
    /// A node that meets a head below what it has applied goes on.
    RestoredLogFollowed,
    /// A leader does not have the log kept that another node disagrees with.
    DistrustUntold,
    /// The other nodes' clocks are not looked at: one that is minutes ahead leads.
    SkewIgnored,
    /// An announce adds to cluster time what the wall clock says has passed.
    WallClockAtTakeover,
    /// A stamp adds whatever has passed, above a second too.
    ClampRemoved,
    /// What the clamp cut off is caught up by the stamps after it.
    ClampCaughtUp,
    /// Every stamp is rounded up to the next millisecond: time races under load.
    MillisecondsRoundedUp,
    /// What is left below a millisecond is dropped at every stamp: time lags under load.
    MillisecondsTruncated,
    /// A standby answers consistent reads from its own state.
    ReadWithoutBarrier,
    /// A read rides on the append that was in flight when it came.
    ReadOnAppendInFlight,
    /// Calls that are held for a wait are not ended when their leader steps down.
    HeldCallsForgotten,
    /// A new leader takes those who wait for deserted, rather than give each a fresh grace.
    NoFreshGrace,
    /// A token is the leader's clock, whatever the last token was.
    TokenFromWallClock,
    /// A command is carried out however long ago it was born: a copy that comes after the reply memory is granted.
    BornAtIgnored,
    /// The renewal of an ended lease renews whoever holds the resource now.
    RenewalOfAnother,
    /// The release of an ended lease ends whoever holds the resource now.
    ReleaseOfAnother,
    /// A forced release ends the present lease, whichever token it names.
    ForceReleaseOfAnother,
    /// A lock is handed to the first of its queue, also when that wait is over.
    HandOverToDue,
    /// Leases end when another node begins to lead.
    LeasesCutAtTakeover,
    /// The reply memory is emptied when another node begins to lead.
    MemoryForgottenAtTakeover,
    /// The abandon of a request that was not seen yet is not remembered.
    AbandonForgotten,
    /// The log takes an append whatever its head is.
    HeadCompareSkipped,
    /// The log compares its count of writes alone, which a log that was put back goes through again.
    RevisionAloneCompared,
    /// A batch is answered when it is sent.
    AnsweredBeforeDurable,
    /// A leader's first token is the last one of the leader before it.
    TokenReusedAfterRestart,
    /// A token is made from the wall clock of whichever machine applies the entry.
    WallClockInApply,
    /// A wait is kept in its queue beyond its deadline, and granted there.
    WaitOutlivesDeadline,
    /// An acquire that finds a lease due and unswept takes its place, past those who wait.
    BargesBeforeSweep,
    /// An acquire-all grants what is free of its resources, and leaves out the rest.
    AcquireAllPartly,
    /// The floor of tokens is answered as set, and is not.
    FloorIgnored,
    /// A lock is granted within its namespace's lock delay.
    LockDelayIgnored,
    /// A lease is renewed beyond its longest ownership.
    MaxHoldIgnored,
    /// A shorter longest lease cuts those that were granted before.
    PolicyCutsLeases,
    /// A guarded resource takes every write, whatever its token is.
    FenceIgnored,
    /// A node applies by the rules of the highest level that it knows, and not by those of the level in force.
    LevelsMixed,
    /// A node goes on at a level that it does not understand.
    LevelNotChecked,
    /// The hand-off of an ended term passes on whoever's the election is now.
    HandOffOfAnother,
    /// The earlier campaign of a candidate who campaigns anew stays in its queue.
    ReplacedCampaignWaits,
    /// A hold is renewed, or begun, whichever fence is named.
    HoldFenceIgnored,
    /// A hold whose payment has begun is ended without its fence.
    BegunEndsWithoutFence,
    /// A request that was answered with a hold that was there is forgotten when that ends.
    YoursForgotten,
    /// An owner may have the same again at once.
    CoolDownIgnored,
    /// A slot that has succeeded may be claimed again.
    FinishedRunsAgain,
    /// A slot whose retries are used up may be claimed again.
    RetriesIgnored,
    /// An attempt that was abandoned counts.
    AbandonedAttemptCounts,
    /// An attempt that was abandoned gives back the one before it, too.
    AbandonGivesBackTwice,
    /// A late finish ends the attempt that is under way now.
    FinishOfAnother,
    /// Capacity is given away that is kept for a child's guarantee.
    GuaranteeIgnored,
    /// What an expired reservation frees stays counted at the root.
    ExpiryForgetsLayer,
    /// A return frees twice what was given back, if the commit has so much left.
    ReturnCountsTwice,
    /// A late commit is admitted whatever has been granted meanwhile.
    LateCommitUnchecked,
    /// An expired reservation that was admitted again may be so once more.
    ReadmitsTwice,
    /// What a resize gives back stays counted.
    ShrinkKept,
    /// A commit that is not final gives the rest back, which stays reserved all the same.
    PartCommitFreesRest,
    /// A repeated reserve reserves again.
    ReserveRepeats,
    /// An owner may reserve more at once than the node's rules allow.
    OwnerBoundIgnored,
    /// A reserve that is through with waiting is granted, if there is room just then.
    TimedOutReserveGranted,
    /// A reservation in quarantine gives its capacity back.
    QuarantineFrees,
}

#[cfg(feature = "planted")]
mod switch {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static CHOSEN: Cell<Option<Planted>> = const { Cell::new(None) };
        static MACHINE: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
    }

    impl Planted {
        /// All of them.
        pub const ALL: [Self; 66] = [
            Self::ActsOnUnknownAnnounce,
            Self::ActsBeforeOwnAnnounce,
            Self::UnknownIsCommitted,
            Self::UnknownIsNotApplied,
            Self::RefusedAfterUnknown,
            Self::ConflictIsLost,
            Self::HeadAloneResolves,
            Self::StaysLeader,
            Self::RestoredLogFollowed,
            Self::DistrustUntold,
            Self::SkewIgnored,
            Self::WallClockAtTakeover,
            Self::ClampRemoved,
            Self::ClampCaughtUp,
            Self::MillisecondsRoundedUp,
            Self::MillisecondsTruncated,
            Self::ReadWithoutBarrier,
            Self::ReadOnAppendInFlight,
            Self::HeldCallsForgotten,
            Self::NoFreshGrace,
            Self::TokenFromWallClock,
            Self::BornAtIgnored,
            Self::RenewalOfAnother,
            Self::ReleaseOfAnother,
            Self::ForceReleaseOfAnother,
            Self::HandOverToDue,
            Self::LeasesCutAtTakeover,
            Self::MemoryForgottenAtTakeover,
            Self::AbandonForgotten,
            Self::HeadCompareSkipped,
            Self::RevisionAloneCompared,
            Self::AnsweredBeforeDurable,
            Self::TokenReusedAfterRestart,
            Self::WallClockInApply,
            Self::WaitOutlivesDeadline,
            Self::BargesBeforeSweep,
            Self::AcquireAllPartly,
            Self::FloorIgnored,
            Self::LockDelayIgnored,
            Self::MaxHoldIgnored,
            Self::PolicyCutsLeases,
            Self::FenceIgnored,
            Self::LevelsMixed,
            Self::LevelNotChecked,
            Self::HandOffOfAnother,
            Self::ReplacedCampaignWaits,
            Self::HoldFenceIgnored,
            Self::BegunEndsWithoutFence,
            Self::YoursForgotten,
            Self::CoolDownIgnored,
            Self::FinishedRunsAgain,
            Self::RetriesIgnored,
            Self::AbandonedAttemptCounts,
            Self::AbandonGivesBackTwice,
            Self::FinishOfAnother,
            Self::GuaranteeIgnored,
            Self::ExpiryForgetsLayer,
            Self::ReturnCountsTwice,
            Self::LateCommitUnchecked,
            Self::ReadmitsTwice,
            Self::ShrinkKept,
            Self::PartCommitFreesRest,
            Self::ReserveRepeats,
            Self::OwnerBoundIgnored,
            Self::TimedOutReserveGranted,
            Self::QuarantineFrees,
        ];
    }

    /// Plants one bug in what this thread runs, or none.
    pub fn plant(bug: Option<Planted>) {
        CHOSEN.set(bug);
    }

    /// The bug that is planted in what this thread runs.
    pub fn chosen() -> Option<Planted> {
        CHOSEN.get()
    }

    /// Whether this bug is planted.
    pub fn has(bug: Planted) -> bool {
        CHOSEN.get() == Some(bug)
    }

    /// The wall clock of the machine whose turn it is, for the bug that looks at it.
    pub fn wall_us() -> u64 {
        MACHINE.get().0
    }

    /// The highest level that its program knows, for the bug that goes by it.
    pub fn level_max() -> u32 {
        MACHINE.get().1
    }

    /// It is the turn of a machine with this wall clock, whose program knows the levels up to this.
    pub fn set_machine(wall_us: u64, level_max: u32) {
        MACHINE.set((wall_us, level_max));
    }
}

#[cfg(feature = "planted")]
pub use switch::{chosen, has, level_max, plant, set_machine, wall_us};

/// The bug that is planted: none, in a build without the feature.
#[cfg(not(feature = "planted"))]
pub const fn chosen() -> Option<Planted> {
    None
}

/// Whether this bug is planted: never, in a build without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn has(_: Planted) -> bool {
    false
}

/// The wall clock of the machine whose turn it is: unknown, in a build without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn wall_us() -> u64 {
    0
}

/// The highest level that its program knows: unknown, in a build without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn level_max() -> u32 {
    0
}

/// Whose turn it is: nobody asks, in a build without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn set_machine(_wall_us: u64, _level_max: u32) {}
