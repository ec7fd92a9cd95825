//! By chance: how often what happens in a history, so that the few names collide, and most of it is about one family.

use super::history::{
    Act, DEFINITIONS, FAMILIES, Fence, History, JOBS, OfJob, OnHold, POLICIES, RESOURCES, Step,
    Terms, Who,
};
use proptest::{prelude::*, sample::Index, strategy::Union};
use sereno_core::LEVEL_MAX;

/// What most of a history is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Focus {
    Locks,
    Elections,
    Holds,
    Jobs,
    All,
}

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

fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        9 => Just(0),
        40 => prop::sample::select(vec![1, 1_000, 5_000, 10_000, 60_000]),
        1 => prop::sample::select(vec![600_000, 600_001, u64::MAX]),
    ]
}

fn stale() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.3)
}

fn elsewhere() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.1)
}

fn any_lock() -> impl Strategy<Value = Act> {
    prop_oneof![
        24 => (who(), terms(), resource(), wait())
            .prop_map(|(who, terms, resource, wait_ms)| Act::Acquire { who, terms, resource, wait_ms }),
        4 => (who(), terms(), prop::collection::vec(resource(), 0..4))
            .prop_map(|(who, terms, resources)| Act::AcquireAll { who, terms, resources }),
        2 => (prop::collection::vec(0..8_usize, 0..5), ttl())
            .prop_map(|(leases, ttl_ms)| Act::RenewMany { leases, ttl_ms }),
    ]
}

/// What there is in every family, and of operators, leaders and the network.
fn in_common() -> impl Strategy<Value = Act> {
    let family = prop::sample::select(FAMILIES.to_vec());
    prop_oneof![
        8 => (0..6_usize, ttl(), elsewhere())
            .prop_map(|(lease, ttl_ms, elsewhere)| Act::Renew { lease, ttl_ms, elsewhere }),
        10 => (0..5_usize, elsewhere())
            .prop_map(|(lease, elsewhere)| Act::Release { lease, elsewhere }),
        4 => (prop::option::weighted(0.8, 0..5_usize), prop::bool::weighted(0.05))
            .prop_map(|(request, admin)| Act::Abandon { request, admin }),
        4 => (family, 0..2_usize, resource(), stale(), 0..3_usize).prop_map(
            |(family, space, resource, stale, request)| Act::ForceRelease {
                family,
                space,
                resource,
                stale,
                request,
            }
        ),
        5 => (any::<Index>(), 0..3_u64).prop_map(|(claim, before)| Act::Desert { claim, before }),
        3 => (0..3_usize, 0..POLICIES, stale())
            .prop_map(|(space, policy, stale)| Act::Policy { space, policy, stale }),
        1 => (0..2_usize, prop::sample::select(vec![-1, 1, 60_000_000, i64::MAX]))
            .prop_map(|(request, ahead_us)| Act::Floor { request, ahead_us }),
        1 => (0..=LEVEL_MAX).prop_map(|to| Act::Level { to }),
        1 => (0..3_usize, any::<bool>(), write_id())
            .prop_map(|(space, refused, request)| Act::Report { space, refused, request }),
        10 => (0..12_usize, any::<bool>())
            .prop_map(|(back, repeated)| Act::Copy { back, repeated }),
    ]
}

/// Mostly fresh.
fn write_id() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.15, 0..4_usize)
}

fn any_election() -> impl Strategy<Value = Act> {
    prop_oneof![
        24 => (who(), terms(), resource(), 0..4_usize, wait()).prop_map(
            |(who, terms, election, candidate, wait_ms)| Act::Campaign {
                who,
                terms,
                election,
                candidate,
                wait_ms,
            }
        ),
        6 => (0..4_usize, prop::option::weighted(0.5, 0..2_u64), write_id())
            .prop_map(|(lease, version, request)| Act::Proclaim { lease, version, request }),
        8 => (0..4_usize, 0..4_usize, write_id())
            .prop_map(|(lease, to, request)| Act::Handoff { lease, to, request }),
    ]
}

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![2 => Just(Fence::None), 3 => Just(Fence::Present), 1 => Just(Fence::Old)]
}

