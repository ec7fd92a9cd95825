//! Random histories: what clients, operators, leaders and the network may do, in numbers small enough to collide.

use proptest::sample::Index;
use sereno_core::command::Family;

/// What happens from a beginning.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// The level that the log begins with.
    pub(super) level: u32,
    pub(super) steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An entry, so much later, with these commands.
    Entry(u64, Vec<Act>),
    /// Entries without commands.
    Pass(u64),
    /// On to the next deadline, or so many milliseconds before it; then an entry with these commands.
    ToDeadline(u64, Vec<Act>),
    /// The same, while a thousand others are due a little earlier and keep the sweep busy.
    Rush(Vec<Act>),
    /// Another leader, with its own idea of the time of day.
    Lead { days_ahead: i64 },
    /// The state goes on from its snapshot.
    Snapshot,
    /// The state goes on as a restored backup.
    Restore { pause_ms: u64, floor_ahead_us: i64 },
}

/// One command, in terms of what has happened before.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Acquire {
        who: Who,
        terms: Terms,
        resource: usize,
        wait_ms: u64,
    },
    AcquireAll {
        who: Who,
        terms: Terms,
        resources: Vec<usize>,
    },
    /// Of a lease drawn lately; `elsewhere`: with another resource or namespace.
    Renew {
        lease: usize,
        ttl_ms: Option<u64>,
        elsewhere: bool,
    },
    RenewMany {
        leases: Vec<usize>,
        ttl_ms: Option<u64>,
    },
    Release {
        lease: usize,
        elsewhere: bool,
    },
    /// Of a request made lately, or of one not made yet.
    Abandon {
        request: Option<usize>,
        admin: bool,
    },
    /// Of the present holder, or with an older token.
    ForceRelease {
        family: Family,
        space: usize,
        resource: usize,
        stale: bool,
        request: usize,
    },
    /// Of a live claim: asked as of now, or before its last ask.
    Desert {
        claim: Index,
        before: u64,
    },
    Policy {
        space: usize,
        policy: usize,
        stale: bool,
    },
    Floor {
        request: usize,
        ahead_us: i64,
    },
    Level {
        to: u32,
    },
    Campaign {
        who: Who,
        terms: Terms,
        election: usize,
        candidate: usize,
        wait_ms: u64,
    },
    /// By a leader of late; `version`: so many before the present one.
    Proclaim {
        lease: usize,
        version: Option<u64>,
        request: Option<usize>,
    },
    Handoff {
        lease: usize,
        to: usize,
        request: Option<usize>,
    },
    Hold {
        who: Who,
        terms: Terms,
        resources: Vec<usize>,
        owner: usize,
        replaces: Vec<(usize, Fence)>,
    },
    /// Of somebody's hold.
    OnHold {
        what: OnHold,
        space: usize,
        resource: usize,
        owner: usize,
        fence: Fence,
        ttl_ms: Option<u64>,
        request: Option<usize>,
    },
    HoldPolicy {
        space: usize,
        policy: usize,
        per_owner: Option<u64>,
        cooldown_ms: u64,
        stale: bool,
    },
    PutJob {
        space: usize,
        job: usize,
        definition: usize,
        stale: bool,
    },
    ClaimRun {
        who: Who,
        job: usize,
        slot: usize,
        stale: bool,
        ttl_ms: Option<u64>,
    },
    Finish {
        lease: usize,
        succeeded: bool,
        elsewhere: bool,
        request: Option<usize>,
    },
    OfJob {
        what: OfJob,
        space: usize,
        job: usize,
        slot: usize,
        request: Option<usize>,
    },
    Report {
        space: usize,
        refused: bool,
        request: Option<usize>,
    },
    /// A command once more: as it was, or as its client repeats it (born now, a lease id drawn anew).
    Copy {
        back: usize,
        repeated: bool,
    },
}

/// Which fence is named.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fence {
    None,
    Present,
    Old,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OnHold {
    Renew,
    Begin,
    Release,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OfJob {
    Pause,
    Resume,
    Skip,
    RunNow,
}

/// Whose request: the namespace, the caller, and whether its id is one of a few or a fresh one.
#[derive(Clone, Debug)]
pub(super) struct Who {
    pub(super) space: usize,
    pub(super) caller: usize,
    pub(super) request: Option<usize>,
    /// How long it has been on its way.
    pub(super) age_ms: u64,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) ttl_ms: Option<u64>,
    pub(super) hold_ms: Option<u64>,
    pub(super) fencing: u8,
    pub(super) label: bool,
}

pub(super) const RESOURCES: usize = 3;
pub(super) const POLICIES: usize = 9;
pub(super) const JOBS: usize = 2;
pub(super) const DEFINITIONS: usize = 7;
/// Those whose names are leased.
pub(super) const FAMILIES: [Family; 4] =
    [Family::Lock, Family::Election, Family::Hold, Family::Job];
