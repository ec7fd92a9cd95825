//! The service speaks of fields of its interface and of milliseconds; people at a shell know options and `30s`.

use crate::output::human;
use sereno_client::api::{ErrorCode, Millis, Problem};

/// Fields, and the options that set them.
const OPTIONS: [(&str, &str); 31] = [
    ("leaseTtl", "--ttl"),
    ("waitTimeout", "--wait"),
    ("maxHold", "--max-hold"),
    ("maxRun", "--max-run"),
    ("minTtl", "--min-ttl"),
    ("defaultTtl", "--default-ttl"),
    ("maxTtl", "--max-ttl"),
    ("lockDelay", "--lock-delay"),
    ("fencingRequired", "--fencing-required"),
    ("maxLeases", "--max-leases"),
    ("maxWaiters", "--max-waiters"),
    ("requestsPerSecond", "--requests-per-second"),
    ("holdsPerOwner", "--holds-per-owner"),
    ("holdCooldown", "--hold-cooldown"),
    ("replyMemory.refusals", "--remember-refusals"),
    ("replyMemory.endings", "--remember-endings"),
    ("replyMemory.records", "--remember-records"),
    ("expectedVersion", "--expected-version"),
    ("fencingToken", "--token"),
    ("leaseId", "--lease-id"),
    ("bestEffort", "best-effort"),
    ("inFlightTtl", "--ttl"),
    ("onExpiry", "--on-expiry"),
    ("maxLifetime", "--max-lifetime"),
    ("ownerReservedMax", "--owner-reserved-max"),
    ("refuseDebt", "--refuse-debt"),
    ("overdraftCap", "--overdraft-cap"),
    ("asOfRevision", "--as-of-revision"),
    ("committedThen", "--committed-then"),
    ("clusterTimeMs", "--cluster-time-ms"),
    ("reservationId", "the reservation"),
];

/// Words that mean an option only where they name the field that is wrong; else they are plain words.
const FIELDS: [(&str, &str); 31] = [
    ("fencing", "--fencing"),
    ("owner", "--owner"),
    ("labels", "--label"),
    ("namespace", "--namespace"),
    ("reason", "--reason"),
    ("floor", "--set"),
    ("resource", "the name"),
    ("job", "the name"),
    ("schedule", "--schedule"),
    ("zone", "--tz"),
    ("retries", "--retries"),
    ("slot", "--slot"),
    ("election", "the name"),
    ("candidate", "--candidate"),
    ("value", "--value"),
    ("term", "--term"),
    ("to", "the candidate"),
    ("ttl", "--ttl"),
    ("fence", "--fence"),
    ("replaces", "--replaces"),
    ("path", "the node"),
    ("quota", "the node"),
    ("limit", "--limit"),
    ("burst", "--burst"),
    ("guaranteed", "--guaranteed"),
    ("weight", "--weight"),
    ("patience", "--patience"),
    ("home", "--home"),
    ("observed", "--observed"),
    ("epoch", "--epoch"),
    ("reporter", "--reporter"),
];

/// A duration as it is given on the command line.
pub(crate) fn spelled(duration: Millis) -> String {
    match duration {
        Millis(0) => "0s".into(),
        duration => duration.to_string(),
    }
}

/// What a problem says, in the words of the command line.
pub(crate) fn detail(problem: &Problem) -> String {
    let text = in_durations(&problem.detail);
    let text = match problem.code {
        // A limit is the namespace's, and no option of the command that has met it.
        ErrorCode::LimitReached => of_the_namespace(&text),
        _ => named_options(&text),
    };
    let field = problem.field.as_deref().unwrap_or_default();
    let option = FIELDS.iter().find(|(name, _)| *name == field);
    match option.and_then(|(name, option)| Some((option, text.strip_prefix(*name)?))) {
        Some((option, rest)) => format!("{option}{rest}"),
        None => text,
    }
}

/// `maxLeases: 10 are in use` names what `sereno namespace set` calls max-leases.
fn of_the_namespace(text: &str) -> String {
    let named =
        OPTIONS.iter().find_map(|(field, option)| Some((option, text.strip_prefix(field)?)));
    match named {
        Some((option, rest)) => {
            format!("the namespace's {}{rest}", option.trim_start_matches('-'))
        }
        None => text.into(),
    }
}

