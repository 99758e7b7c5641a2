//! Durations, sizes, rates and money as people type and read them.

use std::time::Duration;

use wharf_vocab::{Micro, quantity};
use wharf_wire::rest_v1::Rate;

const UNITS: [(&str, u64); 4] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40)];

/// Reads a length of time of at least one millisecond.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match quantity::duration_ms(text.trim()) {
        Some(0) => Err("give a duration that is more than nothing, such as 1ms".to_owned()),
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Err("give a duration with a unit, such as 500ms, 30s, 5m or 1h30m".to_owned()),
    }
}

/// The length of time in whole milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time as it would be typed, such as `15m` or `1h30m`.
pub(crate) fn length(ms: u64) -> String {
    const PARTS: [(&str, u64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest = ms;
    let mut text = String::new();
    for (unit, length) in PARTS {
        if rest >= length {
            text.push_str(&format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    text
}

/// Reads a number of bytes, more than none.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let bytes = quantity::bytes(text.trim()).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "give a number of bytes, such as 256Mi, 1Gi or 4096".to_owned())
}

/// Reads a number per time.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let rate = quantity::rate(text).map(|(count, per_ms)| Rate { count, per_ms });
    rate.ok_or_else(|| "give a rate, such as 5/second or 60/minute".to_owned())
}

/// A number of bytes for people.
pub(crate) fn shown(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    let binary = UNITS.iter().rev().find(fits);
    match binary {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// About how many bytes, short and readable: `17 B`, `1.5 MiB`.
pub(crate) fn about(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor;
    let Some((unit, factor)) = UNITS.iter().rev().find(fits) else {
        return format!("{bytes} B");
    };
    let whole = bytes / factor;
    // Tenths are cut off, not rounded, so that nothing looks larger than it is.
    let tenth = u128::from(bytes % factor) * 10 / u128::from(*factor);
    if whole < 100 && tenth > 0 {
        format!("{whole}.{tenth} {unit}B")
    } else {
        format!("{whole} {unit}B")
    }
}

/// A rate for people.
pub(crate) fn rate_shown(rate: Rate) -> String {
    match rate.per_ms {
        1_000 => format!("{} a second", rate.count),
        60_000 => format!("{} a minute", rate.count),
        3_600_000 => format!("{} an hour", rate.count),
        per_ms => format!("{} in {per_ms}ms", rate.count),
    }
}

/// An amount in dollars with as many places as it needs, at least two.
pub(crate) fn dollars(micro: Micro) -> String {
    let mut text = format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000);
    for _ in 0..4 {
        if text.ends_with('0') {
            text.pop();
        }
    }
    text
}

/// Reads an amount in dollars that may be below zero, to the millionth.
pub(crate) fn signed_dollars(text: &str) -> Result<i64, String> {
    let wrong = || "must be an amount of dollars such as 1.50 or -0.0012".to_owned();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 6 || whole.len() + part.len() == 0 {
        return Err(wrong());
    }
    let micro: i64 = format!("{whole}{part:0<6}").parse().map_err(|_| wrong())?;
    Ok(sign * micro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, expect) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
            ("1.5s", 1_500),
            (" 2s ", 2_000),
            ("1m500ms", 60_500),
        ] {
            assert_eq!(duration(text).map(ms), Ok(expect), "{text}");
        }
    }

    #[test]
    fn a_length_without_a_number_a_unit_or_any_time_is_refused() {
        for text in ["", "30", "s", "5x", "-5s", "1..5s", "0s", "0.1ms", "9e99d", "1s5", "NaNs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [
            ("256Mi", 268_435_456),
            ("256MiB", 268_435_456),
            ("1Gi", 1 << 30),
            ("4096", 4096),
            ("4096B", 4096),
            ("5K", 5_000),
        ] {
            assert_eq!(super::bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "Mi", "1.5Mi", "-1", "5mi", "99999999999Ti"] {
            assert!(super::bytes(text).is_err(), "{text}");
        }
        assert_eq!(shown(268_435_456), "256Mi");
        assert_eq!(shown(5_000), "5000");
    }

    #[test]
    fn large_sizes_are_shortened() {
        for (bytes, expect) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (1_048_575, "1023 KiB"),
            (10 << 30, "10 GiB"),
            (u64::MAX, "16777215 TiB"),
        ] {
            assert_eq!(about(bytes), expect, "{bytes}");
        }
    }

    #[test]
    fn rates_are_read_and_shown() {
        assert_eq!(rate("60/minute"), Ok(Rate { count: 60, per_ms: 60_000 }));
        assert_eq!(rate("5/s"), Ok(Rate { count: 5, per_ms: 1_000 }));
        for text in ["60", "0/s", "x/s", "5/year", "/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(rate_shown(Rate { count: 60, per_ms: 60_000 }), "60 a minute");
    }

    #[test]
    fn amounts_below_zero_are_read_to_the_millionth() {
        for (text, expect) in [
            ("-0.0012", Some(-1_200)),
            ("1.5", Some(1_500_000)),
            ("+2", Some(2_000_000)),
            (".000001", Some(1)),
            ("-3", Some(-3_000_000)),
            ("0.0000001", None),
            ("", None),
            ("-", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(signed_dollars(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn amounts_keep_every_place_that_says_something() {
        for (micro, expect) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (1_200_000, "$1.20"),
            (1_234_500, "$1.2345"),
            (10_000_000, "$10.00"),
        ] {
            assert_eq!(dollars(micro), expect);
        }
    }
}
