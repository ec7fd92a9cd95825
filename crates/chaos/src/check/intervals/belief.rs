//! What each client knows of its own leases.

use crate::{
    clock::Micros,
    history::{Call, Family, Heard, HoldOf, LeaseOf, Op, QuotaOp},
};
use std::collections::BTreeMap;

/// By place, and by the request that it was asked with; of holds by owner and fence.
pub(super) type Beliefs = BTreeMap<(String, String), Belief>;

/// What one client knows of its own lease.
#[derive(Debug, Default)]
pub(super) struct Belief {
    /// 0: it was never told.
    pub(super) token: u64,
    /// When it was first asked for, where that is known.
    pub(super) asked: Option<Micros>,
    /// (told at, relied on until), of each acknowledged grant and renewal.
    pub(super) acknowledged: Vec<(Micros, Micros)>,
    /// When its owner, or an operator, let go.
    pub(super) ends: Vec<Micros>,
}

/// A holder's own deadline, as the SDK counts it: from when it sent the call, less 1 % and 20 ms.
fn relied_on(call: &Call, expires_in_ms: u64) -> Micros {
    call.start + (expires_in_ms * 990).saturating_sub(20_000)
}

#[derive(Default)]
struct Learner<'a> {
    beliefs: Beliefs,
    forced: BTreeMap<u64, Micros>,
    /// When each request for a hold was first sent.
    sent: BTreeMap<&'a str, Micros>,
    /// Releases of whatever the owner has there.
    released: Vec<((String, &'a str), Micros)>,
}

pub(super) fn beliefs(calls: &[Call]) -> Beliefs {
    let mut learner = Learner::default();
    for call in calls {
        if let Op::Hold { request, .. } = &call.op {
            learner.sent.entry(request).or_insert(call.start);
        }
    }
    calls.iter().for_each(|call| learner.learn(call));
    learner.finish()
}

impl<'a> Learner<'a> {
    fn finish(mut self) -> Beliefs {
        for ((place, owner), at) in &self.released {
            let is_owners = |who: &str| who.split(' ').next() == Some(owner);
            let of = self.beliefs.iter_mut().filter(|((p, who), _)| p == place && is_owners(who));
            of.for_each(|(_, belief)| belief.ends.push(*at));
        }
        for belief in self.beliefs.values_mut() {
            belief.ends.extend(self.forced.get(&belief.token));
        }
        self.beliefs
    }

    fn of(&mut self, family: Family, name: &str, who: &str) -> &mut Belief {
        self.beliefs.entry((family.place(name), who.to_owned())).or_default()
    }

    fn of_lease(&mut self, lease: &LeaseOf) -> &mut Belief {
        self.of(lease.family, &lease.resource, &lease.request)
    }

    fn of_hold(&mut self, name: &str, owner: &str, fence: u64) -> &mut Belief {
        let belief = self.of(Family::Hold, name, &format!("{owner} by {fence}"));
        belief.token = fence;
        belief
    }

    fn learn(&mut self, call: &'a Call) {
        match &call.op {
            Op::Acquire { resource, request, .. }
            | Op::Campaign { resource, request, .. }
            | Op::Claim { resource, request, .. } => {
                let (family, _) = call.op.request();
                self.asked(family, resource, request, call);
            }
            Op::Renew(lease) => {
                if matches!(call.heard, Heard::Renewed(_)) {
                    self.of_lease(lease).is_acknowledged(call, call.heard.expires_in_ms());
                }
            }
            Op::RenewMany { leases } => {
                let Heard::RenewedMany(many) = &call.heard else { return };
                for (lease, result) in leases.iter().zip(&many.results).filter(|(_, it)| it.ok) {
                    self.of_lease(lease).is_acknowledged(call, result.expires_in_ms);
                }
            }
            Op::Release(lease) | Op::Handoff { lease, .. } | Op::Finish { lease, .. } => {
                self.of_lease(lease).ends.push(call.start);
            }
            Op::Abandon { family, resource, request } => {
                self.of(*family, resource, request).ends.push(call.start);
            }
            Op::Force { token, .. } => {
                self.forced.entry(*token).or_insert(call.start);
            }
            Op::Hold { .. } | Op::RenewHold(_) | Op::Begin { .. } | Op::ReleaseHold(_) => {
                self.learn_hold(call);
            }
            // A place of its own: many hold parts of one node. Its fence rises with all other tokens.
            Op::Quota(QuotaOp::Reserve { request, .. }) => {
                self.asked(Family::Quota, request, request, call);
            }
            Op::Proclaim { .. } | Op::PutJob { .. } | Op::Get { .. } | Op::Quota(_) => {}
        }
    }

    fn asked(&mut self, family: Family, name: &str, request: &str, call: &Call) {
        let belief = self.of(family, name, request);
        belief.asked = belief.asked.or(Some(call.start));
        if let Some((_, token)) = call.heard.tokens().first() {
            belief.token = *token;
            belief.is_acknowledged(call, call.heard.expires_in_ms());
        }
    }

    fn learn_hold(&mut self, call: &'a Call) {
        let (heard, expires_in_ms) = (&call.heard, call.heard.expires_in_ms());
        match (&call.op, heard) {
            (Op::Hold { owner, request, replaces, .. }, _) => {
                let sent = self.sent.get(request.as_str()).copied();
                for (name, fence) in heard.tokens() {
                    let belief = self.of_hold(name, owner, fence);
                    belief.is_acknowledged(call, expires_in_ms);
                    if !heard.is_yours() {
                        belief.asked = sent;
                    }
                }
                for (name, fence) in replaces {
                    self.of_hold(name, owner, *fence).ends.push(call.start);
                }
            }
            (
                Op::RenewHold(HoldOf { resource, owner, .. })
                | Op::Begin { hold: HoldOf { resource, owner, .. }, .. },
                Heard::HoldExtended(it),
            ) => self.of_hold(resource, owner, it.fence).is_acknowledged(call, expires_in_ms),
            (Op::ReleaseHold(HoldOf { resource, owner, fence, .. }), _) => match fence {
                Some(fence) => self.of_hold(resource, owner, *fence).ends.push(call.start),
                None => {
                    self.released.push(((Family::Hold.place(resource), owner), call.start));
                }
            },
            _ => {}
        }
    }
}

impl Belief {
    /// An answer about a hold that is gone has 0 ms left of it.
    fn is_acknowledged(&mut self, call: &Call, expires_in_ms: Option<u64>) {
        if let (Some(told), Some(ms)) = (call.end, expires_in_ms.filter(|&ms| ms > 0)) {
            self.acknowledged.push((told, relied_on(call, ms)));
        }
    }
}
