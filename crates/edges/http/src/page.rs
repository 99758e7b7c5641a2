//! The lists of this API, and pages of those that are ordered by name.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use wharf_wire::rest_v1::Page;

use crate::answer::{self, Answer};
use crate::cursor::{self, CursorList, Position};
use crate::params::Params;

const fn list(letter: u8) -> CursorList {
    CursorList { letter, field: None }
}

pub(crate) const RUNS: CursorList = list(b'r');
pub(crate) const TREE: CursorList = list(b'c');
pub(crate) const INBOX: CursorList = list(b'i');
pub(crate) const ASKS: CursorList = list(b'd');
pub(crate) const TOOLS: CursorList = list(b't');
pub(crate) const AGENTS: CursorList = list(b'g');
pub(crate) const PROVIDERS: CursorList = list(b'p');
pub(crate) const MCP: CursorList = list(b'm');
pub(crate) const WORLDS: CursorList = list(b'w');
pub(crate) const AUDIT: CursorList = list(b'a');
pub(crate) const TOKENS: CursorList = list(b'k');
pub(crate) const SECRETS: CursorList = list(b's');
pub(crate) const TRIGGERS: CursorList = list(b'e');
pub(crate) const RECEIVERS: CursorList = list(b'n');
pub(crate) const SCHEDULES: CursorList = list(b'h');
pub(crate) const FILES: CursorList = list(b'f');
pub(crate) const FLOWS: CursorList = list(b'l');

/// The page a request asks for, in the order of names.
pub(crate) fn by_name<T, W: Serialize>(
    params: &Params,
    list: CursorList,
    all: Vec<T>,
    name: impl Fn(&T) -> &str,
    shown: impl Fn(&T) -> W,
) -> Answer {
    let (limit, after) = (params.limit()?, params.text("cursor"));
    let (page, more) = cursor::page_by_name(list, after, limit, all, &name)?;
    let last = page.last().filter(|_| more).map(|last| Position::Name(name(last).to_owned()));
    Ok(answer(list, page.iter().map(shown).collect(), last))
}

/// A page of a list, and where the next one begins if there is more.
pub(crate) fn answer<W: Serialize>(
    list: CursorList,
    items: Vec<W>,
    last: Option<Position>,
) -> Response {
    let next_cursor = last.map(|last| cursor::write(list, &last));
    answer::json(StatusCode::OK, &Page { items, next_cursor })
}
