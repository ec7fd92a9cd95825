//! A node that shares its log, driven by hand: what it does when another leads.

use super::{
    asks::{Ask, acquire},
    world::{WALL_US, settings},
};
use crate::{
    clock::{Mono, Now},
    handle::{Reply, Undecided},
    node::{CallId, Fetched, Input, Node, NodeCall, Output, Presence, Recovered, Settings},
    peer::Request,
};
use sereno_core::{
    LEVEL_MAX, State,
    command::{Command, Operation},
    entry::{Announce, Body, Entry, Head, SealedEntry, Writer},
    ids::{ClusterTime, Epoch},
    names::Caller,
    testing::Scribe,
};
use sereno_log::{Append, memory::Memory};

pub(super) const OTHER: &str = "there";

pub(super) struct Shared {
    pub(super) node: Node,
    pub(super) now: Now,
    pub(super) log: Memory,
    /// Whether what the node appends lands.
    pub(super) lands: bool,
    pub(super) sent: Option<(Head, SealedEntry)>,
    fetches: usize,
    pub(super) rehearsals: usize,
    /// How long each time took that it came to lead.
    pub(super) leads_ns: Vec<u64>,
    links: Vec<Option<String>>,
    pub(super) requests: Vec<Request>,
    pub(super) replies: Vec<(CallId, Reply)>,
    pub(super) halted: Option<String>,
}

impl Shared {
    /// A node at a log that another one has founded and leads.
    pub(super) fn following() -> Self {
        Self::following_at_level(LEVEL_MAX)
    }

    fn following_at_level(level_max: u32) -> Self {
        let mut shared = Self::of_level(level_max, Memory::default());
        let genesis = Scribe::genesis();
        let sealed = genesis.seal(Scribe::new().state.log_id());
        assert_eq!(shared.log.append(&Head::EMPTY, &sealed), Append::Committed);
        shared.fetched(vec![sealed]);
        shared.other_leads();
        assert_eq!(shared.links.last(), Some(&Some(OTHER.into())));
        shared
    }

    pub(super) fn at(log: Memory) -> Self {
        Self::of_level(LEVEL_MAX, log)
    }

    /// The same as a program that knows the levels up to this.
    fn of_level(level_max: u32, log: Memory) -> Self {
        Self { log, ..Self::of(Settings { is_shared: true, level_max, ..settings() }) }
    }

    /// A node that was told this, at no log yet.
    pub(super) fn of(settings: Settings) -> Self {
        let now = Now { mono: Mono(5_000_000_000), wall_us: WALL_US };
        let node = Node::new(settings, State::new(), Recovered::default(), now);
        Self {
            node,
            now,
            log: Memory::default(),
            lands: true,
            sent: None,
            fetches: 0,
            rehearsals: 0,
            leads_ns: Vec::new(),
            links: Vec::new(),
            requests: Vec::new(),
            replies: Vec::new(),
            halted: None,
        }
    }

    /// The other node writes what follows on this node's head.
    pub(super) fn other(&mut self, body: Body) -> SealedEntry {
        let expected = self.log.head();
        let position = expected.position.next();
        let epoch = match body {
            Body::Announce(_) => Epoch(position.0),
            _ => expected.epoch,
        };
        let entry = Entry {
            position,
            epoch,
            writer: Writer { node_id: "n2".into(), start: 2 },
            time: self.node.state().time(),
            token_clock_us: WALL_US,
            previous: expected.hash,
            body,
        };
        let sealed = entry.seal(expected.log_id);
        assert_eq!(self.log.append(&expected, &sealed), Append::Committed);
        sealed
    }

    pub(super) fn beat(&mut self) {
        let beat = self.other(Body::Batch(Vec::new()));
        self.fetched(vec![beat]);
    }

    pub(super) fn fetched(&mut self, entries: Vec<SealedEntry>) {
        self.give(Input::Fetched(Fetched::Entries(entries)));
    }

    /// What this node has sent last, as the log would read it.
    pub(super) fn sent_body(&self) -> Option<Body> {
        let (_, sealed) = self.sent.as_ref()?;
        Some(Entry::decode(&sealed.bytes).expect("the node sends entries").body)
    }

    pub(super) fn other_announces(&mut self, address: &str) -> SealedEntry {
        self.other(Body::Announce(Announce { address: address.into(), genesis: None }))
    }

    /// The other node announces, and this one reads it.
    pub(super) fn other_leads(&mut self) {
        let leads = self.other_announces(OTHER);
        self.fetched(vec![leads]);
    }

    pub(super) fn present(&mut self, beat: u64, others: &[(&str, u64)]) {
        let record = |&(id, wall_us): &(&str, u64)| Presence { wall_us, beat, ..presence_of(id) };
        self.give(Input::Present(others.iter().map(record).collect()));
    }

