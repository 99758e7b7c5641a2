//! Pages of lists.

use std::borrow::Cow;

use async_graphql::{OutputType, SimpleObject, TypeName};
use wharf_vocab::Fault;
use wharf_vocab::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use wharf_web::cursor::{self, CursorList, Position};

const fn list(letter: u8) -> CursorList {
    CursorList { letter, field: Some("after") }
}

pub(crate) const RUNS: CursorList = list(b'R');
pub(crate) const TREE: CursorList = list(b'C');
pub(crate) const INBOX: CursorList = list(b'I');
pub(crate) const ASKS: CursorList = list(b'D');
pub(crate) const TOOLS: CursorList = list(b'T');
pub(crate) const AGENTS: CursorList = list(b'G');
pub(crate) const MCP: CursorList = list(b'M');
pub(crate) const WORLDS: CursorList = list(b'W');
pub(crate) const TRIGGERS: CursorList = list(b'E');
pub(crate) const RECEIVERS: CursorList = list(b'N');
pub(crate) const SCHEDULES: CursorList = list(b'H');
pub(crate) const FILES: CursorList = list(b'F');
pub(crate) const PROVIDERS: CursorList = list(b'P');
pub(crate) const FLOWS: CursorList = list(b'L');

/// A page of a list.
#[derive(Debug, SimpleObject)]
#[graphql(name_type)]
pub(crate) struct Connection<T: OutputType> {
    /// The items, each with its cursor.
    pub(crate) edges: Vec<Edge<T>>,
    /// Whether there is more, and where it begins.
    pub(crate) page_info: PageInfo,
}

/// An item of a list.
#[derive(Debug, SimpleObject)]
#[graphql(name_type)]
pub(crate) struct Edge<T: OutputType> {
    /// `after` for what comes behind this item.
    pub(crate) cursor: String,
    /// The item.
    pub(crate) node: T,
}

/// Whether there is more, and where it begins.
#[derive(Debug, Default, SimpleObject)]
pub(crate) struct PageInfo {
    /// Whether there is more behind this page.
    pub(crate) has_next_page: bool,
    /// `after` for the next page; null if this page is empty.
    pub(crate) end_cursor: Option<String>,
}

impl<T: OutputType> TypeName for Connection<T> {
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Connection", T::type_name()))
    }
}

impl<T: OutputType> TypeName for Edge<T> {
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Edge", T::type_name()))
    }
}

impl<T: OutputType> Connection<T> {
    /// A page of these items, which know their cursors.
    pub(crate) fn new(edges: Vec<Edge<T>>, has_next_page: bool) -> Self {
        let end_cursor = edges.last().map(|edge| edge.cursor.clone());
        Self { edges, page_info: PageInfo { has_next_page, end_cursor } }
    }
}

/// How many items a page may have.
pub(crate) fn limit(first: Option<i32>) -> Result<usize, Fault> {
    let Some(first) = first else { return Ok(PAGE_ITEMS_DEFAULT) };
    match usize::try_from(first) {
        Ok(limit @ 1..=PAGE_ITEMS_MAX) => Ok(limit),
        _ => {
            let message =
                format!("The argument `first` must be a number from 1 to {PAGE_ITEMS_MAX}.");
            Err(Fault::invalid("first", message))
        }
    }
}

/// What a list costs: each of its fields once per item.
pub(crate) fn list_cost(first: Option<i32>, below: usize) -> usize {
    10 + limit(first).unwrap_or(1) * below
}

/// The page of a list that is ordered by name.
pub(crate) fn by_name<S, T: OutputType>(
    list: CursorList,
    (first, after): (Option<i32>, Option<&str>),
    all: Vec<S>,
    name: impl Fn(&S) -> &str,
    shown: impl Fn(&S) -> T,
) -> Result<Connection<T>, Fault> {
    let (page, more) = cursor::page_by_name(list, after, limit(first)?, all, &name)?;
    let edge = |item: &S| {
        let cursor = cursor::write(list, &Position::Name(name(item).to_owned()));
        Edge { cursor, node: shown(item) }
    };
    Ok(Connection::new(page.iter().map(edge).collect(), more))
}
