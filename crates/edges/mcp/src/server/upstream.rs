//! Resources, templates and prompts of the servers behind.
//!
//! At the door of one provider they are what they are; at the door of all they have addresses and
//! names that say whose they are. Templates and prompts stand in the catalog, where they are
//! pinned. Everything else is a run of a hidden tool, so that rights, questions and time limits
//! hold as for any call.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wharf_domain::{Availability, Outcome, Run};
use wharf_engine::{CatalogTool, NewRun};
use wharf_vocab::{Code, Durability, Fault, Object, ProviderId, Verb};
use wharf_web::cursor::CursorList;
use wharf_web::params::SentTrace;
use wharf_wire::mcp_v1::{
    McpCursor, McpEra, McpError, McpOpen, McpPrompt, McpPromptGet, McpPromptsPage, McpResourceRead,
    McpTemplate, code,
};

use super::door::{McpContext, McpReply};
use super::reading::{self, Wanted};
use super::resources::{missing, page_of, say_how_long};
use crate::blocks::result::is_error_of_server;
use crate::faults::McpRefusal;
use crate::hidden::{HiddenTool, pinned};
use crate::names::{
    McpNamed, McpNames, PROMPT, TEMPLATE, read_upstream_uri, upstream_template, upstream_uri,
};
use crate::seal::{RequestRef, request_digest};

/// The list of prompts.
const PROMPTS: CursorList = CursorList { letter: b'P', field: Some("cursor") };
/// How long a server may take to list its resources or to complete an argument.
pub(super) const ASKED_MAX: Duration = Duration::from_secs(15);

/// A prompt or a template as its server describes it.
pub(super) struct ProviderOffer<T> {
    /// The server.
    pub(super) provider: ProviderId,
    /// What stands for it in the catalog.
    pub(super) entry: CatalogTool,
    /// The description.
    pub(super) offer: McpOpen<T>,
}

/// Whether this client may use a hidden tool of a server, and it is there to be used.
pub(super) fn may_use(cx: &McpContext, provider: &ProviderId, tool: HiddenTool) -> bool {
    if cx.door.provider.as_ref().is_some_and(|only| only != provider) {
        return false;
    }
    let Some(id) = tool.id(provider) else { return false };
    let Ok(found) = cx.shared.handle.providers().tool(&id) else { return false };
    found.def.hidden
        && is_usable(&found)
        && cx.caller.rights.check(Verb::Run, &cx.door.world).is_ok()
        && cx.caller.rights.check_tool(&id).is_ok()
}

fn is_usable(tool: &CatalogTool) -> bool {
    tool.quarantine.is_none()
        && matches!(
            tool.availability,
            Availability::Up | Availability::Coming | Availability::Away { .. }
        )
}

/// Servers with a hidden tool that this client may use, in the order of their ids.
pub(super) fn servers(cx: &McpContext, tool: HiddenTool) -> Vec<ProviderId> {
    let all = cx.shared.handle.providers().tools().into_iter();
    let having = all.filter(|found| found.def.hidden && found.def.tool.name() == tool.part());
    let mut servers: Vec<ProviderId> = having
        .map(|found| found.def.tool.provider())
        .filter(|provider| may_use(cx, provider, tool))
        .collect();
    servers.sort();
    servers
}

/// What is pinned in the catalog under ids with this prefix, of servers of which the client may
/// use `with`.
fn offered<T: DeserializeOwned>(
    cx: &McpContext,
    prefix: &str,
    with: HiddenTool,
) -> Vec<ProviderOffer<T>> {
    let servers = servers(cx, with);
    let all = cx.shared.handle.providers().tools().into_iter();
    let offered = all.filter_map(|entry| {
        let provider = entry.def.tool.provider();
        if !servers.contains(&provider) || !is_usable(&entry) {
            return None;
        }
        let offer = McpOpen::deserialize(pinned(&entry.def, prefix)?).ok()?;
        Some(ProviderOffer { provider, entry, offer })
    });
    offered.collect()
}

/// Templates of servers, as they call them.
pub(super) fn templates(cx: &McpContext) -> Vec<ProviderOffer<McpTemplate>> {
    offered(cx, TEMPLATE, HiddenTool::ResourcesRead)
}

