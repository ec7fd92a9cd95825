//! The reply memory: what was answered to which request, so that a repeat gets the same answer (S6) and a dead
//! request stays dead (S7). Compact: hashes of id and content, not copies.

use crate::{
    command::{Acquire, AcquireAll, Family, ForceRelease, SetTokenFloor},
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Token},
    names::{Caller, NamespaceName, RequestId, ResourceName},
    outcome::{Code, End, RunState, WaitEnd},
};
use borsh::{BorshDeserialize, BorshSerialize};
use hashbrown::HashTable;
use std::collections::BTreeMap;

/// 128 bits of a hash: of a request id in its scope, or of a request's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Fingerprint(pub(super) [u8; 16]);

impl Fingerprint {
    fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }

    /// Of a request id in its scope: namespace, caller, family.
    pub(super) fn request(
        namespace: &NamespaceName,
        caller: &Caller,
        family: Family,
        request_id: &RequestId,
    ) -> Self {
        encode(|buffer| (namespace, caller, family, request_id).serialize(buffer))
    }
}

/// Hashes what `write` puts into a buffer.
pub(super) fn encode(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Fingerprint {
    let mut buffer = Vec::with_capacity(256);
    write(&mut buffer).expect("writing to memory cannot fail");
    Fingerprint::of(&buffer)
}

/// The content of a request: its operation and fields as parsed, before defaults, without what may differ from
/// copy to copy (the node's lease id, the wait time-out, `bornAt`).
pub(super) trait Content {
    fn fingerprint(&self) -> Fingerprint;
}

impl Content for Acquire {
    fn fingerprint(&self) -> Fingerprint {
        let terms = (&self.owner, self.lease_ttl_ms, self.max_hold_ms, self.fencing, &self.labels);
        encode(|buffer| (0_u8, &self.resource, terms).serialize(buffer))
    }
}

impl Content for AcquireAll {
    fn fingerprint(&self) -> Fingerprint {
        let terms = (&self.owner, self.lease_ttl_ms, self.max_hold_ms, self.fencing, &self.labels);
        encode(|buffer| (1_u8, &self.resources, terms).serialize(buffer))
    }
}

impl Content for (Family, &ForceRelease) {
    fn fingerprint(&self) -> Fingerprint {
        let (family, op) = self;
        let what = (&op.resource, op.token, &op.reason);
        match family {
            Family::Lock => encode(|buffer| (2_u8, what).serialize(buffer)),
            _ => encode(|buffer| (4_u8, family, what).serialize(buffer)),
        }
    }
}

impl Content for SetTokenFloor {
    fn fingerprint(&self) -> Fingerprint {
        encode(|buffer| (3_u8, self.floor).serialize(buffer))
    }
}

/// What a remembered request has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Fate {
    /// Waiting or holding.
    Live(ObjectId),
    /// Granted once, ended since.
    Ended(End),
    /// Refused; as `LIMIT_REACHED` because of `maxLeases`.
    Refused(Code),
    /// Refused as `LIMIT_REACHED` because of `maxWaiters`.
    TooManyWaiters,
    /// Its wait ended without a grant.
    WaitEnded(WaitEnd),
    /// Abandoned before its content was known: refuses whatever comes under this id.
    Forbidden,
    /// A write that was done at once; the record's token says with which.
    Done,
    /// An attempt's end by its own account; the record's token is its slot.
    RunFinished { attempt: u32, state: RunState },
}

/// One remembered request.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Record {
    pub(super) request: Fingerprint,
    pub(super) content: Fingerprint,
    /// Zero for requests that were never queued or granted.
    pub(super) lease_id: LeaseId,
    /// The first token granted (those of an AcquireAll follow it one by one), or the operator's.
    pub(super) token: Token,
    /// When it was first answered so.
    pub(super) revision: Revision,
    pub(super) fate: Fate,
    /// Whose memory it counts in.
    pub(super) namespace: u32,
    /// How each resource of an ended AcquireAll ended, in the order asked for.
    pub(super) parts: Option<Box<[Part]>>,
}

/// One resource of an ended AcquireAll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Part {
    resource: u64,
    end: End,
}

impl Part {
    pub(super) fn new(resource: &ResourceName, end: End) -> Self {
        Self { resource: Self::hash(resource), end }
    }

    fn hash(resource: &ResourceName) -> u64 {
        slot_hash(&Fingerprint::of(resource.as_str().as_bytes()).0)
    }
}

impl Record {
    /// How a resource of this ended request ended, and its token; `None`: the request was about others.
    pub(super) fn ended(&self, resource: &ResourceName) -> Option<(End, Token)> {
        let Fate::Ended(end) = self.fate else { return None };
        let Some(parts) = &self.parts else { return Some((end, self.token)) };
        let hash = Part::hash(resource);
        let index = parts.iter().position(|part| part.resource == hash)?;
        Some((parts[index].end, Token(self.token.0 + index as u64)))
    }
}

/// A record's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId(u32);

/// All remembered requests, found by request and by lease, forgotten in the order of their time.
#[derive(Debug, Default)]
pub(super) struct ReplyMemory {
    records: Vec<Record>,
    vacant: Vec<u32>,
    by_request: HashTable<u32>,
    by_lease: HashTable<u32>,
    /// Records to forget, in steps of [`FORGET_STEP_MS`], each step in the order of arrival.
    forget: BTreeMap<ClusterTime, Vec<u32>>,
}

