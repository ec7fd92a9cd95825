//! Renews the leases of all guards of a client: one RenewMany for all that are due in a namespace.

use crate::{
    cell::Cell,
    clock::Moment,
    core::{Core, Heard, lock},
    lease::{GuardState, Loss, NotRenewed, Roll, Term},
    owed,
    servers::Targets,
    tenure,
};
use rand::RngExt;
use sereno_api::{ErrorCode, Family, LeaseRef, Reason, RenewResult};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Notify;

const LEASES_PER_CALL_MAX: usize = 1_000;
const BYTES_PER_CALL_MAX: usize = 128 * 1024;
/// JSON around a resource name and a lease id.
const BYTES_PER_LEASE: usize = 80;
/// A timer stands still while the machine is suspended; looking this often finds the time that is gone.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(500);

/// One ownership under renewal: a lock, several under one lease id, or a term of an election.
pub(crate) struct Ownership {
    pub family: Family,
    pub namespace: String,
    pub leases: Vec<LeaseRef>,
    pub cell: Cell,
}

/// Names an ownership in the renewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnershipId(u64);

/// All ownerships of a client.
#[derive(Default)]
pub(crate) struct Renewer {
    owned: Mutex<Owned>,
    changed: Notify,
}

#[derive(Default)]
struct Owned {
    last_id: u64,
    all: BTreeMap<OwnershipId, Arc<Ownership>>,
}

/// What is to be done now.
#[derive(Default)]
struct Plan {
    calls: Vec<Vec<Arc<Ownership>>>,
    lost: Vec<Arc<Ownership>>,
    wake: Option<Moment>,
}

pub(crate) fn roll() -> Roll {
    Roll(rand::rng().random())
}

impl Renewer {
    pub(crate) fn add(&self, ownership: Arc<Ownership>) -> OwnershipId {
        let mut owned = lock(&self.owned);
        owned.last_id += 1;
        let id = OwnershipId(owned.last_id);
        owned.all.insert(id, ownership);
        drop(owned);
        self.changed.notify_one();
        id
    }

    /// Renews it no longer. `false`: it was lost before, and its release is under way.
    pub(crate) fn remove(&self, id: OwnershipId) -> bool {
        lock(&self.owned).all.remove(&id).is_some()
    }

    /// Something has happened to an ownership that the renewer did not do itself.
    pub(crate) fn look(&self) {
        self.changed.notify_one();
    }

    /// Gives those that are lost to the caller, who releases them.
    pub(crate) fn take_lost(&self, now: Moment) -> Vec<Arc<Ownership>> {
        lock(&self.owned).take_lost(now)
    }

    fn plan(&self, now: Moment) -> Plan {
        let mut owned = lock(&self.owned);
        let mut plan = Plan { lost: owned.take_lost(now), ..Plan::default() };
        let due: BTreeSet<(Family, String)> = owned
            .all
            .values()
            .filter(|ownership| ownership.cell.with(now, |lease| lease.is_due(now)))
            .map(|ownership| (ownership.family, ownership.namespace.clone()))
            .collect();
        for (family, namespace) in &due {
            let joining = owned.all.values().filter(|ownership| {
                ownership.family == *family
                    && ownership.namespace == *namespace
                    && ownership.cell.with(now, |lease| {
                        let joins = lease.may_join(now);
                        if joins {
                            lease.renewal_sent(now);
                        }
                        joins
                    })
            });
            match tenure::is_shared(*family) {
                true => cut(joining.cloned(), &mut plan.calls),
                false => plan.calls.extend(joining.map(|ownership| vec![ownership.clone()])),
            }
        }
        let wakes =
            owned.all.values().filter_map(|o| o.cell.with(now, |lease| lease.next_wake(now)));
        plan.wake = wakes.min();
        plan
    }
}

impl Owned {
    fn take_lost(&mut self, now: Moment) -> Vec<Arc<Ownership>> {
        let mut lost = Vec::new();
        self.all.retain(|_, ownership| {
            let is_lost =
                ownership.cell.with(now, |lease| matches!(lease.state(now), GuardState::Lost(_)));
            if is_lost {
                lost.push(ownership.clone());
            }
            !is_lost
        });
        lost
    }
}

/// Distributes over calls that are not too large.
fn cut(joining: impl Iterator<Item = Arc<Ownership>>, calls: &mut Vec<Vec<Arc<Ownership>>>) {
    let (mut leases, mut bytes) = (LEASES_PER_CALL_MAX, 0);
    for ownership in joining {
        let more_leases = ownership.leases.len();
        let more_bytes: usize =
            ownership.leases.iter().map(|lease| lease.resource.len() + BYTES_PER_LEASE).sum();
        leases += more_leases;
        bytes += more_bytes;
        if leases > LEASES_PER_CALL_MAX || bytes > BYTES_PER_CALL_MAX {
            calls.push(Vec::new());
            (leases, bytes) = (more_leases, more_bytes);
        }
        calls.last_mut().expect("the first one opens a call").push(ownership);
    }
}

