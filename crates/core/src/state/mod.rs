//! The state, and `apply`: the one function that changes it.
//!
//! One entry is applied so: the sweep ends what is due, in (deadline, id) order and at most 1,000 objects; then
//! the commands follow in order. A command that touches a due object first does to it what the sweep would.

mod acquire;
mod admin;
mod claim;
mod deviations;
mod election;
mod guard;
mod hold;
mod invariants;
mod job;
mod lifecycle;
mod lock;
mod memory;
mod quota;
mod read;
mod region;
mod request;
mod run;
mod shelf;
mod snapshot;

use crate::{
    command::{Command, Family, Operation},
    entry::{Announce, Body, Entry, EntryHash, Head, Writer},
    event::{Event, EventKind},
    ids::{ClusterTime, Epoch, LogId, ObjectId, Position, Revision, Token},
    limits,
    names::{Caller, NamespaceName, Owner, RegionName, ResourceName},
    outcome::{Code, Detail, Done, Outcome, Refusal},
    planted::{self, Planted},
    policy::Policy,
};
use borsh::{BorshDeserialize, BorshSerialize};
use claim::{Claim, Delay, Namespace};
use memory::ReplyMemory;
use quota::Quotas;
use std::collections::{BTreeMap, BTreeSet};

pub use snapshot::SnapshotError;

/// The highest level whose rules this version knows. What each level changed stands in `docs/levels.md`.
pub const LEVEL_MAX: u32 = 4;

/// The namespace `default` always exists and is the first.
const DEFAULT_NAMESPACE: u32 = 0;

/// The whole state at one log position.
#[derive(Debug)]
pub struct State {
    head: Head,
    time: ClusterTime,
    token_clock_us: u64,
    leader: Option<Leader>,
    level: u32,
    service_min_ttl_ms: u64,
    trim_held: bool,
    /// Where this service runs; `None`: it has not said.
    region: Option<RegionName>,
    /// Nothing is granted before this time (after a restore).
    paused_until: ClusterTime,
    revision: Revision,
    last_token: Token,
    next_object: u64,
    outcome_chain: EntryHash,

    namespaces: Vec<Namespace>,
    namespace_index: BTreeMap<NamespaceName, u32>,
    claims: BTreeMap<ObjectId, Box<Claim>>,
    delays: BTreeMap<ObjectId, Delay>,
    quotas: Quotas,
    /// Every claim, lock delay and reservation, by deadline; none in quarantine.
    deadlines: BTreeSet<(ClusterTime, ObjectId)>,
    memory: ReplyMemory,

    /// Collected while one entry is applied.
    applied: Applied,
}

/// Who leads, as the log says.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Leader {
    /// The writer of the announce.
    pub writer: Writer,
    /// Where it can be reached.
    pub address: String,
}

/// What one entry did.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize)]
pub struct Applied {
    /// One for each command, in order.
    pub outcomes: Vec<Outcome>,
    /// Claims that waited and do so no longer, with the answer for whoever holds a call open.
    pub settled: Vec<Settled>,
    /// What changed, in the order of revisions.
    pub events: Vec<Event>,
}

/// A claim that no longer waits.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Settled {
    /// The claim.
    pub claim: ObjectId,
    /// A grant, or why there is none.
    pub outcome: Outcome,
}

