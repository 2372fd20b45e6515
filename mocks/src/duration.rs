//! Durations as scenarios and scripts write them: `180ms`, `1.5s`, `10m`.
//!
//! Invariant: a number and a unit, never a bare number; exact to the nanosecond. Deliberately no signs and no sums.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units with their nanoseconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// What a duration looks like: the schema's pattern.
pub const GRAMMAR: &str = "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d)$";

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(std::time::Duration);

/// The same, by the name that scripts of servers and commands use.
pub type TextDuration = Duration;

/// The same, by the name that scripts of models use.
pub type ScriptDuration = Duration;

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no duration; write a number and a unit: `250ms`, `1.5s`, `10m` (ns, us, ms, s, m, h, d)")]
pub struct DurationError {
    /// What was written.
    pub text: String,
}

impl DurationError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "DURATION_INVALID"
    }
}

impl Duration {
    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(std::time::Duration::from_nanos(nanos))
    }

    /// As the standard library's type.
    pub const fn to_std(self) -> std::time::Duration {
        self.0
    }

    /// In nanoseconds, as the virtual clock counts.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self(duration)
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self::from_nanos).ok_or_else(|| DurationError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, unit_nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let digits = |part: &str| (!part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())).then_some(());
    digits(whole)?;
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(*unit_nanos)?;
    if let Some(fraction) = fraction {
        digits(fraction)?;
        let mut digit_nanos = *unit_nanos;
        for digit in fraction.bytes() {
            digit_nanos /= 10;
            nanos = nanos.checked_add(u64::from(digit - b'0') * digit_nanos)?;
        }
    }
    Some(nanos)
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        match UNITS.iter().find(|(_, unit)| nanos >= *unit && nanos.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", nanos / unit),
            None => f.write_str("0s"),
        }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": GRAMMAR,
            "description": "A number and a unit: 250ms, 1.5s, 10m (ns, us, ms, s, m, h, d)."
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::Duration;

    #[test_case("0s", Some(0))]
    #[test_case("180ms", Some(180_000_000))]
    #[test_case("1.5s", Some(1_500_000_000))]
    #[test_case("0.25m", Some(15_000_000_000))]
    #[test_case("2d", Some(172_800_000_000_000))]
    #[test_case("7", None; "no unit")]
    #[test_case("7 s", None; "a space")]
    #[test_case("-1s", None; "a sign")]
    #[test_case("1.s", None; "an empty fraction")]
    #[test_case(".5s", None; "an empty whole")]
    #[test_case("1sec", None; "no such unit")]
    #[test_case("99999999999999999d", None; "too long")]
    #[test_case("", None; "nothing")]
    fn reads(text: &str, nanos: Option<u64>) {
        assert_eq!(text.parse::<Duration>().ok().map(Duration::as_nanos), nanos);
    }

    proptest! {
        #[test]
        fn what_it_prints_it_reads(nanos in any::<u64>()) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        }
    }
}