/// What a client calls a template of a server.
pub(super) fn template_uri(cx: &McpContext, of: &ProviderOffer<McpTemplate>) -> String {
    match cx.door.provider {
        Some(_) => of.offer.uri_template.clone(),
        None => upstream_template(of.provider.as_str(), &of.offer.uri_template),
    }
}

/// What a client calls a resource of a server.
pub(super) fn resource_uri(cx: &McpContext, provider: &ProviderId, own: &str) -> String {
    match cx.door.provider {
        Some(_) => own.to_owned(),
        None => upstream_uri(provider.as_str(), own),
    }
}

/// The server whose resource a client means by an address, and what the server calls it.
pub(super) fn resource(cx: &McpContext, uri: &str) -> Option<(ProviderId, String)> {
    let (provider, own) = match &cx.door.provider {
        Some(provider) => (provider.clone(), uri.to_owned()),
        None => {
            let (provider, own) = read_upstream_uri(uri)?;
            (ProviderId::new(provider).ok()?, own)
        }
    };
    may_use(cx, &provider, HiddenTool::ResourcesRead).then_some((provider, own))
}

/// Prompts that this client may get, by the names that it knows them by.
pub(super) fn prompts_by_name(cx: &McpContext) -> Vec<(String, ProviderOffer<McpPrompt>)> {
    let prompts = offered::<McpPrompt>(cx, PROMPT, HiddenTool::PromptsGet);
    if cx.door.provider.is_some() {
        return prompts.into_iter().map(|of| (of.offer.name.clone(), of)).collect();
    }
    let names = prompt_names(cx);
    let named = prompts.into_iter().filter_map(|of| {
        let name = names.name(&of.entry.def.tool)?.to_owned();
        Some((name, of))
    });
    named.collect()
}

/// The names of all prompts there are, whoever may get them, so that they are the same for all.
fn prompt_names(cx: &McpContext) -> McpNames {
    let all = cx.shared.handle.providers().tools();
    let prompts = all.iter().filter(|entry| pinned(&entry.def, PROMPT).is_some());
    let named = prompts.filter_map(|entry| {
        let origin = entry.def.mcp.as_ref()?;
        Some(McpNamed { id: &entry.def.tool, name: &origin.name })
    });
    McpNames::new(named, cx.shared.settings.name_chars_max)
}

/// `prompts/list`
pub(crate) async fn prompts(cx: McpContext, params: McpOpen<McpCursor>) -> McpReply {
    let all = prompts_by_name(&cx);
    let page = page_of(&cx, PROMPTS, params.cursor.as_deref(), all, |(name, _)| name);
    let (page, next_cursor) = match page {
        Ok(page) => page,
        Err(fault) => return McpReply::refused(fault),
    };
    let prompts = page.into_iter().map(|(name, of)| {
        let mut prompt = of.offer;
        prompt.name = name;
        prompt
    });
    let page =
        McpPromptsPage { prompts: prompts.collect(), next_cursor, ..McpPromptsPage::default() };
    McpReply::result(say_how_long(&cx, McpOpen::from(page).to_object()))
}

/// `prompts/get`
pub(crate) async fn prompt(
    cx: McpContext,
    _at: RequestRef,
    params: McpOpen<McpPromptGet>,
) -> McpReply {
    let known = prompts_by_name(&cx).into_iter().find(|(name, _)| *name == params.name);
    let Some((_, prompt)) = known else {
        return McpReply::refused(McpError::params("There is no such prompt."));
    };
    let asked = params.to_object();
    let digest = request_digest("prompts/get", Some(&asked));
    let mut inputs = HiddenTool::inputs(asked);
    inputs.insert("name".to_owned(), prompt.offer.name.clone().into());
    let McpPromptGet { request_state: state, input_responses: answers, .. } = params.known;
    let (provider, tool) = (prompt.provider.clone(), HiddenTool::PromptsGet);
    let wanted = Wanted { provider, tool, inputs, digest, state, answers };
    let finish = move |cx: &McpContext, given| match given {
        Ok(mut result) => {
            rewrite_prompt(cx, &prompt.provider, &mut result);
            Ok(result)
        }
        Err(fault) => Err(refusal(cx, "", fault)),
    };
    reading::read(cx, wanted, Box::new(finish)).await
}

