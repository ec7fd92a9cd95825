//! `sereno quota reserve … -- CMD`: the command, and what becomes of the reservation after it.

use super::{
    act::{LateArg, committed_text, failed},
    node::{OnExpiryArg, spelled},
    reserve::{OnFailure, OnSuccess, ReserveArgs},
};
use crate::{
    connect::Service,
    exit,
    failure::Failure,
    lock::{
        CALL_TIMEOUT, Ended, Margins, SETTLE_WITHIN, Signals, Terms, Words, run_under_lease, settle,
    },
    output::note,
    pause,
};
use sereno_client::{
    Client, Commit, Error, QuotaError, Reservation,
    api::{ErrorCode, Reason},
};
use std::time::Duration;

/// Between tries to have a commit taken.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs it and gives the exit code.
pub(super) async fn run(service: &Service, args: &ReserveArgs) -> Result<u8, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::io("listening for signals", &error).exit(exit::LOCK_FAILED))?;
    let client = service.builder().call_timeout(CALL_TIMEOUT).build()?;
    let done = tokio::select! {
        reserved = args.described(&client).keep_extended().reserve() => match reserved {
            Ok(reservation) => Ok(reservation),
            Err(error) => Err(Err(not_reserved(&client, error).await)),
        },
        signal = signals.next() => Err(Ok(exit::by_signal(signal.as_raw()))),
    };
    let result = match done {
        Ok(reservation) => under(reservation, args, &mut signals).await,
        Err(result) => result,
    };
    settle(&client, SETTLE_WITHIN).await;
    result
}

/// Why the command does not run, with the wrapper's exit code.
async fn not_reserved(client: &Client, error: QuotaError) -> Failure {
    let is_exhausted = error.is_exhausted();
    let error = Error::from(error);
    let code = match &error {
        _ if is_exhausted => exit::NOT_ACQUIRED,
        Error::Invalid(_) => exit::USAGE,
        error if error.code() == Some(ErrorCode::InvalidArgument) => exit::USAGE,
        Error::Unavailable(_) | Error::Unknown(_) | Error::Lost(_) => exit::NO_ANSWER,
        _ => exit::LOCK_FAILED,
    };
    pause::or_else(client, error).await.exit(code)
}

async fn under(
    reservation: Reservation,
    args: &ReserveArgs,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let terms = Terms {
        status: reservation.watch(),
        margins: Margins::new(reservation.remaining(), args.grace),
        variables: variables(&reservation),
        words: Words { what: "the reservation", longest: "the longest life (--max-lifetime)" },
        // Where nobody else is given the capacity there is nothing to stop for.
        keep: args.on_expiry != OnExpiryArg::Release,
        interactive: true,
    };
    let ended = run_under_lease(terms, &args.command, signals).await;
    match (ended, args.on_failure) {
        (Ok(Ended::Itself(0)), _) => done(reservation, args, signals).await,
        (Ok(Ended::Itself(code)), OnFailure::Release) => {
            give_back(reservation).await;
            Ok(code)
        }
        // The service did not answer, or has said that it is over: nobody waits for another answer.
        (Ok(Ended::Stopped(code)), OnFailure::Release) => Ok(code),
        (Ok(Ended::Itself(code) | Ended::Stopped(code)), OnFailure::Leave) => {
            left(reservation);
            Ok(code)
        }
        // It was never begun.
        (Err(failure), _) => {
            give_back(reservation).await;
            Err(failure)
        }
    }
}

fn variables(reservation: &Reservation) -> Vec<(&'static str, String)> {
    vec![
        ("SERENO_RESERVATION", reservation.id().into()),
        ("SERENO_FENCE", reservation.fence().to_string()),
        ("SERENO_FENCE_KEY", reservation.fence_key().into()),
    ]
}

/// The command has done well.
async fn done(
    reservation: Reservation,
    args: &ReserveArgs,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    match args.on_success {
        OnSuccess::Release => {
            give_back(reservation).await;
            Ok(0)
        }
        OnSuccess::Commit => commit(reservation, args.late, signals).await,
    }
}

/// What was made has to be on the books, so it is asked until that is decided or a signal says to end.
async fn commit(
    mut reservation: Reservation,
    late: LateArg,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let mut commit = Commit::all();
    if late == LateArg::Readmit {
        commit = commit.or_readmit();
    }
    let mut is_said = false;
    loop {
        let error = match reservation.commit_with(commit.clone()).await {
            Ok(committed) => {
                note(&committed_text(&committed));
                return Ok(0);
            }
            Err(error) => error,
        };
        if !matches!(error, QuotaError::Other(Error::Unavailable(_) | Error::Unknown(_))) {
            let failure = failed(error);
            let how = failure.problem.as_ref().and_then(|problem| problem.reason.as_ref());
            if how == Some(&Reason::Committed) {
                note("it was committed while the command ran");
                return Ok(0);
            }
            return Err(not_committed(failure));
        }
        if signals.told_to_end().is_some() {
            return Err(not_committed(failed(error)).hint(
                "It is tried for a moment more; see `sereno quota ledger`, and set it right with `sereno quota adjust`.",
            ));
        }
        if !std::mem::replace(&mut is_said, true) {
            note(&format!(
                "the command is done, and what it used is not committed yet: {}; it is tried until it is",
                failed(error).what
            ));
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = signals.next() => {}
        }
    }
}

fn not_committed(failure: Failure) -> Failure {
    let what = format!("the command is done, and what it used is not committed: {}", failure.what);
    Failure { what, ..failure }.exit(exit::LOCK_FAILED)
}

async fn give_back(reservation: Reservation) {
    let left = reservation.remaining();
    match reservation.release().await {
        Ok(answer) if answer.released => {}
        Ok(answer) => {
            let how = answer.reason.map_or("ended".into(), |reason| reason.to_string());
            note(&format!("the reservation had ended before it was given back ({how})"));
        }
        Err(error) => note(&format!(
            "that the reservation is given back was not confirmed ({error}); it ends by itself in {} s at the latest",
            left.as_secs() + 1
        )),
    }
}

fn left(reservation: Reservation) {
    let told = reservation.told();
    let items: Vec<_> = told
        .items
        .iter()
        .map(|item| sereno_client::api::QuotaItem {
            quota: item.quota.clone(),
            path: item.path.clone(),
            amount: item.amount,
        })
        .collect();
    note(&format!(
        "reservation {} of {} is left to its deadline",
        told.reservation_id,
        spelled(&items)
    ));
    reservation.leave();
}
