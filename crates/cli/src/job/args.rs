//! The arguments of `sereno job`.

use crate::{connect::Service, values};
use clap::{Args, ValueEnum};
use sereno_client::{
    JobDefinition,
    api::{Missed, Overlap},
};
use std::{ffi::OsString, time::Duration};

/// Run a command on a schedule, on one replica at a time.
///
/// Start it on every replica, with the same words. Each computes the times at
/// which the job is due (its slots) and claims them; the service's ledger lets one
/// replica have each. The command finds in its environment
///
///   SERENO_JOB        which job
///   SERENO_SLOT       which slot (RFC 3339, in UTC): the key by which its
///                     business writes are idempotent
///   SERENO_ATTEMPT    1 for the first
///   SERENO_TOKEN      send it along with every write to the protected resource,
///                     which then refuses those of older attempts
///   SERENO_FENCE_KEY  under what the resource remembers the highest token
///
/// Its exit code 0 means that the slot is done. Anything else, or the death of the
/// replica, is a failed attempt. With --retries 0 each slot runs AT MOST ONCE: one
/// that died stays undone. With retries it runs AT LEAST ONCE, as long as they
/// last: an attempt that died may have done its work, or a part of it.
///
/// The command runs in a process group of its own, which is stopped (TERM, then
/// KILL) before its lease can end, as by `sereno lock`, and in any case when
/// --max-run is over. While the service is not reached nothing is claimed; it
/// keeps trying. TERM, INT, HUP and QUIT are passed on to the command; when it has
/// ended, so does this.
///
/// Exit code: 128 + n when signal n ended it, or
///     2  wrong usage, and what the service calls INVALID_ARGUMENT
///   125  refused by a rule, or a failure of sereno itself
/// With --once, after one attempt, the command's own, or
///   123  the lease was lost, or about to be; the command was stopped
///   124  the longest run (--max-run) was used up; the command was stopped
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct JobArgs {
    #[command(flatten)]
    pub service: Service,

    /// What the job is called.
    #[arg(long, value_name = "NAME", value_parser = values::job)]
    pub name: String,

    #[command(flatten)]
    pub definition: DefinitionArgs,

    /// How long the lease of a run lasts without a renewal; so long after a replica's death its run can be tried again.
    /// [default: the namespace's, 30s unless set]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub ttl: Option<Duration>,

    /// What happens to the command when its lease is lost. What is stopped counts as failed.
    #[arg(long, value_enum, default_value_t = OnLossArg::Kill)]
    pub on_loss: OnLossArg,

    /// From TERM to KILL when the command has to be stopped; a third of the lease at most.
    /// [default: a quarter of the lease, 10s at most]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub grace: Option<Duration>,

    /// End after one attempt of this replica.
    #[arg(long)]
    pub once: bool,

    /// Where the job lives. [default: default]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// Who runs it, for people. [default: user@host:pid]
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    pub owner: Option<String>,

    /// A note for people; can be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    pub label: Vec<(String, String)>,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// When a job runs, and by which rules: of `job`, and of `jobs put`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DefinitionArgs {
    /// When it runs: a cron expression of five fields (minute, hour, day of month, month, day of week), or six with
    /// seconds in front, or @hourly, @daily, ...
    #[arg(long, value_name = "CRON")]
    pub schedule: String,

    /// The time zone of the schedule, by its IANA name.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub tz: String,

    /// What becomes of slots that passed while nobody could run them: left out when over 5 minutes late, or the latest
    /// of them runs, or all run in order.
    #[arg(long, value_enum, default_value_t = MissedArg::Latest)]
    pub missed: MissedArg,

    /// Whether a slot may run while an earlier one still does, on another replica.
    #[arg(long, value_enum, default_value_t = OverlapArg::Forbid)]
    pub overlap: OverlapArg,

    /// How often a run that failed or died is tried again. 0: at most once; else at least once.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = values::retries)]
    pub retries: u32,

    /// The longest that one attempt may take: 1s to 24h.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub max_run: Duration,
}

impl DefinitionArgs {
    pub(crate) fn definition(&self) -> JobDefinition {
        let mut definition = JobDefinition::new(&self.schedule, &self.tz);
        definition.missed = self.missed.into();
        definition.overlap = self.overlap.into();
        definition.retries = self.retries;
        definition.max_run = self.max_run;
        definition
    }
}

/// See [`sereno_client::OnLoss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLossArg {
    /// It is stopped before the lease can end.
    Kill,
    /// It goes on; the protected resource has to refuse its token once a later attempt has written.
    Keep,
}

/// See [`Missed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissedArg {
    Skip,
    Latest,
    All,
}

impl From<MissedArg> for Missed {
    fn from(missed: MissedArg) -> Self {
        match missed {
            MissedArg::Skip => Self::Skip,
            MissedArg::Latest => Self::Latest,
            MissedArg::All => Self::All,
        }
    }
}

/// See [`Overlap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverlapArg {
    Forbid,
    Allow,
}

impl From<OverlapArg> for Overlap {
    fn from(overlap: OverlapArg) -> Self {
        match overlap {
            OverlapArg::Forbid => Self::Forbid,
            OverlapArg::Allow => Self::Allow,
        }
    }
}
