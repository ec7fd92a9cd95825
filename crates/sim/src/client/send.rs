//! Calls on their way to a node, and the copies that a network makes of them.

use super::Open;
use crate::{
    clock::MS,
    event::{Arrival, Attempt, Call, Event, ToClient},
    place::Place,
    world::World,
};
use sereno_core::{
    command::{ElectionCommand, HoldCommand, JobCommand, Operation, QuotaCommand},
    ids::{LeaseId, ReservationId},
};

/// `bornAt` is sent back only while it is this fresh.
const BORN_AT_FRESH_MS: u64 = 10_000;
/// So late does a copy arrive at most: long after the reply memory.
const COPY_MS: u64 = 120_000;

impl World {
    fn open(&mut self, client: usize, timeout_ms: u64) -> (Attempt, usize, Option<u64>) {
        let node = self.random.below(self.hosts.len());
        let now = self.mono_of(client);
        let (floor, log) = (self.truth.checks.answers.floor, self.logs);
        let it = &mut self.clients[client];
        it.attempts += 1;
        let attempt = Attempt { client, life: it.life, number: it.attempts };
        let ends_at = now.plus_ms(timeout_ms);
        it.open = Some(Open { attempt, node, sent_at: now, ends_at, floor, log });
        if self.net.client_cut.contains(&(client, node)) {
            return (attempt, node, None);
        }
        if self.hosts[node].process.is_none() {
            let event = Event::Client(client, attempt.life, ToClient::Broken(attempt));
            self.agenda.after(MS, event);
            return (attempt, node, None);
        }
        let delay = self.random.skewed(MS / 5, 30 * MS);
        (attempt, node, Some(delay))
    }

    pub(super) fn send(
        &mut self,
        client: usize,
        operation: Operation,
        timeout_ms: u64,
        hold_ms: u64,
    ) {
        let (attempt, node, delay) = self.open(client, timeout_ms);
        self.say(|| format!("c{client} -> n{node} {}", super::words::operation(&operation)));
        let now = self.mono_of(client);
        let told = self.clients[client].told;
        let is_fresh = |at| now.since_ns(at) < BORN_AT_FRESH_MS * MS;
        let born_at = told.filter(|&(_, at)| is_fresh(at)).map(|(time, _)| time);
        let Some(delay) = delay else { return };
        let call = Call { attempt, operation, born_at, timeout_ms, hold_ms };
        if self.random.in_1000(self.config.copies) {
            self.copy(&call);
        }
        let to = self.to(node);
        self.agenda.after(delay, Event::Arrive(to, Arrival::Call(Box::new(call))));
    }

    /// A network delivers a copy as well, at some node: at once, or much later.
    fn copy(&mut self, call: &Call) {
        let mut copy = call.clone();
        // The door that takes it draws another lease id.
        let lease_id = LeaseId(self.random.id());
        match &mut copy.operation {
            Operation::Acquire(acquire) => acquire.lease_id = lease_id,
            Operation::AcquireAll(acquire) => acquire.lease_id = lease_id,
            Operation::Election(ElectionCommand::Campaign(op)) => op.lease_id = lease_id,
            Operation::Hold(HoldCommand::Hold(op)) => op.lease_id = lease_id,
            Operation::Job(JobCommand::ClaimRun(op)) => op.lease_id = lease_id,
            Operation::Quota(QuotaCommand::Reserve(op)) => {
                op.reservation = ReservationId(lease_id.0)
            }
            Operation::Quota(QuotaCommand::Commit(op)) => op.readmitted = ReservationId(lease_id.0),
            Operation::Quota(QuotaCommand::ShareGrant(op)) => op.share = ReservationId(lease_id.0),
            _ => {}
        }
        let most = match self.random.between(0, 9) {
            0..=4 => 50 * MS,
            5..=7 => COPY_MS / 2 * MS,
            _ => COPY_MS * MS,
        };
        let late = self.random.between(MS / 5, most);
        let node = self.random.below(self.hosts.len());
        self.agenda.after(late, Event::CopyReaches(node, Box::new(copy)));
    }

    pub(super) fn send_read(&mut self, client: usize, place: Place) {
        let timeout_ms = 2_500;
        let (attempt, node, delay) = self.open(client, timeout_ms);
        if let Some(delay) = delay {
            let to = self.to(node);
            let read = Arrival::Read { attempt, timeout_ms, place };
            self.agenda.after(delay, Event::Arrive(to, read));
        }
    }
}
