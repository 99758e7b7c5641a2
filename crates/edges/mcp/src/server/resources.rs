//! `resources/list`, `resources/templates/list` and `resources/read`: at the door of all the files
//! of the client's world and then what each server has, at the door of one provider what it has.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wharf_domain::scope::WorldPath;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{Fault, Object, ProviderId};
use wharf_web::cursor::{self, CursorList};
use wharf_wire::mcp_v1::{
    McpCursor, McpEra, McpError, McpOpen, McpResource, McpResourceRead, McpResourcesPage,
    McpRevision, McpTemplatesPage,
};

use super::door::{McpContext, McpReply};
use super::files::{self, FileUri};
use super::upstream::{self, ASKED_MAX};
use crate::faults::McpRefusal;
use crate::hidden::HiddenTool;
use crate::seal::RequestRef;

/// The list of resources.
const RESOURCES: CursorList = CursorList { letter: b'R', field: Some("cursor") };
/// The list of templates.
const TEMPLATES: CursorList = CursorList { letter: b'T', field: Some("cursor") };
/// Longest cursor of a server that is passed on inside of ours.
const SERVER_CURSOR_BYTES_MAX: usize = 4 * 1024;
/// How long servers may take together for one page.
const PAGE_MAX: Duration = Duration::from_secs(20);
/// How long a client may keep a list or a resource.
const TTL_MS: u64 = 5_000;

/// Where a page begins at the door of all: files come first, then servers by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListPlace {
    /// Behind a file, or with the first one.
    Files(Option<WorldPath>),
    /// With a server, behind what its own cursor says.
    Server(ProviderId, Option<String>),
}

impl ListPlace {
    fn write(&self, cx: &McpContext) -> String {
        let name = match self {
            Self::Files(after) => format!("f{}", after.as_ref().map_or("", WorldPath::as_str)),
            Self::Server(provider, None) => format!("s{provider}"),
            Self::Server(provider, Some(own)) => format!("s{provider}\n{own}"),
        };
        cursor::write_asked(RESOURCES, &[cx.door.world.as_str().as_bytes()], &name)
    }

    fn read(cx: &McpContext, text: &str) -> Result<Self, Fault> {
        let name = cursor::read_asked(RESOURCES, &[cx.door.world.as_str().as_bytes()], text)?;
        Self::parse(&name).ok_or_else(|| cursor::foreign(RESOURCES))
    }

    fn parse(name: &str) -> Option<Self> {
        if let Some(path) = name.strip_prefix('f') {
            let after = (!path.is_empty()).then(|| WorldPath::parse_any(path).ok());
            return match after {
                Some(None) => None,
                after => Some(Self::Files(after.flatten())),
            };
        }
        let server = name.strip_prefix('s')?;
        let (provider, own) = match server.split_once('\n') {
            Some((provider, own)) => (provider, Some(own.to_owned())),
            None => (server, None),
        };
        Some(Self::Server(ProviderId::new(provider).ok()?, own))
    }
}

/// `resources/list`
pub(crate) async fn list(cx: McpContext, params: McpOpen<McpCursor>) -> McpReply {
    let page = match &cx.door.provider {
        Some(provider) => of_one(&cx, provider, params.cursor.clone()).await,
        None => of_all(&cx, params.cursor.as_deref()).await,
    };
    match page {
        Ok(page) => McpReply::result(say_how_long(&cx, page)),
        Err(refusal) => McpReply::refused(refusal),
    }
}

/// A page of one server, as the server gives it.
async fn of_one(
    cx: &McpContext,
    provider: &ProviderId,
    cursor: Option<String>,
) -> Result<Object, McpRefusal> {
    if !upstream::may_use(cx, provider, HiddenTool::ResourcesList) {
        if cursor.is_some() {
            return Err(cursor::foreign(RESOURCES).into());
        }
        return Ok(McpOpen::from(McpResourcesPage::default()).to_object());
    }
    let page = upstream::ask(cx, provider, HiddenTool::ResourcesList, cursor_of(cursor), ASKED_MAX);
    page.await.map_err(|fault| upstream::refusal(cx, "", fault))
}

fn cursor_of(cursor: Option<String>) -> Object {
    cursor.map(|cursor| ("cursor".to_owned(), Value::from(cursor))).into_iter().collect()
}

/// A page of everything. A server that does not answer hides nothing but its own resources.
async fn of_all(cx: &McpContext, cursor: Option<&str>) -> Result<Object, McpRefusal> {
    let place = match cursor {
        Some(cursor) => ListPlace::read(cx, cursor)?,
        None => ListPlace::Files(None),
    };
    let mut resources = Vec::new();
    let mut from = None;
    let mut next = None;
    match place {
        ListPlace::Files(after) if files::are_visible(cx) => {
            let (page, more) = Box::pin(files::page(cx, after, PAGE_ITEMS_MAX)).await?;
            resources = page;
            next = more.map(|path| ListPlace::Files(Some(path)));
        }
        ListPlace::Files(_) => {}
        ListPlace::Server(provider, own) => from = Some((provider, own)),
    }
    if next.is_none() {
        next = of_servers(cx, from, &mut resources).await;
    }
    let next_cursor = next.map(|place| place.write(cx));
    let page = McpResourcesPage { resources, next_cursor, ..McpResourcesPage::default() };
    Ok(McpOpen::from(page).to_object())
}

