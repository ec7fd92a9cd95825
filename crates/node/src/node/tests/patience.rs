//! How long a standby lets the log be silent, and how long a takeover has taken.

use super::{
    peers::leading,
    shared::{OTHER, Shared},
};
use crate::node::Input;
use sereno_core::entry::Body;

/// A standby whose leader's entries come at this pace.
fn paced(gap_ms: u64) -> Shared {
    let mut shared = Shared::following();
    shared.give(Input::Linked(OTHER.into()));
    for _ in 0..100 {
        shared.pass(gap_ms);
        shared.beat();
    }
    shared.lands = false;
    shared
}

/// Whether it announces between these moments of silence, and not before.
fn announces_within(mut shared: Shared, from_ms: u64, to_ms: u64) -> bool {
    shared.pass(from_ms - 1);
    assert_eq!(shared.sent_body(), None, "it has patience");
    shared.pass(to_ms - from_ms + 1);
    matches!(shared.sent_body(), Some(Body::Announce(_)))
}

#[test]
fn a_slow_log_makes_its_standbys_patient() {
    // Two seconds at least, four gaps where those are long, and half a second of jitter.
    for (gap_ms, patience_ms) in [(100, 2_000), (500, 2_000), (900, 3_600), (1_500, 6_000)] {
        assert!(announces_within(paced(gap_ms), patience_ms, patience_ms + 500), "{gap_ms} ms");
    }
}

#[test]
fn without_a_link_it_has_half_the_patience() {
    for (gap_ms, patience_ms) in [(500, 1_000), (900, 1_800)] {
        let mut shared = paced(gap_ms);
        shared.give(Input::LinkLost(OTHER.into()));
        assert!(announces_within(shared, patience_ms, patience_ms + 250), "{gap_ms} ms");
    }
}

/// Not since this process has started, which may be months ago.
#[test]
fn a_takeover_takes_as_long_as_nobody_led() {
    let mut shared = paced(500);
    shared.lands = true;
    shared.pass(3_000);
    assert!(shared.node.is_leader());
    let [took_ns] = shared.leads_ns[..] else { panic!("{:?}", shared.leads_ns) };
    assert!((2_000_000_000..=2_500_000_000).contains(&took_ns), "{took_ns}");
    // It is deposed, and comes to lead again when the other one resigns.
    shared.fetched(Vec::new());
    shared.lands = false;
    shared.pass(600);
    let (expected, beat) = shared.sent.take().expect("a heartbeat is due");
    let leads = shared.other_announces(OTHER);
    let conflict = shared.log.append(&expected, &beat);
    shared.give(Input::Appended(conflict));
    shared.lands = true;
    shared.fetched(vec![leads]);
    for _ in 0..20 {
        shared.pass(500);
        shared.beat();
    }
    let resign = shared.other(Body::Resign);
    shared.fetched(vec![resign]);
    shared.pass(10);
    assert!(shared.node.is_leader());
    assert!(shared.leads_ns[1] <= 10_000_000, "{:?}", shared.leads_ns);
}

/// Where there was nobody to take over from it counts from the start.
#[test]
fn the_first_leader_counts_from_its_start() {
    let shared = leading();
    let [took_ns] = shared.leads_ns[..] else { panic!("{:?}", shared.leads_ns) };
    assert!((2_000_000_000..2_100_000_001).contains(&took_ns), "{took_ns}");
}
