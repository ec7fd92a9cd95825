//! `sereno namespace set`

use crate::{failure::Failure, lock::FencingArg, output::Output, values};
use clap::Args;
use sereno_client::{
    Client, Error,
    api::{ErrorCode, Millis, Namespace, NamespacePut, Policy, Problem},
};

/// Create a namespace, or change what it allows.
///
/// What is not named here stays as it is; of a new namespace it is the default. Where nothing would change nothing is
/// written.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    /// The namespace; created if there is none of that name. It cannot be deleted again.
    #[arg(value_parser = values::namespace)]
    name: String,
    /// Change it only if it still has this version (0: only create it). [default: the version of now]
    #[arg(long, value_name = "VERSION", value_parser = values::whole)]
    expected_version: Option<u64>,
    /// Begin with the defaults instead of what is in force. The home stays.
    #[arg(long)]
    reset: bool,
    /// The region that decides about it; in every other one it is refused as WRONG_REGION, once that has been told the
    /// same. none: wherever it is asked for.
    #[arg(long, value_name = "REGION|none", value_parser = optional(values::region))]
    home: Option<Setting<String>>,
    /// Shortest lease.
    #[arg(long, value_name = "DURATION|none", value_parser = optional(duration))]
    min_ttl: Option<Setting<Millis>>,
    /// Lease of a request that names none.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    default_ttl: Option<Millis>,
    /// Longest lease.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_ttl: Option<Millis>,
    /// Longest time that one owner holds a lock, however often the lease is renewed.
    #[arg(long, value_name = "DURATION|none", value_parser = optional(duration))]
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
    #[arg(long, value_name = "COUNT", value_parser = values::whole)]
    max_leases: Option<u64>,
    /// Requests that may wait at once.
    #[arg(long, value_name = "COUNT", value_parser = values::whole)]
    max_waiters: Option<u64>,
    /// How many calls for locks, terms, holds and runs the service takes each second (after a pause as many at once);
    /// one more is refused with LIMIT_REACHED and can be repeated. Repeats of a request that is remembered, renewals,
    /// releases and reads are not counted.
    #[arg(long, value_name = "COUNT|none", value_parser = optional(values::whole))]
    requests_per_second: Option<Setting<u64>>,
    /// Resources that one owner may hold at once (holds only).
    #[arg(long, value_name = "COUNT|none", value_parser = optional(values::whole))]
    holds_per_owner: Option<Setting<u64>>,
    /// After the end of a hold whose payment had not begun its owner gets no new one on the same resource for this
    /// long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    hold_cooldown: Option<Millis>,
    /// How long refusals, and grants released by their owner, are remembered.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    remember_refusals: Option<Millis>,
    /// How long other endings are remembered.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    remember_endings: Option<Millis>,
    /// Requests remembered at once.
    #[arg(long, value_name = "COUNT", value_parser = values::whole)]
    remember_records: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// A value, or that there shall be none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting<T>(Option<T>);

impl<T: Copy> Copy for Setting<T> {}

fn duration(text: &str) -> Result<Millis, String> {
    text.parse().map_err(|error: sereno_client::api::DurationError| error.to_string())
}

fn optional<T: Clone + Send + Sync + 'static>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Setting<T>, String> + Clone + Send + Sync {
    move |text| match text {
        "none" => Ok(Setting(None)),
        text => parse(text).map(|value| Setting(Some(value))),
    }
}

