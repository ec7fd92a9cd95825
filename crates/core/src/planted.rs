//! Planted bugs: deviations from the rules that the simulator has to find, so that its silence means something.
//!
//! One bug is chosen at run time, for the thread that runs the simulation, so one build serves all. Without the
//! feature `planted`, which only the simulator's own tests switch on, [`has`] is a constant `false` and every
//! deviation is compiled to nothing. A thread-local, and no field of the settings: the state machine has no
//! settings, and production types should not carry the place of a bug.

/// One planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An announce whose outcome is unknown is taken as landed: the leader acts before it has applied it.
    ActsOnUnknownAnnounce,
    /// A conflict on an append that was unknown before is taken as lost without a look at the slot.
    ConflictIsLost,
    /// An append that was unknown is taken as not applied, and its callers are told so.
    UnknownIsNotApplied,
    /// A new leader adds to cluster time what passed since it last saw the log move.
    TimeGoesOnOverTakeover,
    /// What the clamp cut off is caught up later.
    ClampCaughtUp,
    /// Milliseconds are rounded up at every stamp.
    MillisecondsRoundedUp,
    /// A standby answers consistent reads from its own state.
    ReadWithoutBarrier,
    /// A read rides on the append that was in flight when it came.
    ReadOnAppendInFlight,
    /// Held calls stay open when their leader steps down.
    HeldCallsForgotten,
    /// Whoever waits is not given a fresh grace by a new leader, but is taken as deserted.
    NoFreshGrace,
    /// A token is the wall clock's, whatever the last one was.
    TokenFromWallClock,
    /// `bornAt` is not looked at.
    BornAtIgnored,
    /// A renewal of an ended lease begins it anew at whoever has the resource.
    RenewalOfAnother,
    /// A hand-over goes to the first of the queue, though its wait is over.
    HandOverToDue,
    /// An acquire that comes between an end and its sweep passes the queue.
    Barging,
    /// The reply memory forgets at each announce.
    MemoryForgottenAtTakeover,
    /// The abandon of a request that was not seen yet is not remembered.
    AbandonForgotten,
    /// A release ends whatever lease the resource has.
    ReleaseOfAnother,
    /// An entry's answers are given when it is sent.
    AnswerBeforeDurable,
    /// A leader that meets a conflict goes on leading.
    StaysLeader,
    /// Deadlines are cut at an announce.
    LeaseCutAtTakeover,
    /// A node that another log's head contradicts goes on.
    RestoredLogFollowed,
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
        pub const ALL: [Self; 22] = [
            Self::ActsOnUnknownAnnounce,
            Self::ConflictIsLost,
            Self::UnknownIsNotApplied,
            Self::TimeGoesOnOverTakeover,
            Self::ClampCaughtUp,
            Self::MillisecondsRoundedUp,
            Self::ReadWithoutBarrier,
            Self::ReadOnAppendInFlight,
            Self::HeldCallsForgotten,
            Self::NoFreshGrace,
            Self::TokenFromWallClock,
            Self::BornAtIgnored,
            Self::RenewalOfAnother,
            Self::HandOverToDue,
            Self::Barging,
            Self::MemoryForgottenAtTakeover,
            Self::AbandonForgotten,
            Self::ReleaseOfAnother,
            Self::AnswerBeforeDurable,
            Self::StaysLeader,
            Self::LeaseCutAtTakeover,
            Self::RestoredLogFollowed,
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
