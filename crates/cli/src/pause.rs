//! The pause after a restore, in which nothing is granted.

use crate::{failure::Failure, output::human};
use sereno_client::{Client, Error};
use std::time::{SystemTime, UNIX_EPOCH};

/// Why nothing was granted: the pause, where it is one, with until when; else the error itself, with its exit code.
pub(crate) async fn or_else(client: &Client, error: Error) -> Failure {
    let is_unavailable = matches!(error, Error::Unavailable(_));
    let plain = Failure::from(error);
    if is_unavailable
        && let Ok(status) = client.status().await
        && status.paused_ms > 0
    {
        return failure(status.paused_ms).exit(plain.exit);
    }
    plain
}

/// What a command that wanted a lock or a hold says of it. Its exit code is the caller's matter.
fn failure(paused_ms: u64) -> Failure {
    Failure::new(format!(
        "UNAVAILABLE: the service was restored from a backup and grants nothing {}: whoever was granted something \
         after the backup was made may still be at work, and has stopped by then",
        until(paused_ms)
    ))
    .hint("Try again then; renewals, releases and reads are served meanwhile. `sereno status` shows what is left.")
}

/// For how long, and until when if the service runs on: its own time stands still while it does not.
pub(crate) fn until(paused_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("for {} more, until about {}", human(paused_ms), utc(now + paused_ms.div_ceil(1_000)))
}

/// Seconds since 1970 as `2026-12-01 03:04:20 UTC`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Days since 1970 in the Gregorian calendar. Counted from a 1 March, so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 1 March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (1_796_094_260, "2026-12-01 03:04:20 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn it_says_until_when_and_why() {
        let text = failure(3_600_000).to_string();
        for part in ["UNAVAILABLE", "1h00m", "UTC", "restored from a backup", "sereno status"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
