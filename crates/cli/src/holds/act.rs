//! `sereno holds begin`, `renew` and `release`: what any instance does for a hold's owner.

use crate::{exit, failure::Failure, locks::InNamespace, output::Output, values};
use clap::Args;
use sereno_client::{Client, Error, HoldError, HoldName, api::HoldExtended};
use std::time::Duration;

/// Which hold.
#[derive(Clone, Debug, Args)]
struct Whose {
    /// The resource.
    #[arg(value_parser = values::resource)]
    name: String,
    /// For whom it is held.
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    owner: String,
    /// Its fence, where it is known: another one's is not touched then. Needed once payment has begun.
    #[arg(long, value_name = "FENCE", value_parser = values::whole)]
    fence: Option<u64>,
    #[command(flatten)]
    at: InNamespace,
}

impl Whose {
    fn named(&self) -> HoldName {
        HoldName {
            namespace: self.at.namespace.clone(),
            resource: self.name.clone(),
            owner: self.owner.clone(),
            fence: self.fence,
        }
    }
}

/// Say that payment has begun.
///
/// From now on the hold has a deadline of its own, which is not renewed, and only its fence lets it go.
#[derive(Clone, Debug, Args)]
pub(crate) struct BeginArgs {
    #[command(flatten)]
    whose: Whose,
    /// How long the payment may take.
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    ttl: Duration,
    #[command(flatten)]
    output: Output,
}

/// Which hold to renew, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    whose: Whose,
    /// How long from now. [default: as long as it was granted for]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    ttl: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

/// Which hold to let go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn begin(client: &Client, args: BeginArgs) -> Result<u8, Failure> {
    let extended = client.begin_hold(&args.whose.named(), args.ttl).await.map_err(failed)?;
    show(args.output, &extended, "payment has begun; it is held")
}

pub(crate) async fn renew(client: &Client, args: RenewArgs) -> Result<u8, Failure> {
    let extended = client.renew_hold(&args.whose.named(), args.ttl).await.map_err(failed)?;
    show(args.output, &extended, "it is held")
}

pub(crate) async fn release(client: &Client, args: ReleaseArgs) -> Result<u8, Failure> {
    let released = client.release_hold(&args.whose.named()).await.map_err(failed)?;
    let (name, owner) = (&args.whose.name, &args.whose.owner);
    args.output.answer(&released, |released| match released.released {
        true => format!("{name} is free"),
        false => format!("{name} was not held for {owner} any more"),
    })?;
    Ok(if released.released { 0 } else { exit::FAILED })
}

fn show(output: Output, extended: &HoldExtended, what: &str) -> Result<u8, Failure> {
    output.answer(extended, |it| {
        let clipped = if it.clipped { ", which is as long as is allowed" } else { "" };
        format!("{}: {what} until {}{clipped} (fence {})", it.resource, it.expires_at, it.fence)
    })?;
    Ok(0)
}

fn failed(error: HoldError) -> Failure {
    Error::from(error).into()
}
