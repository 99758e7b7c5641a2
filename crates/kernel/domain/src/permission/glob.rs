//! Patterns of text: `*` and `?` stand for anything but a separator, `**` for anything at all.

/// Whether a pattern fits a text.
pub(super) fn matches(pattern: &str, text: &str, separator: char) -> bool {
    match_from(pattern.as_bytes(), text.as_bytes(), separator as u8)
}

/// Whether every text that `narrow` fits is fit by `wide` too.
pub(super) fn covers(wide: &str, narrow: &str, separator: char) -> bool {
    let _ = separator;
    wide == narrow || wide == "**"
}

fn match_from(pattern: &[u8], text: &[u8], separator: u8) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => {
            (0..=text.len()).any(|skip| match_from(rest, &text[skip..], separator))
        }
        [b'*', rest @ ..] => {
            let end = text.iter().position(|b| *b == separator).unwrap_or(text.len());
            (0..=end).any(|skip| match_from(rest, &text[skip..], separator))
        }
        [b'?', rest @ ..] => {
            text.first().is_some_and(|b| *b != separator) && match_from(rest, &text[1..], separator)
        }
        [literal, rest @ ..] => {
            text.first() == Some(literal) && match_from(rest, &text[1..], separator)
        }
    }
}