/// Forgetting is rounded up to this, which keeps the queue short. It is never early.
const FORGET_STEP_MS: u64 = 100;

/// Fingerprints and lease ids are uniform already.
fn slot_hash(bytes: &[u8; 16]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("16 bytes hold 8"))
}

const NO_LEASE: LeaseId = LeaseId([0; 16]);

impl ReplyMemory {
    pub(super) fn len(&self) -> usize {
        self.records.len() - self.vacant.len()
    }

    pub(super) fn get(&self, id: RecordId) -> &Record {
        &self.records[id.0 as usize]
    }

    pub(super) fn find(&self, request: Fingerprint) -> Option<RecordId> {
        let same = |&index: &u32| self.records[index as usize].request == request;
        self.by_request.find(slot_hash(&request.0), same).copied().map(RecordId)
    }

    pub(super) fn find_lease(&self, lease_id: LeaseId) -> Option<RecordId> {
        let same = |&index: &u32| self.records[index as usize].lease_id == lease_id;
        self.by_lease.find(slot_hash(&lease_id.0), same).copied().map(RecordId)
    }

    pub(super) fn insert(&mut self, record: Record) -> RecordId {
        assert!(self.find(record.request).is_none(), "a request is remembered once");
        let has_lease = record.lease_id != NO_LEASE;
        assert!(
            !has_lease || self.find_lease(record.lease_id).is_none(),
            "a lease id belongs to one request"
        );
        let (request, lease_id) = (record.request, record.lease_id);
        let index = match self.vacant.pop() {
            Some(index) => {
                self.records[index as usize] = record;
                index
            }
            None => {
                self.records.push(record);
                u32::try_from(self.records.len() - 1).expect("fewer than 2^32 records")
            }
        };
        let records = &self.records;
        self.by_request.insert_unique(slot_hash(&request.0), index, |&other| {
            slot_hash(&records[other as usize].request.0)
        });
        if has_lease {
            self.by_lease.insert_unique(slot_hash(&lease_id.0), index, |&other| {
                slot_hash(&records[other as usize].lease_id.0)
            });
        }
        RecordId(index)
    }

    /// A live request was granted: from here on it is answered with this token and revision.
    pub(super) fn granted(&mut self, id: RecordId, token: Token, revision: Revision) {
        let record = &mut self.records[id.0 as usize];
        assert!(matches!(record.fate, Fate::Live(_)), "only a live request is granted");
        assert!(record.token == Token(0), "a request is granted once");
        (record.token, record.revision) = (token, revision);
    }

    /// The first resource of a live request has ended: from here on the request is answered so.
    pub(super) fn spent(&mut self, id: RecordId, revision: Revision) {
        let record = &mut self.records[id.0 as usize];
        assert!(matches!(record.fate, Fate::Live(_)), "only a live request is spent");
        record.revision = revision;
    }

    /// A live request has come to its end; it is forgotten at `forget_at`. That of a grant began to be answered
    /// when it was spent.
    pub(super) fn ended(
        &mut self,
        id: RecordId,
        fate: Fate,
        revision: Revision,
        parts: Option<Box<[Part]>>,
        forget_at: ClusterTime,
    ) {
        let record = &mut self.records[id.0 as usize];
        assert!(matches!(record.fate, Fate::Live(_)), "a request ends once");
        assert!(!matches!(fate, Fate::Live(_)), "an end is an end");
        if !matches!(fate, Fate::Ended(_)) {
            record.revision = revision;
        }
        (record.fate, record.parts) = (fate, parts);
        self.forget_at(id, forget_at);
    }

    /// Puts a record that is not live into the queue of those to forget.
    pub(super) fn forget_at(&mut self, id: RecordId, at: ClusterTime) {
        let step = ClusterTime(at.0.div_ceil(FORGET_STEP_MS).saturating_mul(FORGET_STEP_MS));
        self.forget.entry(step).or_default().push(id.0);
    }

    /// Forgets one record whose time has come, and says in whose memory it was, and of which request.
    pub(super) fn forget_one(&mut self, now: ClusterTime) -> Option<(u32, Fingerprint)> {
        let mut step = self.forget.first_entry().filter(|step| *step.key() <= now)?;
        let index = step.get_mut().pop().expect("no step is empty");
        if step.get().is_empty() {
            step.remove();
        }
        let record = &self.records[index as usize];
        let (request, lease_id, namespace) = (record.request, record.lease_id, record.namespace);
        let is_it = |&other: &u32| other == index;
        self.by_request
            .find_entry(slot_hash(&request.0), is_it)
            .expect("every record is found by its request")
            .remove();
        if lease_id != NO_LEASE {
            self.by_lease
                .find_entry(slot_hash(&lease_id.0), is_it)
                .expect("every record with a lease is found by it")
                .remove();
        }
        self.records[index as usize].parts = None;
        self.vacant.push(index);
        Some((namespace, request))
    }

    /// All records to forget, step by step, each step in its order: what a snapshot keeps.
    pub(super) fn forgettable(
        &self,
    ) -> impl Iterator<Item = (ClusterTime, u32, impl Iterator<Item = &Record>)> {
        self.forget.iter().map(|(&step, indices)| {
            let count = u32::try_from(indices.len()).expect("fewer than 2^32 records");
            (step, count, indices.iter().map(|&index| &self.records[index as usize]))
        })
    }

    /// How many steps [`Self::forgettable`] gives.
    pub(super) fn steps(&self) -> usize {
        self.forget.len()
    }
}
