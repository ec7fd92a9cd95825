//! A node in a world of its own: a clock that moves only when told, and a log where every append ends on purpose.
//!
//! Whatever a test does, the world holds the node to this: every call is answered at most once; an outcome is one
//! that the log's entries lead to (S5); the node's state is that of a replay; it never asks to be woken in the past.

pub(super) use super::asks::*;
use crate::{
    clock::{Mono, Now},
    handle::{Reply, Undecided},
    node::{CallId, Input, Node, Output, ReadId, Recovered, Settings},
};
use sereno_core::{
    State,
    command::Operation,
    entry::{Body, Entry, EntryHash, Head, SealedEntry, Writer},
    ids::{LogId, Position, Revision},
    limits,
    outcome::{Done, Outcome},
    testing,
};
use sereno_log::{Append, Read, memory::Memory};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const WALL_US: u64 = testing::TOKEN_CLOCK_US;

/// The append in flight.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) expected: Head,
    pub(super) entry: SealedEntry,
    pub(super) at: Mono,
}

impl Sent {
    pub(super) fn decoded(&self) -> Entry {
        Entry::decode(&self.entry.bytes).expect("the node sends entries")
    }

    pub(super) fn commands(&self) -> Vec<Operation> {
        match self.decoded().body {
            Body::Batch(commands) => commands.into_iter().map(|it| it.operation).collect(),
            other => panic!("a batch, not {other:?}"),
        }
    }
}

pub(super) struct World {
    pub(super) node: Node,
    pub(super) log: Memory,
    pub(super) now: Now,
    pub(super) sent: Option<Sent>,
    /// How often anything was sent.
    pub(super) sendings: usize,
    /// From sending to landing, in [`Self::run`].
    pub(super) latency_ns: u64,
    pub(super) replies: BTreeMap<CallId, Reply>,
    /// Where the state stood when the read was run.
    pub(super) reads: BTreeMap<ReadId, Result<Position, Undecided>>,
    pub(super) rehearsals: Vec<(Head, EntryHash)>,
    pub(super) trims: Vec<Position>,
    pub(super) reloads: Vec<Head>,
    pub(super) leads: usize,
    pub(super) halted: Option<String>,
    pub(super) stopped: bool,
    /// Calls whose answers reach nobody.
    pub(super) deaf: BTreeSet<CallId>,
    truth: State,
    outcomes: BTreeMap<Revision, Vec<Outcome>>,
    pub(super) asked: u64,
}

pub(super) fn settings() -> Settings {
    Settings {
        writer: Writer { node_id: "n1".into(), start: 1 },
        address: "here".into(),
        new_log_id: LogId([9; 16]),
        min_ttl_ms: limits::TTL_MS_MIN,
        snapshot_interval_ms: 300_000,
        snapshot_bytes: 1 << 40,
        is_shared: false,
        seed: 1,
        level_max: sereno_core::LEVEL_MAX,
        new_log_level: 1,
        region: None,
    }
}

impl World {
    /// A node at a new log; it has not done anything yet.
    pub(super) fn new() -> Self {
        Self::with(settings(), Memory::default(), WALL_US)
    }

    /// A node that finds this log.
    pub(super) fn with(settings: Settings, log: Memory, wall_us: u64) -> Self {
        let now = Now { mono: Mono(5_000_000_000), wall_us };
        let (mut truth, mut state) = (State::new(), State::new());
        let mut outcomes = BTreeMap::new();
        let Read::Entries(entries) = log.read(Position(1), usize::MAX) else {
            panic!("tests start from whole logs")
        };
        for entry in &entries {
            apply(&mut state, entry);
            learn(&mut truth, &mut outcomes, entry);
        }
        Self {
            node: Node::new(settings, state, Recovered::default(), now),
            log,
            now,
            sent: None,
            sendings: 0,
            latency_ns: 0,
            replies: BTreeMap::new(),
            reads: BTreeMap::new(),
            rehearsals: Vec::new(),
            trims: Vec::new(),
            reloads: Vec::new(),
            leads: 0,
            halted: None,
            stopped: false,
            deaf: BTreeSet::new(),
            truth,
            outcomes,
            asked: 0,
        }
    }

