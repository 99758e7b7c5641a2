//! What servers and clients list, and the pages it comes on.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::open::{OpenList, read_result};
use super::{
    McpAnnotations, McpCacheScope, McpError, McpIcon, McpMeta, McpMs, McpOpen, McpResultType,
};

/// A tool as its server defines it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTool {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Object,
    /// JSON Schema of its structured content.
    pub output_schema: Option<Object>,
    /// What its server says of how it acts.
    pub annotations: Option<McpOpen<McpToolAnnotations>>,
    /// Whether it can be a task; 2025-11-25.
    pub execution: Option<McpOpen<McpToolExecution>>,
    /// Pictures; they are passed on and never fetched.
    pub icons: Option<OpenList<McpIcon>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// How a tool acts, if its server is to be believed.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpToolAnnotations {
    /// Its name for people.
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost.
    pub destructive_hint: Option<bool>,
    /// Twice is like once.
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond its server.
    pub open_world_hint: Option<bool>,
}

/// How a tool is executed; 2025-11-25.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpToolExecution {
    /// Whether a call of it can be a task.
    pub task_support: Option<McpToolTasks>,
}

/// Whether a call of a tool can be a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpToolTasks {
    /// Never.
    Forbidden,
    /// If the client wants.
    Optional,
    /// Always.
    Required,
}

/// A resource by its address; also a link to one.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResource {
    /// Its address.
    pub uri: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its type.
    pub mime_type: Option<String>,
    /// For whom it is.
    pub annotations: Option<McpOpen<McpAnnotations>>,
    /// Its size in bytes.
    pub size: Option<Number>,
    /// Pictures; they are passed on and never fetched.
    pub icons: Option<OpenList<McpIcon>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// Addresses of resources with gaps in them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTemplate {
    /// The address, by RFC 6570.
    pub uri_template: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// Their type, if all have one.
    pub mime_type: Option<String>,
    /// For whom they are.
    pub annotations: Option<McpOpen<McpAnnotations>>,
    /// Pictures; they are passed on and never fetched.
    pub icons: Option<OpenList<McpIcon>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// A prompt that a server offers.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpPrompt {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Option<OpenList<McpPromptArgument>>,
    /// Pictures; they are passed on and never fetched.
    pub icons: Option<OpenList<McpIcon>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// Something that a prompt takes.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpPromptArgument {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: Option<bool>,
}

/// A folder that a client lets a server know.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpRoot {
    /// Its address.
    pub uri: String,
    /// For people.
    pub name: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<Object>,
}

/// An item of a page that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpUnfit {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What is wrong with it.
    pub why: String,
}

/// Takes the items out of a page.
fn fitting<T: DeserializeOwned>(items: Option<&mut Value>) -> (OpenList<T>, Vec<McpUnfit>) {
    let (mut fit, mut unfit) = (Vec::new(), Vec::new());
    let items = items.and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    for item in items {
        let name = item.get("name").and_then(Value::as_str).map(str::to_owned);
        let item = match item {
            Value::Object(item) => read_result(item).map_err(|error| error.message),
            _ => Err("It is no JSON object.".to_owned()),
        };
        match item {
            Ok(item) => fit.push(item),
            Err(why) => unfit.push(McpUnfit { name, why }),
        }
    }
    (fit, unfit)
}

/// A page of a list: its items under their own name, and what all pages have.
macro_rules! pages {
    ($($(#[$doc:meta])* $page:ident { $(#[$note:meta])* $items:ident: $item:ty = $name:literal })*) => {$(
        $(#[$doc])*
        #[skip_serializing_none]
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $page {
            $(#[$note])*
            pub $items: OpenList<$item>,
            /// Where the next page begins; absent on the last.
            pub next_cursor: Option<String>,
            /// How long the page is good; 2026-07-28.
            pub ttl_ms: Option<McpMs>,
            /// For whom it is good; 2026-07-28.
            pub cache_scope: Option<McpCacheScope>,
            /// Always that the page is complete; 2026-07-28.
            pub result_type: Option<McpResultType>,
            /// What travels beside it.
            #[serde(rename = "_meta")]
            pub meta: Option<McpMeta>,
        }

        impl $page {
            /// Reads a page item by item: one that does not fit is left out and told, and does not
            /// hide the others.
            pub fn read_fitting(
                mut result: Object,
            ) -> Result<(McpOpen<Self>, Vec<McpUnfit>), McpError> {
                let (items, unfit) = fitting(result.get_mut($name));
                let mut page = read_result::<Self>(result)?;
                page.$items = items;
                Ok((page, unfit))
            }
        }
    )*};
}

pages! {
    /// A page of `tools/list`.
    McpToolsPage {
        /// The tools.
        tools: McpTool = "tools"
    }
    /// A page of `resources/list`.
    McpResourcesPage {
        /// The resources.
        resources: McpResource = "resources"
    }
    /// A page of `resources/templates/list`.
    McpTemplatesPage {
        /// The templates.
        resource_templates: McpTemplate = "resourceTemplates"
    }
    /// A page of `prompts/list`.
    McpPromptsPage {
        /// The prompts.
        prompts: McpPrompt = "prompts"
    }
}