/// An entry that cannot follow on this state. The state is unchanged, and the node has to stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Another position was due.
    #[error("entry at position {found} where {due} was due")]
    Position {
        /// The one due.
        due: Position,
        /// The one met.
        found: Position,
    },
    /// It was not written after the entry that this state has applied last.
    #[error("entry {position} does not chain: it follows {found:?}, and {due:?} was applied last")]
    Chain {
        /// Of the entry.
        position: Position,
        /// Hash of the last applied entry.
        due: EntryHash,
        /// Hash that the entry names.
        found: EntryHash,
    },
    /// It is neither an announce nor of the epoch and writer in force.
    #[error("entry {position} is of epoch {found}, and epoch {due} is in force")]
    Epoch {
        /// Of the entry.
        position: Position,
        /// The one in force.
        due: Epoch,
        /// The one met.
        found: Epoch,
    },
    /// Time ran backwards, or further than one entry may add.
    #[error(
        "entry {position} says time {found}, after {before}; at most {} ms may be added",
        limits::MAX_STEP_MS
    )]
    Time {
        /// Of the entry.
        position: Position,
        /// Time of the entry before.
        before: ClusterTime,
        /// Time met.
        found: ClusterTime,
    },
    /// The token clock lies beyond all tokens: the next grant could not be given one.
    #[error(
        "entry {position} says token clock {found}: no room for tokens below {}",
        limits::TOKEN_MAX
    )]
    TokenClock {
        /// Of the entry.
        position: Position,
        /// The clock met.
        found: u64,
    },
    /// The first entry must found the log, and no other may.
    #[error("entry {0}: the first entry of a log, and no other, is an announce with a log id")]
    Genesis(Position),
    /// A newer version is needed.
    #[error(
        "entry {position} raises the level to {level}; this version knows {LEVEL_MAX}: upgrade this node"
    )]
    Level {
        /// Of the entry.
        position: Position,
        /// The level.
        level: u32,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before the first entry.
    pub fn new() -> Self {
        let name = NamespaceName::new(NamespaceName::DEFAULT).expect("the default name is valid");
        Self {
            head: Head::EMPTY,
            time: ClusterTime(0),
            token_clock_us: 0,
            leader: None,
            level: 1,
            service_min_ttl_ms: limits::TTL_MS_MIN_REPLICATED,
            trim_held: false,
            region: None,
            paused_until: ClusterTime(0),
            revision: Revision(0),
            last_token: Token(0),
            next_object: 1,
            outcome_chain: EntryHash::ZERO,
            namespace_index: BTreeMap::from([(name.clone(), DEFAULT_NAMESPACE)]),
            namespaces: vec![Namespace::new(name, Policy::default())],
            claims: BTreeMap::new(),
            delays: BTreeMap::new(),
            quotas: Quotas::default(),
            deadlines: BTreeSet::new(),
            memory: ReplyMemory::default(),
            applied: Applied::default(),
        }
    }

    /// Applies the next entry, whose bytes have this hash.
    ///
    /// # Errors
    /// A [`Misfit`] when the entry cannot follow; then nothing has changed.
    pub fn apply(&mut self, entry: &Entry, hash: EntryHash) -> Result<Applied, Misfit> {
        self.check_fit(entry)?;
        self.time = entry.time;
        self.token_clock_us = entry.token_clock_us;
        self.head.position = entry.position;
        self.head.hash = hash;
        self.sweep();
        self.forget();
        match &entry.body {
            Body::Announce(announce) => self.announce(entry, announce),
            Body::Resign => self.leader = None,
            Body::Batch(commands) => {
                self.applied.outcomes.reserve(commands.len());
                commands.iter().for_each(|command| self.execute(command));
            }
        }
        let applied = std::mem::take(&mut self.applied);
        self.extend_outcome_chain(&applied);
        Ok(applied)
    }

    fn check_fit(&self, entry: &Entry) -> Result<(), Misfit> {
        let (position, head) = (entry.position, &self.head);
        if position != head.position.next() {
            return Err(Misfit::Position { due: head.position.next(), found: position });
        }
        if entry.previous != head.hash {
            let (due, found) = (head.hash, entry.previous);
            return Err(Misfit::Chain { position, due, found });
        }
        let time = self.time..=self.time.plus(limits::MAX_STEP_MS);
        if !time.contains(&entry.time) {
            return Err(Misfit::Time { position, before: self.time, found: entry.time });
        }
        if entry.token_clock_us > limits::TOKEN_MAX - limits::TOKEN_HEADROOM_US {
            return Err(Misfit::TokenClock { position, found: entry.token_clock_us });
        }
        let genesis = match &entry.body {
            Body::Announce(announce) => announce.genesis.is_some(),
            _ => false,
        };
        if genesis != (head.position == Position(0)) {
            return Err(Misfit::Genesis(position));
        }
        self.check_epoch(entry)?;
        if let Body::Batch(commands) = &entry.body {
            for command in commands {
                if let Operation::RaiseLevel { level } = command.operation
                    && level > LEVEL_MAX
                {
                    return Err(Misfit::Level { position, level });
                }
            }
        }
        Ok(())
    }

    fn check_epoch(&self, entry: &Entry) -> Result<(), Misfit> {
        let due = match entry.body {
            Body::Announce(_) => Epoch(entry.position.0),
            _ => self.head.epoch,
        };
        let is_announce = matches!(entry.body, Body::Announce(_));
        let by_leader = self.leader.as_ref().is_some_and(|leader| leader.writer == entry.writer);
        if entry.epoch == due && (is_announce || by_leader) {
            return Ok(());
        }
        Err(Misfit::Epoch { position: entry.position, due, found: entry.epoch })
    }

    fn announce(&mut self, entry: &Entry, announce: &Announce) {
        if let Some(genesis) = &announce.genesis {
            self.head.log_id = genesis.log_id;
            self.service_min_ttl_ms = genesis.min_ttl_ms;
            // A floor, not a shift of the clock: the tokens of a log that lives on fall back to the wall clock, so
            // that the next log's floor is above them even if its first leader's clock lags a minute (S2).
            self.last_token = Token(entry.token_clock_us + limits::TOKEN_HEADROOM_US - 1);
        }
        if planted::has(Planted::LeasesCutAtTakeover) {
            let held = self.claims.iter().filter(|(_, claim)| claim.held.is_some());
            for id in held.map(|(&id, _)| id).collect::<Vec<_>>() {
                self.next_revision();
                self.end_lease(id, crate::outcome::End::Expired, self.time);
            }
        }
        self.forget_last_token();
        if planted::has(Planted::MemoryForgottenAtTakeover) {
            while let Some((namespace, _)) = self.memory.forget_one(ClusterTime(u64::MAX)) {
                self.namespaces[namespace as usize].records -= 1;
            }
        }
        self.head.epoch = entry.epoch;
        let address = announce.address.clone();
        self.leader = Some(Leader { writer: entry.writer.clone(), address });
    }

    fn sweep(&mut self) {
        for _ in 0..limits::SWEEP_OBJECTS_MAX {
            match self.deadlines.first() {
                Some(&(deadline, id)) if deadline <= self.time => self.end_due(id),
                _ => break,
            }
        }
        self.look_at_all();
    }

    fn forget(&mut self) {
        for _ in 0..limits::FORGET_RECORDS_MAX {
            let Some((namespace, request)) = self.memory.forget_one(self.time) else { break };
            self.quotas.forget_answer(request);
            let records = &mut self.namespaces[namespace as usize].records;
            *records = records.checked_sub(1).expect("no more is forgotten than remembered");
        }
        self.forget_late();
    }

    fn execute(&mut self, command: &Command) {
        let is_too_old = command.born_at.plus(limits::BORN_AT_MS_MAX) < self.time
            && !planted::has(Planted::BornAtIgnored);
        let needed = command.operation.level();
        let outcome = if is_too_old || command.born_at > self.time {
            self.next_revision();
            self.decided(None, Err(Refusal::new(Code::Unavailable).with(Detail::BornAt)))
        } else if needed > self.level {
            self.next_revision();
            let detail = Detail::Level { needed };
            self.decided(None, Err(Refusal::new(Code::Unavailable).with(detail)))
        } else if let Some(home) = self.home_elsewhere(&command.caller, &command.operation) {
            let refusal = region::wrong_region(home);
            self.next_revision();
            self.decided(None, Err(refusal))
        } else {
            let Command { caller, operation, .. } = command;
            match operation {
                Operation::Acquire(op) => self.acquire(caller, op),
                Operation::AcquireAll(op) => self.acquire_all(caller, op),
                Operation::Renew(op) => self.renew(caller, Family::Lock, op),
                Operation::RenewMany(op) => self.renew_many(caller, op),
                Operation::Release(op) => self.release(caller, Family::Lock, op),
                Operation::Abandon(op) => self.abandon(caller, op),
                Operation::ForceRelease(op) => self.force_release(caller, Family::Lock, op),
                Operation::PutNamespace(op) => self.put_namespace(caller, op),
                Operation::EndDeserted(op) => self.end_deserted(op),
                Operation::SetTokenFloor(op) => self.set_token_floor(caller, op),
                Operation::RaiseLevel { level } => self.raise_level(caller, *level),
                Operation::HoldTrim => self.hold_trim(caller),
                Operation::Election(op) => self.election(caller, op),
                Operation::Hold(op) => self.hold(caller, op),
                Operation::Job(op) => self.job(caller, op),
                Operation::ReportGuard(op) => self.report_guard(caller, op),
                Operation::Quota(op) => self.quota(caller, op),
                Operation::SetRegion { region } => self.set_region(caller, region.as_ref()),
                Operation::PutHome(op) => self.put_home(caller, op),
            }
        };
        self.look_if_changed();
        self.applied.outcomes.push(outcome);
    }

    fn next_revision(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    fn next_object(&mut self) -> ObjectId {
        self.next_object += 1;
        ObjectId(self.next_object - 1)
    }

    /// Mints the next token: above every one before, and not below the leader's wall clock (S2).
    fn next_token(&mut self) -> Token {
        if planted::has(Planted::TokenFromWallClock) {
            return Token(self.token_clock_us);
        }
        let clock_us = match planted::has(Planted::WallClockInApply) {
            true => planted::wall_us(),
            false => self.token_clock_us,
        };
        let token = Token((self.last_token.0 + 1).max(clock_us));
        assert!(token > self.last_token, "tokens rise");
        assert!(token.0 <= limits::TOKEN_MAX, "tokens stay below 2^53: the token clock is broken");
        self.last_token = token;
        token
    }

    /// An answer of this moment; `replayed` with the revision of the first one.
    fn decided(&self, replayed: Option<Revision>, result: Result<Done, Refusal>) -> Outcome {
        Outcome { revision: self.revision, time: self.time, replayed, result }
    }

    fn namespace_id(&self, name: &NamespaceName) -> Option<u32> {
        // Almost every request is about `default`: one comparison instead of a search.
        if self.namespaces[DEFAULT_NAMESPACE as usize].name == *name {
            return Some(DEFAULT_NAMESPACE);
        }
        self.namespace_index.get(name).copied()
    }

    fn event(
        &mut self,
        caller: &Caller,
        namespace: u32,
        family: Family,
        subject: Option<(&ResourceName, &Owner, u64)>,
        kind: EventKind,
    ) {
        let event = Event {
            revision: self.revision,
            family,
            namespace: Some(self.namespaces[namespace as usize].name.clone()),
            resource: subject.map(|(resource, ..)| resource.clone()),
            owner: subject.map(|(_, owner, _)| owner.clone()),
            caller: caller.clone(),
            lease_hash: subject.map(|(.., lease_hash)| lease_hash),
            kind,
        };
        self.applied.events.push(event);
    }

    /// The outcome chain covers entries and everything they led to. A rehearsal must come to the same.
    fn extend_outcome_chain(&mut self, applied: &Applied) {
        let mut bytes = Vec::with_capacity(64 + 256 * applied.outcomes.len());
        let summary = (self.outcome_chain, self.head, self.revision, self.last_token);
        (summary, self.next_object, self.memory.len() as u64, applied)
            .serialize(&mut bytes)
            .expect("writing to memory cannot fail");
        self.outcome_chain = EntryHash::of(&bytes);
    }

    /// The head after the last applied entry.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The log's identity; zero before the first entry.
    pub fn log_id(&self) -> LogId {
        self.head.log_id
    }

    /// Cluster time.
    pub fn time(&self) -> ClusterTime {
        self.time
    }

    /// Commands applied and objects swept so far.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The leader's wall clock as of the last entry, in microseconds.
    pub fn token_clock_us(&self) -> u64 {
        self.token_clock_us
    }

    /// The largest token granted so far, or the floor minus one.
    pub fn last_token(&self) -> Token {
        self.last_token
    }

    /// The level in force.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Who leads; `None` before the first announce and after a resign.
    pub fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// The hash over all entries and outcomes so far (DESIGN.md section 7).
    pub fn outcome_chain(&self) -> EntryHash {
        self.outcome_chain
    }

    /// Where this service runs; `None`: it has not said.
    pub fn region(&self) -> Option<&RegionName> {
        self.region.as_ref()
    }

    /// A rehearsal differed twice: no node trims.
    pub fn is_trim_held(&self) -> bool {
        self.trim_held
    }

    /// When the next object is due; now, if those who wait for quota have to be looked at once more.
    pub fn next_deadline(&self) -> Option<ClusterTime> {
        if self.quotas.is_look_pending {
            return Some(self.time);
        }
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Milliseconds until granting begins again after a restore; 0: it is on.
    pub fn paused_ms(&self) -> u64 {
        self.time.until(self.paused_until)
    }
}
