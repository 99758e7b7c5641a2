//! One look over the bytes of a message before it is parsed.
//!
//! The JSON parser skips fields that nobody reads without judging them: neither their nesting nor
//! a broken surrogate in them would be noticed. This look notices both, wherever they stand, in
//! one pass and without recursion, so that hostile depth cannot reach the parser's stack.

use super::Malformed;
use super::limits::NESTING_MAX;

/// Refuses nesting above the limit and escapes of lone surrogates. Everything else that may be
/// wrong with the text is left to the parser.
pub(crate) fn scan(text: &str) -> Result<(), Malformed> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = skip_string(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > NESTING_MAX {
                    return Err(Malformed::TooDeep);
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Goes behind the quote that ends a string.
fn skip_string(bytes: &[u8], mut at: usize) -> Result<usize, Malformed> {
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' => at = skip_escape(bytes, at)?,
            _ => at += 1,
        }
    }
    Ok(at)
}

fn skip_escape(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match escaped_unit(bytes, at) {
        Some(0xD800..=0xDBFF) => match escaped_unit(bytes, at + 6) {
            Some(0xDC00..=0xDFFF) => Ok(at + 12),
            _ => Err(Malformed::LoneSurrogate),
        },
        Some(0xDC00..=0xDFFF) => Err(Malformed::LoneSurrogate),
        Some(_) => Ok(at + 6),
        None => Ok(at + 2),
    }
}

/// The UTF-16 unit of an escape `\uXXXX` that begins here.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some((unit << 4) | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<(), Malformed>) {
        assert_eq!(scan(text), expect, "{text}");
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings_only() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        check(&nested(127), Ok(()));
        check(&nested(128), Err(Malformed::TooDeep));
        check(&format!("\"{}\"", "[".repeat(1000)), Ok(()));
        check(&format!("\"\\\"{}\"", "[".repeat(1000)), Ok(()));
        check(&"[]".repeat(1000), Ok(()));
    }

    #[test]
    fn surrogates_come_in_pairs() {
        check(r#""\ud83d\ude00""#, Ok(()));
        check(r#""\uD83D\uDE00\u0041""#, Ok(()));
        for lone in [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00""#, r#""\ud83d\ud83d""#] {
            check(lone, Err(Malformed::LoneSurrogate));
        }
        check(r#""\\ud83d""#, Ok(()));
        check(r#""\u12""#, Ok(()));
        check(r#""\"#, Ok(()));
    }
}
