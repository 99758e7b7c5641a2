//! Amounts of money as people read them.

use wharf_vocab::Micro;

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
pub(crate) fn signed(text: &str) -> Result<i64, String> {
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
            assert_eq!(signed(text).ok(), expect, "{text}");
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
