//! `tools/list`, and which tool a name means.
//!
//! Names at the door of all are made of the whole catalog, whoever may use what is in it, so they
//! are the same for all and stay the same when a token is narrowed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_domain::{Availability, Caller, ToolDef};
use wharf_engine::CatalogTool;
use wharf_vocab::{Code, Fault, Object, ProviderId, Timestamp, ToolId};
use wharf_web::cursor::CursorList;
use wharf_wire::mcp_v1::headers::{self, McpMirror};
use wharf_wire::mcp_v1::{McpCursor, McpOpen, McpTool, McpToolsPage};

use super::door::{McpContext, McpReply};
use super::pages::{PageTerms, ToolPage};
use super::query::DoorQuery;
use super::resources::{page_of, say_how_long};
use super::routes::Arrival;
use super::shared::ServerShared;
use super::{describe, patience};
use crate::faults::McpRefusal;
use crate::names::{McpNamed, McpNames};

/// The list of tools.
const TOOLS: CursorList = CursorList { letter: b'L', field: Some("cursor") };

/// The names of all tools, as of some state of the catalog.
#[derive(Debug, Default)]
pub(crate) struct ToolNames(Mutex<Option<(u64, Arc<NamedTools>)>>);

#[derive(Debug)]
struct NamedTools {
    /// At the door of all.
    all: McpNames,
    /// At the door of each provider.
    own: HashMap<ProviderId, HashMap<String, ToolId>>,
}

impl ToolNames {
    /// The names as they are now.
    fn now(&self, shared: &ServerShared) -> Arc<NamedTools> {
        let providers = shared.handle.providers();
        // Looked at first: what changes meanwhile is seen the next time.
        let number = providers.changed();
        let mut known = self.0.lock();
        if let Some((of, names)) = &*known
            && *of == number
        {
            return Arc::clone(names);
        }
        let names = Arc::new(names_of(shared));
        *known = Some((number, Arc::clone(&names)));
        names
    }
}

/// Names the tools of all providers, those of the oldest first. What the core brings along has
/// always been there.
fn names_of(shared: &ServerShared) -> NamedTools {
    let providers = shared.handle.providers();
    let added: BTreeMap<ProviderId, Timestamp> =
        providers.list().into_iter().map(|known| (known.id, known.added_at)).collect();
    let mut all = providers.tools();
    all.retain(|tool| !tool.def.hidden);
    all.sort_by_cached_key(|tool| {
        let id = tool.def.tool.clone();
        (added.get(&id.provider()).copied().unwrap_or(Timestamp(0)), id)
    });
    let named = all.iter().map(|tool| McpNamed { id: &tool.def.tool, name: own_name(&tool.def) });
    let mut own: HashMap<ProviderId, HashMap<String, ToolId>> = HashMap::new();
    for tool in &all {
        let id = &tool.def.tool;
        own.entry(id.provider()).or_default().insert(own_name(&tool.def).to_owned(), id.clone());
    }
    NamedTools { all: McpNames::new(named, shared.settings.name_chars_max), own }
}

/// What a tool's provider calls it.
fn own_name(def: &ToolDef) -> &str {
    def.mcp.as_ref().map_or(def.tool.name(), |origin| &origin.name)
}

/// Something that is listed.
enum Listed {
    /// A tool of the catalog, under this name.
    Catalog(String, CatalogTool),
    /// A tool that calls themselves need.
    Besides(McpTool),
}

impl Listed {
    fn name(&self) -> &str {
        match self {
            Self::Catalog(name, _) => name,
            Self::Besides(tool) => &tool.name,
        }
    }
}

