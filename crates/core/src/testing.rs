//! A log in miniature for tests and benches (feature `testing`): writes entries one after the other, as a leader
//! would, and applies them.

use crate::{
    State,
    command::{Acquire, Command, LeaseRef, Operation, Release, Renew},
    entry::{Announce, Body, Entry, EntryHash, Genesis, Writer},
    ids::{ClusterTime, Epoch, LeaseId, LogId, Position},
    limits,
    names::{Caller, Labels, NamespaceName, Owner, RequestId, ResourceName},
    outcome::Outcome,
    state::Applied,
};

/// Where the token clock of tests begins: 2026-01-01, in microseconds.
pub const TOKEN_CLOCK_US: u64 = 1_767_225_600_000_000;
const LOG_ID: LogId = LogId([7; 16]);

/// A state, and the pen that writes its log.
#[derive(Debug)]
pub struct Scribe {
    /// The state after the last entry.
    pub state: State,
    /// Every entry so far, if wanted.
    pub entries: Vec<Entry>,
    /// Whether `entries` are kept.
    pub keep: bool,
    /// Who writes.
    pub writer: Writer,
    wall_us: u64,
}

impl Scribe {
    /// A log with its first announce applied, whose wall clock has come to where its tokens begin. Leases from 1 s.
    pub fn new() -> Self {
        let genesis = Self::genesis();
        let (state, writer) = (State::new(), genesis.writer.clone());
        let (entries, wall_us) = (Vec::new(), TOKEN_CLOCK_US);
        let mut scribe = Self { state, entries, keep: false, writer, wall_us };
        let hash = genesis.seal(LOG_ID).head.hash;
        scribe.push(genesis, hash);
        scribe.wall_us = TOKEN_CLOCK_US;
        scribe
    }

    /// The first entry of every scribe's log.
    pub fn genesis() -> Entry {
        let genesis = Some(Genesis { log_id: LOG_ID, min_ttl_ms: limits::TTL_MS_MIN });
        Entry {
            position: Position(1),
            epoch: Epoch(1),
            writer: Writer { node_id: "test".into(), start: 1 },
            time: ClusterTime(0),
            token_clock_us: TOKEN_CLOCK_US - limits::TOKEN_HEADROOM_US,
            previous: EntryHash::ZERO,
            body: Body::Announce(Announce { address: "test".into(), genesis }),
        }
    }

    /// The next entry, `after_ms` later.
    pub fn entry(&self, after_ms: u64, body: Body) -> Entry {
        let head = self.state.head();
        let position = head.position.next();
        let epoch = match body {
            Body::Announce(_) => Epoch(position.0),
            _ => head.epoch,
        };
        Entry {
            position,
            epoch,
            writer: self.writer.clone(),
            time: self.state.time().plus(after_ms),
            token_clock_us: self.wall_us + after_ms * 1_000,
            previous: head.hash,
            body,
        }
    }

    /// Writes and applies one entry, which is well-formed.
    pub fn write(&mut self, after_ms: u64, body: Body) -> Applied {
        let entry = self.entry(after_ms, body);
        let hash = entry.seal(self.state.log_id()).head.hash;
        self.push(entry, hash)
    }

    /// Applies an entry, which is well-formed, and goes on from there.
    pub fn push(&mut self, entry: Entry, hash: EntryHash) -> Applied {
        self.wall_us = entry.token_clock_us;
        let applied = self.state.apply(&entry, hash).expect("the scribe's entries fit");
        if self.keep {
            self.entries.push(entry);
        }
        applied
    }

    /// Another process takes over: its announce, with its own idea of the time of day.
    pub fn lead(&mut self, node_id: &str, wall_us: u64) -> Applied {
        self.writer = Writer { node_id: node_id.into(), start: self.writer.start + 1 };
        self.wall_us = wall_us;
        self.write(0, Body::Announce(Announce { address: node_id.into(), genesis: None }))
    }

    /// The leader's wall clock as of the last entry.
    pub fn wall_us(&self) -> u64 {
        self.wall_us
    }

    /// One entry with these operations, `after_ms` later.
    pub fn batch(&mut self, after_ms: u64, operations: Vec<Operation>) -> Applied {
        let born_at = self.state.time();
        let caller = Caller::new("").expect("anonymous is a caller");
        let command = |operation| Command { caller: caller.clone(), born_at, operation };
        self.write(after_ms, Body::Batch(operations.into_iter().map(command).collect()))
    }

    /// One operation in an entry of its own, without any time passing.
    pub fn run(&mut self, operation: Operation) -> Outcome {
        self.batch(0, vec![operation]).outcomes.pop().expect("one outcome for one command")
    }

    /// Lets time pass in heartbeats, and gives what they did.
    pub fn pass(&mut self, mut ms: u64) -> Vec<Applied> {
        let mut applied = Vec::new();
        loop {
            let step = ms.min(500);
            applied.push(self.write(step, Body::Batch(Vec::new())));
            ms -= step;
            if ms == 0 {
                return applied;
            }
        }
    }
}

impl Default for Scribe {
    fn default() -> Self {
        Self::new()
    }
}

/// A lease id that is as good as random for tests.
pub fn lease_id(n: u64) -> LeaseId {
    LeaseId(*blake3::hash(&n.to_le_bytes()).as_bytes().first_chunk().expect("32 bytes hold 16"))
}

/// A reference to a lease.
pub fn lease(resource: &str, n: u64) -> LeaseRef {
    LeaseRef { resource: resource_name(resource), lease_id: lease_id(n) }
}

/// A resource's name.
pub fn resource_name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("tests use valid names")
}

/// The default namespace.
pub fn default_namespace() -> NamespaceName {
    NamespaceName::new(NamespaceName::DEFAULT).expect("the default is valid")
}

/// A request to lock `resource`, number `n` of its kind, without waiting.
pub fn acquire(resource: &str, n: u64) -> Acquire {
    Acquire {
        namespace: default_namespace(),
        resource: resource_name(resource),
        request_id: RequestId::new(&format!("request-{n}")).expect("tests use valid names"),
        owner: Owner::new(&format!("owner-{n}")).expect("tests use valid names"),
        lease_id: lease_id(n),
        lease_ttl_ms: Some(10_000),
        wait_timeout_ms: 0,
        max_hold_ms: None,
        fencing: None,
        labels: Labels::default(),
    }
}

/// The release of what `acquire(resource, n)` was granted.
pub fn release(resource: &str, n: u64) -> Operation {
    let (namespace, lease) = (default_namespace(), lease(resource, n));
    Operation::Release(Release { namespace, lease })
}

/// The renewal of what `acquire(resource, n)` was granted.
pub fn renew(resource: &str, n: u64) -> Operation {
    let (namespace, lease) = (default_namespace(), lease(resource, n));
    Operation::Renew(Renew { namespace, lease, lease_ttl_ms: None })
}
