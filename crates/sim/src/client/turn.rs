//! A client's turn: what is due by its own clock, and when it looks again. And its pauses and its death.

use super::{Job, Open};
use crate::{
    clock::MS,
    event::{Arrival, Event, ToClient},
    world::World,
};
use sereno_node::clock::Mono;

impl World {
    pub(super) fn mono_of(&self, client: usize) -> Mono {
        self.clients[client].clock.mono(self.agenda.now)
    }

    /// Something has reached a client.
    pub(crate) fn client(&mut self, client: usize, life: u64, what: ToClient) {
        let it = &mut self.clients[client];
        if it.life != life {
            return;
        }
        if let ToClient::Wake = what {
            if it.wake_at != Some(self.agenda.now) {
                return;
            }
            it.wake_at = None;
        }
        if it.is_paused {
            it.backlog.push(what);
            return;
        }
        self.client_takes(client, what);
        self.client_turn(client);
    }

    /// It goes on. Its own clock comes first, for what it believes must not depend on old answers; but a write that
    /// it was about to send it sends.
    pub(crate) fn client_resume(&mut self, client: usize) {
        if !std::mem::take(&mut self.clients[client].is_paused) {
            return;
        }
        self.client_turn(client);
        for what in std::mem::take(&mut self.clients[client].backlog) {
            self.client_takes(client, what);
        }
        self.client_turn(client);
    }

    /// It dies, and somebody else comes who knows nothing.
    pub(crate) fn client_dies(&mut self, client: usize) {
        self.say(|| format!("c{client} dies"));
        let closes = self.random.in_1000(500);
        if let Some(open) = self.clients[client].open.take()
            && closes
        {
            self.hang_up_call(client, &open);
        }
        let it = &mut self.clients[client];
        it.life += 1;
        (it.job, it.told, it.wake_at) = (Job::Idle, None, None);
        (it.is_paused, it.backlog) = (false, Vec::new());
        self.client_turn(client);
    }

    fn hang_up_call(&mut self, client: usize, open: &Open) {
        if self.net.client_cut.contains(&(client, open.node)) || self.random.in_1000(50) {
            return;
        }
        let (to, delay) = (self.to(open.node), self.random.skewed(MS / 5, 30 * MS));
        self.agenda.after(delay, Event::Arrive(to, Arrival::Cancelled(open.attempt)));
    }

    /// Does what is due, and plans when to look again.
    pub(crate) fn client_turn(&mut self, client: usize) {
        let now = self.mono_of(client);
        if let Some(open) = &self.clients[client].open
            && open.ends_at <= now
        {
            self.attempt_over(client, true);
        }
        self.client_uses(client, now);
        if self.clients[client].open.is_none() && self.clients[client].next_at <= now {
            self.client_tries(client, now);
        }
        self.client_plans(client);
    }

    fn client_plans(&mut self, client: usize) {
        let it = &mut self.clients[client];
        let open_at = it.open.as_ref().map(|open| open.ends_at);
        let job_at = match &it.job {
            Job::Holding(holding) => {
                Some(holding.deadline.min(holding.release_at).min(holding.write_at))
            }
            _ => None,
        };
        let next_at = match (&it.open, &it.job) {
            (Some(_), _) => None,
            (None, Job::Holding(holding)) => Some(it.next_at.max(holding.renew_at)),
            (None, Job::Idle) if it.is_closing => None,
            (None, _) => Some(it.next_at),
        };
        let Some(at) = [open_at, job_at, next_at].into_iter().flatten().min() else { return };
        // Never at once again: a turn leaves nothing undone.
        let at = it.clock.real(at).max(self.agenda.now + MS / 10);
        if it.wake_at.is_none_or(|planned| at < planned) {
            it.wake_at = Some(at);
            let event = Event::Client(client, it.life, ToClient::Wake);
            self.agenda.at(at, event);
        }
    }

    /// The attempt comes to nothing: another may follow.
    pub(super) fn attempt_over(&mut self, client: usize, hangs_up: bool) {
        let Some(open) = self.clients[client].open.take() else { return };
        if hangs_up {
            self.hang_up_call(client, &open);
        }
        let pause_ms = self.random.between(20, 400);
        self.clients[client].next_at = self.mono_of(client).plus_ms(pause_ms);
    }

    fn client_tries(&mut self, client: usize, now: Mono) {
        match self.clients[client].job.clone() {
            Job::Idle if self.clients[client].is_closing => {}
            Job::Idle => self.client_begins(client, now),
            Job::Asking(asking) if asking.until <= now => {
                self.client_abandons(client, asking, now);
                self.client_tries(client, now);
            }
            Job::Asking(asking) => self.client_asks(client, &asking),
            Job::Holding(holding) if holding.renew_at <= now => {
                self.client_renews(client, &holding);
            }
            Job::Holding(_) => {}
            Job::Reserving(reserving) => self.goes_on_reserving(client, reserving, now),
            Job::Keeping(keeping) => self.goes_on_keeping(client, keeping, now),
            Job::Doing { until, .. } | Job::Reading { until, .. } if until <= now => {
                self.client_rests(client);
            }
            Job::Doing { operations, .. } => match operations.last() {
                Some(operation) => self.send(client, operation.clone(), 1_500, 0),
                None => self.client_rests(client),
            },
            Job::Reading { place, .. } => self.send_read(client, place),
        }
    }

    /// Until each is answered, or for so long.
    pub(super) fn client_does(
        &mut self,
        client: usize,
        operations: Vec<sereno_core::command::Operation>,
        for_ms: u64,
    ) {
        let now = self.mono_of(client);
        let it = &mut self.clients[client];
        it.job = Job::Doing { operations, until: now.plus_ms(for_ms) };
        it.next_at = now;
    }

    pub(super) fn client_rests(&mut self, client: usize) {
        let pause_ms = self.random.between(1, self.config.rests_ms);
        let now = self.mono_of(client);
        let it = &mut self.clients[client];
        it.job = Job::Idle;
        it.next_at = now.plus_ms(pause_ms);
    }
}
