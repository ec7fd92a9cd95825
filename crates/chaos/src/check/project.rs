//! From calls to what they say of each lock.

use super::{linear::Operation, locks::Act};
use crate::{
    clock::Micros,
    history::{Call, Heard, LeaseOf, Op},
};
use sereno_api::{AbandonedWas, ErrorCode, LockState};
use std::collections::BTreeMap;

/// What is known of one acquire, over all its attempts.
#[derive(Debug, Default)]
struct Request {
    first_start: Micros,
    token: Option<u64>,
    /// The first answer that tells of the grant.
    told: Option<Micros>,
    /// What the service has promised: not before this does the lease expire (S8).
    promised: Option<Micros>,
}

/// The calls about one lock.
#[derive(Debug, Default)]
pub(super) struct Projection<'a> {
    calls: Vec<&'a Call>,
    /// In the order of their first attempts: a lease's number is its place here.
    requests: Vec<(&'a str, Request)>,
    numbers: BTreeMap<&'a str, u32>,
    by_token: BTreeMap<u64, u32>,
    /// Two tokens for one request, or one token for two.
    pub(super) contradictions: Vec<String>,
}

/// All locks that the calls are about.
pub(super) fn by_lock(calls: &[Call]) -> BTreeMap<&str, Projection<'_>> {
    let mut locks: BTreeMap<&str, Projection<'_>> = BTreeMap::new();
    for call in calls {
        match &call.op {
            Op::RenewMany { leases } => {
                for lease in leases {
                    locks.entry(&lease.resource).or_default().calls.push(call);
                }
            }
            Op::Acquire { resource, .. }
            | Op::Renew(LeaseOf { resource, .. })
            | Op::Release(LeaseOf { resource, .. })
            | Op::Abandon { resource, .. }
            | Op::Force { resource, .. }
            | Op::Get { resource } => locks.entry(resource).or_default().calls.push(call),
        }
    }
    locks
}

/// The share of a promised time that monotonic clocks may differ by.
fn promised(call: &Call, expires_in_ms: u64) -> Micros {
    call.start + (expires_in_ms * 990).saturating_sub(1_000)
}

