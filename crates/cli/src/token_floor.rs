//! `sereno token-floor`: repair for a service whose tokens fell behind what resources have seen.

use crate::{connect::Service, failure::Failure, output::Output, values};
use clap::Args;
use sereno_client::api::TokenFloorSet;

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
    #[arg(long, value_name = "TOKEN", value_parser = values::number(0, (1 << 53) - 1))]
    set: u64,
    #[command(flatten)]
    output: Output,
}

/// What came of it.
#[derive(serde::Serialize)]
struct Answer {
    changed: bool,
    #[serde(flatten)]
    set: TokenFloorSet,
}

pub(crate) async fn run(args: TokenFloorArgs) -> Result<u8, Failure> {
    let set = args.service.client()?.set_token_floor(args.set).await?;
    // The service answers with the floor in force, which a lower one does not bring down.
    let answer = Answer { changed: set.floor <= args.set, set };
    args.output.answer(&answer, |answer| match answer.changed {
        true => format!("every token from now on is at least {}", answer.set.floor),
        false => format!(
            "the floor stays at {}, which is above {}: it can only rise, and nothing was changed",
            answer.set.floor, args.set
        ),
    })?;
    Ok(0)
}
