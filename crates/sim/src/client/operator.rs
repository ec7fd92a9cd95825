//! Operators: forced releases, policies of namespaces while they are in use, the floor of tokens, levels.

use super::{Job, Then};
use crate::{event::Seen, place::Place, world::World};
use sereno_core::{
    LEVEL_MAX,
    command::{
        ElectionCommand, Family, ForceRelease, HoldCommand, JobCommand, Operation, PutNamespace,
        SetTokenFloor,
    },
    ids::Token,
    names::Reason,
    policy::{Fencing, Policy},
};
use sereno_node::clock::Mono;

const READING_MS: u64 = 8_000;
const DOING_MS: u64 = 9_000;
/// A floor lies so far ahead of the wall clock at most.
const FLOOR_AHEAD_US: u64 = 600_000_000;
/// A floor that is refused: years ahead.
const FLOOR_TOO_FAR_US: u64 = 3 * 366 * 24 * 3_600 * 1_000_000;

impl World {
    /// Reads a lock and its namespace, and then does something about one of them; or raises the floor of tokens.
    pub(super) fn operator_begins(&mut self, client: usize, now: Mono) {
        if self.config.upgraded_from.is_some() && self.random.in_1000(120) {
            let operation = Operation::RaiseLevel { level: LEVEL_MAX };
            return self.client_does(client, vec![operation], DOING_MS);
        }
        let floors = if self.config.upgraded_from.is_some() { 150 } else { 40 };
        if self.config.raises_floor && self.random.in_1000(floors) {
            let operation = self.set_token_floor(client);
            return self.client_does(client, vec![operation], DOING_MS);
        }
        let family = match self.random.in_1000(self.config.faces) {
            true => [Family::Election, Family::Hold, Family::Job][self.random.below(3)],
            false => Family::Lock,
        };
        let (namespace, resource) = (self.some_namespace(), self.some_resource());
        let place = Place { family, namespace, resource };
        let then = match self.random.between(0, 99) {
            0..=29 => Then::ForceRelease,
            30..=44 => Then::PutNamespace,
            _ => Then::Nothing,
        };
        let until = now.plus_ms(READING_MS);
        self.clients[client].job = Job::Reading { place: place.clone(), then, until };
        self.send_read(client, place);
    }

    fn set_token_floor(&mut self, client: usize) -> Operation {
        let wall_us = self.clients[client].clock.now(self.agenda.now).wall_us;
        let ahead_us = match self.random.in_1000(100) {
            true => FLOOR_TOO_FAR_US,
            false => self.random.between(0, FLOOR_AHEAD_US),
        };
        let (request_id, floor) = (self.request_id(), Token(wall_us + ahead_us));
        Operation::SetTokenFloor(SetTokenFloor { request_id, floor })
    }

    pub(super) fn operator_saw(&mut self, client: usize, place: &Place, then: Then, seen: Seen) {
        let namespace = place.namespace.clone();
        let operation = match (then, seen.token) {
            (Then::ForceRelease, Some(token)) => {
                self.truth.checks.told.forced.insert(token);
                let reason = Reason::new("an operator wants it").expect("a valid reason");
                let (resource, request_id) = (place.resource.clone(), self.request_id());
                let force = ForceRelease { namespace, resource, token, request_id, reason };
                match place.family {
                    Family::Election => Operation::Election(ElectionCommand::ForceRelease(force)),
                    Family::Hold => Operation::Hold(HoldCommand::ForceRelease(force)),
                    Family::Job => Operation::Job(JobCommand::ForceRelease(force)),
                    Family::Lock | Family::Admin => Operation::ForceRelease(force),
                    Family::Quota => unreachable!("no client asks for quotas"),
                }
            }
            (Then::PutNamespace, _) => {
                let (expected_version, policy) = (seen.version, self.some_policy());
                Operation::PutNamespace(PutNamespace { namespace, expected_version, policy })
            }
            (Then::ForceRelease | Then::Nothing, _) => return self.client_rests(client),
        };
        self.client_does(client, vec![operation], DOING_MS);
    }

    /// Most rules are as they are without an operator: where all are narrow, little happens.
    pub(super) fn some_policy(&mut self) -> Policy {
        let mut chosen = |per_1000: u64| self.random.in_1000(per_1000);
        let (is_short, is_bounded, is_few) = (chosen(250), chosen(250), chosen(150));
        let (is_fenced, is_rated, is_delayed) = (chosen(120), chosen(80), chosen(350));
        let max_ttl_ms = if is_short { self.random.between(1_000, 4_000) } else { 60_000 };
        Policy {
            min_ttl_ms: Some(1_000),
            default_ttl_ms: max_ttl_ms.min(10_000),
            max_ttl_ms,
            max_hold_ms: is_bounded.then(|| self.random.between(1_000, 10_000)),
            lock_delay_ms: if is_delayed { self.random.between(100, 3_000) } else { 0 },
            fencing: if is_fenced { Fencing::Enforced } else { Fencing::BestEffort },
            fencing_required: is_fenced,
            max_leases: if is_few { self.random.between(0, 2) } else { 1_000_000 },
            max_waiters: if is_few { self.random.between(0, 2) } else { 1_000_000 },
            requests_per_second: is_rated.then(|| self.random.between(2, 30)),
            ..Policy::default()
        }
    }
}
