//! MCP servers: what is shown of them, and what can be asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, Isolation, Keeping, LaunchId, McpEraChoice, McpRoots, McpSampling, ProviderId,
    ProviderState, SandboxLevel, SecretName, ToolId,
};

use super::agent::known;
use super::{AgentLimits, AgentPermission, AgentWish};

/// An MCP server and its state.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpServer {
    /// The server's id, which the ids of its tools begin with.
    pub server_id: ProviderId,
    /// Its state. An idle server is `running` without a process.
    pub state: ProviderState,
    /// Why it is in that state, when there is something to say.
    pub reason: Option<String>,
    /// Whether it may be called, once approved.
    pub enabled: bool,
    /// Whether its tools were read since it was approved. That takes a first start.
    pub listed: bool,
    /// The tools it offers; they stay listed while it is not connected.
    pub tools: Vec<ToolId>,
    /// Tools that are new or have changed since the approval, and wait for one of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<ToolId>,
    /// The program that is started, and its arguments; empty for a server elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a server elsewhere.
    pub url: Option<String>,
    /// Whether that address may lie in a private network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
    /// The package of Node it is installed from, `NAME@VERSION`.
    pub npm: Option<String>,
    /// The package of Python it is installed from, `NAME==VERSION`.
    pub pypi: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The folder with its manifest.
    pub folder: String,
    /// When it was added.
    pub added_at: DateTime,
    /// Its process, while there is one.
    pub pid: Option<u32>,
    /// The current start of its process; shown only to administrators.
    pub launch_id: Option<LaunchId>,
    /// How many of its processes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u64,
    /// Variables of its environment; shown only to administrators.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of its environment that hold secrets, with the names of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_secrets: BTreeMap<String, SecretName>,
    /// The secret that is sent as a bearer token.
    pub token_secret: Option<SecretName>,
    /// Headers that hold secrets, with the names of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header_secrets: BTreeMap<String, SecretName>,
    /// How one logs in to it with OAuth, where that is not found out.
    pub oauth: Option<McpOauth>,
    /// Whether tools that are new since the approval are taken on by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_new: bool,
    /// Whether what it says about the effects of its tools counts.
    pub trust_annotations: bool,
    /// Which of the protocol's two ways to speak is tried.
    pub era: McpEraChoice,
    /// Who answers what it asks of a model; the core's setting when absent.
    pub sampling: Option<McpSampling>,
    /// Which folders it is told of.
    pub roots: McpRoots,
    /// How long a process without a call is kept; the core's setting when absent.
    pub idle_s: Option<u64>,
    /// Its sandbox: the one achieved while it runs, otherwise the one approved.
    pub sandbox: SandboxLevel,
    /// The sandbox it is to have, once approved.
    pub sandbox_wanted: Option<SandboxLevel>,
    /// What the sandbox lacks or does differently, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_notes: Vec<String>,
    /// Which runs share a process, once approved.
    pub isolation: Option<Isolation>,
    /// What its manifest asks for.
    pub permissions_requested: Vec<String>,
    /// What was approved; absent until its present manifest is approved.
    pub permissions_approved: Option<Vec<String>>,
    /// The same, each with what it means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// What its manifest asks for beyond the usual, such as a weaker sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<AgentWish>,
    /// The limits in force: the stricter of the manifest's and the owner's.
    #[serde(default, skip_serializing_if = "AgentLimits::is_empty", deserialize_with = "known")]
    pub limits: AgentLimits,
    /// How each of these limits is enforced while it runs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_kept: BTreeMap<String, Keeping>,
    /// Hash of its manifest.
    pub manifest_hash: String,
    /// Digests of the files approved with it, by path relative to the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned_files: BTreeMap<String, String>,
    /// How its files differ from what was approved, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// What its owner should know before approving it, one sentence each; told when it is added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// How one logs in to an MCP server with OAuth, where that is not found out.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpOauth {
    /// The id of the core as a client there.
    pub client_id: Option<String>,
    /// The secret that holds the client's own secret.
    pub client_secret: Option<SecretName>,
    /// The only issuer that the client is shown to; whoever the server names when absent.
    pub issuer: Option<String>,
    /// What is asked for when the server does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// `POST /v1/mcp`: the folder with a manifest, or what the core is to write into one. Exactly one
