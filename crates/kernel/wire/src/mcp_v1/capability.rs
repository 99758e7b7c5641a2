//! Who speaks, and what it can do. An empty object says that something can be done; what is absent
//! cannot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::McpOpen;

/// The extension of 2026-07-28 with which a server may answer with a task.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Things by name, each with its settings.
pub type McpFeatures = BTreeMap<String, Object>;

/// A client or a server by name.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpImplementation {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// Of the implementation, not of the protocol.
    pub version: String,
    /// What it is for.
    pub description: Option<String>,
    /// Where more is to be read.
    pub website_url: Option<String>,
    /// Pictures; they are passed on and never fetched.
    pub icons: Option<Vec<McpOpen<McpIcon>>>,
}

/// A picture.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpIcon {
    /// Where it is.
    pub src: String,
    /// Its type.
    pub mime_type: Option<String>,
    /// Sizes for which it is meant.
    pub sizes: Option<Vec<String>>,
    /// Background for which it is meant.
    pub theme: Option<String>,
}

/// What a client can do.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpClientCapabilities {
    /// Name folders.
    pub roots: Option<McpOpen<McpListSupport>>,
    /// Ask a model.
    pub sampling: Option<McpOpen<McpSamplingSupport>>,
    /// Ask a person.
    pub elicitation: Option<McpOpen<McpElicitationModes>>,
    /// Take requests as tasks; 2025-11-25.
    pub tasks: Option<McpOpen<McpTaskSupport>>,
    /// Extensions.
    pub extensions: Option<McpFeatures>,
    /// What nobody has agreed on.
    pub experimental: Option<McpFeatures>,
}

/// What a server can do.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerCapabilities {
    /// Offer tools.
    pub tools: Option<McpOpen<McpListSupport>>,
    /// Offer resources.
    pub resources: Option<McpOpen<McpResourceSupport>>,
    /// Offer prompts.
    pub prompts: Option<McpOpen<McpListSupport>>,
    /// Complete arguments.
    pub completions: Option<Object>,
    /// Send logs.
    pub logging: Option<Object>,
    /// Take requests as tasks; 2025-11-25.
    pub tasks: Option<McpOpen<McpTaskSupport>>,
    /// Extensions.
    pub extensions: Option<McpFeatures>,
    /// What nobody has agreed on.
    pub experimental: Option<McpFeatures>,
}

/// A list that may change.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpListSupport {
    /// Whether changes are told.
    pub list_changed: Option<bool>,
}

/// Resources.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceSupport {
    /// Whether changes of one resource are told.
    pub subscribe: Option<bool>,
    /// Whether changes of the list are told.
    pub list_changed: Option<bool>,
}

/// What a model may be asked with.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpSamplingSupport {
    /// The client's own context.
    pub context: Option<Object>,
    /// Tools.
    pub tools: Option<Object>,
}

/// How a person may be asked. Neither means by form.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpElicitationModes {
    /// By form.
    pub form: Option<Object>,
    /// By an address to open.
    pub url: Option<Object>,
}

/// What can be done with tasks of 2025-11-25.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpTaskSupport {
    /// List them.
    pub list: Option<Object>,
    /// Cancel them.
    pub cancel: Option<Object>,
    /// Requests that can become one: group, then name.
    pub requests: Option<BTreeMap<String, McpFeatures>>,
}

impl McpClientCapabilities {
    /// Whether a person can be asked by form.
    #[must_use]
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether a person can be asked to open an address.
    #[must_use]
    pub fn elicits_urls(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Whether a server may answer with a task of the extension.
    #[must_use]
    pub fn has_tasks_extension(&self) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(TASKS_EXTENSION))
    }
}

impl McpServerCapabilities {
    /// Whether the server may answer with a task of the extension.
    #[must_use]
    pub fn has_tasks_extension(&self) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(TASKS_EXTENSION))
    }

    /// Whether calls of tools can be tasks of 2025-11-25.
    #[must_use]
    pub fn has_call_tasks(&self) -> bool {
        let requests = self.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        let tools = requests.and_then(|requests| requests.get("tools"));
        tools.is_some_and(|tools| tools.contains_key("call"))
    }
}
