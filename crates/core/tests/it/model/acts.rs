//! Makes the commands that the acts of a history stand for.

use super::{
    history::{Act, RESOURCES, Terms, Who},
    world::World,
};
use sereno_core::{
    command::{
        Abandon, Acquire, AcquireAll, Command, EndDeserted, Family, ForceRelease, LeaseRef,
        Operation, PutNamespace, Release, Renew, RenewMany, SetTokenFloor,
    },
    ids::{ClusterTime, LeaseId, ObjectId, Revision, Token},
    names::{Caller, Labels, NamespaceName, Owner, Reason, RequestId, ResourceName},
    policy::{Fencing, Policy},
    testing::lease_id,
};

pub(super) fn namespace(space: usize) -> NamespaceName {
    NamespaceName::new(["default", "shop", "unknown"][space]).expect("a name")
}

pub(super) fn resource(number: usize) -> ResourceName {
    ResourceName::new(["a", "b", "c"][number % RESOURCES]).expect("a name")
}

fn caller(number: usize) -> Caller {
    Caller::new(["", "bob", "eve"][number]).expect("a caller")
}

/// The policies that are switched between.
fn policy(number: usize) -> Policy {
    let plain = Policy::default();
    match number {
        0 => plain,
        1 => Policy { lock_delay_ms: 5_000, ..plain },
        2 => Policy { max_hold_ms: Some(15_000), default_ttl_ms: 10_000, ..plain },
        3 => Policy { fencing: Fencing::Enforced, fencing_required: true, ..plain },
        4 => Policy { max_leases: 2, lock_delay_ms: 500, ..plain },
        5 => Policy { max_waiters: 1, ..plain },
        6 => Policy { reply_records: 6, ..plain },
        7 => Policy { reply_endings_ms: 90_000, reply_refusals_ms: 120_000, ..plain },
        _ => Policy { min_ttl_ms: Some(5_000), default_ttl_ms: 5_000, max_ttl_ms: 10_000, ..plain },
    }
}

impl World {
    pub(super) fn now(&self, operation: Operation) -> Command {
        Command { caller: caller(0), born_at: self.scribe.state.time(), operation }
    }

    fn born(&self, age_ms: u64) -> ClusterTime {
        let now = self.scribe.state.time().0;
        // The very long ago is ahead of the log instead.
        ClusterTime(if age_ms == u64::MAX { now + 2_000 } else { now.saturating_sub(age_ms) })
    }

    fn request(&mut self, who: &Who) -> RequestId {
        let name = match who.request {
            Some(number) => format!("one-of-a-few-{number}"),
            None => {
                self.drawn += 1;
                format!("a-fresh-one-{}", self.drawn)
            }
        };
        let id = RequestId::new(&name).expect("a request id");
        self.requests.push((namespace(who.space), caller(who.caller), id.clone()));
        id
    }

    fn draw(&mut self, space: usize, resources: &[ResourceName]) -> LeaseId {
        self.drawn += 1;
        let lease_id = lease_id(self.drawn);
        for resource in resources {
            let lease = LeaseRef { resource: resource.clone(), lease_id };
            self.leases.push((namespace(space), lease));
        }
        lease_id
    }

    /// Drawn lately.
    fn lease(&self, back: usize, elsewhere: bool) -> (NamespaceName, LeaseRef) {
        let unheard = || {
            let lease = LeaseRef { resource: resource(0), lease_id: lease_id(u64::MAX) };
            (namespace(0), lease)
        };
        let at = self.leases.len().checked_sub(back + 1);
        let (mut space, mut lease) = at.map_or_else(unheard, |at| self.leases[at].clone());
        if elsewhere && back.is_multiple_of(2) {
            space = namespace(if space == namespace(0) { 1 } else { 0 });
        } else if elsewhere {
            lease.resource = resource(back);
        }
        (space, lease)
    }

    pub(super) fn command(&mut self, act: &Act) -> Command {
        let (mut born_at, mut by) = (self.born(0), caller(0));
        if let Act::Acquire { who, .. } | Act::AcquireAll { who, .. } = act {
            (born_at, by) = (self.born(who.age_ms), caller(who.caller));
        }
        let operation = match act {
            Act::Copy { back, repeated } => return self.copy(*back, *repeated),
            Act::Abandon { request, admin } => {
                let at = request.and_then(|back| self.requests.len().checked_sub(back + 1));
                let family = if *admin { Family::Admin } else { Family::Lock };
                let (namespace, request_id) = match at {
                    Some(at) => {
                        let (namespace, of, id) = self.requests[at].clone();
                        by = of;
                        (namespace, id)
                    }
                    None => {
                        let id = format!("one-of-a-few-{}", self.drawn % 4);
                        (namespace(0), RequestId::new(&id).expect("a request id"))
                    }
                };
                Operation::Abandon(Abandon { namespace, family, request_id })
            }
            _ => self.operation(act),
        };
        Command { caller: by, born_at, operation }
    }

