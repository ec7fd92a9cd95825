//! `sereno quota reserve`: reserve capacity, or run a command under it.

use super::{
    act::{LateArg, reserved_text},
    node::{self, Amount, OnExpiryArg},
    quotas,
};
use crate::{
    connect::Service, failure::Failure, locks::InNamespace, output::Output, pause, values,
};
use clap::{Args, ValueEnum};
use sereno_client::{Client, Error, Reserve};
use std::{ffi::OsString, time::Duration};

/// Reserve capacity; with `-- CMD` run a command under it.
///
/// All amounts are reserved at every layer of their trees, or none is. Without a
/// command the reservation's id goes to standard output: commit or release it by
/// that, from anywhere, before its --ttl is over.
///
/// With a command it is extended by itself as long as the command runs. What
/// becomes of it depends on how the command ends:
///
///   exit code 0    it is committed: the command has made something that lasts.
///                  If it only needed the capacity while it ran, say
///                  --on-success release.
///   anything else  it is released: nothing was made. If the command may leave
///                  something behind, say --on-failure leave, and --on-expiry
///                  quarantine for somebody to look.
///
/// The command finds SERENO_RESERVATION, SERENO_FENCE and SERENO_FENCE_KEY in its
/// environment. It runs in a process group of its own, which is stopped (TERM,
/// then KILL) before the reservation can end and its capacity be given to somebody
/// else, as by `sereno lock`; with --on-expiry commit or quarantine the capacity
/// stays taken, so the command goes on to the end of --max-lifetime.
///
/// Exit code: 0 reserved, or
///     1  refused
///     2  wrong usage, and what the service calls INVALID_ARGUMENT
///     3  the service was not reached, or did not answer
///   120  there is not enough, at once or when the wait was over
/// With a command its own (128 + n if signal n ended it), or
///     2, 120  as above; the command did not run
///   122  the service was not reached, did not answer, or grants nothing yet
///        after a restore; the command did not run
///   123  the reservation was lost, or about to be; the command was stopped
///   124  the longest life (--max-lifetime) was used up; the command was stopped
///   125  refused by a rule, or a failure of sereno itself; also where the command
///        was done and what it used could not be committed
///   126  the command cannot be run
///   127  the command was not found
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReserveArgs {
    /// How much at which node; up to 16.
    #[arg(required = true, value_name = "NODE=AMOUNT", value_parser = node::amount)]
    amounts: Vec<Amount>,

    /// For whom, in reads, in the ledger and against a bound for each owner. [default: user@host:pid]
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    owner: Option<String>,

    /// How long it lasts without an extension.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    ttl: Duration,

    /// Bound of its life over all extensions. [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    max_lifetime: Option<Duration>,

    /// What becomes of it when its deadline passes without a word.
    #[arg(long, value_enum, default_value_t = OnExpiryArg::Release)]
    pub(super) on_expiry: OnExpiryArg,

    /// Higher ones go first among those who wait inside one tenant: 0 to 255.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    priority: u8,

    /// Queue for it for so long (10m at most). [default: do not wait]
    #[arg(long, value_name = "DURATION", value_parser = values::wait)]
    wait: Option<Duration>,

    /// A note for people; can be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    label: Vec<(String, String)>,

    /// What becomes of it when the command has done well.
    #[arg(long, value_enum, default_value_t = OnSuccess::Commit, requires = "command")]
    pub(super) on_success: OnSuccess,

    /// What becomes of it when the command has failed, was killed, or could not be run.
    #[arg(long, value_enum, default_value_t = OnFailure::Release, requires = "command")]
    pub(super) on_failure: OnFailure,

    /// If it has expired when the command is done: the commit is refused, or admitted anew where there is room.
    #[arg(long, value_enum, default_value_t = LateArg::Reject, requires = "command")]
    pub(super) late: LateArg,

    /// From TERM to KILL when the command has to be stopped; a third of the time at most.
    /// [default: a quarter of the time to live, 10s at most]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, requires = "command")]
    pub(super) grace: Option<Duration>,

    #[command(flatten)]
    at: InNamespace,

    #[command(flatten)]
    output: Output,

    /// A command and its arguments; its standard output is its own.
    #[arg(last = true, value_name = "CMD", conflicts_with = "format")]
    pub(super) command: Vec<OsString>,
}

/// After exit code 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnSuccess {
    /// It is used from now on.
    Commit,
    /// It was only needed while the command ran.
    Release,
}

/// After anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnFailure {
    /// Nothing is used.
    Release,
    /// It stays until its deadline, and then --on-expiry says.
    Leave,
}

pub(super) async fn run(service: &Service, args: ReserveArgs) -> Result<u8, Failure> {
    match args.command.is_empty() {
        true => only(&service.client()?, args).await,
        false => super::run::run(service, &args).await,
    }
}

/// Without a command: the reservation stays when this process is over.
async fn only(client: &Client, args: ReserveArgs) -> Result<u8, Failure> {
    let reservation = match args.described(client).reserve().await {
        Ok(reservation) => reservation,
        Err(error) => return Err(pause::or_else(client, Error::from(error)).await),
    };
    let told = reservation.told().clone();
    reservation.leave();
    args.output.answer(&args.at.locate(told), |it| reserved_text(&it.thing, "it is reserved"))?;
    Ok(0)
}

impl ReserveArgs {
    pub(super) fn described(&self, client: &Client) -> Reserve {
        let amounts = self.amounts.iter().cloned().map(Amount::triple);
        let mut reserve = quotas(client, &self.at)
            .reserve_all(amounts)
            .ttl(self.ttl)
            .on_expiry(self.on_expiry.into())
            .priority(self.priority);
        if let Some(owner) = &self.owner {
            reserve = reserve.owner(owner);
        }
        if let Some(max_lifetime) = self.max_lifetime {
            reserve = reserve.max_lifetime(max_lifetime);
        }
        if let Some(wait) = self.wait {
            reserve = reserve.wait(wait);
        }
        for (key, value) in &self.label {
            reserve = reserve.label(key, value);
        }
        reserve
    }
}
