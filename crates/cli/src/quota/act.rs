//! `sereno quota begin`, `extend`, `resize`, `commit` and `release`: what any process does about a reservation that it
//! knows by name.

use super::{
    node::{self, Amount, Node, OnExpiryArg, spelled},
    quotas,
};
use crate::{exit, failure::Failure, locks::InNamespace, output::Output, values};
use clap::{Args, ValueEnum};
use sereno_client::{
    Client, Commit, Error, QuotaError, Quotas, ReservationName,
    api::{Committed, Reserved, ReservedItem},
};
use std::time::Duration;

/// Which reservation.
#[derive(Clone, Debug, Args)]
struct Which {
    /// The reservation's id, as `reserve` has told it (or SERENO_RESERVATION).
    #[arg(value_name = "RESERVATION", env = "SERENO_RESERVATION", value_parser = node::id)]
    reservation: String,
    /// Its fence, where it is known: another reservation is not touched then.
    #[arg(long, value_name = "FENCE", value_parser = values::whole)]
    fence: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
}

impl Which {
    fn named(&self) -> ReservationName {
        ReservationName { reservation_id: self.reservation.clone(), fence: self.fence }
    }

    fn quotas(&self, client: &Client) -> Quotas {
        quotas(client, &self.at)
    }
}

/// Say that the outside work has begun.
///
/// The reservation gets a deadline of its own, never nearer than the one it had, and a fate of its own for when that
/// passes without a word. Only the first begin counts.
#[derive(Clone, Debug, Args)]
pub(crate) struct BeginArgs {
    #[command(flatten)]
    which: Which,
    /// How long the work may take without an extension (1h at most).
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    ttl: Duration,
    /// What becomes of the reservation when that time passes.
    #[arg(long, value_enum)]
    on_expiry: OnExpiryArg,
    #[command(flatten)]
    output: Output,
}

/// Which reservation to extend, and to when.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    which: Which,
    /// How long from now. [default: the time last granted]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    ttl: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

/// Change what is reserved.
///
/// The new amounts are named, never a difference; nodes that are not named stay as they are, and 0 gives one back. Less
/// always passes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResizeArgs {
    #[command(flatten)]
    which: Which,
    /// The new amount at a node; several can be given.
    #[arg(long = "to", required = true, value_name = "NODE=AMOUNT", value_parser = node::any_amount)]
    to: Vec<Amount>,
    #[command(flatten)]
    output: Output,
}

/// Turn what is reserved into use.
///
/// All of it, unless --item says how much: then the rest is given back, or stays reserved with --part. The commit's
/// number names it for `sereno quota return`, when the real thing is gone.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommitArgs {
    #[command(flatten)]
    which: Which,
    /// What is used: at most what is reserved. Can be given several times; of nodes that are not named nothing is used.
    /// [default: all]
    #[arg(long, value_name = "NODE=AMOUNT", value_parser = node::any_amount)]
    item: Vec<Amount>,
    /// The rest stays reserved.
    #[arg(long, requires = "item")]
    part: bool,
    /// If the reservation has expired (an hour ago at most): refuse it, or admit it anew where there is room. Exits
    /// with 120 where there is none: undo the work.
    #[arg(long, value_enum, default_value_t = LateArg::Reject)]
    late: LateArg,
    #[command(flatten)]
    output: Output,
}

/// See [`sereno_client::api::LateCommit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LateArg {
    Reject,
    Readmit,
}

/// Which reservation to give back.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn begin(client: &Client, args: BeginArgs) -> Result<u8, Failure> {
    let quotas = args.which.quotas(client);
    let begun = quotas.begin(&args.which.named(), args.ttl, args.on_expiry.into()).await;
    show(args.output, &args.which, &begun.map_err(failed)?, "its work has begun; it is kept")
}

pub(super) async fn extend(client: &Client, args: ExtendArgs) -> Result<u8, Failure> {
    let quotas = args.which.quotas(client);
    let extended = quotas.extend(&args.which.named(), args.ttl).await.map_err(failed)?;
    show(args.output, &args.which, &extended, "it is kept")
}

pub(super) async fn resize(client: &Client, args: ResizeArgs) -> Result<u8, Failure> {
    let quotas = args.which.quotas(client);
    let to = args.to.into_iter().map(Amount::triple);
    let resized = quotas.resize(&args.which.named(), to).await.map_err(failed)?;
    show(args.output, &args.which, &resized, "it is kept")
}

pub(super) async fn commit(client: &Client, args: CommitArgs) -> Result<u8, Failure> {
    let quotas = args.which.quotas(client);
    let mut commit = match args.item.is_empty() {
        true => Commit::all(),
        false => Commit::of(args.item.into_iter().map(Amount::triple)),
    };
    if args.part {
        commit = commit.keep_rest();
    }
    if args.late == LateArg::Readmit {
        commit = commit.or_readmit();
    }
    let committed = quotas.commit(&args.which.named(), commit).await.map_err(failed)?;
    args.output.answer(&args.which.at.locate(committed), |it| committed_text(&it.thing))?;
    Ok(0)
}

pub(super) async fn release(client: &Client, args: ReleaseArgs) -> Result<u8, Failure> {
    let quotas = args.which.quotas(client);
    let released = quotas.release(&args.which.named()).await.map_err(failed)?;
    args.output.answer(&released, |it| match (it.released, it.reason) {
        (true, _) => format!("{} is free again", spelled(&it.items)),
        (false, Some(reason)) => format!("there was nothing to give back: it had ended ({reason})"),
        (false, None) => "there was nothing to give back: it had ended".into(),
    })?;
    Ok(if released.released { 0 } else { exit::FAILED })
}

/// What a commit came to, for people.
pub(super) fn committed_text(committed: &Committed) -> String {
    let mut text = format!("commit {}: {} is used", committed.commit_id, spelled(&committed.taken));
    if !committed.returned.is_empty() {
        text.push_str(&format!(", {} is free again", spelled(&committed.returned)));
    }
    if !committed.left.is_empty() {
        text.push_str(&format!(", {} stays reserved", spelled(&committed.left)));
    }
    if let Some(expired) = &committed.readmits {
        text.push_str(&format!("\n  it came late, and was admitted anew ({expired} had expired)"));
    }
    text
}

fn show(output: Output, which: &Which, reserved: &Reserved, what: &str) -> Result<u8, Failure> {
    let reserved = which.at.locate(reserved);
    output.answer(&reserved, |it| reserved_text(it.thing, what))?;
    Ok(0)
}

/// A reservation as its owner is told of it, for people.
pub(super) fn reserved_text(it: &Reserved, what: &str) -> String {
    let clipped = if it.clipped { ", which is as long as is allowed" } else { "" };
    let mut text = format!(
        "{}: {what} until {}{clipped} (fence {})",
        it.reservation_id, it.expires_at, it.fence
    );
    it.items.iter().for_each(|item| text.push_str(&format!("\n  {}", item_text(item))));
    text
}

/// The amount, and what each layer has left.
fn item_text(item: &ReservedItem) -> String {
    let node = Node::of(&item.quota, &item.path);
    let layers = node.layers().into_iter().zip(&item.available);
    let left: Vec<_> = layers.map(|(layer, left)| format!("{left} of {layer}")).collect();
    format!("{node}={}  left: {}", item.amount, left.join(", "))
}

pub(super) fn failed(error: QuotaError) -> Failure {
    Error::from(error).into()
}
