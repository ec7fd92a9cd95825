//! From calls to what they say of each leased name: the operations of the model in `leased`.
//!
//! A lease of a lock, of an election or of a job is known by the request that asked for it, so that all attempts of one
//! request are one grant. A hold is known by owner and fence, for several requests may be answered with the same one.

mod holds;
mod learn;
mod observe;

use super::{leased::Act, linear::Operation};
use crate::{
    clock::Micros,
    history::{Call, Family, Heard, Op},
};
use std::collections::BTreeMap;

/// What is known of one lease.
#[derive(Debug)]
struct Lease {
    name: String,
    /// Not granted before this.
    first_start: Micros,
    token: Option<u64>,
    /// The first answer that tells of the grant.
    told: Option<Micros>,
    /// What the service has promised: not before this does the lease expire (S8).
    promised: Option<Micros>,
}

/// A write that is decided once, over all attempts with its request id.
#[derive(Debug)]
struct Write {
    name: String,
    act: Act,
    start: Micros,
    /// The first answer that says that it was done.
    told: Option<Micros>,
    /// It may have been done.
    is_unknown: bool,
}

/// The calls about one name.
#[derive(Debug)]
pub(super) struct Projection<'a> {
    family: Family,
    name: &'a str,
    calls: Vec<&'a Call>,
    /// In the order in which they became known: a lease's number is its place here.
    leases: Vec<Lease>,
    numbers: BTreeMap<String, u32>,
    by_token: BTreeMap<u64, u32>,
    by_owner: BTreeMap<String, Vec<u32>>,
    /// When each write was first sent, by its request.
    sent: BTreeMap<&'a str, Micros>,
    /// When each owner first asked to hold it.
    wanted: BTreeMap<&'a str, Micros>,
    writes: BTreeMap<(&'a str, u32), Write>,
    /// Two tokens for one lease, or one token for two.
    pub(super) contradictions: Vec<String>,
}

/// All names that the calls are about.
pub(super) fn by_place(calls: &[Call]) -> BTreeMap<(Family, &str), Projection<'_>> {
    let mut places = BTreeMap::new();
    for call in calls {
        for (family, name) in call.op.places() {
            let new = || Projection::new(family, name);
            let of: &mut Projection<'_> = places.entry((family, name)).or_insert_with(new);
            of.calls.push(call);
        }
    }
    places
}

impl<'a> Projection<'a> {
    fn new(family: Family, name: &'a str) -> Self {
        Self {
            family,
            name,
            calls: Vec::new(),
            leases: Vec::new(),
            numbers: BTreeMap::new(),
            by_token: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            sent: BTreeMap::new(),
            wanted: BTreeMap::new(),
            writes: BTreeMap::new(),
            contradictions: Vec::new(),
        }
    }

