//! Durations as callers write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr, time::Duration};

/// A duration in milliseconds, written as **one whole number and one unit**: `"500ms"`, `"30s"`, `"2m"`, `"1h"`.
///
/// No sign, no fraction, no blank, no sum (`"90m"`, not `"1h30m"`), at most ten digits, and never a bare number:
/// `30` could mean seconds or milliseconds, and nothing is guessed here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError(String);

const RULE: &str =
    "a duration is one whole number and one unit of ms, s, m, h, like \"500ms\" or \"30s\"";
const DIGITS_MAX: usize = 10;

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {RULE}", self.0)
    }
}

impl std::error::Error for DurationError {}

impl Millis {
    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// As the standard library's type.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl From<Duration> for Millis {
    /// Below a millisecond it is cut off; beyond `u64` it stays at the end.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        millis.to_duration()
    }
}

impl FromStr for Millis {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let wrong = |what: &str| Err(DurationError(format!("{text:?} {what}")));
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "" => return wrong("has no unit"),
            _ => return wrong("is not understood"),
        };
        if number.is_empty() {
            return wrong("has no number");
        }
        match number.parse::<u64>() {
            Ok(number) if digits <= DIGITS_MAX => Ok(Self(number * factor)),
            _ => wrong("is too long"),
        }
    }
}

impl fmt::Display for Millis {
    /// With the largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms if ms % 1_000 != 0 || ms == 0 => write!(f, "{ms}ms"),
            ms if ms % 60_000 != 0 => write!(f, "{}s", ms / 1_000),
            ms if ms % 3_600_000 != 0 => write!(f, "{}m", ms / 60_000),
            ms => write!(f, "{}h", ms / 3_600_000),
        }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration as a string, like \"500ms\" or \"30s\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Millis, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Millis {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some("^[0-9]{1,10}(ms|s|m|h)$"))
            .description(Some("One whole number and one unit of ms, s, m, h."))
            .examples(["30s"])
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Millis {
    fn name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_number_with_one_unit() {
        for (text, ms) in [
            ("0s", 0),
            ("0ms", 0),
            ("500ms", 500),
            ("030s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("9999999999h", 9_999_999_999 * 3_600_000),
        ] {
            assert_eq!(text.parse(), Ok(Millis(ms)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        for (text, why) in [
            ("", "no unit"),
            ("30", "no unit"),
            ("s", "no number"),
            ("-5s", "not understood"),
            ("+5s", "not understood"),
            ("1.5s", "not understood"),
            ("1h30m", "not understood"),
            ("30 s", "not understood"),
            ("30S", "not understood"),
            ("3d", "not understood"),
            ("٣s", "not understood"),
            ("10000000000s", "too long"),
            ("99999999999999999999999s", "too long"),
        ] {
            let error = text.parse::<Millis>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("like \"500ms\""), "{text:?}: {error}");
        }
    }

    #[test]
    fn writes_the_largest_whole_unit_and_reads_it_back() {
        for (ms, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (5_400_000, "90m"),
            (7_200_000, "2h"),
        ] {
            assert_eq!(Millis(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(Millis(ms)));
            assert_eq!(serde_json::to_string(&Millis(ms)).unwrap(), format!("\"{text}\""));
        }
    }

    #[test]
    fn json_numbers_are_no_durations() {
        let error = serde_json::from_str::<Millis>("30").unwrap_err().to_string();
        assert!(error.contains("a duration as a string"), "{error}");
    }
}
