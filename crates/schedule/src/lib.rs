//! When jobs run: a cron expression in an IANA time zone, as UTC instants called **slots**.
//!
//! ```
//! use sereno_schedule::{Schedule, instant};
//!
//! let nightly = Schedule::parse("30 2 * * *", "Europe/Madrid").unwrap();
//! let noon = instant::parse("2026-03-28T12:00:00Z").unwrap();
//! // 02:30 does not exist in the night of 29 March: the slot is the first instant after the gap, 03:00.
//! let slot = nightly.next_after(noon).unwrap();
//! assert_eq!(instant::format(slot), "2026-03-29T01:00:00Z");
//! ```
//!
//! # The expression
//!
//! Five fields (minute, hour, day of month, month, day of week), or six with seconds in front. Each is `*`, a value, a
//! range `1-5`, a step `*/15` or `10-40/5`, or a list of these with commas. Months and days of the week have names too
//! (`JAN`, `MON`); Sunday is 0 or 7. Where day of month *and* day of week are restricted, either is enough; a `+` before
//! the day of week asks for both. Also `L` (the last day, `5L` the last Friday), `5#2` (the second Friday), `15W` (the
//! weekday nearest to the 15th), and `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
//!
//! # Nights in which the clock is changed
//!
//! | | a time that is skipped | a time that comes twice |
//! |---|---|---|
//! | **fixed times**: no `*` in seconds, minutes and hours (`30 2 * * *`, `0 2,14 * * *`) | at the first instant after the gap; several that fall there are one slot | once, the first time |
//! | **by the clock**: a `*` in one of them (`*/15 * * * *`, `0 * * * *`) | left out: that time never was | both times |
//!
//! This is what Vixie's cron does: a nightly job runs once a night, every night, and one for each quarter of an hour
//! runs each quarter of an hour that passes.
//!
//! The zones' rules are compiled in, and nothing of the machine is read: two programs of one version agree.

mod fields;
pub mod instant;
mod zone;

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Which part of a schedule breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The cron expression.
    Schedule,
    /// The time zone.
    Zone,
}

impl Part {
    /// The name of the field of the service's interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Zone => "zone",
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a schedule is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {rule}")]
pub struct ScheduleError {
    /// Where.
    pub part: Part,
    /// The rule that is broken, and by what.
    pub rule: String,
}

/// A parsed schedule. See the crate's documentation.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    by_the_clock: bool,
}

/// A schedule has to have a slot after this day: one that never comes is refused.
const ANY_DAY: DateTime = DateTime::constant(2024, 1, 1, 0, 0, 0, 0);

impl Schedule {
    /// Reads a cron expression and the name of a time zone.
    ///
    /// # Errors
    /// [`ScheduleError`] names the part, the field in it and the rule; also for a day that never comes (30 February).
    pub fn parse(cron: &str, zone: &str) -> Result<Self, ScheduleError> {
        let wrong = |rule: String| ScheduleError { part: Part::Schedule, rule };
        fields::check(cron).map_err(wrong)?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed);
        let parser = parser.build();
        let parsed = parser.parse(cron).map_err(|error| wrong(fields::explain(cron, &error)))?;
        if parsed.find_next_occurrence(&ANY_DAY, true).is_err() {
            return Err(wrong(format!("{cron:?} never comes: no month has such a day")));
        }
        let zone = zone::find(zone).map_err(|rule| ScheduleError { part: Part::Zone, rule })?;
        Ok(Self { cron: parsed, zone, by_the_clock: fields::is_by_the_clock(cron) })
    }

    /// The first slot after `unix_ms`. Slots are whole seconds. `None`: none before the year 5000.
    pub fn next_after(&self, unix_ms: u64) -> Option<u64> {
        let seconds = i64::try_from(unix_ms / 1_000).ok()?;
        let after = Timestamp::from_second(seconds).ok()?;
        let slot = match self.by_the_clock {
            true => self.next_by_the_clock(after)?,
            false => self.next_fixed(after)?,
        };
        u64::try_from(slot.as_second()).ok()?.checked_mul(1_000)
    }

    /// The slots after `after_ms` and up to `until_ms`, rising, and at most `max` of them.
    pub fn slots_between(&self, after_ms: u64, until_ms: u64, max: usize) -> Vec<u64> {
        let mut slots = Vec::new();
        let mut next = self.next_after(after_ms);
        while let Some(slot) = next.filter(|&slot| slot <= until_ms && slots.len() < max) {
            slots.push(slot);
            next = self.next_after(slot);
        }
        slots
    }

    /// The last slot after `after_ms` and up to `until_ms`, however many there are.
    pub fn last_between(&self, after_ms: u64, until_ms: u64) -> Option<u64> {
        let comes_after = |ms: u64| self.next_after(ms).filter(|&slot| slot <= until_ms);
        let mut last = comes_after(after_ms)?;
        // Halves what is left: some slot comes after `low`, none after `high`.
        let (mut low, mut high) = (last, until_ms);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match comes_after(middle) {
                Some(slot) => (last, low) = (slot, slot),
                None => high = middle,
            }
        }
        Some(last)
    }

    /// Matched against the clock on the wall, at every instant that there is.
    fn next_by_the_clock(&self, after: Timestamp) -> Option<Timestamp> {
        let start = after.to_zoned(self.zone.clone());
        let slot = self.cron.find_next_occurrence(&start, false).ok()?;
        Some(slot.timestamp())
    }

    /// Each time of the expression once: skipped ones after the gap, repeated ones the first time.
    fn next_fixed(&self, after: Timestamp) -> Option<Timestamp> {
        let mut time = self.zone.to_datetime(after);
        loop {
            time = self.cron.find_next_occurrence(&time, false).ok()?;
            // In the second pass of a repeated hour the next times on the clock have been already.
            if let Some(slot) = zone::first_instant(&self.zone, time).filter(|&slot| slot > after) {
                return Some(slot);
            }
        }
    }
}