    /// A node that leads a new log.
    pub(super) fn leading() -> Self {
        Self::leading_with(settings())
    }

    pub(super) fn leading_with(settings: Settings) -> Self {
        let mut world = Self::with(settings, Memory::default(), WALL_US);
        world.advance();
        world.land();
        assert_eq!(world.leads, 1);
        world
    }

    /// What the log holds, replayed afresh.
    pub(super) fn replayed(&self) -> State {
        let Read::Entries(entries) = self.log.read(Position(1), usize::MAX) else {
            panic!("tests do not trim")
        };
        let mut state = State::new();
        entries.iter().for_each(|entry| apply(&mut state, entry));
        state
    }

    // ---- the clock ----

    pub(super) fn forward_ns(&mut self, ns: u64) {
        self.now.mono.0 += ns;
        self.now.wall_us += ns / 1_000;
    }

    /// Nothing happens but time: the log does not answer, and the node is woken when it wants to be.
    pub(super) fn pass(&mut self, ms: u64) {
        self.go(ms, false);
    }

    /// Time passes, and every append lands.
    pub(super) fn run(&mut self, ms: u64) {
        self.go(ms, true);
    }

    fn go(&mut self, ms: u64, landing: bool) {
        let end = self.now.mono.plus_ms(ms);
        loop {
            let lands = self.sent.as_ref().map(|sent| Mono(sent.at.0 + self.latency_ns));
            let lands = lands.filter(|_| landing).map(|at| at.max(self.now.mono));
            let due = [lands, self.node.wake_at()].into_iter().flatten().min();
            let Some(at) = due.filter(|&at| at <= end) else { break };
            self.forward_ns(at.since_ns(self.now.mono));
            if lands == Some(at) {
                self.land();
            } else {
                self.advance();
            }
        }
        self.forward_ns(end.since_ns(self.now.mono));
        self.advance();
        if landing && self.latency_ns == 0 {
            self.settle();
        }
    }

    /// Every append lands at once until the node has nothing to send.
    pub(super) fn settle(&mut self) {
        while self.sent.is_some() {
            self.land();
        }
    }

    // ---- the log ----

    /// The append lands, and the node is told.
    pub(super) fn land(&mut self) {
        let sent = self.sent.take().expect("an append is in flight");
        let result = self.deliver(&sent);
        self.give(Input::Appended(result));
    }

    /// A copy of an append reaches the log; nobody is told.
    pub(super) fn deliver(&mut self, sent: &Sent) -> Append {
        let result = self.log.append(&sent.expected, &sent.entry);
        if result == Append::Committed {
            learn(&mut self.truth, &mut self.outcomes, &sent.entry);
        }
        result
    }

    /// It lands, and the answer is lost.
    pub(super) fn land_unheard(&mut self) {
        let sent = self.sent.clone().expect("an append is in flight");
        assert_eq!(self.deliver(&sent), Append::Committed);
        self.lose();
    }

    /// Nobody knows what became of it. Gives the copy, which may still arrive.
    pub(super) fn lose(&mut self) -> Sent {
        let sent = self.sent.take().expect("an append is in flight");
        self.give(Input::Appended(Append::Unknown("lost".into())));
        sent
    }

    /// It certainly does not land.
    pub(super) fn refuse(&mut self) {
        self.sent.take().expect("an append is in flight");
        self.give(Input::Appended(Append::NotAppended("refused".into())));
    }

    // ---- the node ----

    pub(super) fn advance(&mut self) {
        let mut out = Vec::new();
        self.node.advance(self.now, &mut out);
        self.absorb(out);
        assert_eq!(self.halted, None, "nothing here is a reason to halt");
        let wake_at = self.node.wake_at();
        assert!(
            wake_at.is_none_or(|at| at > self.now.mono),
            "having done what is due, it sleeps: {wake_at:?} at {:?}",
            self.now.mono
        );
    }