/// The client's renewing task; ends with the background thread.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let now = Moment::now();
        let plan = core.renewer.plan(now);
        for call in plan.calls {
            let Targets { first, beside } = core.transport.for_renewal();
            for server in [Some(first), beside].into_iter().flatten() {
                core.background.spawn(renew(core.clone(), call.clone(), server));
            }
        }
        for lost in plan.lost {
            owed::release(&core, &lost);
        }
        let changed = core.renewer.changed.notified();
        match plan.wake {
            None => changed.await,
            Some(at) => {
                let pause = Moment::now().until(at).min(LOOK_AT_LEAST_EVERY);
                let _ = tokio::time::timeout(pause, changed).await;
            }
        }
    }
}

/// One call for several ownerships. It may hang as long as they last: others are renewed beside it.
async fn renew(core: Arc<Core>, call: Vec<Arc<Ownership>>, server: usize) {
    let now = Moment::now();
    let left = |o: &Arc<Ownership>| o.cell.with(now, |lease| now.until(lease.deadline()));
    let longest = call.iter().map(left).max().unwrap_or_default();
    let shortest = call.iter().map(left).min().unwrap_or_default();
    let ask = tenure::renew(&core, call[0].family, &call[0].namespace, leases_of(&call));
    let heard = core.attempt_renewal(server, &ask, longest, shortest / 6).await;
    settle(&call, now, &heard);
    core.renewer.look();
}

fn leases_of(call: &[Arc<Ownership>]) -> Vec<LeaseRef> {
    call.iter().flat_map(|ownership| ownership.leases.iter().cloned()).collect()
}

/// Tells each ownership what became of its part of the call.
fn settle(call: &[Arc<Ownership>], asked: Moment, heard: &Heard) {
    let now = Moment::now();
    let answer = tenure::results(call[0].family, &leases_of(call), asked, heard);
    let mut at = 0;
    for ownership in call {
        let end = at + ownership.leases.len();
        let part = answer.as_ref().and_then(|(sent, results)| Some((*sent, results.get(at..end)?)));
        let verdict = match part {
            Some((sent, results)) => judge(sent, &ownership.leases, results),
            None => Err(NotRenewed::Undecided),
        };
        ownership.cell.with(now, |lease| match verdict {
            Ok(term) => lease.renewed(term, now, roll()),
            Err(why) => lease.not_renewed(why, now, roll()),
        });
        at = end;
    }
}

/// An ownership is renewed when all of its leases are, and as long as the shortest of them.
pub(crate) fn judge(
    sent: Moment,
    leases: &[LeaseRef],
    results: &[RenewResult],
) -> Result<Term, NotRenewed> {
    let in_order = leases.iter().map(|l| &l.resource).eq(results.iter().map(|r| &r.resource));
    if !in_order || results.is_empty() {
        return Err(NotRenewed::Undecided);
    }
    let mut term: Option<Term> = None;
    let mut undecided = None;
    for result in results {
        match judge_one(sent, result) {
            Ok(one) => term = Some(term.map_or(one, |all| shorter(all, one))),
            Err(lost @ NotRenewed::Lost(_)) => return Err(lost),
            Err(other) => undecided = Some(other),
        }
    }
    match (undecided, term) {
        (Some(why), _) => Err(why),
        (None, term) => term.ok_or(NotRenewed::Undecided),
    }
}

fn shorter(one: Term, other: Term) -> Term {
    Term {
        sent: one.sent,
        expires_in: one.expires_in.min(other.expires_in),
        final_in: one.final_in.into_iter().chain(other.final_in).min(),
    }
}

fn judge_one(sent: Moment, result: &RenewResult) -> Result<Term, NotRenewed> {
    let final_in = result.final_deadline_in_ms.map(Duration::from_millis);
    match (result.ok, result.code) {
        (true, _) => {
            let expires_in = result.expires_in_ms.map(Duration::from_millis);
            let expires_in = expires_in.ok_or(NotRenewed::Undecided)?;
            Ok(Term { sent, expires_in, final_in })
        }
        (false, Some(ErrorCode::MaxHoldReached)) => match final_in {
            // It is held until then, and this answer says so anew.
            Some(end) => Ok(Term { sent, expires_in: end, final_in }),
            None => Err(NotRenewed::Final),
        },
        (false, code) => {
            Err(loss_of(code, result.reason).map_or(NotRenewed::Undecided, NotRenewed::Lost))
        }
    }
}

/// The loss that a refusal of anything that only the holder may do tells of.
pub(crate) fn loss_of(code: Option<ErrorCode>, reason: Option<Reason>) -> Option<Loss> {
    match code {
        Some(ErrorCode::LeaseEnded) => {
            Some(Loss::Ended(reason.map_or("unknown", |reason| reason.as_str()).into()))
        }
        Some(ErrorCode::NotHolder) => Some(Loss::Unknown),
        _ => None,
    }
}

#[cfg(test)]
#[path = "renewer_tests.rs"]
mod tests;
