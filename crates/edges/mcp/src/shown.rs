//! Text of servers, as people may see it: bounded, on one line, without characters that steer a
//! terminal or turn the direction of reading. What is shown so is never written to the audit, to
//! the core's own log or to metrics.

/// Longest line.
const LINE_CHARS_MAX: usize = 2_000;
/// Enough of a text to recognise it in a sentence.
const WORDS_CHARS_MAX: usize = 300;

/// A text of a server on one line.
pub(crate) fn line(text: &str) -> String {
    cut(text, LINE_CHARS_MAX)
}

/// The beginning of a text of a server, as part of a sentence.
pub(crate) fn words(text: &str) -> String {
    cut(text, WORDS_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    let mut chars = 0;
    let mut gap = false;
    for c in text.trim().chars() {
        if c.is_whitespace() {
            gap = true;
            continue;
        }
        if c.is_control() || is_hidden(c) {
            continue;
        }
        if chars >= chars_max {
            shown.push('…');
            break;
        }
        if std::mem::take(&mut gap) {
            shown.push(' ');
            chars += 1;
        }
        shown.push(c);
        chars += 1;
    }
    shown
}

/// Characters that nobody sees and that change how others are seen.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m075_text_of_servers_is_bounded_and_steers_nothing() {
        assert_eq!(line(" two\r\n  lines \u{1b}[31mred\u{7}"), "two lines [31mred");
        assert_eq!(line("a\u{202e}b\u{200b}c\u{e0041}d\u{feff}"), "abcd");
        assert_eq!(line("café 日本"), "café 日本");
        assert_eq!(line(&"x".repeat(5_000)).chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(words(&"ä".repeat(301)).chars().count(), WORDS_CHARS_MAX + 1);
        assert_eq!(words("  "), "");
    }
}
