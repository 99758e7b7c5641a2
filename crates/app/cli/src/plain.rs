//! Text of peers made safe for a terminal.
//!
//! What a tool writes may carry escape sequences that move the cursor, rename the window or
//! answer for the user, or characters that nobody sees and that still make one word look like
//! another. Whatever comes out of here holds no control character but newline and tab, no escape
//! sequence, nothing that turns the reading direction around and nothing invisible, but for what
//! joins two emoji into one.

/// Cleans a stream of text piece by piece; a sequence may be cut anywhere between two pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cleaner {
    state: EscapeState,
    /// A carriage return was seen and may belong to a line end.
    returned: bool,
    joint: Joint,
}

/// What joins two emoji into one is shown between two of them, and nowhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Joint {
    #[default]
    None,
    /// The last character that was shown is an emoji.
    Emoji,
    /// And a joiner came after it.
    Joined,
}

const JOINER: char = '\u{200d}';
/// Asks for the colourful form of the character before it, and often stands before a joiner.
const COLOURFUL: char = '\u{fe0f}';

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
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
                    self.state = EscapeState::Text;
                    continue;
                }
            }
            self.state = self.take(c, out);
        }
    }

    fn take(&mut self, c: char, out: &mut String) -> EscapeState {
        // A line end closes whatever was left open, lest one stray escape hide all that follows.
        match c {
            '\n' => {
                self.joint = Joint::None;
                out.push('\n');
                return EscapeState::Text;
            }
            '\r' => {
                self.joint = Joint::None;
                self.returned = true;
                return EscapeState::Text;
            }
            _ => {}
        }
        match self.state {
            EscapeState::Text => self.take_text(c, out),
            EscapeState::Escape => match c {
                '[' => EscapeState::Control,
                ']' | 'P' | 'X' | '^' | '_' => EscapeState::String,
                ' '..='/' => EscapeState::EscapeMore,
                '\u{1b}' => EscapeState::Escape,
                _ => EscapeState::Text,
            },
            EscapeState::EscapeMore => match c {
                ' '..='/' => EscapeState::EscapeMore,
                '\u{1b}' => EscapeState::Escape,
                _ => EscapeState::Text,
            },
            EscapeState::Control => match c {
                '\u{1b}' => EscapeState::Escape,
                '@'..='~' => EscapeState::Text,
                _ => EscapeState::Control,
            },
            EscapeState::String => match c {
                '\u{7}' | '\u{9c}' => EscapeState::Text,
                '\u{1b}' => EscapeState::StringEscape,
                _ => EscapeState::String,
            },
            EscapeState::StringEscape => match c {
                '\\' => EscapeState::Text,
                '[' => EscapeState::Control,
                _ => EscapeState::String,
            },
        }
    }

    fn take_text(&mut self, c: char, out: &mut String) -> EscapeState {
        if c == COLOURFUL {
            return EscapeState::Text;
        }
        let before = std::mem::take(&mut self.joint);
        match c {
            JOINER if before == Joint::Emoji => self.joint = Joint::Joined,
            c if is_emoji(c) => {
                if before == Joint::Joined {
                    out.push(JOINER);
                }
                self.joint = Joint::Emoji;
                out.push(c);
            }
            '\u{1b}' => return EscapeState::Escape,
            '\u{9b}' => return EscapeState::Control,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return EscapeState::String,
            '\t' => out.push('\t'),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
        EscapeState::Text
    }
}

/// Whether a character does something else than show itself: controls, and what Unicode calls
/// format characters, ends of lines and paragraphs, and ignorable by default.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character is one of those that are joined.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
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
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
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
            ("👩\u{200d}❤\u{fe0f}\u{200d}👨", "👩\u{200d}❤\u{200d}👨"),
        ] {
            assert_eq!(text(raw), expect, "{raw:?}");
        }
    }

    #[test]
    fn nothing_invisible_is_left() {
        for (raw, expect) in [
            ("pay\u{200b}pal \u{feff}x\u{ad}y\u{2060}z", "paypal xyz"),
            ("a\u{200d}b\u{200c}c👩\u{200d}x\u{200d}👩👩\u{200d}", "abc👩x👩👩"),
            ("tag\u{e0001}\u{e0041}\u{e007f}ged", "tagged"),
            ("vs\u{fe0f}\u{e0100}16", "vs16"),
            ("\u{200e}\u{200f}\u{61c}\u{2067}ltr\u{3164}\u{115f}", "ltr"),
            ("👩\u{200d}\u{200d}🚀", "👩🚀"),
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
        let value = serde_json::json!({"k": "a\u{9b}b\u{202e}c\u{7f}\u{1b}\u{e0041}\u{200b}"});
        let safe = json(&value.to_string());
        assert!(!safe.chars().any(is_unsafe));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("json"), value);
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_changes_nothing(raw in "(\u{200d}|👩|\\x1b|\\[|\\]|[0-9;m\\\\\r\n\u{9b}\u{7}a-c]|é){0,40}", at in 0_usize..40) {
            let at = raw.char_indices().map(|(at, _)| at).nth(at).unwrap_or(raw.len());
            let (one, two) = raw.split_at(at);
            let mut out = String::new();
            let mut cleaner = Cleaner::default();
            cleaner.push(one, &mut out);
            cleaner.push(two, &mut out);
            prop_assert_eq!(&out, &text(&raw));
            let shown = |c: char| matches!(c, '\n' | '\t' | JOINER) || !is_unsafe(c);
            prop_assert!(out.chars().all(shown));
        }
    }
}
