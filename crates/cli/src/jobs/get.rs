//! `sereno jobs get`

use super::InNamespace;
use crate::{
    failure::Failure,
    output::{Output, human, table},
    values,
};
use clap::Args;
use sereno_client::{
    Client, JobDefinition,
    api::{Job, Reason, Run},
    schedule::instant,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// Which job to show.
#[derive(Clone, Debug, Args)]
pub(crate) struct GetArgs {
    /// The job.
    #[arg(value_parser = values::job)]
    name: String,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(client: &Client, args: GetArgs) -> Result<(), Failure> {
    let job = client.get_job(args.at.namespace.as_deref(), &args.name).await?;
    args.output.answer(&args.at.locate(job), |located| text(&located.job))
}

fn text(job: &Job) -> String {
    let mut lines = vec![
        format!("{}{}", job.job, if job.paused { " is paused" } else { "" }),
        format!("  schedule   {} in {}", job.schedule, job.zone),
        format!("  next slot  {}", next_slot(job).unwrap_or_else(|| "none".into())),
        format!("  missed     {}", job.missed),
        format!("  overlap    {}", job.overlap),
        format!("  retries    {} ({})", job.retries, how_often(job.retries)),
        format!("  max run    {}", job.max_run),
        format!("  version    {}", job.version),
        format!("  watermark  {} (slots before it that are not below are over)", job.watermark),
    ];
    if !job.runs.is_empty() {
        lines.push(format!("\n{}", ledger(&job.runs)));
    }
    lines.join("\n")
}

pub(super) fn how_often(retries: u32) -> &'static str {
    if retries == 0 { "at most once" } else { "at least once" }
}

fn next_slot(job: &Job) -> Option<String> {
    let schedule = JobDefinition::of(job).parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    schedule.next_after(u64::try_from(now.as_millis()).ok()?).map(instant::format)
}

fn ledger(runs: &[Run]) -> String {
    let cells = |run: &Run| {
        let end = match (run.expires_in_ms, &run.ended_at) {
            (Some(left), _) => format!("expires in {}", human(left)),
            (None, Some(at)) => at.clone(),
            (None, None) => String::new(),
        };
        // That the replica itself told the end of a failed attempt is in the state already.
        let end_told = run.end.filter(|end| *end != Reason::Finished).map(|end| end.to_string());
        let why = run.reason.clone().or(end_told);
        vec![
            run.slot.clone(),
            run.state.to_string(),
            run.attempt.to_string(),
            run.fencing_token.map_or(String::new(), |token| token.to_string()),
            run.owner.clone().unwrap_or_default(),
            run.started_at.clone().unwrap_or_default(),
            end,
            why.unwrap_or_default(),
        ]
    };
    let head = ["SLOT", "STATE", "ATTEMPT", "TOKEN", "OWNER", "STARTED", "ENDED", "WHY"];
    table(&head, &runs.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn why_an_attempt_ended_is_told_where_its_state_does_not_say_it() {
        let told = |end: &str| {
            let run = json!({"slot": "2026-05-04T12:00:00Z", "state": "failed", "attempt": 1, "end": end});
            ledger(&[serde_json::from_value(run).unwrap()])
        };
        assert!(!told("finished").contains("finished"), "{}", told("finished"));
        assert!(told("expired").contains("expired"), "{}", told("expired"));
    }
}
