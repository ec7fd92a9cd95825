//! One tenant hammers a shared pool while another asks, now and then, for what it is guaranteed. Counted in entries: how
//! long the second one waits for its answer. No faults, no other clients.

use crate::{
    clock::{MS, S},
    event::{Attempt, Call, Event, Healing},
    host::For,
    world::World,
};
use sereno_core::{
    State,
    command::{
        Command, Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, QuotaCommand, Reserve,
    },
    entry::{Body, Entry},
    ids::{Position, ReservationId},
    names::{Caller, Labels, NamespaceName, Owner, QuotaName, QuotaPath},
    outcome::{Done, Outcome, QuotaDone},
};
use sereno_log::Read;
use std::collections::BTreeMap;

/// The pool, and what is guaranteed of it. The loud one's share is half of it.
const POOL: u64 = 100;
const GUARANTEED: u64 = 10;
const SHARE: u64 = POOL / 2;
/// How long a reservation lasts: so a share is so many in a second.
const TTL_MS: u64 = 1_000;
const TICK_NS: u64 = 2 * MS;
const TICKS_A_SECOND: u64 = S / TICK_NS;
const SECONDS: u64 = 5;
/// Two of these are what is guaranteed.
const QUIET_TICKS: u64 = 270;

/// The position of the head when each quiet reserve came to the leader.
type Asked = BTreeMap<ReservationId, Position>;

impl World {
    pub(crate) fn run_hammered(&mut self) {
        for node in 0..self.hosts.len() {
            self.agenda.at(MS, Event::Heal(Healing::Start(node)));
        }
        self.run_until(8 * S);
        for (path, guaranteed) in [("", 0), ("loud", 0), ("quiet", GUARANTEED)] {
            let limits = NodeLimits { guaranteed, ..NodeLimits::of(POOL) };
            self.puts(path, limits);
        }
        self.run_until(9 * S);
        let a_second = SHARE * self.config.hammered;
        let (mut asked, mut sent) = (Asked::new(), 0);
        for tick in 0..SECONDS * TICKS_A_SECOND {
            self.run_until(self.agenda.now + TICK_NS);
            while sent < (tick + 1) * a_second / TICKS_A_SECOND {
                sent += 1;
                // Every tenth waits for its turn.
                let wait_ms = if sent % 10 == 0 { 1_500 } else { 0 };
                let name = self.reserves("loud", 1 + sent % 3, wait_ms);
                assert!(!asked.contains_key(&name), "names are drawn at random");
                self.mark("a tenant hammers");
            }
            if tick % QUIET_TICKS == QUIET_TICKS - 1 {
                let head = self.truth.state.head().position;
                let name = self.reserves("quiet", GUARANTEED / 2, 0);
                asked.insert(name, head);
            }
        }
        self.run_until(self.agenda.now + S);
        self.check_delays(&asked);
    }

    fn puts(&mut self, path: &str, limits: NodeLimits) {
        let put = PutLimit {
            namespace: self.namespaces[0].clone(),
            node: node(path),
            limits,
            expected_version: 0,
            refuse_debt: false,
            request_id: self.request_id(),
        };
        self.calls_leader("operator", QuotaCommand::PutLimit(put), 0);
    }

    fn reserves(&mut self, tenant: &str, amount: u64, wait_ms: u64) -> ReservationId {
        let name = ReservationId(self.random.id());
        let reserve = Reserve {
            namespace: NamespaceName::clone(&self.namespaces[0]),
            owner: Owner::new(tenant).expect("a valid owner"),
            items: vec![Item { node: node(tenant), amount }],
            request_id: self.request_id(),
            reservation: name,
            ttl_ms: TTL_MS,
            max_lifetime_ms: None,
            on_expiry: OnExpiry::Release,
            priority: 0,
            wait_timeout_ms: wait_ms,
            labels: Labels::default(),
        };
        self.calls_leader(tenant, QuotaCommand::Reserve(reserve), wait_ms);
        name
    }

    fn calls_leader(&mut self, caller: &str, command: QuotaCommand, hold_ms: u64) {
        let leader = self.leader_now().expect("without faults somebody leads");
        let caller = Caller::new(caller).expect("a valid caller");
        let attempt = Attempt { client: usize::MAX, life: 0, number: 0 };
        let operation = Operation::Quota(command);
        let call = Call { attempt, operation, born_at: None, timeout_ms: 5_000, hold_ms };
        self.open_call(leader, For::Crowd, caller, call, false);
        self.advance(leader);
    }

    /// Each quiet reserve is granted, and at the latest in the entry after the one that was under way when it came.
    fn check_delays(&mut self, asked: &Asked) {
        let Read::Entries(entries) = self.log.memory.read(Position(1), usize::MAX) else {
            panic!("nothing is trimmed here")
        };
        let (mut state, mut waits) = (State::new(), Vec::new());
        for sealed in &entries {
            let entry = Entry::decode(&sealed.bytes).expect("the log holds entries");
            let applied = state.apply(&entry, sealed.head.hash).expect("they follow each other");
            let Body::Batch(commands) = &entry.body else { continue };
            for (command, outcome) in commands.iter().zip(&applied.outcomes) {
                let Some(head) = name_of(command).and_then(|name| asked.get(&name)) else {
                    continue;
                };
                assert!(is_reserved(outcome), "what is guaranteed is granted at once: {outcome:?}");
                waits.push(entry.position.0 - head.0);
            }
        }
        assert!(waits.len() == asked.len(), "each is answered: {} of {}", waits.len(), asked.len());
        for entries in waits {
            assert!(entries <= 2, "who hammers delays nobody by more than one entry: {entries}");
            self.mark("a guaranteed reserve is granted at once");
        }
    }
}

fn node(path: &str) -> NodeRef {
    let quota = QuotaName::new("gpu").expect("a valid name");
    NodeRef { quota, path: QuotaPath::new(path).expect("a valid path") }
}

fn name_of(command: &Command) -> Option<ReservationId> {
    match &command.operation {
        Operation::Quota(QuotaCommand::Reserve(op)) => Some(op.reservation),
        _ => None,
    }
}

fn is_reserved(outcome: &Outcome) -> bool {
    matches!(outcome.result, Ok(Done::Quota(QuotaDone::Reserved(_))))
}
