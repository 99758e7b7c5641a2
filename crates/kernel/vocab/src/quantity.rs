//! Durations, sizes and rates as people write them: `1h30m`, `256Mi`, `60/minute`.
//!
//! One grammar for manifests, settings, parameters and the command line. Whether zero makes sense
//! is for the reader to decide.

const DURATION_UNITS: [(&str, u64); 6] = [
    // `ms` comes before `m`, since units are tried in this order.
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

const SIZE_UNITS: [(&str, u64); 10] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("", 1),
];

/// A length of time in milliseconds: numbers with units, such as `500ms`, `1.5s`, `7d` or `1h30m`.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let (whole, fraction, after) = number(rest)?;
        let (unit, ms) = DURATION_UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        sum = sum.checked_add(whole.checked_mul(*ms)?)?.checked_add(part(fraction, *ms)?)?;
        rest = &after[unit.len()..];
    }
    (!text.is_empty()).then_some(sum)
}

/// A number of bytes: `4096`, `100M`, `256Mi` or `256MiB`.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.strip_suffix('B').unwrap_or(text);
    let (whole, fraction, unit) = number(text)?;
    let (_, factor) = SIZE_UNITS.iter().find(|(known, _)| *known == unit)?;
    whole.checked_mul(*factor).filter(|_| fraction.is_empty())
}

/// How many in how many milliseconds: `60/minute`, `5/s`.
#[must_use]
pub fn rate(text: &str) -> Option<(u32, u64)> {
    let (count, per) = text.split_once('/')?;
    let per_ms = match per {
        "s" | "sec" | "second" => 1_000,
        "m" | "min" | "minute" => 60_000,
        "h" | "hour" => 3_600_000,
        "d" | "day" => 86_400_000,
        _ => return None,
    };
    let (count, fraction, rest) = number(count)?;
    let count = count.try_into().ok().filter(|count| *count > 0)?;
    (fraction.is_empty() && rest.is_empty()).then_some((count, per_ms))
}

/// A number at the beginning of a text: its whole part, its decimals, and what follows.
fn number(text: &str) -> Option<(u64, &str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let whole = whole.parse().ok()?;
    let Some(decimals) = rest.strip_prefix('.') else { return Some((whole, "", rest)) };
    let (fraction, rest) = decimals.split_at(digits(decimals));
    (!fraction.is_empty()).then_some((whole, fraction, rest))
}

/// The part of a unit that decimals stand for, rounded down.
fn part(fraction: &str, unit: u64) -> Option<u64> {
    let digits = fraction.get(..fraction.len().min(9))?;
    let scale = 10_u128.pow(u32::try_from(digits.len()).ok()?);
    let parts = if digits.is_empty() { 0 } else { digits.parse::<u128>().ok()? };
    u64::try_from(parts * u128::from(unit) / scale).ok()
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
            ("2w", 14 * 86_400_000),
            ("1.5s", 1_500),
            ("1m500ms", 60_500),
            ("0s", 0),
            ("0.1ms", 0),
        ] {
            assert_eq!(duration_ms(text), Some(expect), "{text}");
        }
        for bad in [
            "",
            "30",
            "s",
            "5x",
            "-5s",
            "+5s",
            "1..5s",
            ".5s",
            "1.s",
            "9e99d",
            "1s5",
            "NaNs",
            "1 s",
            " 1s",
            "99999999999999999999h",
            "18446744073709551615w",
        ] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_and_rates_are_read() {
        for (text, expect) in [
            ("256Mi", 256 << 20),
            ("256MiB", 256 << 20),
            ("1Gi", 1 << 30),
            ("4096", 4096),
            ("4096B", 4096),
            ("5K", 5_000),
            ("5k", 5_000),
            ("2T", 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Some(expect), "{text}");
        }
        for bad in ["", "B", "Mi", "1.5Mi", "-1", "5mi", "99999999999Ti", "1 Mi"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
        assert_eq!(rate("60/minute"), Some((60, 60_000)));
        assert_eq!(rate("5/s"), Some((5, 1_000)));
        for bad in ["", "60", "/minute", "60/fortnight", "0/s", "x/s", "1.5/s", "9999999999/s"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
