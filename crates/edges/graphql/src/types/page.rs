//! Pages of lists.

use std::borrow::Cow;

use async_graphql::{OutputType, SimpleObject, TypeName};
use wharf_vocab::Fault;
use wharf_vocab::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use wharf_web::cursor::{self, CursorList, Position};

/// The lists of this API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Runs,
    Inbox,
    Tools,
    Agents,
    Worlds,
    Files,
}

impl CursorList for List {
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

    fn field(self) -> Option<&'static str> {
        Some("after")
    }
}

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

/// The page of a list that is ordered by name.
pub(crate) fn by_name<S, T: OutputType>(
    list: List,
    (first, after): (Option<i32>, Option<&str>),
    mut all: Vec<S>,
    name: impl Fn(&S) -> &str,
    shown: impl Fn(&S) -> T,
) -> Result<Connection<T>, Fault> {
    let limit = limit(first)?;
    let after = match after.map(|after| cursor::read(list, after)).transpose()? {
        Some(Position::Name(name)) => name,
        Some(Position::Number(_)) | None => String::new(),
    };
    all.retain(|item| name(item) > after.as_str());
    all.sort_by(|a, b| name(a).cmp(name(b)));
    let more = all.len() > limit;
    all.truncate(limit);
    let edge = |item: &S| {
        let cursor = cursor::write(list, &Position::Name(name(item).to_owned()));
        Edge { cursor, node: shown(item) }
    };
    Ok(Connection::new(all.iter().map(edge).collect(), more))
}
