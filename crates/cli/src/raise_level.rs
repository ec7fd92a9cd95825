//! `sereno raise-level`: the last step of a rolling upgrade.

use crate::{connect::Service, failure::Failure, output::Output};
use clap::Args;

/// Have all nodes behave by a newer level, once all of them run a version that understands it.
///
/// `sereno status` shows which level each node understands, and which one is in force. The level can only rise: a
/// version that does not understand it cannot serve this log any more.
#[derive(Clone, Debug, Args)]
pub(crate) struct RaiseLevelArgs {
    #[command(flatten)]
    service: Service,
    /// The level.
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..))]
    to: u32,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: RaiseLevelArgs) -> Result<u8, Failure> {
    let raised = args.service.client()?.raise_level(args.to).await?;
    args.output.answer(&raised, |raised| format!("level {} is in force", raised.level))?;
    if raised.level == args.to {
        return Ok(0);
    }
    // Lower than asked for it never is.
    let (asked, level) = (args.to, raised.level);
    let what =
        format!("asked for level {asked}, and level {level} is in force: a level is never lowered");
    Err(Failure::new(what))
}
