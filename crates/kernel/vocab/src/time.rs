//! A moment, in milliseconds since 1970-01-01T00:00:00Z, its text form, and pauses between tries.
//!
//! Text is RFC 3339 with a zone, checked down to the days of a month. Nothing here compares a time
//! with a clock: skew between two ends is never a reason to refuse.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Only the rim reads a clock.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `ms` milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How many milliseconds have passed since `earlier`; 0 if it lies in the future.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How long it is until this moment; zero if it has passed.
    #[must_use]
    pub fn until(self, now: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(now.0))
    }
}

/// A moment that is written as RFC 3339 text in UTC with milliseconds, and read with any offset.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct DateTime(pub Timestamp);

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time is RFC 3339 text with a zone, such as 2026-01-16T12:00:00Z")]
pub struct Rfc3339Error;

impl DateTime {
    /// The last millisecond that four digits can name the year of.
    const LAST_MS: u64 = 253_402_300_799_999;
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.0.min(Self::LAST_MS);
        let (days, ms) = (at / 86_400_000, at % 86_400_000);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        let fraction = ms % 1000;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
    }
}

impl FromStr for DateTime {
    type Err = Rfc3339Error;

    /// Moments before 1970 are the first there is: nothing ran before.
    fn from_str(text: &str) -> Result<Self, Rfc3339Error> {
        let ms = rfc3339_ms(text).ok_or(Rfc3339Error)?;
        Ok(Self(Timestamp(u64::try_from(ms).unwrap_or(0))))
    }
}

impl TryFrom<String> for DateTime {
    type Error = Rfc3339Error;
    fn try_from(text: String) -> Result<Self, Rfc3339Error> {
        text.parse()
    }
}

impl From<DateTime> for String {
    fn from(at: DateTime) -> String {
        at.to_string()
    }
}

impl From<Timestamp> for DateTime {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

/// What `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)` means, in milliseconds since 1970; `None` if a
/// part is missing or out of its bounds.
#[must_use]
pub fn rfc3339_ms(text: &str) -> Option<i64> {
    let (date, rest) = text.as_bytes().split_at_checked(10)?;
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
    let (fraction_ms, zone) = fraction(rest)?;
    let utc_minute = i64::from(hour * 60 + minute) - offset_minutes(zone)?;
    // A leap second is the last one of a day in UTC, wherever the writer lives.
    if second == 60 && utc_minute.rem_euclid(24 * 60) != 24 * 60 - 1 {
        return None;
    }
    let minutes = day_number(year, month, day) * 24 * 60 + utc_minute;
    Some((minutes * 60 + i64::from(second)) * 1000 + fraction_ms)
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0'))
    })
}

/// The milliseconds that a text begins with, and what stands after them.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ms = [100, 10, 1].iter().zip(&rest[..digits]).map(|(ms, it)| ms * i64::from(it - b'0'));
    (digits > 0).then(|| (ms.sum(), &rest[digits..]))
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

/// How many days lie between 1970-01-01 and this one; the other way round than [`date_of`].
fn day_number(year: u32, month: u32, day: u32) -> i64 {
    // Years begin in March here, so that the leap day ends them.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.wrapping_sub(1), month + 9) };
    let year = i64::from(year.cast_signed());
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + i64::from((153 * month + 2) / 5 + day - 1) - 719_468
}

/// Pauses between tries: each is twice as long as the one before, up to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Nothing has failed yet.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// How long the next pause is.
    #[must_use]
    pub const fn peek(&self) -> Duration {
        self.next
    }

    /// A try failed: how long to pause before the next.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause
    }

    /// A try worked: pauses begin with the first again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_763_164_800_007, "2025-11-15T00:00:00.007Z"),
            (1_768_564_800_123, "2026-01-16T12:00:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(DateTime(Timestamp(ms)).to_string(), text);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for day in 0..60_000_u64 {
            let at = DateTime(Timestamp(day * 86_400_000 + day));
            assert_eq!(at.to_string().parse(), Ok(at), "{at}");
        }
    }

    #[test]
    fn moments_are_read_with_any_offset_and_fraction() {
        for (text, ms) in [
            ("2025-11-15T01:00:00.007+01:00", Some(1_763_164_800_007)),
            ("2025-11-14t23:30:00.0079z", Some(1_763_163_000_007)),
            ("2025-11-14T19:30:00-04:30", Some(1_763_164_800_000)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_800_000)),
            ("1969-12-31T23:59:59.5Z", Some(-500)),
            ("0000-01-01T00:00:00Z", Some(-62_167_219_200_000)),
            ("2025-02-29T00:00:00Z", None),
            ("2025-11-15T24:00:00Z", None),
            ("2025-11-15T12:00:60Z", None),
            ("2025-11-15T00:00:00", None),
            ("2025-11-15T00:00:00.Z", None),
            ("2025-11-15", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(rfc3339_ms(text), ms, "{text}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(50), ms(180));
        let pauses: Vec<_> = std::iter::from_fn(|| Some(backoff.pause())).take(4).collect();
        assert_eq!(pauses, [ms(50), ms(100), ms(180), ms(180)]);
        backoff.reset();
        assert_eq!((backoff.peek(), backoff.pause()), (ms(50), ms(50)));
        let mut endless = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!((endless.pause(), endless.pause()), (Duration::MAX, Duration::MAX));
    }
}
