//! `sereno quota set`

use super::{
    node::{self, Node},
    quotas,
};
use crate::{failure::Failure, locks::InNamespace, output::Output, values};
use clap::Args;
use sereno_client::{
    Client, Error, LimitChange, Limits, Quotas,
    api::{ErrorCode, LimitPut, QuotaNodeRead},
};
use std::time::Duration;

/// Make a node, or change its rules.
///
/// What is not named here stays as it is. The node above has to be there: make the root first. A limit below what is
/// used is taken, and the excess shown as debt: nothing is added until that is gone.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    /// The node: QUOTA or QUOTA/PATH.
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Node,
    /// How much the node and all below it may use, committed and reserved. A new node needs it.
    #[arg(long, value_name = "AMOUNT", value_parser = node::units)]
    limit: Option<u64>,
    /// So much may be used on top of the limit.
    #[arg(long, value_name = "AMOUNT", value_parser = node::units)]
    burst: Option<u64>,
    /// Kept for this node whatever its siblings use; at most its limit, and not at a root.
    #[arg(long, value_name = "AMOUNT", value_parser = node::units)]
    guaranteed: Option<u64>,
    /// Its share of what all want, against its siblings': 1 unless set.
    #[arg(long, value_name = "WEIGHT", value_parser = values::count(sereno_core::limits::QUOTA_WEIGHT_MAX))]
    weight: Option<u64>,
    /// What one owner may have reserved at once, here and below.
    #[arg(long, value_name = "AMOUNT|none", value_parser = optional(node::units))]
    owner_reserved_max: Option<Setting<u64>>,
    /// Of a root: after so long somebody who waits goes before all that are not under their guarantee; 30s unless set.
    #[arg(long, value_name = "DURATION|none", value_parser = optional(values::duration))]
    patience: Option<Setting<Duration>>,
    /// Of a root or a node right below it: the region that decides about it.
    #[arg(long, value_name = "REGION|none", value_parser = optional(values::namespace))]
    home: Option<Setting<String>>,
    /// Change it only if it still has this version (0: only make it). [default: the version of now]
    #[arg(long, value_name = "VERSION", value_parser = values::whole)]
    expected_version: Option<u64>,
    /// Refuse a limit below what is claimed, rather than show a debt.
    #[arg(long)]
    refuse_debt: bool,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// A value, or that there shall be none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting<T>(Option<T>);

fn optional<T: Clone + Send + Sync + 'static>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Setting<T>, String> + Clone + Send + Sync {
    move |text| match text {
        "none" => Ok(Setting(None)),
        text => parse(text).map(|value| Setting(Some(value))),
    }
}

pub(super) async fn run(client: &Client, args: SetArgs) -> Result<u8, Failure> {
    let quotas = quotas(client, &args.at);
    let now = present(&quotas, &args.node).await?;
    let version = now.as_ref().map_or(0, |read| read.node.version);
    if let Some(expected) = args.expected_version.filter(|expected| *expected != version) {
        return Err(args.conflict(expected, version));
    }
    let limits = args.limits(now.as_ref())?;
    let change = LimitChange {
        quota: args.node.quota.clone(),
        path: args.node.path.clone(),
        limits,
        expected_version: version,
        refuse_debt: args.refuse_debt,
    };
    let put = quotas.put_limit(change).await?;
    args.output
        .answer(&args.at.locate(put), |located| text(&args.node, version, &located.thing))?;
    Ok(0)
}

