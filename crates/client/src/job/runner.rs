//! Takes part in a job: reads the ledger, plans, claims, and hands attempts out. It outlives every outage.

use super::{
    attempt::Attempt,
    builder::OnLoss,
    claim::{Wish, claim},
    definition::JobDefinition,
    ledger::Ledger,
    news::{JobNews, Listener, Teller, why},
    plan::{Next, next},
};
use crate::{
    client::Inner,
    core::backoff,
    error::{Error, RunError},
    transport::{Ask, escape},
};
use sereno_api::{ErrorCode, Job, JobPut, Problem, RunResult};
use sereno_schedule::Schedule;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::Mutex, time::sleep};

/// However far the next slot is: an operator may ask for one, or pause the job, and clocks may be set.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// While the service is not reached.
const RETRY_SHORTEST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// After a refusal: somebody else was faster, so the ledger is read again.
const REFUSED_SHORTEST: Duration = Duration::from_millis(20);
const REFUSED_LONGEST: Duration = Duration::from_secs(2);
/// So often may others change a definition while it is being put.
const CONFLICTS_MAX: u32 = 20;

/// A replica of a job. It runs one attempt at a time; other replicas run others where they may overlap.
pub struct JobRunner {
    inner: Arc<Inner>,
    on_loss: OnLoss,
    turn: Arc<Mutex<Turn>>,
}

/// What the runner knows; on the client's thread.
struct Turn {
    inner: Arc<Inner>,
    wish: Wish,
    /// This replica's own.
    definition: JobDefinition,
    /// That of the service, read: by its version.
    followed: Option<(u64, Arc<Schedule>)>,
    teller: Teller,
    /// In a row.
    failures: u32,
    refusals: u32,
}

impl JobRunner {
    pub(super) fn new(
        inner: Arc<Inner>,
        wish: Wish,
        definition: JobDefinition,
        on_loss: OnLoss,
        listener: Option<Listener>,
    ) -> Self {
        let turn = Turn {
            inner: inner.clone(),
            wish,
            definition,
            followed: None,
            teller: Teller::new(listener),
            failures: 0,
            refusals: 0,
        };
        Self { inner, on_loss, turn: Arc::new(Mutex::new(turn)) }
    }

    pub(super) async fn put(&self) -> Result<(), Error> {
        let turn = self.turn.clone();
        self.on_the_thread(async move { turn.lock().await.put().await }).await
    }

    /// Waits until a slot is due and this replica's. Whatever the service or the network do meanwhile, it keeps trying;
    /// dropping the returned future gives a claim under way back.
    ///
    /// # Errors
    /// [`Error::Refused`] where a rule forbids to go on: not for what passes by itself.
    pub async fn next(&mut self) -> Result<Attempt, Error> {
        let turn = self.turn.clone();
        let attempt = self.on_the_thread(async move { turn.lock().await.next().await }).await?;
        Ok(attempt.begin())
    }

    /// Runs the job until something forbids it: `work` for each attempt, which is finished by what it returns. Errors of
    /// the work are failed runs, and for the work itself to report. Returns only when it cannot go on.
    pub async fn run<E>(&mut self, mut work: impl AsyncFnMut(&Attempt) -> Result<(), E>) -> Error {
        loop {
            let attempt = match self.next().await {
                Ok(attempt) => attempt,
                Err(error) => return error,
            };
            let ended = match self.on_loss {
                OnLoss::Keep => Ok(work(&attempt).await),
                OnLoss::Stop => attempt.run(work(&attempt)).await,
            };
            let result = match ended {
                // Lost just when it came to its end: the ledger decides whether that counts.
                Ok(Ok(())) | Err(RunError::Lost { finished: Some(Ok(())), .. }) => {
                    RunResult::Succeeded
                }
                Err(RunError::NotBegun(_)) => {
                    attempt.give_back();
                    continue;
                }
                Ok(Err(_)) | Err(RunError::Lost { .. }) => RunResult::Failed,
            };
            if let Err(error) = attempt.finish(result).await {
                let news = JobNews::NotAccepted(error.to_string());
                self.turn.lock().await.teller.tell(&news);
            }
        }
    }

    /// On the client's thread, so on any runtime. Dropping the returned future cancels it.
    async fn on_the_thread<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let stopped = || Err(Error::Unknown("the client's thread has stopped".into()));
        self.inner.core.background.run(task).await.unwrap_or_else(stopped)
    }
}

impl Turn {
    /// Puts the definition unless the service has it already.
    async fn put(&mut self) -> Result<(), Error> {
        let mut conflicts = 0;
        loop {
            let there = match self.read().await {
                Ok(there) => there,
                Err(error) => {
                    self.wait_out(error).await?;
                    continue;
                }
            };
            if there.as_ref().is_some_and(|job| JobDefinition::of(job) == self.definition) {
                self.reached();
                return Ok(());
            }
            match self.put_over(there.map_or(0, |job| job.version)).await {
                Ok(_) => {
                    self.reached();
                    return Ok(());
                }
                // Somebody else has put one; after a lost answer that may be this one.
                Err(error)
                    if error.code() == Some(ErrorCode::VersionConflict)
                        && conflicts < CONFLICTS_MAX =>
                {
                    conflicts += 1;
                    sleep(backoff(conflicts, REFUSED_SHORTEST, REFUSED_LONGEST)).await;
                }
                Err(error) => self.wait_out(error).await?,
            }
        }
    }

