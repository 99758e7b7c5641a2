//! What a provider declares of itself.

use serde::{Deserialize, Serialize};
use wharf_vocab::{Code, Digest, Fault, Isolation, ProviderId};

use super::{McpDetails, ProviderInput, ProviderLimits, ToolServer};

/// What a provider declares of itself, as far as the core acts on it or shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredManifest", into = "StoredManifest")]
pub struct Manifest {
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// How it is started.
    pub entrypoint: Entrypoint,
    /// What it asks for.
    pub permissions: Vec<String>,
    /// The limits it keeps to.
    pub limits: ProviderLimits,
    /// Which runs share a process, when it says so.
    pub isolation: Option<Isolation>,
    /// What it is.
    pub kind: ProviderKind,
}

/// What a provider is. It follows from the manifest, and what has a name stays of its kind while
/// the record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKind {
    /// A program that the core launches, on the agent wire.
    Agent(AgentDetails),
    /// The server of one tool, on the run wire.
    ToolServer(Box<ToolServer>),
    /// The server of tools of another protocol, launched or elsewhere.
    Mcp(Box<McpDetails>),
    /// It connects by itself, on the tool wire, under a name that its token grants.
    Operative,
}

/// What only an agent declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentDetails {
    /// What it says it can do.
    pub capabilities: Vec<String>,
    /// Whether it takes its connection as an inherited descriptor instead of a path and a token.
    pub inherits_connection: bool,
    /// Where its source comes from, as it says.
    pub source: Option<String>,
}

impl Manifest {
    /// What is known of an operative under a name. It declares nothing, so there is nothing to
    /// approve but its token.
    pub fn operative(id: &ProviderId) -> ProviderInput {
        let manifest = Self {
            name: id.to_string(),
            version: String::new(),
            description: "An operative: it connects by itself.".to_owned(),
            entrypoint: Entrypoint { program: String::new(), args: Vec::new() },
            permissions: Vec::new(),
            limits: ProviderLimits::default(),
            isolation: None,
            kind: ProviderKind::Operative,
        };
        let manifest_hash = Digest::of(&[b"operative", id.as_str().as_bytes()]);
        ProviderInput::Add { folder: String::new(), manifest_hash, manifest }
    }

    /// What a tool server declares of its tool; `None` if it is none.
    pub fn tool_server(&self) -> Option<&ToolServer> {
        match &self.kind {
            ProviderKind::ToolServer(server) => Some(server),
            ProviderKind::Agent(_) | ProviderKind::Mcp(_) | ProviderKind::Operative => None,
        }
    }

    /// What an MCP server declares; `None` if it is none.
    pub fn mcp(&self) -> Option<&McpDetails> {
        match &self.kind {
            ProviderKind::Mcp(details) => Some(details),
            ProviderKind::Agent(_) | ProviderKind::ToolServer(_) | ProviderKind::Operative => None,
        }
    }
}

/// What a provider is, without what it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderType {
    /// See [`ProviderKind::Agent`].
    Agent,
    /// See [`ProviderKind::ToolServer`].
    ToolServer,
    /// See [`ProviderKind::Mcp`].
    Mcp,
    /// See [`ProviderKind::Operative`].
    Operative,
}

impl ProviderType {
    /// The word for it in the audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::ToolServer => "tool_server",
            Self::Mcp => "mcp_server",
            Self::Operative => "operative",
        }
    }

    /// The words for it in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::ToolServer => "tool server",
            Self::Mcp => "MCP server",
            Self::Operative => "operative",
        }
    }

    /// The error that its files are not the ones that were approved.
    pub fn drifted(self, id: &ProviderId, difference: &[String]) -> Fault {
        let commands = match self {
            Self::ToolServer => "tools",
            Self::Mcp => "mcp",
            Self::Agent | Self::Operative => "agents",
        };
        let message = format!(
            "The files of {id} are not the ones that were approved: {}. Look at them, then approve \
             them with `wharf {commands} approve {id}`.",
            difference.join("; ")
        );
        Fault::new(Code::AgentDrifted, message)
    }
}

impl ProviderKind {
    /// What it is, without what it declares.
    pub fn of(&self) -> ProviderType {
        match self {
            Self::Agent(_) => ProviderType::Agent,
            Self::ToolServer(_) => ProviderType::ToolServer,
            Self::Mcp(_) => ProviderType::Mcp,
            Self::Operative => ProviderType::Operative,
        }
    }

    /// Whether the core launches it, or would, and an owner approves it before.
    pub fn is_launched(&self) -> bool {
        match self {
            Self::Agent(_) | Self::ToolServer(_) | Self::Mcp(_) => true,
            Self::Operative => false,
        }
    }
}

/// How a provider is started: a program and its arguments, never a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrypoint {
    /// The program: a path below the agent's folder when it has a slash, else looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

/// A manifest as the journal has it: what kind it is of is spread over fields.
#[derive(Serialize, Deserialize)]
struct StoredManifest {
    name: String,
    version: String,
    description: String,
    entrypoint: Entrypoint,
    permissions: Vec<String>,
    capabilities: Vec<String>,
    #[serde(default)]
    limits: ProviderLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    isolation: Option<Isolation>,
    #[serde(default)]
    inherits_connection: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<Box<ToolServer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mcp: Option<Box<McpDetails>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    operative: bool,
}

impl TryFrom<StoredManifest> for Manifest {
    type Error = &'static str;

    fn try_from(stored: StoredManifest) -> Result<Self, Self::Error> {
        let StoredManifest { capabilities, inherits_connection, source, .. } = stored;
        let kind = match (stored.server, stored.mcp, stored.operative) {
            (None, None, false) => {
                ProviderKind::Agent(AgentDetails { capabilities, inherits_connection, source })
            }
            (Some(server), None, false) => ProviderKind::ToolServer(server),
            (None, Some(details), false) => ProviderKind::Mcp(details),
            (None, None, true) => ProviderKind::Operative,
            _ => return Err("a manifest of several kinds of providers"),
        };
        Ok(Self {
            name: stored.name,
            version: stored.version,
            description: stored.description,
            entrypoint: stored.entrypoint,
            permissions: stored.permissions,
            limits: stored.limits,
            isolation: stored.isolation,
            kind,
        })
    }
}

impl From<Manifest> for StoredManifest {
    fn from(manifest: Manifest) -> Self {
        let mut details = AgentDetails::default();
        let (mut server, mut mcp, mut operative) = (None, None, false);
        match manifest.kind {
            ProviderKind::Agent(of_agent) => details = of_agent,
            ProviderKind::ToolServer(of_server) => server = Some(of_server),
            ProviderKind::Mcp(of_mcp) => mcp = Some(of_mcp),
            ProviderKind::Operative => operative = true,
        }
        Self {
            name: manifest.name,
            version: manifest.version,
            description: manifest.description,
            entrypoint: manifest.entrypoint,
            permissions: manifest.permissions,
            capabilities: details.capabilities,
            limits: manifest.limits,
            isolation: manifest.isolation,
            inherits_connection: details.inherits_connection,
            source: details.source,
            server,
            mcp,
            operative,
        }
    }
}
