//! Where the next page of a list begins, as text that nobody needs to understand.
//!
//! A cursor carries its version, the list it belongs to, a position and a check, so that one of
//! another list, of another version or with a typing error is refused and never guessed at.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wharf_vocab::{Code, Digest, Fault};

const VERSION: u8 = 1;
const CHECK_CHARS: usize = 6;
/// How much of a question's digest a cursor carries.
const QUESTION_CHARS: usize = 16;

/// The list a cursor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Runs,
    Inbox,
    Tools,
    Agents,
    Worlds,
    Audit,
    Tokens,
    Secrets,
    Files,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// Behind a number.
    Number(u64),
    /// Behind a name.
    Name(String),
}

impl List {
    fn letter(self) -> u8 {
        match self {
            Self::Runs => b'r',
            Self::Inbox => b'i',
            Self::Tools => b't',
            Self::Agents => b'g',
            Self::Worlds => b'w',
            Self::Audit => b'a',
            Self::Tokens => b'k',
            Self::Secrets => b's',
            Self::Files => b'f',
        }
    }
}

/// Writes a position as a cursor of this list.
pub(crate) fn write(list: List, position: &Position) -> String {
    let mut bytes = vec![VERSION, list.letter()];
    match position {
        Position::Number(number) => {
            bytes.push(b'#');
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        Position::Name(name) => {
            bytes.push(b'=');
            bytes.extend_from_slice(name.as_bytes());
        }
    }
    bytes.extend_from_slice(&check_of(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor that was made for this list.
pub(crate) fn read(list: List, cursor: &str) -> Result<Position, Fault> {
    try_read(list, cursor).ok_or_else(foreign)
}

/// Writes a name as a cursor of this list that is good only with the same question.
pub(crate) fn write_asked(list: List, question: &[&[u8]], name: &str) -> String {
    write(list, &Position::Name(asked(question) + name))
}

/// Reads the name of a cursor that was made for this list and this question.
pub(crate) fn read_asked(list: List, question: &[&[u8]], cursor: &str) -> Result<String, Fault> {
    match read(list, cursor)? {
        Position::Name(name) => name.strip_prefix(&asked(question)).map(str::to_owned),
        Position::Number(_) => None,
    }
    .ok_or_else(foreign)
}

fn asked(question: &[&[u8]]) -> String {
    Digest::of(question).as_str()[..QUESTION_CHARS].to_owned()
}

pub(crate) fn foreign() -> Fault {
    let message = "This cursor was not made by this list; leave it out to start again.";
    Fault::new(Code::RequestCursorInvalid, message)
}

fn try_read(list: List, cursor: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (content, check) = bytes.split_last_chunk::<CHECK_CHARS>()?;
    if *check != check_of(content) {
        return None;
    }
    match content {
        [VERSION, letter, b'#', number @ ..] if *letter == list.letter() => {
            Some(Position::Number(u64::from_be_bytes(number.try_into().ok()?)))
        }
        [VERSION, letter, b'=', name @ ..] if *letter == list.letter() => {
            Some(Position::Name(String::from_utf8(name.to_vec()).ok()?))
        }
        _ => None,
    }
}

fn check_of(content: &[u8]) -> [u8; CHECK_CHARS] {
    let digest = Digest::of(&[content]);
    let mut check = [0; CHECK_CHARS];
    check.copy_from_slice(&digest.as_str().as_bytes()[..CHECK_CHARS]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_by_its_own_list_only() {
        for position in [Position::Number(u64::MAX), Position::Name("wharf/echo".to_owned())] {
            let cursor = write(List::Tools, &position);
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
            assert_eq!(read(List::Tools, &cursor), Ok(position));
            assert!(read(List::Runs, &cursor).is_err());
        }
    }

    #[test]
    fn a_cursor_is_good_with_its_own_question_only() {
        let question: [&[u8]; 2] = [b"lab", b"/a"];
        let cursor = write_asked(List::Files, &question, "/a/b");
        assert_eq!(read_asked(List::Files, &question, &cursor).as_deref(), Ok("/a/b"));
        let others: [[&[u8]; 2]; 3] = [[b"lab", b"/"], [b"other", b"/a"], [b"lab/", b"a"]];
        for other in others {
            let fault = read_asked(List::Files, &other, &cursor).expect_err("another question");
            assert!(fault.is(Code::RequestCursorInvalid));
        }
        let plain = write(List::Files, &Position::Name("/a/b".to_owned()));
        assert!(read_asked(List::Files, &question, &plain).is_err());
    }

    #[test]
    fn what_was_not_made_here_is_refused() {
        let good = write(List::Runs, &Position::Number(7));
        let flipped: String = good.chars().map(|c| if c == 'A' { 'B' } else { c }).collect();
        let longer = format!("{good}A");
        for bad in ["", "abc", "!!!", "AA==", &good[1..], &flipped, &longer, "1"] {
            let fault = read(List::Runs, bad).expect_err(bad);
            assert!(fault.is(Code::RequestCursorInvalid));
        }
    }
}
