//! Pages of lists that are ordered by name.

use axum::http::StatusCode;
use serde::Serialize;
use wharf_wire::rest_v1::Page;

use crate::answer::{self, Answer};
use crate::cursor::{self, CursorList, Position};
use crate::params::Params;

/// The lists of this API.
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

impl CursorList for List {
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

/// The page a request asks for, in the order of names; what comes after it is left for the next.
pub(crate) fn by_name<T, W: Serialize>(
    params: &Params,
    list: List,
    mut all: Vec<T>,
    name: impl Fn(&T) -> &str,
    shown: impl Fn(&T) -> W,
) -> Answer {
    let limit = params.limit()?;
    let after = match params.cursor(list)? {
        Some(Position::Name(name)) => name,
        Some(Position::Number(_)) | None => String::new(),
    };
    all.retain(|item| name(item) > after.as_str());
    all.sort_by(|a, b| name(a).cmp(name(b)));
    let more = all.len() > limit;
    all.truncate(limit);
    let last = all.last().filter(|_| more);
    let next_cursor = last.map(|last| cursor::write(list, &Position::Name(name(last).to_owned())));
    let items: Vec<W> = all.iter().map(shown).collect();
    Ok(answer::json(StatusCode::OK, &Page { items, next_cursor }))
}
