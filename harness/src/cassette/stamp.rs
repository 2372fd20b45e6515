//! Wall-clock stamps of a cassette's head: RFC 3339 in UTC with milliseconds.
//!
//! Invariant: what [`format`] writes, [`parse`] reads. Deliberately no other time zones or spellings.

use greenroom_boundary::clock::UnixNanos;

const DAY_MS: u64 = 86_400_000;

/// `2026-08-12T14:03:07.120Z`.
pub fn format(at: UnixNanos) -> String {
    let ms = at.as_millis();
    let (year, month, day) = civil(ms / DAY_MS);
    let rest = ms % DAY_MS;
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Reads what [`format`] writes.
pub fn parse(stamp: &str) -> Option<UnixNanos> {
    let bytes = stamp.as_bytes();
    let shape = bytes.len() == 24
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')]
            .iter()
            .all(|(at, byte)| bytes[*at] == *byte);
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = stamp.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    if !shape {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, milli) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    let valid = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let ms = days(year, month, day) * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli;
    valid.then_some(UnixNanos(ms * 1_000_000))
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_year - (153 * month_index + 2) / 5 + 1)
}

fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let year_of_era = year % 400;
    let month_index = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (year / 400 * 146_097 + day_of_era).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_stamps_are_read_and_written() {
        for (stamp, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-08-12T14:03:07.120Z", 1_786_543_387_120),
        ] {
            assert_eq!(format(UnixNanos(ms * 1_000_000)), stamp);
            assert_eq!(parse(stamp), Some(UnixNanos(ms * 1_000_000)));
        }
        assert_eq!(parse("2026-13-01T00:00:00.000Z"), None);
        assert_eq!(parse("today"), None);
    }
}
