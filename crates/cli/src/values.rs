//! How values are written on the command line.

use clap::builder::RangedU64ValueParser;
use sereno_client::api::Millis;
use sereno_core::limits;
use std::time::Duration;

/// A whole number from 1 to `max`.
pub(crate) fn count(max: u64) -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(1..=max)
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
    fn labels_have_a_key() {
        assert_eq!(label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(label("=b").is_err() && label("a").is_err());
    }
}
