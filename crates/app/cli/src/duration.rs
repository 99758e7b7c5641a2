//! Lengths of time as people type them: `30s`, `5m`, `500ms`, `1h30m`.

use std::time::Duration;

const UNITS: [(&str, f64); 5] = [
    // `ms` stands before `m`, since units are tried in this order.
    ("ms", 0.001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

/// Reads a length of time of at least one millisecond.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| hint())?;
        let (unit, factor) =
            UNITS.iter().find(|(unit, _)| after.starts_with(unit)).ok_or_else(hint)?;
        seconds += number * factor;
        rest = &after[unit.len()..];
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| hint())?;
    if duration < Duration::from_millis(1) {
        return Err(hint());
    }
    Ok(duration)
}

fn hint() -> String {
    "say how long with a unit, such as 500ms, 30s, 5m or 1h30m".to_owned()
}

/// The length of time in whole milliseconds.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
            assert_eq!(parse(text).map(ms), Ok(expect), "{text}");
        }
    }

    #[test]
    fn a_length_without_a_number_a_unit_or_any_time_is_refused() {
        for text in ["", "30", "s", "5x", "-5s", "1..5s", "0s", "0.1ms", "9e99d", "1s5", "NaNs"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
