//! Quantities as manifests write them, where nothing is never meant: `15s`, `256Mi`, `200m`, `60/minute`.

use wharf_vocab::quantity;

use super::Rate;

/// A time in milliseconds, more than none.
pub fn duration_ms(text: &str) -> Option<u64> {
    quantity::duration_ms(text).filter(|ms| *ms > 0)
}

/// A number of bytes, more than none.
pub fn bytes(text: &str) -> Option<u64> {
    quantity::bytes(text).filter(|bytes| *bytes > 0)
}

/// A share of processors in thousandths of one, more than none: `200m`, `2`.
pub fn millicores(text: &str) -> Option<u64> {
    let (number, factor) = text.strip_suffix('m').map_or((text, 1_000), |number| (number, 1));
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|number| plain && *number > 0)?;
    number.checked_mul(factor)
}

/// So many in so much time: `60/minute`.
pub fn rate(text: &str) -> Option<Rate> {
    quantity::rate(text).map(|(count, per_ms)| Rate { count, per_ms })
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
        for bad in ["", "s", "15", "-1s", "+1s", "0s", "0.1ms", "99999999999999999999h", "1 s"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
        for bad in ["", "60", "/minute", "60/fortnight", "0/minute", "9999999999/second"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
