//! `sereno elections observe`

use super::Which;
use crate::{failure::Failure, output::Output};
use clap::Args;
use sereno_client::{
    Client, Observed,
    api::{Election, ElectionState},
};

/// Follow who leads, until Ctrl-C.
///
/// First the record as it is, then after each change of it; that nobody leads is a change too, and is always told.
/// Leaders and values that came and went faster than they could be told are left out, and it says so ("changes are
/// missing here"). Lost connections are made anew, at another node where there is one, and what has changed meanwhile is
/// told.
#[derive(Clone, Debug, Args)]
pub(crate) struct ObserveArgs {
    #[command(flatten)]
    which: Which,
    /// Go on after this cursor: what has changed since, then the record as it is.
    #[arg(long, value_name = "CURSOR")]
    from: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A line of JSON.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
enum Line<'a> {
    Record { cursor: Option<&'a str>, missed: bool, record: &'a Election },
    Silent { why: &'a str },
}

pub(crate) async fn run(client: &Client, args: ObserveArgs) -> Result<u8, Failure> {
    let Which { name, at } = args.which;
    // An observation waits for its service as long as it takes; whoever begins one wants to know that it is there.
    drop(client.get_election(at.namespace.as_deref(), &name).await?);
    let mut election = client.election(name);
    if let Some(namespace) = at.namespace {
        election = election.namespace(namespace);
    }
    let mut observation = match args.from {
        Some(cursor) => election.observe_from(cursor),
        None => election.observe(),
    };
    loop {
        let line = observation.next().await?;
        let line = match &line {
            Observed::Record { record, cursor, missed } => {
                Line::Record { cursor: cursor.as_deref(), missed: *missed, record }
            }
            Observed::Silent { why } => Line::Silent { why },
            _ => continue,
        };
        args.output.line(&line, text)?;
    }
}

fn text(line: &Line<'_>) -> String {
    match line {
        Line::Silent { why } => format!("no node tells anything at present: {why}"),
        Line::Record { missed, record, .. } => {
            let missed = if *missed { "changes are missing here; " } else { "" };
            format!("{missed}{}", record_text(record))
        }
    }
}

fn record_text(record: &Election) -> String {
    match (&record.state, &record.leader) {
        (ElectionState::Leading, Some(leader)) => format!(
            "{}  leader={}  term={}  version={}  value={:?}",
            record.fence_key, leader.candidate, leader.term, leader.version, leader.value
        ),
        (state, _) => format!("{}  {state}", record.fence_key),
    }
}
