//! The arguments of `sereno elect`.

use crate::{connect::Service, lock::FencingArg, values};
use clap::Args;
use std::{ffi::OsString, time::Duration};

/// Run a command while leading an election.
///
/// Started on several machines, it runs the command on one of them at a time; the
/// others wait in order. The command finds SERENO_TERM, SERENO_TOKEN (the same:
/// send it along with every write), SERENO_ELECTION and SERENO_FENCE_KEY in its
/// environment. It runs in a process group of its own, which is stopped (TERM,
/// then KILL) before the term can end, whatever happens to the service, the
/// network or this wrapper. When the command ends, this leader resigns.
///
/// While the service is not reached, who waits goes on asking, and says so once.
/// Who leads goes on for as long as the term is certain.
///
/// Exit code: the command's own (128 + n if signal n ended it), or
///     2  wrong usage, and what the service calls INVALID_ARGUMENT
///   120  not elected: somebody else leads, at once or when the wait was over
///   122  the service was not reached in time (--wait), or did not answer
///   123  the term was lost, or about to be; the command was stopped
///   124  the longest term (--max-hold) was used up; the command was stopped
///   125  refused by a rule, or a failure of sereno itself
///   126  the command cannot be run
///   127  the command was not found
/// With --again there is no 123 and no 124: it campaigns anew.
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ElectArgs {
    #[command(flatten)]
    pub service: Service,

    /// Which election.
    #[arg(value_parser = values::resource)]
    pub name: String,

    /// Who campaigns: one name for each process. A hand-off names it. [default: user@host:pid]
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    pub candidate: Option<String>,

    /// What others want to know of the leader, an address for instance. [default: empty]
    #[arg(long, value_name = "TEXT")]
    pub value: Option<String>,

    /// How long a term lasts without a renewal. [default: the namespace's, 30s unless set]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub ttl: Option<Duration>,

    /// Wait for so long to be elected; 0s: lead at once or not at all. [default: as long as it takes]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub wait: Option<Duration>,

    /// Stop the command before a term has lasted so long, however often it was renewed: TERM comes the grace and about
    /// 1 % of the lease before. [default: the namespace's, none unless set]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub max_hold: Option<Duration>,

    /// After the term was lost, campaign again and start the command anew.
    #[arg(long)]
    pub again: bool,

    /// From TERM to KILL when the command has to be stopped; a third of the lease at most.
    /// [default: a quarter of the lease, 10s at most]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub grace: Option<Duration>,

    /// Where the election lives. [default: default]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// Whether the resources that the leader writes to check the term. [default: the namespace's]
    #[arg(long, value_enum)]
    pub fencing: Option<FencingArg>,

    /// A note for people; can be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    pub label: Vec<(String, String)>,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
