//! From when until when a certificate is good, read out of its encoding.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first and the last moment of a certificate; `None` if it is none.
pub(crate) fn of(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (mut body, _) = inside(certificate, SEQUENCE)?;
    (body, _) = inside(body, SEQUENCE)?;
    if body.first() == Some(&VERSION) {
        body = element(body)?.2;
    }
    // Serial number, algorithm and issuer stand before.
    for _ in 0..3 {
        body = element(body)?.2;
    }
    let (times, _) = inside(body, SEQUENCE)?;
    let (tag, from, rest) = element(times)?;
    let (until_tag, until, _) = element(rest)?;
    Some((moment(tag, from)?, moment(until_tag, until)?))
}

/// What an element of this kind holds, and what follows it.
fn inside(bytes: &[u8], expected: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(bytes)?;
    (tag == expected).then_some((content, rest))
}

/// The first element: its kind, what it holds, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&first, mut bytes) = bytes.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (digits, rest) = bytes.split_at_checked(usize::from(first - 0x80))?;
            bytes = rest;
            digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
        }
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A time: with a year of two digits or of four.
fn moment(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (tag, text.len()) {
        (UTC_TIME, 12) => {
            let year: i16 = text[..2].parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, &text[2..])
        }
        (GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let part = |at: usize| rest[at..at + 2].parse::<i8>().ok();
    let time = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_time_are_read() {
        let read = |tag, text: &str| moment(tag, text.as_bytes()).map(|time| time.to_string());
        assert_eq!(read(UTC_TIME, "260102030405Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(read(UTC_TIME, "500101000000Z").as_deref(), Some("1950-01-01T00:00:00Z"));
        let late = read(GENERALIZED_TIME, "20991231235959Z");
        assert_eq!(late.as_deref(), Some("2099-12-31T23:59:59Z"));
        for (tag, text) in [
            (UTC_TIME, "260102030405"),
            (UTC_TIME, "20260102030405Z"),
            (GENERALIZED_TIME, "260102030405Z"),
            (UTC_TIME, "261302030405Z"),
            (UTC_TIME, "26 102030405Z"),
            (UTC_TIME, "2é0102030405Z"),
            (0x02, "260102030405Z"),
            (UTC_TIME, ""),
        ] {
            assert_eq!(read(tag, text), None, "{text}");
        }
    }

    #[test]
    fn a_certificate_that_is_cut_off_anywhere_is_none() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let whole = made.cert.der().to_vec();
        let (from, until) = of(&whole).expect("a certificate");
        assert!(from < until);
        for length in 0..whole.len() {
            assert_eq!(of(&whole[..length]), None, "{length} bytes");
        }
        let mut spoilt = whole;
        spoilt[1] = 0x85;
        assert_eq!(of(&spoilt), None);
    }
}