    /// The operations of the model.
    pub(super) fn operations(&mut self) -> Vec<Operation<Act>> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().for_each(|call| self.learn_request(call));
        calls.iter().for_each(|call| self.learn_grant(call));
        calls.iter().for_each(|call| self.learn_holder(call));
        calls.iter().for_each(|call| self.learn_write(call));
        let mut operations: Vec<_> = calls.iter().flat_map(|call| self.observed(call)).collect();
        operations.extend(self.writes.values().filter_map(Write::operation));
        for (number, lease) in (0..).zip(&self.leases) {
            operations.extend(lease.operations(number, &operations));
        }
        operations
    }

    fn new_lease(&mut self, name: &str, owner: &str, first_start: Micros) -> u32 {
        let number = u32::try_from(self.leases.len()).expect("a run has fewer leases");
        let name = name.to_owned();
        self.numbers.insert(name.clone(), number);
        self.by_owner.entry(owner.to_owned()).or_default().push(number);
        self.leases.push(Lease { name, first_start, token: None, told: None, promised: None });
        number
    }

    /// The lease that is known by this request.
    fn of_request(&self, request: &str) -> Option<u32> {
        self.numbers.get(request).copied()
    }

    /// The lease of a holder that an answer shows. `None`: nobody knows which of a candidate's it is.
    fn of_holder(&self, (owner, token): (&str, u64)) -> Option<u32> {
        if self.family == Family::Hold {
            return self.of_hold(owner, token);
        }
        let of = self.by_owner.get(owner)?;
        let by_token = self.by_token.get(&token).copied().filter(|number| of.contains(number));
        by_token.or_else(|| (of.len() == 1).then(|| of[0]))
    }

    fn has_token(&mut self, number: u32, token: u64) {
        let lease = &mut self.leases[number as usize];
        let before = lease.token.replace(token);
        let other = self.by_token.insert(token, number);
        let name = &lease.name;
        if before.is_some_and(|before| before != token) {
            self.contradictions.push(format!("{name} has the tokens {before:?} and {token}"));
        }
        if other.is_some_and(|other| other != number) {
            self.contradictions.push(format!("{token} was granted to {name} and to another"));
        }
    }

    fn is_told(&mut self, number: u32, call: &Call) {
        let told = &mut self.leases[number as usize].told;
        *told = (*told).into_iter().chain(call.end).min();
    }

    fn is_promised(&mut self, number: u32, call: &Call, expires_in_ms: Option<u64>) {
        // An answer about a hold that is gone has 0 ms left of it, and promises nothing.
        let Some(ms) = expires_in_ms.filter(|&ms| ms > 0) else { return };
        // The share of a promised time that monotonic clocks may differ by.
        let until = call.start + (ms * 990).saturating_sub(1_000);
        let promised = &mut self.leases[number as usize].promised;
        *promised = (*promised).max(Some(until));
    }

    fn add_write(&mut self, request: &'a str, act: Act, call: &Call, is_done: bool) {
        let number = act.lease().expect("a write is about a lease");
        let start = self.sent.get(request).copied().unwrap_or(call.start);
        let new = || Write { name: call.name.clone(), act, start, told: None, is_unknown: false };
        let write = self.writes.entry((request, number)).or_insert_with(new);
        if is_done {
            write.told = write.told.into_iter().chain(call.end).min();
        }
        write.is_unknown |= call.heard.is_unknown();
    }
}

impl Write {
    fn operation(&self) -> Option<Operation<Act>> {
        let (name, start, end, act) = (self.name.clone(), self.start, self.told, self.act.clone());
        (end.is_some() || self.is_unknown).then_some(Operation { name, start, end, act })
    }
}

impl Lease {
    /// Its grant, and its expiry.
    fn operations(&self, number: u32, others: &[Operation<Act>]) -> Vec<Operation<Act>> {
        let shows =
            |it: &Operation<Act>| it.act.lease() == Some(number) && it.act != Act::Lacks(number);
        // A grant that nobody ever saw constrains nothing: it can be left out of every order.
        if self.token.is_none() && !others.iter().any(shows) {
            return Vec::new();
        }
        let name = &self.name;
        let grant = Operation {
            name: format!("{name} granted"),
            start: self.first_start,
            end: self.told,
            act: Act::Grant(number, self.token),
        };
        let by_hand = |it: &Operation<Act>| it.end.is_some() && it.act == Act::End(number);
        if others.iter().any(by_hand) {
            return vec![grant];
        }
        let expiry = Operation {
            name: format!("{name} expires"),
            start: self.promised.unwrap_or(self.first_start),
            end: None,
            act: Act::End(number),
        };
        vec![grant, expiry]
    }
}

/// The request id of a write that is decided once and remembered, with all attempts of it.
fn write_id(op: &Op) -> Option<&str> {
    match op {
        Op::ReleaseHold(hold) => Some(&hold.request),
        Op::Hold { request, .. }
        | Op::Handoff { request, .. }
        | Op::Finish { request, .. }
        | Op::Force { request, .. } => Some(request),
        _ => None,
    }
}

/// It tells something that nobody knew before.
fn is_news(heard: &Heard) -> bool {
    !heard.is_replayed()
}
