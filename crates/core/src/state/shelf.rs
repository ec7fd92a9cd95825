//! Reads of holds and jobs: what is listed by name.

use super::{State, job::Run};
use crate::{
    command::Family,
    ids::Slot,
    limits,
    names::{NamespaceName, ResourceName},
    query::{AttemptView, HoldPage, JobView, ListHolds, RunView},
};
use std::ops::Bound::{Excluded, Included, Unbounded};

impl State {
    /// What is held, by name; `None`: there is no such namespace.
    pub fn list_holds(&self, list: &ListHolds) -> Option<HoldPage> {
        let of = &self.namespaces[self.namespace_id(&list.namespace)? as usize];
        let limit = list.limit.clamp(1, limits::PAGE_ROWS_MAX);
        let from = match list.after.as_str() {
            after if after >= list.prefix.as_str() && !after.is_empty() => Excluded(after),
            _ => Included(list.prefix.as_str()),
        };
        let resources = &of.space(Family::Hold).resources;
        let mut names = of.held_names.range::<str, _>((from, Unbounded));
        let mut page = HoldPage { holds: Vec::new(), next: None };
        for examined in 1..=limits::PAGE_EXAMINED_MAX {
            let Some(name) = names.next().filter(|name| name.as_str().starts_with(&list.prefix))
            else {
                return Some(page);
            };
            let view = self.lock_view(name, &resources[name]);
            let owner = view.holder.as_ref().map(|holder| &holder.holder.owner);
            if list.owner.as_ref().is_none_or(|only| owner == Some(only)) {
                page.holds.push(view);
            }
            if page.holds.len() == limit || examined == limits::PAGE_EXAMINED_MAX {
                page.next = Some(name.clone());
                break;
            }
        }
        Some(page)
    }

    /// One job; the outer `None`: there is no such namespace.
    pub fn job_view(
        &self,
        namespace: &NamespaceName,
        name: &ResourceName,
    ) -> Option<Option<JobView>> {
        let of = &self.namespaces[self.namespace_id(namespace)? as usize];
        Some(of.jobs.get(name).map(|job| self.view_of_job(name, job, usize::MAX)))
    }

    /// Jobs by name after `after`, each with its newest slot; `None`: there is no such namespace.
    pub fn list_jobs(
        &self,
        namespace: &NamespaceName,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Option<Vec<JobView>> {
        let of = &self.namespaces[self.namespace_id(namespace)? as usize];
        let from = match after {
            after if after >= prefix && !after.is_empty() => Excluded(after),
            _ => Included(prefix),
        };
        let jobs = of.jobs.range::<str, _>((from, Unbounded));
        let jobs = jobs.take_while(|(name, _)| name.as_str().starts_with(prefix));
        Some(jobs.take(limit).map(|(name, job)| self.view_of_job(name, job, 1)).collect())
    }

    fn view_of_job(&self, name: &ResourceName, job: &super::job::Job, runs: usize) -> JobView {
        JobView {
            job: name.clone(),
            version: job.version,
            definition: job.definition.clone(),
            paused: job.paused,
            watermark: job.watermark,
            runs: job
                .runs
                .iter()
                .rev()
                .take(runs)
                .map(|(&slot, run)| self.run_view(slot, run))
                .collect(),
        }
    }

    fn run_view(&self, slot: Slot, run: &Run) -> RunView {
        let last = run.last.as_ref().map(|last| AttemptView {
            token: last.token,
            owner: last.owner.clone(),
            started_at_ms: last.started_at_ms,
            ended_at_ms: last.ended_at_ms,
            end: last.end,
            expires_in_ms: last.claim.map(|id| self.time.until(self.claims[&id].deadline)),
        });
        let (state, attempt, reason) = (run.state, run.attempt, run.reason.clone());
        RunView { slot, state, attempt, last, reason }
    }
}
