//! Planted bugs: deviations from the rules that the simulator has to find, so that its silence means something.
//!
//! One bug is chosen at run time, for the thread that runs the simulation, so one build serves all. Without the
//! feature `planted`, which only the simulator's own tests switch on, [`has`] is a constant `false` and every
//! deviation is compiled to nothing. A thread-local, and no field of the settings: the state machine has no
//! settings, and production types should not carry the place of a bug.

/// One planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An announce whose outcome is unknown is taken as landed: the leader acts before its own announce is applied.
    ActsOnUnknownAnnounce,
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
    /// A command is carried out however long ago it was born.
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
}

#[cfg(feature = "planted")]
mod switch {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static CHOSEN: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    impl Planted {
        /// All of them.
        pub const ALL: [Self; 27] = [
            Self::ActsOnUnknownAnnounce,
            Self::UnknownIsCommitted,
            Self::UnknownIsNotApplied,
            Self::RefusedAfterUnknown,
            Self::ConflictIsLost,
            Self::HeadAloneResolves,
            Self::StaysLeader,
            Self::RestoredLogFollowed,
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
        ];
    }

    /// Plants one bug in what this thread runs, or none.
    pub fn plant(bug: Option<Planted>) {
        CHOSEN.set(bug);
    }

    /// Whether this bug is planted.
    pub fn has(bug: Planted) -> bool {
        CHOSEN.get() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub use switch::{has, plant};

/// Whether this bug is planted: never, in a build without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn has(_: Planted) -> bool {
    false
}
