//! The starvation bound: once a waiting reservation is the oldest that has waited longer than the quota's patience, it is
//! granted when the reservations in its way have come to their end, whatever others ask for meanwhile.

use proptest::{collection::vec, prelude::*};
use sereno_core::{
    Applied,
    command::{Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, QuotaCommand, Reserve},
    ids::{ObjectId, ReservationId},
    names::{Labels, Owner, QuotaName, QuotaPath, RequestId},
    outcome::Done,
    testing::{Scribe, default_namespace, lease_id},
};
use std::collections::BTreeMap;

const PATIENCE_MS: u64 = 5_000;
const LIFETIME_MS: u64 = 3_000;
const TICK_MS: u64 = 500;
const NODES: [(&str, u64, u64); 5] =
    [("", 10, 0), ("a", 6, 0), ("a/x", 5, 0), ("b", 10, 3), ("b/y", 10, 0)];

fn node(path: &str) -> NodeRef {
    let quota = QuotaName::new("gpu").expect("a quota");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

fn request(n: u64) -> RequestId {
    RequestId::new(&format!("request-{n}")).expect("an id")
}

struct Clock {
    scribe: Scribe,
    drawn: u64,
    /// Who waits, since when.
    waiting: BTreeMap<ObjectId, u64>,
    /// The oldest that has waited too long, and since when it is that.
    oldest: Option<(ObjectId, u64)>,
}

impl Clock {
    fn new() -> Self {
        let mut scribe = Scribe::new();
        scribe.run(Operation::RaiseLevel { level: 4 });
        for (n, (path, limit, guaranteed)) in NODES.into_iter().enumerate() {
            let patience_ms = path.is_empty().then_some(PATIENCE_MS);
            let limits = NodeLimits { guaranteed, patience_ms, ..NodeLimits::of(limit) };
            let put = PutLimit {
                namespace: default_namespace(),
                node: node(path),
                limits,
                expected_version: 0,
                refuse_debt: false,
                request_id: request(1 << 40 | n as u64),
            };
            let outcome = scribe.run(Operation::Quota(QuotaCommand::PutLimit(put)));
            assert!(outcome.result.is_ok(), "{outcome:?}");
        }
        Self { scribe, drawn: 0, waiting: BTreeMap::new(), oldest: None }
    }

    fn ask(&mut self, at: usize, amount: u64) -> Operation {
        self.drawn += 1;
        let (path, limit, _) = NODES[at];
        Operation::Quota(QuotaCommand::Reserve(Reserve {
            namespace: default_namespace(),
            owner: Owner::new("worker").expect("an owner"),
            items: vec![Item { node: node(path), amount: amount.min(limit).min(7) }],
            request_id: request(self.drawn),
            reservation: ReservationId(lease_id(self.drawn).0),
            ttl_ms: LIFETIME_MS,
            max_lifetime_ms: Some(LIFETIME_MS),
            on_expiry: OnExpiry::Release,
            priority: u8::try_from(self.drawn % 3).expect("small"),
            wait_timeout_ms: 600_000,
            labels: Labels::default(),
        }))
    }

    fn tick(&mut self, asks: &[(usize, u64)]) {
        let operations = asks.iter().map(|&(at, amount)| self.ask(at, amount)).collect();
        let applied = self.scribe.batch(TICK_MS, operations);
        let now = self.scribe.state.time().0;
        self.note(&applied, now);
        let oldest = self.waiting.iter().next();
        let oldest = oldest.filter(|(_, since)| **since + PATIENCE_MS < now).map(|(&id, _)| id);
        match (oldest, self.oldest) {
            (Some(id), Some((known, since))) if id == known => {
                let waits = now - since;
                assert!(waits <= LIFETIME_MS + TICK_MS, "the oldest waits for {waits} ms more");
            }
            (oldest, _) => self.oldest = oldest.map(|id| (id, now)),
        }
    }

    fn note(&mut self, applied: &Applied, now: u64) {
        for outcome in &applied.outcomes {
            if let Ok(Done::Waiting(waiting)) = &outcome.result {
                self.waiting.insert(waiting.claim, now);
            }
        }
        for settled in &applied.settled {
            assert!(settled.outcome.result.is_ok(), "nobody waits so long: {settled:?}");
            self.waiting.remove(&settled.claim);
        }
    }
}

proptest! {
    #![proptest_config(super::config())]

    #[test]
    fn nobody_starves(ticks in vec(vec((0..5_usize, 1..8_u64), 0..3), 20..90)) {
        let mut clock = Clock::new();
        ticks.iter().for_each(|asks| clock.tick(asks));
        // Nobody comes any more: all are served in the end.
        for _ in 0..=2 * clock.waiting.len() * (LIFETIME_MS / TICK_MS + 1) as usize {
            clock.tick(&[]);
        }
        assert!(clock.waiting.is_empty(), "{} still wait", clock.waiting.len());
    }
}
