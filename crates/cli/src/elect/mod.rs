//! `sereno elect NAME -- CMD`: run a command while leading an election.

mod args;

pub(crate) use args::ElectArgs;

use crate::{
    elections::HINTS,
    exit,
    failure::Failure,
    lock::{self, Ended, Margins, Signals, Terms, Words, supervise},
    output::note,
    wording::in_durations,
};
use sereno_client::{Campaign, Client, Leadership, Release, Standing, api::ErrorCode};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Runs it and gives the exit code.
pub(crate) async fn run(args: ElectArgs) -> Result<u8, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::io("listening for signals", &error).exit(exit::LOCK_FAILED))?;
    let builder = args.service.builder().call_timeout(lock::CALL_TIMEOUT);
    let client = builder.build().map_err(Failure::from)?;
    loop {
        let campaign = campaign(&client, &args).campaign();
        let leadership = tokio::select! {
            elected = campaign => match elected {
                Ok(leadership) => leadership,
                Err(error) => {
                    let why = lock::why_not(&client, error).await.hints(&HINTS);
                    supervise::settle(&client, lock::SETTLE_WITHIN).await;
                    return Err(why);
                }
            },
            signal = signals.next() => {
                supervise::settle(&client, lock::SETTLE_WITHIN).await;
                return Ok(exit::by_signal(signal.as_raw()));
            }
        };
        match lead_and_run(&client, leadership, &args, &mut signals).await? {
            Ended::Stopped(exit::LOST | exit::MAX_HOLD) if args.again => {
                note(&format!("campaigning for {} again", args.name));
            }
            Ended::Stopped(code) | Ended::Itself(code) => return Ok(code),
        }
    }
}

fn campaign(client: &Client, args: &ElectArgs) -> Campaign {
    let mut campaign = client.election(&args.name).on_standing(teller());
    if let Some(candidate) = &args.candidate {
        campaign = campaign.candidate(candidate);
    }
    if let Some(value) = &args.value {
        campaign = campaign.value(value);
    }
    if let Some(ttl) = args.ttl {
        campaign = campaign.ttl(ttl);
    }
    if let Some(wait) = args.wait {
        campaign = campaign.wait(wait);
    }
    if let Some(max_hold) = args.max_hold {
        campaign = campaign.max_hold(max_hold);
    }
    if let Some(namespace) = &args.namespace {
        campaign = campaign.namespace(namespace);
    }
    if let Some(fencing) = args.fencing {
        campaign = campaign.fencing(fencing.into());
    }
    for (key, value) in &args.label {
        campaign = campaign.label(key, value);
    }
    campaign
}

/// Says when the service is away, and when it is back; a wait in the queue is what is expected.
fn teller() -> impl Fn(&Standing) + Send + Sync + 'static {
    let is_away = AtomicBool::new(false);
    move |standing| match standing {
        Standing::Unanswered { why } => {
            is_away.store(true, Ordering::Relaxed);
            note(&unanswered(why));
        }
        Standing::Waiting { place } if is_away.swap(false, Ordering::Relaxed) => {
            note(&format!("the service takes calls again; place {place} in the queue"));
        }
        _ => {}
    }
}

/// A service that says why it grants nothing is not away.
fn unanswered(why: &str) -> String {
    let what = match ErrorCode::leading(why) {
        Some(_) => "answers, and grants nothing now; it is asked until it does",
        None => "does not answer, and is asked until it does",
    };
    format!("the service {what}: {}", in_durations(why))
}

async fn lead_and_run(
    client: &Client,
    leadership: Leadership,
    args: &ElectArgs,
    signals: &mut Signals,
) -> Result<Ended, Failure> {
    let terms = Terms {
        status: leadership.guard().watch(),
        margins: Margins::new(leadership.remaining(), args.grace),
        variables: variables(&leadership),
        words: Words { what: "the term", longest: "the longest term" },
        keep: false,
        interactive: true,
    };
    let ended = supervise::run(terms, &args.command, signals).await;
    match &ended {
        // The service did not answer, or has said that it is over: do not make anybody wait for another answer.
        Ok(Ended::Stopped(_)) => drop(leadership),
        _ => resign(leadership).await,
    }
    supervise::settle(client, Duration::from_millis(500)).await;
    ended
}

fn variables(leadership: &Leadership) -> Vec<(&'static str, String)> {
    let holding = &leadership.grant().holdings[0];
    let term = holding.fencing_token.to_string();
    vec![
        ("SERENO_TERM", term.clone()),
        ("SERENO_TOKEN", term),
        ("SERENO_ELECTION", holding.resource.clone()),
        ("SERENO_FENCE_KEY", holding.fence_key.clone()),
    ]
}

async fn resign(leadership: Leadership) {
    let left = leadership.remaining();
    match leadership.resign().await {
        Ok(Release::Now) => {}
        Ok(Release::Before(how)) => {
            note(&format!("the term had ended before it was resigned ({how})"));
        }
        Err(error) => note(&format!(
            "the resignation was not confirmed ({error}); the term ends by itself in {} s at the latest",
            left.as_secs() + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_why_nothing_is_granted_is_not_said_to_be_silent() {
        let paused = unanswered(
            "UNAVAILABLE: granting is paused after a restore from a backup, for 61000 ms more",
        );
        assert!(paused.contains("answers, and grants nothing now"), "{paused}");
        assert!(paused.ends_with("for 1m01s more"), "{paused}");
        assert!(unanswered("connection refused").contains("does not answer"));
    }
}
