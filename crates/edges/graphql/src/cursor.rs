//! Where the next page of a list begins, as text that nobody needs to understand.
//!
//! A cursor carries its version, the list it belongs to, a place and a check, so that one of
//! another list or with a typing error is refused and never guessed at.

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
    Files,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind a number.
    Number(u64),
    /// Behind a name.
    Name(String),
}

impl List {
    fn letter(self) -> u8 {
        match self {
            Self::Runs => b'R',
            Self::Inbox => b'I',
            Self::Tools => b'T',
            Self::Agents => b'G',
            Self::Worlds => b'W',
            Self::Files => b'F',
        }
    }
}

/// Writes a place as a cursor of this list.
pub(crate) fn write(list: List, place: &Place) -> String {
    let mut bytes = vec![VERSION, list.letter()];
    match place {
        Place::Number(number) => {
            bytes.push(b'#');
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        Place::Name(name) => {
            bytes.push(b'=');
            bytes.extend_from_slice(name.as_bytes());
        }
    }
    bytes.extend_from_slice(&check_of(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor that was made for this list.
pub(crate) fn read(list: List, cursor: &str) -> Result<Place, Fault> {
    try_read(list, cursor).ok_or_else(foreign)
}

/// What stands before the names in cursors that are good with one question only.
pub(crate) fn question(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    Digest::of(&parts).as_str()[..QUESTION_CHARS].to_owned()
}

/// Reads the name of a cursor that was made for this list and this question.
pub(crate) fn read_asked(list: List, question: &str, cursor: &str) -> Result<String, Fault> {
    match read(list, cursor)? {
        Place::Name(name) => name.strip_prefix(question).map(str::to_owned),
        Place::Number(_) => None,
    }
    .ok_or_else(foreign)
}

pub(crate) fn foreign() -> Fault {
    let message = "This cursor was not made by this list; leave it out to start again.";
    Fault::new(Code::RequestCursorInvalid, message).with("field", "after")
}

fn try_read(list: List, cursor: &str) -> Option<Place> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (content, check) = bytes.split_last_chunk::<CHECK_CHARS>()?;
    if *check != check_of(content) {
        return None;
    }
    match content {
        [VERSION, letter, b'#', number @ ..] if *letter == list.letter() => {
            Some(Place::Number(u64::from_be_bytes(number.try_into().ok()?)))
        }
        [VERSION, letter, b'=', name @ ..] if *letter == list.letter() => {
            Some(Place::Name(String::from_utf8(name.to_vec()).ok()?))
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
    fn t045_a_cursor_is_read_back_by_its_own_list_only() {
        for place in [Place::Number(u64::MAX), Place::Name("/a/ü.txt".to_owned())] {
            let cursor = write(List::Files, &place);
            assert_eq!(read(List::Files, &cursor), Ok(place));
            let other = read(List::Runs, &cursor).expect_err("refused");
            assert!(other.is(Code::RequestCursorInvalid));
        }
        let (lab, other) = (question(&["lab", "/a"]), question(&["other", "/a"]));
        let asked = write(List::Files, &Place::Name(format!("{lab}/a/b")));
        assert_eq!(read_asked(List::Files, &lab, &asked).as_deref(), Ok("/a/b"));
        let crossed = read_asked(List::Files, &other, &asked).expect_err("another world");
        assert!(crossed.is(Code::RequestCursorInvalid));
        let good = write(List::Runs, &Place::Number(7));
        for bad in ["", "abc", "!!!", &good[1..], &format!("{good}A")] {
            assert!(read(List::Runs, bad).is_err(), "{bad}");
        }
    }
}
