//! Times as the wire writes them: RFC 3339 text with a zone.
//!
//! The text is checked by hand, down to the days of a month, and kept as it was written. Nothing
//! here compares a time with a clock: skew between the two ends is never a reason to refuse.

use std::fmt;

use serde::{Deserialize, Serialize};
use wharf_vocab::Timestamp;

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rfc3339Error;

impl fmt::Display for Rfc3339Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time is RFC 3339 text with a zone, such as 2026-01-16T12:00:00Z")
    }
}

impl std::error::Error for Rfc3339Error {}

/// A checked RFC 3339 date and time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rfc3339(String);

impl Rfc3339 {
    /// Checks the text.
    pub fn new(text: impl Into<String>) -> Result<Self, Rfc3339Error> {
        let text = text.into();
        if is_rfc3339(text.as_bytes()) { Ok(Self(text)) } else { Err(Rfc3339Error) }
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Timestamp> for Rfc3339 {
    /// Writes a moment in UTC with milliseconds.
    fn from(at: Timestamp) -> Self {
        let (days, ms) = (at.0 / 86_400_000, at.0 % 86_400_000);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        let fraction = ms % 1000;
        Self(format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z"
        ))
    }
}

impl TryFrom<String> for Rfc3339 {
    type Error = Rfc3339Error;
    fn try_from(text: String) -> Result<Self, Rfc3339Error> {
        Self::new(text)
    }
}

impl From<Rfc3339> for String {
    fn from(time: Rfc3339) -> String {
        time.0
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_rfc3339(text: &[u8]) -> bool {
    check(text).is_some()
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)`, each part within its bounds.
fn check(text: &[u8]) -> Option<()> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let year = number(&date[0..4])?;
    let month = number(&date[5..7])?;
    let day = number(&date[8..10])?;
    let in_calendar = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if date[4] != b'-' || date[7] != b'-' || !in_calendar {
        return None;
    }
    let hour = number(&clock[1..3])?;
    let minute = number(&clock[4..6])?;
    let second = number(&clock[7..9])?;
    let separated = matches!(clock[0], b'T' | b't') && clock[3] == b':' && clock[6] == b':';
    if !separated || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = offset_minutes(skip_fraction(rest)?)?;
    // A leap second is the last one of a day in UTC, wherever the writer lives.
    let utc_minute = (i64::from(hour * 60 + minute) - offset).rem_euclid(24 * 60);
    (second < 60 || utc_minute == 24 * 60 - 1).then_some(())
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0'))
    })
}

fn skip_fraction(text: &[u8]) -> Option<&[u8]> {
    let Some(rest) = text.strip_prefix(b".") else {
        return Some(text);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &rest[digits..])
}

fn offset_minutes(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let total = i64::from(hours * 60 + minutes);
            let signed = if *sign == b'-' { -total } else { total };
            (hours <= 23 && minutes <= 59).then_some(signed)
        }
        _ => None,
    }
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The date of a day counted from 1970-01-01, by whole 400-year cycles of the calendar.
fn date_of(days: u64) -> (u64, u64, u64) {
    // Counting from 0000-03-01 puts the leap day at the end of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_768_564_800_123, "2026-01-16T12:00:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Rfc3339::from(Timestamp(ms)).as_str(), text);
        }
    }

    #[test]
    fn what_is_written_is_also_accepted() {
        for day in 0..60_000_u64 {
            let written = Rfc3339::from(Timestamp(day * 86_400_000 + day));
            assert!(Rfc3339::new(written.as_str()).is_ok(), "{written}");
        }
    }
}
