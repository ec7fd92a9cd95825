//! A committed entry: applied, its calls answered or held back.

use super::{CallId, Committed, Node, Output, Phase, append::InFlight};
use crate::{
    clock::{Mono, Now},
    events::EventBatch,
    handle::Reply,
};
use sereno_core::{
    Applied,
    entry::{Body, Entry, SealedEntry},
    ids::ObjectId,
    outcome::{Done, Outcome},
};
use std::sync::Arc;

impl Node {
    pub(super) fn commit(&mut self, now: Now, in_flight: InFlight, out: &mut Vec<Output>) {
        let InFlight { entry, sealed, calls, reads, stamps, sent_at, .. } = in_flight;
        let applied = self.apply(now.mono, &entry, &sealed);
        self.stamps = Some(stamps);
        self.not_ready = None;
        let took_ns = now.mono.since_ns(sent_at);
        self.pace.add(calls.len(), took_ns);

        assert!(applied.outcomes.len() == calls.len(), "one outcome for one command");
        for (id, outcome) in calls.iter().zip(applied.outcomes) {
            self.conclude(now.mono, *id, outcome, out);
        }
        for settled in applied.settled {
            self.settle(settled.claim, &settled.outcome, out);
        }
        out.extend(reads.into_iter().map(Output::ReadReady));
        if matches!(entry.body, Body::Announce(_)) {
            self.lead(now.mono, out);
        }
        out.push(Output::Committed(Committed {
            took_ns,
            commands: calls.len(),
            bytes: sealed.bytes.len(),
            batch: Arc::new(EventBatch {
                position: entry.position,
                hash: sealed.head.hash,
                time: entry.time,
                token_clock_us: entry.token_clock_us,
                revision: self.state.revision(),
                events: applied.events,
            }),
        }));
    }

    pub(super) fn apply(&mut self, now: Mono, entry: &Entry, sealed: &SealedEntry) -> Applied {
        let applied = self.state.apply(entry, sealed.head.hash);
        let applied = applied.expect("a committed entry of this node follows on what it applied");
        self.applied_at = now;
        self.snapshot.bytes += sealed.bytes.len() as u64;
        applied
    }

    pub(super) fn lead(&mut self, now: Mono, out: &mut Vec<Output>) {
        if self.phase == Phase::Following {
            self.phase = Phase::Leading;
            out.push(Output::Leads { took_ns: now.since_ns(self.began_to_try) });
            // Whoever waits has as long to ask again as if its call had ended now.
            let time = self.state.time();
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
        match (&outcome.result, call) {
            (Ok(Done::Waiting(waiting)), Some((id, call))) if call.hold_ms > 0 => {
                let until = now.plus_ms(call.hold_ms).min(call.deadline);
                self.calls.hold(id, waiting.claim, until);
                return;
            }
            (Ok(Done::Waiting(waiting)), _) if !self.calls.is_asked_for(waiting.claim) => {
                self.calls.begin_grace(waiting.claim, self.state.time());
            }
            (Ok(Done::Granted(grant)), _) => self.calls.end_grace(grant.claim),
            _ => {}
        }
        if let Some((id, _)) = call {
            self.calls.close(id, self.state.time());
            out.push(Output::Reply(id, Reply::Decided(outcome)));
        }
    }

    pub(super) fn settle(&mut self, claim: ObjectId, outcome: &Outcome, out: &mut Vec<Output>) {
        let calls = self.calls.settle(claim);
        if calls.is_empty() && matches!(outcome.result, Ok(Done::Granted(_))) {
            self.calls.begin_grace(claim, self.state.time());
        }
        for id in calls {
            out.push(Output::Reply(id, Reply::Decided(outcome.clone())));
        }
    }
}
