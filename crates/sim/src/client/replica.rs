//! Replicas of a job, and its operators.

use super::{Asking, Holding, Job, What};
use crate::world::World;
use sereno_core::{
    command::{
        ClaimRun, FinishRun, JobCommand, JobDefinition, LeaseRef, Missed, Operation, PauseJob,
        PutJob, Renew, RunResult, SlotOfJob,
    },
    ids::{LeaseId, Slot},
    names::{Labels, NamespaceName, Reason, ResourceName, ScheduleText, ZoneName},
    outcome::RunState,
    query::JobView,
};
use sereno_node::clock::Mono;

/// Between two slots of a schedule.
const EVERY_MS: u64 = 2_000;
const DOING_MS: u64 = 9_000;

impl World {
    /// As a replica reads it before it claims: perhaps an older one.
    fn job_seen(&self, namespace: &NamespaceName, job: &ResourceName) -> Option<JobView> {
        self.truth.state.job_view(namespace, job).flatten()
    }

    pub(super) fn run_begins(&mut self, client: usize, now: Mono) {
        let (namespace, job) = (self.some_namespace(), self.some_resource());
        let Some(view) = self.job_seen(&namespace, &job) else {
            let operation = self.put_job(namespace, job, 0);
            return self.client_does(client, vec![operation], DOING_MS);
        };
        let slot = self.some_slot(&view);
        let asking = Asking {
            what: What::Run { job: job.clone(), version: view.version, slot },
            namespace,
            resources: vec![job],
            request_id: self.request_id(),
            ttl_ms: self.random.between(1_500, 12_000),
            wait_ms: 0,
            hold_ms: 0,
            max_hold_ms: None,
            fencing: None,
            keeps_ms: self.random.between(20, self.config.keeps_ms),
            until: now.plus_ms(self.random.between(100, 20_000)),
        };
        self.clients[client].job = Job::Asking(asking.clone());
        self.client_asks(client, &asking);
    }

    /// One that is open, or the one that is due by the schedule; now and then one that is long over.
    fn some_slot(&mut self, view: &JobView) -> Slot {
        let open: Vec<_> = view.runs.iter().filter(|run| run.state.is_open()).collect();
        let due_ms = self.truth.state.token_clock_us() / 1_000 / EVERY_MS * EVERY_MS;
        match self.random.between(0, 9) {
            0..=3 if !open.is_empty() => open[self.random.below(open.len())].slot,
            4..=5 if !view.runs.is_empty() => view.runs[self.random.below(view.runs.len())].slot,
            6 => Slot(due_ms + EVERY_MS),
            _ => Slot(due_ms),
        }
    }

    /// As it was drawn when the job was put first: it cannot be changed.
    fn may_overlap(&mut self, namespace: &NamespaceName, job: &ResourceName) -> bool {
        let drawn = self.random.in_1000(200);
        self.job_seen(namespace, job).map_or(drawn, |job| job.definition.overlap)
    }

    fn put_job(&mut self, namespace: NamespaceName, job: ResourceName, version: u64) -> Operation {
        let missed = [Missed::Latest, Missed::All, Missed::Skip][self.random.below(3)];
        let definition = JobDefinition {
            schedule: ScheduleText::new("each two seconds").expect("a valid text"),
            zone: ZoneName::new("UTC").expect("a valid name"),
            missed,
            overlap: self.may_overlap(&namespace, &job),
            retries: self.random.between(0, 2) as u32,
            max_run_ms: self.random.between(1_000, 20_000),
        };
        let put = PutJob { namespace, job, expected_version: version, definition };
        Operation::Job(JobCommand::Put(put))
    }

    pub(super) fn claim_run(
        &mut self,
        client: usize,
        asking: &Asking,
        job_version: u64,
        slot: Slot,
    ) -> Operation {
        let lease_id = LeaseId(self.random.id());
        Operation::Job(JobCommand::ClaimRun(ClaimRun {
            namespace: asking.namespace.clone(),
            job: asking.resources[0].clone(),
            job_version,
            slot,
            request_id: asking.request_id.clone(),
            owner: self.clients[client].owner.clone(),
            lease_id,
            lease_ttl_ms: Some(asking.ttl_ms),
            labels: Labels::default(),
        }))
    }

    /// Whether a replica that has just claimed goes away before it begins.
    pub(super) fn is_about_to_go(&mut self, asking: &Asking) -> bool {
        matches!(asking.what, What::Run { .. }) && self.random.in_1000(150)
    }

    pub(super) fn renew_run(
        &mut self,
        holding: &Holding,
        job: &ResourceName,
        lease_ttl_ms: Option<u64>,
    ) -> Operation {
        let (namespace, lease) = (holding.namespace.clone(), run(holding, job));
        Operation::Job(JobCommand::RenewRun(Renew { namespace, lease, lease_ttl_ms }))
    }

    /// It says how it ended, also when the lease is over by then; and says so twice now and then, as somebody who does
    /// not know that it was heard.
    pub(super) fn end_run(&mut self, holding: &Holding, job: &ResourceName) -> Vec<Operation> {
        let result = match self.random.in_1000(300) {
            true => RunResult::Failed,
            false => RunResult::Succeeded,
        };
        let times = if self.random.in_1000(200) { 2 } else { 1 };
        let finish = |world: &mut Self| {
            let (namespace, lease) = (holding.namespace.clone(), run(holding, job));
            let request_id = world.request_id();
            let finish = FinishRun { namespace, lease, result, request_id };
            Operation::Job(JobCommand::FinishRun(finish))
        };
        (0..times).map(|_| finish(self)).collect()
    }

    pub(super) fn job_operator_begins(&mut self, client: usize) {
        let (namespace, job) = (self.some_namespace(), self.some_resource());
        let Some(view) = self.job_seen(&namespace, &job) else { return };
        let reason = Reason::new("an operator wants it").expect("a valid reason");
        let request_id = self.request_id();
        let now_ms = self.truth.state.token_clock_us() / 1_000;
        let is_open = |state: RunState| matches!(state, RunState::Asked | RunState::Retry);
        let open = view.runs.iter().find(|run| is_open(run.state)).map(|run| run.slot);
        let command = match (self.random.between(0, 9), open) {
            (0..=1, _) => {
                let operation = self.put_job(namespace, job, view.version);
                return self.client_does(client, vec![operation], DOING_MS);
            }
            (2, open) => {
                let slot = open.unwrap_or(Slot(now_ms / EVERY_MS * EVERY_MS + 2 * EVERY_MS));
                JobCommand::Skip(SlotOfJob { namespace, job, slot, request_id, reason })
            }
            (3..=6, _) => {
                let slot = Slot(now_ms);
                JobCommand::RunNow(SlotOfJob { namespace, job, slot, request_id, reason })
            }
            (7, _) if !view.paused => {
                JobCommand::Pause(PauseJob { namespace, job, request_id, reason })
            }
            _ => JobCommand::Resume(PauseJob { namespace, job, request_id, reason }),
        };
        self.client_does(client, vec![Operation::Job(command)], DOING_MS);
    }
}

/// A run is named by its job, also where it is leased by a longer name.
fn run(holding: &Holding, job: &ResourceName) -> LeaseRef {
    LeaseRef { resource: job.clone(), lease_id: holding.lease_id }
}