/// The answer to `tools/list`.
pub(crate) fn list(cx: &McpContext, params: &McpCursor) -> McpReply {
    let cursor = params.cursor.as_deref();
    let terms = PageTerms::now(cx, cursor);
    let page = match cx.shared.pages.get(&terms) {
        Some(page) => page,
        None => match page(cx, cursor) {
            Ok(page) => {
                let page = Arc::new(page);
                cx.shared.pages.keep(terms, &page);
                page
            }
            Err(fault) => return McpReply::refused(fault),
        },
    };
    let next_cursor = page.next_cursor.clone();
    let around = McpToolsPage { next_cursor, ..McpToolsPage::default() };
    McpReply::Tools { around: say_how_long(cx, McpOpen::from(around).to_object()), page }
}

/// One page of the tools that there are for a client.
fn page(cx: &McpContext, cursor: Option<&str>) -> Result<ToolPage, Fault> {
    let names = cx.shared.names.now(&cx.shared);
    let all = cx.shared.handle.providers().tools().into_iter().filter(is_usable);
    let all = all.filter(|tool| is_offered(&cx.caller, &cx.door, &tool.def));
    let mut listed: Vec<Listed> = all
        .filter_map(|tool| {
            let name = match cx.door.provider {
                Some(_) => own_name(&tool.def),
                None => names.all.name(&tool.def.tool)?,
            };
            Some(Listed::Catalog(name.to_owned(), tool))
        })
        .collect();
    for own in patience::tools(cx) {
        if listed.iter().all(|other| other.name() != own.name) {
            listed.push(Listed::Besides(own));
        }
    }
    let (page, next_cursor) = page_of(cx, TOOLS, cursor, listed, Listed::name)?;
    let tools = page.into_iter().map(|listed| match listed {
        Listed::Catalog(name, tool) => describe::tool(cx, name, &tool),
        Listed::Besides(tool) => tool.into(),
    });
    let tools: Vec<McpOpen<McpTool>> = tools.collect();
    let tools = serde_json::to_string(&tools);
    let tools = tools.map_err(|_| Fault::new(Code::CoreInternal, "The tools cannot be told."))?;
    Ok(ToolPage { tools, next_cursor })
}

/// Whether a tool can be called now, or soon.
fn is_usable(tool: &CatalogTool) -> bool {
    tool.quarantine.is_none()
        && matches!(
            tool.availability,
            Availability::Up | Availability::Coming | Availability::Away { .. }
        )
}

/// Whether a tool is there for this caller at this door.
fn is_offered(caller: &Caller, door: &DoorQuery, def: &ToolDef) -> bool {
    let here = |provider: &ProviderId| def.tool.provider() == *provider;
    !def.hidden
        && door.provider.as_ref().is_none_or(here)
        && caller.rights.check_tool(&def.tool).is_ok()
}

/// The tool that a client means by this name. One that it may not use is one that there is not.
pub(crate) fn find(cx: &McpContext, name: &str) -> Result<CatalogTool, McpRefusal> {
    let found = look_up(&cx.shared, &cx.caller, &cx.door, name);
    found.ok_or_else(|| Fault::new(Code::ToolNotFound, "There is no such tool.").into())
}

fn look_up(
    shared: &ServerShared,
    caller: &Caller,
    door: &DoorQuery,
    name: &str,
) -> Option<CatalogTool> {
    let names = shared.names.now(shared);
    let id = match &door.provider {
        None => names.all.id(name)?,
        Some(provider) => names.own.get(provider)?.get(name)?,
    };
    let found = shared.handle.providers().tool(id).ok()?;
    is_offered(caller, door, &found.def).then_some(found)
}

/// What the tool that is called wants repeated in headers.
pub(super) fn mirrors(arrival: &Arrival, params: Option<&Object>) -> Vec<McpMirror> {
    let name = params.and_then(|params| params.get("name")?.as_str());
    let found =
        name.and_then(|name| look_up(&arrival.shared, &arrival.caller, &arrival.door, name));
    let mirrors = found.map(|tool| headers::mirrors(&describe::input_schema(&tool.def)));
    mirrors.and_then(Result::ok).unwrap_or_default()
}
