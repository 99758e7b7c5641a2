//! Text of peers made safe for a terminal.
//!
//! What a tool writes may carry escape sequences that move the cursor, rename the window or
//! answer for the user. Whatever comes out of here holds no control character but newline and
//! tab, no escape sequence, and nothing that turns the reading direction around.

/// Cleans a stream of text piece by piece; a sequence may be cut anywhere between two pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cleaner {
    state: State,
    /// A carriage return was seen and may belong to a line end.
    returned: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Ordinary text.
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// After an escape character and one that needs a last one, such as a choice of characters.
    EscapeMore,
    /// In a control sequence, which ends with a letter.
    Control,
    /// In a string for the terminal, which ends with a bell or an escaped backslash.
    String,
    /// In such a string, after an escape character.
    StringEscape,
}

impl Cleaner {
    /// Adds the clean part of `piece` to `out`.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            if self.returned {
                self.returned = false;
                // A lone carriage return would write over the line, so it starts a new one.
                out.push('\n');
                if c == '\n' {
                    self.state = State::Text;
                    continue;
                }
            }
            self.state = self.take(c, out);
        }
    }

    fn take(&mut self, c: char, out: &mut String) -> State {
        // A line end closes whatever was left open, lest one stray escape hide all that follows.
        match c {
            '\n' => {
                out.push('\n');
                return State::Text;
            }
            '\r' => {
                self.returned = true;
                return State::Text;
            }
            _ => {}
        }
        match self.state {
            State::Text => Self::take_text(c, out),
            State::Escape => match c {
                '[' => State::Control,
                ']' | 'P' | 'X' | '^' | '_' => State::String,
                ' '..='/' => State::EscapeMore,
                '\u{1b}' => State::Escape,
                _ => State::Text,
            },
            State::EscapeMore => match c {
                ' '..='/' => State::EscapeMore,
                '\u{1b}' => State::Escape,
                _ => State::Text,
            },
            State::Control => match c {
                '\u{1b}' => State::Escape,
                '@'..='~' => State::Text,
                _ => State::Control,
            },
            State::String => match c {
                '\u{7}' | '\u{9c}' => State::Text,
                '\u{1b}' => State::StringEscape,
                _ => State::String,
            },
            State::StringEscape => match c {
                '\\' => State::Text,
                '[' => State::Control,
                _ => State::String,
            },
        }
    }

    fn take_text(c: char, out: &mut String) -> State {
        match c {
            '\u{1b}' => return State::Escape,
            '\u{9b}' => return State::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::String,
            '\t' => out.push('\t'),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
        State::Text
    }
}

/// Whether a character does something else than show itself.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// A whole text made safe, its lines kept.
pub(crate) fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    Cleaner::default().push(raw, &mut out);
    out
}

/// A whole text made safe and put on one line.
pub(crate) fn line(raw: &str) -> String {
    let clean = text(raw);
    if clean.contains(['\n', '\t']) {
        clean.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        clean
    }
}

/// One line of at most `max` characters; what is cut off is marked.
pub(crate) fn cut(raw: &str, max: usize) -> String {
    let line = line(raw);
    if line.chars().count() <= max {
        return line;
    }
    let mut short: String = line.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// JSON text in which every unsafe character is written as an escape; its meaning is the same.
pub(crate) fn json(text: &str) -> String {
    let harmless = |c: char| c == '\n' || !is_unsafe(c);
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmless(c) {
            out.push(c);
        } else {
            // Every unsafe character lies in the basic plane, so four digits are enough.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_disappear_whole() {
        for (raw, expect) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;new title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}P1$r\u{1b}\\dcs", "dcs"),
            ("\u{9b}2Jcsi", "csi"),
            ("\u{1b}(Bset", "set"),
            ("\u{1b}cfull reset", "full reset"),
            ("bell\u{7}back\u{8}del\u{7f}", "bellbackdel"),
            ("one\r\ntwo\rthree", "one\ntwo\nthree"),
            ("\u{202e}txt.exe", "txt.exe"),
            ("open \u{1b}]0;never closed\nnext", "open \nnext"),
            ("äöü 漢字 👩‍🚀", "äöü 漢字 👩‍🚀"),
        ] {
            assert_eq!(text(raw), expect, "{raw:?}");
        }
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(line("two\nlines\tand tab"), "two lines and tab");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"k": "a\u{9b}b\u{202e}c\u{7f}\u{1b}"});
        let safe = json(&value.to_string());
        assert!(!safe.chars().any(is_unsafe));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("json"), value);
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_changes_nothing(raw in "(\\x1b|\\[|\\]|[0-9;m\\\\\r\n\u{9b}\u{7}a-c]|é){0,40}", at in 0_usize..40) {
            let at = raw.char_indices().map(|(at, _)| at).nth(at).unwrap_or(raw.len());
            let (one, two) = raw.split_at(at);
            let mut out = String::new();
            let mut cleaner = Cleaner::default();
            cleaner.push(one, &mut out);
            cleaner.push(two, &mut out);
            prop_assert_eq!(&out, &text(&raw));
            prop_assert!(out.chars().all(|c| c == '\n' || c == '\t' || !is_unsafe(c)));
        }
    }
}
