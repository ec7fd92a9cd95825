//! How often each rare thing has come about: a promise about what never does is not tested.

use sereno_core::{
    command::{Command, Operation},
    event::EventKind,
    outcome::{AbandonedWas, Code, Detail, Done, End, Outcome, Refusal, WaitEnd},
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Marks(pub(crate) BTreeMap<&'static str, u64>);

impl Marks {
    pub(crate) fn mark(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Granted { waited_ms: Some(_), .. } => self.mark("a lock is handed over"),
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
            (_, Detail::Paused) => self.mark("nothing is granted after a restore"),
            (Code::Abandoned, _) => self.mark("an acquire comes after its abandon"),
            (Code::LeaseEnded, _) => self.mark("a spent request, or lease, is told so"),
            (Code::LimitReached | Code::FencingRequired, _) => self.mark("a policy refuses"),
            _ => {}
        }
    }
}
