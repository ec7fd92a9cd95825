//! `sereno namespace`: what namespaces allow.

mod set;

use crate::{
    connect::Service,
    failure::Failure,
    lock::FencingArg,
    output::{Output, table},
    values,
    wording::spelled,
};
use clap::{Args, Subcommand};
use sereno_client::{
    Client,
    api::{Millis, Namespace},
};

/// Look at what namespaces allow, and change it.
#[derive(Clone, Debug, Args)]
pub(crate) struct NamespaceArgs {
    #[command(flatten)]
    service: Service,
    #[command(subcommand)]
    command: NamespaceCommand,
}

/// What to do with namespaces.
#[derive(Clone, Debug, Subcommand)]
enum NamespaceCommand {
    /// Show a namespace: its policy and its counters.
    Get(GetArgs),
    Set(Box<set::SetArgs>),
    /// List namespaces.
    Ls(LsArgs),
}

/// Which one to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    /// The namespace.
    #[arg(value_parser = values::namespace)]
    name: String,
    #[command(flatten)]
    output: Output,
}

/// How to list.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(NamespaceArgs { service, command }: NamespaceArgs) -> Result<u8, Failure> {
    let client = service.client()?;
    match command {
        NamespaceCommand::Get(args) => {
            let namespace = client.get_namespace(&args.name).await?;
            args.output.answer(&namespace, text)?;
        }
        NamespaceCommand::Set(args) => set::run(&client, *args).await?,
        NamespaceCommand::Ls(args) => ls(&client, args).await?,
    }
    Ok(0)
}

async fn ls(client: &Client, args: LsArgs) -> Result<(), Failure> {
    let mut all: Vec<Namespace> = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.list_namespaces(cursor.as_deref()).await?;
        all.extend(page.namespaces);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let cells = |namespace: &Namespace| {
        vec![
            namespace.namespace.clone(),
            namespace.version.to_string(),
            namespace.leases.to_string(),
            namespace.waiters.to_string(),
            namespace.reply_records.to_string(),
        ]
    };
    args.output.answer(&all, |all| {
        let rows: Vec<_> = all.iter().map(cells).collect();
        table(&["NAMESPACE", "VERSION", "LEASES", "WAITERS", "REMEMBERED"], &rows)
    })
}

/// The policy in the words and units of `sereno namespace set`.
fn text(namespace: &Namespace) -> String {
    let policy = &namespace.policy;
    let duration = |value: Option<Millis>, none: &str| value.map_or(none.into(), spelled);
    let number = |value: Option<u64>, none: &str| value.map_or(none.into(), |v| v.to_string());
    let memory = policy.reply_memory.clone().unwrap_or_default();
    let fencing = policy.fencing.map(|fencing| FencingArg::from(fencing).to_string());
    let rows: [(&str, String); 20] = [
        ("version", namespace.version.to_string()),
        ("home", namespace.home.clone().unwrap_or_else(|| "none".into())),
        ("leases", namespace.leases.to_string()),
        ("waiters", namespace.waiters.to_string()),
        ("remembered", namespace.reply_records.to_string()),
        ("min-ttl", duration(policy.min_ttl, "none (the service's own counts)")),
        ("default-ttl", duration(policy.default_ttl, "")),
        ("max-ttl", duration(policy.max_ttl, "")),
        ("max-hold", duration(policy.max_hold, "none")),
        ("lock-delay", duration(policy.lock_delay, "0s")),
        ("fencing", fencing.unwrap_or_default()),
        ("fencing-required", policy.fencing_required.unwrap_or(false).to_string()),
        ("max-leases", number(policy.max_leases, "")),
        ("max-waiters", number(policy.max_waiters, "")),
        ("requests-per-second", number(policy.requests_per_second, "none")),
        ("holds-per-owner", number(policy.holds_per_owner, "none")),
        ("hold-cooldown", duration(policy.hold_cooldown, "0s")),
        ("remember-refusals", duration(memory.refusals, "")),
        ("remember-endings", duration(memory.endings, "")),
        ("remember-records", number(memory.records, "")),
    ];
    let mut text = namespace.namespace.clone();
    for (name, value) in rows {
        text.push_str(&format!("\n  {name:20} {value}"));
    }
    text
}