    async fn next(&mut self) -> Result<Attempt, Error> {
        loop {
            let job = match self.read().await {
                Ok(Some(job)) => job,
                // Gone, as after the restore of a backup that is older than the job.
                Ok(None) => {
                    self.put().await?;
                    continue;
                }
                Err(error) => {
                    self.wait_out(error).await?;
                    continue;
                }
            };
            self.reached();
            let Some((ledger, schedule)) = self.follow(&job) else {
                sleep(LOOK_AT_LEAST_EVERY).await;
                continue;
            };
            let now = wall_clock();
            let plan = next(&ledger, &schedule, now);
            self.teller.paused(plan == Next::Paused);
            match plan {
                Next::Claim(slot) => {
                    let (inner, wish) = (self.inner.clone(), self.wish.clone());
                    match claim(inner, wish, ledger.version, slot).await {
                        Ok(attempt) => {
                            self.refusals = 0;
                            self.teller.clock(false);
                            self.teller.claims_are_decided();
                            return Ok(attempt);
                        }
                        Err(error) => self.not_claimed(error).await?,
                    }
                }
                Next::Wait(until) => {
                    self.refusals = 0;
                    let left = until.map(|until| Duration::from_millis(until.saturating_sub(now)));
                    let left = left.unwrap_or(LOOK_AT_LEAST_EVERY);
                    sleep(left.clamp(Duration::from_millis(1), LOOK_AT_LEAST_EVERY)).await;
                }
                Next::Paused => sleep(LOOK_AT_LEAST_EVERY).await,
            }
        }
    }

    /// The job's record; `None` where there is no such job.
    async fn read(&self) -> Result<Option<Job>, Error> {
        let Wish { namespace, job, .. } = &self.wish;
        let path = format!("/v1/jobs/{}?namespace={}", escape(job, "/:@+"), escape(namespace, ""));
        let core = &self.inner.core;
        match core.call(|_| Ask::get(path.clone()), core.settings.call_timeout).await {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put_over(&self, version: u64) -> Result<JobPut, Error> {
        let Wish { namespace, job, .. } = &self.wish;
        let core = &self.inner.core;
        let ask = |born_at| {
            let request = self.definition.request(namespace, job, version, born_at);
            Ask::post("/v1/jobs/put", &request)
        };
        core.call(ask, core.settings.call_timeout).await
    }

    /// The record, read, and the schedule of its definition: somebody else's too, for the last word is the service's.
    fn follow(&mut self, job: &Job) -> Option<(Ledger, Arc<Schedule>)> {
        let theirs = JobDefinition::of(job);
        let known = self.followed.as_ref().filter(|(version, _)| *version == job.version);
        let schedule = match known {
            Some((_, schedule)) => Ok(schedule.clone()),
            None => theirs.parse().map(Arc::new).map_err(|error| error.to_string()),
        };
        let read = schedule.and_then(|schedule| Ok((Ledger::read(job)?, schedule)));
        match read {
            Ok((ledger, schedule)) => {
                if theirs != self.definition {
                    self.teller.adopted(job.version, &theirs.schedule, &theirs.zone);
                }
                self.followed = Some((job.version, schedule.clone()));
                Some((ledger, schedule))
            }
            Err(why) => {
                self.teller.not_understood(job.version, &why);
                None
            }
        }
    }

    /// Somebody was faster, or the time has not come: the ledger says it at the next read.
    async fn not_claimed(&mut self, error: Error) -> Result<(), Error> {
        let pause = backoff(self.refusals, REFUSED_SHORTEST, REFUSED_LONGEST);
        let pause = match error.code() {
            Some(
                ErrorCode::VersionConflict
                | ErrorCode::RunClaimed
                | ErrorCode::RunFinished
                | ErrorCode::RunPaused
                | ErrorCode::RetriesExhausted
                | ErrorCode::LeaseEnded
                | ErrorCode::Abandoned
                | ErrorCode::NotFound,
            ) => pause,
            Some(ErrorCode::TooEarly) => {
                self.teller.clock(true);
                told(&error).max(REFUSED_LONGEST).min(LOOK_AT_LEAST_EVERY)
            }
            _ => return self.nothing_granted(error).await,
        };
        self.teller.claims_are_decided();
        self.refusals = self.refusals.saturating_add(1);
        sleep(pause).await;
        Ok(())
    }

    /// A claim that was not decided. A service that answers may read well and grant nothing, for as long as an hour.
    async fn nothing_granted(&mut self, error: Error) -> Result<(), Error> {
        if !passes(&error) || ErrorCode::leading(&why(&error)).is_none() {
            return self.wait_out(error).await;
        }
        self.teller.nothing_granted(&error);
        self.pause_after(&error).await;
        Ok(())
    }

    /// What passes by itself is waited for, with growing pauses; anything else is for the caller.
    async fn wait_out(&mut self, error: Error) -> Result<(), Error> {
        if !passes(&error) {
            return Err(error);
        }
        self.teller.unreachable(&error);
        self.pause_after(&error).await;
        Ok(())
    }

    async fn pause_after(&mut self, error: &Error) {
        let pause = backoff(self.failures, RETRY_SHORTEST, RETRY_LONGEST).max(told(error));
        self.failures = self.failures.saturating_add(1);
        sleep(pause.clamp(REFUSED_SHORTEST, RETRY_LONGEST)).await;
    }

    fn reached(&mut self) {
        self.failures = 0;
        self.teller.reachable();
    }
}

fn passes(error: &Error) -> bool {
    match error {
        Error::Refused(problem) => problem.retry_with.is_some(),
        Error::Unavailable(_) | Error::Unknown(_) => true,
        _ => false,
    }
}

/// What a refusal says of when to try again.
fn told(error: &Error) -> Duration {
    let of = |problem: &Problem| problem.retry_after_ms.map(Duration::from_millis);
    match error {
        Error::Refused(problem) => of(problem).unwrap_or_default(),
        _ => Duration::ZERO,
    }
}

/// Unix milliseconds.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
