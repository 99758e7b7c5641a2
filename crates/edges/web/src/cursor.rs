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
#[derive(Clone, Copy)]
pub struct CursorList {
    /// What tells it from other lists, of this and of other APIs.
    pub letter: u8,
    /// The field that carries cursors, if refusals name it.
    pub field: Option<&'static str>,
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
pub fn write(list: CursorList, position: &Position) -> String {
    let mut bytes = vec![VERSION, list.letter];
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
pub fn read(list: CursorList, cursor: &str) -> Result<Position, Fault> {
    try_read(list, cursor).ok_or_else(|| foreign(list))
}

/// Writes a name as a cursor of this list that is good only with the same question.
pub fn write_asked(list: CursorList, question: &[&[u8]], name: &str) -> String {
    write(list, &Position::Name(asked(question) + name))
}

/// Reads the name of a cursor that was made for this list and this question.
pub fn read_asked(list: CursorList, question: &[&[u8]], cursor: &str) -> Result<String, Fault> {
    match read(list, cursor)? {
        Position::Name(name) => name.strip_prefix(&asked(question)).map(str::to_owned),
        Position::Number(_) => None,
    }
    .ok_or_else(|| foreign(list))
}

/// The page of a list that is ordered by name, after the place that a cursor names, and whether
/// there is more.
pub fn page_by_name<T>(
    list: CursorList,
    cursor: Option<&str>,
    limit: usize,
    mut all: Vec<T>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, bool), Fault> {
    if let Some(Position::Name(after)) = cursor.map(|cursor| read(list, cursor)).transpose()? {
        all.retain(|item| name(item) > after.as_str());
    }
    all.sort_by(|a, b| name(a).cmp(name(b)));
    let more = all.len() > limit;
    all.truncate(limit);
    Ok((all, more))
}

fn asked(question: &[&[u8]]) -> String {
    Digest::of(question).as_str()[..QUESTION_CHARS].to_owned()
}

/// A cursor was not made by this list.
pub fn foreign(list: CursorList) -> Fault {
    let message = "This cursor was not made by this list; leave it out to start again.";
    let fault = Fault::new(Code::RequestCursorInvalid, message);
    match list.field {
        Some(field) => fault.with("field", field),
        None => fault,
    }
}

fn try_read(list: CursorList, cursor: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (content, check) = bytes.split_last_chunk::<CHECK_CHARS>()?;
    if *check != check_of(content) {
        return None;
    }
    match content {
        [VERSION, letter, b'#', number @ ..] if *letter == list.letter => {
            Some(Position::Number(u64::from_be_bytes(number.try_into().ok()?)))
        }
        [VERSION, letter, b'=', name @ ..] if *letter == list.letter => {
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

    const RUNS: CursorList = CursorList { letter: b'r', field: None };
    const TOOLS: CursorList = CursorList { letter: b't', field: None };
    const FILES: CursorList = CursorList { letter: b'F', field: Some("after") };

    #[test]
    fn t045_a_cursor_is_read_back_by_its_own_list_only() {
        for position in [Position::Number(u64::MAX), Position::Name("wharf/echo".to_owned())] {
            let cursor = write(TOOLS, &position);
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
            assert_eq!(read(TOOLS, &cursor), Ok(position));
            assert!(read(RUNS, &cursor).is_err());
            let other = read(FILES, &cursor).expect_err("refused");
            assert_eq!(other.details["field"], "after");
        }
    }

    #[test]
    fn a_cursor_is_good_with_its_own_question_only() {
        let question: [&[u8]; 2] = [b"lab", b"/a"];
        let cursor = write_asked(FILES, &question, "/a/b");
        assert_eq!(read_asked(FILES, &question, &cursor).as_deref(), Ok("/a/b"));
        let others: [[&[u8]; 2]; 3] = [[b"lab", b"/"], [b"other", b"/a"], [b"lab/", b"a"]];
        for other in others {
            let fault = read_asked(FILES, &other, &cursor).expect_err("another question");
            assert!(fault.is(Code::RequestCursorInvalid));
        }
        let plain = write(FILES, &Position::Name("/a/b".to_owned()));
        assert!(read_asked(FILES, &question, &plain).is_err());
    }

    #[test]
    fn what_was_not_made_here_is_refused() {
        let good = write(RUNS, &Position::Number(7));
        let flipped: String = good.chars().map(|c| if c == 'A' { 'B' } else { c }).collect();
        let longer = format!("{good}A");
        for bad in ["", "abc", "!!!", "AA==", &good[1..], &flipped, &longer, "1"] {
            let fault = read(RUNS, bad).expect_err(bad);
            assert!(fault.is(Code::RequestCursorInvalid));
        }
    }
}
