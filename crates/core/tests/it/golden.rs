//! Committed bytes: what earlier versions have written is read for ever, to the same outcomes. See
//! `tests/golden/README.md` for how a new level gets its fixtures.

use sereno_core::{
    LEVEL_MAX, State,
    command::{
        Abandon, AcquireAll, Command, ElectionCommand, EndDeserted, Family, ForceRelease,
        HoldCommand, JobCommand, Operation, PutNamespace, QuotaCommand, RenewMany, SetTokenFloor,
    },
    entry::{Announce, Body, Entry, EntryHash, Head},
    ids::{Revision, Token},
    names::{Caller, Labels, NamespaceName, Reason, RequestId},
    outcome::Done,
    policy::{Fencing, Policy},
    testing::{Scribe, acquire, default_namespace, lease, release, renew, resource_name},
};

#[path = "golden_faces.rs"]
mod faces;
#[path = "golden_quotas.rs"]
mod quotas;

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

fn folder(level: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/level-{level}"))
}

/// How many kinds of commands there are, and which one this is. A new kind does not compile here until it is
/// added, and then fails the tests until a fixture has it.
const KINDS: usize = 50;

fn kind(operation: &Operation) -> usize {
    match operation {
        Operation::Acquire(_) => 0,
        Operation::AcquireAll(_) => 1,
        Operation::Renew(_) => 2,
        Operation::RenewMany(_) => 3,
        Operation::Release(_) => 4,
        Operation::Abandon(_) => 5,
        Operation::ForceRelease(_) => 6,
        Operation::PutNamespace(_) => 7,
        Operation::EndDeserted(_) => 8,
        Operation::SetTokenFloor(_) => 9,
        Operation::RaiseLevel { .. } => 10,
        Operation::HoldTrim => 11,
        Operation::Election(ElectionCommand::Campaign(_)) => 12,
        Operation::Election(ElectionCommand::Renew(_)) => 13,
        Operation::Election(ElectionCommand::Proclaim(_)) => 14,
        Operation::Election(ElectionCommand::Resign(_)) => 15,
        Operation::Election(ElectionCommand::Handoff(_)) => 16,
        Operation::Election(ElectionCommand::ForceRelease(_)) => 17,
        Operation::Hold(HoldCommand::Hold(_)) => 18,
        Operation::Hold(HoldCommand::Renew(_)) => 19,
        Operation::Hold(HoldCommand::Begin(_)) => 20,
        Operation::Hold(HoldCommand::Release(_)) => 21,
        Operation::Hold(HoldCommand::ForceRelease(_)) => 22,
        Operation::Hold(HoldCommand::PutPolicy(_)) => 23,
        Operation::Job(JobCommand::Put(_)) => 24,
        Operation::Job(JobCommand::ClaimRun(_)) => 25,
        Operation::Job(JobCommand::RenewRun(_)) => 26,
        Operation::Job(JobCommand::FinishRun(_)) => 27,
        Operation::Job(JobCommand::Pause(_) | JobCommand::Resume(_)) => 28,
        Operation::Job(JobCommand::Skip(_) | JobCommand::RunNow(_)) => 29,
        Operation::Job(JobCommand::ForceRelease(_)) => 30,
        Operation::ReportGuard(_) => 31,
        Operation::Quota(QuotaCommand::PutLimit(_)) => 32,
        Operation::Quota(QuotaCommand::RemoveNode(_)) => 33,
        Operation::Quota(QuotaCommand::Reserve(_)) => 34,
        Operation::Quota(QuotaCommand::Begin(_)) => 35,
        Operation::Quota(QuotaCommand::Commit(_)) => 36,
        Operation::Quota(QuotaCommand::Release(_)) => 37,
        Operation::Quota(QuotaCommand::Extend(_)) => 38,
        Operation::Quota(QuotaCommand::Resize(_)) => 39,
        Operation::Quota(QuotaCommand::Return(_)) => 40,
        Operation::Quota(QuotaCommand::Settle(_)) => 41,
        Operation::Quota(QuotaCommand::ReportUsage(_)) => 42,
        Operation::Quota(QuotaCommand::Reconcile(_)) => 43,
        Operation::Quota(QuotaCommand::Adjust(_)) => 44,
        Operation::Quota(QuotaCommand::ShareGrant(_)) => 45,
        Operation::Quota(QuotaCommand::ShareReturn(_)) => 46,
        Operation::Quota(QuotaCommand::ShareReclaim(_)) => 47,
        Operation::SetRegion { .. } => 48,
        Operation::PutHome(_) => 49,
    }
}

