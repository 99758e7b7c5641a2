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

/// The list a cursor belongs to, of one API.
pub trait CursorList: Copy {
    /// What tells it from other lists, of this and of other APIs.
    fn letter(self) -> u8;

    /// The field that carries cursors, if refusals name it.
    fn field(self) -> Option<&'static str> {
        None
    }
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// After a number.
    Number(u64),
    /// After a name.
    Name(String),
}

/// Writes a position as a cursor of this list.
pub fn write(list: impl CursorList, position: &Position) -> String {
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
pub fn read(list: impl CursorList, cursor: &str) -> Result<Position, Fault> {
    try_read(list, cursor).ok_or_else(|| foreign(list))
}

/// Writes a name as a cursor of this list that is good only with the same question.
pub fn write_asked(list: impl CursorList, question: &[&[u8]], name: &str) -> String {
    write(list, &Position::Name(asked(question) + name))
}

/// Reads the name of a cursor that was made for this list and this question.
pub fn read_asked(
    list: impl CursorList,
    question: &[&[u8]],
    cursor: &str,
) -> Result<String, Fault> {
    match read(list, cursor)? {
        Position::Name(name) => name.strip_prefix(&asked(question)).map(str::to_owned),
        Position::Number(_) => None,
    }
    .ok_or_else(|| foreign(list))
}

fn asked(question: &[&[u8]]) -> String {
    Digest::of(question).as_str()[..QUESTION_CHARS].to_owned()
}

/// A cursor was not made by this list.
pub fn foreign(list: impl CursorList) -> Fault {
    let message = "This cursor was not made by this list; leave it out to start again.";
    let fault = Fault::new(Code::RequestCursorInvalid, message);
    match list.field() {
        Some(field) => fault.with("field", field),
        None => fault,
    }
}

fn try_read(list: impl CursorList, cursor: &str) -> Option<Position> {
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

    #[derive(Debug, Clone, Copy)]
    enum List {
        Runs,
        Tools,
        Files,
    }

    impl CursorList for List {
        fn letter(self) -> u8 {
            match self {
                Self::Runs => b'r',
                Self::Tools => b't',
                Self::Files => b'F',
            }
        }

        fn field(self) -> Option<&'static str> {
            matches!(self, Self::Files).then_some("after")
        }
    }

    #[test]
    fn t045_a_cursor_is_read_back_by_its_own_list_only() {
        for position in [Position::Number(u64::MAX), Position::Name("wharf/echo".to_owned())] {
            let cursor = write(List::Tools, &position);
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
            assert_eq!(read(List::Tools, &cursor), Ok(position));
            assert!(read(List::Runs, &cursor).is_err());
            let other = read(List::Files, &cursor).expect_err("refused");
            assert_eq!(other.details["field"], "after");
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
