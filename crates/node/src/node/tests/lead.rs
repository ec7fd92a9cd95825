//! Who leads (section 6), and with which token clock (section 4).

use super::world::{WALL_US, World, acquire, release, settings};
use crate::{handle::Role, node::Settings};
use sereno_core::{
    entry::{Announce, Body, Genesis, Head, Writer},
    ids::{ClusterTime, Epoch, LogId, Position},
    limits,
};
use sereno_log::memory::Memory;

fn other_start() -> Settings {
    Settings { writer: Writer { node_id: "n1".into(), start: 2 }, ..settings() }
}

/// What a first leader leaves behind: one lock granted, 3 s old.
fn used_log() -> Memory {
    let mut world = World::leading();
    world.done(acquire("a", 1));
    world.run(3_000);
    world.log
}

#[test]
fn a_node_announces_and_acts_only_after_it_has_applied_its_announce() {
    let mut world = World::new();
    let early = world.call(acquire("a", 1));
    let announce = world.sent.as_ref().expect("it announces at once").decoded();
    assert!(
        matches!(announce.body, Body::Announce(Announce { ref address, .. }) if address == "here")
    );
    assert_eq!((announce.position, announce.epoch), (Position(1), Epoch(1)));
    world.pass(2_000);
    assert_eq!(world.leads, 0);
    assert_eq!(world.node.status(world.now.mono).role, Role::Follower);
    assert_eq!(world.not_ready(), Some("starting".into()));
    assert!(world.is_open(early));

    world.land();
    assert_eq!(world.leads, 1);
    assert_eq!(world.node.status(world.now.mono).role, Role::Leader { epoch: Position(1) });
    assert_eq!(world.not_ready(), None);
    world.land();
    world.granted(early);
}

#[test]
fn the_first_announce_founds_the_log_and_its_tokens_begin_five_minutes_ahead() {
    let mut world = World::new();
    world.advance();
    let announce = world.sent.as_ref().unwrap().decoded();
    let genesis = Genesis { log_id: LogId([9; 16]), min_ttl_ms: limits::TTL_MS_MIN };
    let Body::Announce(Announce { genesis: Some(found), .. }) = announce.body else {
        panic!("a first announce founds the log")
    };
    assert_eq!(found, genesis);
    assert_eq!(announce.token_clock_us, WALL_US);
    assert_eq!(announce.time, ClusterTime(0));
    world.land();
    assert_eq!(world.node.state().log_id(), LogId([9; 16]));
    let id = world.done(acquire("a", 1));
    assert_eq!(world.granted(id).holdings[0].1.0, WALL_US + 300_000_000);
}

/// S2 with a data folder wiped twice: the second log's tokens pass the first one's, although its leader's clock lags
/// a minute behind. A headroom that lasted as long as the first reign would be as high as the second one's.
#[test]
fn a_folder_wiped_soon_after_its_founding_grants_higher_tokens_all_the_same() {
    let mut first = World::new();
    first.run(120_000);
    let id = first.done(acquire("a", 1));
    let before = first.granted(id).holdings[0].1;
    let mut second =
        World::with(other_start(), Memory::default(), WALL_US + 120_000_000 - 60_000_000);
    second.run(1_000);
    let id = second.done(acquire("a", 1));
    assert!(second.granted(id).holdings[0].1 > before);
}

#[test]
fn a_later_announce_continues_time_tokens_and_the_log() {
    let log = used_log();
    let before = log.head();
    let mut world = World::with(other_start(), log, WALL_US + 60_000_000);
    let time = world.time();
    world.advance();
    let announce = world.sent.as_ref().unwrap().decoded();
    assert!(matches!(announce.body, Body::Announce(Announce { genesis: None, .. })));
    assert_eq!(announce.epoch, Epoch(before.position.0 + 1));
    assert_eq!(announce.previous, before.hash);
    assert_eq!(announce.time, time, "an announce carries the time of the entry before");
    assert_eq!(announce.token_clock_us, WALL_US + 60_000_000, "no headroom");
    world.land();
    // The headroom of the first reign is above this clock: tokens rise all the same (S2).
    let last = world.node.state().last_token();
    let id = world.done(acquire("b", 2));
    assert!(world.granted(id).holdings[0].1 > last);
}

#[test]
fn a_restarted_process_is_another_writer_and_does_not_act_on_the_old_ones_announce() {
    let mut world = World::with(other_start(), used_log(), WALL_US);
    assert!(world.node.state().leader().is_some(), "the log still names the old start");
    let id = world.call(release("a", 1));
    assert!(matches!(world.sent.as_ref().unwrap().decoded().body, Body::Announce(_)));
    world.settle();
    assert_eq!(world.outcome(id).revision.0, world.node.state().revision().0);
}

#[test]
fn a_node_whose_wall_clock_is_out_of_range_refuses_to_lead_and_says_so() {
    for (wall_us, said) in [(0, "before 2025"), (limits::WALL_US_MAX + 1, "after 2100")] {
        let mut world = World::with(settings(), Memory::default(), wall_us);
        let id = world.call(acquire("a", 1).within(1_000));
        world.run(5_000);
        assert!(world.sent.is_none() && world.leads == 0 && world.log.head() == Head::EMPTY);
        assert!(world.not_ready().unwrap().contains(said), "{:?}", world.not_ready());
        assert!(world.is_unavailable(id), "its caller is told in time");
        // Somebody sets the clock.
        world.now.wall_us = WALL_US;
        world.run(1_000);
        assert_eq!((world.leads, world.not_ready()), (1, None));
    }
}

#[test]
fn a_step_of_the_wall_clock_changes_nothing_until_the_next_announce() {
    let mut world = World::leading();
    world.run(300_000); // Until the wall clock has come to where the tokens begin.
    let clock = world.node.state().time();
    for step_us in [-86_400_000_000_i64, 86_400_000_000] {
        world.now.wall_us = world.now.wall_us.wrapping_add_signed(step_us);
        world.run(500);
    }
    let last = world.sent.is_none().then(|| world.replayed()).unwrap();
    assert_eq!(last.time(), clock.plus(1_000));
    let id = world.done(acquire("a", 1));
    let token = world.granted(id).holdings[0].1.0;
    let due = WALL_US + 300_000_000 + 1_000_000;
    assert!((due..due + 1_000).contains(&token), "{token}");
}

#[test]
fn an_announce_whose_answer_is_lost_is_sent_again_and_found_in_its_slot() {
    let mut world = World::new();
    world.advance();
    world.land_unheard();
    assert_eq!(world.leads, 0);
    world.run(1_000);
    assert_eq!(world.leads, 1);
    let announces = world.replayed().head().epoch;
    assert_eq!(announces, Epoch(1), "it is in the log once");
}

#[test]
fn an_announce_that_was_refused_is_made_anew() {
    let mut world = World::new();
    world.advance();
    let first = world.sent.clone().unwrap();
    world.refuse();
    assert_eq!(world.not_ready().unwrap(), "the log takes no entries");
    world.run(1_000);
    assert_eq!(world.leads, 1);
    assert!(world.log.slot(Position(1)) != sereno_log::Slot::Entry(first.entry.head.hash));
}