/// of `folder`, `command`, `url`, `npm` and `pypi` says where the server comes from; only a package
/// may come with a `command`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMcp {
    /// The folder with the server's manifest, `wharf.mcp.toml`: an absolute path on the core's
    /// machine. Then everything but `approve`, `sandbox` and `isolation` stands there.
    pub folder: Option<String>,
    /// The server's name, which the ids of its tools begin with.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The program to start, and its arguments. It speaks on its standard input and output.
    pub command: Option<Vec<String>>,
    /// Where the command was typed: paths in it are meant from there. An absolute path.
    pub cwd: Option<String>,
    /// Folders in which the program is looked for before those of the core.
    pub search: Option<Vec<String>>,
    /// The address of a server elsewhere.
    pub url: Option<String>,
    /// Whether that address may lie in a private network.
    pub allow_private: Option<bool>,
    /// A package of Node to install it from, `NAME@VERSION`.
    pub npm: Option<String>,
    /// A package of Python to install it from, `NAME==VERSION`.
    pub pypi: Option<String>,
    /// Variables of its environment.
    pub env: Option<BTreeMap<String, String>>,
    /// Variables of its environment that hold secrets, with the names of these.
    pub env_secrets: Option<BTreeMap<String, SecretName>>,
    /// The secret that is sent as a bearer token.
    pub token_secret: Option<SecretName>,
    /// Headers that hold secrets, with the names of these.
    pub header_secrets: Option<BTreeMap<String, SecretName>>,
    /// How one logs in to it with OAuth, where that is not found out.
    pub oauth: Option<McpOauth>,
    /// Whether tools that are new since the approval are taken on by themselves.
    pub accept_new: Option<bool>,
    /// Whether what it says about the effects of its tools counts; it does when absent.
    pub trust_annotations: Option<bool>,
    /// Which of the protocol's two ways to speak is tried.
    pub era: Option<McpEraChoice>,
    /// Who answers what it asks of a model; the core's setting when absent.
    pub sampling: Option<McpSampling>,
    /// Which folders it is told of.
    pub roots: Option<McpRoots>,
    /// How long a process without a call is kept; the core's setting when absent.
    pub idle_s: Option<u64>,
    /// What it asks for, besides the files of its own program and the secrets named here.
    pub permissions: Option<Vec<String>>,
    /// Its sandbox; the core's default when absent.
    pub sandbox: Option<SandboxLevel>,
    /// Which runs share a process; all when absent.
    pub isolation: Option<Isolation>,
    /// How much it may be asked to do and may use.
    pub limits: Option<AgentLimits>,
    /// Whether to approve all of this at once; then it may be called.
    pub approve: Option<bool>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::super::tests::survives;
    use super::*;

    #[test]
    fn m079_every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/mcp.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "McpServer" => survives::<McpServer>(data),
                "AddMcp" => survives::<AddMcp>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 2, "each message has an example");
    }

    #[test]
    fn m079_a_misspelt_request_is_noticed_and_an_answer_may_grow() {
        assert!(serde_json::from_str::<AddMcp>(r#"{"name":"a","comand":["b"]}"#).is_err());
        assert!(serde_json::from_str::<AddMcp>(r#"{"sampling":"me"}"#).is_err());
        let examples = include_str!("../../testdata/rest_v1/mcp.ndjson");
        let first = examples.lines().next().and_then(|line| line.strip_prefix("McpServer {"));
        let grown = format!("{{\"dreams\":2,{}", first.expect("a server"));
        assert!(serde_json::from_str::<McpServer>(&grown).is_ok());
    }
}
