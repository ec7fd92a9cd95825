//! Hostile bytes: whatever is read, the answer is an error or exactly what was written; never a panic, never a
//! state or an entry that differs a little.

use proptest::prelude::*;
use sereno_core::{
    SnapshotError, State,
    command::{
        Command, Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, QuotaCommand, Reserve,
    },
    entry::{Body, Entry, EntryError, EntryHash},
    ids::ReservationId,
    names::{Caller, Labels, Owner, QuotaName, QuotaPath, RequestId},
    testing::{Scribe, acquire, default_namespace, release, renew},
};

fn node() -> NodeRef {
    let quota = QuotaName::new("gpu").expect("a quota");
    NodeRef { quota, path: QuotaPath::root() }
}

fn request(text: &str) -> RequestId {
    RequestId::new(text).expect("an id")
}

fn limit(limit: u64) -> Operation {
    Operation::Quota(QuotaCommand::PutLimit(PutLimit {
        namespace: default_namespace(),
        node: node(),
        limits: NodeLimits::of(limit),
        expected_version: 0,
        refuse_debt: false,
        request_id: request("put-limit"),
    }))
}

fn reserve(amount: u64, wait_timeout_ms: u64) -> Operation {
    Operation::Quota(QuotaCommand::Reserve(Reserve {
        namespace: default_namespace(),
        owner: Owner::new("worker").expect("an owner"),
        items: vec![Item { node: node(), amount }],
        request_id: request(&format!("reserve-{amount}")),
        reservation: ReservationId([amount as u8; 16]),
        ttl_ms: 10_000,
        max_lifetime_ms: Some(60_000),
        on_expiry: OnExpiry::Quarantine,
        priority: 3,
        wait_timeout_ms,
        labels: Labels::default(),
    }))
}

/// An entry with several kinds of commands.
fn an_entry() -> Vec<u8> {
    let scribe = Scribe::new();
    let operations =
        [Operation::Acquire(acquire("a/b", 1)), release("a", 2), renew("b", 3), reserve(2, 5_000)];
    let caller = Caller::new("somebody").expect("a caller");
    let born_at = scribe.state.time();
    let command = |operation| Command { caller: caller.clone(), born_at, operation };
    let body = Body::Batch(operations.into_iter().map(command).collect());
    scribe.entry(5, body).seal(scribe.state.log_id()).bytes.to_vec()
}

/// A snapshot with a holder, a waiter and a remembered request; the same of quotas.
fn a_snapshot() -> Vec<u8> {
    let mut scribe = Scribe::new();
    scribe.run(Operation::Acquire(acquire("a", 1)));
    let mut waiting = acquire("a", 2);
    waiting.wait_timeout_ms = 60_000;
    scribe.run(Operation::Acquire(waiting));
    scribe.run(Operation::Acquire(acquire("a", 3)));
    scribe.run(Operation::RaiseLevel { level: 4 });
    scribe.batch(0, vec![limit(3), reserve(2, 0), reserve(3, 60_000)]);
    scribe.state.to_snapshot()
}

/// Damage to some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: prop::sample::Index, bit: u8 },
    Set { at: prop::sample::Index, byte: u8 },
    Cut { at: prop::sample::Index },
    Insert { at: prop::sample::Index, bytes: Vec<u8> },
    Repeat { from: prop::sample::Index, to: prop::sample::Index },
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Flip { at, bit } => *at.get_mut(bytes) ^= 1 << bit,
            Self::Set { at, byte } => *at.get_mut(bytes) = *byte,
            Self::Cut { at } => bytes.truncate(at.index(bytes.len())),
            Self::Insert { at, bytes: more } => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Repeat { from, to } => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let at = any::<prop::sample::Index>;
    let one = prop_oneof![
        4 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set { at, byte }),
        1 => at().prop_map(|at| Damage::Cut { at }),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
        1 => (at(), at()).prop_map(|(from, to)| Damage::Repeat { from, to }),
    ];
    prop::collection::vec(one, 1..4)
}

/// What decodes at all has to be written in exactly these bytes: no two encodings of one entry, so no doubt what
/// its hash covers. Applied to a state it may be a misfit, and changes nothing then.
fn decode_entry(bytes: &[u8]) {
    let Ok(entry) = Entry::decode(bytes) else { return };
    let mut scribe = Scribe::new();
    let sealed = entry.seal(scribe.state.log_id());
    assert_eq!(sealed.bytes, bytes, "an entry has one encoding");
    let before = scribe.state.to_snapshot();
    match scribe.state.apply(&entry, sealed.head.hash) {
        Ok(_) => scribe.state.check_invariants(),
        Err(_) => assert_eq!(scribe.state.to_snapshot(), before),
    }
}

fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases * 16;
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_damaged_entry_is_an_error_or_another_entry(damage in damage()) {
        let mut bytes = an_entry();
        damage.iter().for_each(|damage| damage.to(&mut bytes));
        decode_entry(&bytes);
    }

    #[test]
    fn garbage_is_no_entry(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        decode_entry(&garbage);
        decode_entry(&[b"SE\x01".as_slice(), &garbage].concat());
    }

    #[test]
    fn a_damaged_snapshot_is_an_error(damage in damage()) {
        let sound = a_snapshot();
        let mut bytes = sound.clone();
        damage.iter().for_each(|damage| damage.to(&mut bytes));
        if bytes != sound {
            prop_assert!(State::from_snapshot(&bytes).is_err());
        }
    }

    #[test]
    fn garbage_is_no_snapshot(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(State::from_snapshot(&garbage).is_err());
        prop_assert!(State::from_snapshot(&[b"SS\x01".as_slice(), &garbage].concat()).is_err());
    }
}

#[test]
fn every_single_bit_of_a_snapshot_counts() {
    let sound = a_snapshot();
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            assert!(State::from_snapshot(&bytes).is_err(), "bit {bit} of byte {at}");
        }
        assert!(State::from_snapshot(&sound[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn every_single_bit_of_an_entry_changes_its_hash_or_its_form() {
    let sound = an_entry();
    let hash = EntryHash::of(&sound);
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            assert_ne!(EntryHash::of(&bytes), hash);
            decode_entry(&bytes);
        }
        assert!(Entry::decode(&sound[..at]).is_err(), "cut at {at}");
    }
    assert!(Entry::decode(&[sound.as_slice(), b"x"].concat()).is_err(), "every byte belongs");
}

#[test]
fn other_versions_are_named_not_guessed() {
    let mut entry = an_entry();
    entry[2] = 2;
    assert_eq!(Entry::decode(&entry), Err(EntryError::Version(2)));
    let mut snapshot = a_snapshot();
    snapshot[2] = 9;
    assert!(matches!(State::from_snapshot(&snapshot), Err(SnapshotError::Version(9))));
}
