//! How values are written on the command line.

use sereno_client::{api::Millis, schedule::instant};
use sereno_core::{limits, names};
use std::time::Duration;

/// A whole number from 1 to `max`.
pub(crate) fn count(max: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    number(1, max)
}

/// A whole number in this range.
pub(crate) fn number(
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| {
        let number = whole(text)?;
        match (min..=max).contains(&number) {
            true => Ok(number),
            false if max == u64::MAX => Err(format!("must be at least {min}")),
            false => Err(format!("must be {min} to {max}")),
        }
    }
}

/// Any whole number.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number => Ok(number),
        _ if is_number => Err(format!("must not be above {}", u64::MAX)),
        _ => Err("must be a whole number, in digits only".into()),
    }
}

/// A name of a lock. The service has the same rule; here it is told without one.
pub(crate) fn resource(text: &str) -> Result<String, String> {
    names::ResourceName::new(text).map(|_| text.into())
}

/// A name of a job: like a lock's, and shorter, for its runs have keys of their own.
pub(crate) fn job(text: &str) -> Result<String, String> {
    const BYTES_MAX: usize = 200;
    match text.len() > BYTES_MAX {
        true => Err(format!("is {} bytes long: {BYTES_MAX} are the most", text.len())),
        false => resource(text),
    }
}

/// How often a run may be tried again.
pub(crate) fn retries(text: &str) -> Result<u32, String> {
    let number = number(0, 100)(text)?;
    u32::try_from(number).map_err(|error| error.to_string())
}

/// A slot: an instant, which is written in UTC from here on.
pub(crate) fn slot(text: &str) -> Result<String, String> {
    let wrong = || "must be an instant such as 2026-03-29T01:00:00Z, with at most milliseconds";
    instant::parse(text).map(instant::format).ok_or_else(|| wrong().into())
}

/// A name of a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    names::NamespaceName::new(text).map(|_| text.into())
}

/// Where a service runs.
pub(crate) fn region(text: &str) -> Result<String, String> {
    names::RegionName::new(text).map(|_| text.into())
}

/// Who asks, in words for people.
pub(crate) fn owner(text: &str) -> Result<String, String> {
    names::Owner::new(text).map(|_| text.into())
}

/// Why an operator acts.
pub(crate) fn reason(text: &str) -> Result<String, String> {
    names::Reason::new(text).map(|_| text.into())
}

/// One whole number and one unit: `500ms`, `30s`, `2m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map(Millis::to_duration).map_err(|error| error.to_string())
}

/// A place in the queue for longer is refused by the service; but what reaches it is what is left of the wait, which
/// nobody would recognise in its answer.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let max = Millis(limits::WAIT_TIMEOUT_MS_MAX);
    let wait = duration(text)?;
    if wait > max.to_duration() { Err(format!("must be at most {max}")) } else { Ok(wait) }
}

/// `KEY=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("must be KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_their_unit() {
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1_500)));
        assert!(duration("30").unwrap_err().contains("unit"));
    }

    #[test]
    fn waits_have_an_end() {
        assert_eq!(wait("10m"), Ok(Duration::from_secs(600)));
        assert!(wait("601s").unwrap_err().contains("at most 10m"));
    }

    #[test]
    fn numbers_are_told_in_plain_words() {
        assert_eq!(number(0, 5)("5"), Ok(5));
        for (text, said) in
            [("six", "whole number"), ("-1", "digits"), ("+1", "digits"), ("", "digits")]
        {
            assert!(whole(text).unwrap_err().contains(said), "{text}");
        }
        assert!(number(1, 5)("6").unwrap_err().contains("1 to 5"));
        assert!(count(u64::MAX)("0").unwrap_err().contains("at least 1"));
        assert!(whole("99999999999999999999").unwrap_err().contains("above"));
    }

    #[test]
    fn names_are_checked_as_the_service_does() {
        assert!(resource("orders/42").is_ok());
        assert!(resource("a b").unwrap_err().contains("' '"));
        assert!(namespace("Pay Ments").unwrap_err().contains("'P'"));
    }

    #[test]
    fn slots_are_instants_in_utc() {
        assert_eq!(slot("2026-03-29T03:00:00+02:00").as_deref(), Ok("2026-03-29T01:00:00Z"));
        assert!(slot("tomorrow").unwrap_err().contains("instant"));
    }

    #[test]
    fn names_of_jobs_are_shorter() {
        assert!(job(&"a".repeat(200)).is_ok());
        assert!(job(&"a".repeat(201)).unwrap_err().contains("200"));
        assert!(retries("101").unwrap_err().contains("0 to 100"));
    }

    #[test]
    fn labels_have_a_key() {
        assert_eq!(label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(label("=b").is_err() && label("a").is_err());
    }
}
