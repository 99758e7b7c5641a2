//! What is declared to a client, per revision.

use std::collections::BTreeMap;

use wharf_vocab::{Object, ProviderId, ToolId};
use wharf_wire::mcp_v1::{
    McpDiscoverResult, McpEra, McpInitializeResult, McpListSupport, McpOpen, McpResourceSupport,
    McpRevision, McpServerCapabilities, McpTaskSupport, TASKS_EXTENSION,
};

use super::door::{McpContext, McpReply};
use super::patience;
use super::resources::say_how_long;
use crate::hidden::pinned;
use crate::names::INSTRUCTIONS;

/// Longest instructions.
const INSTRUCTIONS_BYTES_MAX: usize = 2 * 1024;
/// How Wharf is to be used.
const OWN: &str = "Wharf runs tools of many providers. Each call is a run: it is recorded, it may \
     wait for a person's approval or answer, and it goes on while that takes long. Every result \
     names its run in `_meta[\"dev.wharf/run\"]`. Names of tools begin with the name of their \
     provider. Files that runs read and write are resources with addresses that begin with \
     `world://`.";
/// What is said besides to a client that is answered before its run is over.
const IMPATIENT: &str = " A call that takes long is answered with the id of its run while the run \
     goes on; call `wharf_wait` with that id for the result, or `wharf_cancel` to call it off.";

/// The answer to `initialize`.
pub(crate) fn initialize(cx: &McpContext) -> McpReply {
    let result = McpInitializeResult {
        // The session says what was agreed.
        protocol_version: cx.revision.as_str().to_owned(),
        capabilities: capabilities(cx.revision).into(),
        server_info: cx.shared.implementation().into(),
        instructions: instructions(cx),
        meta: None,
    };
    McpReply::result(McpOpen::from(result).to_object())
}

/// The answer to `server/discover`.
pub(crate) fn discover(cx: &McpContext) -> McpReply {
    let modern = McpRevision::ALL.into_iter().filter(|it| it.era() == McpEra::Modern);
    let result = McpDiscoverResult {
        supported_versions: modern.map(|it| it.as_str().to_owned()).collect(),
        capabilities: capabilities(cx.revision).into(),
        instructions: instructions(cx),
        ..McpDiscoverResult::default()
    };
    McpReply::result(say_how_long(cx, McpOpen::from(result).to_object()))
}

fn capabilities(revision: McpRevision) -> McpServerCapabilities {
    let list = || Some(McpOpen::from(McpListSupport { list_changed: Some(true) }));
    let resources = McpResourceSupport { subscribe: Some(true), list_changed: Some(true) };
    let tasks = revision.has_core_tasks().then(|| {
        let call = BTreeMap::from([("call".to_owned(), Object::new())]);
        McpOpen::from(McpTaskSupport {
            list: Some(Object::new()),
            cancel: Some(Object::new()),
            requests: Some(BTreeMap::from([("tools".to_owned(), call)])),
        })
    });
    let extensions = (revision.era() == McpEra::Modern)
        .then(|| BTreeMap::from([(TASKS_EXTENSION.to_owned(), Object::new())]));
    McpServerCapabilities {
        tools: list(),
        resources: Some(resources.into()),
        prompts: list(),
        completions: Some(Object::new()),
        logging: Some(Object::new()),
        tasks,
        extensions,
        experimental: None,
    }
}

/// What a model is told: at the door of one provider what the provider says, if it says anything.
fn instructions(cx: &McpContext) -> Option<String> {
    let upstream = cx.door.provider.as_ref().and_then(|provider| of_server(cx, provider));
    let mut text = upstream.unwrap_or_else(|| OWN.to_owned());
    let besides = if patience::of(cx).is_some() { IMPATIENT } else { "" };
    truncate(&mut text, INSTRUCTIONS_BYTES_MAX - besides.len());
    text.push_str(besides);
    Some(text)
}

/// The instructions of a server, as they were pinned.
fn of_server(cx: &McpContext, provider: &ProviderId) -> Option<String> {
    let id = ToolId::new(format!("{provider}/{INSTRUCTIONS}")).ok()?;
    let tool = cx.shared.handle.providers().tool(&id).ok()?;
    let text = pinned(&tool.def, INSTRUCTIONS).filter(|_| tool.quarantine.is_none())?;
    let text = text.get("instructions").unwrap_or(text);
    text.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Cuts a text off between two characters.
fn truncate(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, to_value};

    fn declared(revision: McpRevision) -> Value {
        to_value(capabilities(revision)).expect("JSON")
    }

    #[test]
    fn m012_each_revision_is_told_what_it_knows() {
        let (old, core, modern) = (
            declared(McpRevision::V2025_06_18),
            declared(McpRevision::V2025_11_25),
            declared(McpRevision::V2026_07_28),
        );
        for told in [&old, &core, &modern] {
            assert_eq!(told["tools"]["listChanged"], true);
            assert_eq!(told["prompts"]["listChanged"], true);
            assert_eq!(told["resources"]["subscribe"], true);
            assert!(told["completions"].is_object() && told["logging"].is_object());
        }
        assert!(old.get("tasks").is_none() && old.get("extensions").is_none());
        assert!(core["tasks"]["requests"]["tools"]["call"].is_object());
        assert!(core["tasks"]["list"].is_object() && core["tasks"]["cancel"].is_object());
        assert!(core.get("extensions").is_none() && modern.get("tasks").is_none());
        assert!(modern["extensions"][TASKS_EXTENSION].is_object());
    }

    #[test]
    fn m012_instructions_are_cut_between_characters() {
        assert!(OWN.len() + IMPATIENT.len() <= INSTRUCTIONS_BYTES_MAX);
        let mut text = "ä".repeat(INSTRUCTIONS_BYTES_MAX);
        truncate(&mut text, INSTRUCTIONS_BYTES_MAX - 1);
        assert_eq!(text.len(), INSTRUCTIONS_BYTES_MAX - 2);
    }
}
