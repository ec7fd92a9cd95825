//! Snapshots: the whole state as bytes, canonical (the same state gives the same bytes on every node), so that
//! two nodes can be compared by a hash.
//!
//! ```text
//! "SS" | version (u8) | BLAKE3 of the rest | LZ4 frame of borsh: fixed part, namespaces, claims with their
//!                       records, lock delays, the other records in the order in which they will be forgotten
//! ```
//! Version 1 is that of levels 1 and 2, so that older nodes read what a newer one has saved before the level is raised.
//! From level 3 on version 2 has more behind each row: of a namespace its rules for holds and its jobs, of a claim its
//! face, of a delay whose it is.
//!
//! From level 4 on version 3 has regions and quotas besides: the trees of each namespace, reservations, and behind each record what
//! was answered to a write.
//!
//! The hash is checked before anything is read: a damaged snapshot is an error, and a state that breaks an
//! invariant (which stops the process) was written so.
//! Counters, queues and indexes are not stored: they are rebuilt, and checked.

use super::{
    Leader, State,
    claim::{Claim, Delay, Face, Held, Holding, Namespace},
    job::Job,
    memory::{Record, ReplyMemory},
    quota::{QuotaRows, Quotas},
};
use crate::{
    command::Family,
    entry::{EntryHash, Head},
    ids::{ClusterTime, LogId, ObjectId, Revision, Token},
    limits,
    names::{Caller, Labels, NamespaceName, Owner, ResourceName},
    outcome::{End, WaitEnd},
    policy::{Fencing, HoldPolicy, Policy},
};
use borsh::{BorshDeserialize, BorshSerialize};
use lz4_flex::frame::{FrameDecoder, FrameEncoder, FrameInfo};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufReader, BufWriter, Read, Write},
};

const MAGIC: [u8; 2] = *b"SS";
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=3;
/// The level whose state version 1 cannot hold.
const LEVEL_OF_VERSION_2: u32 = 3;
/// The level whose state version 2 cannot hold.
const LEVEL_OF_VERSION_3: u32 = 4;
/// Where the frame begins.
const FRAME_AT: usize = MAGIC.len() + 1 + HASH_BYTES;
const HASH_BYTES: usize = 32;
const BUFFER_BYTES: usize = 256 * 1_024;