    fn copy(&mut self, back: usize, repeated: bool) -> Command {
        let Some(at) = self.commands.len().checked_sub(back + 1) else {
            return self.command(&Act::Release { lease: 0, elsewhere: false });
        };
        let mut command = self.commands[at].clone();
        if repeated {
            command.born_at = self.born(0);
            match &mut command.operation {
                Operation::Acquire(op) => {
                    self.drawn += 1;
                    op.lease_id = lease_id(self.drawn);
                    op.wait_timeout_ms = op.wait_timeout_ms.saturating_add(back as u64) / 2;
                }
                Operation::AcquireAll(op) => {
                    self.drawn += 1;
                    op.lease_id = lease_id(self.drawn);
                }
                _ => {}
            }
        }
        command
    }

    fn acquire(
        &mut self,
        who: &Who,
        terms: &Terms,
        wait_timeout_ms: u64,
        name: &ResourceName,
    ) -> Acquire {
        let label = ("job".to_string(), "7".to_string());
        Acquire {
            namespace: namespace(who.space),
            resource: name.clone(),
            request_id: self.request(who),
            owner: Owner::new(&format!("owner-{}", self.drawn)).expect("an owner"),
            lease_id: self.draw(who.space, std::slice::from_ref(name)),
            lease_ttl_ms: terms.ttl_ms,
            wait_timeout_ms,
            max_hold_ms: terms.hold_ms,
            fencing: [Some(Fencing::Enforced), Some(Fencing::BestEffort), None]
                [usize::from(terms.fencing).min(2)],
            labels: Labels::new(terms.label.then_some(label)).expect("labels"),
        }
    }

    fn operation(&mut self, act: &Act) -> Operation {
        match act {
            Act::Acquire { who, terms, resource: name, wait_ms } => {
                Operation::Acquire(self.acquire(who, terms, *wait_ms, &resource(*name)))
            }
            Act::AcquireAll { who, terms, resources } => {
                let like = self.acquire(who, terms, 0, &resource(0));
                let resources: Vec<_> = resources.iter().map(|&number| resource(number)).collect();
                self.leases.pop();
                Operation::AcquireAll(AcquireAll {
                    namespace: like.namespace,
                    request_id: like.request_id,
                    owner: like.owner,
                    lease_id: self.draw(who.space, &resources),
                    resources,
                    lease_ttl_ms: like.lease_ttl_ms,
                    max_hold_ms: like.max_hold_ms,
                    fencing: like.fencing,
                    labels: like.labels,
                })
            }
            Act::Renew { lease, ttl_ms, elsewhere } => {
                let (namespace, lease) = self.lease(*lease, *elsewhere);
                Operation::Renew(Renew { namespace, lease, lease_ttl_ms: *ttl_ms })
            }
            Act::RenewMany { leases, ttl_ms } => {
                let leases = leases.iter().map(|&back| self.lease(back, false).1).collect();
                let (namespace, lease_ttl_ms) = (self.lease(0, false).0, *ttl_ms);
                Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms })
            }
            Act::Release { lease, elsewhere } => {
                let (namespace, lease) = self.lease(*lease, *elsewhere);
                Operation::Release(Release { namespace, lease })
            }
            Act::ForceRelease { space, resource: name, stale, request } => {
                let name = resource(*name);
                let holder = self.reference.holder(*space, &name);
                let held = holder.map(|(index, part)| self.reference.shown(index, part).token);
                let token = if *stale { self.watcher.an_old_token(held) } else { held };
                Operation::ForceRelease(ForceRelease {
                    namespace: namespace(*space),
                    resource: name,
                    token: token.unwrap_or(Token(1)),
                    request_id: RequestId::new(&format!("forced-{request}")).expect("an id"),
                    reason: Reason::new("stuck").expect("a reason"),
                })
            }
            Act::Desert { claim, before } => {
                let live: Vec<_> =
                    self.reference.deadlines().iter().map(|&(_, object)| object).collect();
                let claim = if live.is_empty() { 1 } else { live[claim.index(live.len())] };
                let asked = self.reference.by_object(claim);
                let asked = asked.map_or(0, |at| self.reference.requests[at].claim().asked);
                let asked_at = Revision(asked.saturating_sub(*before));
                Operation::EndDeserted(EndDeserted { claim: ObjectId(claim), asked_at })
            }
            Act::Policy { space, policy: number, stale } => {
                let namespace = namespace(*space % 2);
                let version = self
                    .reference
                    .space(&namespace)
                    .map_or(0, |at| self.reference.spaces[at].version);
                let expected_version = version + u64::from(*stale);
                let policy = policy(*number);
                Operation::PutNamespace(PutNamespace { namespace, expected_version, policy })
            }
            Act::Floor { request, ahead_us } => {
                let request_id = RequestId::new(&format!("floored-{request}")).expect("an id");
                let floor = self.scribe.state.last_token().0.saturating_add_signed(*ahead_us);
                Operation::SetTokenFloor(SetTokenFloor { request_id, floor: Token(floor) })
            }
            Act::Level { to } => Operation::RaiseLevel { level: *to },
            Act::Abandon { .. } | Act::Copy { .. } => unreachable!("made elsewhere"),
        }
    }
}
