//! One job: waits for its GPUs, uses them, gives them back. Whatever becomes of the process, the pool gets them back.

use crate::{
    pool::QUOTA,
    record::{Record, What, Who},
};
use sereno_client::{QuotaError, Quotas, RunError};
use std::{io, path::PathBuf, time::Duration};

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name, its tenant, and how many GPUs it needs.
    pub who: Who,
    /// Higher ones go first among those of the same tenant who wait.
    pub priority: u8,
    /// How long it waits for its GPUs.
    pub wait: Duration,
    /// How long after its crash the pool has them back, at most.
    pub ttl: Duration,
    /// What it does with them.
    pub work: Work,
}

/// What stands for the work.
#[derive(Clone, Debug)]
pub enum Work {
    /// It takes so long.
    For(Duration),
    /// It takes until this file is there.
    Until(PathBuf),
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It did not get its GPUs; which layers were in the way.
    Refused(QuotaError),
    /// It lost them, and has stopped: somebody else may have them by now.
    Lost(String),
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The service.
    #[error(transparent)]
    Service(#[from] QuotaError),
    /// The record.
    #[error("the record: {0}")]
    Record(#[from] io::Error),
}

/// Runs it.
///
/// # Errors
/// The service does not answer, or the record cannot be written.
pub async fn run(quotas: &Quotas, job: Job, record: &mut Record) -> Result<Outcome, Failure> {
    let Job { who, priority, wait, ttl, work } = job;
    record.note(What::Asked, &who, 0)?;
    // The owner is the job: in every list it can be seen who has what.
    let asked = quotas
        .reserve(QUOTA, &who.tenant, who.gpus)
        .owner(&who.job)
        .ttl(ttl)
        .keep_extended()
        .priority(priority)
        .wait(wait)
        .reserve();
    let reservation = match asked.await {
        Ok(reservation) => reservation,
        Err(error) => {
            record.note(What::Refused, &who, 0)?;
            return if error.is_exhausted() {
                Ok(Outcome::Refused(error))
            } else {
                Err(error.into())
            };
        }
    };
    record.note(What::Began, &who, reservation.fence())?;
    // On a loss the work is dropped where it stands, before the service can give the GPUs to anybody else.
    match reservation.run(work.done()).await {
        Ok(()) => {
            // First stop, then give back: in the other order two would use them.
            record.note(What::Ended, &who, reservation.fence())?;
            reservation.release().await?;
            Ok(Outcome::Done)
        }
        Err(RunError::Lost { loss, .. }) => {
            record.note(What::Lost, &who, reservation.fence())?;
            Ok(Outcome::Lost(loss.to_string()))
        }
        Err(RunError::NotBegun(why)) => {
            record.note(What::Lost, &who, reservation.fence())?;
            Ok(Outcome::Lost(why.to_string()))
        }
    }
}

impl Work {
    async fn done(self) {
        const LOOK_EACH: Duration = Duration::from_millis(20);
        match self {
            Self::For(time) => tokio::time::sleep(time).await,
            Self::Until(file) => {
                while !file.exists() {
                    tokio::time::sleep(LOOK_EACH).await;
                }
            }
        }
    }
}