    /// An input, and what follows from it.
    pub(super) fn give(&mut self, input: Input) {
        self.hand(input);
        self.advance();
    }

    /// An input; others may come before the node looks at them together.
    pub(super) fn hand(&mut self, input: Input) {
        let mut out = Vec::new();
        self.node.handle(self.now, input, &mut out);
        self.absorb(out);
    }

    fn absorb(&mut self, out: Vec<Output>) {
        let mut unheard = Vec::new();
        for output in out {
            match output {
                Output::Append { expected, entry } => {
                    assert!(self.sent.is_none(), "one append at a time");
                    self.sendings += 1;
                    self.sent = Some(Sent { expected, entry, at: self.now.mono });
                }
                Output::Reply(id, reply) => {
                    self.check_reply(&reply);
                    if self.deaf.contains(&id)
                        && let Reply::Decided(Outcome { result: Ok(Done::Granted(grant)), .. }) =
                            &reply
                    {
                        unheard.push(grant.claim);
                    }
                    let before = self.replies.insert(id, reply);
                    assert_eq!(before, None, "{id:?} is answered once");
                }
                Output::ReadReady(id) => {
                    let before = self.reads.insert(id, Ok(self.node.state().head().position));
                    assert_eq!(before, None, "{id:?} is answered once");
                }
                Output::ReadFailed(id, undecided) => {
                    let before = self.reads.insert(id, Err(undecided));
                    assert_eq!(before, None, "{id:?} is answered once");
                }
                Output::Committed(_) => self.check_state(),
                Output::Rehearse { head, outcome_chain } => {
                    self.rehearsals.push((head, outcome_chain));
                }
                Output::Trim(position) => self.trims.push(position),
                Output::Reload(head) => self.reloads.push(head),
                Output::Leads { .. } => self.leads += 1,
                Output::Halt(message) => self.halted = Some(message),
                Output::Stopped => self.stopped = true,
                Output::Fetch(_)
                | Output::Jumped
                | Output::Link(_)
                | Output::Send(_)
                | Output::Publish(_) => unreachable!("nobody shares this log"),
            }
        }
        for claim in unheard {
            self.hand(Input::Unheard(claim));
        }
    }

    /// The log holds the entry that an answer rests on (S5).
    fn check_reply(&self, reply: &Reply) {
        let Reply::Decided(outcome) = reply else { return };
        let of_log = self.outcomes.get(&outcome.revision);
        let is_of_log = of_log.is_some_and(|there| there.contains(outcome));
        let is_place = matches!(outcome.result, Ok(Done::Waiting(_)))
            && outcome.revision <= self.truth.revision();
        assert!(is_of_log || is_place, "the log leads to {outcome:?}");
    }

    fn check_state(&self) {
        let (mine, log) = (self.node.state(), &self.truth);
        assert!(mine.head().position <= log.head().position, "only the log's entries are applied");
        if mine.head().position == log.head().position {
            assert_eq!(mine.outcome_chain(), log.outcome_chain(), "one log, one state (S1)");
        }
    }
}

fn apply(state: &mut State, sealed: &SealedEntry) {
    let entry = Entry::decode(&sealed.bytes).expect("the log holds entries");
    state.apply(&entry, sealed.head.hash).expect("they fit");
}

fn learn(truth: &mut State, outcomes: &mut BTreeMap<Revision, Vec<Outcome>>, sealed: &SealedEntry) {
    let entry = Entry::decode(&sealed.bytes).expect("the log holds entries");
    let applied = truth.apply(&entry, sealed.head.hash).expect("they fit");
    let settled = applied.settled.into_iter().map(|settled| settled.outcome);
    for outcome in applied.outcomes.into_iter().chain(settled) {
        outcomes.entry(outcome.revision).or_default().push(outcome);
    }
}
