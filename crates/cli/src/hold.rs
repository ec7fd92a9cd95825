//! `sereno hold RESOURCE`: hold something for somebody.

use crate::{
    connect::Service, failure::Failure, holds::HINTS, locks::InNamespace, output::Output, pause,
    values,
};
use clap::Args;
use sereno_client::{
    Error, Held,
    api::{DEFAULT_NAMESPACE, HeldOne, HoldState},
};
use std::time::Duration;

/// Hold something for somebody: a seat, the last pair of a size.
///
/// It never waits: it is held, or somebody else has it, and the answer says until when. Who has it already gets the
/// same hold again, not extended. Of several resources all are held, or none. The hold ends by itself; renew it, say
/// that payment has begun, or let it go with `sereno holds`, from anywhere, in the name of the owner.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    service: Service,
    /// What to hold: name the thing that can be sold once. Up to 64.
    #[arg(required = true, value_name = "RESOURCE", value_parser = values::resource)]
    resources: Vec<String>,
    /// For whom: a cart, a customer.
    #[arg(long, value_name = "TEXT", value_parser = values::owner)]
    owner: String,
    /// How long.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    ttl: Duration,
    /// Bound of the whole hold over all renewals. [default: the namespace's]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    max_hold: Option<Duration>,
    /// A hold of the same owner that ends in the same moment, with its fence where payment has begun; can be given
    /// several times. If the new hold is refused it stays; one that the owner does not have is passed over.
    #[arg(long, value_name = "RESOURCE[=FENCE]", value_parser = replaced)]
    replaces: Vec<(String, Option<u64>)>,
    /// A note for people; can be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    label: Vec<(String, String)>,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// A name has no `=`.
fn replaced(text: &str) -> Result<(String, Option<u64>), String> {
    match text.split_once('=') {
        Some((name, fence)) => Ok((values::resource(name)?, Some(values::whole(fence)?))),
        None => Ok((values::resource(text)?, None)),
    }
}

/// As the HTTP interface answers: `hold` for one, `hold-all` for several.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    namespace: String,
    state: HoldState,
    #[serde(flatten)]
    what: What,
    owner: String,
    yours: bool,
    begun: bool,
    expires_at: String,
    expires_in_ms: u64,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum What {
    One(HeldOne),
    All { holds: Vec<HeldOne> },
}

pub(crate) async fn run(args: HoldArgs) -> Result<u8, Failure> {
    let client = args.service.client()?;
    let mut place = match &args.resources[..] {
        [one] => client.hold(one),
        all => client.hold_all(all),
    };
    place = place.owner(&args.owner).ttl(args.ttl);
    if let Some(max_hold) = args.max_hold {
        place = place.max_hold(max_hold);
    }
    if let Some(namespace) = &args.at.namespace {
        place = place.namespace(namespace);
    }
    for (resource, fence) in args.replaces {
        place = place.replaces_named(resource, fence);
    }
    for (key, value) in args.label {
        place = place.label(key, value);
    }
    let held = match place.hold().await {
        Ok(held) => held,
        Err(error) => return Err(pause::or_else(&client, Error::from(error)).await.hints(&HINTS)),
    };
    let namespace = args.at.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    args.output.answer(&answer(namespace, &held), |answer| text(answer, &held))?;
    Ok(0)
}

fn answer(namespace: &str, held: &Held) -> Answer {
    let mut holds: Vec<_> = held
        .holdings()
        .iter()
        .map(|holding| HeldOne {
            resource: holding.resource.clone(),
            fence_key: holding.fence_key.clone(),
            fence: holding.fencing_token,
        })
        .collect();
    let what = match holds.len() {
        1 => What::One(holds.remove(0)),
        _ => What::All { holds },
    };
    Answer {
        namespace: namespace.into(),
        state: HoldState::Held,
        what,
        owner: held.owner().into(),
        yours: held.is_yours(),
        begun: held.is_begun(),
        expires_at: held.expires_at().into(),
        expires_in_ms: u64::try_from(held.remaining().as_millis()).unwrap_or(u64::MAX),
    }
}

fn text(answer: &Answer, held: &Held) -> String {
    let kept = if answer.yours { "has it already, until" } else { "has it until" };
    let mut text = format!("{} {kept} {}", answer.owner, answer.expires_at);
    for holding in held.holdings() {
        text.push_str(&format!("\n  {}  fence {}", holding.resource, holding.fencing_token));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_has_a_name_and_may_have_a_fence() {
        assert_eq!(replaced("sku/41"), Ok(("sku/41".into(), None)));
        assert_eq!(replaced("sku/41=17"), Ok(("sku/41".into(), Some(17))));
        assert!(replaced("sku/41=x").unwrap_err().contains("whole number"));
        assert!(replaced("a b").unwrap_err().contains("' '"));
    }
}
