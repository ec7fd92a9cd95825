//! Plays a history: gives every step to the state and to the reference, and compares.

use super::{
    books::{Amounts, Lot, Phase, Reservation},
    chance::Step,
    compare::{compare, said},
    decide::Reference,
};
use sereno_core::{
    Applied, State,
    command::{
        Abandon, Adjust, Adjustment, Begin, Commit, Extend, Family, Item, Late, NodeLimits,
        NodeRef, Operation, PutLimit, PutNamespace, QuotaCommand, ReleaseReservation,
        ReservationRef, Reserve, Resize, ReturnUse, Settle, Settlement,
    },
    event::{EventKind, QuotaChange},
    ids::{ObjectId, ReservationId},
    limits,
    names::{Labels, NamespaceName, Owner, QuotaName, QuotaPath, Reason, RequestId},
    outcome::{Code, Detail, Done, Outcome, QuotaDone},
    policy::Policy,
    testing::{Scribe, lease_id},
};
use std::collections::BTreeMap;

const NODES: [&str; 8] = ["q/", "q/a", "q/a/x", "q/a/y", "q/b", "q/b/z", "r/", "s/"];
const LIMITS: [u64; 8] = [10, 8, 6, 6, 8, 6, 6, 0];

/// The last one is not there.
fn node(index: usize) -> NodeRef {
    let name = NODES.get(index).unwrap_or(&"q/none");
    let (quota, path) = name.split_once('/').expect("quota/path");
    let quota = QuotaName::new(quota).expect("a quota");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

fn owner(index: usize) -> Owner {
    Owner::new(&format!("owner-{index}")).expect("an owner")
}

fn namespace() -> NamespaceName {
    NamespaceName::new("shop").expect("a name")
}

fn amounts(items: &[(usize, u64)]) -> Amounts {
    let mut amounts = Amounts::new();
    for &(index, amount) in items {
        *amounts.entry(node(index)).or_default() += amount;
    }
    amounts
}

pub(super) struct World {
    scribe: Scribe,
    reference: Reference,
    /// The same without the snapshots in between.
    twin: Option<State>,
    /// The nodes that each reserve has named, in the order of requests.
    asked: Vec<Vec<NodeRef>>,
    claims: BTreeMap<ObjectId, u64>,
    commits: Vec<ObjectId>,
    /// Commands and what was first said to them.
    played: Vec<(Operation, Outcome)>,
    drawn: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let mut scribe = Scribe::new();
        scribe.keep = true;
        scribe.run(Operation::RaiseLevel { level: 4 });
        let policy = Policy { reply_endings_ms: limits::REPLY_MS_MAX, ..Policy::default() };
        let (namespace, expected_version) = (namespace(), 0);
        scribe.run(Operation::PutNamespace(PutNamespace { namespace, expected_version, policy }));
        let mut world = Self {
            scribe,
            reference: Reference::default(),
            twin: None,
            asked: Vec::new(),
            claims: BTreeMap::new(),
            commits: Vec::new(),
            played: Vec::new(),
            drawn: 0,
        };
        for (index, limit) in LIMITS.into_iter().enumerate() {
            let limits = NodeLimits::of(limit);
            world.reference.books.limits.insert(node(index), (limits.clone(), 1));
            let put = world.put(index, limits, 0);
            assert!(world.entry(0, vec![put]).outcomes[0].result.is_ok());
        }
        world
    }

    fn request_id(&mut self) -> RequestId {
        self.drawn += 1;
        RequestId::new(&format!("request-{}", self.drawn)).expect("an id")
    }

    fn put(&mut self, index: usize, limits: NodeLimits, expected_version: u64) -> Operation {
        Operation::Quota(QuotaCommand::PutLimit(PutLimit {
            namespace: namespace(),
            node: node(index),
            limits,
            expected_version,
            refuse_debt: false,
            request_id: self.request_id(),
        }))
    }

    /// One entry, given to all who follow.
    fn entry(&mut self, after_ms: u64, operations: Vec<Operation>) -> Applied {
        let is_heartbeat = operations.is_empty();
        let applied = self.scribe.batch(after_ms, operations);
        if !is_heartbeat || !applied.events.is_empty() {
            self.scribe.state.check_invariants();
        }
        if let Some(twin) = &mut self.twin {
            let entry = self.scribe.entries.last().expect("it was just written");
            let hash = entry.seal(twin.log_id()).head.hash;
            assert_eq!(twin.apply(entry, hash).as_ref(), Ok(&applied), "without the snapshot");
        }
        for event in &applied.events {
            if let EventKind::Quota(event) = &event.kind
                && let QuotaChange::Committed { commit, .. } = event.change
            {
                self.commits.push(commit);
            }
        }
        applied
    }

    pub(super) fn play(&mut self, step: &Step) {
        match step {
            Step::Pass(ms) => self.pass(*ms),
            Step::Snapshot => {
                let bytes = self.scribe.state.to_snapshot();
                let copy = State::from_snapshot(&bytes).expect("a snapshot");
                assert!(copy.to_snapshot() == bytes, "a snapshot gives back all of the state");
                self.twin = Some(std::mem::replace(&mut self.scribe.state, copy));
            }
            Step::Repeat(back) => self.repeat(*back),
            Step::Abandon(back) => self.abandon(*back),
            other => self.command(other),
        }
        self.reference.settled.clear();
        compare(&self.scribe.state, &namespace(), &self.reference.books);
    }

    fn pass(&mut self, ms: u64) {
        let mut left = ms;
        while left > 0 {
            let step = left.min(1_000);
            let applied = self.entry(step, Vec::new());
            self.reference.pass(self.scribe.state.time().0);
            self.settled(&applied);
            self.reference.settled.clear();
            left -= step;
        }
    }

    fn command(&mut self, step: &Step) {
        let (operation, expected) = self.decide(step);
        let Some(operation) = operation else { return };
        let applied = self.entry(0, vec![operation.clone()]);
        let outcome = applied.outcomes[0].clone();
        let is_reserve = matches!(step, Step::Reserve { .. });
        if is_reserve {
            let number = self.asked.len() as u64 - 1;
            match &outcome.result {
                Ok(Done::Waiting(waiting)) => drop(self.claims.insert(waiting.claim, number)),
                Ok(done) => {
                    let claim = done.held_by().expect("a reserve reserves or waits");
                    self.claims.insert(claim, number);
                }
                Err(_) => {}
            }
        }
        if let Ok(Done::Quota(QuotaDone::Adjusted { commit: Some(commit), .. })) = outcome.result {
            self.commits.push(commit);
        }
        assert_eq!(said(&outcome, is_reserve), expected, "to {operation:#?}");
        assert_eq!(self.commits.len(), self.reference.commits, "every commit is told of once");
        self.settled(&applied);
        self.played.push((operation, outcome));
    }

    /// Who was told what after a wait, and in which order.
    fn settled(&mut self, applied: &Applied) {
        let told = applied.settled.iter().map(|settled| {
            let number = self.claims[&settled.claim];
            match &settled.outcome.result {
                Ok(done) => {
                    assert!(done.held_by() == Some(settled.claim), "{done:?}");
                    (number, "granted".to_string())
                }
                Err(refusal) => (number, format!("{:?}", refusal.code)),
            }
        });
        let told: Vec<_> = told.collect();
        let expected = self.reference.settled.iter();
        let expected: Vec<_> = expected.map(|(of, what)| (*of, what.to_string())).collect();
        assert_eq!(told, expected, "who waits no longer");
    }

    fn name(number: u64) -> ReservationId {
        ReservationId(lease_id(number + 1).0)
    }

    fn of(number: u64) -> ReservationRef {
        ReservationRef { namespace: namespace(), reservation: Self::name(number), fence: None }
    }

    /// Counted from the last reserve back.
    fn number(&self, back: usize) -> Option<u64> {
        self.asked.len().checked_sub(back + 1).map(|number| number as u64)
    }

    fn parts(&self, number: u64, parts: &[u64]) -> Vec<(NodeRef, u64)> {
        self.asked[number as usize].iter().cloned().zip(parts.iter().copied()).collect()
    }

    /// The command, and what the reference says to it.
    fn decide(&mut self, step: &Step) -> (Option<Operation>, String) {
        match step {
            &Step::Limit { node: at, limit, burst, guaranteed, weight, owner_max, patience_ms } => {
                let is_root = node(at).path.depth() == 0;
                let limits = NodeLimits {
                    limit,
                    burst,
                    guaranteed: if is_root { 0 } else { guaranteed },
                    weight,
                    owner_reserved_max: owner_max,
                    patience_ms: patience_ms.filter(|_| is_root),
                    home: None,
                };
                let version = self.reference.books.limits[&node(at)].1;
                let put = self.put(at, limits.clone(), version);
                (Some(put), self.reference.put_limit(&node(at), &limits))
            }
            Step::Reserve {
                items,
                owner: by,
                ttl_ms,
                lifetime_ms,
                on_expiry,
                priority,
                wait_ms,
            } => {
                let number = self.asked.len() as u64;
                let asked = Reservation {
                    number,
                    owner: owner(*by).to_string(),
                    items: amounts(items),
                    phase: Phase::Waiting,
                    on_expiry: *on_expiry,
                    priority: *priority,
                    ttl_ms: *ttl_ms,
                    lifetime_ms: *lifetime_ms,
                    created_at: self.reference.books.now,
                    deadline: self.reference.books.now + wait_ms,
                    end_of_life: 0,
                };
                self.asked.push(asked.items.keys().cloned().collect());
                let item = |&(at, amount): &(usize, u64)| Item { node: node(at), amount };
                let reserve = Reserve {
                    namespace: namespace(),
                    owner: owner(*by),
                    items: items.iter().map(item).collect(),
                    request_id: RequestId::new(&format!("reserve-{number}")).expect("an id"),
                    reservation: Self::name(number),
                    ttl_ms: *ttl_ms,
                    max_lifetime_ms: Some(*lifetime_ms),
                    on_expiry: *on_expiry,
                    priority: *priority,
                    wait_timeout_ms: *wait_ms,
                    labels: Labels::default(),
                };
                let expected = self.reference.reserve(asked, *wait_ms);
                (Some(Operation::Quota(QuotaCommand::Reserve(reserve))), expected)
            }
            &Step::Return { lot, amount } => self.give_back(lot, amount),
            &Step::Adjust { node: at, owner: by, adds, amount } => {
                let adjust = Adjust {
                    namespace: namespace(),
                    node: node(at),
                    owner: owner(by),
                    change: match adds {
                        true => Adjustment::Add(amount),
                        false => Adjustment::Subtract(amount),
                    },
                    reason: Reason::new("why").expect("a reason"),
                    request_id: self.request_id(),
                };
                let expected = self.reference.adjust(&node(at), owner(by).as_str(), adds, amount);
                (Some(Operation::Quota(QuotaCommand::Adjust(adjust))), expected)
            }
            other => self.decide_about_one(other),
        }
    }

    fn give_back(&mut self, lot: usize, amount: u64) -> (Option<Operation>, String) {
        let lots = &self.reference.books.lots;
        let Some(lot) = lots.get(lot % lots.len().max(1)).cloned() else {
            return (None, String::new());
        };
        let Lot { commit, node, owner, .. } = &lot;
        let back = ReturnUse {
            namespace: namespace(),
            commit: self.commits[*commit],
            node: node.clone(),
            owner: Owner::new(owner).expect("an owner"),
            amount,
            request_id: self.request_id(),
        };
        let expected = self.reference.give_back(&lot, amount);
        (Some(Operation::Quota(QuotaCommand::Return(back))), expected)
    }

    fn decide_about_one(&mut self, step: &Step) -> (Option<Operation>, String) {
        let (Step::Commit { of, .. }
        | Step::Release(of)
        | Step::Extend { of, .. }
        | Step::Resize { of, .. }
        | Step::Begin { of, .. }
        | Step::Settle { of, .. }) = step
        else {
            unreachable!("played elsewhere")
        };
        let Some(number) = self.number(*of) else { return (None, String::new()) };
        let (of, request_id) = (Self::of(number), self.request_id());
        let items = |parts: &[(NodeRef, u64)]| {
            let item =
                |(node, amount): &(NodeRef, u64)| Item { node: node.clone(), amount: *amount };
            parts.iter().map(item).collect::<Vec<_>>()
        };
        let (command, expected) = match step {
            Step::Commit { parts, is_final, readmit, .. } => {
                let parts = parts.as_ref().map(|parts| self.parts(number, parts));
                let late = if *readmit { Late::Readmit } else { Late::Reject };
                let commit = Commit {
                    of,
                    items: parts.as_deref().map(items),
                    is_final: *is_final,
                    late,
                    readmitted: ReservationId(lease_id(1 << 40 | self.drawn).0),
                    request_id,
                };
                let said = self.reference.commit(number, parts.as_deref(), *is_final, *readmit);
                (QuotaCommand::Commit(commit), said)
            }
            Step::Release(_) => {
                let release = ReleaseReservation { of, request_id };
                (QuotaCommand::Release(release), self.reference.release(number))
            }
            &Step::Extend { ttl_ms, .. } => {
                let extend = Extend { of, ttl_ms: Some(ttl_ms), request_id };
                (QuotaCommand::Extend(extend), self.reference.extend(number, ttl_ms))
            }
            Step::Resize { amounts, .. } => {
                let parts = self.parts(number, amounts);
                let resize = Resize { of, items: items(&parts), request_id };
                (QuotaCommand::Resize(resize), self.reference.resize(number, &parts))
            }
            &Step::Begin { ttl_ms, on_expiry, .. } => {
                let in_flight_ttl_ms = ttl_ms;
                let begin = Begin { of, in_flight_ttl_ms, on_expiry, request_id };
                let said = self.reference.begin(number, ttl_ms, on_expiry);
                (QuotaCommand::Begin(begin), said)
            }
            &Step::Settle { commits, .. } => {
                let settlement = if commits { Settlement::Commit } else { Settlement::Release };
                let reason = Reason::new("why").expect("a reason");
                let settle = Settle { of, settlement, reason, request_id };
                (QuotaCommand::Settle(settle), self.reference.settle(number, commits))
            }
            _ => unreachable!("matched above"),
        };
        (Some(Operation::Quota(command)), expected)
    }

    fn abandon(&mut self, back: usize) {
        let Some(number) = self.number(back) else { return };
        let abandon = Abandon {
            namespace: namespace(),
            family: Family::Quota,
            request_id: RequestId::new(&format!("reserve-{number}")).expect("an id"),
        };
        let applied = self.entry(0, vec![Operation::Abandon(abandon)]);
        match &applied.outcomes[0].result {
            Ok(Done::Abandoned { .. }) => assert!(self.reference.abandon(number)),
            Err(refusal) => {
                assert!(matches!(refusal.detail, Detail::Quarantined { .. }), "{refusal:?}");
                assert!(!self.reference.abandon(number));
            }
            other => panic!("an abandon was answered with {other:?}"),
        }
        self.settled(&applied);
    }

    /// The same request once more: nothing is done, and the answer is the same (S6).
    fn repeat(&mut self, back: usize) {
        let Some(index) = self.played.len().checked_sub(back + 1) else { return };
        let (operation, first) = self.played[index].clone();
        let applied = self.entry(0, vec![operation.clone()]);
        let again = &applied.outcomes[0];
        assert!(again.replayed.is_some(), "{operation:#?} is remembered");
        assert!(applied.settled.is_empty(), "a repeat changes nothing");
        assert!(applied.events.is_empty(), "a repeat changes nothing");
        match (&first.result, &again.result) {
            (Err(first), Err(again)) => assert_eq!(first.code, again.code),
            // A reserve is answered with what it has come to.
            (Ok(_), _) if matches!(operation, Operation::Quota(QuotaCommand::Reserve(_))) => {
                if let Err(refusal) = &again.result {
                    let ends = [Code::ReservationEnded, Code::WaitTimeout, Code::Abandoned];
                    assert!(ends.contains(&refusal.code), "{refusal:?}");
                }
            }
            (Ok(Done::Quota(first)), Ok(Done::Quota(again))) => match (first, again) {
                (QuotaDone::Reserved(first), QuotaDone::Reserved(again)) => {
                    assert_eq!(first.reservation, again.reservation);
                }
                (first, again) => assert_eq!(first, again),
            },
            other => panic!("another answer: {other:?}"),
        }
    }

    /// All entries once more from the beginning.
    pub(super) fn finish(&mut self) {
        let mut replayed = State::new();
        let genesis = Scribe::genesis();
        let log_id = self.scribe.state.log_id();
        let all = [genesis].into_iter().chain(self.scribe.entries.drain(..));
        for entry in all {
            let hash = entry.seal(log_id).head.hash;
            replayed.apply(&entry, hash).expect("it was applied before");
        }
        let live = self.scribe.state.to_snapshot();
        assert!(replayed.to_snapshot() == live, "the same entries give the same state");
        if let Some(twin) = &self.twin {
            assert!(twin.to_snapshot() == live, "the same state gives the same bytes");
        }
    }
}
