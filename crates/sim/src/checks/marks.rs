//! How often each rare thing has come about: a promise about what never does is not tested.

use sereno_core::{
    command::{Command, Family, Operation},
    event::EventKind,
    outcome::{AbandonedWas, Code, Detail, Done, End, Outcome, Refusal, RunState, WaitEnd},
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Marks(pub(crate) BTreeMap<&'static str, u64>);

impl Marks {
    pub(crate) fn mark(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn event(&mut self, family: Family, kind: &EventKind) {
        match kind {
            EventKind::Granted { waited_ms: Some(_), .. } if family == Family::Lock => {
                self.mark("a lock is handed over");
            }
            EventKind::Granted { waited_ms: Some(_), .. } => self.mark("a candidate comes to lead"),
            EventKind::Ended { end: End::HandedOff, .. } => self.mark("a term is handed off"),
            EventKind::Ended { end: End::Finished, .. } => self.mark("a run is finished"),
            EventKind::Ended { end: End::Replaced, .. } => self.mark("a hold is replaced"),
            EventKind::Ended { end: End::Expired | End::MaxHold, .. } if family == Family::Job => {
                self.mark("a run is lost");
            }
            EventKind::Proclaimed { .. } => self.mark("a leader says something else"),
            EventKind::Begun { .. } => self.mark("a payment begins"),
            EventKind::RunAsked { .. } => self.mark("a run is asked for"),
            EventKind::RunClaimed { attempt: 2.., .. } => self.mark("a run is tried again"),
            EventKind::RunChanged { state: RunState::Skipped, .. } => {
                self.mark("a run is left out")
            }
            EventKind::WaitEnded { why: Some(WaitEnd::Replaced), .. } => {
                self.mark("a candidate campaigns anew");
            }
            EventKind::Ended { end: End::Expired, .. } => self.mark("a lease expires"),
            EventKind::Ended { end: End::MaxHold, .. } => self.mark("an ownership is used up"),
            EventKind::Ended { end: End::Forced, .. } => self.mark("a lease is ended by force"),
            EventKind::Ended { end: End::Abandoned, .. } => self.mark("a grant is taken back"),
            EventKind::WaitEnded { why: Some(WaitEnd::TimedOut), .. } => self.mark("a wait ends"),
            EventKind::WaitEnded { why: Some(WaitEnd::Deserted), .. } => {
                self.mark("a wait is deserted");
            }
            EventKind::NamespacePut { .. } => self.mark("a policy changes"),
            EventKind::LevelRaised { .. } => self.mark("the level is raised"),
            EventKind::TokenFloorSet { .. } => self.mark("the floor of tokens is raised"),
            _ => {}
        }
    }

    /// `is_forgotten`: the service may have forgotten what it answered to this request.
    pub(super) fn outcome(
        &mut self,
        command: &Command,
        outcome: &Outcome,
        is_forgotten: impl FnOnce() -> bool,
    ) {
        match (&command.operation, &outcome.result) {
            (_, Ok(Done::Abandoned { was: AbandonedWas::Unseen })) => {
                self.mark("an abandon comes before its acquire");
            }
            (_, Ok(Done::Held(held))) if held.yours => self.mark("a hold is its owner's already"),
            (Operation::AcquireAll(_), Ok(Done::Granted(_))) => self.mark("all are granted"),
            (Operation::AcquireAll(_), Err(refusal)) if refusal.code == Code::Locked => {
                self.mark("none is granted, for some are held");
            }
            (_, Ok(Done::RenewedMany(results))) if results.iter().any(Result::is_err) => {
                self.mark("one of many is not renewed");
            }
            (_, Ok(Done::Renewed(renewed))) if renewed.clipped => {
                self.mark("a renewal is cut short by maxHold");
            }
            (_, Err(refusal)) => self.refusal(refusal, is_forgotten),
            _ => {}
        }
        if outcome.replayed.is_some() {
            self.mark("an answer is repeated");
        }
    }

    fn refusal(&mut self, refusal: &Refusal, is_forgotten: impl FnOnce() -> bool) {
        match (refusal.code, &refusal.detail) {
            (_, Detail::BornAt) => {
                self.mark("a copy that is too old is refused");
                if is_forgotten() {
                    self.mark("a copy comes after the reply memory");
                }
            }
            (_, Detail::Level { .. }) => self.mark("what is of a later level is refused"),
            (Code::LimitReached, Detail::Limit { limit, .. }) if limit == "holdCooldown" => {
                self.mark("a hold's owner has to wait for another");
            }
            (Code::Taken, _) => self.mark("what is held is taken"),
            (Code::RunClaimed, _) => self.mark("a run is somebody else's"),
            (Code::RunFinished, _) => self.mark("a finished run is told so"),
            (Code::QuotaExhausted, _) => self.mark("quota is exhausted"),
            (Code::ExpiredNoCapacity, _) => {
                self.mark("an expired reservation is refused for want of room");
            }
            (Code::ExceedsReservation, _) => self.mark("more is named than there is"),
            (_, Detail::Paused) => self.mark("nothing is granted after a restore"),
            (Code::Abandoned, _) => self.mark("an acquire comes after its abandon"),
            (Code::LeaseEnded, _) => self.mark("a spent request, or lease, is told so"),
            (Code::LimitReached | Code::FencingRequired, _) => self.mark("a policy refuses"),
            _ => {}
        }
    }
}
