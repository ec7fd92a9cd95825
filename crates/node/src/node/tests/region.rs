//! Where a service runs: a leader has the log say what it was told (section 11).

use super::{
    asks::Ask,
    shared::{OTHER, Shared},
    world::{WALL_US, World, settings},
};
use crate::node::Settings;
use sereno_core::{
    LEVEL_MAX,
    command::{Command, Operation},
    entry::{Body, Entry, Writer},
    ids::Position,
    names::{Caller, RegionName},
};
use sereno_log::{Read, memory::Memory};

fn region(name: &str) -> RegionName {
    RegionName::new(name).expect("tests use valid names")
}

/// A node that was told where it runs, in this start of its process.
fn told(name: Option<&str>, start: u64) -> Settings {
    let writer = Writer { node_id: "n1".into(), start };
    let region = name.map(region);
    Settings { writer, region, new_log_level: LEVEL_MAX, ..settings() }
}

/// What the log was told, in order.
fn telling(log: &Memory) -> Vec<Option<RegionName>> {
    let Read::Entries(entries) = log.read(Position(1), usize::MAX) else {
        panic!("tests start from whole logs")
    };
    let bodies = entries.iter().map(|sealed| {
        let entry = Entry::decode(&sealed.bytes).expect("the log holds entries");
        entry.body
    });
    let commands = bodies.flat_map(|body| match body {
        Body::Batch(commands) => commands,
        _ => Vec::new(),
    });
    let regions = commands.filter_map(|command| match command.operation {
        Operation::SetRegion { region } => Some(region),
        _ => None,
    });
    regions.collect()
}

fn status_region(world: &World) -> Option<RegionName> {
    world.node.status(world.now.mono).region
}

#[test]
fn a_new_log_is_told_with_its_level_and_once() {
    let mut world = World::leading_with(told(Some("eu"), 1));
    let first = world.sent.as_ref().expect("it has something to say at once").commands();
    let [Operation::RaiseLevel { level: LEVEL_MAX }, Operation::SetRegion { region: Some(it) }] =
        &first[..]
    else {
        panic!("the level, then the region: {first:?}")
    };
    assert_eq!(*it, region("eu"));
    assert_eq!(status_region(&world), None);
    world.run(5_000);
    assert_eq!(status_region(&world), Some(region("eu")));
    assert_eq!(telling(&world.log), [Some(region("eu"))]);
}

#[test]
fn below_the_level_of_regions_it_waits_for_the_level() {
    let settings = Settings { new_log_level: 3, ..told(Some("eu"), 1) };
    let mut world = World::leading_with(settings);
    world.run(3_000);
    assert_eq!((world.node.state().level(), telling(&world.log)), (3, Vec::new()));
    world.done(Ask::new(Operation::RaiseLevel { level: 4 }));
    world.settle();
    assert_eq!(status_region(&world), Some(region("eu")));
    world.run(3_000);
    assert_eq!(telling(&world.log).len(), 1);
}

#[test]
fn an_entry_that_did_not_land_is_said_again() {
    let mut world = World::leading_with(told(Some("eu"), 1));
    world.refuse();
    world.run(1_000);
    assert_eq!(telling(&world.log), [Some(region("eu"))]);

    let mut world = World::leading_with(told(Some("eu"), 1));
    world.land_unheard();
    world.run(1_000);
    assert_eq!(telling(&world.log), [Some(region("eu"))], "what is in doubt is not said twice");
}

/// Nodes that were told different regions: whoever leads says its own, in each reign once.
#[test]
fn whoever_leads_again_says_it_again() {
    let mut shared = Shared::of(Settings { is_shared: true, ..told(Some("eu"), 1) });
    shared.pass(3_000);
    assert_eq!(telling(&shared.log), [Some(region("eu"))]);
    let announce = shared.other_announces(OTHER);
    shared.pass(1_000);
    shared.fetched(vec![announce]);
    let us = Operation::SetRegion { region: Some(region("us")) };
    let caller = Caller::new("").expect("anonymous is a caller");
    let command = Command { caller, born_at: shared.node.state().time(), operation: us };
    let other = shared.other(Body::Batch(vec![command]));
    shared.fetched(vec![other]);
    assert_eq!(shared.node.state().region(), Some(&region("us")));
    assert!(!shared.node.is_leader());
    shared.pass(5_000);
    assert!(shared.node.is_leader());
    assert_eq!(telling(&shared.log), ["eu", "us", "eu"].map(|name| Some(region(name))));
}

#[test]
fn the_next_leader_says_what_it_was_told_and_nothing_if_it_was_not() {
    let mut first = World::leading_with(told(Some("eu"), 1));
    first.run(1_000);
    let mut silent = World::with(told(None, 2), first.log, WALL_US + 1_000_000);
    silent.run(3_000);
    assert_eq!((silent.leads, status_region(&silent)), (1, Some(region("eu"))));
    let mut same = World::with(told(Some("eu"), 3), silent.log, WALL_US + 4_000_000);
    same.run(3_000);
    assert_eq!(telling(&same.log).len(), 1);
    let mut moved = World::with(told(Some("us"), 4), same.log, WALL_US + 7_000_000);
    moved.run(3_000);
    assert_eq!(telling(&moved.log), [Some(region("eu")), Some(region("us"))]);
    assert_eq!(status_region(&moved), Some(region("us")));
}
