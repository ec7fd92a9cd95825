//! Whose work the snapshots of a shared log are, and who has a log kept whole that a node disagrees with.

use super::{
    peers::leading,
    shared::{Shared, presence_of},
};
use crate::node::{Input, Presence};
use sereno_core::{command::Operation, entry::Body, ids::Position};
use sereno_log::Read;

/// Longer than what lies between two snapshots, in which the others rewrite their records. Gives how many this node
/// has begun.
fn rehearsals(mut shared: Shared, others: &[&str]) -> usize {
    let leads = shared.node.is_leader();
    for second in 1..=302 {
        let wall_us = shared.now.wall_us;
        let records: Vec<_> = others.iter().map(|&id| (id, wall_us)).collect();
        shared.present(second, &records);
        match leads {
            true => shared.give(Input::Reached),
            false => shared.beat(),
        }
        shared.pass(1_000);
    }
    assert_eq!(shared.node.is_leader(), leads, "who leads has not changed");
    shared.rehearsals
}

#[test]
fn snapshots_are_the_first_standbys_work() {
    // This one is n1, and n2 leads where it follows.
    assert_eq!(rehearsals(Shared::following(), &["n2", "n3"]), 1);
    assert_eq!(rehearsals(Shared::following(), &["n2"]), 1);
    assert_eq!(rehearsals(Shared::following(), &["n0", "n2"]), 0, "n0 is before it");
}

#[test]
fn a_leader_makes_them_only_where_it_is_alone() {
    assert_eq!(rehearsals(leading(), &["n2", "n3"]), 0);
    assert_eq!(rehearsals(leading(), &["n9"]), 0, "whatever the other is called");
    assert_eq!(rehearsals(leading(), &[]), 1);
}

/// How often the log was told to keep everything.
fn holds(shared: &Shared) -> usize {
    let Read::Entries(entries) = shared.log.read(Position(1), usize::MAX) else {
        panic!("nothing is trimmed here")
    };
    let bodies = entries.iter().map(|entry| {
        sereno_core::entry::Entry::decode(&entry.bytes).expect("the log holds entries").body
    });
    let commands = bodies.filter_map(|body| match body {
        Body::Batch(commands) => Some(commands),
        _ => None,
    });
    let is_hold = |operation: &Operation| matches!(operation, Operation::HoldTrim);
    commands.flatten().filter(|command| is_hold(&command.operation)).count()
}

fn told(shared: &mut Shared, distrusts: bool) {
    for beat in 1..=3 {
        let record = Presence { distrusts, beat, ..presence_of("n2") };
        shared.give(Input::Present(vec![record]));
        shared.give(Input::Reached);
        shared.pass(1_000);
    }
}

#[test]
fn a_leader_has_the_log_kept_that_another_node_disagrees_with() {
    let mut shared = leading();
    told(&mut shared, false);
    assert_eq!((holds(&shared), shared.node.state().is_trim_held()), (0, false));
    told(&mut shared, true);
    assert!(shared.node.state().is_trim_held(), "no node trims from here on");
    told(&mut shared, true);
    assert_eq!(holds(&shared), 1, "once is enough");
}

/// Whoever leads next says so, if the leader before could not.
#[test]
fn a_standby_leaves_that_to_its_leader() {
    let mut shared = Shared::following();
    let record = |beat| Presence { distrusts: true, beat, ..presence_of("n3") };
    for beat in 1..=10 {
        shared.give(Input::Present(vec![record(beat)]));
        shared.beat();
        shared.pass(500);
    }
    assert_eq!(holds(&shared), 0);
    shared.give(Input::Present(vec![record(11)]));
    shared.pass(3_000);
    assert!(shared.node.is_leader());
    assert_eq!((holds(&shared), shared.node.state().is_trim_held()), (1, true));
}
