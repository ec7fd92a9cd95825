//! The reference's changes of ownership: granted, handed over, ended. Who decides them is elsewhere.

use super::reference::{At, Delay, Face, Limit, Reference, Stage};
use sereno_core::{
    Applied, Settled,
    command::Family,
    event::{Event, EventKind},
    ids::{ClusterTime, ObjectId, Revision, Slot, Token},
    names::{Caller, Reason, ResourceName},
    outcome::{
        Code, Detail, Done, Elected, End, Grant, Held, Holder, Outcome, Refusal, RunClaimed,
        WaitEnd,
    },
};

impl Reference {
    pub(super) fn end_due(&mut self, object: u64) {
        self.revision += 1;
        if let Some(index) = self.delays.iter().position(|delay| delay.object == object) {
            let delay = self.delays.remove(index);
            if delay.owner.is_none() {
                self.hand_over(delay.at, &delay.resource);
            }
            return;
        }
        let index = self.by_object(object).expect("it is live");
        let claim = self.requests[index].claim();
        if self.requests[index].stage == Stage::Waiting {
            return self.end_wait(index, Some(WaitEnd::TimedOut));
        }
        let is_begun = matches!(claim.face, Face::Hold { begun: true });
        let end = match claim.last_deadline {
            Some(last) if last == claim.deadline && !is_begun => End::MaxHold,
            _ => End::Expired,
        };
        self.end_all_parts(index, end, claim.deadline);
    }

    /// It has become free: the first waiter who still has the right to it is granted.
    pub(super) fn hand_over(&mut self, at: At, resource: &ResourceName) {
        let now = self.time;
        let queue = self.queue(at, resource);
        let alive = |&&index: &&usize| self.requests[index].claim().deadline > now;
        let Some(&next) = queue.iter().find(alive) else { return };
        self.grant_waiter(next);
    }

    pub(super) fn grant_waiter(&mut self, index: usize) {
        self.grant(index, true);
        let outcome = self.answer(None, Ok(self.granted(index)));
        let claim = ObjectId(self.requests[index].claim().object);
        self.out.settled.push(Settled { claim, outcome });
    }

    pub(super) fn grant(&mut self, index: usize, handed_over: bool) {
        let (now, revision, clock) = (self.time, self.revision, self.clock);
        self.requests[index].stage = Stage::Holding;
        self.requests[index].answered = revision;
        let claim = self.requests[index].claim_mut();
        claim.granted = now;
        claim.handed_over = handed_over;
        claim.last_deadline = claim.max_hold_ms.map(|ms| now + ms);
        claim.deadline = (now + claim.ttl_ms).min(claim.last_deadline.unwrap_or(u64::MAX));
        if let Face::Candidate { version, .. } = &mut claim.face {
            *version = revision;
        }
        let waited_ms = handed_over.then(|| now - claim.created);
        for part in 0..self.requests[index].claim().parts.len() {
            self.last_token = (self.last_token + 1).max(clock);
            let token = Token(self.last_token);
            self.requests[index].claim_mut().parts[part].token = token;
            self.event(index, part, None, EventKind::Granted { token, waited_ms });
        }
    }

    pub(super) fn end_all_parts(&mut self, index: usize, end: End, at: u64) {
        for part in 0..self.requests[index].claim().parts.len() {
            if self.requests[index].claim().parts[part].ended.is_none() {
                self.end_part(index, part, end, at, None, None);
            }
        }
    }

    /// Ends a part, and gives its resource to the next or to a lock delay.
    pub(super) fn end_part(
        &mut self,
        index: usize,
        part: usize,
        end: End,
        ended: u64,
        by: Option<&Caller>,
        reason: Option<Reason>,
    ) {
        self.end_without_heir(index, part, end, ended, by, reason);
        let claim = self.requests[index].claim();
        let (at, resource) = (claim.at, claim.parts[part].resource.clone());
        let is_cut = matches!(end, End::Expired | End::MaxHold | End::Forced);
        let free_at = match at.family {
            Family::Hold => self.time,
            _ if is_cut => ended + self.spaces[at.space].policy.lock_delay_ms,
            _ => self.time,
        };
        if free_at > self.time {
            let object = self.number();
            self.delays.push(Delay { object, at, resource, owner: None, deadline: free_at });
        } else {
            self.hand_over(at, &resource);
        }
    }

    pub(super) fn end_without_heir(
        &mut self,
        index: usize,
        part: usize,
        end: End,
        ended: u64,
        by: Option<&Caller>,
        reason: Option<Reason>,
    ) {
        let (now, revision) = (self.time, self.revision);
        let request = &mut self.requests[index];
        let claim = request.claim.as_mut().expect("it holds");
        claim.parts[part].ended = Some(end);
        if claim.spent.is_none() {
            claim.spent = Some(end);
            request.answered = revision;
        }
        let (at, object, held_ms) = (claim.at, claim.object, ended - claim.granted);
        let (resource, token) = (claim.parts[part].resource.clone(), claim.parts[part].token);
        let owner = claim.owner.clone();
        let all_ended = claim.parts.iter().all(|part| part.ended.is_some());
        let all_released = claim.parts.iter().all(|part| part.ended == Some(End::Released));
        let policy = &self.spaces[at.space].policy;
        if all_ended {
            let is_short = all_released && !is_business(at.family);
            let window_ms =
                if is_short { policy.reply_refusals_ms } else { policy.reply_endings_ms };
            request.stage = Stage::Ended;
            request.forget_at = Some(now + window_ms);
        }
        self.event(index, part, by, EventKind::Ended { token, end, held_ms, reason });
        self.end_answers_with(object, at, end);
        match self.requests[index].claim().face {
            Face::Lock | Face::Candidate { .. } => {}
            Face::Hold { begun } => {
                let deadline = ended + self.spaces[at.space].holds.cooldown_ms;
                if !begun && deadline > now {
                    let object = self.number();
                    self.delays.push(Delay { object, at, resource, owner: Some(owner), deadline });
                }
            }
            Face::Run { job, slot } => self.attempt_ended(index, job, slot, end),
        }
    }

