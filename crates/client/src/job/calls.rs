//! Plain typed calls: reads, and what operators do.

use super::definition::JobDefinition;
use crate::{
    client::Client,
    core::random_id,
    error::Error,
    plain::Query,
    transport::{Ask, escape},
};
use sereno_api::{
    ClaimRunRequest, FinishRunRequest, ForceReleaseRunRequest, ForceReleased, JobChanged, JobPage,
    JobPut, PauseJobRequest, RenewRunRequest, Renewed, RunClaimed, RunFinished, RunNowRequest,
    RunResult, SlotRequest,
};

/// Which jobs to list: by name.
#[derive(Clone, Debug, Default)]
pub struct ListJobs {
    /// `None`: the client's namespace.
    pub namespace: Option<String>,
    /// Only names that begin so.
    pub prefix: String,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// One job: its definition and its ledger.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_FOUND` where there is none of that name.
    pub async fn get_job(
        &self,
        namespace: Option<&str>,
        job: &str,
    ) -> Result<sereno_api::Job, Error> {
        let query = Query::default().with("namespace", Some(self.namespace_or(namespace)));
        self.get(format!("/v1/jobs/{}{}", escape(job, "/:@+"), query.0)).await
    }

    /// One page of jobs.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list_jobs(&self, list: &ListJobs) -> Result<JobPage, Error> {
        let query = Query::default()
            .with("namespace", Some(self.namespace_or(list.namespace.as_deref())))
            .with("prefix", Some(&list.prefix).filter(|prefix| !prefix.is_empty()))
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref());
        self.get(format!("/v1/jobs{}", query.0)).await
    }

    /// Creates a job (`expected_version` 0) or replaces its definition.
    ///
    /// # Errors
    /// [`Error::Refused`] with `VERSION_CONFLICT` when it has another version by now. After a lost answer that may
    /// be the version that this very call has made.
    pub async fn put_job(
        &self,
        namespace: Option<&str>,
        job: &str,
        expected_version: u64,
        definition: &JobDefinition,
    ) -> Result<JobPut, Error> {
        let request =
            definition.request(&self.namespace_or(namespace), job, expected_version, None);
        let ask = move |born_at| {
            Ask::post("/v1/jobs/put", &sereno_api::PutJobRequest { born_at, ..request.clone() })
        };
        self.core().run_call(ask).await
    }

    /// Claims a slot. [`Client::job`] does this and everything around it; this is the bare call, and nobody renews what
    /// it is granted. `born_at` of the request is set by each copy that is sent.
    ///
    /// # Errors
    /// [`Error::Refused`] with what the ledger says. After [`Error::Unknown`] it may have been granted.
    pub async fn claim_run(&self, request: ClaimRunRequest) -> Result<RunClaimed, Error> {
        let ask = move |born_at| {
            Ask::post("/v1/jobs/claim-run", &ClaimRunRequest { born_at, ..request.clone() })
        };
        self.core().run_call(ask).await
    }

    /// Renews a claimed run.
    ///
    /// # Errors
    /// [`Error::Refused`] with `LEASE_ENDED`, `NOT_HOLDER` or `MAX_HOLD_REACHED` when nothing is left to renew.
    pub async fn renew_run(
        &self,
        namespace: Option<&str>,
        job: &str,
        lease_id: &str,
    ) -> Result<Renewed, Error> {
        let (namespace, job, lease_id) =
            (self.namespace_or(namespace), job.to_string(), lease_id.to_string());
        let ask = move |born_at| {
            let (namespace, job, lease_id) = (namespace.clone(), job.clone(), lease_id.clone());
            let request = RenewRunRequest { namespace, job, lease_id, lease_ttl: None, born_at };
            Ask::post("/v1/jobs/renew-run", &request)
        };
        self.core().run_call(ask).await
    }

    /// Says how a run went.
    ///
    /// # Errors
    /// [`Error::Refused`] when the slot has gone on without it.
    pub async fn finish_run(
        &self,
        namespace: Option<&str>,
        job: &str,
        lease_id: &str,
        result: RunResult,
    ) -> Result<RunFinished, Error> {
        let request = FinishRunRequest {
            namespace: self.namespace_or(namespace),
            job: job.into(),
            lease_id: lease_id.into(),
            result,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/jobs/finish-run", &FinishRunRequest { born_at, ..request.clone() })
        };
        self.core().run_call(ask).await
    }

    /// Nothing of the job is claimed until it is resumed; runs under way go on. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn pause_job(
        &self,
        namespace: Option<&str>,
        job: &str,
        reason: &str,
    ) -> Result<JobChanged, Error> {
        self.change_job("/v1/jobs/pause", namespace, job, reason).await
    }

    /// The job goes on.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn resume_job(
        &self,
        namespace: Option<&str>,
        job: &str,
        reason: &str,
    ) -> Result<JobChanged, Error> {
        self.change_job("/v1/jobs/resume", namespace, job, reason).await
    }

    async fn change_job(
        &self,
        path: &'static str,
        namespace: Option<&str>,
        job: &str,
        reason: &str,
    ) -> Result<JobChanged, Error> {
        let request = PauseJobRequest {
            namespace: self.namespace_or(namespace),
            job: job.into(),
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| Ask::post(path, &PauseJobRequest { born_at, ..request.clone() });
        self.core().run_call(ask).await
    }

    /// The slot counts as finished. `slot`: RFC 3339, in UTC.
    ///
    /// # Errors
    /// [`Error::Refused`] with `RUN_CLAIMED` while an attempt on it is under way.
    pub async fn skip_slot(
        &self,
        namespace: Option<&str>,
        job: &str,
        slot: &str,
        reason: &str,
    ) -> Result<JobChanged, Error> {
        let request = SlotRequest {
            namespace: self.namespace_or(namespace),
            job: job.into(),
            slot: slot.into(),
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask =
            move |born_at| Ask::post("/v1/jobs/skip", &SlotRequest { born_at, ..request.clone() });
        self.core().run_call(ask).await
    }

    /// Asks for an extra run at this moment, by whichever replica claims it first.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn run_job_now(
        &self,
        namespace: Option<&str>,
        job: &str,
        reason: &str,
    ) -> Result<JobChanged, Error> {
        let request = RunNowRequest {
            namespace: self.namespace_or(namespace),
            job: job.into(),
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/jobs/run-now", &RunNowRequest { born_at, ..request.clone() })
        };
        self.core().run_call(ask).await
    }

    /// Ends the attempt with this token, and no other, in an operator's name.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_HOLDER` when no attempt of the job has that token.
    pub async fn force_release_run(
        &self,
        namespace: Option<&str>,
        job: &str,
        fencing_token: u64,
        reason: &str,
    ) -> Result<ForceReleased, Error> {
        let request = ForceReleaseRunRequest {
            namespace: self.namespace_or(namespace),
            job: job.into(),
            fencing_token,
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ForceReleaseRunRequest { born_at, ..request.clone() };
            Ask::post("/v1/jobs/force-release", &request)
        };
        self.core().run_call(ask).await
    }
}
