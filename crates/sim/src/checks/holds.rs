//! Holds: their owner ends them, whichever instance asks, and by no other fence than theirs; a begun one by its fence
//! alone. Nobody hoards: caps and cool-downs. All of several are taken, and what they replace ends with them, or nothing.

use super::{Change, Deadlines};
use crate::place::Place;
use sereno_core::{
    command::{Family, Hold, HoldCommand, HoldRef, Operation},
    event::{Event, EventKind},
    ids::{ClusterTime, Token},
    names::{NamespaceName, Owner},
    outcome::{Done, End, Outcome},
    policy::HoldPolicy,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    policies: BTreeMap<NamespaceName, HoldPolicy>,
    /// Whose each is that is held now, and its lease.
    owners: BTreeMap<Token, (Place, Owner, u64)>,
    /// Leases whose payment has begun.
    begun: BTreeSet<u64>,
    /// Until when an owner gets no new one of a resource.
    cooling: BTreeMap<(Place, Owner), ClusterTime>,
}

impl Holds {
    pub(super) fn event(&mut self, deadlines: &Deadlines, change: &Change) {
        let Change { place, lease, owner, time, .. } = *change;
        let (Family::Hold, Some(owner)) = (place.family, owner) else { return };
        match change.kind {
            EventKind::Granted { token, .. } => {
                let until = self.cooling.get(&(place.clone(), owner.clone())).copied();
                assert!(
                    until.is_none_or(|until| until <= time),
                    "holdCooldown: {place}: {owner} has had it until lately: {time} before {until:?}"
                );
                self.owners.insert(*token, (place.clone(), owner.clone(), lease));
                self.check_cap(&place.namespace, owner);
            }
            EventKind::Begun { .. } => {
                self.begun.insert(lease);
            }
            EventKind::Ended { token, end, .. } => {
                self.owners.remove(token);
                let ended_at = match end {
                    End::Expired | End::MaxHold => deadlines.of(lease).unwrap_or(time).min(time),
                    _ => time,
                };
                let policy = self.policies.get(&place.namespace).cloned().unwrap_or_default();
                if !self.begun.contains(&lease) && policy.cooldown_ms > 0 {
                    let until = ended_at.plus(policy.cooldown_ms);
                    self.cooling.insert((place.clone(), owner.clone()), until);
                }
            }
            _ => {}
        }
    }

    /// Nobody holds more than the policy allows, unless that allowed more when it was granted.
    fn check_cap(&self, namespace: &NamespaceName, owner: &Owner) {
        let Some(max) = self.policies.get(namespace).and_then(|policy| policy.per_owner) else {
            return;
        };
        let own = self
            .owners
            .values()
            .filter(|(place, of, _)| place.namespace == *namespace && of == owner);
        let held = own.count() as u64;
        assert!(held <= max, "holdsPerOwner: {owner} holds {held} of at most {max}");
    }

    /// `events`: those of the outcome's revision.
    pub(super) fn outcome<'a>(
        &mut self,
        operation: &Operation,
        outcome: &Outcome,
        events: impl Iterator<Item = &'a Event>,
    ) {
        match (operation, &outcome.result) {
            (Operation::PutNamespace(op), Ok(_)) => {
                self.policies.insert(op.namespace.clone(), HoldPolicy::default());
            }
            (Operation::Hold(op), result) => {
                self.held(op, outcome.replayed.is_none(), result, events)
            }
            _ => {}
        }
    }

    fn held<'a>(
        &mut self,
        op: &HoldCommand,
        is_fresh: bool,
        result: &Result<Done, sereno_core::outcome::Refusal>,
        events: impl Iterator<Item = &'a Event>,
    ) {
        let ended: Vec<_> = events.filter_map(ended).collect();
        match (op, result) {
            (HoldCommand::PutPolicy(op), Ok(_)) => {
                self.policies.insert(op.put.namespace.clone(), op.holds.clone());
            }
            (HoldCommand::Renew(op), Ok(Done::HoldExtended(extended))) if is_fresh => {
                self.check_fence(&op.hold, extended.renewed.token);
            }
            (HoldCommand::Begin(op), Ok(Done::HoldExtended(extended))) if is_fresh => {
                self.check_fence(&op.hold, extended.renewed.token);
            }
            (HoldCommand::Release(op), Ok(Done::HoldReleased { released })) if is_fresh => {
                assert!(*released == (ended.len() == 1), "a release ends one hold, or says not");
                for event in &ended {
                    self.check_end(event, std::slice::from_ref(&op.hold), &op.owner);
                }
            }
            (HoldCommand::Hold(op), Ok(Done::Held(held))) if is_fresh => {
                for event in &ended {
                    self.check_end(event, &op.replaces, &op.owner);
                }
                self.check_all(op, held);
            }
            (HoldCommand::ForceRelease(_), _) => {}
            (_, _) => assert!(ended.is_empty(), "S4: a refused or repeated call ends no hold"),
        }
    }

    fn check_fence(&self, hold: &HoldRef, token: Token) {
        assert!(
            hold.fence.is_none_or(|fence| fence == token),
            "S4: a hold is renewed by its own fence: {token} by {hold:?}"
        );
    }

    fn check_end(&self, (token, owner, lease): &Ended, named: &[HoldRef], by: &Owner) {
        assert!(owner == by, "S4: a hold is ended by its owner: that of {owner} by {by}");
        let is_begun = self.begun.contains(lease);
        let is_it = |one: &HoldRef| one.fence.map_or(!is_begun, |fence| fence == *token);
        assert!(
            named.iter().any(is_it),
            "S4: a hold is ended by its own fence, and a begun one never without: {token} by {named:?}"
        );
    }

    /// All that is asked for, in one hold.
    fn check_all(&self, op: &Hold, held: &sereno_core::outcome::Held) {
        let mut names: Vec<_> = held.grant.holdings.iter().map(|(name, _)| name).collect();
        let mut asked: Vec<_> = op.resources.iter().collect();
        names.sort();
        asked.sort();
        assert!(names == asked, "a hold is of all that it asks for: {names:?} of {asked:?}");
        assert!(held.owner == op.owner, "a hold is its owner's");
    }
}

/// The token of a hold that has ended, whose it was, and its lease.
type Ended = (Token, Owner, u64);

fn ended(event: &Event) -> Option<Ended> {
    match event.kind {
        EventKind::Ended { token, .. } if event.family == Family::Hold => {
            Some((token, event.owner.clone()?, event.lease_hash?))
        }
        _ => None,
    }
}