    pub(super) fn call(&mut self, id: u64, is_passed: bool) {
        self.ask(id, acquire("a", id), is_passed);
    }

    /// A call for whatever `ask` says, within 5 s.
    pub(super) fn ask(&mut self, id: u64, ask: Ask, is_passed: bool) {
        let Ask { caller, operation, born_at, .. } = ask;
        let deadline = self.now.mono.plus_ms(5_000);
        let (id, hold_ms) = (CallId(id), 0);
        let call = NodeCall { id, caller, operation, born_at, deadline, hold_ms, is_passed };
        self.give(Input::Call(call));
    }

    pub(super) fn give(&mut self, input: Input) {
        assert_eq!(self.halted, None, "who has halted is asked nothing more");
        let mut out = Vec::new();
        self.node.handle(self.now, input, &mut out);
        self.node.advance(self.now, &mut out);
        self.absorb(out);
    }

    fn absorb(&mut self, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Append { expected, entry } => self.sent = Some((expected, entry)),
                Output::Fetch(_) => self.fetches += 1,
                Output::Rehearse { .. } => self.rehearsals += 1,
                Output::Leads { took_ns } => self.leads_ns.push(took_ns),
                Output::Link(leader) => self.links.push(leader),
                Output::Send(request) => self.requests.push(request),
                Output::Reply(id, reply) => self.replies.push((id, reply)),
                Output::Halt(message) => self.halted = Some(message),
                _ => {}
            }
        }
        let wake_at = self.node.wake_at();
        assert!(wake_at.is_none_or(|at| at > self.now.mono), "it sleeps, and does not spin");
        if self.lands {
            self.land();
        }
    }

    fn land(&mut self) {
        if let Some((expected, entry)) = self.sent.take() {
            let result = self.log.append(&expected, &entry);
            self.give(Input::Appended(result));
        }
    }

    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.mono.plus_ms(ms);
        while let Some(at) = self.node.wake_at().filter(|&at| at <= end) {
            self.forward(at);
            let mut out = Vec::new();
            self.node.advance(self.now, &mut out);
            self.absorb(out);
        }
        self.forward(end);
    }

    fn forward(&mut self, to: Mono) {
        self.now.wall_us += to.since_ns(self.now.mono) / 1_000;
        self.now.mono = to;
    }
}

/// A record as a node of this version writes it.
pub(super) fn presence_of(id: &str) -> Presence {
    Presence {
        node_id: id.into(),
        start: 1,
        address: id.into(),
        version: String::new(),
        level_max: LEVEL_MAX,
        wall_us: WALL_US,
        leader_heard_ms: None,
        applied: 0,
        distrusts: false,
        beat: 0,
        snapshot: None,
        twin: None,
    }
}

#[test]
fn a_node_that_may_not_lead_is_ready_again_once_another_does() {
    let mut shared = Shared::following();
    shared.give(Input::Linked(OTHER.into()));
    assert_eq!(shared.node.not_ready, None);
    let behind = shared.now.wall_us - 300_000_000;
    shared.present(1, &[("n2", behind)]);
    shared.pass(3_000);
    let why = shared.node.not_ready.clone().expect("its clock is ahead");
    assert!(why.contains("wall clock"), "{why}");
    shared.beat();
    assert_eq!(shared.node.not_ready, None, "the log moves, and its leader is reached");
}

/// Two nodes that take each other for the leader would play ball with it until its caller gives up.
#[test]
fn a_call_that_another_node_has_passed_on_is_not_passed_on_again() {
    let mut shared = Shared::following();
    shared.call(1, false);
    assert!(matches!(shared.replies[..], [(CallId(1), Reply::Undecided(_))]), "there is no link");
    shared.give(Input::Linked(OTHER.into()));
    shared.call(2, false);
    assert!(matches!(&shared.requests[..], [Request::Call(call)] if call.id == CallId(2)));
    shared.call(3, true);
    assert_eq!(shared.requests.len(), 1);
    let unavailable =
        |reply: &Reply| matches!(reply, Reply::Undecided(Undecided::Unavailable { .. }));
    assert!(shared.replies.iter().any(|(id, reply)| *id == CallId(3) && unavailable(reply)));
    // What became of the one under way nobody knows when the link breaks.
    shared.give(Input::LinkLost(OTHER.into()));
    assert_eq!(shared.replies.last(), Some(&(CallId(2), Reply::Undecided(Undecided::Unknown))));
}

