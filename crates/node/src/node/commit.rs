//! A committed entry: applied, its calls answered or held back.

use super::{CallId, Committed, Node, Output, Phase, append::InFlight, follow::ABSTAIN_MS};
use crate::{
    clock::{Mono, Now},
    events::EventBatch,
    handle::{Reply, Undecided},
};
use sereno_core::{
    Applied, Settled,
    entry::{Body, Entry, SealedEntry},
    ids::{ClusterTime, ObjectId},
    outcome::{Done, Outcome},
    planted::{self, Planted},
};
use std::sync::Arc;

impl Node {
    pub(super) fn commit(&mut self, now: Now, in_flight: InFlight, out: &mut Vec<Output>) {
        let InFlight { entry, sealed, calls, stamps, sent_at, .. } = &in_flight;
        let Applied { outcomes, settled, events } = self.apply(now.mono, entry, sealed);
        self.stamps = Some(*stamps);
        if self.is_serving() {
            self.not_ready = None;
        }
        let silent_since = std::mem::replace(&mut self.progress.moved_at, now.mono);
        let took_ns = now.mono.since_ns(*sent_at);
        self.pace.add(calls.len(), took_ns);
        self.calls.forget_offers(self.state.time());

        assert!(outcomes.len() == calls.len(), "one outcome for one command");
        if matches!(entry.body, Body::Announce(_)) {
            self.lead(now.mono, silent_since, out);
        }
        if self.is_in_doubt() {
            self.end_calls(now.mono, &in_flight, &Undecided::Unknown, out);
        } else {
            self.answer(now.mono, calls, outcomes, settled, out);
            out.extend(in_flight.reads.iter().map(|&(id, _)| Output::ReadReady(id)));
        }
        out.push(Output::Committed(Committed {
            took_ns: Some(took_ns),
            commands: calls.len(),
            bytes: sealed.bytes.len(),
            batch: Arc::new(EventBatch::of(entry, sealed.head.hash, &self.state, events)),
        }));
        if matches!(entry.body, Body::Resign) && self.phase == Phase::Resigning {
            self.step_down(now.mono, out);
            self.progress.abstains_until = Some(now.mono.plus_ms(ABSTAIN_MS));
        }
    }

    /// Answers in the order of revisions: a claim that the sweep has handed over is asked for by a command of
    /// the same entry, and one that a command has queued is handed over by a later one.
    fn answer(
        &mut self,
        now: Mono,
        calls: &[Option<CallId>],
        outcomes: Vec<Outcome>,
        settled: Vec<Settled>,
        out: &mut Vec<Output>,
    ) {
        let mut settled = settled.into_iter().peekable();
        for (id, outcome) in calls.iter().zip(outcomes) {
            let is_before = |settled: &Settled| settled.outcome.revision < outcome.revision;
            while let Some(before) = settled.next_if(is_before) {
                self.settle(before.claim, &before.outcome, out);
            }
            self.conclude(now, *id, outcome, out);
        }
        for settled in settled {
            self.settle(settled.claim, &settled.outcome, out);
        }
    }

    pub(super) fn apply(&mut self, now: Mono, entry: &Entry, sealed: &SealedEntry) -> Applied {
        let applied = self.state.apply(entry, sealed.head.hash);
        let applied = applied.expect("a committed entry of this node follows on what it applied");
        self.applied_at = now;
        self.snapshot.bytes += sealed.bytes.len() as u64;
        applied
    }

    /// `silent_since`: when the log last moved before this node's announce, or this process began to look.
    pub(super) fn lead(&mut self, now: Mono, silent_since: Mono, out: &mut Vec<Output>) {
        if self.phase == Phase::Following {
            self.phase = Phase::Leading;
            self.begin_to_be_reached(now);
            self.region_queued = false;
            self.raise_new_log(now);
            self.unlink(out);
            out.push(Output::Leads { took_ns: now.since_ns(silent_since) });
            // Whoever waits has as long to ask again as if its call had ended now.
            let time = match planted::has(Planted::NoFreshGrace) {
                true => ClusterTime(0),
                false => self.state.time(),
            };
            self.calls.clear_graces();
            for claim in self.state.waiting_claims() {
                if !self.calls.is_asked_for(claim) {
                    self.calls.begin_grace(claim, time);
                }
            }
        }
    }

    /// Answers one command's call, or holds it back while its claim waits.
    pub(super) fn conclude(
        &mut self,
        now: Mono,
        id: Option<CallId>,
        outcome: Outcome,
        out: &mut Vec<Output>,
    ) {
        let call = id.and_then(|id| self.calls.get(id).map(|call| (id, *call)));
        let time = self.state.time();
        match (&outcome.result, call) {
            (Ok(Done::Waiting(waiting)), Some((id, call)))
                if call.hold_ms > 0 && self.phase == Phase::Leading =>
            {
                let until = now.plus_ms(call.hold_ms).min(call.deadline);
                self.calls.hold(id, waiting.claim, until);
                return;
            }
            (Ok(Done::Waiting(waiting)), _) if !self.calls.is_asked_for(waiting.claim) => {
                self.calls.begin_grace(waiting.claim, time);
            }
            (Ok(done), call) => {
                if let Some(claim) = done.held_by() {
                    self.granted_again(claim, call.is_some());
                }
            }
            _ => {}
        }
        if let Some((id, _)) = call {
            self.close(now, id);
            out.push(Output::Reply(id, Reply::Decided(outcome)));
        }
    }

    /// A command was answered with a grant. If that is a hand-over that may not have been heard, it is one more
    /// that asks for it.
    fn granted_again(&mut self, claim: ObjectId, is_answered: bool) {
        let time = self.state.time();
        let in_grace = self.calls.is_in_grace(claim);
        if is_answered && (in_grace || self.calls.is_offered(claim)) {
            self.calls.offer(claim, 1, time);
        } else if in_grace {
            self.calls.begin_grace(claim, time);
        }
    }

    pub(super) fn settle(&mut self, claim: ObjectId, outcome: &Outcome, out: &mut Vec<Output>) {
        let calls = self.calls.settle(claim);
        if outcome.result.as_ref().is_ok_and(|done| done.held_by().is_some()) {
            match calls.len() {
                0 => self.calls.begin_grace(claim, self.state.time()),
                answers => self.calls.offer(claim, answers, self.state.time()),
            }
        }
        for id in calls {
            out.push(Output::Reply(id, Reply::Decided(outcome.clone())));
        }
    }
}
