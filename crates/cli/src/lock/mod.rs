//! `sereno lock NAME -- CMD`: run a command while holding a lock.

mod args;
mod group;
mod heartbeat;
mod launch;
mod link;
mod message;
pub(crate) mod signals;
mod stopper;
pub(crate) mod supervise;
mod terminal;
pub(crate) mod timetable;
mod watchdog;

pub(crate) use args::{FencingArg, LockArgs};
pub(crate) use launch::wait_and_become;
pub(crate) use signals::Signals;
pub(crate) use supervise::{Ended, Terms, Words, run as run_under_lease, settle};
pub(crate) use timetable::Margins;
pub(crate) use watchdog::run as run_watchdog;

use crate::{exit, failure::Failure, output::note, pause};
use rustix::process::Signal;
use sereno_client::{
    Client, Error, Guard, Loss, Moment, Release,
    api::{ErrorCode, Millis},
};
use std::time::Duration;
use supervise::Held;

/// How long plain calls and the release are tried: nobody should wait long for a command that is done.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// For what is still owed when the wrapper is about to end.
pub(crate) const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// Runs it and gives the exit code.
pub(crate) async fn run(args: LockArgs) -> Result<u8, Failure> {
    check(&args)?;
    let failed = |failure: Failure| failure.exit(exit::LOCK_FAILED);
    let mut signals =
        Signals::listen().map_err(|error| failed(Failure::io("listening for signals", &error)))?;
    let builder = args.service.builder().call_timeout(CALL_TIMEOUT);
    let client = builder.build().map_err(Failure::from)?;
    let guard = tokio::select! {
        acquired = acquire(&client, &args) => match acquired {
            Ok(guard) => guard,
            Err(error) => {
                let result = not_acquired(&client, error, &args).await;
                supervise::settle(&client, SETTLE_WITHIN).await;
                return result;
            }
        },
        signal = signals.next() => {
            supervise::settle(&client, SETTLE_WITHIN).await;
            return Ok(exit::by_signal(signal.as_raw()));
        }
    };
    hold_and_run(&client, guard, &args, &mut signals).await
}

/// What can be seen without asking anybody.
fn check(args: &LockArgs) -> Result<(), Failure> {
    match (args.hold_at_least, args.max_hold) {
        (Some(at_least), Some(max)) if at_least > max => Err(Failure::usage(format!(
            "--hold-at-least {} is longer than --max-hold {}: the lock ends before",
            Millis::from(at_least),
            Millis::from(max)
        ))),
        _ => Ok(()),
    }
}

async fn acquire(client: &Client, args: &LockArgs) -> Result<Guard, Error> {
    let mut acquire = client.lock(&args.name);
    if let Some(ttl) = args.ttl {
        acquire = acquire.ttl(ttl);
    }
    if let Some(wait) = args.wait {
        acquire = acquire.wait(wait);
    }
    if let Some(max_hold) = args.max_hold {
        acquire = acquire.max_hold(max_hold);
    }
    if let Some(namespace) = &args.namespace {
        acquire = acquire.namespace(namespace);
    }
    if let Some(owner) = &args.owner {
        acquire = acquire.owner(owner);
    }
    if let Some(fencing) = args.fencing {
        acquire = acquire.fencing(fencing.into());
    }
    for (key, value) in &args.label {
        acquire = acquire.label(key, value);
    }
    acquire.acquire().await
}

async fn not_acquired(client: &Client, error: Error, args: &LockArgs) -> Result<u8, Failure> {
    if error.is_locked() && args.skip_if_held {
        note(&format!("skipped: {}", Failure::from(error).what));
        return Ok(exit::SKIPPED);
    }
    Err(why_not(client, error).await)
}

/// Why the command does not run, with the wrapper's exit code.
pub(crate) async fn why_not(client: &Client, error: Error) -> Failure {
    let code = match &error {
        error if error.is_locked() => exit::NOT_ACQUIRED,
        error if error.code() == Some(ErrorCode::InvalidArgument) => exit::USAGE,
        Error::Invalid(_) => exit::USAGE,
        Error::Unavailable(_) | Error::Unknown(_) | Error::Lost(_) => exit::NO_ANSWER,
        _ => exit::LOCK_FAILED,
    };
    pause::or_else(client, error).await.exit(code)
}

async fn hold_and_run(
    client: &Client,
    guard: Guard,
    args: &LockArgs,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let begun = Moment::now();
    // Of the lease as it is: a short longest hold cuts it.
    let terms = Terms {
        status: guard.watch(),
        margins: Margins::new(guard.remaining(), args.grace),
        variables: variables(&guard),
        words: Words { what: "the lock", longest: "the longest hold" },
        keep: false,
        interactive: true,
    };
    let ended = supervise::run(terms, &args.command, signals).await;
    let mut held = Held::Enough;
    if let (Ok(Ended::Itself(_)), Some(at_least)) = (&ended, args.hold_at_least) {
        let left = at_least.saturating_sub(Moment::now().since(begun));
        held = supervise::hold(&guard, left, signals).await;
        if let Held::Lost(loss) = &held {
            let held = Moment::now().since(begun);
            note(&held_too_short(at_least, held, args.max_hold.is_some(), loss));
        }
    }
    match (&ended, &held) {
        // The service did not answer, or has said that it is over: do not make anybody wait for another answer.
        (Ok(Ended::Stopped(_)), _) | (_, Held::Lost(_)) => drop(guard),
        _ => release(guard).await,
    }
    supervise::settle(client, Duration::from_millis(500)).await;
    match (ended?, held) {
        (Ended::Stopped(code), _) => Ok(code),
        (Ended::Itself(0), Held::Signal(signal)) => Ok(exit::by_signal(Signal::as_raw(signal))),
        (Ended::Itself(code), _) => Ok(code),
    }
}

fn variables(guard: &Guard) -> Vec<(&'static str, String)> {
    let holding = &guard.grant().holdings[0];
    vec![
        ("SERENO_TOKEN", holding.fencing_token.to_string()),
        ("SERENO_RESOURCE", holding.resource.clone()),
        ("SERENO_FENCE_KEY", holding.fence_key.clone()),
    ]
}

/// The command is done, so its exit code stays; but somebody counts on the time.
fn held_too_short(at_least: Duration, held: Duration, is_own_max: bool, loss: &Loss) -> String {
    let why = match loss {
        Loss::MaxHold if is_own_max => "--max-hold was used up".into(),
        Loss::MaxHold => {
            "the namespace's max-hold was used up, which is shorter than --hold-at-least".into()
        }
        loss => format!("it is lost ({loss})"),
    };
    let at_least = Millis::from(at_least);
    format!("the lock was kept for {:.1} s and not for {at_least}: {why}", held.as_secs_f64())
}

async fn release(guard: Guard) {
    let left = guard.remaining();
    match guard.release().await {
        Ok(Release::Now) => {}
        Ok(Release::Before(how)) => {
            note(&format!("the lock had ended before it was released ({how})"));
        }
        Err(error) => note(&format!(
            "the release was not confirmed ({error}); the lock ends by itself in {} s at the latest",
            left.as_secs() + 1
        )),
    }
}