/// A new log, or one whose leader has resigned, is announced at once; but not before the others' clocks are known.
#[test]
fn a_node_that_has_just_started_looks_at_the_others_clocks_before_it_leads() {
    let mut shared = Shared::at(Memory::default());
    shared.pass(100);
    assert!(!shared.node.is_leader(), "it does not know yet who is there");
    let behind = shared.now.wall_us - 300_000_000;
    shared.present(1, &[("n2", behind)]);
    shared.pass(100);
    assert!(!shared.node.is_leader(), "whoever founds a log waits for all of them");
    shared.pass(2_000);
    assert!(!shared.node.is_leader(), "its clock is ahead");
    let why = shared.node.not_ready.clone().expect("it says why");
    assert!(why.contains("wall clock"), "{why}");
    // Nobody there: it leads after a moment.
    let mut alone = Shared::at(Memory::default());
    alone.present(1, &[]);
    alone.pass(1);
    assert!(!alone.node.is_leader(), "where all start at once the others may not have written yet");
    alone.pass(2_100);
    assert!(alone.node.is_leader());
    // Nor do records that cannot be read hold up the service for ever.
    let mut blind = Shared::at(Memory::default());
    blind.pass(2_100);
    assert!(blind.node.is_leader());
}

#[test]
fn a_leader_that_would_resign_and_is_overtaken_follows() {
    let mut shared = Shared::at(Memory::default());
    shared.pass(2_100);
    assert!(shared.node.is_leader());
    // What it was reading as a standby comes to nothing.
    shared.fetched(Vec::new());
    for beat in 0..6 {
        let wall_us = shared.now.wall_us;
        shared.lands = beat < 5;
        shared.present(beat, &[("n2", wall_us), ("n3", wall_us)]);
        shared.pass(1_000);
    }
    let (expected, resign) = shared.sent.take().expect("nobody reaches it: it resigns");
    assert_eq!(Entry::decode(&resign.bytes).map(|entry| entry.body), Ok(Body::Resign));
    shared.other_announces(OTHER);
    let fetches = shared.fetches;
    let conflict = shared.log.append(&expected, &resign);
    shared.give(Input::Appended(conflict));
    assert_eq!(shared.fetches, fetches + 1, "it reads what the other has written");
}

#[test]
fn nothing_is_read_in_vain_while_an_announce_is_under_way() {
    let mut shared = Shared::following();
    shared.lands = false;
    shared.pass(3_000);
    let (expected, announce) = shared.sent.take().expect("the log is silent: it announces");
    shared.give(Input::Appended(Append::Unknown("lost".into())));
    let fetches = shared.fetches;
    let entry = shared.other(Body::Batch(Vec::new()));
    for _ in 0..10 {
        shared.fetched(vec![entry.clone()]);
    }
    assert_eq!(shared.fetches, fetches, "it cannot apply it before it knows of its own");
    let conflict = shared.log.append(&expected, &announce);
    shared.give(Input::Appended(conflict));
    assert_eq!(shared.fetches, fetches + 1);
    shared.fetched(vec![entry]);
    assert_eq!(shared.node.state().head(), shared.log.head());
    assert_eq!(shared.node.state().time(), ClusterTime(0));
}

#[test]
fn a_silence_that_another_has_ended_makes_nobody_patient() {
    let mut shared = Shared::following();
    shared.lands = false;
    for _ in 0..8 {
        for _ in 0..20 {
            shared.pass(500);
            shared.beat();
        }
        // Its process stands still meanwhile.
        shared.forward(shared.now.mono.plus_ms(30_000));
        shared.other_leads();
    }
    shared.give(Input::Linked(OTHER.into()));
    shared.beat();
    shared.pass(2_600);
    assert!(shared.sent.is_some(), "a silence of two seconds and the jitter is enough");
}

fn raise(level: u32) -> Body {
    let operation = Operation::RaiseLevel { level };
    let caller = Caller::new("an operator").expect("a caller");
    Body::Batch(vec![Command { caller, born_at: ClusterTime(0), operation }])
}

#[test]
fn a_node_stops_at_a_level_that_it_does_not_understand() {
    let mut shared = Shared::following_at_level(1);
    let entry = shared.other(raise(2));
    shared.fetched(vec![entry]);
    let why = shared.halted.expect("it must not guess what level 2 means");
    assert!(why.contains("level 2") && why.contains("upgrade"), "{why}");

    // The same where it would go on from a snapshot.
    let mut shared = Shared::following_at_level(1);
    let mut ahead = Scribe::new();
    let bytes = shared.node.state().to_snapshot();
    ahead.state = State::from_snapshot(&bytes).expect("a snapshot");
    ahead.lead("n2", WALL_US);
    ahead.write(0, raise(2));
    shared.give(Input::Fetched(Fetched::Snapshot(Box::new(ahead.state))));
    assert!(shared.halted.is_some_and(|why| why.contains("level 2")));

    let mut shared = Shared::following_at_level(2);
    let entry = shared.other(raise(2));
    shared.fetched(vec![entry]);
    assert_eq!((shared.halted, shared.node.state().level()), (None, 2));
}
