//! A crowd: over a thousand leases that end at one moment, more than one entry's sweep takes. Last of them is a lock
//! that somebody waits for, and just then others ask for it at once.

use crate::{
    clock::{MS, S},
    event::{Attempt, Call, Event, To},
    host::For,
    world::World,
};
use sereno_core::{
    command::{Acquire, Operation},
    ids::LeaseId,
    limits::SWEEP_OBJECTS_MAX,
    names::{Caller, Labels, Owner, ResourceName},
};

const TTL_MS: u64 = 2_000;
/// From so long before the end on, and for so long, others ask: clocks are off, and entries take a while.
const EARLY_NS: u64 = 25 * MS;
const LATE_NS: u64 = 90 * MS;
const BETWEEN_NS: u64 = 1_500_000;

impl World {
    pub(crate) fn plan_crowd(&mut self) {
        let delay = self.random.between(3 * S, 9 * S);
        self.agenda.after(delay, Event::CrowdComes);
    }

    pub(crate) fn crowd_comes(&mut self) {
        if self.is_healing {
            return;
        }
        self.plan_crowd();
        let Some(leader) = self.leader_now().filter(|&node| !self.hosts[node].is_paused) else {
            return;
        };
        self.say(|| format!("** a crowd comes to n{leader}"));
        let to = self.to(leader);
        // All in one entry, so that all end at one moment; and a wait with them.
        for number in 0..SWEEP_OBJECTS_MAX + 5 {
            self.crowd_calls(to, &format!("crowd/{number}"), 0);
        }
        self.crowd_calls(to, "crowd/0", TTL_MS);
        self.crowd_calls(to, "crowd", 0);
        self.crowd_calls(to, "crowd", 8_000);
        self.advance(to.node);
        let mut delay = TTL_MS * MS - EARLY_NS;
        while delay < TTL_MS * MS + LATE_NS {
            self.agenda.after(delay, Event::CrowdAsks(to));
            delay += BETWEEN_NS;
        }
    }

    pub(crate) fn crowd_asks(&mut self, to: To) {
        if self.to(to.node) == to && !self.hosts[to.node].is_paused {
            self.crowd_calls(to, "crowd", 0);
            self.advance(to.node);
        }
    }

    /// One that nobody listens to the answer of.
    fn crowd_calls(&mut self, to: To, resource: &str, wait_ms: u64) {
        let acquire = Acquire {
            namespace: self.namespaces[0].clone(),
            resource: ResourceName::new(resource).expect("a valid name"),
            request_id: self.request_id(),
            owner: Owner::new("crowd").expect("a valid owner"),
            lease_id: LeaseId(self.random.id()),
            lease_ttl_ms: Some(TTL_MS),
            wait_timeout_ms: wait_ms,
            max_hold_ms: None,
            fencing: None,
            labels: Labels::default(),
        };
        let attempt = Attempt { client: usize::MAX, life: 0, number: 0 };
        let operation = Operation::Acquire(acquire);
        let call = Call { attempt, operation, born_at: None, timeout_ms: 5_000, hold_ms: wait_ms };
        let caller = Caller::new("").expect("anonymous is a caller");
        self.open_call(to.node, For::Crowd, caller, call, false);
    }
}
