//! What clients know of each reservation: when it was surely there, how it may have ended, and what it has used. Of the log
//! nothing is known here.

use crate::{
    clock::Micros,
    history::{Call, Family, Heard, NodeRules, Op, QuotaHeard, QuotaOp},
};
use sereno_api::{AbandonedWas, ErrorCode, OnExpiry, Outcome, QuotaItem};
use std::collections::BTreeMap;

/// A node: its quota, and its path.
pub(super) type Node<'a> = (&'a str, &'a str);
pub(super) type Amounts<'a> = BTreeMap<Node<'a>, u64>;

/// What of each node is named.
pub(super) fn amounts(items: &[QuotaItem]) -> Amounts<'_> {
    let mut sums = Amounts::new();
    for item in items {
        *sums.entry((&item.quota, &item.path)).or_default() += item.amount;
    }
    sums
}

/// One write, over all its attempts.
#[derive(Debug)]
pub(super) struct Write<'a> {
    /// What was asked; `None`: the reserve was abandoned.
    pub(super) op: Option<&'a QuotaOp>,
    /// Before its first attempt.
    pub(super) sent: Micros,
    /// The first answer that says that it was done, and when that was there.
    pub(super) done: Option<(Micros, &'a Call)>,
    /// It was decided, and did nothing.
    is_refused: bool,
    /// An attempt may have done something.
    is_open: bool,
}

/// A reservation, known by the request that asked for it.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    pub(super) asked: &'a str,
    /// As it was asked for.
    pub(super) items: Amounts<'a>,
    /// Before the first attempt.
    pub(super) sent: Micros,
    /// The first answer that says that it is held.
    pub(super) granted: Option<(Micros, &'a Call)>,
    /// When an answer first said that it had been granted, even if it had ended by then.
    pub(super) told: Option<Micros>,
    /// An answer says that it will never be granted.
    is_over: bool,
    /// An attempt may have been granted.
    is_open: bool,
    /// Not before this does its deadline pass (S8), as far as its holder was told.
    pub(super) promised: Micros,
    /// What may become of it at its deadline.
    pub(super) fates: Vec<OnExpiry>,
    /// In the order in which they were first sent.
    pub(super) writes: Vec<Write<'a>>,
    /// Places in `writes` by request; the abandon's is empty.
    requests: BTreeMap<&'a str, usize>,
    /// All calls about it.
    pub(super) calls: Vec<&'a Call>,
}

/// A return, over all its attempts.
#[derive(Debug)]
pub(super) struct Return<'a> {
    pub(super) commit: u64,
    pub(super) node: Node<'a>,
    pub(super) amount: u64,
    pub(super) write: Write<'a>,
    /// All its attempts.
    pub(super) calls: Vec<&'a Call>,
}

/// All that clients know.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    pub(super) reservations: BTreeMap<&'a str, Reservation<'a>>,
    pub(super) returns: BTreeMap<&'a str, Return<'a>>,
    /// Rules that each node may have had.
    pub(super) rules: BTreeMap<Node<'a>, Vec<&'a NodeRules>>,
    /// Reads of nodes.
    pub(super) reads: Vec<&'a Call>,
}

/// A promised time, less what monotonic clocks may differ by.
fn promised(call: &Call, ms: u64) -> Micros {
    call.start + (ms * 990).saturating_sub(1_000)
}

impl<'a> Known<'a> {
    pub(super) fn of(calls: &'a [Call]) -> Self {
        let mut known = Self::default();
        let quotas = || calls.iter().filter(|call| call.op.request().0 == Family::Quota);
        // What is asked for comes first: an answer may be written down after another's call has begun.
        quotas().for_each(|call| known.asked(call));
        quotas().for_each(|call| known.learn(call));
        known
    }

    fn asked(&mut self, call: &'a Call) {
        let Op::Quota(op) = &call.op else { return };
        match op {
            QuotaOp::Reserve { items, request, ttl_ms, on_expiry, .. } => {
                let new = || Reservation {
                    asked: request,
                    items: amounts(items),
                    sent: call.start,
                    granted: None,
                    told: None,
                    is_over: false,
                    is_open: false,
                    // Whenever it is granted, it lasts from then on.
                    promised: promised(call, *ttl_ms),
                    fates: vec![*on_expiry],
                    writes: Vec::new(),
                    requests: BTreeMap::new(),
                    calls: Vec::new(),
                };
                self.reservations.entry(request).or_insert_with(new);
            }
            QuotaOp::PutLimit { node, .. } if !is_refused(&call.heard) => {
                self.rules.entry((&node.quota, &node.path)).or_default().push(node);
            }
            _ => {}
        }
    }

    fn learn(&mut self, call: &'a Call) {
        match &call.op {
            Op::Abandon { request, .. } => {
                if let Some(of) = self.reservations.get_mut(request.as_str()) {
                    of.learn_abandon(call);
                }
            }
            Op::Quota(QuotaOp::Reserve { request, .. }) => {
                let of = self.reservations.get_mut(request.as_str());
                of.expect("it was asked for").learn_reserve(call);
            }
            Op::Quota(QuotaOp::Return { commit, item, request, .. }) => {
                let new = || Return {
                    commit: *commit,
                    node: (&item.quota, &item.path),
                    amount: item.amount,
                    write: Write::new(None, call),
                    calls: Vec::new(),
                };
                let known = self.returns.entry(request).or_insert_with(new);
                known.write.learn(call);
                known.calls.push(call);
            }
            Op::Quota(QuotaOp::Node { .. }) => self.reads.push(call),
            Op::Quota(QuotaOp::Reservation { asked, .. }) => {
                if let Some(of) = self.reservations.get_mut(asked.as_str()) {
                    of.calls.push(call);
                }
            }
            Op::Quota(op) => {
                if let Some(of) = op.of()
                    && let Some(known) = self.reservations.get_mut(of.asked.as_str())
                {
                    known.learn_write(&of.request, op, call);
                }
            }
            _ => {}
        }
    }
}