    /// Other requests that were answered with this hold as theirs end with the first that ends of it.
    fn end_answers_with(&mut self, object: u64, at: At, end: End) {
        let forget_at = self.time + self.spaces[at.space].policy.reply_endings_ms;
        for request in &mut self.requests {
            if let Stage::Yours { object: of, token } = request.stage
                && of == object
            {
                request.stage = Stage::YoursEnded(end, token);
                request.answered = self.revision;
                request.forget_at = Some(forget_at);
            }
        }
    }

    pub(super) fn end_wait(&mut self, index: usize, why: Option<WaitEnd>) {
        let claim = self.requests[index].claim();
        let waited_ms = self.time - claim.created;
        let window_ms = self.spaces[claim.at.space].policy.reply_refusals_ms;
        self.event(index, 0, None, EventKind::WaitEnded { why, waited_ms });
        let request = &mut self.requests[index];
        request.forget_at = Some(self.time + window_ms);
        request.answered = self.revision;
        request.stage = match why {
            Some(why) => Stage::WaitEnded(why),
            None => Stage::Refused(Code::Abandoned, Limit::Neither),
        };
        let refusal = match why {
            Some(why) => Refusal::new(Code::WaitTimeout).with(Detail::Wait(why)),
            None => Refusal::new(Code::Abandoned),
        };
        let claim = ObjectId(request.claim().object);
        let outcome = self.answer(None, Err(refusal));
        self.out.settled.push(Settled { claim, outcome });
    }

    pub(super) fn answer(&self, first: Option<u64>, result: Result<Done, Refusal>) -> Outcome {
        let (revision, time) = (Revision(self.revision), ClusterTime(self.time));
        Outcome { revision, time, replayed: first.map(Revision), result }
    }

    /// What a holding request is told, by its family.
    pub(super) fn granted(&self, index: usize) -> Done {
        let grant = self.grant_of(index);
        let claim = self.requests[index].claim();
        match &claim.face {
            Face::Lock => Done::Granted(grant),
            Face::Candidate { value, version } => {
                Done::Elected(Elected { grant, value: value.clone(), version: *version })
            }
            &Face::Hold { begun } => {
                Done::Held(Held { grant, owner: claim.owner.clone(), yours: false, begun })
            }
            &Face::Run { job, slot } => {
                let attempt = self.jobs[job].run(slot).expect("it is claimed").attempt;
                Done::RunClaimed(RunClaimed { grant, slot: Slot(slot), attempt })
            }
        }
    }

    /// The parts that have not ended.
    fn grant_of(&self, index: usize) -> Grant {
        let claim = self.requests[index].claim();
        let live = claim.parts.iter().filter(|part| part.ended.is_none());
        Grant {
            claim: ObjectId(claim.object),
            lease_id: claim.lease_id,
            holdings: live.map(|part| (part.resource.clone(), part.token)).collect(),
            fencing: claim.fencing,
            expires_in_ms: claim.deadline - self.time,
            final_deadline_in_ms: claim.last_deadline.map(|last| last - self.time),
        }
    }

    pub(super) fn shown(&self, index: usize, part: usize) -> Holder {
        let claim = self.requests[index].claim();
        Holder {
            owner: claim.owner.clone(),
            token: claim.parts[part].token,
            held_for_ms: self.time - claim.granted,
            expires_in_ms: claim.deadline.saturating_sub(self.time),
        }
    }

    pub(super) fn event(
        &mut self,
        index: usize,
        part: usize,
        by: Option<&Caller>,
        kind: EventKind,
    ) {
        let request = &self.requests[index];
        let claim = request.claim();
        self.out.events.push(Event {
            revision: Revision(self.revision),
            family: claim.at.family,
            namespace: Some(self.spaces[claim.at.space].name.clone()),
            resource: Some(claim.parts[part].resource.clone()),
            owner: Some(claim.owner.clone()),
            caller: by.unwrap_or(&request.scope.1).clone(),
            lease_hash: Some(claim.lease_id.public_hash()),
            kind,
        });
    }

    /// The beginning of a new log from this state as a backup.
    pub(super) fn restored(&mut self, floor: u64, pause_ms: u64) {
        let waits = |&index: &usize| self.requests[index].stage == Stage::Waiting;
        let mut waiting: Vec<_> = (0..self.requests.len()).filter(waits).collect();
        waiting.sort_by_key(|&index| self.requests[index].claim().object);
        for index in waiting {
            self.revision += 1;
            self.end_wait(index, Some(WaitEnd::Restored));
        }
        self.out = Applied::default();
        self.last_token = self.last_token.max(floor.saturating_sub(1));
        self.next_object += 1 << 32;
        self.paused_until = self.time + pause_ms;
    }
}

/// Of holds and jobs every answer is remembered for the longer time.
pub(super) fn is_business(family: Family) -> bool {
    matches!(family, Family::Hold | Family::Job)
}
