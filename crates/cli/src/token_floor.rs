//! `sereno token-floor`: repair for a service whose tokens fell behind what resources have seen.

use crate::{connect::Service, failure::Failure, output::Output};
use clap::Args;

/// Raise the floor of all tokens to come.
///
/// Needed only when an earlier leader's wall clock was far ahead and its log is gone: resources then refuse the
/// tokens of now. The floor can only rise, and every token to come is at least this; one that is higher already stays,
/// and the answer says so.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenFloorArgs {
    #[command(flatten)]
    service: Service,
    /// The lowest token that may be granted next: above the highest that any resource has seen, and at most a year
    /// ahead of the leader's clock (in microseconds since 1970).
    #[arg(long, value_name = "TOKEN", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    set: u64,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: TokenFloorArgs) -> Result<u8, Failure> {
    let set = args.service.client()?.set_token_floor(args.set).await?;
    // The service answers with the floor in force, which a lower one does not bring down.
    args.output.answer(&set, |set| match set.floor > args.set {
        true => format!(
            "the floor stays at {}, which is above {}: it can only rise, and nothing was changed",
            set.floor, args.set
        ),
        false => format!("every token from now on is at least {}", set.floor),
    })?;
    Ok(0)
}