fn any_hold() -> impl Strategy<Value = Act> {
    let resources = prop_oneof![
        6 => resource().prop_map(|one| vec![one]),
        4 => prop::collection::vec(0..RESOURCES, 0..4),
    ];
    let replaces = prop_oneof![
        6 => Just(Vec::new()),
        3 => prop::collection::vec((0..RESOURCES, fence()), 1..3),
    ];
    let what = prop::sample::select(vec![OnHold::Renew, OnHold::Begin, OnHold::Release]);
    let cooldown_ms = prop::sample::select(vec![0, 0, 500, 5_000, 60_000, u64::MAX]);
    prop_oneof![
        20 => (who(), terms(), resources, 0..3_usize, replaces).prop_map(
            |(who, terms, resources, owner, replaces)| Act::Hold {
                who,
                terms,
                resources,
                owner,
                replaces,
            }
        ),
        14 => (what, 0..2_usize, resource(), 0..3_usize, fence(), ttl(), write_id()).prop_map(
            |(what, space, resource, owner, fence, ttl_ms, request)| Act::OnHold {
                what,
                space,
                resource,
                owner,
                fence,
                ttl_ms,
                request,
            }
        ),
        4 => (0..2_usize, 0..POLICIES, prop::option::of(0..4_u64), cooldown_ms, stale()).prop_map(
            |(space, policy, per_owner, cooldown_ms, stale)| Act::HoldPolicy {
                space,
                policy,
                per_owner,
                cooldown_ms,
                stale,
            }
        ),
    ]
}

fn any_job() -> impl Strategy<Value = Act> {
    let space = || prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    let what = prop::sample::select(vec![OfJob::Pause, OfJob::Resume, OfJob::Skip, OfJob::RunNow]);
    prop_oneof![
        6 => (space(), 0..JOBS, 0..DEFINITIONS, prop::bool::weighted(0.1))
            .prop_map(|(space, job, definition, stale)| Act::PutJob { space, job, definition, stale }),
        20 => (who(), 0..JOBS, 0..6_usize, prop::bool::weighted(0.05), ttl()).prop_map(
            |(who, job, slot, stale, ttl_ms)| Act::ClaimRun { who, job, slot, stale, ttl_ms }
        ),
        12 => (0..5_usize, any::<bool>(), elsewhere(), write_id()).prop_map(
            |(lease, succeeded, elsewhere, request)| Act::Finish {
                lease,
                succeeded,
                elsewhere,
                request,
            }
        ),
        6 => (what, space(), 0..JOBS, 0..6_usize, write_id()).prop_map(
            |(what, space, job, slot, request)| Act::OfJob { what, space, job, slot, request }
        ),
    ]
}

fn act(focus: Focus) -> impl Strategy<Value = Act> {
    let weight = |of: Focus| match focus {
        Focus::All => 9,
        _ if focus == of => 30,
        _ => 1,
    };
    Union::new_weighted(vec![
        (weight(Focus::Locks), any_lock().boxed()),
        (weight(Focus::Elections), any_election().boxed()),
        (weight(Focus::Holds), any_hold().boxed()),
        (weight(Focus::Jobs), any_job().boxed()),
        (40, in_common().boxed()),
    ])
}

fn acts(focus: Focus, most: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(focus), 1..=most)
}

fn step(focus: Focus) -> impl Strategy<Value = Step> {
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
        60 => (after, acts(focus, 4)).prop_map(|(after_ms, acts)| Step::Entry(after_ms, acts)),
        14 => (prop_oneof![4 => Just(0), 1 => Just(1_u64)], acts(focus, 4))
            .prop_map(|(before_ms, acts)| Step::ToDeadline(before_ms, acts)),
        4 => pass.prop_map(Step::Pass),
        1 => acts(focus, 8).prop_map(Step::Rush),
        2 => (-2..=2_i64).prop_map(|days_ahead| Step::Lead { days_ahead }),
        2 => Just(Step::Snapshot),
        1 => (prop::sample::select(vec![0, 1, 1_000]), -1_000_000..=300_000_000_i64)
            .prop_map(|(pause_ms, floor_ahead_us)| Step::Restore { pause_ms, floor_ahead_us }),
    ]
}

/// A whole history.
pub(super) fn history() -> impl Strategy<Value = History> {
    let focus = prop_oneof![
        4 => Just(Focus::Locks),
        3 => Just(Focus::Elections),
        4 => Just(Focus::Holds),
        4 => Just(Focus::Jobs),
        2 => Just(Focus::All),
    ];
    focus.prop_flat_map(|focus| {
        let level = match focus {
            Focus::Locks => (1..=LEVEL_MAX).boxed(),
            _ => prop_oneof![9 => Just(LEVEL_MAX), 1 => Just(1)].boxed(),
        };
        let steps = prop::collection::vec(step(focus), 1..90);
        (level, steps).prop_map(|(level, steps)| History { level, steps })
    })
}
