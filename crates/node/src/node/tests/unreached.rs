//! A leader that only the log can reach: when it resigns, and how long it leaves the log alone after that.

use super::{
    peers::{leading, reply},
    shared::Shared,
};
use crate::{handle::Reply, node::Input};
use sereno_core::entry::Body;

/// Seconds go by in which these others rewrite their records. Gives after how many it led no more.
fn leads_for_s(
    shared: &mut Shared,
    others: &[&str],
    mut each: impl FnMut(&mut Shared, u64),
) -> u64 {
    for second in 1..=15 {
        let wall_us = shared.now.wall_us;
        let records: Vec<_> = others.iter().map(|&id| (id, wall_us)).collect();
        shared.present(second, &records);
        each(shared, second);
        shared.pass(1_000);
        if !shared.node.is_leader() {
            return second;
        }
    }
    u64::MAX
}

const STAYS: u64 = u64::MAX;

fn no_more(_: &mut Shared, _: u64) {}

/// What was under way when it began to lead is done.
fn leader() -> Shared {
    let mut shared = leading();
    shared.fetched(Vec::new());
    shared
}

#[test]
fn with_two_others_it_resigns_after_five_seconds() {
    let calls = |shared: &mut Shared, second| shared.call(second, false);
    assert_eq!(leads_for_s(&mut leader(), &["n2", "n3"], no_more), 6);
    let led_s = leads_for_s(&mut leader(), &["n2", "n3"], calls);
    assert!((5..=6).contains(&led_s), "clients or not: {led_s}");
}

#[test]
fn whom_a_link_reaches_stays() {
    let reached = |shared: &mut Shared, _| shared.give(Input::Reached);
    assert_eq!(leads_for_s(&mut leader(), &["n2", "n3"], reached), STAYS);
    // Until nobody does any more.
    let reached = |shared: &mut Shared, second| {
        if second <= 5 {
            shared.give(Input::Reached);
        }
    };
    assert_eq!(leads_for_s(&mut leader(), &["n2", "n3"], reached), 10);
}

/// Which of two is cut off neither can know; clients that come tell.
#[test]
fn with_one_other_it_stays_as_long_as_clients_come() {
    let calls = |shared: &mut Shared, second| {
        shared.call(second, false);
        assert!(matches!(reply(shared, second), Reply::Decided(_)));
    };
    assert_eq!(leads_for_s(&mut leader(), &["n2"], calls), STAYS);
    assert_eq!(leads_for_s(&mut leader(), &["n2"], no_more), 6);
    let calls = |shared: &mut Shared, second| {
        if second <= 5 {
            shared.call(second, false);
        }
    };
    assert_eq!(leads_for_s(&mut leader(), &["n2"], calls), 10, "the last one came too long ago");
}

/// There is nobody who could do better.
#[test]
fn with_no_other_it_never_resigns() {
    assert_eq!(leads_for_s(&mut leader(), &[], no_more), STAYS);
    // One that has stopped to rewrite its record is none.
    let mut shared = leader();
    shared.present(1, &[("n2", shared.now.wall_us), ("n3", shared.now.wall_us)]);
    shared.pass(15_000);
    assert!(shared.node.is_leader());
}

/// A leader that has just resigned for that reason, and knows it.
fn resigned() -> Shared {
    let mut shared = leader();
    assert_eq!(leads_for_s(&mut shared, &["n2", "n3"], no_more), 6);
    assert!(shared.node.state().leader().is_none(), "its resign has landed");
    shared
}

#[test]
fn whoever_resigned_leaves_the_log_alone_for_five_seconds() {
    let mut shared = resigned();
    shared.lands = false;
    // Up to a second has gone by since its resign landed.
    shared.pass(3_999);
    assert_eq!(shared.sent_body(), None, "others may do better");
    shared.pass(1_001);
    assert!(matches!(shared.sent_body(), Some(Body::Announce(_))), "nobody does");
}

#[test]
fn or_until_another_has_led() {
    let mut shared = resigned();
    shared.other_leads();
    let resign = shared.other(Body::Resign);
    shared.fetched(vec![resign]);
    shared.pass(10);
    assert!(shared.node.is_leader(), "the other has had its turn: nothing is left to wait for");
}
