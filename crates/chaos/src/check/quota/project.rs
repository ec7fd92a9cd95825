//! From what is known of the reservations of one solo tree to the operations of the model.

use super::{
    known::{Amounts, Known, Node, Reservation, Return, Write, amounts},
    model::{Act, Amount, Id},
};
use crate::{
    check::linear::Operation,
    clock::Micros,
    history::{Call, Heard, Op, QuotaHeard, QuotaOp},
};
use sereno_api::{ErrorCode, OnExpiry, Problem, Reason, Reserved, Settlement, Shortage};
use std::collections::BTreeMap;

/// The operations on the tree.
pub(super) fn operations<'a>(known: &Known<'a>, quota: &'a str) -> Vec<Operation<Act>> {
    let mut projection = Projection {
        root: (quota, ""),
        operations: Vec::new(),
        commits: BTreeMap::new(),
        last_commit: 0,
    };
    let of = known.reservations.values().filter(|of| of.items.contains_key(&(quota, "")));
    for (id, of) in (0..).zip(of) {
        projection.reservation(id, of);
    }
    for it in known.returns.values().filter(|it| it.node == (quota, "")) {
        projection.returned(it);
    }
    let reads = known.reads.iter().filter_map(|call| match &call.heard {
        Heard::Quota(QuotaHeard::Node(it)) if it.node.quota == quota => {
            let (committed, reserved) = (it.node.committed, it.node.reserved);
            Some(seen(call, Act::Shows { committed, reserved }))
        }
        _ => None,
    });
    projection.operations.extend(reads);
    projection.operations
}

struct Projection<'a> {
    root: Node<'a>,
    operations: Vec<Operation<Act>>,
    /// Commits by the number that answers tell.
    commits: BTreeMap<u64, Id>,
    last_commit: Id,
}

fn seen(call: &Call, act: Act) -> Operation<Act> {
    Operation { name: call.name.clone(), start: call.start, end: call.end, act }
}

/// The model counts in small numbers: amounts of a solo tree are.
fn small(amount: u64) -> Amount {
    Amount::try_from(amount).unwrap_or(Amount::MAX)
}

/// What an answer shows of it: its amount, and what is free at the root.
fn shows(reserved: &Reserved) -> (Option<u64>, Option<u64>) {
    let item = reserved.items.first();
    let free = item.and_then(|item| item.available.first());
    (item.map(|item| item.amount), free.copied())
}

impl<'a> Projection<'a> {
    fn of(&self, amounts: &Amounts<'_>) -> u64 {
        amounts.get(&self.root).copied().unwrap_or(0)
    }

    fn add(&mut self, name: &str, start: Micros, end: Option<Micros>, act: Act) {
        self.operations.push(Operation { name: name.to_owned(), start, end, act });
    }

    fn new_commit(&mut self, told: Option<u64>) -> Id {
        self.last_commit += 1;
        let commit = self.last_commit;
        told.map(|told| *self.commits.entry(told).or_insert(commit)).unwrap_or(commit)
    }

    fn reservation(&mut self, id: Id, of: &Reservation<'a>) {
        if of.may_be_granted() {
            self.grant(id, of);
            self.deadline(id, of);
            of.writes.iter().for_each(|write| self.write(id, of, write));
        }
        for call in &of.calls {
            let acts = read(id, call);
            self.operations.extend(acts.into_iter().map(|act| seen(call, act)));
        }
    }

    fn grant(&mut self, id: Id, of: &Reservation<'a>) {
        let (mut fence, mut free) = (None, None);
        if let Some((_, call)) = of.granted
            && let Heard::Quota(QuotaHeard::Reserved(it)) = &call.heard
        {
            fence = Some(it.fence);
            // A repeat tells what is free when it is repeated.
            free = shows(it).1.filter(|_| !it.replayed);
        }
        let act = Act::Grant { id, amount: small(self.of(&of.items)), fence, free };
        self.add(&format!("{} granted", of.asked), of.sent, of.told, act);
    }

    /// What may become of it when its deadline passes.
    fn deadline(&mut self, id: Id, of: &Reservation<'a>) {
        if of.writes.iter().any(Write::ends) {
            return;
        }
        for fate in &of.fates {
            let act = match fate {
                OnExpiry::Release => Act::End(id),
                OnExpiry::Commit => {
                    let commit = self.new_commit(None);
                    Act::Commit { id, commit, taken: None, is_final: true }
                }
                _ => continue,
            };
            self.add(&format!("{} at its deadline", of.asked), of.promised, None, act);
        }
    }

