//! Random histories. Nodes, owners and earlier requests go by number.

use proptest::{collection::vec, option, prelude::*};
use sereno_core::command::OnExpiry;

/// One thing that happens, in an entry of its own.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Limit {
        node: usize,
        limit: u64,
        burst: u64,
        guaranteed: u64,
        weight: u64,
        owner_max: Option<u64>,
        patience_ms: Option<u64>,
    },
    Reserve {
        items: Vec<(usize, u64)>,
        owner: usize,
        ttl_ms: u64,
        lifetime_ms: u64,
        on_expiry: OnExpiry,
        priority: u8,
        wait_ms: u64,
    },
    Commit {
        of: usize,
        parts: Option<Vec<u64>>,
        is_final: bool,
        readmit: bool,
    },
    Release(usize),
    Extend {
        of: usize,
        ttl_ms: u64,
    },
    Resize {
        of: usize,
        amounts: Vec<u64>,
    },
    Begin {
        of: usize,
        ttl_ms: u64,
        on_expiry: OnExpiry,
    },
    Return {
        lot: usize,
        amount: u64,
    },
    Settle {
        of: usize,
        commits: bool,
    },
    Adjust {
        node: usize,
        owner: usize,
        adds: bool,
        amount: u64,
    },
    Abandon(usize),
    Repeat(usize),
    Pass(u64),
    Snapshot,
}

fn of() -> impl Strategy<Value = usize> {
    // Counted from the last one back: what is new is more interesting.
    prop_oneof![4 => 0..6_usize, 1 => 0..40_usize]
}

fn on_expiry() -> impl Strategy<Value = OnExpiry> {
    prop_oneof![
        3 => Just(OnExpiry::Release),
        1 => Just(OnExpiry::Commit),
        1 => Just(OnExpiry::Quarantine),
    ]
}

fn ttl() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![1_000, 2_500, 10_000, 40_000, 600_000])
}

fn limit() -> impl Strategy<Value = Step> {
    let patience = option::of(prop::sample::select(vec![0, 3_000, 60_000]));
    let amounts = (0..12_u64, prop_oneof![3 => Just(0), 1 => 1..4_u64], 0..7_u64);
    (0..8_usize, amounts, 1..4_u64, option::weighted(0.2, 1..8_u64), patience).prop_map(
        |(node, (limit, burst, guaranteed), weight, owner_max, patience_ms)| Step::Limit {
            node,
            limit,
            burst,
            guaranteed: guaranteed.min(limit),
            weight,
            owner_max,
            patience_ms,
        },
    )
}

fn reserve() -> impl Strategy<Value = Step> {
    let items = vec((0..9_usize, 1..6_u64), 1..3);
    let wait = prop_oneof![1 => Just(0), 2 => prop::sample::select(vec![2_000, 20_000, 300_000])];
    let lifetime = prop_oneof![1 => Just(5_000), 3 => Just(3_600_000)];
    (items, 0..4_usize, ttl(), lifetime, on_expiry(), 0..3_u8, wait).prop_map(
        |(items, owner, ttl_ms, lifetime_ms, on_expiry, priority, wait_ms)| Step::Reserve {
            items,
            owner,
            ttl_ms,
            lifetime_ms,
            on_expiry,
            priority,
            wait_ms,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => limit(),
        14 => reserve(),
        6 => (of(), option::of(vec(0..5_u64, 2)), any::<bool>(), any::<bool>())
            .prop_map(|(of, parts, is_final, readmit)| Step::Commit { of, parts, is_final, readmit }),
        5 => of().prop_map(Step::Release),
        2 => (of(), ttl()).prop_map(|(of, ttl_ms)| Step::Extend { of, ttl_ms }),
        4 => (of(), vec(0..7_u64, 2)).prop_map(|(of, amounts)| Step::Resize { of, amounts }),
        2 => (of(), ttl(), on_expiry())
            .prop_map(|(of, ttl_ms, on_expiry)| Step::Begin { of, ttl_ms, on_expiry }),
        4 => (0..20_usize, 1..6_u64).prop_map(|(lot, amount)| Step::Return { lot, amount }),
        2 => (of(), any::<bool>()).prop_map(|(of, commits)| Step::Settle { of, commits }),
        1 => (0..8_usize, 0..4_usize, any::<bool>(), 1..4_u64)
            .prop_map(|(node, owner, adds, amount)| Step::Adjust { node, owner, adds, amount }),
        1 => of().prop_map(Step::Abandon),
        2 => (0..30_usize).prop_map(Step::Repeat),
        7 => prop::sample::select(vec![500, 1_000, 2_500, 10_000, 31_000, 61_000]).prop_map(Step::Pass),
        1 => prop_oneof![19 => Just(120_000), 1 => Just(3_600_000)].prop_map(Step::Pass),
        1 => Just(Step::Snapshot),
    ]
}

pub(super) fn history() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..70)
}