/// A short life of a log with every kind of body and command in it, and a state that is left with holders,
/// waiters, a lock delay and remembered requests of all fates.
fn a_life() -> Scribe {
    let mut scribe = Scribe::new();
    scribe.state = State::new();
    scribe.keep = true;
    let genesis = sereno_core::entry::Genesis {
        log_id: sereno_core::ids::LogId(*b"a golden log id!"),
        min_ttl_ms: 1_000,
    };
    let genesis = Some(genesis);
    scribe.write(0, Body::Announce(Announce { address: "127.0.0.1:7480".into(), genesis }));
    let shop = NamespaceName::new("shop").expect("a name");
    let policy = Policy {
        min_ttl_ms: Some(2_000),
        max_hold_ms: Some(60_000),
        lock_delay_ms: 10_000,
        fencing: Fencing::Enforced,
        fencing_required: true,
        requests_per_second: Some(1_000),
        ..Policy::default()
    };
    let put = PutNamespace { namespace: shop.clone(), expected_version: 0, policy };
    scribe.run(Operation::PutNamespace(put));

    let mut full = acquire("orders/42", 1);
    full.namespace = shop.clone();
    full.max_hold_ms = Some(30_000);
    full.fencing = Some(Fencing::Enforced);
    full.labels =
        Labels::new([("job".into(), "7".into()), ("zone".into(), "ä".into())]).expect("labels");
    let mut waits = acquire("orders/42", 2);
    (waits.namespace, waits.wait_timeout_ms) = (shop.clone(), 60_000);
    let mut refused = acquire("orders/43", 3);
    (refused.namespace, refused.fencing) = (shop, Some(Fencing::BestEffort));
    let all = AcquireAll {
        namespace: default_namespace(),
        resources: ["a", "b", "c"].map(resource_name).into(),
        request_id: RequestId::new("request-all").expect("an id"),
        owner: full.owner.clone(),
        lease_id: sereno_core::testing::lease_id(4),
        lease_ttl_ms: None,
        max_hold_ms: None,
        fencing: None,
        labels: Labels::default(),
    };
    let applied = scribe.batch(
        250,
        vec![
            Operation::Acquire(full.clone()),
            Operation::Acquire(waits),
            Operation::Acquire(refused),
            Operation::AcquireAll(all),
            Operation::Acquire(acquire("d", 5)),
        ],
    );
    let Ok(Done::Granted(grant)) = &applied.outcomes[0].result else { panic!("{applied:?}") };
    let token = grant.holdings[0].1;
    let mut hand_over = acquire("d", 6);
    hand_over.wait_timeout_ms = 30_000;
    scribe.run(Operation::Acquire(hand_over));
    let Ok(Done::Granted(next)) =
        &scribe.batch(1, vec![release("d", 5)]).settled[0].outcome.result.clone()
    else {
        panic!("the waiter is next")
    };
    let leases = vec![lease("a", 4), lease("d", 6), lease("e", 7)];
    let namespace = default_namespace();
    scribe.batch(
        999,
        vec![
            renew("a", 4),
            Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms: Some(60_000) }),
            release("b", 4),
            release("b", 4),
            Operation::EndDeserted(EndDeserted { claim: next.claim, asked_at: Revision(u64::MAX) }),
        ],
    );
    let abandon = |family, id: &str| {
        let request_id = RequestId::new(id).expect("an id");
        Operation::Abandon(Abandon { namespace: default_namespace(), family, request_id })
    };
    scribe.lead("another-node", scribe.wall_us() - 3_600_000_000);
    let force_release = ForceRelease {
        namespace: full.namespace.clone(),
        resource: full.resource.clone(),
        token,
        request_id: RequestId::new("operator-1").expect("an id"),
        reason: Reason::new("its machine is on fire").expect("a reason"),
    };
    let floor = SetTokenFloor {
        request_id: RequestId::new("operator-2").expect("an id"),
        floor: Token(scribe.wall_us() + 7_200_000_000),
    };
    // It changes nothing: level 1 tells of it, level 2 does not.
    let no_floor = |id: &str| {
        let request_id = RequestId::new(id).expect("an id");
        Operation::SetTokenFloor(SetTokenFloor { request_id, floor: Token(1) })
    };
    let operations = vec![
        Operation::ForceRelease(force_release),
        Operation::SetTokenFloor(floor),
        abandon(Family::Lock, "never-seen"),
        abandon(Family::Admin, "operator-2"),
        Operation::Acquire(acquire("c", 8)),
        Operation::Acquire(acquire("f", 9)),
        no_floor("operator-3"),
        Operation::RaiseLevel { level: LEVEL_MAX },
        no_floor("operator-4"),
        Operation::HoldTrim,
    ];
    let born_at = scribe.state.time();
    let caller = Caller::new("an operator").expect("a caller");
    let command = |operation| Command { caller: caller.clone(), born_at, operation };
    scribe.write(500, Body::Batch(operations.into_iter().map(command).collect()));
    faces::live(&mut scribe);
    quotas::live(&mut scribe);
    scribe.write(0, Body::Resign);
    scribe.lead("test", scribe.wall_us() + 1);
    scribe.pass(1_500);
    scribe
}

/// Sealed entries one after the other, each after its length.
fn read_entries(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut entries, mut rest) = (Vec::new(), bytes);
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let (entry, after) = more.split_at(u32::from_le_bytes(*length) as usize);
        entries.push(entry);
        rest = after;
    }
    assert!(rest.is_empty());
    entries
}

