//! The fields of a cron expression: what the library takes for granted is checked here, and what it says is told with
//! the name of the field.

use croner::{
    errors::CronError,
    parser::{CronParser, Seconds, Year},
};

const NICKNAMES: [&str; 6] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "L"];

/// One field: its name, and what may stand in it.
struct Field {
    name: &'static str,
    rule: &'static str,
    words: &'static [&'static str],
}

/// With seconds; an expression of five fields begins with the second of these.
const FIELDS: [Field; 6] = [
    Field { name: "seconds", rule: "0 to 59", words: &[] },
    Field { name: "minutes", rule: "0 to 59", words: &[] },
    Field { name: "hours", rule: "0 to 23", words: &[] },
    Field { name: "day of month", rule: "1 to 31, L or 15W", words: &["L", "W", "LW"] },
    Field { name: "month", rule: "1 to 12, or JAN to DEC", words: &MONTHS },
    Field { name: "day of week", rule: "0 to 7, or SUN to SAT, 5L or 5#2", words: &DAYS },
];

/// Refuses what the library would read as something else.
pub(crate) fn check(cron: &str) -> Result<(), String> {
    if let Some(nickname) = cron.trim().strip_prefix('@') {
        let known = NICKNAMES.iter().any(|name| name[1..].eq_ignore_ascii_case(nickname));
        let rule = || format!("{cron:?} is none of {}", NICKNAMES.join(", "));
        return known.then_some(()).ok_or_else(rule);
    }
    let fields = split(cron);
    if !(5..=6).contains(&fields.len()) {
        let count = fields.len();
        return Err(format!(
            "{cron:?} has {count} fields: five are needed (minute, hour, day of month, month, day of week), or six with seconds in front"
        ));
    }
    for (index, text) in fields.iter().enumerate() {
        check_field(text, field(fields.len(), index)).map_err(|why| place(&fields, index, &why))?;
    }
    Ok(())
}

fn check_field(text: &str, field: &Field) -> Result<(), String> {
    if text.split(',').any(str::is_empty) {
        return Err("has a comma with nothing beside it".into());
    }
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    for word in words {
        if !field.words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            return Err(format!("must be {}: {word:?} means nothing here", field.rule));
        }
    }
    Ok(())
}

/// The library's refusal, with the field that it is about.
pub(crate) fn explain(cron: &str, error: &CronError) -> String {
    let fields = split(cron);
    let alone = |index: usize| {
        let mut only: Vec<&str> = vec!["*"; fields.len()];
        only[index] = fields[index];
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed);
        parser.build().parse(&only.join(" ")).err()
    };
    for index in 0..fields.len() {
        if let Some(error) = alone(index) {
            let rule = field(fields.len(), index).rule;
            return place(&fields, index, &format!("must be {rule}: {error}"));
        }
    }
    format!("{cron:?}: {error}")
}

/// A `*` in seconds, minutes or hours: it runs by the clock on the wall, and not at fixed times.
pub(crate) fn is_by_the_clock(cron: &str) -> bool {
    let cron = cron.trim();
    if cron.starts_with('@') {
        return cron.eq_ignore_ascii_case("@hourly");
    }
    let fields = split(cron);
    fields[..fields.len().saturating_sub(3)].iter().any(|field| field.contains('*'))
}

fn split(cron: &str) -> Vec<&str> {
    cron.split_whitespace().collect()
}

fn field(count: usize, index: usize) -> &'static Field {
    &FIELDS[index + FIELDS.len() - count]
}

/// `hours "25" (2nd of 5 fields): …`
fn place(fields: &[&str], index: usize, why: &str) -> String {
    let name = field(fields.len(), index).name;
    format!("{name} (field {} of {}): {:?} {why}", index + 1, fields.len(), fields[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_the_time_of_day_means_by_the_clock() {
        for by_the_clock in [
            "* * * * *",
            "*/15 * * * *",
            "0 * * * *",
            "* 2 * * *",
            "5,*/7 2 1 * *",
            "* 0 2 * * *",
            "@hourly",
        ] {
            assert!(is_by_the_clock(by_the_clock), "{by_the_clock}");
        }
        for fixed in [
            "30 2 * * *",
            "0 2,14 * * *",
            "0-30/10 1-3 * * *",
            "0 30 2 * * *",
            "@daily",
            " @weekly ",
        ] {
            assert!(!is_by_the_clock(fixed), "{fixed}");
        }
    }
}
