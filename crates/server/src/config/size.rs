//! Sizes as operators write them.

use serde::{Deserialize, Deserializer, de};
use std::{fmt, str::FromStr};

/// A number of bytes, written as one whole number and one unit of `B`, `KiB`, `MiB`, `GiB`: `256MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit {
            "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => {
                return Err(format!(
                    "{text:?} is not a size like 256MiB (units: B, KiB, MiB, GiB)"
                ));
            }
        };
        let number: u64 = number.parse().map_err(|_| format!("{text:?} has no sensible number"))?;
        let bytes =
            number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is too large"))?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, units) = (self.0, ["B", "KiB", "MiB", "GiB"]);
        let steps =
            (0..3).take_while(|step| bytes > 0 && bytes % (1 << (10 * (step + 1))) == 0).count();
        write!(f, "{}{}", bytes >> (10 * steps), units[steps])
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip() {
        for (text, bytes) in [
            ("0B", 0),
            ("1000B", 1_000),
            ("64KiB", 65_536),
            ("256MiB", 256 << 20),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)));
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
        for wrong in ["", "1", "MiB", "-1MiB", "1.5GiB", "1MB", "99999999999999GiB"] {
            assert!(wrong.parse::<ByteSize>().is_err(), "{wrong}");
        }
    }
}