/// Replays entries from the beginning, and describes each: position, hash, outcome chain.
fn replay(entries: &[&[u8]]) -> (State, String) {
    let (mut state, mut text) = (State::new(), String::new());
    for bytes in entries {
        let entry = Entry::decode(bytes).expect("an entry of an earlier version");
        let log_id = match state.head() {
            Head::EMPTY => sereno_core::ids::LogId::default(),
            head => head.log_id,
        };
        assert_eq!(entry.seal(log_id).bytes, bytes, "written again it is the same");
        let hash = EntryHash::of(bytes);
        state.apply(&entry, hash).expect("it follows");
        state.check_invariants();
        let (hash, chain) = (hash.to_hex(), state.outcome_chain().to_hex());
        writeln!(text, "entry {} {hash} outcomes {chain}", entry.position)
            .expect("strings take all");
    }
    let snapshot = EntryHash::of(&state.to_snapshot()).to_hex();
    writeln!(text, "snapshot {snapshot}").expect("strings take all");
    (state, text)
}

/// Writes the fixtures of the present level. Never over existing ones, and never silently: it fails either way.
fn write_fixtures() {
    let folder = folder(LEVEL_MAX);
    assert!(!folder.exists(), "{folder:?} exists: what is written is never written over");
    let life = a_life();
    let mut bytes = Vec::new();
    for entry in &life.entries {
        let sealed = entry.seal(life.state.log_id()).bytes;
        bytes.extend_from_slice(&u32::try_from(sealed.len()).expect("a small entry").to_le_bytes());
        bytes.extend_from_slice(&sealed);
    }
    let (state, text) = replay(&read_entries(&bytes));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("entries.bin"), &bytes).expect("entries");
    fs::write(folder.join("snapshot.bin"), state.to_snapshot()).expect("a snapshot");
    fs::write(folder.join("replay.txt"), text).expect("their description");
    panic!(
        "fixtures of level {LEVEL_MAX} were written: look at them, commit them, and run without the variable"
    );
}

#[test]
fn what_every_level_has_written_is_read_to_the_same_outcomes() {
    if std::env::var("SERENO_WRITE_GOLDEN").is_ok_and(|level| level == LEVEL_MAX.to_string()) {
        write_fixtures();
    }
    for level in 1..=LEVEL_MAX {
        let folder = folder(level);
        let bytes = fs::read(folder.join("entries.bin")).expect("see tests/golden/README.md");
        let (state, text) = replay(&read_entries(&bytes));
        assert_eq!(text, fs::read_to_string(folder.join("replay.txt")).unwrap(), "level {level}");

        let snapshot = fs::read(folder.join("snapshot.bin")).unwrap();
        assert!(state.to_snapshot() == snapshot, "the state after it is written as before");
        let mut restored = State::from_snapshot(&snapshot).unwrap();
        restored.check_invariants();
        assert!(restored.to_snapshot() == snapshot, "a snapshot gives back all of the state");
        assert_eq!(restored.outcome_chain(), state.outcome_chain());

        // It is a state to go on with.
        let mut goes_on = Scribe::new();
        std::mem::swap(&mut goes_on.state, &mut restored);
        goes_on.lead("later", goes_on.wall_us());
        goes_on.pass(1_000_000);
        assert_eq!(goes_on.state.leases(), 0);
        let quarantined = if level < 4 { 0 } else { 2 };
        assert_eq!(goes_on.state.reply_records(), quarantined);
    }
}

#[test]
fn the_fixtures_have_every_kind_of_body_and_command() {
    let bytes =
        fs::read(folder(LEVEL_MAX).join("entries.bin")).expect("see tests/golden/README.md");
    let (mut kinds, mut bodies) = (BTreeSet::new(), BTreeSet::new());
    for bytes in read_entries(&bytes) {
        match Entry::decode(bytes).unwrap().body {
            Body::Announce(Announce { genesis, .. }) => {
                bodies.insert(if genesis.is_some() { "genesis" } else { "announce" });
            }
            Body::Resign => {
                bodies.insert("resign");
            }
            Body::Batch(commands) => {
                bodies.insert(if commands.is_empty() { "heartbeat" } else { "batch" });
                kinds.extend(commands.iter().map(|command| kind(&command.operation)));
            }
        }
    }
    assert_eq!(kinds, (0..KINDS).collect());
    assert_eq!(bodies, BTreeSet::from(["announce", "batch", "genesis", "heartbeat", "resign"]));
    let snapshot = fs::read(folder(LEVEL_MAX).join("snapshot.bin")).unwrap();
    let state = State::from_snapshot(&snapshot).unwrap();
    assert!(state.leases() > 1 && state.waiters() > 0 && state.reply_records() > 5);
    assert!(state.is_trim_held());
}

/// The fixtures are of the life that is written down here, so that it can be read what they hold.
#[test]
fn the_fixtures_are_of_the_life_written_here() {
    let bytes =
        fs::read(folder(LEVEL_MAX).join("entries.bin")).expect("see tests/golden/README.md");
    let life = a_life();
    let sealed: Vec<_> = life.entries.iter().map(|entry| entry.seal(life.state.log_id())).collect();
    let written: Vec<_> = sealed.iter().map(|sealed| sealed.bytes.as_ref()).collect();
    assert!(read_entries(&bytes) == written);
}
