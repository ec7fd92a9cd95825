//! Plays a history: makes real commands of its acts, gives every entry to the state and to the reference, and
//! compares all that can be seen of both.

use super::{
    compare::comparable,
    history::{Act, Step},
    reference::Reference,
    watcher::Watcher,
};
use sereno_core::{
    State,
    command::{Command, Family, LeaseRef, Operation, PutNamespace},
    entry::{Body, Entry},
    ids::{LogId, Token},
    names::{Caller, NamespaceName, RequestId},
    policy::Policy,
    testing::Scribe,
};

pub(super) struct World {
    pub(super) scribe: Scribe,
    pub(super) reference: Reference,
    pub(super) watcher: Watcher,
    /// Once a snapshot was taken: the state that went on without it.
    twins: Vec<State>,
    /// From here on the entries are replayed at the end.
    begin: State,
    pub(super) commands: Vec<Command>,
    pub(super) leases: Vec<(NamespaceName, Family, LeaseRef)>,
    pub(super) requests: Vec<(NamespaceName, Caller, Family, RequestId)>,
    pub(super) drawn: u64,
}

impl World {
    pub(super) fn new(level: u32) -> Self {
        let mut scribe = Scribe::new();
        scribe.keep = true;
        let mut reference = Reference::new();
        reference.apply(&Scribe::genesis());
        let begin = copy(&scribe.state);
        let mut world = Self {
            scribe,
            reference,
            watcher: Watcher::default(),
            twins: Vec::new(),
            begin,
            commands: Vec::new(),
            leases: Vec::new(),
            requests: Vec::new(),
            drawn: 0,
        };
        let put = |name: &str| {
            let namespace = NamespaceName::new(name).expect("a name");
            let (expected_version, policy) = (0, Policy::default());
            Operation::PutNamespace(PutNamespace { namespace, expected_version, policy })
        };
        let raise = Operation::RaiseLevel { level };
        let commands = [put("shop"), put("fill"), raise].map(|operation| world.now(operation));
        world.entry(0, Body::Batch(commands.into()));
        world
    }

    pub(super) fn play(&mut self, step: &Step) {
        match step {
            Step::Entry(after_ms, acts) => self.acts(*after_ms, acts),
            Step::Pass(ms) => self.pass(*ms),
            Step::ToDeadline(before_ms, acts) => {
                let now = self.scribe.state.time();
                let next = self.scribe.state.next_deadline().map_or(0, |at| now.until(at));
                let left = next.saturating_sub(*before_ms);
                self.pass(left - left.min(1_000));
                self.acts(left.min(1_000), acts);
            }
            Step::Rush(acts) => self.rush(acts),
            Step::Lead { days_ahead } => self.lead(*days_ahead * 24 * 3_600 * 1_000_000),
            Step::Snapshot => {
                let after = copy(&self.scribe.state);
                self.twins.push(std::mem::replace(&mut self.scribe.state, after));
            }
            Step::Restore { pause_ms, floor_ahead_us } => self.restore(*pause_ms, *floor_ahead_us),
        }
    }

    fn lead(&mut self, ahead_us: i64) {
        let wall_us = self.scribe.wall_us().saturating_add_signed(ahead_us);
        self.scribe.writer.start += 1;
        let entry = Body::Announce(sereno_core::entry::Announce {
            address: "another".into(),
            genesis: None,
        });
        let mut entry = self.scribe.entry(0, entry);
        entry.token_clock_us = wall_us;
        self.apply(entry);
    }

    fn restore(&mut self, pause_ms: u64, floor_ahead_us: i64) {
        self.finish();
        let log_id = LogId([self.scribe.entries.len() as u8; 16]);
        let floor = self.scribe.state.last_token().0.saturating_add_signed(floor_ahead_us);
        let state = std::mem::take(&mut self.scribe.state);
        self.scribe.state = state.restored(log_id, Token(floor), pause_ms);
        self.scribe.state.check_invariants();
        self.reference.restored(floor, pause_ms);
        self.watcher.restored();
        self.begin = copy(&self.scribe.state);
        self.scribe.entries.clear();
        self.lead(0);
    }

    /// Nothing but time, in entries of at most a second.
    fn pass(&mut self, mut ms: u64) {
        while ms > 0 {
            let step = ms.min(1_000);
            self.entry(step, Body::Batch(Vec::new()));
            ms -= step;
        }
    }

    /// A thousand leases that end just before the next deadline which is far enough away.
    fn rush(&mut self, acts: &[Act]) {
        if self.reference.requests.len() > 2_500 {
            return self.acts(0, acts); // The reference is too slow for more.
        }
        let now = self.scribe.state.time().0;
        let deadlines = self.reference.deadlines();
        let far = deadlines.iter().map(|&(deadline, _)| deadline.saturating_sub(now));
        let next = far.filter(|left| (1_001..60_000).contains(left)).min().unwrap_or(5_000);
        let mut commands = Vec::new();
        for _ in 0..1_000 {
            self.drawn += 1;
            let mut fill =
                sereno_core::testing::acquire(&format!("fill/{}", self.drawn), self.drawn);
            fill.namespace = NamespaceName::new("fill").expect("a name");
            fill.lease_ttl_ms = Some(next - 1);
            commands.push(self.now(Operation::Acquire(fill)));
        }
        self.entry(0, Body::Batch(commands));
        self.pass(next - next.min(1_000));
        self.acts(next.min(1_000), acts);
    }

    fn acts(&mut self, after_ms: u64, acts: &[Act]) {
        let mut commands = Vec::new();
        for act in acts {
            let command = self.command(act);
            self.commands.push(command.clone());
            commands.push(command);
        }
        self.entry(after_ms, Body::Batch(commands));
    }

    fn entry(&mut self, after_ms: u64, body: Body) {
        let entry = self.scribe.entry(after_ms, body);
        self.apply(entry);
    }

    fn apply(&mut self, entry: Entry) {
        let hash = entry.seal(self.scribe.state.log_id()).head.hash;
        let applied = self.scribe.push(entry.clone(), hash);
        self.scribe.state.check_invariants();
        let expected = self.reference.apply(&entry);
        self.watcher.watch(&entry, &applied);
        for twin in &mut self.twins {
            assert_eq!(twin.apply(&entry, hash).as_ref(), Ok(&applied), "without the snapshot");
        }
        let (applied, expected) = (comparable(&entry, applied), comparable(&entry, expected));
        assert_eq!(applied.outcomes, expected.outcomes, "of {entry:#?}");
        assert_eq!(applied.settled, expected.settled, "of {entry:#?}");
        assert_eq!(applied.events, expected.events, "of {entry:#?}");
        self.compare();
    }

    /// Every entry once more from the beginning, and once more without the snapshots in between.
    pub(super) fn finish(&mut self) {
        let mut replayed = copy(&self.begin);
        for entry in &self.scribe.entries {
            let hash = entry.seal(replayed.log_id()).head.hash;
            replayed.apply(entry, hash).expect("it was applied before");
        }
        let live = &self.scribe.state;
        let bytes = live.to_snapshot();
        for other in self.twins.iter().chain([&replayed]) {
            assert_eq!(other.outcome_chain(), live.outcome_chain());
            assert_eq!(other.head(), live.head());
            assert!(other.to_snapshot() == bytes, "the same state gives the same bytes");
        }
        self.twins.clear();
    }
}

/// The same state, by way of its snapshot.
fn copy(state: &State) -> State {
    let bytes = state.to_snapshot();
    let copy = State::from_snapshot(&bytes).expect("a snapshot");
    assert!(copy.to_snapshot() == bytes, "a snapshot gives back all of the state");
    copy
}
