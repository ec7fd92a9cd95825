//! What is told of holds: known by owner and fence, taken several at once, repeated by their owners, and replaced.

use super::{Projection, is_news, observe::is_lost};
use crate::{
    check::leased::Act,
    clock::Micros,
    history::{Call, Heard, HoldOf, Op},
};
use sereno_api::ErrorCode;

fn named(owner: &str, fence: u64) -> String {
    format!("{owner} by {fence}")
}

impl<'a> Projection<'a> {
    pub(super) fn of_hold(&self, owner: &str, fence: u64) -> Option<u32> {
        self.numbers.get(&named(owner, fence)).copied()
    }

    /// A hold with this fence was seen.
    pub(super) fn learn_fence(&mut self, (owner, fence): (&str, u64)) {
        if self.wanted.contains_key(owner) {
            self.hold(owner, fence);
        }
    }

    fn hold(&mut self, owner: &str, fence: u64) -> u32 {
        let first_start = self.wanted.get(owner).copied().unwrap_or_default();
        let number = self.of_hold(owner, fence);
        let number =
            number.unwrap_or_else(|| self.new_lease(&named(owner, fence), owner, first_start));
        self.has_token(number, fence);
        number
    }

    fn starts(&mut self, number: u32, at: Option<Micros>) {
        let lease = &mut self.leases[number as usize];
        lease.first_start = lease.first_start.max(at.unwrap_or_default());
    }

    /// What its owner is told of a hold.
    pub(super) fn learn_hold(&mut self, call: &'a Call) {
        let heard = &call.heard;
        match (&call.op, heard) {
            (Op::Hold { owner, request, resources, .. }, _) => {
                let tokens = heard.tokens();
                if let Some((_, fence)) = tokens.iter().find(|(name, _)| *name == self.name) {
                    let number = self.hold(owner, *fence);
                    self.is_promised(number, call, heard.expires_in_ms());
                    if !heard.is_yours() {
                        self.is_told(number, call);
                        self.starts(number, self.sent.get(request.as_str()).copied());
                    }
                }
                // Of several, the token told is that of another.
                if let (Heard::Problem(it), [only]) = (heard, resources.as_slice())
                    && it.code == ErrorCode::LeaseEnded
                    && only == self.name
                    && let Some(fence) = it.fencing_token
                {
                    let number = self.hold(owner, fence);
                    self.is_told(number, call);
                }
            }
            (Op::RenewHold(hold) | Op::Begin { hold, .. }, Heard::HoldExtended(extended)) => {
                let number = self.hold(&hold.owner, extended.fence);
                self.is_promised(number, call, heard.expires_in_ms());
            }
            _ => {}
        }
    }

    /// What was replaced ended with the grant; what had gone already was not missed.
    pub(super) fn learn_replaced(
        &mut self,
        request: &'a str,
        owner: &str,
        replaces: &[(String, u64)],
        call: &Call,
    ) {
        let was_granted =
            call.heard.code() == Some(ErrorCode::LeaseEnded) || !call.heard.tokens().is_empty();
        let name = self.name;
        for (_, fence) in replaces.iter().filter(|(replaced, _)| replaced == name) {
            if let Some(number) = self.of_hold(owner, *fence) {
                self.add_write(request, Act::Gone(number), call, was_granted);
            }
        }
    }

    /// Without its fence a release ends what the owner has, whichever that is.
    pub(super) fn learn_release(&mut self, request: &'a str, hold: &HoldOf, call: &Call) {
        let is_done = matches!(&call.heard, Heard::HoldReleased(it) if it.released);
        if !is_done && !call.heard.is_unknown() {
            return;
        }
        let candidates = self.meant(hold);
        let (act, is_sure): (fn(u32) -> Act, _) = match hold.fence {
            Some(_) => (Act::End, true),
            None => (Act::Gone, candidates.len() == 1),
        };
        for number in candidates {
            self.add_write(request, act(number), call, is_done && is_sure);
            // Which of several it was nobody knows: each may have ended.
            if let Some(write) = self.writes.get_mut(&(request, number)) {
                write.is_unknown |= !is_sure;
            }
        }
    }

    fn meant(&self, hold: &HoldOf) -> Vec<u32> {
        match hold.fence {
            Some(fence) => self.of_hold(&hold.owner, fence).into_iter().collect(),
            None => self.by_owner.get(&hold.owner).cloned().unwrap_or_default(),
        }
    }

    /// What single answers say.
    pub(super) fn seen_of_holds(&self, call: &Call) -> Vec<Act> {
        let heard = &call.heard;
        match &call.op {
            Op::Hold { owner, resources, .. } if resources.iter().any(|it| it == self.name) => {
                self.seen_by_taking(owner, resources.len() == 1, heard).into_iter().collect()
            }
            Op::RenewHold(hold) | Op::Begin { hold, .. } => {
                let act = match heard {
                    Heard::HoldExtended(it) if is_news(heard) => {
                        self.of_hold(&hold.owner, it.fence).map(Act::Holds)
                    }
                    Heard::Problem(it) if is_lost(it.code) => self.lacks(hold),
                    _ => None,
                };
                act.into_iter().collect()
            }
            Op::ReleaseHold(hold) => {
                let act = match heard {
                    Heard::HoldReleased(it) if !it.released => self.lacks(hold),
                    Heard::Problem(it) if is_lost(it.code) => self.lacks(hold),
                    _ => None,
                };
                act.into_iter().collect()
            }
            Op::Get { .. } => self.seen_by_reading(heard).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn seen_by_taking(&self, owner: &str, is_single: bool, heard: &Heard) -> Option<Act> {
        let tokens = heard.tokens();
        if let Some((_, fence)) = tokens.iter().find(|(name, _)| *name == self.name) {
            let held_before = heard.is_replayed() || heard.is_yours();
            return self.of_hold(owner, *fence).filter(|_| held_before).map(Act::Holds);
        }
        match heard {
            Heard::Problem(it) if it.code == ErrorCode::LeaseEnded => {
                let fence = it.fencing_token.filter(|_| is_single)?;
                self.of_hold(owner, fence).map(Act::Lacks)
            }
            Heard::Problem(it) if it.code == ErrorCode::Taken && is_news(heard) => {
                heard.holder(self.name).and_then(|it| self.of_holder(it)).map(Act::Holds)
            }
            _ => None,
        }
    }

    /// The hold by that fence is none of the owner's.
    fn lacks(&self, hold: &HoldOf) -> Option<Act> {
        self.of_hold(&hold.owner, hold.fence?).map(Act::Lacks)
    }
}