/// `resources/read` of a server's resource, which the client calls by the address in `params`.
pub(super) async fn read(
    cx: McpContext,
    _at: RequestRef,
    (provider, own): (ProviderId, String),
    params: McpOpen<McpResourceRead>,
) -> McpReply {
    let asked = params.to_object();
    let digest = request_digest("resources/read", Some(&asked));
    let mut inputs = HiddenTool::inputs(asked);
    inputs.insert("uri".to_owned(), own.into());
    let McpResourceRead { uri, request_state: state, input_responses: answers, .. } = params.known;
    let tool = HiddenTool::ResourcesRead;
    let wanted = Wanted { provider: provider.clone(), tool, inputs, digest, state, answers };
    let finish = move |cx: &McpContext, given| match given {
        Ok(mut result) => {
            rewrite_contents(cx, &provider, &mut result);
            Ok(say_how_long(cx, result))
        }
        Err(fault) => Err(refusal(cx, &uri, fault)),
    };
    reading::read(cx, wanted, Box::new(finish)).await
}

/// Asks something of a server by a run of one of its hidden tools: what it answers.
pub(super) async fn ask(
    cx: &McpContext,
    provider: &ProviderId,
    tool: HiddenTool,
    inputs: Object,
    at_most: Duration,
) -> Result<Object, Fault> {
    let id = tool.id(provider).ok_or_else(gone)?;
    let SentTrace { traceparent, tracestate } = cx.trace.clone();
    let new = NewRun {
        durability: Some(Durability::Memory),
        traceparent,
        tracestate,
        timeout_ms: u64::try_from(at_most.as_millis()).ok(),
        ..NewRun::new(id, inputs, cx.door.world.clone())
    };
    let runs = cx.shared.handle.runs();
    let accepted = Box::pin(runs.create_and_wait(&cx.caller, new, at_most)).await?;
    if !accepted.run.is_over() {
        let reason = "The client waits no longer.";
        let _ = Box::pin(runs.cancel(&cx.caller, &accepted.run.key, reason)).await;
    }
    outputs(&accepted.run)
}

/// What a server answered to a run of one of its hidden tools.
pub(super) fn outputs(run: &Run) -> Result<Object, Fault> {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Ok(outputs.clone()),
        Some(outcome) => Err(outcome.error().cloned().unwrap_or_else(gone)),
        None => Err(Fault::new(Code::ToolTimeout, "The server took too long to answer.")),
    }
}

pub(super) fn gone() -> Fault {
    Fault::new(Code::ToolUnavailable, "The server is not there any more.")
}

/// What a client is refused with when a server gave no answer.
pub(super) fn refusal(cx: &McpContext, uri: &str, fault: Fault) -> McpRefusal {
    if fault.is(Code::ArtifactNotFound) {
        return missing(uri, cx.revision).into();
    }
    let own = is_error_of_server(&fault);
    if own == Some(code::MISSING_CAPABILITY) && cx.revision.era() == McpEra::Modern {
        let data = fault.details.get("mcp_data").cloned();
        let error = McpError::new(code::MISSING_CAPABILITY, fault.message);
        return McpError { data, ..error }.into();
    }
    if fault.is(Code::ToolInvalidInput) || own == Some(code::INVALID_PARAMS) {
        return McpError::params(fault.message).into();
    }
    if fault.code.as_str().starts_with("tool.") {
        let data = json!({"code": fault.code.as_str()});
        let error = McpError::new(code::INTERNAL, fault.message);
        return McpError { data: Some(data), ..error }.into();
    }
    fault.into()
}

/// Makes the addresses in what a resource contains what the client calls them.
fn rewrite_contents(cx: &McpContext, provider: &ProviderId, result: &mut Object) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for part in contents.into_iter().flatten() {
        rewrite(cx, provider, part);
    }
}

/// Makes the addresses in what a prompt says what the client calls them.
fn rewrite_prompt(cx: &McpContext, provider: &ProviderId, result: &mut Object) {
    let messages = result.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        let Some(content) = message.get_mut("content") else { continue };
        match content.get("type").and_then(Value::as_str) {
            Some("resource_link") => rewrite(cx, provider, content),
            Some("resource") => {
                if let Some(resource) = content.get_mut("resource") {
                    rewrite(cx, provider, resource);
                }
            }
            _ => {}
        }
    }
}

fn rewrite(cx: &McpContext, provider: &ProviderId, holder: &mut Value) {
    if let Some(Value::String(uri)) = holder.get_mut("uri") {
        *uri = resource_uri(cx, provider, uri);
    }
}
