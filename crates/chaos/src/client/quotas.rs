//! The mixed load on quotas: reservations of one node or several, that wait and that do not; begun, extended, resized,
//! released; committed in parts, at once, late, twice; use that is returned; quarantined ones that an operator settles;
//! limits that are cut and raised; and clients that die, come late and give up.
//!
//! Trees are new ones every while, so that what dead clients have used fills none of them for long, and none has a long
//! history. A *solo* tree is its root alone, with one limit: that is what the model without revisions knows.

use super::caller::{Asked, Caller, ms};
use crate::{
    clock::{Micros, SECOND, now},
    history::{Family, Heard, NodeRules, Op, QuotaHeard, QuotaOp, ReservationOf},
};
use rand::RngExt;
use sereno_api::{OnExpiry, QuotaItem, ReservationState, Settlement};
use std::collections::BTreeSet;

/// So long the trees of one kind live.
const SOLO_LIFE: Micros = 20 * SECOND;
const POOL_LIFE: Micros = 40 * SECOND;
/// The limit of a solo tree.
pub(crate) const SOLO_LIMIT: u64 = 5;
/// What each lasts, in milliseconds.
const TTLS: [u64; 3] = [2_000, 3_000, 5_000];
const IN_FLIGHT_MS_MAX: u64 = 5_000;
/// So long after the last write every deadline has passed, a takeover's seconds counted.
pub(crate) const QUIET: Micros = 10 * SECOND;

/// Which of its kind is in use at a moment.
fn solo(at: Micros) -> String {
    format!("solo-{}", at / SOLO_LIFE)
}

fn pool(at: Micros) -> String {
    format!("pool-{}", at / POOL_LIFE)
}

/// Whether it is a tree that is its root alone.
pub(crate) fn is_solo(quota: &str) -> bool {
    quota.starts_with("solo-")
}

fn rules(quota: &str, path: &str, limit: u64) -> NodeRules {
    let (quota, path) = (quota.to_owned(), path.to_owned());
    NodeRules { quota, path, limit, burst: 0, guaranteed: 0, weight: 1, owner_reserved_max: None }
}

/// All trees of a moment, parents first.
fn trees(at: Micros) -> Vec<NodeRules> {
    let (solo, pool) = (solo(at), pool(at));
    let side = format!("side-{}", at / POOL_LIFE);
    vec![
        rules(&solo, "", SOLO_LIMIT),
        NodeRules { burst: 2, ..rules(&pool, "", 14) },
        NodeRules { guaranteed: 4, weight: 2, ..rules(&pool, "a", 9) },
        NodeRules { guaranteed: 2, ..rules(&pool, "a/x", 6) },
        rules(&pool, "a/y", FLEXIBLE[0]),
        NodeRules { guaranteed: 2, ..rules(&pool, "b", 9) },
        NodeRules { owner_reserved_max: Some(4), ..rules(&pool, "b/z", 8) },
        rules(&side, "", 8),
    ]
}

/// The one node whose limit changes.
const FLEXIBLE: [u64; 2] = [6, 3];

/// Every node that was used between two moments.
pub(crate) fn nodes(from: Micros, until: Micros) -> BTreeSet<(String, String)> {
    let moments = (from..until).step_by(SECOND as usize).chain([until]);
    let all = moments.flat_map(trees);
    all.map(|node| (node.quota, node.path)).collect()
}

/// What makes the trees of now, once.
pub(crate) fn puts(requests: impl Fn(&NodeRules) -> String) -> Vec<Op> {
    let put = |node: NodeRules| {
        let request = requests(&node);
        Op::Quota(QuotaOp::PutLimit { node, expected_version: 0, request })
    };
    trees(now()).into_iter().map(put).collect()
}

/// A reservation that is held.
struct Held {
    of: ReservationOf,
    items: Vec<QuotaItem>,
    ttl_ms: u64,
}

/// One worker.
pub(super) struct Worker {
    caller: Caller,
    /// Trees that are known to be there.
    known: BTreeSet<String>,
    /// What is used, by commit.
    used: Vec<(u64, QuotaItem)>,
}

