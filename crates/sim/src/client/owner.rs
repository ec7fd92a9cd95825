//! Instances of a shop, any of which acts for any buyer.

use super::{Asking, Holding, Job, What, ask::ENDING_MS};
use crate::world::World;
use sereno_core::{
    command::{
        BeginHold, Hold, HoldCommand, HoldRef, Operation, PutHoldPolicy, PutNamespace, ReleaseHold,
        RenewHold,
    },
    ids::{LeaseId, Token},
    names::{Labels, NamespaceName, Owner, ResourceName},
    outcome::Held,
    policy::HoldPolicy,
    query::ListHolds,
};
use sereno_node::clock::Mono;

const BUYERS: usize = 3;

impl World {
    pub(super) fn hold_begins(&mut self, client: usize, now: Mono) {
        let buyer = self.random.below(BUYERS);
        let owner = Owner::new(&format!("buyer-{buyer}")).expect("a valid owner");
        let namespace = self.some_namespace();
        let takes_all = self.random.in_1000(250);
        let resources = if takes_all { self.some_resources() } else { vec![self.some_resource()] };
        let replaces = match self.random.in_1000(300) {
            true => self.holds_of(&namespace, &owner, &resources),
            false => Vec::new(),
        };
        let asking = Asking {
            what: What::Hold { owner, replaces },
            namespace,
            resources,
            request_id: self.request_id(),
            ttl_ms: self.random.between(1_500, 12_000),
            wait_ms: 0,
            hold_ms: 0,
            max_hold_ms: self.some_max_hold(),
            fencing: None,
            keeps_ms: self.random.between(20, self.config.keeps_ms),
            until: now.plus_ms(self.random.between(100, 30_000)),
        };
        self.clients[client].job = Job::Asking(asking.clone());
        self.client_asks(client, &asking);
    }

    /// What a buyer has as the catalogue shows it, mostly with the fence that the shop has kept.
    fn holds_of(
        &mut self,
        namespace: &NamespaceName,
        owner: &Owner,
        but: &[ResourceName],
    ) -> Vec<HoldRef> {
        let list = ListHolds {
            namespace: namespace.clone(),
            prefix: String::new(),
            owner: Some(owner.clone()),
            limit: 2,
            after: String::new(),
        };
        let page = self.truth.state.list_holds(&list);
        let has_fence = self.random.in_1000(800);
        let of = |view: sereno_core::query::LockView| {
            let token = view.holder.map(|holder| holder.holder.token);
            HoldRef { resource: view.resource, fence: token.filter(|_| has_fence) }
        };
        let all = page.into_iter().flat_map(|page| page.holds).map(of);
        all.filter(|one| !but.contains(&one.resource)).collect()
    }

    pub(super) fn take_hold(
        &mut self,
        asking: &Asking,
        owner: &Owner,
        replaces: &[HoldRef],
    ) -> Operation {
        let lease_id = LeaseId(self.random.id());
        Operation::Hold(HoldCommand::Hold(Hold {
            namespace: asking.namespace.clone(),
            resources: asking.resources.clone(),
            owner: owner.clone(),
            request_id: asking.request_id.clone(),
            lease_id,
            ttl_ms: asking.ttl_ms,
            max_hold_ms: asking.max_hold_ms,
            replaces: replaces.to_vec(),
            labels: Labels::default(),
        }))
    }

    /// Another instance has it for the same buyer: this one sees to what the buyer wants now.
    pub(super) fn acts_for_owner(&mut self, client: usize, asking: &Asking, held: &Held) {
        let (resource, token) = held.grant.holdings[0].clone();
        let (namespace, owner) = (asking.namespace.clone(), held.owner.clone());
        let has_fence = self.random.in_1000(700);
        let hold = HoldRef { resource, fence: has_fence.then_some(token) };
        let request_id = self.request_id();
        let operation = match self.random.between(0, 9) {
            0..=3 => return self.client_rests(client),
            4..=5 => {
                HoldCommand::Renew(RenewHold { namespace, hold, owner, ttl_ms: None, request_id })
            }
            6..=7 => {
                let ttl_ms = self.random.between(2_000, 15_000);
                HoldCommand::Begin(BeginHold { namespace, hold, owner, ttl_ms, request_id })
            }
            _ => HoldCommand::Release(ReleaseHold { namespace, hold, owner, request_id }),
        };
        self.client_does(client, vec![Operation::Hold(operation)], ENDING_MS);
    }

    /// A renewal, or the payment.
    pub(super) fn renew_hold(
        &mut self,
        holding: &Holding,
        owner: &Owner,
        ttl_ms: Option<u64>,
    ) -> Operation {
        let (namespace, owner) = (holding.namespace.clone(), owner.clone());
        let (resource, token) = holding.holdings[0].clone();
        let (hold, request_id) = (named(resource, token), self.request_id());
        if self.random.in_1000(200) {
            let ttl_ms = self.random.between(2_000, 15_000);
            let begin = BeginHold { namespace, hold, owner, ttl_ms, request_id };
            return Operation::Hold(HoldCommand::Begin(begin));
        }
        let renew = RenewHold { namespace, hold, owner, ttl_ms, request_id };
        Operation::Hold(HoldCommand::Renew(renew))
    }

    pub(super) fn end_hold(&mut self, holding: &Holding, owner: &Owner) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (resource, token) in &holding.holdings {
            let (namespace, owner) = (holding.namespace.clone(), owner.clone());
            let (hold, request_id) = (named(resource.clone(), *token), self.request_id());
            let release = ReleaseHold { namespace, hold, owner, request_id };
            operations.push(Operation::Hold(HoldCommand::Release(release)));
        }
        operations
    }

    /// By an operator: what a buyer may have at once, and how soon again.
    pub(super) fn put_hold_policy(&mut self) -> Operation {
        let namespace = self.some_namespace();
        let version = self.truth.state.namespace(&namespace).map_or(0, |it| it.version);
        let policy = self.some_policy();
        let put = PutNamespace { namespace, expected_version: version, policy };
        let is_capped = self.random.in_1000(400);
        let cools = self.random.in_1000(700);
        let holds = HoldPolicy {
            per_owner: is_capped.then(|| self.random.between(1, 4)),
            cooldown_ms: if cools { self.random.between(200, 6_000) } else { 0 },
        };
        Operation::Hold(HoldCommand::PutPolicy(PutHoldPolicy { put, holds }))
    }
}

fn named(resource: ResourceName, token: Token) -> HoldRef {
    HoldRef { resource, fence: Some(token) }
}
