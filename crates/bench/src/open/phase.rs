//! Phases of a load: each with its own figures.

use sereno_api::Millis;
use std::{str::FromStr, time::Duration};

/// One phase, written `NAME:DURATION[:FACTOR]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// What reports call it.
    pub name: String,
    /// How long it lasts.
    pub length: Duration,
    /// By how much acquires and releases are multiplied.
    pub factor: f64,
}

impl Phase {
    /// The unmeasured beginning.
    pub fn warm_up(length: Duration) -> Self {
        Self { name: "warm-up".into(), length, factor: 1.0 }
    }
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (name, length) = (parts.next().unwrap_or_default(), parts.next());
        let factor = parts.next().unwrap_or("1");
        let wrong =
            |why: &str| Err(format!("{why}; write NAME:DURATION[:FACTOR], like double:30s:2"));
        let Some(length) = length.and_then(|text| text.parse::<Millis>().ok()) else {
            return wrong("no duration");
        };
        match factor.parse::<f64>() {
            _ if name.is_empty() => wrong("no name"),
            _ if parts.next().is_some() => wrong("too many parts"),
            _ if length.0 == 0 => wrong("no time at all"),
            Ok(factor) if (0.0..=1_000.0).contains(&factor) => {
                Ok(Self { name: name.into(), length: Duration::from_millis(length.0), factor })
            }
            _ => wrong("the factor must be 0 to 1000"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_as_they_are_written() {
        let double: Phase = "double:30s:2.5".parse().unwrap();
        assert_eq!((double.name.as_str(), double.length), ("double", Duration::from_secs(30)));
        assert!((double.factor - 2.5).abs() < f64::EPSILON);
        assert!(("steady:1m".parse::<Phase>().unwrap().factor - 1.0).abs() < f64::EPSILON);
        for wrong in ["", "steady", "steady:5", ":5s", "a:5s:x", "a:5s:-1", "a:5s:1:1", "a:0s"] {
            assert!(wrong.parse::<Phase>().is_err(), "{wrong}");
        }
    }
}
