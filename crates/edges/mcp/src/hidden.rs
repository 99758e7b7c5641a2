//! The tools of a server that no list shows: reading its resources, getting its prompts and
//! completing arguments are runs of them, so that rights, questions and time limits hold as for
//! any call.
//!
//! What such a run takes is the parameters of the method without `_meta`, and what it gives is the
//! server's result without its type, in both eras the same.

use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_domain::provider::McpOrigin;
use wharf_vocab::{Durability, Object, ProviderId, ToolId};
use wharf_wire::mcp_v1::key;

use crate::names::{COMPLETE, PROMPTS_GET, RESOURCES_LIST, RESOURCES_READ};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenTool {
    /// `resources.read`: `{"uri"}`.
    ResourcesRead,
    /// `resources.list`: `{"cursor"?}`.
    ResourcesList,
    /// `prompts.get`: `{"name", "arguments"?}`.
    PromptsGet,
    /// `completion.complete`: `{"ref", "argument", "context"?}`.
    Complete,
}

impl HiddenTool {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::ResourcesRead, Self::ResourcesList, Self::PromptsGet, Self::Complete];

    /// The part of its id behind the provider.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Self::ResourcesRead => RESOURCES_READ,
            Self::ResourcesList => RESOURCES_LIST,
            Self::PromptsGet => PROMPTS_GET,
            Self::Complete => COMPLETE,
        }
    }

    /// What it asks of the server.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::ResourcesRead => "resources/read",
            Self::ResourcesList => "resources/list",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }

    /// Its id.
    pub(crate) fn id(self, provider: &ProviderId) -> Option<ToolId> {
        ToolId::new(format!("{provider}/{}", self.part())).ok()
    }

    /// Which of them a tool of a server is. No tool that a server offers has such an id.
    pub(crate) fn of(id: &ToolId) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.part() == id.name())
    }

    /// How the catalog has it. It changes nothing, costs nothing and is not written down.
    pub(crate) fn def(self, provider: &ProviderId) -> Option<ToolDef> {
        let text = json!({"type": "string"});
        let (description, properties, required) = match self {
            Self::ResourcesRead => ("Reads a resource.", json!({"uri": text}), json!(["uri"])),
            Self::ResourcesList => ("Lists resources.", json!({"cursor": text}), json!([])),
            Self::PromptsGet => (
                "Gets a prompt.",
                json!({"name": text, "arguments": {"type": "object"}}),
                json!(["name"]),
            ),
            Self::Complete => (
                "Completes an argument.",
                json!({"ref": {"type": "object"}, "argument": {"type": "object"},
                       "context": {"type": "object"}}),
                json!(["ref", "argument"]),
            ),
        };
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let origin = McpOrigin { name: self.method().to_owned(), ..McpOrigin::default() };
        Some(ToolDef {
            side_effects: Some(false),
            free: true,
            durability: Durability::Memory,
            hidden: true,
            mcp: Some(Box::new(origin)),
            ..ToolDef::new(self.id(provider)?, description, schema)
        })
    }

    /// The inputs of a run that is to make a request with these parameters: what belongs to the
    /// one request of one client stays behind.
    pub(crate) fn inputs(params: Object) -> Object {
        let own = [key::META, "inputResponses", "requestState"];
        params.into_iter().filter(|(name, _)| !own.contains(&name.as_str())).collect()
    }
}

/// What a server says of a prompt or a template, if that is what a tool of the catalog stands for.
pub(crate) fn pinned<'a>(def: &'a ToolDef, prefix: &str) -> Option<&'a Value> {
    let origin = def.mcp.as_ref().filter(|_| def.hidden)?;
    origin.pinned.as_ref().filter(|_| def.tool.name().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use wharf_wire::mcp_v1::McpRequest;

    use super::*;

    #[test]
    fn m040_hidden_tools_ask_what_they_stand_for() {
        let server = ProviderId::new("srv").expect("an id");
        let inputs = json!({
            "uri": "a:b", "name": "p", "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": "x"},
        });
        let inputs = inputs.as_object().expect("an object");
        for tool in HiddenTool::ALL {
            let def = tool.def(&server).expect("an id");
            assert_eq!(HiddenTool::of(&def.tool), Some(tool));
            assert!(def.hidden && def.is_literal("uri") && def.durability == Durability::Memory);
            let request = McpRequest::read(tool.method(), Some(inputs.clone())).expect("fits");
            assert_eq!(request.method(), tool.method());
        }
        assert_eq!(HiddenTool::of(&ToolId::new("srv/other").expect("an id")), None);
    }

    #[test]
    fn m040_what_belongs_to_one_request_is_no_input() {
        let params = json!({"uri": "a:b", "_meta": {}, "requestState": "s", "inputResponses": {}});
        let inputs = HiddenTool::inputs(params.as_object().expect("an object").clone());
        assert_eq!(Value::Object(inputs), json!({"uri": "a:b"}));
    }
}
