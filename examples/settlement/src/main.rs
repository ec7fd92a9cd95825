//! Settles every account for one slot: the command that `sereno job` runs. See README.md; what has to be right is in
//! `ledger.rs`.

mod ledger;

use clap::Parser;
use ledger::{Failure, Ledger, Run};
use sereno_client::api::Millis;
use sereno_guard::Fence;
use std::process::ExitCode;

/// Somebody else has taken over.
const FENCED: u8 = 75;
/// How often it connects anew. More than that is for the next attempt.
const CONNECTIONS: u32 = 3;

/// Settles every account for one slot. Run it under `sereno job`.
#[derive(Debug, Parser)]
struct Args {
    /// Where the ledger is.
    #[arg(long, env = "DATABASE_URL", value_name = "postgres://…")]
    database: String,
    /// Who does it, for people.
    #[arg(long, default_value = "a replica")]
    replica: String,
    /// How long it takes to work out one account.
    #[arg(long, default_value = "20ms")]
    work: Millis,
    /// Which slot.
    #[arg(long, env = "SERENO_SLOT")]
    slot: String,
    /// Which attempt at it.
    #[arg(long, env = "SERENO_ATTEMPT")]
    attempt: i32,
    /// The fencing token of this attempt.
    #[arg(long, env = "SERENO_TOKEN")]
    token: u64,
    /// Under what the ledger remembers the highest token.
    #[arg(long, env = "SERENO_FENCE_KEY")]
    fence_key: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let fence = match Fence::new(&args.fence_key, args.token) {
        Ok(fence) => fence,
        Err(wrong) => {
            eprintln!("settle: {wrong}");
            return ExitCode::from(2);
        }
    };
    let run = Run { slot: args.slot, attempt: args.attempt, replica: args.replica, fence };
    for _ in 0..CONNECTIONS {
        match settle(&args.database, &run, args.work).await {
            Ok(count) => {
                println!("settle: {} accounts for {}", count, run.slot);
                return ExitCode::SUCCESS;
            }
            Err(Failure::Fenced(refused)) => {
                eprintln!("settle: {refused}");
                return ExitCode::from(FENCED);
            }
            // Whatever was under way is done or not; the same once more finds out which.
            Err(error) => eprintln!("settle: {error}"),
        }
    }
    ExitCode::FAILURE
}

/// Every account that this slot still owes, one short transaction for each. Gives how many it were.
async fn settle(database: &str, run: &Run, work: Millis) -> Result<usize, Failure> {
    let mut ledger = Ledger::connect(database).await?;
    // The token before the first look: from here on no earlier attempt writes anything.
    let open = ledger.open_accounts(run).await?;
    for account in &open {
        // Whoever is not the one any more begins nothing.
        ledger.begin(run, *account).await?;
        // Here the real work would be. It may take long, and the process may be paused in it.
        tokio::time::sleep(work.to_duration()).await;
        ledger.settle(run, *account).await?;
    }
    Ok(open.len())
}
