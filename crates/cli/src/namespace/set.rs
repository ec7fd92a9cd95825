//! `sereno namespace set`

use crate::{failure::Failure, lock::FencingArg, output::Output};
use clap::Args;
use sereno_client::{
    Client, Error,
    api::{ErrorCode, Millis, Policy},
};

/// Which namespace, and what it shall allow. What is not named here stays as it is; of a new namespace it is the
/// default.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    /// The namespace; created if there is none of that name.
    name: String,
    /// Change it only if it still has this version (0: only create it). [default: the version of now]
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<u64>,
    /// Begin with the defaults instead of what is in force.
    #[arg(long)]
    reset: bool,
    /// Shortest lease.
    #[arg(long, value_name = "DURATION|none", value_parser = optional::<Millis>)]
    min_ttl: Option<Setting<Millis>>,
    /// Lease of a request that names none.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    default_ttl: Option<Millis>,
    /// Longest lease.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_ttl: Option<Millis>,
    /// Longest ownership over all renewals.
    #[arg(long, value_name = "DURATION|none", value_parser = optional::<Millis>)]
    max_hold: Option<Setting<Millis>>,
    /// After an expiry or a forced release nobody is granted for this long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    lock_delay: Option<Millis>,
    /// Said for requests that do not say it themselves.
    #[arg(long, value_enum)]
    fencing: Option<FencingArg>,
    /// Refuse requests for resources that do not check tokens.
    #[arg(long, value_name = "BOOL")]
    fencing_required: Option<bool>,
    /// Leases that may be active at once.
    #[arg(long, value_name = "COUNT")]
    max_leases: Option<u64>,
    /// Requests that may wait at once.
    #[arg(long, value_name = "COUNT")]
    max_waiters: Option<u64>,
    /// Requests per second.
    #[arg(long, value_name = "COUNT|none", value_parser = optional::<u64>)]
    requests_per_second: Option<Setting<u64>>,
    /// How long refusals, and grants released by their owner, are remembered.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    remember_refusals: Option<Millis>,
    /// How long other endings are remembered.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    remember_endings: Option<Millis>,
    /// Requests remembered at once.
    #[arg(long, value_name = "COUNT")]
    remember_records: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// A value, or that there shall be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting<T>(Option<T>);

fn duration(text: &str) -> Result<Millis, String> {
    text.parse().map_err(|error: sereno_client::api::DurationError| error.to_string())
}

fn optional<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<Setting<T>, String> {
    match text {
        "none" => Ok(Setting(None)),
        text => match text.parse::<T>() {
            Ok(value) => Ok(Setting(Some(value))),
            Err(error) => Err(error.to_string()),
        },
    }
}

pub(crate) async fn run(client: &Client, args: SetArgs) -> Result<(), Failure> {
    let (version, policy) = match client.get_namespace(&args.name).await {
        Ok(namespace) => (namespace.version, namespace.policy),
        Err(Error::Refused(problem)) if problem.code == ErrorCode::NotFound => {
            (0, Policy::default())
        }
        Err(error) => return Err(error.into()),
    };
    let version = args.expected_version.unwrap_or(version);
    let policy = args.change(if args.reset { Policy::default() } else { policy });
    let put = client.put_namespace(&args.name, version, policy).await?;
    args.output.answer(&put, |put| format!("{} has version {} now", put.namespace, put.version))
}

impl SetArgs {
    fn change(&self, mut policy: Policy) -> Policy {
        fn set<T: Copy>(field: &mut Option<T>, value: Option<T>) {
            *field = value.or(*field);
        }
        fn set_or_clear<T: Copy>(field: &mut Option<T>, setting: Option<Setting<T>>) {
            if let Some(Setting(value)) = setting {
                *field = value;
            }
        }
        set_or_clear(&mut policy.min_ttl, self.min_ttl);
        set(&mut policy.default_ttl, self.default_ttl);
        set(&mut policy.max_ttl, self.max_ttl);
        set_or_clear(&mut policy.max_hold, self.max_hold);
        set(&mut policy.lock_delay, self.lock_delay);
        set(&mut policy.fencing, self.fencing.map(Into::into));
        set(&mut policy.fencing_required, self.fencing_required);
        set(&mut policy.max_leases, self.max_leases);
        set(&mut policy.max_waiters, self.max_waiters);
        set_or_clear(&mut policy.requests_per_second, self.requests_per_second);
        let memory = policy.reply_memory.get_or_insert_default();
        set(&mut memory.refusals, self.remember_refusals);
        set(&mut memory.endings, self.remember_endings);
        set(&mut memory.records, self.remember_records);
        policy
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

    #[test]
    fn what_is_not_named_stays() {
        let before = Policy {
            default_ttl: Some(Millis(5_000)),
            max_hold: Some(Millis(9_000)),
            requests_per_second: Some(7),
            ..Policy::default()
        };
        let after = args("n --max-hold none --lock-delay 2s --fencing enforced").change(before);
        assert_eq!(after.default_ttl, Some(Millis(5_000)));
        assert_eq!(after.max_hold, None);
        assert_eq!(after.lock_delay, Some(Millis(2_000)));
        assert_eq!(after.requests_per_second, Some(7));
        assert_eq!(after.fencing, Some(sereno_client::api::Fencing::Enforced));
    }
}
