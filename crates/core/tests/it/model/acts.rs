//! Makes the commands that the acts of a history stand for.

use super::{
    history::{Act, FAMILIES, RESOURCES, Terms, Who},
    reference::At,
    world::World,
};
use sereno_core::{
    command::{
        Abandon, Acquire, AcquireAll, Command, ElectionCommand, EndDeserted, Family, ForceRelease,
        HoldCommand, JobCommand, LeaseRef, Operation, PutNamespace, Release, Renew, RenewMany,
        SetTokenFloor,
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

pub(super) fn caller(number: usize) -> Caller {
    Caller::new(["", "bob", "eve"][number]).expect("a caller")
}

/// The policies that are switched between.
pub(super) fn policy(number: usize) -> Policy {
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

    fn request(&mut self, family: Family, who: &Who) -> RequestId {
        self.request_id(family, &namespace(who.space), who.caller, who.request)
    }

    /// One of a few, or a fresh one.
    pub(super) fn request_id(
        &mut self,
        family: Family,
        namespace: &NamespaceName,
        by: usize,
        number: Option<usize>,
    ) -> RequestId {
        let name = match number {
            Some(number) => format!("one-of-a-few-{number}"),
            None => {
                self.drawn += 1;
                format!("a-fresh-one-{}", self.drawn)
            }
        };
        let id = RequestId::new(&name).expect("a request id");
        self.requests.push((namespace.clone(), caller(by), family, id.clone()));
        id
    }

    pub(super) fn draw(
        &mut self,
        family: Family,
        space: usize,
        resources: &[ResourceName],
    ) -> LeaseId {
        self.drawn += 1;
        let lease_id = lease_id(self.drawn);
        for resource in resources {
            let lease = LeaseRef { resource: resource.clone(), lease_id };
            self.leases.push((namespace(space), family, lease));
        }
        lease_id
    }

    /// Drawn lately.
    fn lease(&self, back: usize, elsewhere: bool) -> (NamespaceName, Family, LeaseRef) {
        self.lease_among(&FAMILIES, back, elsewhere)
    }

    /// The same of some families.
    pub(super) fn lease_among(
        &self,
        families: &[Family],
        back: usize,
        elsewhere: bool,
    ) -> (NamespaceName, Family, LeaseRef) {
        let unheard = || {
            let lease = LeaseRef { resource: resource(0), lease_id: lease_id(u64::MAX) };
            (namespace(0), families[0], lease)
        };
        let of = |(_, family, _): &&(NamespaceName, Family, LeaseRef)| families.contains(family);
        let drawn = self.leases.iter().rev().filter(of).nth(back);
        let (mut space, mut family, mut lease) = drawn.cloned().unwrap_or_else(unheard);
        match (elsewhere, back % 3) {
            (false, _) => {}
            (true, 0) => space = namespace(if space == namespace(0) { 1 } else { 0 }),
            (true, 1) => lease.resource = resource(back),
            (true, _) => family = families[back % families.len()],
        }
        (space, family, lease)
    }

    pub(super) fn command(&mut self, act: &Act) -> Command {
        let (mut born_at, mut by) = (self.born(0), caller(0));
        if let Act::Acquire { who, .. }
        | Act::AcquireAll { who, .. }
        | Act::Campaign { who, .. }
        | Act::Hold { who, .. }
        | Act::ClaimRun { who, .. } = act
        {
            (born_at, by) = (self.born(who.age_ms), caller(who.caller));
        }
        let operation = match act {
            Act::Copy { back, repeated } => return self.copy(*back, *repeated),
            Act::Abandon { request, admin } => {
                let at = request.and_then(|back| self.requests.len().checked_sub(back + 1));
                let (namespace, family, request_id) = match at {
                    Some(at) => {
                        let (namespace, of, family, id) = self.requests[at].clone();
                        by = of;
                        (namespace, family, id)
                    }
                    None => {
                        let id = format!("one-of-a-few-{}", self.drawn % 4);
                        let family = FAMILIES[self.drawn as usize / 4 % FAMILIES.len()];
                        (namespace(0), family, RequestId::new(&id).expect("a request id"))
                    }
                };
                let family = if *admin { Family::Admin } else { family };
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
                Operation::Election(ElectionCommand::Campaign(op)) => {
                    self.drawn += 1;
                    op.lease_id = lease_id(self.drawn);
                    op.wait_timeout_ms = op.wait_timeout_ms.saturating_add(back as u64) / 2;
                }
                Operation::Hold(HoldCommand::Hold(op)) => {
                    self.drawn += 1;
                    op.lease_id = lease_id(self.drawn);
                }
                Operation::Job(JobCommand::ClaimRun(op)) => {
                    self.drawn += 1;
                    op.lease_id = lease_id(self.drawn);
                }
                // Drawn by the door, and by another one than before.
                Operation::Job(JobCommand::RunNow(op)) => op.slot.0 += 1,
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
            request_id: self.request(Family::Lock, who),
            owner: Owner::new(&format!("owner-{}", self.drawn)).expect("an owner"),
            lease_id: self.draw(Family::Lock, who.space, std::slice::from_ref(name)),
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
                    lease_id: self.draw(Family::Lock, who.space, &resources),
                    resources,
                    lease_ttl_ms: like.lease_ttl_ms,
                    max_hold_ms: like.max_hold_ms,
                    fencing: like.fencing,
                    labels: like.labels,
                })
            }
            Act::Renew { lease, ttl_ms, elsewhere } => {
                let (namespace, family, lease) = self.lease(*lease, *elsewhere);
                let op = Renew { namespace, lease, lease_ttl_ms: *ttl_ms };
                match family {
                    Family::Election => Operation::Election(ElectionCommand::Renew(op)),
                    Family::Job => Operation::Job(JobCommand::RenewRun(op)),
                    _ => Operation::Renew(op),
                }
            }
            Act::RenewMany { leases, ttl_ms } => {
                let leases = leases.iter().map(|&back| self.lease(back, false).2).collect();
                let (namespace, lease_ttl_ms) = (self.lease(0, false).0, *ttl_ms);
                Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms })
            }
            Act::Release { lease, elsewhere } => {
                let (namespace, family, lease) = self.lease(*lease, *elsewhere);
                let op = Release { namespace, lease };
                match family {
                    Family::Election => Operation::Election(ElectionCommand::Resign(op)),
                    _ => Operation::Release(op),
                }
            }
            Act::ForceRelease { family, space, resource: name, stale, request } => {
                let name = resource(*name);
                let at = At { space: *space, family: *family };
                let holder = self.reference.holder(at, &name);
                let held = holder.map(|(index, part)| self.reference.shown(index, part).token);
                let token = if *stale { self.watcher.an_old_token(held) } else { held };
                let op = ForceRelease {
                    namespace: namespace(*space),
                    resource: name,
                    token: token.unwrap_or(Token(1)),
                    request_id: RequestId::new(&format!("forced-{request}")).expect("an id"),
                    reason: Reason::new("stuck").expect("a reason"),
                };
                match family {
                    Family::Election => Operation::Election(ElectionCommand::ForceRelease(op)),
                    Family::Hold => Operation::Hold(HoldCommand::ForceRelease(op)),
                    Family::Job => Operation::Job(JobCommand::ForceRelease(op)),
                    _ => Operation::ForceRelease(op),
                }
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
            Act::Policy { space, policy, stale } => {
                Operation::PutNamespace(self.put_namespace(*space, *policy, *stale))
            }
            Act::Floor { request, ahead_us } => {
                let request_id = RequestId::new(&format!("floored-{request}")).expect("an id");
                let floor = self.scribe.state.last_token().0.saturating_add_signed(*ahead_us);
                Operation::SetTokenFloor(SetTokenFloor { request_id, floor: Token(floor) })
            }
            Act::Level { to } => Operation::RaiseLevel { level: *to },
            Act::Abandon { .. } | Act::Copy { .. } => unreachable!("made elsewhere"),
            _ => self.face_operation(act),
        }
    }

    pub(super) fn put_namespace(&self, space: usize, number: usize, stale: bool) -> PutNamespace {
        let namespace = namespace(space % 2);
        let known = self.reference.space(&namespace);
        let version = known.map_or(0, |at| self.reference.spaces[at].version);
        let (expected_version, policy) = (version + u64::from(stale), policy(number));
        PutNamespace { namespace, expected_version, policy }
    }
}