/// The log has said for good that the call did nothing.
fn is_refused(heard: &Heard) -> bool {
    match heard {
        // The same request may be tried again after these.
        Heard::Problem(it)
            if [ErrorCode::Overloaded, ErrorCode::Unavailable].contains(&it.code) =>
        {
            false
        }
        Heard::Problem(it) => it.outcome != Outcome::Unknown && it.revision.is_some(),
        _ => false,
    }
}

impl<'a> Write<'a> {
    fn new(op: Option<&'a QuotaOp>, call: &Call) -> Self {
        Self { op, sent: call.start, done: None, is_refused: false, is_open: false }
    }

    /// It was done, or may have been.
    pub(super) fn may_be_done(&self) -> bool {
        self.done.is_some() || self.is_unknown()
    }

    /// Nobody knows whether it was done.
    pub(super) fn is_unknown(&self) -> bool {
        self.done.is_none() && self.is_open && !self.is_refused
    }

    /// The answer that says that it was done.
    pub(super) fn told(&self) -> Option<&'a QuotaHeard> {
        match &self.done?.1.heard {
            Heard::Quota(heard) => Some(heard),
            _ => None,
        }
    }

    /// Its answer says that it has ended the reservation.
    pub(super) fn ends(&self) -> bool {
        match (self.op, self.told()) {
            (None, _) => self.done.is_some(),
            (_, Some(QuotaHeard::Committed(it))) => it.readmits.is_none() && it.left.is_empty(),
            (_, Some(QuotaHeard::Released(it))) => it.released,
            (_, Some(QuotaHeard::Settled(_))) => true,
            _ => false,
        }
    }

    fn learn(&mut self, call: &'a Call) {
        match &call.heard {
            // A release of what has ended does nothing.
            Heard::Quota(QuotaHeard::Released(it)) if !it.released => self.is_refused = true,
            Heard::Quota(_) => self.is_done(call),
            heard => {
                self.is_refused |= is_refused(heard);
                self.is_open |= heard.is_unknown();
            }
        }
    }

    fn is_done(&mut self, call: &'a Call) {
        let end = call.end.unwrap_or(call.start);
        if self.done.is_none_or(|(first, _)| end < first) {
            self.done = Some((end, call));
        }
    }
}

impl<'a> Reservation<'a> {
    /// It was granted, or may have been.
    pub(super) fn may_be_granted(&self) -> bool {
        self.told.is_some() || (self.is_open && !self.is_over)
    }

    /// Its capacity may be free again after its deadline.
    pub(super) fn may_expire(&self) -> bool {
        self.fates.contains(&OnExpiry::Release)
    }

    fn is_told(&mut self, call: &Call) {
        self.told = self.told.into_iter().chain(call.end).min();
    }

    /// It was held when this was decided, after the call was sent, and lasts so long from then on.
    fn lasts(&mut self, call: &Call, expires_in_ms: u64) {
        if expires_in_ms > 0 {
            self.promised = self.promised.max(promised(call, expires_in_ms));
        }
    }

    fn learn_reserve(&mut self, call: &'a Call) {
        match &call.heard {
            Heard::Quota(QuotaHeard::Reserved(it)) => {
                self.is_told(call);
                let end = call.end.unwrap_or(call.start);
                if self.granted.is_none_or(|(first, _)| end < first) {
                    self.granted = Some((end, call));
                }
                self.lasts(call, it.expires_in_ms);
            }
            Heard::Problem(it) if it.code == ErrorCode::ReservationEnded => self.is_told(call),
            heard => {
                self.is_over |= is_refused(heard);
                self.is_open |= heard.is_unknown() || heard.is_wait();
            }
        }
        self.calls.push(call);
    }

    /// The write with this request; its first attempt makes it.
    fn write(&mut self, request: &'a str, op: Option<&'a QuotaOp>, call: &Call) -> &mut Write<'a> {
        let index = *self.requests.entry(request).or_insert(self.writes.len());
        if index == self.writes.len() {
            self.writes.push(Write::new(op, call));
        }
        &mut self.writes[index]
    }

    fn learn_abandon(&mut self, call: &'a Call) {
        let write = self.write("", None, call);
        match &call.heard {
            Heard::Abandoned(it) if it.was == AbandonedWas::Granted => {
                write.is_done(call);
                self.is_told(call);
            }
            Heard::Abandoned(it) if it.was == AbandonedWas::Ended => self.is_told(call),
            Heard::Abandoned(_) => self.is_over = true,
            heard => write.is_open |= heard.is_unknown(),
        }
        self.calls.push(call);
    }

    fn learn_write(&mut self, request: &'a str, op: &'a QuotaOp, call: &'a Call) {
        let write = self.write(request, Some(op), call);
        write.learn(call);
        let may_be_done = write.may_be_done();
        if let QuotaOp::Begin { on_expiry, .. } = op
            && may_be_done
            && !self.fates.contains(on_expiry)
        {
            self.fates.push(*on_expiry);
        }
        if let Heard::Quota(QuotaHeard::Reserved(it)) = &call.heard {
            self.lasts(call, it.expires_in_ms);
        }
        self.calls.push(call);
    }
}
