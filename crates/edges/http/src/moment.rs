//! Moments as parameters name them.

use wharf_vocab::{Fault, Timestamp, quantity};

use crate::answer::invalid;
use crate::params::Params;

/// From when and until when things are wanted, by the parameters `since` and `until`.
pub(crate) fn span(
    params: &Params,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Fault> {
    let (since, until) = (named(params, "since", now)?, named(params, "until", now)?);
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        let message = "The parameter `until` must not lie before `since`.";
        return Err(invalid("until", message));
    }
    Ok((since, until))
}

/// A moment that is named, or that lies so long back.
fn named(params: &Params, name: &str, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let wanted = "an RFC 3339 time, or how long ago such as 7d, 24h or 90m";
    params.parsed(name, wanted, |text| read(text, now).ok_or(()))
}

fn read(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(ms) = quantity::duration_ms(text) {
        return Some(Timestamp(now.0.saturating_sub(ms)));
    }
    let moment: jiff::Timestamp = text.parse().ok()?;
    // Before 1970 nothing ran.
    Some(Timestamp(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_763_164_800_000);

    #[test]
    fn moments_are_named_or_lie_so_long_back() {
        let back = |ms: u64| Some(Timestamp(NOW.0 - ms));
        for (text, expect) in [
            ("90s", back(90_000)),
            ("24h", back(86_400_000)),
            ("7d", back(7 * 86_400_000)),
            ("2w", back(14 * 86_400_000)),
            ("1h30m", back(5_400_000)),
            ("0s", back(0)),
            ("99999w", Some(Timestamp(0))),
            ("2025-11-15T00:00:00Z", back(0)),
            ("2025-11-15T01:00:00+01:00", back(0)),
            ("1950-01-01T00:00:00Z", Some(Timestamp(0))),
            ("2025-11-15", None),
            ("yesterday", None),
            ("7", None),
            ("d", None),
            ("-7d", None),
            ("1.5d", back(129_600_000)),
            ("7 d", None),
            ("99999999999999999999d", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(read(text, NOW), expect, "{text}");
        }
    }
}
