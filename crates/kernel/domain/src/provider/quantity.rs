//! Quantities as manifests write them: `15s`, `256Mi`, `200m`, `60/minute`.

use super::Rate;

/// A time in milliseconds: `500ms`, `15s`, `2m`, `1h`.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    scaled(text, &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)])
}

/// A number of bytes: `1048576`, `100M`, `256Mi`.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("", 1),
    ];
    scaled(text, &UNITS)
}

/// A share of processors in thousandths of one: `200m`, `2`.
#[must_use]
pub fn millicores(text: &str) -> Option<u64> {
    scaled(text, &[("m", 1), ("", 1_000)])
}

/// So many in so much time: `60/minute`.
#[must_use]
pub fn rate(text: &str) -> Option<Rate> {
    let (count, per) = text.split_once('/')?;
    let per_ms = match per {
        "s" | "sec" | "second" => 1_000,
        "m" | "min" | "minute" => 60_000,
        "h" | "hour" => 3_600_000,
        "d" | "day" => 86_400_000,
        _ => return None,
    };
    let count = whole(count)?.try_into().ok()?;
    Some(Rate { count, per_ms })
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    whole(number)?.checked_mul(*factor)
}

/// A whole number above zero; a limit of nothing is a mistake.
fn whole(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| plain && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(duration_ms("15s"), Some(15_000));
        assert_eq!(duration_ms("250ms"), Some(250));
        assert_eq!(bytes("256Mi"), Some(256 << 20));
        assert_eq!(bytes("1000"), Some(1_000));
        assert_eq!(millicores("200m"), Some(200));
        assert_eq!(millicores("2"), Some(2_000));
        assert_eq!(rate("60/minute"), Some(Rate { count: 60, per_ms: 60_000 }));
        for bad in ["", "s", "15", "-1s", "+1s", "1.5s", "0s", "99999999999999999999h", "1 s"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
        for bad in ["", "60", "/minute", "60/fortnight", "0/minute", "9999999999/second"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