/// Bytes that are not a snapshot of this version.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot at all, cut short, or damaged.
    #[error("not a snapshot: {0}")]
    Malformed(String),
    /// Written by a newer version.
    #[error("snapshot version {0} is not known to this version ({max})", max = VERSIONS.end())]
    Version(u8),
    /// Of a level that this version does not know.
    #[error("snapshot of level {0}; this version knows {max}: upgrade this node", max = super::LEVEL_MAX)]
    Level(u32),
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
struct Fixed {
    head: Head,
    time: ClusterTime,
    token_clock_us: u64,
    leader: Option<Leader>,
    level: u32,
    service_min_ttl_ms: u64,
    trim_held: bool,
    paused_until: ClusterTime,
    revision: Revision,
    last_token: Token,
    next_object: u64,
    outcome_chain: EntryHash,
    namespaces: u64,
    claims: u64,
    delays: u64,
    forget_steps: u64,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct NamespaceRow {
    name: NamespaceName,
    version: u64,
    policy: Policy,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct ClaimRow {
    id: ObjectId,
    record: Record,
    owner: Owner,
    caller: Caller,
    labels: Labels,
    fencing: Fencing,
    ttl_ms: u64,
    max_hold_ms: Option<u64>,
    namespace: u32,
    holdings: Vec<(ResourceName, Token, Option<End>)>,
    created_at: ClusterTime,
    deadline: ClusterTime,
    held: Option<HeldRow>,
    spent: Option<End>,
    asked_at: Revision,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct HeldRow {
    granted_at: ClusterTime,
    renewed_at: ClusterTime,
    waited: bool,
    final_deadline: Option<ClusterTime>,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct DelayRow {
    id: ObjectId,
    namespace: u32,
    resource: ResourceName,
    deadline: ClusterTime,
}

/// What version 2 has behind a namespace's row: its rules for holds, whether a guard has reported, its jobs.
type NamespaceMore = (HoldPolicy, bool, BTreeMap<ResourceName, Job>);
/// Behind a claim's row: its face, and the later requests that it answers.
type ClaimMore = (Face, Vec<Record>);
/// Behind a delay's row: its family, and whose cool-down it is.
type DelayMore = (Family, Option<Owner>);

/// The version that holds a state of this level.
fn version_of(level: u32) -> u8 {
    match level {
        0..LEVEL_OF_VERSION_2 => 1,
        LEVEL_OF_VERSION_2..LEVEL_OF_VERSION_3 => 2,
        _ => 3,
    }
}

fn write_more(
    has_more: bool,
    more: &impl BorshSerialize,
    writer: &mut impl Write,
) -> io::Result<()> {
    match has_more {
        true => more.serialize(writer),
        false => Ok(()),
    }
}

impl State {
    /// The state as bytes.
    pub fn to_snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.push(version_of(self.level));
        bytes.resize(FRAME_AT, 0);
        let encoder = FrameEncoder::with_frame_info(FrameInfo::new(), bytes);
        let mut writer = BufWriter::with_capacity(BUFFER_BYTES, encoder);
        self.write_rows(&mut writer).expect("writing to memory cannot fail");
        let encoder = writer.into_inner().expect("writing to memory cannot fail");
        let mut bytes = encoder.finish().expect("writing to memory cannot fail");
        let hash = blake3::hash(&bytes[FRAME_AT..]);
        bytes[FRAME_AT - HASH_BYTES..FRAME_AT].copy_from_slice(hash.as_bytes());
        bytes
    }

    fn write_rows(&self, writer: &mut impl Write) -> io::Result<()> {
        let has_more = self.level >= LEVEL_OF_VERSION_2;
        let has_quotas = self.level >= LEVEL_OF_VERSION_3;
        self.fixed().serialize(writer)?;
        for namespace in &self.namespaces {
            (&namespace.name, namespace.version, &namespace.policy).serialize(writer)?;
            let more = (&namespace.hold_policy, namespace.proven, &namespace.jobs);
            write_more(has_more, &more, writer)?;
            if has_quotas {
                namespace.home.serialize(writer)?;
                QuotaRows::write_space(&namespace.quotas, writer)?;
            }
        }
        for (&id, claim) in &self.claims {
            self.claim_row(id, claim).serialize(writer)?;
            let repeats = claim.repeats.iter().map(|&id| self.memory.get(id));
            write_more(has_more, &(&claim.face, repeats.collect::<Vec<_>>()), writer)?;
        }
        for (id, delay) in &self.delays {
            (id, delay.namespace, &delay.resource, delay.deadline).serialize(writer)?;
            write_more(has_more, &(delay.family, &delay.owner), writer)?;
        }
        if has_quotas {
            self.region.serialize(writer)?;
            QuotaRows::write(self, writer)?;
        }
        for (step, count, records) in self.memory.forgettable() {
            (step, count).serialize(writer)?;
            for record in records {
                record.serialize(writer)?;
                write_more(has_quotas, &self.quotas.answer(record.request), writer)?;
            }
        }
        Ok(())
    }

    fn fixed(&self) -> Fixed {
        Fixed {
            head: self.head,
            time: self.time,
            token_clock_us: self.token_clock_us,
            leader: self.leader.clone(),
            level: self.level,
            service_min_ttl_ms: self.service_min_ttl_ms,
            trim_held: self.trim_held,
            paused_until: self.paused_until,
            revision: self.revision,
            last_token: self.last_token,
            next_object: self.next_object,
            outcome_chain: self.outcome_chain,
            namespaces: self.namespaces.len() as u64,
            claims: self.claims.len() as u64,
            delays: self.delays.len() as u64,
            forget_steps: self.memory.steps() as u64,
        }
    }

    fn claim_row(&self, id: ObjectId, claim: &Claim) -> ClaimRow {
        let holding = |h: &Holding| (h.resource.clone(), h.token, h.ended);
        ClaimRow {
            id,
            record: self.memory.get(claim.record).clone(),
            owner: claim.owner.clone(),
            caller: claim.caller.clone(),
            labels: claim.labels.clone(),
            fencing: claim.fencing,
            ttl_ms: claim.ttl_ms,
            max_hold_ms: claim.max_hold_ms,
            namespace: claim.namespace,
            holdings: claim.holdings.iter().map(holding).collect(),
            created_at: claim.created_at,
            deadline: claim.deadline,
            held: claim.held.map(|held| HeldRow {
                granted_at: held.granted_at,
                renewed_at: held.renewed_at,
                waited: held.waited,
                final_deadline: held.final_deadline,
            }),
            spent: claim.spent,
            asked_at: claim.asked_at,
        }
    }

    /// Reads what [`Self::to_snapshot`] wrote.
    ///
    /// # Errors
    /// When the bytes are no snapshot of a version and level known here.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let malformed = |what: &str| SnapshotError::Malformed(what.into());
        let Some((magic, [version, rest @ ..])) = bytes.split_first_chunk::<2>() else {
            return Err(malformed("too short"));
        };
        if *magic != MAGIC {
            return Err(malformed("wrong first bytes"));
        }
        if !VERSIONS.contains(version) {
            return Err(SnapshotError::Version(*version));
        }
        let Some((hash, frame)) = rest.split_first_chunk::<HASH_BYTES>() else {
            return Err(malformed("too short"));
        };
        if blake3::hash(frame) != *hash {
            return Err(malformed("its hash is another: it is damaged or cut short"));
        }
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, FrameDecoder::new(frame));
        let state = Self::read_rows(&mut reader, *version)?;
        match reader.read(&mut [0])? {
            0 => Ok(state),
            _ => Err(malformed("something follows its end")),
        }
    }

    fn read_rows(reader: &mut impl Read, version: u8) -> Result<Self, SnapshotError> {
        let fixed = Fixed::deserialize_reader(reader)?;
        if fixed.level > super::LEVEL_MAX {
            return Err(SnapshotError::Level(fixed.level));
        }
        let (has_more, has_quotas) = (version >= 2, version >= 3);
        if version != version_of(fixed.level) {
            return Err(SnapshotError::Malformed("its version is not that of its level".into()));
        }
        let mut state = Self::from_fixed(&fixed);
        for id in 0..fixed.namespaces {
            let row = NamespaceRow::deserialize_reader(reader)?;
            let mut namespace = Namespace::new(row.name.clone(), row.policy);
            namespace.version = row.version;
            if has_more {
                let more = NamespaceMore::deserialize_reader(reader)?;
                (namespace.hold_policy, namespace.proven, namespace.jobs) = more;
            }
            if has_quotas {
                namespace.home = Option::deserialize_reader(reader)?;
                namespace.quotas = QuotaRows::read_space(reader)?;
            }
            state.namespaces.push(namespace);
            state.namespace_index.insert(row.name, id as u32);
        }
        if state.namespaces.is_empty() {
            return Err(SnapshotError::Malformed("no namespace".into()));
        }
        for _ in 0..fixed.claims {
            let row = ClaimRow::deserialize_reader(reader)?;
            let more = match has_more {
                true => ClaimMore::deserialize_reader(reader)?,
                false => (Face::Lock, Vec::new()),
            };
            state.insert_claim(row, more)?;
        }
        for _ in 0..fixed.delays {
            let row = DelayRow::deserialize_reader(reader)?;
            let more = match has_more {
                true => DelayMore::deserialize_reader(reader)?,
                false => (Family::Lock, None),
            };
            state.insert_delay(row, more)?;
        }
        if has_quotas {
            state.region = Option::deserialize_reader(reader)?;
            QuotaRows::read(&mut state, reader)?;
        }
        for _ in 0..fixed.forget_steps {
            let (step, count) = <(ClusterTime, u32)>::deserialize_reader(reader)?;
            for _ in 0..count {
                let record = Record::deserialize_reader(reader)?;
                state.count_record(&record)?;
                if has_quotas && let Some(done) = Option::deserialize_reader(reader)? {
                    state.quotas.insert_answer(record.request, done);
                }
                let id = state.memory.insert(record);
                state.memory.forget_at(id, step);
            }
        }
        state.check_invariants();
        Ok(state)
    }

    fn from_fixed(fixed: &Fixed) -> Self {
        Self {
            head: fixed.head,
            time: fixed.time,
            token_clock_us: fixed.token_clock_us,
            leader: fixed.leader.clone(),
            level: fixed.level,
            service_min_ttl_ms: fixed.service_min_ttl_ms,
            trim_held: fixed.trim_held,
            region: None,
            paused_until: fixed.paused_until,
            revision: fixed.revision,
            last_token: fixed.last_token,
            next_object: fixed.next_object,
            outcome_chain: fixed.outcome_chain,
            namespaces: Vec::new(),
            namespace_index: BTreeMap::new(),
            claims: BTreeMap::new(),
            delays: BTreeMap::new(),
            quotas: Quotas::default(),
            deadlines: BTreeSet::new(),
            memory: ReplyMemory::default(),
            applied: super::Applied::default(),
        }
    }

    pub(super) fn count_record(&mut self, record: &Record) -> Result<(), SnapshotError> {
        let namespace = self.namespaces.get_mut(record.namespace as usize);
        let namespace =
            namespace.ok_or_else(|| SnapshotError::Malformed("record of no namespace".into()))?;
        namespace.records += 1;
        Ok(())
    }

    fn insert_claim(
        &mut self,
        row: ClaimRow,
        (face, repeats): ClaimMore,
    ) -> Result<(), SnapshotError> {
        for record in [&row.record].into_iter().chain(&repeats) {
            self.count_record(record)?;
        }
        let malformed = || SnapshotError::Malformed("claim of no namespace".into());
        let namespace = self.namespaces.get_mut(row.namespace as usize).ok_or_else(malformed)?;
        let family = face.family();
        for (index, (name, token, ended)) in row.holdings.iter().enumerate() {
            if ended.is_some() {
                continue;
            }
            if family == Family::Hold {
                namespace.held_names.insert(name.clone());
                *namespace.held_by.entry(row.owner.clone()).or_default() += 1;
            }
            let space = namespace.space_mut(family);
            let resource = space.resources.entry(name.clone()).or_default();
            if row.held.is_some() {
                resource.holder = Some(row.id);
                space.by_age.insert(*token, (row.id, index as u32));
            } else {
                resource.queue.push_back(row.id);
                namespace.waiters += 1;
            }
        }
        self.deadlines.insert((row.deadline, row.id));
        let lease_id = row.record.lease_id;
        let repeats = repeats.into_iter().map(|record| self.memory.insert(record));
        let repeats = repeats.collect();
        let claim = Claim {
            namespace: row.namespace,
            face,
            repeats,
            record: self.memory.insert(row.record),
            lease_id,
            owner: row.owner,
            caller: row.caller,
            labels: row.labels,
            fencing: row.fencing,
            ttl_ms: row.ttl_ms,
            max_hold_ms: row.max_hold_ms,
            holdings: row
                .holdings
                .into_iter()
                .map(|(resource, token, ended)| Holding { resource, token, ended })
                .collect(),
            created_at: row.created_at,
            deadline: row.deadline,
            held: row.held.map(|held| Held {
                granted_at: held.granted_at,
                renewed_at: held.renewed_at,
                waited: held.waited,
                final_deadline: held.final_deadline,
            }),
            spent: row.spent,
            asked_at: row.asked_at,
        };
        self.claims.insert(row.id, Box::new(claim));
        Ok(())
    }

    fn insert_delay(
        &mut self,
        row: DelayRow,
        (family, owner): DelayMore,
    ) -> Result<(), SnapshotError> {
        let DelayRow { id, namespace, resource, deadline } = row;
        let malformed = || SnapshotError::Malformed("lock delay of no namespace".into());
        let of = self.namespaces.get_mut(namespace as usize).ok_or_else(malformed)?;
        match &owner {
            None => {
                of.delays += 1;
                let resources = &mut of.space_mut(family).resources;
                resources.entry(resource.clone()).or_default().delay = Some(id);
            }
            Some(owner) => {
                of.cooling.insert((resource.clone(), owner.clone()), id);
            }
        }
        self.deadlines.insert((deadline, id));
        self.delays.insert(id, Delay { namespace, family, resource, owner, deadline });
        Ok(())
    }

    /// Turns the state of a backup into the beginning of a new log (DESIGN.md section 4). Leases granted after
    /// the backup are forgotten, their holders are not: so tokens start above `token_floor`, and nothing is
    /// granted for `pause_ms`. Waiting requests are ended: their callers have long been told so.
    pub fn restored(mut self, log_id: LogId, token_floor: Token, pause_ms: u64) -> Self {
        let waiting: Vec<_> = self.waiting_claims().collect();
        for id in waiting {
            self.next_revision();
            match self.quotas.has(id) {
                true => self.end_quota_wait(id, Some(WaitEnd::Restored)),
                false => self.end_wait(id, Some(WaitEnd::Restored)),
            }
        }
        self.applied = super::Applied::default();
        self.quotas.forget_changes();
        // Objects since the backup are forgotten, and those who know them are not: a late return of a commit must not
        // name another one.
        self.next_object += limits::RESTORED_OBJECTS_SKIPPED;
        self.head.log_id = log_id;
        self.leader = None;
        self.last_token = self.last_token.max(Token(token_floor.0.saturating_sub(1)));
        self.paused_until = self.time.plus(pause_ms);
        self
    }
}
