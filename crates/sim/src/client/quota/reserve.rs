//! Asking for capacity: all items or none, now or after a wait; and giving up.

use super::{Keeping, namespace};
use crate::{
    checks::request_key,
    client::{Job, ask::ENDING_MS},
    world::World,
};
use sereno_core::{
    command::{Abandon, Family, Operation, QuotaCommand, Reserve},
    ids::ReservationId,
    names::Labels,
    outcome::Reserved,
};
use sereno_node::clock::Mono;

/// An ask under way.
#[derive(Clone, Debug)]
pub(crate) struct Reserving {
    reserve: Reserve,
    hold_ms: u64,
    until: Mono,
}

impl World {
    pub(super) fn reserve_begins(&mut self, client: usize, now: Mono) {
        let items = (0..[1, 1, 1, 2, 2, 3][self.random.below(6)]).map(|_| self.some_item());
        let items = items.collect();
        let waits = self.random.in_1000(500);
        let is_bounded = self.random.in_1000(200);
        // Some outlast the grace of those that nobody asks for.
        let longest_ms = if self.random.in_1000(200) { 20_000 } else { 9_000 };
        let reserve = Reserve {
            namespace: namespace(),
            owner: self.some_team(),
            items,
            request_id: self.request_id(),
            reservation: ReservationId::default(),
            ttl_ms: self.random.between(1_500, longest_ms),
            max_lifetime_ms: is_bounded.then(|| self.random.between(2_000, 12_000)),
            on_expiry: self.some_fate(),
            priority: self.random.between(0, 3) as u8,
            wait_timeout_ms: if waits { self.random.between(300, longest_ms) } else { 0 },
            labels: Labels::default(),
        };
        let hold_ms = if waits { self.random.between(0, 5_000) } else { 0 };
        let until = now.plus_ms(self.random.between(100, 20_000));
        let reserving = Reserving { reserve, hold_ms, until };
        self.clients[client].job = Job::Reserving(reserving.clone());
        self.goes_on_reserving(client, reserving, now);
    }

    pub(in crate::client) fn goes_on_reserving(
        &mut self,
        client: usize,
        reserving: Reserving,
        now: Mono,
    ) {
        if reserving.until <= now {
            return self.abandons_reserve(client, &reserving, now);
        }
        // By the door, anew for each call.
        let reservation = ReservationId(self.random.id());
        let reserve = Reserve { reservation, ..reserving.reserve };
        let longest = reserving.hold_ms + self.random.between(800, 5_000);
        let is_hasty = self.random.in_1000(150);
        let timeout_ms = if is_hasty { self.random.between(5, longest) } else { longest };
        let operation = Operation::Quota(QuotaCommand::Reserve(reserve));
        self.send(client, operation, timeout_ms, reserving.hold_ms);
    }

    fn abandons_reserve(&mut self, client: usize, reserving: &Reserving, now: Mono) {
        let request_id = reserving.reserve.request_id.clone();
        self.say(|| format!("c{client} abandons {request_id}"));
        let key = request_key(Family::Quota, &namespace(), &request_id);
        self.truth.checks.told.abandoned.insert(key);
        let abandon = Abandon { namespace: namespace(), family: Family::Quota, request_id };
        let operations = vec![Operation::Abandon(abandon)];
        let until = now.plus_ms(ENDING_MS);
        self.clients[client].job = Job::Doing { operations, until };
    }

    /// It has what it asked for.
    pub(in crate::client) fn reserved(
        &mut self,
        client: usize,
        reserving: &Reserving,
        reserved: &Reserved,
        sent_at: Mono,
    ) {
        let now = self.mono_of(client);
        if self.random.in_1000(40) {
            return self.abandons_reserve(client, reserving, now);
        }
        let has_waited = reserving.reserve.wait_timeout_ms > 0;
        let steps = self.random.between(0, 4);
        let fence = self.random.in_1000(800).then_some(reserved.fence);
        let owner = reserving.reserve.owner.clone();
        let keeping = Keeping::new(reserved, owner, fence, steps, has_waited);
        self.keeps(client, keeping, reserved, sent_at);
    }
}
