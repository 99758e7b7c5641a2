//! Tools as the catalog knows them, and whether their provider can be reached.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Code, Digest, Durability, Micro, Retain, ToolId};

use crate::provider::McpOrigin;
use crate::world::is_full;

/// A named, typed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDef {
    /// `provider/name`.
    pub tool: ToolId,
    /// What it does, for people and models.
    pub description: String,
    /// JSON Schema of the inputs.
    pub input_schema: Value,
    /// JSON Schema of the outputs.
    pub output_schema: Option<Value>,
    /// Whether it acts on the world; undeclared counts as yes.
    pub side_effects: Option<bool>,
    /// Whether what it does cannot be undone, where its provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether each run needs an approval.
    pub requires_directive: bool,
    /// Whether it can pretend.
    pub mock: bool,
    /// Whether its provider keeps idempotency keys.
    pub idempotency: bool,
    /// Whether an attempt survives a restart of the core and can be taken up again.
    pub reattach: bool,
    /// Whether its code finds its steps again, so that any attempt that fails may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub durable: bool,
    /// Longest running time of an attempt.
    pub timeout_ms: Option<u64>,
    /// The most an attempt costs, as far as its author knows. What is held is that, the world's
    /// default or the most that it cost before, whichever is more.
    pub max_cost_micro: Option<Micro>,
    /// Whether it never costs anything, so that it can be used where no money is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// What is kept of the values of its runs when they are over.
    #[serde(default, skip_serializing_if = "is_full")]
    pub retain: Retain,
    /// Whether runs are written down unless the caller says otherwise.
    pub durability: Durability,
    /// What kind of worker an operator should start for it, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerKind>,
    /// How far the provider's memory of idempotency keys goes, when it has bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_kept: Option<KeysKept>,
    /// What it says that it can do, such as `streaming`; for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Groups for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether lists of tools leave it out: it is pinned, and perhaps called by its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// How its MCP server describes it. What is passed to such a tool is what it is: nothing in
    /// it is an address or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Box<McpOrigin>>,
}

/// What kind of worker an operator should start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerKind {
    /// Its kind, as the operator knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Tools of its own that it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// How far a provider's memory of idempotency keys goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysKept {
    /// How long a key is kept after its attempt has ended; without end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Whether keys are kept beyond the provider's process.
    pub beyond_process: bool,
}

impl ToolDef {
    /// A tool with cautious defaults: it acts, cannot pretend and is never repeated by itself.
    pub fn new(tool: ToolId, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            tool,
            description: description.into(),
            input_schema,
            output_schema: None,
            side_effects: None,
            destructive: None,
            requires_directive: false,
            mock: false,
            idempotency: false,
            reattach: false,
            durable: false,
            timeout_ms: None,
            max_cost_micro: None,
            free: false,
            retain: Retain::Full,
            durability: Durability::Journal,
            worker: None,
            keys_kept: None,
            capabilities: Vec::new(),
            tags: Vec::new(),
            hidden: false,
            mcp: None,
        }
    }

    /// Whether it may destroy something: what acts on the world may, unless it says otherwise.
    pub fn may_destroy(&self) -> bool {
        self.destructive.unwrap_or(self.side_effects != Some(false))
    }

    /// Whether an input is never an address, however much it looks like one: its schema says
    /// `"x-wharf-literal": true`, or the tool is an MCP server's.
    pub fn is_literal(&self, name: &str) -> bool {
        if self.mcp.is_some() {
            return true;
        }
        let properties = self.input_schema.get("properties").and_then(Value::as_object);
        let property = properties.and_then(|properties| properties.get(name));
        property.and_then(|property| property.get("x-wharf-literal")) == Some(&Value::Bool(true))
    }

    /// A digest of several definitions, in their order.
    pub fn digest_of(tools: &[Self]) -> Digest {
        let hashes: Vec<Digest> = tools.iter().map(Self::hash).collect();
        let parts: Vec<&[u8]> = hashes.iter().map(|hash| hash.as_str().as_bytes()).collect();
        Digest::of(&parts)
    }

    /// The hash that stands for all of the definition that somebody approves: not for what is
    /// only shown, nor for how long keys are kept.
    pub fn hash(&self) -> Digest {
        let plain =
            self.keys_kept.is_none() && self.capabilities.is_empty() && self.tags.is_empty();
        if plain {
            return Digest::of(&[&serde_json::to_vec(self).unwrap_or_default()]);
        }
        let (capabilities, tags) = (Vec::new(), Vec::new());
        Self { keys_kept: None, capabilities, tags, ..self.clone() }.hash()
    }
}

/// Whether a provider can take an attempt now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Up,
    /// Not yet, or not at the moment; runs wait for it.
    Coming,
    /// It has gone and may come back; runs wait for it, for a while.
    Away {
        /// Who is away, and for how long runs wait.
        reason: String,
    },
    /// It is connected but does not answer as it should.
    Unhealthy,
    /// It cannot, and will not by itself.
    Down {
        /// Why.
        reason: String,
        /// What runs that need it fail with.
        code: Code,
    },
}

impl Availability {
    /// It is stopped, crashed or gone, and this is why.
    pub fn down(reason: impl Into<String>) -> Self {
        Self::Down { reason: reason.into(), code: Code::ToolUnavailable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r080_what_is_only_shown_makes_no_other_definition() {
        let tool = ToolId::new("acme/work").expect("valid");
        let plain = ToolDef::new(tool, "Works.", serde_json::json!({"type": "object"}));
        let shown = ToolDef {
            keys_kept: Some(KeysKept { for_ms: Some(1), beyond_process: false }),
            capabilities: vec!["streaming".to_owned()],
            tags: vec!["demo".to_owned()],
            ..plain.clone()
        };
        assert_eq!(shown.hash(), plain.hash());
        assert_ne!(ToolDef { mock: true, ..plain.clone() }.hash(), plain.hash());
    }
}
