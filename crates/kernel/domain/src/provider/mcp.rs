//! What the server of another protocol's tools declares: how it is reached, and how far it is
//! trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
pub use wharf_vocab::{McpEraChoice, McpRoots, McpSampling};
use wharf_vocab::{Retain, SandboxLevel, SecretName};

/// What only an MCP server declares.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDetails {
    /// How it is reached.
    pub how: McpServing,
    /// The package that is installed into its folder before it first runs.
    pub package: Option<McpPackage>,
    /// The secret that holds the bearer token it asks for.
    pub token_secret: Option<SecretName>,
    /// Headers whose values are secrets, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header_secrets: BTreeMap<String, SecretName>,
    /// Variables of its environment whose values are secrets, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_secrets: BTreeMap<String, SecretName>,
    /// Other variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether tools that come after its approval are taken on by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_new: bool,
    /// Whether what it says about a tool's effects counts.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub trust_annotations: bool,
    /// Which of the protocol's two ways to speak is tried.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub era: McpEraChoice,
    /// How long a process without a call is kept; the core's own time when absent.
    pub idle_s: Option<u64>,
    /// How firmly it is to be fenced in; as usual when absent.
    pub sandbox: Option<SandboxLevel>,
    /// Who answers what it asks of a model; the core's own choice when absent.
    pub sampling: Option<McpSampling>,
    /// Which folders it is told of.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub roots: McpRoots,
    /// What is kept of the values of its tools' runs when they are over.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub retain: Retain,
    /// How somebody logs in to it.
    pub oauth: Option<McpLogin>,
}

impl McpDetails {
    /// A server with nothing said but how it is reached.
    pub fn new(how: McpServing) -> Self {
        Self {
            how,
            package: None,
            token_secret: None,
            header_secrets: BTreeMap::new(),
            env_secrets: BTreeMap::new(),
            env: BTreeMap::new(),
            accept_new: false,
            trust_annotations: true,
            era: McpEraChoice::Auto,
            idle_s: None,
            sandbox: None,
            sampling: None,
            roots: McpRoots::Approved,
            retain: Retain::Full,
            oauth: None,
        }
    }
}

fn yes() -> bool {
    true
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServing {
    /// The manifest's entrypoint, which speaks on its standard input and output.
    Command,
    /// A server elsewhere.
    Url {
        /// Its address.
        url: String,
        /// Whether it may lie in a private network.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_private: bool,
    },
}

impl McpServing {
    /// Whether the core starts it.
    pub fn is_launched(&self) -> bool {
        matches!(self, Self::Command)
    }
}

/// A package that an MCP server comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpPackage {
    /// `NAME@VERSION` of the registry of Node.
    Npm(String),
    /// `NAME==VERSION` of the index of Python.
    Pypi(String),
}

/// How somebody logs in to an MCP server elsewhere.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpLogin {
    /// The client's id there, when it has one.
    pub client_id: Option<String>,
    /// The secret that holds the client's own secret.
    pub client_secret: Option<SecretName>,
    /// The only issuer that the client is shown to; whoever the server names when absent.
    pub issuer: Option<String>,
    /// What is asked for when the server does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// A tool as its MCP server describes it, as far as nothing else says so. The hash of a
/// definition covers all of it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpOrigin {
    /// The server's own name for it.
    pub name: String,
    /// Its title for people.
    pub title: Option<String>,
    /// What the server says about its effects.
    pub annotations: Option<serde_json::Value>,
    /// How the server wants it to be called.
    pub execution: Option<serde_json::Value>,
    /// The schema of its arguments, where the definition's is another one.
    pub input_schema: Option<serde_json::Value>,
    /// The schema of its results, where the definition's is another one.
    pub output_schema: Option<serde_json::Value>,
    /// What else is pinned: a prompt, a template, instructions.
    pub pinned: Option<serde_json::Value>,
    /// Why it cannot be used, however often it is taken on.
    pub unfit: Option<String>,
}