/// Fills a page with what servers have, beginning with one of them; where the next page begins.
async fn of_servers(
    cx: &McpContext,
    from: Option<(ProviderId, Option<String>)>,
    resources: &mut Vec<McpOpen<McpResource>>,
) -> Option<ListPlace> {
    let until = Instant::now() + PAGE_MAX;
    let mut servers = upstream::servers(cx, HiddenTool::ResourcesList);
    if let Some((from, _)) = &from {
        servers.retain(|server| server >= from);
    }
    for server in servers {
        if resources.len() >= PAGE_ITEMS_MAX || Instant::now() >= until {
            return Some(ListPlace::Server(server, None));
        }
        let own = from.as_ref().filter(|(from, _)| *from == server);
        let own = own.and_then(|(_, cursor)| cursor.clone());
        let inputs = cursor_of(own.clone());
        let page = upstream::ask(cx, &server, HiddenTool::ResourcesList, inputs, ASKED_MAX).await;
        let Ok((mut page, _)) =
            page.map_err(drop).and_then(|page| McpResourcesPage::read_fitting(page).map_err(drop))
        else {
            continue;
        };
        for resource in &mut page.resources {
            resource.uri = upstream::resource_uri(cx, &server, &resource.uri);
        }
        resources.append(&mut page.resources);
        let next = page.next_cursor.take().filter(|next| {
            // A server that leads back to the same page would be read for ever.
            next.len() <= SERVER_CURSOR_BYTES_MAX && Some(next) != own.as_ref()
        });
        if let Some(next) = next {
            return Some(ListPlace::Server(server, Some(next)));
        }
    }
    None
}

/// `resources/templates/list`
pub(crate) async fn templates(cx: McpContext, params: McpOpen<McpCursor>) -> McpReply {
    let mut all: Vec<_> = files::are_visible(&cx).then(files::template).into_iter().collect();
    all.extend(upstream::templates(&cx).into_iter().map(|of| {
        let uri_template = upstream::template_uri(&cx, &of);
        let mut template = of.offer;
        template.uri_template = uri_template;
        template
    }));
    let page = page_of(&cx, TEMPLATES, params.cursor.as_deref(), all, |it| &it.uri_template);
    let (resource_templates, next_cursor) = match page {
        Ok(page) => page,
        Err(fault) => return McpReply::refused(fault),
    };
    let page = McpTemplatesPage { resource_templates, next_cursor, ..McpTemplatesPage::default() };
    McpReply::result(say_how_long(&cx, McpOpen::from(page).to_object()))
}

/// `resources/read`
pub(crate) async fn read(
    cx: McpContext,
    at: RequestRef,
    params: McpOpen<McpResourceRead>,
) -> McpReply {
    if FileUri::is_meant(&params.uri) {
        return match Box::pin(files::read(&cx, &params.uri)).await {
            Ok(result) => McpReply::result(say_how_long(&cx, result)),
            Err(refusal) => McpReply::refused(refusal),
        };
    }
    match upstream::resource(&cx, &params.uri) {
        Some(resource) => upstream::read(cx, at, resource, params).await,
        None => McpReply::refused(missing(&params.uri, cx.revision)),
    }
}

/// There is no such resource, or none that this client may see.
pub(super) fn missing(uri: &str, revision: McpRevision) -> McpError {
    let error = McpError::new(revision.resource_missing(), "There is no such resource.");
    McpError { data: Some(json!({"uri": uri})), ..error }
}

/// The page of a list in the order of names, behind the place that a cursor says, and the cursor of
/// the next. A cursor is good for the door it was made at.
pub(super) fn page_of<T>(
    cx: &McpContext,
    list: CursorList,
    cursor: Option<&str>,
    mut all: Vec<T>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), Fault> {
    let door = cx.door.provider.as_ref().map_or("", ProviderId::as_str).as_bytes();
    if let Some(cursor) = cursor {
        let after = cursor::read_asked(list, &[door], cursor)?;
        all.retain(|item| name(item) > after.as_str());
    }
    all.sort_by(|a, b| name(a).cmp(name(b)));
    let more = all.len() > PAGE_ITEMS_MAX;
    all.truncate(PAGE_ITEMS_MAX);
    let last = all.last().filter(|_| more);
    let next = last.map(|last| cursor::write_asked(list, &[door], name(last)));
    Ok((all, next))
}

/// Says to a modern client how long a result is good and for whom; a legacy one does not know what
/// that means.
pub(super) fn say_how_long(cx: &McpContext, mut result: Object) -> Object {
    match cx.revision.era() {
        McpEra::Modern => {
            result.entry("ttlMs").or_insert_with(|| TTL_MS.into());
            // What there is depends on the token, whatever a server says of its own.
            result.insert("cacheScope".to_owned(), "private".into());
        }
        McpEra::Legacy => {
            result.remove("ttlMs");
            result.remove("cacheScope");
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m039_places_in_the_list_are_read_back() {
        let path = WorldPath::parse("/in/a.txt").expect("a path");
        let server = ProviderId::new("srv").expect("an id");
        for (name, place) in [
            ("f/in/a.txt", Some(ListPlace::Files(Some(path)))),
            ("f", Some(ListPlace::Files(None))),
            ("ssrv", Some(ListPlace::Server(server.clone(), None))),
            ("ssrv\nab\nc", Some(ListPlace::Server(server, Some("ab\nc".to_owned())))),
            ("f/../a", None),
            ("s", None),
            ("s a", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(ListPlace::parse(name), place, "{name:?}");
        }
    }
}
