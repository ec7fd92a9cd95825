//! Planted bugs that take more than a line where the rule is. Without the feature `planted` all of this is nothing:
//! see [`crate::planted`].

use super::{
    State,
    job::{Job, Run},
};
use crate::{
    command::Family,
    ids::{ClusterTime, ObjectId, Slot},
    names::ResourceName,
    outcome::{InTheWay, Refusal, RunState},
    planted::{self, Planted},
};
use std::collections::VecDeque;

/// As much longer does a wait stay in its queue.
const WAIT_OUTLIVES_MS: u64 = 3_000;

/// Queues that are out of the way of an acquire.
pub(super) type Aside = Vec<(ResourceName, VecDeque<ObjectId>)>;

/// What is free of several resources, where that is some and not all.
pub(super) fn free_part(
    resources: &[ResourceName],
    in_the_way: &[InTheWay],
) -> Option<Vec<ResourceName>> {
    let is_some = !in_the_way.is_empty() && in_the_way.len() < resources.len();
    if !is_some || !planted::has(Planted::AcquireAllPartly) {
        return None;
    }
    let is_free = |name: &&ResourceName| in_the_way.iter().all(|one| one.resource != **name);
    Some(resources.iter().filter(is_free).cloned().collect())
}

/// The attempts that count, once the last of so many was given back.
pub(super) fn given_back(attempts: u32) -> u32 {
    if planted::has(Planted::AbandonedAttemptCounts) {
        attempts
    } else if planted::has(Planted::AbandonGivesBackTwice) {
        attempts.saturating_sub(2)
    } else {
        attempts - 1
    }
}

/// With that bug planted: the run that is under way, for whoever comes with an attempt that is over.
pub(super) fn another_run(job: &Job) -> Option<(&Slot, &Run)> {
    let is_live = |(_, run): &(&Slot, &Run)| run.state == RunState::Claimed;
    job.runs.iter().find(is_live).filter(|_| planted::has(Planted::FinishOfAnother))
}

impl State {
    /// When a wait that begins now ends.
    pub(super) fn wait_deadline(&self, wait_ms: u64) -> ClusterTime {
        let longer_ms = match planted::has(Planted::WaitOutlivesDeadline) {
            true => WAIT_OUTLIVES_MS,
            false => 0,
        };
        self.time.plus(wait_ms + longer_ms)
    }

    /// Takes away the queues of those resources whose lease is due and unswept.
    pub(super) fn queues_aside(
        &mut self,
        namespace: Option<u32>,
        family: Family,
        resources: &[ResourceName],
    ) -> Aside {
        let Some(namespace) = namespace.filter(|_| planted::has(Planted::BargesBeforeSweep)) else {
            return Aside::new();
        };
        let mut aside = Aside::new();
        for name in resources {
            let known = &mut self.namespaces[namespace as usize].space_mut(family).resources;
            let Some(resource) = known.get_mut(name) else { continue };
            let claim = resource.holder.and_then(|id| self.claims.get(&id));
            if claim.is_some_and(|claim| claim.deadline <= self.time) {
                resource.due = 0;
                aside.push((name.clone(), std::mem::take(&mut resource.queue)));
            }
        }
        aside
    }

    /// Puts them back, in front of whoever has joined meanwhile.
    pub(super) fn queues_back(&mut self, namespace: Option<u32>, family: Family, aside: Aside) {
        let Some(namespace) = namespace else { return };
        for (name, mut queue) in aside {
            let resources = &mut self.namespaces[namespace as usize].space_mut(family).resources;
            let resource = resources.entry(name).or_default();
            queue.append(&mut resource.queue);
            resource.queue = queue;
        }
    }

    /// The last token, whose lease has ended, will be the next one's too.
    pub(super) fn forget_last_token(&mut self) {
        let last = self.last_token;
        let spaces = || self.namespaces.iter().flat_map(|of| of.spaces());
        let is_held = || spaces().any(|(_, space)| space.by_age.contains_key(&last));
        if planted::has(Planted::TokenReusedAfterRestart) && !is_held() {
            self.last_token.0 -= 1;
        }
    }

    /// The level whose rules count: the one in force; or, with that bug planted, what the program understands.
    pub(super) fn level_to_go_by(&self) -> u32 {
        match planted::has(Planted::LevelsMixed) {
            true => planted::level_max(),
            false => self.level,
        }
    }

    /// Brings the deadlines of a namespace's leases nearer.
    pub(super) fn cut_leases(&mut self, namespace: u32, ttl_ms: u64) {
        if !planted::has(Planted::PolicyCutsLeases) {
            return;
        }
        let latest = self.time.plus(ttl_ms);
        for (&id, claim) in &mut self.claims {
            if claim.namespace == namespace && claim.held.is_some() && claim.deadline > latest {
                self.deadlines.remove(&(claim.deadline, id));
                self.deadlines.insert((latest, id));
                claim.deadline = latest;
            }
        }
    }

    /// What was found; or, with that bug planted, the holding of whoever has the resource.
    pub(super) fn or_anothers(
        &self,
        bug: Planted,
        namespace: u32,
        family: Family,
        resource: &ResourceName,
        found: Result<(ObjectId, usize), Refusal>,
    ) -> Result<(ObjectId, usize), Refusal> {
        if !planted::has(bug) {
            return found;
        }
        let resources = &self.namespaces[namespace as usize].space(family).resources;
        let holder = resources.get(resource).and_then(|resource| resource.holder);
        let other = holder.and_then(|id| Some((id, self.claims[&id].holding(resource)?.0)));
        found.or_else(|refusal| other.ok_or(refusal))
    }
}
