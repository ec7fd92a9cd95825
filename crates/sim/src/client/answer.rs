//! What reaches a client, and what it makes of it.

use super::{Asking, Holding, Job, Open, hold::own_deadline, words};
use crate::{
    clock::MS,
    event::{Attempt, Seen, ToClient},
    world::World,
};
use sereno_core::outcome::{Code, Detail, Done, Grant, Outcome, QuotaDone, Refusal, Renewed};
use sereno_node::{
    clock::Mono,
    handle::{Reply, Undecided},
};

impl World {
    /// The call that this answers, if it is listened to and about the log of now.
    fn take_open(&mut self, client: usize, attempt: Attempt) -> Option<Open> {
        let it = &mut self.clients[client];
        if it.open.as_ref().is_none_or(|open| open.attempt != attempt) {
            return None;
        }
        if it.open.as_ref().is_some_and(|open| open.log != self.logs) {
            self.attempt_over(client, false);
            return None;
        }
        it.open.take()
    }

    pub(super) fn client_takes(&mut self, client: usize, what: ToClient) {
        match what {
            ToClient::Wake => {}
            ToClient::Broken(attempt) => {
                if self.clients[client].listens(attempt) {
                    self.attempt_over(client, false);
                }
            }
            ToClient::Reply(attempt, reply) => {
                let Some(open) = self.take_open(client, attempt) else { return };
                match reply {
                    Reply::Decided(outcome) => self.client_told(client, &open, &outcome),
                    Reply::Undecided(undecided) => {
                        self.say(|| format!("c{client} <- {undecided:?}"));
                        let is_refused = matches!(undecided, Undecided::Unavailable { .. });
                        if is_refused && self.asks_too_early(client) {
                            // The service does not have this yet: something else, and that another time.
                            self.mark("what is of a later level is refused");
                            return self.client_rests(client);
                        }
                        self.clients[client].open = Some(open);
                        self.attempt_over(client, false);
                    }
                }
            }
            ToClient::Read(attempt, seen) => {
                let Some(open) = self.take_open(client, attempt) else { return };
                match seen {
                    Ok(seen) => self.client_saw(client, &open, seen),
                    Err(_) => {
                        self.clients[client].open = Some(open);
                        self.attempt_over(client, false);
                    }
                }
            }
            ToClient::Write(write) => self.send_write(write),
        }
    }

    /// Whether what it asks for came with a later level than the one in force.
    fn asks_too_early(&self, client: usize) -> bool {
        let level = self.truth.state.level();
        match &self.clients[client].job {
            Job::Asking(asking) => asking.what.level() > level,
            Job::Reserving(_) | Job::Keeping(_) => level < 4,
            Job::Doing { operations, .. } => {
                operations.last().is_some_and(|operation| operation.level() > level)
            }
            _ => false,
        }
    }

    fn client_saw(&mut self, client: usize, open: &Open, seen: Seen) {
        self.truth.checks.answers.read(seen.revision, open.floor);
        self.reads += 1;
        if let Job::Reading { place, then, .. } = self.clients[client].job.clone() {
            self.operator_saw(client, &place, then, seen);
        }
    }