    fn write(&mut self, id: Id, of: &Reservation<'a>, write: &Write<'a>) {
        if !write.may_be_done() {
            return;
        }
        let end = write.done.map(|(at, _)| at);
        let name = write.op.and_then(QuotaOp::request).unwrap_or(of.asked);
        let acts: Vec<Act> = match (write.op, write.told()) {
            (None | Some(QuotaOp::Release { .. }), _) => vec![Act::End(id)],
            (Some(QuotaOp::Resize { items, .. }), told) => {
                let free = match told {
                    Some(QuotaHeard::Reserved(it)) if !it.replayed => shows(it).1,
                    _ => None,
                };
                vec![Act::Resize { id, amount: small(self.of(&amounts(items))), free }]
            }
            (Some(QuotaOp::Commit { .. }), Some(QuotaHeard::Committed(it))) => {
                let commit = self.new_commit(Some(it.commit_id));
                let taken = small(self.of(&amounts(&it.taken)));
                match it.readmits {
                    Some(_) => vec![Act::Readmit { id, commit, amount: taken }],
                    None => {
                        let is_final = it.left.is_empty();
                        vec![Act::Commit { id, commit, taken: Some(taken), is_final }]
                    }
                }
            }
            (Some(QuotaOp::Commit { items, is_final, readmits, .. }), _) => {
                let taken = items.as_deref().map(|items| small(self.of(&amounts(items))));
                let commit = self.new_commit(None);
                let in_time = Act::Commit { id, commit, taken, is_final: *is_final };
                let late = taken.map_or_else(|| self.sizes(of), |taken| vec![taken]);
                let late = late.into_iter().map(|amount| Act::Readmit { id, commit, amount });
                std::iter::once(in_time).chain(late.filter(|_| *readmits)).collect()
            }
            (Some(QuotaOp::Settle { settlement, .. }), told) => match settlement {
                Settlement::Commit => {
                    let told = match told {
                        Some(QuotaHeard::Settled(it)) => it.commit_id,
                        _ => None,
                    };
                    let commit = self.new_commit(told);
                    vec![Act::Commit { id, commit, taken: None, is_final: true }]
                }
                _ => vec![Act::End(id)],
            },
            _ => Vec::new(),
        };
        for act in acts {
            self.add(name, write.sent, end, act);
        }
    }

    /// All amounts that it may have had.
    fn sizes(&self, of: &Reservation<'a>) -> Vec<Amount> {
        let resized = of.writes.iter().filter_map(|write| match write.op {
            Some(QuotaOp::Resize { items, .. }) => Some(self.of(&amounts(items))),
            _ => None,
        });
        let mut sizes: Vec<_> = resized.chain([self.of(&of.items)]).map(small).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn returned(&mut self, it: &Return<'a>) {
        let Some(&commit) = self.commits.get(&it.commit) else { return };
        for call in &it.calls {
            // More was named than is left; a repeat has no figures.
            if let Heard::Problem(problem) = &call.heard
                && let Some(excess) = &problem.excess
            {
                self.operations.push(seen(call, Act::Left { commit, left: excess.has }));
            }
        }
        if !it.write.may_be_done() {
            return;
        }
        let left = match it.write.told() {
            Some(QuotaHeard::Returned(it)) => Some(it.left),
            _ => None,
        };
        let end = it.write.done.map(|(at, _)| at);
        let act = Act::Return { commit, amount: small(it.amount), left };
        self.add(&format!("return of {}", it.commit), it.write.sent, end, act);
    }
}

/// What one answer says of a reservation, besides the writes.
fn read(id: Id, call: &Call) -> Vec<Act> {
    match &call.heard {
        Heard::Quota(QuotaHeard::Reserved(it)) if it.expires_in_ms > 0 => {
            let (amount, free) = shows(it);
            // What is news of a reserve or a resize is said by the write.
            let is_write = is_decided_once(call) && !it.replayed;
            if is_write { Vec::new() } else { vec![Act::Holds { id, amount, free }] }
        }
        Heard::Quota(QuotaHeard::Waiting(_)) => vec![Act::Lacks(id)],
        Heard::Quota(QuotaHeard::Released(it)) if !it.released && !it.replayed => {
            vec![Act::Lacks(id)]
        }
        Heard::Quota(QuotaHeard::Reservation(it)) => {
            let amount = it.reservation.items.first().map(|item| item.amount);
            let state = it.reservation.state;
            match state == sereno_api::ReservationState::Waiting {
                true => vec![Act::Lacks(id)],
                false => vec![Act::Holds { id, amount, free: None }],
            }
        }
        Heard::Problem(problem) => refused(id, call, problem),
        _ => Vec::new(),
    }
}

fn is_decided_once(call: &Call) -> bool {
    let op = match &call.op {
        Op::Quota(op) => op,
        _ => return false,
    };
    matches!(op, QuotaOp::Reserve { .. } | QuotaOp::Resize { .. })
}

fn refused(id: Id, call: &Call, problem: &Problem) -> Vec<Act> {
    let is_reserve = matches!(&call.op, Op::Quota(QuotaOp::Reserve { .. }));
    let mut acts = Vec::new();
    match problem.code {
        // In quarantine it has not ended.
        ErrorCode::ReservationEnded if problem.reason == Some(Reason::Quarantined) => {
            acts.push(Act::Holds { id, amount: None, free: None });
        }
        ErrorCode::ReservationEnded if problem.reason.is_some() => acts.push(Act::Lacks(id)),
        ErrorCode::ExpiredNoCapacity | ErrorCode::WaitTimeout => acts.push(Act::Lacks(id)),
        ErrorCode::QuotaExhausted if is_reserve => acts.push(Act::Lacks(id)),
        // An amount is not free that would have to be for a resize, and it is held.
        ErrorCode::QuotaExhausted => acts.push(Act::Holds { id, amount: None, free: None }),
        ErrorCode::NotFound if call.op.request().1.is_none() => acts.push(Act::Lacks(id)),
        _ => {}
    }
    // The figures of a repeat are those of now, and its layers those that are short now.
    if problem.replayed != Some(true) {
        acts.extend(problem.layers.iter().filter_map(full));
    }
    acts
}

fn full(layer: &sereno_api::QuotaLayer) -> Option<Act> {
    let (committed, reserved, asked) = (layer.committed, layer.reserved, layer.asked);
    match layer.kind {
        Shortage::Limit | Shortage::Burst => Some(Act::Full { committed, reserved, asked }),
        Shortage::Waiting => Some(Act::Shows { committed, reserved }),
        _ => None,
    }
}
