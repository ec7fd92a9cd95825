//! Of any schedule, in any zone, from any moment: slots rise, and all ways to ask agree; against a search minute by
//! minute.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use proptest::prelude::*;
use sereno_schedule::Schedule;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Madrid",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Antarctica/Troll",
];

/// Moments within days of a change of the clock in some zone, in 2026 and 2027, and any others.
fn moment() -> impl Strategy<Value = u64> {
    let changes = [
        1_772_953_200,
        1_774_746_000,
        1_775_314_800,
        1_777_000_000,
        1_788_667_200,
        1_791_041_400,
        1_792_890_000,
        1_793_512_800,
    ];
    let near = (0..changes.len(), 0..2 * DAY)
        .prop_map(move |(index, back)| changes[index] * 1_000 + DAY - back);
    prop_oneof![3 => near, 1 => 1_000_000_000_000u64..4_000_000_000_000]
}

fn minutes() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_string()),
        (1..31u32).prop_map(|step| format!("*/{step}")),
        (0..60u32).prop_map(|minute| minute.to_string()),
        (0..30u32, 30..60u32).prop_map(|(one, other)| format!("{one},{other}")),
        (0..30u32, 30..60u32).prop_map(|(from, to)| format!("{from}-{to}/7")),
    ]
}

fn hours() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_string()),
        (1..7u32).prop_map(|step| format!("*/{step}")),
        (0..5u32).prop_map(|hour| hour.to_string()),
        (0..2u32, 2..24u32).prop_map(|(from, to)| format!("{from}-{to}")),
    ]
}

fn days() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just("* * *"),
        1 => Just("* * SUN"),
        1 => Just("1,15,L * *"),
        1 => Just("29 2 *"),
        1 => Just("* 3,10 1-5"),
    ]
}

fn schedule() -> impl Strategy<Value = (String, &'static str)> {
    let cron = (minutes(), hours(), days()).prop_map(|(m, h, d)| format!("{m} {h} {d}"));
    (cron, 0..ZONES.len()).prop_map(|(cron, zone)| (cron, ZONES[zone]))
}

/// What the slots of a stretch have to be, by looking at each of its minutes.
mod search {
    use super::MINUTE;
    use croner::Cron;
    use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

    pub(super) fn slots(cron: &str, zone: &str, after: u64, until: u64) -> Vec<u64> {
        let by_the_clock = cron.split(' ').take(2).any(|field| field.contains('*'));
        let zone = TimeZone::get(zone).unwrap();
        let cron: Cron = cron.parse().unwrap();
        let shown = |ms: u64| {
            zone.to_datetime(Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap())
        };
        let is_in = |time: DateTime| cron.is_time_matching(&time).unwrap();
        let mut slots = Vec::new();
        // Some hours before it, so that a repeated hour is known as one.
        let begin = (after - 180 * MINUTE) / MINUTE * MINUTE;
        let mut furthest = shown(begin);
        let mut at = begin + MINUTE;
        while at <= until {
            let now = shown(at);
            let is_slot = match by_the_clock {
                true => is_in(now),
                false => {
                    let mut passed = std::iter::successors(Some(furthest), |time| {
                        let next = time.checked_add(jiff::SignedDuration::from_mins(1)).unwrap();
                        (next <= now).then_some(next)
                    });
                    passed.next();
                    passed.any(is_in)
                }
            };
            if is_slot && at > after {
                slots.push(at);
            }
            furthest = furthest.max(now);
            at += MINUTE;
        }
        slots
    }
}

proptest! {
    #[test]
    fn slots_are_what_a_search_minute_by_minute_finds((cron, zone) in schedule(), after in moment()) {
        let parsed = Schedule::parse(&cron, zone).unwrap();
        let until = after + 2 * DAY;
        let found = parsed.slots_between(after, until, usize::MAX);
        prop_assert_eq!(&found, &search::slots(&cron, zone, after, until), "{} {}", cron, zone);
    }

    #[test]
    fn slots_rise_and_all_ways_to_ask_agree((cron, zone) in schedule(), after in moment()) {
        let parsed = Schedule::parse(&cron, zone).unwrap();
        let slots = parsed.slots_between(after, u64::MAX, 50);
        prop_assert_eq!(slots.len(), 50);
        prop_assert!(slots[0] > after);
        prop_assert!(slots.windows(2).all(|two| two[0] < two[1]));
        prop_assert!(slots.iter().all(|slot| slot % 1_000 == 0));
        let mut at = after;
        for &slot in &slots {
            prop_assert_eq!(parsed.next_after(at), Some(slot));
            prop_assert_eq!(parsed.next_after(slot - 1), Some(slot));
            prop_assert_eq!(parsed.last_between(after, slot), Some(slot));
            at = slot;
        }
        prop_assert_eq!(parsed.last_between(after, slots[0] - 1), None);
        prop_assert_eq!(parsed.last_between(slots[0], slots[0]), None);
    }

    #[test]
    fn any_text_is_read_or_refused(cron in "[0-9*/,LW#@A-Z +-]{0,24}", zone in "[A-Za-z/_]{0,12}") {
        let _ = Schedule::parse(&cron, &zone);
        let _ = Schedule::parse(&cron, "UTC").map(|parsed| parsed.next_after(1_777_000_000_000));
    }
}