impl<'a> Projection<'a> {
    /// The operations of the model.
    pub(super) fn operations(&mut self) -> Vec<Operation<Act>> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().for_each(|call| self.learn_request(call));
        calls.iter().for_each(|call| self.learn(call));
        let mut operations: Vec<_> = calls.iter().flat_map(|call| self.observed(call)).collect();
        for (number, (name, request)) in (0..).zip(&self.requests) {
            let shows = |it: &Operation<Act>| {
                it.act.lease() == Some(number) && it.act != Act::Lacks(number)
            };
            // A grant that nobody ever saw constrains nothing: it can be left out of every order.
            if request.token.is_none() && !operations.iter().any(shows) {
                continue;
            }
            let (start, act) = (request.first_start, Act::Grant(number, request.token));
            operations.push(Operation {
                name: format!("{name} granted"),
                start,
                end: request.told,
                act,
            });
            let by_hand = |it: &Operation<Act>| it.end.is_some() && it.act == Act::End(number);
            if operations.iter().any(by_hand) {
                continue;
            }
            let start = request.promised.unwrap_or(request.first_start);
            let act = Act::End(number);
            operations.push(Operation { name: format!("{name} expires"), start, end: None, act });
        }
        operations
    }

    fn learn_request(&mut self, call: &'a Call) {
        let Op::Acquire { request, .. } = &call.op else { return };
        if !self.numbers.contains_key(request.as_str()) {
            let number = u32::try_from(self.requests.len()).expect("a run has fewer requests");
            self.numbers.insert(request, number);
            let of = Request { first_start: call.start, ..Request::default() };
            self.requests.push((request, of));
        }
    }

    fn learn(&mut self, call: &'a Call) {
        match (&call.op, &call.heard) {
            (Op::Acquire { request, .. }, Heard::Granted(grant)) => {
                self.has_token(request, grant.fencing_token);
                self.is_told(request, call);
                self.is_promised(request, promised(call, grant.expires_in_ms));
            }
            (Op::Acquire { request, .. }, Heard::Problem(problem)) => {
                if problem.code == ErrorCode::LeaseEnded {
                    self.is_told(request, call);
                    problem.fencing_token.iter().for_each(|&token| self.has_token(request, token));
                }
                if let Some(holder) = &problem.holder {
                    self.has_token(&holder.owner, holder.fencing_token);
                }
            }
            (Op::Renew(lease), Heard::Renewed(renewed)) => {
                self.has_token(&lease.request, renewed.fencing_token);
                self.is_promised(&lease.request, promised(call, renewed.expires_in_ms));
            }
            (Op::RenewMany { leases }, Heard::RenewedMany(many)) => {
                for (lease, result) in leases.iter().zip(&many.results).filter(|(_, it)| it.ok) {
                    let until = promised(call, result.expires_in_ms.unwrap_or_default());
                    self.is_promised(&lease.request, until);
                }
            }
            (Op::Get { .. }, Heard::Read(lock)) => {
                if let Some(holder) = &lock.holder {
                    self.has_token(&holder.owner, holder.fencing_token);
                }
            }
            _ => {}
        }
    }

    fn request(&mut self, name: &str) -> Option<(u32, &mut Request)> {
        let number = *self.numbers.get(name)?;
        Some((number, &mut self.requests[number as usize].1))
    }

    fn has_token(&mut self, name: &str, token: u64) {
        let Some((number, request)) = self.request(name) else { return };
        let before = request.token.replace(token);
        let other = self.by_token.insert(token, number);
        if before.is_some_and(|before| before != token) {
            self.contradictions.push(format!("{name} has the tokens {before:?} and {token}"));
        }
        if other.is_some_and(|other| other != number) {
            self.contradictions.push(format!("{token} was granted to {name} and to another"));
        }
    }

    fn is_told(&mut self, name: &str, call: &Call) {
        if let Some((_, request)) = self.request(name) {
            request.told = request.told.into_iter().chain(call.end).min();
        }
    }

    fn is_promised(&mut self, name: &str, until: Micros) {
        if let Some((_, request)) = self.request(name) {
            request.promised = request.promised.max(Some(until));
        }
    }

    /// What one answer says, besides grants.
    fn observed(&self, call: &Call) -> Vec<Operation<Act>> {
        let operation =
            |act, end| Operation { name: call.name.clone(), start: call.start, end, act };
        let number = |name: &str| self.numbers.get(name).copied();
        let seen = |act: Option<Act>| act.map(|act| operation(act, call.end)).into_iter().collect();
        let maybe = |lease: Option<u32>| {
            lease.map(|it| operation(Act::End(it), None)).into_iter().collect::<Vec<_>>()
        };
        match (&call.op, &call.heard) {
            (Op::Acquire { request, .. }, heard) => {
                seen(self.seen_by_acquire(number(request), heard))
            }
            (Op::Renew(lease), heard) => seen(seen_by_renewal(number(&lease.request), heard)),
            (Op::RenewMany { leases }, Heard::RenewedMany(many)) => {
                let act = |(lease, result): (&LeaseOf, &sereno_api::RenewResult)| {
                    let number = number(&lease.request)?;
                    let lost = [ErrorCode::LeaseEnded, ErrorCode::NotHolder];
                    match result.code {
                        None if result.ok => Some(Act::Holds(number)),
                        Some(code) if lost.contains(&code) => Some(Act::Lacks(number)),
                        _ => None,
                    }
                };
                let pairs = leases.iter().zip(&many.results);
                pairs.filter_map(act).map(|act| operation(act, call.end)).collect()
            }
            (Op::Release(lease), Heard::Released(released)) => {
                let act = if released.released { Act::End } else { Act::Lacks };
                seen(number(&lease.request).map(act))
            }
            (Op::Abandon { request, .. }, Heard::Abandoned(abandoned)) => {
                let act = match abandoned.was {
                    AbandonedWas::Granted => Act::End,
                    _ => Act::Lacks,
                };
                seen(number(request).map(act))
            }
            (Op::Force { token, .. }, Heard::Forced(forced)) if !forced.replayed => {
                seen(self.by_token.get(token).copied().map(Act::End))
            }
            (Op::Get { .. }, Heard::Read(lock)) => seen(match (&lock.state, &lock.holder) {
                (LockState::Free, _) => Some(Act::Free),
                (LockState::Held, Some(holder)) => number(&holder.owner).map(Act::Holds),
                _ => None,
            }),
            (Op::Release(lease), heard) if heard.is_unknown() => maybe(number(&lease.request)),
            (Op::Abandon { request, .. }, heard) if heard.is_unknown() => maybe(number(request)),
            (Op::Force { token, .. }, heard) if heard.is_unknown() => {
                maybe(self.by_token.get(token).copied())
            }
            _ => Vec::new(),
        }
    }

    fn seen_by_acquire(&self, lease: Option<u32>, heard: &Heard) -> Option<Act> {
        match heard {
            Heard::Granted(grant) if grant.replayed => lease.map(Act::Holds),
            Heard::Waiting(_) => lease.map(Act::Lacks),
            Heard::Problem(it) if it.code == ErrorCode::LeaseEnded => lease.map(Act::Lacks),
            // What a replayed refusal shows of the holder is not what it was refused for.
            Heard::Problem(it) if it.code == ErrorCode::Locked && it.replayed != Some(true) => {
                let holder = it.holder.as_ref()?;
                self.numbers.get(holder.owner.as_str()).copied().map(Act::Holds)
            }
            _ => None,
        }
    }
}

fn seen_by_renewal(lease: Option<u32>, heard: &Heard) -> Option<Act> {
    match heard {
        Heard::Renewed(_) => lease.map(Act::Holds),
        Heard::Problem(it) if matches!(it.code, ErrorCode::LeaseEnded | ErrorCode::NotHolder) => {
            lease.map(Act::Lacks)
        }
        _ => None,
    }
}
