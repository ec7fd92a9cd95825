//! What runs when, and by which rules.

use sereno_api::{Millis, Missed, Overlap, PutJobRequest};
use sereno_schedule::{Schedule, ScheduleError};
use std::time::Duration;

/// The definition of a job, as it is put and as the service tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDefinition {
    /// A cron expression of five fields, or of six with seconds in front.
    pub schedule: String,
    /// The IANA name of the time zone.
    pub zone: String,
    /// What becomes of slots that passed while nobody could run them.
    pub missed: Missed,
    /// Whether runs may overlap.
    pub overlap: Overlap,
    /// How often a run that failed or died is tried again; 0: at most once, else at least once.
    pub retries: u32,
    /// The longest that one attempt may take.
    pub max_run: Duration,
}

impl JobDefinition {
    /// With the service's defaults: the latest missed slot runs, runs do not overlap, no retries, an hour at most.
    pub fn new(schedule: impl Into<String>, zone: impl Into<String>) -> Self {
        Self {
            schedule: schedule.into(),
            zone: zone.into(),
            missed: Missed::Latest,
            overlap: Overlap::Forbid,
            retries: 0,
            max_run: Duration::from_secs(3_600),
        }
    }

    /// That of a job as it was read.
    pub fn of(job: &sereno_api::Job) -> Self {
        Self {
            schedule: job.schedule.clone(),
            zone: job.zone.clone(),
            missed: job.missed,
            overlap: job.overlap,
            retries: job.retries,
            max_run: job.max_run.to_duration(),
        }
    }

    /// The schedule, read.
    ///
    /// # Errors
    /// The field and the rule that it breaks.
    pub fn parse(&self) -> Result<Schedule, ScheduleError> {
        Schedule::parse(&self.schedule, &self.zone)
    }

    pub(super) fn request(
        &self,
        namespace: &str,
        job: &str,
        expected_version: u64,
        born_at: Option<u64>,
    ) -> PutJobRequest {
        PutJobRequest {
            namespace: namespace.into(),
            job: job.into(),
            schedule: self.schedule.clone(),
            zone: self.zone.clone(),
            missed: Some(self.missed),
            overlap: Some(self.overlap),
            retries: Some(self.retries),
            max_run: Some(Millis::from(self.max_run)),
            expected_version,
            born_at,
        }
    }
}
