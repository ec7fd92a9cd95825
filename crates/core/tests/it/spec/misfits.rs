//! Entries that cannot follow are refused, and then nothing has changed (sections 3, 5 and 6).

use sereno_core::{
    LEVEL_MAX, Misfit, State,
    command::{Command, Operation},
    entry::{Announce, Body, Entry, EntryHash, Genesis, Writer},
    ids::{ClusterTime, Epoch, LogId, Position},
    names::Caller,
    testing::{Scribe, acquire},
};

/// A log with something in it.
fn begun() -> Scribe {
    let mut scribe = Scribe::new();
    scribe.run(Operation::Acquire(acquire("a", 1)));
    scribe.pass(2_000);
    scribe
}

/// Applies a changed entry: it is refused and leaves no trace, and the unchanged one still fits.
fn refused(scribe: &mut Scribe, body: Body, change: impl FnOnce(&mut Entry)) -> Misfit {
    let sound = scribe.entry(500, body);
    let mut entry = sound.clone();
    change(&mut entry);
    let before = scribe.state.to_snapshot();
    let misfit = scribe.state.apply(&entry, EntryHash([9; 32])).expect_err("a misfit");
    assert_eq!(scribe.state.to_snapshot(), before, "{misfit}");
    scribe.state.apply(&sound, EntryHash([9; 32])).expect("the sound one fits");
    misfit
}

fn batch() -> Body {
    Body::Batch(Vec::new())
}

fn announce(genesis: Option<Genesis>) -> Body {
    Body::Announce(Announce { address: "n2".into(), genesis })
}

const GENESIS: Genesis = Genesis { log_id: LogId([3; 16]), min_ttl_ms: 1_000 };

#[test]
fn a_gap_or_a_repetition() {
    for found in [0, 1, 6, 8, u64::MAX] {
        let misfit = refused(&mut begun(), batch(), |entry| entry.position = Position(found));
        let (due, found) = (Position(7), Position(found));
        assert_eq!(misfit, Misfit::Position { due, found });
    }
}

#[test]
fn another_predecessor() {
    let misfit = refused(&mut begun(), batch(), |entry| entry.previous = EntryHash([1; 32]));
    assert!(matches!(misfit, Misfit::Chain { found: EntryHash([1, ..]), .. }), "{misfit}");
}

#[test]
fn another_epoch() {
    for found in [0, 2, 7] {
        let misfit = refused(&mut begun(), batch(), |entry| entry.epoch = Epoch(found));
        let (due, found) = (Epoch(1), Epoch(found));
        assert_eq!(misfit, Misfit::Epoch { position: Position(7), due, found });
    }
    let misfit = refused(&mut begun(), announce(None), |entry| entry.epoch = Epoch(1));
    assert!(matches!(misfit, Misfit::Epoch { due: Epoch(7), .. }), "an announce begins one");
}

#[test]
fn another_writer_of_the_same_epoch() {
    let other_start = |entry: &mut Entry| entry.writer.start += 1;
    let other_node = |entry: &mut Entry| entry.writer.node_id = "other".into();
    for body in [batch(), Body::Resign] {
        let misfit = refused(&mut begun(), body.clone(), other_start);
        assert!(matches!(misfit, Misfit::Epoch { .. }), "a restarted process is another one");
        let misfit = refused(&mut begun(), body, other_node);
        assert!(matches!(misfit, Misfit::Epoch { .. }));
    }
}

#[test]
fn a_deposed_or_resigned_leader() {
    let mut scribe = begun();
    let old = scribe.writer.clone();
    scribe.lead("n2", scribe.wall_us());
    assert_eq!(scribe.state.leader().unwrap().address, "n2");
    let misfit = refused(&mut scribe, batch(), |entry| entry.writer = old);
    assert!(matches!(misfit, Misfit::Epoch { .. }));

    let mut scribe = begun();
    scribe.write(0, Body::Resign);
    assert_eq!(scribe.state.leader(), None);
    let entry = scribe.entry(500, batch());
    let before = scribe.state.to_snapshot();
    let misfit = scribe.state.apply(&entry, EntryHash::ZERO).unwrap_err();
    assert!(matches!(misfit, Misfit::Epoch { .. }), "who has resigned writes no more");
    assert_eq!(scribe.state.to_snapshot(), before);
    scribe.lead("n1", scribe.wall_us());
    scribe.pass(500);
}

#[test]
fn time_that_runs_back_or_too_far() {
    let before = begun().state.time();
    assert_eq!(before, ClusterTime(2_000));
    for found in [0, 1_999, 3_001, u64::MAX] {
        for body in [batch(), announce(None), Body::Resign] {
            let misfit = refused(&mut begun(), body, |entry| entry.time = ClusterTime(found));
            let found = ClusterTime(found);
            assert_eq!(misfit, Misfit::Time { position: Position(7), before, found });
        }
    }
    for step in [0, 1, 1_000] {
        begun().write(step, batch());
    }
}

#[test]
fn a_second_genesis_or_none() {
    let misfit =
        refused(&mut begun(), announce(None), |entry| entry.body = announce(Some(GENESIS)));
    assert_eq!(misfit, Misfit::Genesis(Position(7)));

    let mut first = Scribe::new();
    first.state = State::new();
    for body in [batch(), Body::Resign, announce(None)] {
        let entry = first.entry(0, body);
        let misfit = first.state.apply(&entry, EntryHash::ZERO).unwrap_err();
        assert_eq!(misfit, Misfit::Genesis(Position(1)));
    }
    first.write(0, announce(Some(GENESIS)));
    assert_eq!(first.state.log_id(), GENESIS.log_id);
}

#[test]
fn a_level_that_this_version_does_not_know() {
    let raise = |level| Command {
        caller: Caller::new("").unwrap(),
        born_at: ClusterTime(2_000),
        operation: Operation::RaiseLevel { level },
    };
    let acquire = Command { operation: Operation::Acquire(acquire("b", 2)), ..raise(0) };
    let misfit = refused(&mut begun(), batch(), |entry| {
        entry.body = Body::Batch(vec![acquire, raise(LEVEL_MAX), raise(LEVEL_MAX + 1)]);
    });
    let level = LEVEL_MAX + 1;
    assert_eq!(misfit, Misfit::Level { position: Position(7), level });
}

#[test]
fn an_announce_makes_its_writer_the_leader_from_its_own_position() {
    let mut scribe = begun();
    scribe.lead("n2", scribe.wall_us());
    let head = scribe.state.head();
    assert_eq!((head.position, head.epoch), (Position(7), Epoch(7)));
    let writer = Writer { node_id: "n2".into(), start: 2 };
    assert_eq!(scribe.state.leader().unwrap().writer, writer);
}

#[test]
fn a_token_clock_beyond_all_tokens() {
    // Applied, it would stop every node at its next grant, and again after each restart.
    for clock in [1 << 53, u64::MAX] {
        let misfit = refused(&mut begun(), batch(), |entry| entry.token_clock_us = clock);
        assert_eq!(misfit, Misfit::TokenClock { position: Position(7), found: clock });
        refused(&mut begun(), announce(None), |entry| entry.token_clock_us = clock);
    }
}
