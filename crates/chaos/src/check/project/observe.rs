//! What single answers say of a name, besides grants and writes that are decided once.

use super::{Projection, is_news};
use crate::{
    check::{leased::Act, linear::Operation},
    history::{Call, Family, Heard, LeaseOf, Op},
};
use sereno_api::{AbandonedWas, ErrorCode};

/// The holder has gone, as somebody is told who names its lease.
pub(super) fn is_lost(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::LeaseEnded | ErrorCode::NotHolder)
}

impl Projection<'_> {
    pub(super) fn observed(&self, call: &Call) -> Vec<Operation<Act>> {
        let acts = match self.family {
            Family::Hold => self.seen_of_holds(call),
            _ => self.seen(call),
        };
        let operation = |act| Operation {
            name: call.name.clone(),
            start: call.start,
            // What may have happened is open-ended.
            end: call.end.filter(|_| !call.heard.is_unknown()),
            act,
        };
        acts.into_iter().map(operation).collect()
    }

    fn seen(&self, call: &Call) -> Vec<Act> {
        let act = match &call.op {
            Op::Acquire { request, .. }
            | Op::Campaign { request, .. }
            | Op::Claim { request, .. } => self.seen_by_asking(request, &call.heard),
            Op::Release(lease) if call.heard.is_unknown() => {
                self.of_request(&lease.request).map(Act::End)
            }
            Op::RenewMany { leases } => return self.seen_by_renewals(leases, &call.heard),
            Op::Renew(lease)
            | Op::Release(lease)
            | Op::Proclaim { lease, .. }
            | Op::Handoff { lease, .. }
            | Op::Finish { lease, .. } => self.seen_by_owner(lease, &call.heard),
            Op::Abandon { request, .. } => self.seen_by_abandoning(request, &call.heard),
            Op::Get { .. } => self.seen_by_reading(&call.heard),
            _ => None,
        };
        act.into_iter().collect()
    }

    fn seen_by_asking(&self, request: &str, heard: &Heard) -> Option<Act> {
        let number = self.of_request(request)?;
        match heard {
            Heard::Waiting(_) | Heard::Campaigning(_) => Some(Act::Lacks(number)),
            Heard::Problem(it) if it.code == ErrorCode::LeaseEnded => Some(Act::Lacks(number)),
            // What a replayed refusal shows of the holder is not what it was refused for.
            Heard::Problem(_) if is_news(heard) => {
                heard.holder(self.name).and_then(|it| self.of_holder(it)).map(Act::Holds)
            }
            granted if !granted.tokens().is_empty() && granted.is_replayed() => {
                Some(Act::Holds(number))
            }
            _ => None,
        }
    }

    fn seen_by_owner(&self, lease: &LeaseOf, heard: &Heard) -> Option<Act> {
        let number = self.of_request(&lease.request)?;
        match heard {
            Heard::Renewed(_) => Some(Act::Holds(number)),
            Heard::Proclaimed(_) if is_news(heard) => Some(Act::Holds(number)),
            Heard::Released(released) if released.released => Some(Act::End(number)),
            Heard::Released(_) => Some(Act::Lacks(number)),
            Heard::Problem(it) if is_lost(it.code) => Some(Act::Lacks(number)),
            // Its attempt had finished, with another result.
            Heard::Problem(it) if it.code == ErrorCode::RunFinished => Some(Act::Lacks(number)),
            // A leader is told that its heir does not wait.
            Heard::Problem(it) if it.code == ErrorCode::NotFound && is_news(heard) => {
                Some(Act::Holds(number))
            }
            _ => None,
        }
    }

    fn seen_by_renewals(&self, leases: &[LeaseOf], heard: &Heard) -> Vec<Act> {
        let Heard::RenewedMany(many) = heard else { return Vec::new() };
        let act = |(lease, result): (&LeaseOf, &sereno_api::RenewResult)| {
            let number = self.of_request(&lease.request)?;
            match result.code {
                None if result.ok => Some(Act::Holds(number)),
                Some(code) if is_lost(code) => Some(Act::Lacks(number)),
                _ => None,
            }
        };
        leases.iter().zip(&many.results).filter_map(act).collect()
    }

    fn seen_by_abandoning(&self, request: &str, heard: &Heard) -> Option<Act> {
        let number = self.of_request(request)?;
        match heard {
            Heard::Abandoned(it) if it.was == AbandonedWas::Granted => Some(Act::End(number)),
            Heard::Abandoned(_) => Some(Act::Lacks(number)),
            _ if heard.is_unknown() => Some(Act::End(number)),
            _ => None,
        }
    }

    pub(super) fn seen_by_reading(&self, heard: &Heard) -> Option<Act> {
        match heard.holder(self.name) {
            Some(holder) => self.of_holder(holder).map(Act::Holds),
            None => heard.is_free().then_some(Act::Free),
        }
    }
}
