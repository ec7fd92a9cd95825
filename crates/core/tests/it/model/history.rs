//! Random histories: what clients, operators, leaders and the network may do, in numbers small enough to collide.

use proptest::{prelude::*, sample::Index};
use sereno_core::LEVEL_MAX;

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
    /// A command once more: as it was, or as its client repeats it (born now, a lease id drawn anew).
    Copy {
        back: usize,
        repeated: bool,
    },
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

fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        6 => Just(None),
        38 => prop::sample::select(vec![1_000, 5_000, 10_000, 30_000, 60_000]).prop_map(Some),
        1 => prop::sample::select(vec![0, 999, 3_600_000, 3_600_001, u64::MAX]).prop_map(Some),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    let request = prop_oneof![6 => Just(None), 1 => (0..4_usize).prop_map(Some)];
    let age_ms = prop_oneof![
        12 => Just(0),
        2 => 0..30_000_u64,
        1 => prop::sample::select(vec![30_000, 30_001, u64::MAX]),
    ];
    let space = prop_oneof![8 => Just(0_usize), 4 => Just(1), 1 => Just(2)];
    (space, 0..3_usize, request, age_ms).prop_map(|(space, caller, request, age_ms)| Who {
        space,
        caller,
        request,
        age_ms,
    })
}

fn terms() -> impl Strategy<Value = Terms> {
    let hold_ms = prop_oneof![
        28 => Just(None),
        12 => prop::sample::select(vec![1_000, 7_000, 20_000, 60_000]).prop_map(Some),
        1 => prop::sample::select(vec![0, 999, u64::MAX]).prop_map(Some),
    ];
    (ttl(), hold_ms, 0..6_u8, prop::bool::weighted(0.1))
        .prop_map(|(ttl_ms, hold_ms, fencing, label)| Terms { ttl_ms, hold_ms, fencing, label })
}

/// Most want the same one.
fn resource() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => Just(2)]
}

fn act() -> impl Strategy<Value = Act> {
    let wait_ms = prop_oneof![
        9 => Just(0),
        40 => prop::sample::select(vec![1, 1_000, 5_000, 10_000, 60_000]),
        1 => prop::sample::select(vec![600_000, 600_001, u64::MAX]),
    ];
    let stale = || prop::bool::weighted(0.3);
    let elsewhere = || prop::bool::weighted(0.1);
    prop_oneof![
        24 => (who(), terms(), resource(), wait_ms)
            .prop_map(|(who, terms, resource, wait_ms)| Act::Acquire { who, terms, resource, wait_ms }),
        4 => (who(), terms(), prop::collection::vec(resource(), 0..4))
            .prop_map(|(who, terms, resources)| Act::AcquireAll { who, terms, resources }),
        8 => (0..6_usize, ttl(), elsewhere())
            .prop_map(|(lease, ttl_ms, elsewhere)| Act::Renew { lease, ttl_ms, elsewhere }),
        2 => (prop::collection::vec(0..8_usize, 0..5), ttl())
            .prop_map(|(leases, ttl_ms)| Act::RenewMany { leases, ttl_ms }),
        10 => (0..5_usize, elsewhere())
            .prop_map(|(lease, elsewhere)| Act::Release { lease, elsewhere }),
        4 => (prop::option::weighted(0.8, 0..5_usize), prop::bool::weighted(0.05))
            .prop_map(|(request, admin)| Act::Abandon { request, admin }),
        3 => (0..2_usize, resource(), stale(), 0..3_usize).prop_map(
            |(space, resource, stale, request)| Act::ForceRelease { space, resource, stale, request }
        ),
        5 => (any::<Index>(), 0..3_u64).prop_map(|(claim, before)| Act::Desert { claim, before }),
        3 => (0..3_usize, 0..POLICIES, stale())
            .prop_map(|(space, policy, stale)| Act::Policy { space, policy, stale }),
        1 => (0..2_usize, prop::sample::select(vec![-1, 1, 60_000_000, i64::MAX]))
            .prop_map(|(request, ahead_us)| Act::Floor { request, ahead_us }),
        1 => (0..=LEVEL_MAX).prop_map(|to| Act::Level { to }),
        10 => (0..12_usize, any::<bool>())
            .prop_map(|(back, repeated)| Act::Copy { back, repeated }),
    ]
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop_oneof![
        4 => Just(0_u64),
        2 => Just(1),
        2 => Just(500),
        2 => 0..=1_000_u64,
        1 => Just(1_000),
    ];
    let pass =
        prop::sample::select(vec![0, 5_000, 10_000, 29_999, 89_900, 90_000, 299_950, 300_100]);
    prop_oneof![
        60 => (after, acts(4)).prop_map(|(after_ms, acts)| Step::Entry(after_ms, acts)),
        14 => (prop_oneof![4 => Just(0), 1 => Just(1_u64)], acts(4))
            .prop_map(|(before_ms, acts)| Step::ToDeadline(before_ms, acts)),
        4 => pass.prop_map(Step::Pass),
        1 => acts(8).prop_map(Step::Rush),
        2 => (-2..=2_i64).prop_map(|days_ahead| Step::Lead { days_ahead }),
        2 => Just(Step::Snapshot),
        1 => (prop::sample::select(vec![0, 1, 1_000]), -1_000_000..=300_000_000_i64)
            .prop_map(|(pause_ms, floor_ahead_us)| Step::Restore { pause_ms, floor_ahead_us }),
    ]
}

/// A whole history.
pub(super) fn history() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..90)
}

pub(super) const POLICIES: usize = 9;
