//! Sizes and rates as people type them: `256Mi`, `1G`, `4096`, `60/minute`.

use wharf_wire::rest_v1::Rate;

const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("", 1),
];

/// Reads a number of bytes, more than none.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let hint = || "say how many bytes, such as 256Mi, 1Gi or 4096".to_owned();
    let text = text.trim();
    let text = text.strip_suffix('B').unwrap_or(text);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| hint())?;
    let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit).ok_or_else(hint)?;
    number.checked_mul(*factor).filter(|bytes| *bytes > 0).ok_or_else(hint)
}

/// Reads a number per time.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let hint = || "say how many in which time, such as 5/second or 60/minute".to_owned();
    let (count, unit) = text.split_once('/').ok_or_else(hint)?;
    let per_ms = match unit {
        "s" | "second" => 1_000,
        "m" | "minute" => 60_000,
        "h" | "hour" => 3_600_000,
        _ => return Err(hint()),
    };
    let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(hint)?;
    Ok(Rate { count, per_ms })
}

/// A number of bytes for people.
pub(crate) fn shown(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    let binary = UNITS[..4].iter().rev().find(fits);
    match binary {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// About how many bytes, short and readable: `17 B`, `1.5 MiB`.
pub(crate) fn about(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor;
    let Some((unit, factor)) = UNITS[..4].iter().rev().find(fits) else {
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "Mi", "1.5Mi", "-1", "5mi", "99999999999Ti"] {
            assert!(parse(text).is_err(), "{text}");
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
        assert_eq!(parse_rate("60/minute"), Ok(Rate { count: 60, per_ms: 60_000 }));
        assert_eq!(parse_rate("5/s"), Ok(Rate { count: 5, per_ms: 1_000 }));
        for text in ["60", "0/s", "x/s", "5/day", "/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(rate_shown(Rate { count: 60, per_ms: 60_000 }), "60 a minute");
    }
}