/// `29991 ms` becomes `29s`. What stands in quotes is somebody's own.
pub(crate) fn in_durations(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut spoken: Vec<String> = Vec::new();
    let mut quoted = false;
    for (index, word) in words.iter().enumerate() {
        let is_ours = !quoted;
        quoted ^= word.matches('"').count() % 2 == 1;
        let digits = word.trim_end_matches([',', ';', ':']);
        let number = digits.parse::<u64>();
        let follows = words.get(index + 1).map(|next| next.trim_end_matches([',', ';', ':']));
        match number {
            Ok(ms) if is_ours && follows == Some("ms") => spoken.push(human(ms)),
            _ if is_ours && word.starts_with("ms") && was_number(&words, index) => {
                let after = word.trim_start_matches("ms");
                if let Some(last) = spoken.last_mut() {
                    last.push_str(after);
                }
            }
            _ => spoken.push((*word).into()),
        }
    }
    spoken.join(" ")
}

/// The word before is the number that this unit belongs to.
fn was_number(words: &[&str], index: usize) -> bool {
    let unit = words[index].trim_end_matches([',', ';', ':']);
    unit == "ms" && index > 0 && words[index - 1].parse::<u64>().is_ok()
}

/// Outside of quotes each field is called by its option.
fn named_options(text: &str) -> String {
    let parts = text.split('"').enumerate().map(|(index, part)| match index % 2 {
        0 => by_word(part),
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join("\"")
}

fn by_word(text: &str) -> String {
    let mut spoken = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let word_only = word.trim_end_matches('.');
        match OPTIONS.iter().find(|(field, _)| *field == word_only) {
            Some((_, option)) => {
                spoken.push_str(option);
                spoken.push_str(&word[word_only.len()..]);
            }
            None => spoken.push_str(word),
        }
        let between = after.find(is_part).unwrap_or(after.len());
        spoken.push_str(&after[..between]);
        rest = &after[between..];
    }
    spoken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(field: Option<&str>, text: &str) -> String {
        let mut problem = Problem::new(ErrorCode::InvalidArgument, text);
        problem.field = field.map(Into::into);
        detail(&problem)
    }

    #[test]
    fn durations_are_as_on_the_command_line_and_counts_are_not() {
        for (field, wire, spoken) in [
            (
                "leaseTtl",
                "leaseTtl: must be 1s to 1h, is 500ms",
                "--ttl: must be 1s to 1h, is 500ms",
            ),
            (
                "replyMemory.records",
                "replyMemory.records: must be 1 to 2000000, is 0",
                "--remember-records: must be 1 to 2000000, is 0",
            ),
            (
                "waitTimeout",
                "waitTimeout: must be 0s to 10m, is 2h",
                "--wait: must be 0s to 10m, is 2h",
            ),
        ] {
            assert_eq!(said(Some(field), wire), spoken);
        }
    }

    #[test]
    fn fields_are_called_by_their_options_and_names_are_left_alone() {
        for (field, wire, spoken) in [
            (
                Some("minTtl"),
                "minTtl: must not be above maxTtl",
                "--min-ttl: must not be above --max-ttl",
            ),
            (
                Some("fencing"),
                "fencing: must be enforced where fencingRequired is true",
                "--fencing: must be enforced where --fencing-required is true",
            ),
            (Some("owner"), "owner: is empty", "--owner: is empty"),
            (Some("resource"), "resource: has ' ' at byte 3", "the name: has ' ' at byte 3"),
            (
                None,
                "the namespace requires fencing: enforced",
                "the namespace requires fencing: enforced",
            ),
            (
                None,
                "a is held by \"maxHold 5 ms\" for at most 29991 ms more",
                "a is held by \"maxHold 5 ms\" for at most 29s more",
            ),
            (
                None,
                "maxHold is used up: the ownership ends in 1200 ms, and cannot be renewed",
                "--max-hold is used up: the ownership ends in 1.2s, and cannot be renewed",
            ),
        ] {
            assert_eq!(said(field, wire), spoken);
        }
        let limit = Problem::new(ErrorCode::LimitReached, "maxLeases: 10 are in use");
        assert_eq!(detail(&limit), "the namespace's max-leases: 10 are in use");
    }
}