impl Worker {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller, known: BTreeSet::new(), used: Vec::new() }
    }

    pub(super) async fn run(mut self) {
        while !self.caller.stop.is_set() {
            if self.has_trees().await {
                match self.caller.random.random_range(0..100) {
                    0..8 => self.look().await,
                    8..11 => self.change_limit().await,
                    11..30 => self.give_back().await,
                    _ => self.session().await,
                }
            }
            self.caller.pause().await;
        }
        // What it has used it gives back, as far as that is heard.
        while !self.used.is_empty() {
            self.give_back().await;
        }
    }

    fn dice(&mut self, below: usize) -> usize {
        self.caller.random.random_range(0..below)
    }

    /// Sees to it that the trees of now are there: whoever comes first makes them.
    async fn has_trees(&mut self) -> bool {
        for node in trees(now()) {
            let key = format!("{}/{}", node.quota, node.path);
            if self.known.contains(&key) {
                continue;
            }
            let request = self.caller.new_request();
            let op = Op::Quota(QuotaOp::PutLimit { node, expected_version: 0, request });
            match self.caller.insist(&op).await {
                // It is there, or was.
                Some(Heard::Quota(_)) => drop(self.known.insert(key)),
                Some(Heard::Problem(it)) if it.current_version.is_some() => {
                    self.known.insert(key);
                }
                _ => return false,
            }
        }
        true
    }

    fn a_node(&mut self) -> (String, String) {
        let trees = trees(now());
        let node = &trees[self.dice(trees.len())];
        (node.quota.clone(), node.path.clone())
    }

    async fn read(&mut self, quota: String, path: String) -> Option<sereno_api::QuotaNodeRead> {
        match self.caller.call(&Op::Quota(QuotaOp::Node { quota, path })).await {
            Heard::Quota(QuotaHeard::Node(read)) => Some(*read),
            _ => {
                self.caller.move_on().await;
                None
            }
        }
    }

    async fn look(&mut self) {
        let (quota, path) = self.a_node();
        self.read(quota, path).await;
    }

    /// An operator cuts the one limit, or raises it again.
    async fn change_limit(&mut self) {
        let (quota, path) = (pool(now()), "a/y".to_owned());
        let Some(read) = self.read(quota.clone(), path.clone()).await else { return };
        let node = rules(&quota, &path, FLEXIBLE[self.caller.random.random_range(0..2)]);
        let (expected_version, request) = (read.node.version, self.caller.new_request());
        self.caller.insist(&Op::Quota(QuotaOp::PutLimit { node, expected_version, request })).await;
    }

    /// Some of what was used, or all of it; and at times more than that.
    async fn give_back(&mut self) {
        let Some((commit, mut item)) = self.used.pop() else { return };
        let owner = self.caller.name.clone();
        if self.caller.chance(8) {
            let (owner, request) = (owner.clone(), self.caller.new_request());
            let item = QuotaItem { amount: item.amount + 1, ..item.clone() };
            let too_much = Op::Quota(QuotaOp::Return { commit, owner, item, request });
            self.caller.insist(&too_much).await;
        }
        if item.amount > 1 && self.caller.chance(30) {
            self.used.push((commit, QuotaItem { amount: item.amount - 1, ..item.clone() }));
            item.amount = 1;
        }
        let request = self.caller.new_request();
        let op = Op::Quota(QuotaOp::Return { commit, owner, item, request });
        if self.caller.chance(15) {
            self.caller.twice(&op).await;
        }
        self.caller.insist(&op).await;
    }

    /// One node, or two of one tree, or two trees.
    fn items(&mut self) -> Vec<QuotaItem> {
        let at = now();
        let item = |quota: &str, path: &str, amount: usize| QuotaItem {
            quota: quota.to_owned(),
            path: path.to_owned(),
            amount: amount as u64,
        };
        let (one, other) = (1 + self.dice(3), 1 + self.dice(2));
        let (pool, side) = (pool(at), format!("side-{}", at / POOL_LIFE));
        match self.dice(100) {
            0..45 => vec![item(&solo(at), "", one)],
            45..60 => vec![item(&pool, "a/x", one)],
            60..70 => vec![item(&pool, "a/y", one)],
            70..80 => vec![item(&pool, "b/z", one)],
            80..88 => vec![item(&pool, "a/x", one), item(&pool, "b/z", other)],
            88..96 => vec![item(&pool, "a/y", one), item(&side, "", other)],
            // Nobody has said that this may be used.
            _ => vec![item(&pool, "nobody", 1)],
        }
    }

    fn fate(&mut self) -> OnExpiry {
        match self.dice(10) {
            0 => OnExpiry::Quarantine,
            1..3 => OnExpiry::Commit,
            _ => OnExpiry::Release,
        }
    }

    async fn session(&mut self) {
        let (items, request) = (self.items(), self.caller.new_request());
        let wait_ms = match self.caller.chance(50) {
            true => 0,
            false => self.caller.random.random_range(300..5_000),
        };
        let (ttl_ms, on_expiry) = (TTLS[self.dice(TTLS.len())], self.fate());
        let priority = [0, 0, 7][self.dice(3)];
        let owner = self.caller.name.clone();
        let reserve = QuotaOp::Reserve {
            owner,
            items: items.clone(),
            request: request.clone(),
            wait_ms,
            ttl_ms,
            on_expiry,
            priority,
        };
        let patience = match self.caller.chance(10) {
            true => self.caller.random.random_range(50..2_000),
            false => wait_ms + 10_000,
        };
        match self.caller.ask(&Op::Quota(reserve), ms(patience)).await {
            Asked::Granted(heard) => {
                let Heard::Quota(QuotaHeard::Reserved(reserved)) = *heard else {
                    panic!("no answer to a reserve: {heard:?}")
                };
                let (reservation, asked) = (reserved.reservation_id, request);
                let fence = Some(reserved.fence);
                let of = ReservationOf { reservation, fence, request: String::new(), asked };
                self.hold(Held { of, items, ttl_ms }).await;
            }
            Asked::Refused => {}
            // Some do not even say that they have gone.
            Asked::GivenUp if self.caller.chance(10) => {}
            Asked::GivenUp => {
                let (family, resource) = (Family::Quota, request.clone());
                self.caller.insist(&Op::Abandon { family, resource, request }).await;
            }
        }
    }

    /// The reservation, for one write about it. Most name its fence.
    fn of(&mut self, held: &Held) -> ReservationOf {
        let fence = held.of.fence.filter(|_| self.caller.random.random_range(0..100) < 80);
        ReservationOf { fence, request: self.caller.new_request(), ..held.of.clone() }
    }

    async fn write(&mut self, op: QuotaOp) -> Option<QuotaHeard> {
        let op = Op::Quota(op);
        if self.caller.chance(8) {
            self.caller.twice(&op).await;
        }
        match self.caller.insist(&op).await {
            Some(Heard::Quota(heard)) => Some(heard),
            _ => None,
        }
    }

    async fn hold(&mut self, mut held: Held) {
        for _ in 0..self.dice(3) {
            if !self.go_on(&mut held).await {
                return;
            }
        }
        match self.dice(100) {
            0..25 => self.release(&held).await,
            25..60 => self.commit(&held).await,
            60..72 => self.commit_in_parts(held).await,
            // It stands still past its deadline, and goes on as if nothing had been.
            72..88 => {
                let past = held.ttl_ms.max(IN_FLIGHT_MS_MAX) + 1_200;
                self.caller.rest(ms(past)).await;
                match self.dice(4) {
                    0 => self.extend(&held).await,
                    1 => self.release(&held).await,
                    _ => self.commit(&held).await,
                }
                self.settle(&held).await;
            }
            // It ends by itself.
            _ => {}
        }
    }

    /// Something that leaves it held. `false`: nobody knows what it is now, or it is gone.
    async fn go_on(&mut self, held: &mut Held) -> bool {
        match self.dice(5) {
            0 => {
                let (of, on_expiry) = (self.of(held), self.fate());
                let ttl_ms = self.caller.random.random_range(2_000..=IN_FLIGHT_MS_MAX);
                self.write(QuotaOp::Begin { of, ttl_ms, on_expiry }).await.is_some()
            }
            1 => {
                let pause = self.caller.random.random_range(100..1_000);
                self.caller.rest(ms(pause)).await;
                let (of, ttl_ms) = (self.of(held), held.ttl_ms);
                self.write(QuotaOp::Extend { of, ttl_ms }).await.is_some()
            }
            2 => self.resize(held).await,
            3 => {
                let (reservation, asked) = (held.of.reservation.clone(), held.of.asked.clone());
                self.caller.call(&Op::Quota(QuotaOp::Reservation { reservation, asked })).await;
                true
            }
            // A fence that is not its own changes nothing.
            _ => {
                let of = self.of(held);
                let fence = held.of.fence.map(|fence| fence - 1);
                let of = ReservationOf { fence, ..of };
                self.caller.insist(&Op::Quota(QuotaOp::Release { of })).await;
                true
            }
        }
    }

    async fn resize(&mut self, held: &mut Held) -> bool {
        let (of, which) = (self.of(held), self.dice(held.items.len()));
        let amount = 1 + self.dice(4) as u64;
        let item = QuotaItem { amount, ..held.items[which].clone() };
        let op = Op::Quota(QuotaOp::Resize { of, items: vec![item] });
        match self.caller.insist(&op).await {
            Some(Heard::Quota(_)) => {
                held.items[which].amount = amount;
                true
            }
            // No room: it stays as it is.
            Some(Heard::Problem(it)) => it.code == sereno_api::ErrorCode::QuotaExhausted,
            _ => false,
        }
    }

    async fn extend(&mut self, held: &Held) {
        let (of, ttl_ms) = (self.of(held), held.ttl_ms);
        self.write(QuotaOp::Extend { of, ttl_ms }).await;
    }

    async fn release(&mut self, held: &Held) {
        let of = self.of(held);
        self.write(QuotaOp::Release { of }).await;
    }

    fn has_used(&mut self, heard: Option<QuotaHeard>) {
        if let Some(QuotaHeard::Committed(it)) = heard {
            let items = it.taken.into_iter().filter(|item| item.amount > 0);
            self.used.extend(items.map(|item| (it.commit_id, item)));
        }
    }

    /// All of it, or less, or more than there is.
    async fn commit(&mut self, held: &Held) {
        let of = self.of(held);
        let items = match self.dice(10) {
            0..6 => None,
            6..9 => {
                let one = held.items[0].clone();
                Some(vec![QuotaItem { amount: one.amount.min(1), ..one }])
            }
            _ => {
                let one = held.items[0].clone();
                Some(vec![QuotaItem { amount: one.amount + 1, ..one }])
            }
        };
        let readmits = self.caller.chance(60);
        let heard = self.write(QuotaOp::Commit { of, items, is_final: true, readmits }).await;
        self.has_used(heard);
    }

    /// One unit of the first item, and then the rest.
    async fn commit_in_parts(&mut self, mut held: Held) {
        let (of, first) = (self.of(&held), held.items[0].clone());
        let items = Some(vec![QuotaItem { amount: 1, ..first.clone() }]);
        let part = QuotaOp::Commit { of, items, is_final: false, readmits: false };
        let heard = self.write(part).await;
        let goes_on = heard.is_some();
        self.has_used(heard);
        held.items[0].amount = first.amount - 1;
        held.items.retain(|item| item.amount > 0);
        if goes_on && !held.items.is_empty() {
            match self.caller.chance(70) {
                true => self.commit(&held).await,
                false => self.release(&held).await,
            }
        }
    }

    /// An operator settles what is in quarantine.
    async fn settle(&mut self, held: &Held) {
        let (reservation, asked) = (held.of.reservation.clone(), held.of.asked.clone());
        let op = Op::Quota(QuotaOp::Reservation { reservation, asked });
        let Heard::Quota(QuotaHeard::Reservation(it)) = self.caller.call(&op).await else { return };
        if it.reservation.state != ReservationState::Quarantined {
            return;
        }
        let settlement = match self.caller.chance(50) {
            true => Settlement::Commit,
            false => Settlement::Release,
        };
        let of = self.of(held);
        let items = it.reservation.items;
        if let Some(QuotaHeard::Settled(settled)) =
            self.write(QuotaOp::Settle { of, settlement }).await
            && let Some(commit) = settled.commit_id
        {
            self.used.extend(items.into_iter().map(|item| (commit, item)));
        }
    }
}
