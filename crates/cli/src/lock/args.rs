//! The arguments of `sereno lock`.

use crate::{connect::Service, values};
use clap::{Args, ValueEnum};
use std::{ffi::OsString, time::Duration};

/// Run a command while holding a lock.
///
/// The command finds SERENO_TOKEN, SERENO_RESOURCE and SERENO_FENCE_KEY in its
/// environment: send the token along with every write to the protected resource.
/// It runs in a process group of its own, which is stopped (TERM, then KILL)
/// before the lease can end, whatever happens to the service, the network or this
/// wrapper. When the command ends, what is left of its group is stopped and the
/// lock is released.
///
/// Exit code: the command's own (128 + n if signal n ended it), or
///     2  wrong usage, and what the service calls INVALID_ARGUMENT
///   120  not acquired: somebody else has it, at once or when the wait was over
///   121  skipped: somebody else has it (--skip-if-held)
///   122  the service was not reached, did not answer, or grants nothing yet
///        after a restore; the command did not run
///   123  the lock was lost, or about to be; the command was stopped
///   124  the longest hold (--max-hold) was used up; the command was stopped
///   125  refused by a rule, or a failure of sereno itself
///   126  the command cannot be run
///   127  the command was not found
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub service: Service,

    /// What to lock.
    #[arg(value_parser = values::resource)]
    pub name: String,

    /// How long the lease lasts without a renewal. [default: the namespace's, 30s unless set]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub ttl: Option<Duration>,

    /// Stand in the queue for so long (10m at most). [default: do not wait]
    #[arg(long, value_name = "DURATION", value_parser = values::wait, conflicts_with = "skip_if_held")]
    pub wait: Option<Duration>,

    /// Stop the command before the lock has been held for so long, however often it was renewed: TERM comes the grace
    /// and about 1 % of the lease before. [default: the namespace's, none unless set]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub max_hold: Option<Duration>,

    /// If somebody else has it, do nothing and exit with 121: the work is being done.
    #[arg(long)]
    pub skip_if_held: bool,

    /// Keep the lock for so long even if the command is done sooner, so that a quick run is not run twice. Not longer
    /// than the longest hold.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub hold_at_least: Option<Duration>,

    /// From TERM to KILL when the command has to be stopped; a third of the lease at most.
    /// [default: a quarter of the lease, 10s at most]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub grace: Option<Duration>,

    /// Where the name lives. [default: default]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// Who asks, for people. [default: user@host:pid]
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    pub owner: Option<String>,

    /// Whether the protected resource checks the token. [default: the namespace's]
    #[arg(long, value_enum)]
    pub fencing: Option<FencingArg>,

    /// A note for people; can be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    pub label: Vec<(String, String)>,

    /// Only to say that there is none: what is written to standard output is the command's.
    #[arg(long = "output", hide = true, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "", value_parser = no_output)]
    pub _output: Option<String>,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

fn no_output(_: &str) -> Result<String, String> {
    Err("`sereno lock` has no --output: its standard output is its command's. Give an option of the command after `--`".into())
}

/// See [`sereno_client::api::Fencing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FencingArg {
    /// The resource refuses lower tokens.
    Enforced,
    /// Nobody checks.
    BestEffort,
}

impl std::fmt::Display for FencingArg {
    /// As it is given on the command line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Enforced => "enforced",
            Self::BestEffort => "best-effort",
        })
    }
}

impl From<sereno_client::api::Fencing> for FencingArg {
    fn from(fencing: sereno_client::api::Fencing) -> Self {
        match fencing {
            sereno_client::api::Fencing::Enforced => Self::Enforced,
            sereno_client::api::Fencing::BestEffort => Self::BestEffort,
        }
    }
}

impl From<FencingArg> for sereno_client::api::Fencing {
    fn from(fencing: FencingArg) -> Self {
        match fencing {
            FencingArg::Enforced => Self::Enforced,
            FencingArg::BestEffort => Self::BestEffort,
        }
    }
}