/// The node as it is, if it is there.
pub(super) async fn present(
    quotas: &Quotas,
    node: &Node,
) -> Result<Option<QuotaNodeRead>, Failure> {
    match quotas.get(&node.quota, &node.path).await {
        Ok(read) => Ok(Some(read)),
        Err(Error::Refused(problem)) if problem.code == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn text(node: &Node, before: u64, put: &LimitPut) -> String {
    let done = match before {
        0 => format!("{node} is made, with version {}", put.version),
        _ => format!("{node} has version {} now", put.version),
    };
    match put.debt {
        0 => done,
        debt => format!(
            "{done}; {debt} more is claimed than it allows, and nothing is added until that is gone"
        ),
    }
}

impl SetArgs {
    fn limits(&self, now: Option<&QuotaNodeRead>) -> Result<Limits, Failure> {
        let mut limits = match (now, self.limit) {
            (Some(read), _) => Limits::from(&read.node),
            (None, Some(limit)) => Limits::of(limit),
            (None, None) => {
                let what = format!("there is no {} yet: give its --limit to make it", self.node);
                return Err(Failure::usage(what));
            }
        };
        let set = |field: &mut u64, value: Option<u64>| *field = value.unwrap_or(*field);
        set(&mut limits.limit, self.limit);
        set(&mut limits.burst, self.burst);
        set(&mut limits.guaranteed, self.guaranteed);
        set(&mut limits.weight, self.weight);
        if let Some(Setting(max)) = self.owner_reserved_max {
            limits.owner_reserved_max = max;
        }
        if let Some(Setting(patience)) = self.patience {
            limits.patience = patience;
        }
        if let Some(Setting(home)) = self.home.clone() {
            limits.home = home;
        }
        Ok(limits)
    }

    /// `current`: the version in force, 0 where there is no such node.
    fn conflict(&self, expected: u64, current: u64) -> Failure {
        let node = &self.node;
        let what = match (expected, current) {
            (0, _) => format!(
                "VERSION_CONFLICT: {node} exists already, with version {current}; nothing was written"
            ),
            (_, 0) => {
                format!("VERSION_CONFLICT: there is no {node} to change; nothing was written")
            }
            _ => format!(
                "VERSION_CONFLICT: {node} has version {current}, not {expected}; nothing was written"
            ),
        };
        Failure::new(what).hint(format!("See it with `sereno quota get {node}`."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    fn args(line: &str) -> SetArgs {
        let command = SetArgs::augment_args(clap::Command::new("set"));
        let matches =
            command.get_matches_from(std::iter::once("set").chain(line.split_whitespace()));
        SetArgs::from_arg_matches(&matches).unwrap()
    }

    fn read() -> QuotaNodeRead {
        let node = serde_json::json!({
            "quota": "gpu", "path": "acme", "limit": 8, "burst": 1, "guaranteed": 2, "weight": 3,
            "ownerReservedMax": 4, "home": "eu", "version": 5, "updatedAgoMs": 0, "updatedInRevision": 1,
            "committed": 0, "reserved": 0, "directCommitted": 0, "directReserved": 0, "available": 8, "debt": 0,
            "effectiveGuaranteed": 2, "waiters": 0, "sweepPending": false,
        });
        let read = serde_json::json!({
            "node": node, "owners": [], "reports": [], "shares": [], "revision": 1, "clusterTimeMs": 1, "ageMs": 0,
        });
        serde_json::from_value(read).unwrap()
    }

    #[test]
    fn what_is_not_named_stays() {
        let line = "gpu/acme --burst 0 --owner-reserved-max none --weight 9";
        let limits = args(line).limits(Some(&read())).unwrap();
        let expected = Limits {
            limit: 8,
            burst: 0,
            guaranteed: 2,
            weight: 9,
            owner_reserved_max: None,
            patience: None,
            home: Some("eu".into()),
        };
        assert_eq!(limits, expected);
        let home = args("gpu/acme --home none --limit 7").limits(Some(&read())).unwrap();
        assert_eq!((home.home, home.limit), (None, 7));
    }

    #[test]
    fn a_new_node_needs_its_limit() {
        let error = args("gpu/acme --burst 1").limits(None).unwrap_err();
        assert!(error.to_string().contains("--limit"), "{error}");
        assert_eq!(args("gpu --limit 64").limits(None).unwrap(), Limits::of(64));
    }

    #[test]
    fn conflicts_say_which_of_them_it_is() {
        let args = args("gpu --limit 1");
        assert!(args.conflict(0, 3).what.contains("exists already, with version 3"));
        assert!(args.conflict(2, 0).what.contains("there is no gpu"));
        assert!(args.conflict(2, 3).what.contains("version 3, not 2"));
    }
}
