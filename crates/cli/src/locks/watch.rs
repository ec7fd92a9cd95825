//! `sereno locks watch`

use crate::{
    failure::Failure,
    output::{Output, human},
    values,
};
use clap::Args;
use sereno_client::{
    Client, WatchFilter, WatchItem,
    api::{Family, WatchEvent},
};

/// Follow what happens, until Ctrl-C.
///
/// Lost connections are made anew, and what was missed meanwhile is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only names that begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// Only of this namespace. [default: all]
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    namespace: Option<String>,
    /// Only what came after this cursor.
    #[arg(long, value_name = "CURSOR")]
    from: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A line of JSON: an event, or where to go on from.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
enum Line<'a> {
    Started { cursor: &'a str },
    Resync { cursor: &'a str },
    Event { cursor: Option<&'a str>, event: &'a WatchEvent },
}

pub(crate) async fn run(client: &Client, args: WatchArgs) -> Result<(), Failure> {
    // A watch waits for its service as long as it takes, and for a namespace too; whoever begins one wants to know that
    // they are there.
    match &args.namespace {
        Some(namespace) => drop(client.get_namespace(namespace).await?),
        None => drop(client.status().await?),
    }
    let mut watch = client.watch(WatchFilter {
        namespace: args.namespace,
        family: Some(Family::Lock),
        prefix: args.prefix,
        from: args.from,
    });
    loop {
        let item = watch.next().await?;
        let line = match &item {
            WatchItem::Started { cursor } => Line::Started { cursor },
            WatchItem::Resync { cursor } => Line::Resync { cursor },
            WatchItem::Event { event, cursor } => Line::Event { cursor: cursor.as_deref(), event },
        };
        args.output.line(&line, text)?;
    }
}

fn text(line: &Line<'_>) -> String {
    match line {
        Line::Started { cursor } => format!("following from {cursor}"),
        Line::Resync { cursor } => {
            format!("events are missing here: look at the present state; following from {cursor}")
        }
        Line::Event { event, .. } => event_text(event),
    }
}

fn event_text(event: &WatchEvent) -> String {
    let mut text = format!("{}  {:9}", event.time, event.kind.to_string());
    let mut add = |word: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {word}{value}"));
        }
    };
    let place = event.namespace.iter().chain(&event.resource).cloned().collect::<Vec<_>>();
    add("", Some(place.join(" ")));
    add("owner=", event.owner.clone());
    add("token=", event.fencing_token.map(|token| token.to_string()));
    add("waited=", event.waited_ms.map(human));
    add("held=", event.held_ms.map(human));
    add("end=", event.end.map(|end| end.to_string()));
    add("code=", event.code.map(|code| code.to_string()));
    add("version=", event.version.map(|version| version.to_string()));
    add("reason=", event.reason.as_ref().map(|reason| format!("{reason:?}")));
    text
}
