//! Wall-clock times for people (RFC 3339). Nothing is decided by them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 by this machine's wall clock; 0 when it stands before that.
pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// `2026-11-30T22:00:30.123Z`
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut text = Vec::with_capacity("0000-00-00T00:00:00.000Z".len());
    for (number, width, separator) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (second / 3_600, 2, b':'),
        (second / 60 % 60, 2, b':'),
        (second % 60, 2, b'.'),
        (ms, 3, b'Z'),
    ] {
        push_digits(&mut text, number, width);
        text.push(separator);
    }
    String::from_utf8(text).expect("digits are ASCII")
}

/// Reads a UTC instant like `2026-12-01T02:00:00Z`, with at most milliseconds; `None` for anything else.
pub(crate) fn parse_rfc3339(text: &str) -> Option<u64> {
    let body = text.strip_suffix('Z')?;
    let (moment, fraction) = body.split_once('.').unwrap_or((body, "0"));
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let part = |range: std::ops::Range<usize>| number(moment.get(range)?);
    let days = days_from_civil(part(0..4)?, part(5..7)?, part(8..10)?)?;
    let seconds = days * 86_400 + part(11..13)? * 3_600 + part(14..16)? * 60 + part(17..19)?;
    let ms = number(fraction).filter(|_| fraction.len() <= 3)?;
    let unix_ms = seconds * 1_000 + ms * 10_u64.pow(3 - fraction.len() as u32);
    // Written again it has to read the same: no 30th of February, no hour 25, no other separators.
    let again = rfc3339(unix_ms);
    (again.get(..19) == Some(moment)).then_some(unix_ms)
}

/// Days after 1970-01-01; `None` before that, or for a month that is none.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || year < 1970 {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

/// By hand, because every grant has such a time.
fn push_digits(text: &mut Vec<u8>, number: u64, width: u32) {
    // A year beyond 9999 has more digits.
    let width = width.max(number.checked_ilog10().unwrap_or(0) + 1);
    text.extend((0..width).rev().map(|place| b'0' + (number / 10u64.pow(place) % 10) as u8));
}

/// The Gregorian date `days` after 1970-01-01. Counts eras of 400 years that begin on a 1st of March, so that a
/// leap day is always the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_0000_TO_1970: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_0000_TO_1970;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month =
        if months_since_march < 10 { months_since_march + 3 } else { months_since_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (1_764_540_000_123, "2025-11-30T22:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
            if text.len() == 24 {
                assert_eq!(parse_rfc3339(text), Some(ms));
            }
        }
        assert_eq!(parse_rfc3339("2025-11-30T22:00:00Z"), Some(1_764_540_000_000));
        assert_eq!(parse_rfc3339("2025-11-30T22:00:00.5Z"), Some(1_764_540_000_500));
        for wrong in [
            "",
            "2025-11-30T22:00:00",
            "2025-11-30 22:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-11-30T24:00:00Z",
            "2025-11-30T22:00:60Z",
            "2025-11-30T22:00:00.1234Z",
            "2025-11-30T22:00:00.Z",
            "2025-11-30T22:00:00+01:00",
            "1969-12-31T23:59:59Z",
            "+025-11-30T22:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_follow_each_other_through_four_centuries() {
        let mut previous = civil(0);
        for day in 1..146_097 {
            let next = civil(day);
            let follows = match (previous, next) {
                ((y, m, d), (year, month, day)) if (y, m) == (year, month) => day == d + 1,
                ((y, m, d), (year, month, 1)) => {
                    let leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
                    let days = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
                    let (after_y, after_m) = if m == 12 { (y + 1, 1) } else { (y, m + 1) };
                    d == days[m as usize - 1] && (after_y, after_m) == (year, month)
                }
                _ => false,
            };
            assert!(follows, "{previous:?} then {next:?}");
            previous = next;
        }
    }
}
