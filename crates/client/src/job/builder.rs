//! What a caller can say about a job that this process takes part in.

use super::{
    claim::Wish,
    definition::JobDefinition,
    news::{JobNews, Listener},
    runner::JobRunner,
};
use crate::{client::Inner, error::Error};
use sereno_api::{Labels, Missed, Overlap};
use std::{sync::Arc, time::Duration};

/// What happens to running work when its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It is stopped where it stands.
    #[default]
    Stop,
    /// It goes on: the protected resource refuses an older token once a later attempt has written.
    Keep,
}

/// A job that is being described; [`Job::start`] puts it and takes part.
#[must_use = "nothing happens before start() is awaited"]
#[derive(Clone)]
pub struct Job {
    inner: Arc<Inner>,
    wish: Wish,
    definition: JobDefinition,
    on_loss: OnLoss,
    listener: Option<Listener>,
}

impl Job {
    pub(crate) fn new(inner: Arc<Inner>, name: String) -> Self {
        let settings = &inner.core.settings;
        let wish = Wish {
            namespace: settings.namespace.clone(),
            job: name,
            owner: settings.owner.clone(),
            lease_ttl: None,
            labels: Labels::default(),
        };
        let definition = JobDefinition::new("", "UTC");
        Self { inner, wish, definition, on_loss: OnLoss::Stop, listener: None }
    }

    /// The namespace. Default: the client's.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.wish.namespace = namespace.into();
        self
    }

    /// Who runs it, for people. Default: the client's.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.wish.owner = owner.into();
        self
    }

    /// When it runs: a cron expression of five fields (or six, with seconds in front), and the IANA name of the time
    /// zone. Needed.
    pub fn schedule(mut self, cron: impl Into<String>, zone: impl Into<String>) -> Self {
        self.definition.schedule = cron.into();
        self.definition.zone = zone.into();
        self
    }

    /// What becomes of slots that passed while nobody could run them. Default: the latest runs.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.definition.missed = missed;
        self
    }

    /// Whether a slot may run while an earlier one still does, on another replica. Default: forbidden.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.definition.overlap = overlap;
        self
    }

    /// How often a run that failed or died is tried again. 0 (the default): each slot runs at most once; else at least
    /// once, as long as the retries last.
    pub fn retries(mut self, retries: u32) -> Self {
        self.definition.retries = retries;
        self
    }

    /// The longest that one attempt may take. Default: an hour.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.definition.max_run = max_run;
        self
    }

    /// How long the lease of a run lasts without a renewal; so long after a replica's death the run can be claimed
    /// again. Default: the namespace's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.wish.lease_ttl = Some(ttl);
        self
    }

    /// A note for people, shown in reads.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.wish.labels.0.insert(key.into(), value.into());
        self
    }

    /// What [`JobRunner::run`] does when the lease is lost under the work. Default: stop it.
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = on_loss;
        self
    }

    /// Is told what changes: the service is not reached, the job is paused, somebody else has changed it.
    pub fn on_news(mut self, listener: impl Fn(&JobNews) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Puts the definition where the service has none or another, and takes part. While the service is not reached it
    /// keeps trying.
    ///
    /// The replica that was started last has the word: when somebody changes the definition later, this one follows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a schedule or zone that is none; [`Error::Refused`] where a rule forbids it.
    pub async fn start(self) -> Result<JobRunner, Error> {
        self.definition.parse().map_err(|error| Error::Invalid(error.to_string()))?;
        let runner =
            JobRunner::new(self.inner, self.wish, self.definition, self.on_loss, self.listener);
        runner.put().await?;
        Ok(runner)
    }
}
