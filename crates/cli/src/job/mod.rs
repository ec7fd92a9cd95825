//! `sereno job --name N --schedule CRON -- CMD`: run a command on a schedule, on one replica at a time.

mod args;

pub(crate) use args::{DefinitionArgs, JobArgs};

use crate::{
    exit,
    failure::Failure,
    lock::{Ended, Margins, Signals, Terms, Words, run_under_lease, settle},
    output::{human, note},
    wording::in_durations,
};
use args::OnLossArg;
use sereno_client::{
    Attempt, Client, Error, JobRunner, Moment, RunGrant,
    api::{ErrorCode, RunFinished, RunResult, RunState},
};
use std::time::Duration;

/// How long one call is tried; the runner tries on.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// For what is still owed when the wrapper is about to end.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);

/// Runs it and gives the exit code.
pub(crate) async fn run(args: JobArgs) -> Result<u8, Failure> {
    let definition = args.definition.definition();
    definition.parse().map_err(|error| Failure::usage(in_options(&error.to_string())))?;
    let mut signals = Signals::listen()
        .map_err(|error| Failure::io("listening for signals", &error).exit(exit::LOCK_FAILED))?;
    let client = args.service.builder().call_timeout(CALL_TIMEOUT).build()?;
    let result = take_part(&client, &args, &mut signals).await;
    settle(&client, SETTLE_WITHIN).await;
    result
}

/// The part of a schedule as the command line calls it.
pub(crate) fn in_options(error: &str) -> String {
    match (error.strip_prefix("schedule"), error.strip_prefix("zone")) {
        (Some(rest), _) => format!("--schedule{rest}"),
        (_, Some(rest)) => format!("--tz{rest}"),
        _ => error.into(),
    }
}

async fn take_part(client: &Client, args: &JobArgs, signals: &mut Signals) -> Result<u8, Failure> {
    let mut runner = tokio::select! {
        started = start(client, args) => started.map_err(failed)?,
        signal = signals.next() => return Ok(exit::by_signal(signal.as_raw())),
    };
    loop {
        let attempt = tokio::select! {
            attempt = runner.next() => attempt.map_err(failed)?,
            signal = signals.next() => return Ok(exit::by_signal(signal.as_raw())),
        };
        let code = run_attempt(attempt, args, signals).await?;
        if let Some(signal) = signals.told_to_end() {
            return Ok(exit::by_signal(signal.as_raw()));
        }
        if args.once {
            return Ok(code);
        }
    }
}

async fn start(client: &Client, args: &JobArgs) -> Result<JobRunner, Error> {
    let definition = args.definition.definition();
    let mut job = client
        .job(&args.name)
        .schedule(definition.schedule, definition.zone)
        .missed(definition.missed)
        .overlap(definition.overlap)
        .retries(definition.retries)
        .max_run(definition.max_run)
        .on_news(|news| note(&in_durations(&news.to_string())));
    if let Some(ttl) = args.ttl {
        job = job.ttl(ttl);
    }
    if let Some(namespace) = &args.namespace {
        job = job.namespace(namespace);
    }
    if let Some(owner) = &args.owner {
        job = job.owner(owner);
    }
    for (key, value) in &args.label {
        job = job.label(key, value);
    }
    job.start().await
}

fn failed(error: Error) -> Failure {
    let is_usage =
        matches!(error, Error::Invalid(_)) || error.code() == Some(ErrorCode::InvalidArgument);
    Failure::from(error).exit(if is_usage { exit::USAGE } else { exit::LOCK_FAILED })
}

/// One attempt, from its claim to its acknowledged end. Gives the command's exit code, or why it was stopped.
async fn run_attempt(
    attempt: Attempt,
    args: &JobArgs,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let begun = Moment::now();
    let terms = Terms {
        status: attempt.watch(),
        margins: Margins::new(attempt.remaining(), args.grace),
        variables: variables(attempt.grant()),
        words: Words { what: "the lease of the run", longest: "the longest run (--max-run)" },
        keep: args.on_loss == OnLossArg::Keep,
        interactive: false,
    };
    let ended = match run_under_lease(terms, &args.command, signals).await {
        Ok(ended) => ended,
        Err(failure) => {
            attempt.give_back();
            return Err(failure);
        }
    };
    let (result, code) = match ended {
        Ended::Itself(0) => (RunResult::Succeeded, 0),
        Ended::Itself(code) | Ended::Stopped(code) => (RunResult::Failed, code),
    };
    let grant = attempt.grant().clone();
    let took = Moment::now().since(begun);
    finish(attempt, &grant, result, took, signals).await;
    Ok(code)
}

fn variables(grant: &RunGrant) -> Vec<(&'static str, String)> {
    vec![
        ("SERENO_JOB", grant.job.clone()),
        ("SERENO_SLOT", grant.slot.clone()),
        ("SERENO_ATTEMPT", grant.attempt.to_string()),
        ("SERENO_TOKEN", grant.fencing_token.to_string()),
        ("SERENO_FENCE_KEY", grant.fence_key.clone()),
    ]
}

/// Waits for the answer as long as it takes, unless a signal says to end; then for a moment.
async fn finish(
    attempt: Attempt,
    grant: &RunGrant,
    result: RunResult,
    took: Duration,
    signals: &mut Signals,
) {
    let run = format!("slot {}, attempt {}", grant.slot, grant.attempt);
    let took = human(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    let mut is_told = signals.told_to_end().is_some();
    let mut finishing = Box::pin(attempt.finish(result));
    let answer = loop {
        let limit = async {
            match is_told {
                true => tokio::time::sleep(SETTLE_WITHIN).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = &mut finishing => break Some(answer),
            () = limit => break None,
            _ = signals.next(), if !is_told => is_told = signals.told_to_end().is_some(),
        }
    };
    match answer {
        Some(Ok(finished)) => note(&format!("{run}: {}", told(&finished, &took))),
        Some(Err(error)) => note(&format!(
            "{run}: {result} after {took}, which was not accepted: {}",
            Failure::from(error).what
        )),
        None => note(&format!(
            "{run}: {result} after {took}; the service did not answer, so it may be tried again"
        )),
    }
}

/// `took`: how long the command ran.
fn told(finished: &RunFinished, took: &str) -> String {
    match finished.state {
        RunState::Retry => format!("failed after {took}, and will be tried again"),
        RunState::Failed => format!("failed after {took}, and no retries are left"),
        state => format!("{state} after {took}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_schedule_is_told_by_its_option() {
        assert_eq!(in_options("schedule: hours (field 2)"), "--schedule: hours (field 2)");
        assert_eq!(in_options("zone: \"X\" is no"), "--tz: \"X\" is no");
    }
}
