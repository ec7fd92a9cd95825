//! Time zones: which there are, and what instant a time on the clock is.

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};

/// The zone of this name, spelt as the database spells it: two spellings would be two definitions of one job.
pub(crate) fn find(name: &str) -> Result<TimeZone, String> {
    let unknown =
        || format!("{name:?} is no time zone: give an IANA name such as Europe/Madrid, or UTC");
    let zone = TimeZone::get(name).map_err(|_| unknown())?;
    match zone.iana_name() {
        Some(spelt) if spelt == name => Ok(zone),
        Some(spelt) => Err(format!("{name:?} has to be spelt {spelt:?}")),
        None => Err(unknown()),
    }
}

/// The first instant at which the clock shows `time`, or is past it because it was put forward over it. `None` at the
/// end of the calendar.
pub(crate) fn first_instant(zone: &TimeZone, time: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(time).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(time).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // By the later offset it lies before the change that skips it.
            let early = after.to_timestamp(time).ok()?;
            let mut changes = zone.following(early).map(|change| change.timestamp());
            changes.find(|&change| zone.to_datetime(change) > time)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_without_the_machines_files_and_spelt_in_one_way() {
        for name in ["UTC", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe"] {
            assert_eq!(find(name).unwrap().iana_name(), Some(name));
        }
        for (name, rule) in [
            ("Europe/Atlantis", "is no time zone"),
            ("", "is no time zone"),
            ("CET-1CEST", "is no time zone"),
            ("../etc/passwd", "is no time zone"),
            ("europe/madrid", "spelt \"Europe/Madrid\""),
        ] {
            let told = find(name).unwrap_err();
            assert!(told.contains(rule), "{name}: {told}");
        }
    }

    #[test]
    fn a_skipped_time_is_the_first_instant_after_the_gap() {
        let zone = find("Europe/Madrid").unwrap();
        let at = |hour, minute| {
            first_instant(&zone, DateTime::constant(2026, 3, 29, hour, minute, 0, 0))
        };
        let gap: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        for minute in [0, 1, 30, 59] {
            assert_eq!(at(2, minute), Some(gap), "02:{minute:02}");
        }
        assert_eq!(at(3, 0), Some(gap));
        assert_eq!(at(1, 59), Some("2026-03-29T00:59:00Z".parse().unwrap()));
    }
}
