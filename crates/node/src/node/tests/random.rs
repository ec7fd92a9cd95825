//! Random inputs and random append results for thousands of steps. The world checks after every step that no call
//! is answered twice, that an outcome is one of the log's, and that the state is that of a replay.

use super::world::{
    Ask, Sent, World, abandon, acquire, acquire_for, acquire_in, put_namespace, queue_for, release,
    renew, renew_many, settings,
};
use crate::{
    handle::{Consistency, Reply, Undecided},
    node::{CallId, Input, Rehearsal, Settings},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sereno_core::{
    ids::ClusterTime,
    outcome::{Done, Outcome},
    policy::Policy,
    testing,
};
use sereno_log::Append;
use std::collections::BTreeSet;

struct Run {
    world: World,
    random: StdRng,
    calls: Vec<CallId>,
    cancelled: BTreeSet<CallId>,
    reads: usize,
    late: Vec<Sent>,
    /// Nobody knows yet what became of the append.
    unknown: bool,
}

const RESOURCES: [&str; 4] = ["a", "b", "c", "d"];

impl Run {
    fn new(seed: u64) -> Self {
        let short = Settings { snapshot_interval_ms: 5_000, snapshot_bytes: 50_000, ..settings() };
        let world =
            World::with(short, sereno_log::memory::Memory::default(), super::world::WALL_US);
        Self {
            world,
            random: StdRng::seed_from_u64(seed),
            calls: Vec::new(),
            cancelled: BTreeSet::new(),
            reads: 0,
            late: Vec::new(),
            unknown: false,
        }
    }

    fn ask(&mut self) -> Ask {
        let resource = RESOURCES[self.random.random_range(0..RESOURCES.len())];
        let n = self.random.random_range(1..60);
        let ask = match self.random.random_range(0..12) {
            0 | 1 => acquire(resource, n),
            2 => acquire_for(resource, n, self.random.random_range(500..30_000)),
            3..=5 => queue_for(resource, n),
            6 => renew(resource, n),
            7 => renew_many(vec![testing::lease(resource, n), testing::lease("a", n + 1)]),
            8 | 9 => release(resource, n),
            10 => abandon(n),
            _ if n % 2 == 0 => acquire_in("rated", resource, n),
            _ => {
                let rate = (n % 3 == 0).then_some(n);
                let policy = Policy { requests_per_second: rate, ..Policy::default() };
                put_namespace("rated", n % 4, policy)
            }
        };
        let ask = match self.random.random_range(0..4) {
            0 => ask.held(self.random.random_range(0..15_000)),
            1 => ask.within(self.random.random_range(0..3_000)),
            _ => ask,
        };
        let caller = ["", "x", "y"][self.random.random_range(0..3)];
        let born_at = (self.random.random_range(0..20) == 0)
            .then(|| ClusterTime(self.random.random_range(0..100_000)));
        Ask { born_at, ..ask.by(caller) }
    }

    fn step(&mut self) {
        match self.random.random_range(0..20) {
            0..=5 => {
                let ask = self.ask();
                let id = self.world.queue(ask);
                self.calls.push(id);
                if self.random.random_range(0..6) == 0 {
                    self.world.deaf.insert(id);
                }
            }
            6 => {
                if let Some(&id) = self.calls.get(self.random.random_range(0..=self.calls.len())) {
                    self.cancelled.insert(id);
                    self.world.hand(Input::Cancelled(id));
                }
            }
            7 => {
                self.reads += 1;
                self.world.read(Consistency::Consistent);
            }
            8 => self.world.forward_ns(self.random.random_range(0..2_000_000_000)),
            9 => self.late_copy(),
            10 => self.rehearsal(),
            11..=15 => self.result(),
            _ => self.world.forward_ns(self.random.random_range(0..20_000_000)),
        }
        if self.random.random_range(0..3) > 0 {
            self.world.advance();
        }
    }

    fn result(&mut self) {
        if self.world.sent.is_none() {
            return;
        }
        match self.random.random_range(0..10) {
            0 => {
                self.late.push(self.world.lose());
                self.unknown = true;
            }
            1 if !self.unknown => {
                self.world.land_unheard();
                self.unknown = true;
            }
            2 => self.world.refuse(),
            _ => {
                self.world.land();
                self.unknown = false;
            }
        }
    }

    /// A copy that nobody knew of arrives; it may be long overtaken.
    fn late_copy(&mut self) {
        if let Some(copy) = self.late.pop() {
            let landed = self.world.deliver(&copy);
            assert!(matches!(landed, Append::Committed | Append::Conflict(_)), "{landed:?}");
        }
    }

    fn rehearsal(&mut self) {
        if let Some((head, _)) = self.world.rehearsals.pop() {
            let rehearsal = match self.random.random_range(0..6) {
                0 => Rehearsal::Failed("planned".into()),
                1 => Rehearsal::Differs(head),
                _ => Rehearsal::Saved(head),
            };
            self.world.hand(Input::Rehearsed(rehearsal));
        }
        if self.world.reloads.pop().is_some() {
            let state = self.world.replayed();
            let again = state.outcome_chain();
            self.world.hand(Input::Reloaded { state: Box::new(state), again });
        }
    }

    /// The faults end, every caller's deadline passes, and the node stops.
    fn end(mut self) -> World {
        for _ in 0..200 {
            self.rehearsal();
            self.world.advance();
            self.world.run(100);
        }
        self.world.run(40_000);
        self.world.give(Input::Stop);
        self.world.run(2_000);
        assert!(self.world.stopped);
        for id in &self.calls {
            let answered = self.world.replies.contains_key(id);
            assert!(answered || self.cancelled.contains(id), "{id:?} was answered or cancelled");
        }
        assert_eq!(self.world.reads.len(), self.reads, "every read was answered");
        self.world.node.calls.check_closed();
        self.world
    }
}

fn is_granted(reply: &Reply) -> bool {
    matches!(reply, Reply::Decided(Outcome { result: Ok(Done::Granted(_)), .. }))
}

#[test]
fn every_call_is_answered_once_and_every_outcome_is_the_logs() {
    let (mut granted, mut unknown, mut leads) = (0, 0, 0);
    for seed in 0..150 {
        let mut run = Run::new(seed);
        for _ in 0..2_000 {
            run.step();
        }
        let world = run.end();
        let replayed = world.replayed();
        assert_eq!(replayed.outcome_chain(), world.node.state().outcome_chain(), "seed {seed}");
        replayed.check_invariants();
        granted += world.replies.values().filter(|reply| is_granted(reply)).count();
        let is_unknown = |reply: &&Reply| matches!(reply, Reply::Undecided(Undecided::Unknown));
        unknown += world.replies.values().filter(is_unknown).count();
        leads += world.leads;
    }
    // The run has seen what it is there for.
    assert!(granted > 1_000 && unknown > 100 && leads > 300, "{granted} {unknown} {leads}");
}

#[test]
fn one_seed_gives_one_history() {
    let run = || {
        let mut run = Run::new(42);
        for _ in 0..3_000 {
            run.step();
        }
        let world = run.end();
        (world.node.state().outcome_chain(), world.replies)
    };
    assert_eq!(run(), run());
}
