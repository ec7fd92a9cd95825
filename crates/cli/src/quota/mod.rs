//! `sereno quota`: limits, reservations, and the books.

mod act;
mod books;
mod explain;
mod get;
mod ledger;
mod node;
mod reconcile;
mod refusal;
mod reservations;
mod reserve;
mod rm;
mod run;
mod set;
mod share;
mod tree;

use crate::{connect::Service, failure::Failure, locks::InNamespace};
use clap::{Args, Subcommand};
use sereno_client::{Client, Quotas};

/// Share out capacity: limits of a tree, reservations, and what is used.
///
/// A node is written QUOTA/PATH (gpu/acme/vision; gpu alone is the root), an amount at a node NODE=AMOUNT
/// (gpu/acme/vision=4). Where there is not enough the exit code is 120, and a table names every layer that is exhausted.
#[derive(Clone, Debug, Args)]
pub(crate) struct QuotaArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: QuotaCommand,
}

/// What to do with quotas.
#[derive(Clone, Debug, Subcommand)]
enum QuotaCommand {
    Set(set::SetArgs),
    /// Show one node: its rules, its books, and whose use it is.
    Get(get::GetArgs),
    /// Show the nodes of a quota, or of all.
    Tree(tree::TreeArgs),
    /// Remove a node that nothing uses.
    Rm(rm::RmArgs),
    Reserve(Box<reserve::ReserveArgs>),
    /// List reservations that have not ended, the oldest first.
    Reservations(reservations::ReservationsArgs),
    Begin(act::BeginArgs),
    /// Move a reservation's deadline, never nearer.
    Extend(act::ExtendArgs),
    Resize(act::ResizeArgs),
    Commit(act::CommitArgs),
    /// Give a reservation back: nothing was used.
    Release(act::ReleaseArgs),
    Return(books::ReturnArgs),
    Settle(books::SettleArgs),
    Explain(explain::ExplainArgs),
    Ledger(ledger::LedgerArgs),
    Report(books::ReportArgs),
    Reconcile(reconcile::ReconcileArgs),
    Adjust(books::AdjustArgs),
    Share(share::ShareArgs),
}

pub(crate) async fn run(QuotaArgs { service, command }: QuotaArgs) -> Result<u8, Failure> {
    let done = match command {
        QuotaCommand::Reserve(args) => reserve::run(&service, *args).await,
        command => plain(&service.client()?, command).await,
    };
    done.map_err(refusal::worded)
}

async fn plain(client: &Client, command: QuotaCommand) -> Result<u8, Failure> {
    match command {
        QuotaCommand::Set(args) => set::run(client, args).await,
        QuotaCommand::Get(args) => get::run(client, args).await,
        QuotaCommand::Tree(args) => tree::run(client, args).await,
        QuotaCommand::Rm(args) => rm::run(client, args).await,
        QuotaCommand::Reserve(_) => unreachable!("it brings a client of its own"),
        QuotaCommand::Reservations(args) => reservations::run(client, args).await,
        QuotaCommand::Begin(args) => act::begin(client, args).await,
        QuotaCommand::Extend(args) => act::extend(client, args).await,
        QuotaCommand::Resize(args) => act::resize(client, args).await,
        QuotaCommand::Commit(args) => act::commit(client, args).await,
        QuotaCommand::Release(args) => act::release(client, args).await,
        QuotaCommand::Return(args) => books::return_use(client, args).await,
        QuotaCommand::Settle(args) => books::settle(client, args).await,
        QuotaCommand::Explain(args) => explain::run(client, args).await,
        QuotaCommand::Ledger(args) => ledger::run(client, args).await,
        QuotaCommand::Report(args) => books::report(client, args).await,
        QuotaCommand::Reconcile(args) => reconcile::run(client, args).await,
        QuotaCommand::Adjust(args) => books::adjust(client, args).await,
        QuotaCommand::Share(args) => share::run(client, args).await,
    }
}

/// The quotas of the namespace that was named.
fn quotas(client: &Client, at: &InNamespace) -> Quotas {
    match &at.namespace {
        Some(namespace) => client.quota().namespace(namespace),
        None => client.quota(),
    }
}