    fn client_told(&mut self, client: usize, open: &Open, outcome: &Outcome) {
        let now = self.mono_of(client);
        self.answers += 1;
        self.truth.checks.answers.told(outcome.revision);
        self.trace.mix(&[3, client as u64, outcome.revision.0]);
        self.say(|| format!("c{client} <- {}", words::outcome(outcome)));
        let it = &mut self.clients[client];
        it.told = Some((outcome.time, now));
        it.next_at = now;
        if let Err(refusal) = &outcome.result
            && refusal.code == Code::Unavailable
        {
            if matches!(refusal.detail, Detail::Level { .. }) {
                return self.client_rests(client);
            }
            // Not applied, not remembered: the same again, born anew.
            it.told = None;
            it.next_at = now.plus_ms(200);
            return;
        }
        match (it.job.clone(), &outcome.result) {
            (Job::Asking(asking), Ok(Done::Held(held))) if held.yours => {
                self.acts_for_owner(client, &asking, held);
            }
            (Job::Asking(asking), Ok(done)) if done.grant().is_some() => {
                if self.is_about_to_go(&asking) {
                    return self.client_abandons(client, asking, now);
                }
                let grant = done.grant().expect("just seen");
                let holding = self.granted(&asking, grant, open.sent_at, now);
                self.client_holds(client, holding);
            }
            (Job::Reserving(reserving), Ok(Done::Quota(QuotaDone::Reserved(reserved)))) => {
                self.reserved(client, &reserving, reserved, open.sent_at);
            }
            (Job::Asking(_) | Job::Reserving(_), Ok(Done::Waiting(_))) => {
                // Whoever does not have its call held asks again after a while.
                let pause_ms = self.random.between(20, 1_500);
                self.clients[client].next_at = now.plus_ms(pause_ms);
            }
            (Job::Keeping(keeping), result) => self.step_answered(client, keeping, open, result),
            (Job::Holding(holding), result) => self.renewed(client, holding, open, result),
            (Job::Doing { mut operations, until }, _) => {
                operations.pop();
                match operations.is_empty() {
                    true => self.client_rests(client),
                    false => self.clients[client].job = Job::Doing { operations, until },
                }
            }
            // Decided, one way or the other.
            _ => self.client_rests(client),
        }
    }

    fn granted(&mut self, asking: &Asking, grant: &Grant, sent_at: Mono, now: Mono) -> Holding {
        let has_waited = asking.wait_ms > 0;
        let due = Mono(sent_at.0 + asking.ttl_ms * MS / 3);
        Holding {
            what: asking.what.clone(),
            namespace: asking.namespace.clone(),
            holdings: grant.holdings.clone(),
            lease_id: grant.lease_id,
            ttl_ms: asking.ttl_ms,
            is_confirmed: !has_waited,
            deadline: own_deadline(sent_at, grant.expires_in_ms),
            renew_at: if has_waited { now } else { due },
            write_at: now.plus_ms(self.random.between(0, 60)),
            release_at: now.plus_ms(asking.keeps_ms),
        }
    }

    fn renewed(
        &mut self,
        client: usize,
        holding: Holding,
        open: &Open,
        result: &Result<Done, Refusal>,
    ) {
        if let Ok(Done::Proclaimed { .. }) = result {
            // The renewal that was due follows at once.
            self.clients[client].job = Job::Holding(holding);
            return;
        }
        let is_begun = matches!(result, Ok(Done::HoldExtended(extended)) if extended.begun);
        let results = match result {
            Ok(Done::Renewed(renewed)) => vec![Some(renewed)],
            Ok(Done::HoldExtended(extended)) => vec![Some(&extended.renewed)],
            Ok(Done::RenewedMany(results)) => {
                results.iter().map(|result| result.as_ref().ok()).collect()
            }
            _ => vec![None],
        };
        let Some(all) = results.into_iter().collect::<Option<Vec<&Renewed>>>() else {
            self.say(|| format!("c{client} is told that its lease is over"));
            return self.client_releases(client, &holding);
        };
        let is_named = |((_, token), renewed): (&(_, _), &&Renewed)| *token == renewed.token;
        assert!(
            holding.holdings.iter().zip(&all).all(is_named),
            "S4: a renewal is of the lease named: {all:?}"
        );
        let left_ms = all.iter().map(|renewed| renewed.expires_in_ms).min().unwrap_or(0);
        let deadline = own_deadline(open.sent_at, left_ms).max(holding.deadline);
        let due = Mono(open.sent_at.0 + holding.ttl_ms * MS / 3);
        // A payment that has begun has its deadline, and is not renewed.
        let renew_at = if is_begun { deadline } else { due };
        let holding = Holding { is_confirmed: true, deadline, renew_at, ..holding };
        self.client_holds(client, holding);
    }
}