pub(crate) async fn run(client: &Client, args: SetArgs) -> Result<(), Failure> {
    let now = match client.get_namespace(&args.name).await {
        Ok(namespace) => Some(namespace),
        Err(Error::Refused(problem)) if problem.code == ErrorCode::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let version = now.as_ref().map_or(0, |namespace| namespace.version);
    if args.expected_version.is_some_and(|expected| expected != version) {
        return Err(args.conflict(version));
    }
    let moved = args.put_home(client, now.as_ref()).await?;
    let is_created = moved.is_some() && version == 0;
    let keeps_policy = match &now {
        Some(now) => args.changes_nothing(&now.policy),
        None => is_created && args.changes_nothing(&Policy::default()),
    };
    let put = match (keeps_policy, moved) {
        (true, Some(moved)) => moved,
        (true, None) => {
            let now = now.as_ref().expect("a namespace that is not there is created");
            return args.output.answer(&unchanged(now), |put| {
                format!(
                    "{} is so already: nothing was written, it stays at version {}",
                    put.namespace, put.version
                )
            });
        }
        (false, moved) => {
            let policy = now.filter(|_| !args.reset).map_or_else(Policy::default, |now| now.policy);
            let version = moved.map_or(version, |moved| moved.version);
            let put = client.put_namespace(&args.name, version, args.change(policy)).await;
            put.map_err(|error| args.failure(error))?
        }
    };
    args.output.answer(&put, |put| match version {
        0 => format!("{} is created, with version {}", put.namespace, put.version),
        _ => format!("{} has version {} now", put.namespace, put.version),
    })
}

/// The answer of a write that was not needed.
fn unchanged(now: &Namespace) -> NamespacePut {
    NamespacePut {
        namespace: now.namespace.clone(),
        version: now.version,
        revision: now.revision.unwrap_or_default(),
        cluster_time_ms: now.cluster_time_ms.unwrap_or_default(),
    }
}

impl SetArgs {
    fn changes_nothing(&self, now: &Policy) -> bool {
        let with_memory = |mut policy: Policy| {
            policy.reply_memory.get_or_insert_default();
            policy
        };
        !self.reset && self.change(now.clone()) == with_memory(now.clone())
    }

    /// The home goes first: nothing is granted here in a namespace whose home is elsewhere.
    async fn put_home(
        &self,
        client: &Client,
        now: Option<&Namespace>,
    ) -> Result<Option<NamespacePut>, Failure> {
        let Some(Setting(home)) = &self.home else { return Ok(None) };
        if now.is_some_and(|now| now.home == *home) {
            return Ok(None);
        }
        let version = now.map_or(0, |now| now.version);
        let put = client.put_home(&self.name, version, home.as_deref()).await;
        put.map(Some).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Refused(problem) if problem.code == ErrorCode::VersionConflict => {
                self.conflict(problem.current_version.unwrap_or_default()).problem(*problem)
            }
            error => error.into(),
        }
    }

    /// `current`: the version in force, 0 where there is no such namespace.
    fn conflict(&self, current: u64) -> Failure {
        let name = &self.name;
        let (what, hint) = match (self.expected_version, current) {
            (Some(0), current) => (
                format!(
                    "{name} exists already, with version {current}, and --expected-version 0 only creates"
                ),
                "Leave --expected-version away to change it.".to_string(),
            ),
            (Some(expected), 0) => (
                format!("there is no {name}, so it has no version {expected} to change"),
                "Leave --expected-version away, or give 0, to create it.".to_string(),
            ),
            (Some(expected), current) if expected > current => (
                format!("{name} has version {current}, and has never had {expected}"),
                format!(
                    "Look at it with `sereno namespace get {name}`, then repeat with --expected-version {current}."
                ),
            ),
            (Some(expected), current) => (
                format!("{name} has version {current}, not {expected}: somebody has changed it"),
                format!(
                    "Look at it with `sereno namespace get {name}`, then repeat with --expected-version {current}."
                ),
            ),
            (None, _) => (
                format!("somebody has changed {name} in this very moment"),
                "Repeat the command: it begins with what is in force then.".to_string(),
            ),
        };
        let mut problem =
            Problem::new(ErrorCode::VersionConflict, format!("{what}; nothing was written"));
        problem.current_version = Some(current);
        Failure::new(format!("VERSION_CONFLICT: {}", problem.detail)).problem(problem).hint(hint)
    }

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
        set_or_clear(&mut policy.holds_per_owner, self.holds_per_owner);
        set(&mut policy.hold_cooldown, self.hold_cooldown);
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
    use sereno_client::api::ReplyMemory;

    fn args(line: &str) -> SetArgs {
        let command = SetArgs::augment_args(clap::Command::new("set"));
        let matches =
            command.get_matches_from(std::iter::once("set").chain(line.split_whitespace()));
        SetArgs::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn conflicts_say_which_of_them_it_is() {
        let conflict = |line: &str, current| args(line).conflict(current).to_string();
        let exists = conflict("n --expected-version 0", 3);
        assert!(exists.contains("exists already, with version 3"), "{exists}");
        let missing = conflict("n --expected-version 2", 0);
        assert!(missing.contains("there is no n"), "{missing}");
        let stale = conflict("n --expected-version 2", 3);
        assert!(
            stale.contains("version 3, not 2") && stale.contains("--expected-version 3"),
            "{stale}"
        );
        let ahead = conflict("n --expected-version 9", 3);
        assert!(ahead.contains("never had 9") && !ahead.contains("somebody"), "{ahead}");
        assert!(conflict("n", 3).contains("this very moment"));
        assert_eq!(args("n --home none").home, Some(Setting(None)));
        assert_eq!(args("n --home eu").home, Some(Setting(Some("eu".into()))));
    }

    #[test]
    fn what_is_so_already_changes_nothing() {
        let memory = ReplyMemory { records: Some(5), ..ReplyMemory::default() };
        let now = Policy {
            max_hold: Some(Millis(9_000)),
            reply_memory: Some(memory),
            ..Policy::default()
        };
        for line in ["n", "n --max-hold 9s --remember-records 5", "n --requests-per-second none"] {
            assert!(args(line).changes_nothing(&now), "{line}");
        }
        for line in ["n --max-hold 10s", "n --max-hold none", "n --reset", "n --fencing enforced"] {
            assert!(!args(line).changes_nothing(&now), "{line}");
        }
        // As a namespace that its home has just created.
        assert!(args("n --home eu").changes_nothing(&Policy::default()));
        assert!(!args("n --home eu --max-hold 9s").changes_nothing(&Policy::default()));
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
