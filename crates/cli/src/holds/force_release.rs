//! `sereno holds force-release`

use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::{ArgGroup, Args};
use sereno_client::Client;

/// End somebody's hold, in an operator's name.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("whose").args(["fence", "whoever_has_it"]).required(true))]
pub(crate) struct ForceReleaseArgs {
    /// The resource.
    #[arg(value_parser = values::resource)]
    name: String,
    /// The fence of the hold to end, as `sereno holds get` shows it: so that nobody else's is ended.
    #[arg(long, value_name = "FENCE", value_parser = values::whole)]
    fence: Option<u64>,
    /// End the hold of whoever has it now.
    #[arg(long)]
    whoever_has_it: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = values::reason)]
    reason: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: ForceReleaseArgs) -> Result<u8, Failure> {
    let (namespace, name) = (args.at.namespace.as_deref(), &args.name);
    let fence = match args.fence {
        Some(fence) => fence,
        None => {
            let holder = client.get_hold(namespace, name).await?.holder;
            holder.ok_or_else(|| Failure::new(format!("nobody has {name}")))?.fence
        }
    };
    let answer = client.force_release_hold(namespace, name, fence, &args.reason).await?;
    args.output.answer(&answer, |answer| {
        format!("the hold on {name} with fence {} is ended", answer.fencing_token)
    })?;
    Ok(0)
}
