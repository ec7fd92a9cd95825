//! `sereno restore`: a new log that begins with a backup.

use super::{etcd::EtcdArgs, log_failure, wall_us};
use crate::{
    failure::Failure,
    output::{Output, human},
    values,
};
use clap::Args;
use rand::RngExt;
use sereno_core::{
    State,
    ids::{LogId, Token},
    limits,
};
use sereno_log::{Snapshot, sqlite::create_from_snapshot};
use std::{fs, path::PathBuf, time::Duration};

/// Make a new data folder, or a new log in etcd, from a backup.
///
/// Leases granted after the backup are forgotten, but their holders are not. So the new log grants tokens from
/// the wall clock plus 7 minutes on, above all that were granted before (where `sereno token-floor` was raised after the
/// backup, raise it again), and grants nothing at all for the longest lease that
/// the namespaces allow: until then every holder that was forgotten has stopped by its own clock. Renewals and
/// releases of leases that the backup knows are served at once.
#[derive(Clone, Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The new data folder: missing or empty.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// Grant nothing for this long from the first start on. [default: the longest lease that the namespaces of the backup allow]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pause: Option<Duration>,
    /// Grant at once. Only where nobody can hold a lease that was granted after the backup.
    #[arg(long, conflicts_with = "pause")]
    no_pause: bool,
    #[command(flatten)]
    output: Output,
}

/// What was made.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Restored {
    /// The data folder, or the URL of the log.
    data: String,
    log_id: String,
    previous_log_id: String,
    position: u64,
    leases: u64,
    token_floor: u64,
    pause_ms: u64,
}

pub(crate) fn run(args: &RestoreArgs) -> Result<u8, Failure> {
    if args.etcd.log.is_some() && args.data.is_some() {
        return Err(Failure::usage("--log and --data are two places: name one"));
    }
    if args.etcd.log.is_none() && args.data.is_none() {
        return Err(Failure::usage(
            "name where the new log is to be: --data DIR for a folder, --log URL for etcd",
        ));
    }
    let bytes = fs::read(&args.from)
        .map_err(|error| Failure::io(&format!("reading {}", args.from.display()), &error))?;
    let backup = State::from_snapshot(&bytes).map_err(|error| {
        let what =
            format!("{} is no backup of Sereno, or a damaged one: {error}", args.from.display());
        Failure::new(what)
            .hint("Nothing was made. A backup is a file that `sereno backup` has written.")
    })?;
    let now = wall_us();
    if !(limits::WALL_US_MIN..=limits::WALL_US_MAX).contains(&now) {
        return Err(Failure::new("this machine's clock is wrong; tokens start from it")
            .hint("Set it first."));
    }
    let floor = token_floor(now, &backup)?;
    let previous = backup.log_id();
    let pause_ms = match (args.no_pause, args.pause) {
        (true, _) => 0,
        (false, Some(pause)) => u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
        (false, None) => backup.restore_pause_ms(),
    };
    let state = backup.restored(LogId(rand::rng().random()), floor, pause_ms);
    let snapshot = Snapshot { head: state.head(), bytes: state.to_snapshot().into() };
    let made = match (&args.etcd.log, &args.data) {
        (Some(url), _) => {
            args.etcd.create(url, &snapshot)?;
            url.to_string()
        }
        (None, Some(data)) => {
            create_from_snapshot(data, &snapshot).map_err(|error| log_failure(data, &error))?;
            data.display().to_string()
        }
        (None, None) => unreachable!("one of the two was named"),
    };
    let restored = Restored {
        data: made,
        log_id: state.log_id().to_hex(),
        previous_log_id: previous.to_hex(),
        position: state.head().position.0,
        leases: state.leases(),
        token_floor: state.last_token().0 + 1,
        pause_ms,
    };
    args.output.answer(&restored, text)?;
    Ok(0)
}

/// Above every token that can have been granted since the backup (S2). Those made of a leader's clock lie at most the
/// headroom of a new log and a minute of skew ahead of now; a second minute is left for those that a slightly raised
/// floor adds one by one. Further ahead only a raised floor can have put them: there a day's microseconds are more
/// grants than any service makes between two backups.
fn token_floor(now_us: u64, backup: &State) -> Result<Token, Failure> {
    const MINUTE_US: u64 = 60 * 1_000_000;
    let by_clock_us = now_us + limits::TOKEN_HEADROOM_US + 2 * MINUTE_US;
    let last = backup.last_token().0;
    let is_by_clock = last <= by_clock_us - MINUTE_US;
    let floor = if is_by_clock { by_clock_us } else { last + 24 * 60 * MINUTE_US };
    let floor = Token(floor);
    let is_usable = floor.0 < limits::TOKEN_MAX - limits::TOKEN_HEADROOM_US;
    let why = "the backup's tokens are at the end of their range: no higher one can be granted";
    is_usable.then_some(floor).ok_or_else(|| Failure::new(why))
}

fn text(restored: &Restored) -> String {
    let pause = match restored.pause_ms {
        0 => "It grants locks at once (--no-pause).".to_string(),
        ms => format!(
            "It grants nothing for the first {} that it serves: by then whoever was granted a lock after the backup \
             has stopped. Renewals, releases and reads are served at once.",
            human(ms)
        ),
    };
    let serve = if restored.data.starts_with("etcd://") { "--node-id ID --log" } else { "--data" };
    format!(
        "{}: a new log, {}, that begins with the state of log {} at position {}, {} leases among it.\n\
         Its fencing tokens start at {}, above all that were granted before; where `sereno token-floor` was raised after \
         the backup, raise it again.\n\
         {pause}\n\
         Serve it with `sereno serve {serve} {0}`.",
        restored.data,
        restored.log_id,
        restored.previous_log_id,
        restored.position,
        restored.leases,
        restored.token_floor,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: u64 = 1_800_000_000_000_000;
    const MINUTE_US: u64 = 60_000_000;

    fn floor_after(last: u64) -> Result<u64, Failure> {
        let backup = State::new().restored(LogId([1; 16]), Token(last + 1), 0);
        assert_eq!(backup.last_token().0, last);
        token_floor(NOW_US, &backup).map(|floor| floor.0)
    }

    #[test]
    fn the_floor_passes_what_a_clock_or_a_raised_floor_can_have_granted_since() {
        // By a clock: a new log's headroom and a minute of skew ahead, whatever the backup has seen.
        for last in [0, NOW_US - 1, NOW_US + 6 * MINUTE_US] {
            let floor = floor_after(last).ok().unwrap();
            assert_eq!(floor, NOW_US + 7 * MINUTE_US);
        }
        // By a raised floor: many grants more than the backup has seen, however little it lies ahead.
        for ahead_us in
            [6 * MINUTE_US + 1, 7 * MINUTE_US - 1, 7 * MINUTE_US, 11 * 1_440 * MINUTE_US]
        {
            let floor = floor_after(NOW_US + ahead_us).ok().unwrap();
            assert!(floor > NOW_US + ahead_us + 1_000_000_000, "{ahead_us}");
        }
        assert!(floor_after(limits::TOKEN_MAX - MINUTE_US).is_err(), "no room is left");
    }
}
