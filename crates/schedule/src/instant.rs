//! Instants as the service writes them: UTC, RFC 3339, at most milliseconds.

use jiff::Timestamp;

/// `2026-03-29T01:00:00Z`, with milliseconds only where there are some.
///
/// Beyond the year 9999, where the calendar ends, its last second.
pub fn format(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).to_string()
}

/// Reads what [`format()`] writes, and other offsets than `Z` too. `None` for anything else, for instants before 1970
/// and for fractions of a millisecond.
pub fn parse(text: &str) -> Option<u64> {
    let instant: Timestamp = text.parse().ok()?;
    let is_whole = instant.subsec_nanosecond() % 1_000_000 == 0;
    u64::try_from(instant.as_millisecond()).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_774_746_000_000, "2026-03-29T01:00:00Z"),
            (1_774_746_000_007, "2026-03-29T01:00:00.007Z"),
        ] {
            assert_eq!(format(ms), text);
            assert_eq!(parse(text), Some(ms));
        }
        assert_eq!(parse("2026-03-29T03:00:00+02:00"), Some(1_774_746_000_000));
        assert_eq!(parse("2026-03-29T01:00:00.500Z"), Some(1_774_746_000_500));
        for wrong in [
            "",
            "now",
            "2026-03-29",
            "2026-03-29T01:00:00",
            "1969-12-31T23:59:59Z",
            "2026-03-29T01:00:00.0001Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(format(u64::MAX).starts_with("9999-"));
    }
}
