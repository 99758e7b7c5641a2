//! What is worked on: the tools of a folder or a file, an agent, or an MCP server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_client::Client;
use wharf_vocab::{Code, ProviderState, SandboxLevel, ToolId, ToolState};
use wharf_wire::rest_v1::{AddAgent, AddMcp, AddTool, ApproveAgent, Tool};

use crate::commands::tools::add::{others, step, traceback};
use crate::commands::{CliError, Output, Result};
use crate::{inputs, plain};

/// The manifest that makes a folder one of an agent.
const AGENT_MANIFEST: &str = "opensentience.agent.json";
/// The manifest that makes a folder one of an MCP server.
const MCP_MANIFEST: &str = "wharf.mcp.toml";
/// How long an agent or an MCP server may take to offer its tools.
const START_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a provider is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DevKind {
    /// Tools of a folder or a file.
    Tools,
    Agent,
    Mcp,
}

/// What is worked on.
#[derive(Debug)]
pub(super) struct DevProvider {
    /// Its folder or file, by its whole path.
    path: String,
    folder: PathBuf,
    kind: DevKind,
    namespace: Option<String>,
    sandbox: Option<SandboxLevel>,
}

/// Why it could not be put into its place, and the traceback where there is one.
#[derive(Debug)]
pub(super) struct PutError {
    pub(super) error: CliError,
    pub(super) lines: Vec<String>,
}

impl From<wharf_client::Error> for PutError {
    fn from(error: wharf_client::Error) -> Self {
        let lines = traceback(&error);
        Self { error: error.into(), lines }
    }
}

impl From<CliError> for PutError {
    fn from(error: CliError) -> Self {
        Self { error, lines: Vec::new() }
    }
}

impl DevProvider {
    /// Looks at what was typed.
    pub(super) fn find(
        path: &Path,
        namespace: Option<String>,
        sandbox: Option<SandboxLevel>,
    ) -> Result<Self> {
        if !path.exists() {
            let message = format!("there is no folder and no file {}", path.display());
            return Err(CliError::usage(message));
        }
        let whole = inputs::canonical_path(path)?;
        let folder = match path.is_dir() {
            true => PathBuf::from(&whole),
            false => Path::new(&whole).parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        let has = |manifest: &str| path.is_dir() && folder.join(manifest).exists();
        let kind = match () {
            () if has(AGENT_MANIFEST) => DevKind::Agent,
            () if has(MCP_MANIFEST) => DevKind::Mcp,
            () => DevKind::Tools,
        };
        Ok(Self { path: whole, folder, kind, namespace, sandbox })
    }

    /// The folder whose files count.
    pub(super) fn watched(&self) -> &Path {
        &self.folder
    }

    /// What it is.
    pub(super) fn kind(&self) -> DevKind {
        self.kind
    }

    /// The ids of all that could be meant and is there already.
    pub(super) async fn known(&self, client: &Client) -> Result<Vec<String>> {
        Ok(match self.kind {
            DevKind::Agent => {
                let agents = client.agents().list().all().await?;
                agents.iter().map(|agent| agent.agent_id.to_string()).collect()
            }
            DevKind::Mcp => {
                let servers = client.mcp_servers().list().all().await?;
                servers.iter().map(|server| server.server_id.to_string()).collect()
            }
            DevKind::Tools => {
                let tools = client.tools().list().all().await?;
                tools.iter().map(|tool| tool.tool_id.to_string()).collect()
            }
        })
    }

    /// Adds and approves it as it is now; what it offers then.
    pub(super) async fn put(
        &self,
        client: &Client,
        output: Output,
    ) -> std::result::Result<Offered, PutError> {
        match self.kind {
            DevKind::Agent => return self.put_agent(client).await,
            DevKind::Mcp => return self.put_mcp(client).await,
            DevKind::Tools => {}
        }
        let body = AddTool {
            folder: self.path.clone(),
            namespace: self.namespace.clone(),
            approve: Some(true),
            permissions: None,
            sandbox: self.sandbox,
        };
        let raw = client.tools().add_telling(&body, |line| step(output, line)).await?;
        let first: Tool = crate::output::typed(raw)?;
        let mut tools = others(client, &first).await?;
        tools.push(first);
        Ok(Offered::new(None, tools))
    }

    async fn put_agent(&self, client: &Client) -> std::result::Result<Offered, PutError> {
        let agents = client.agents();
        let added = agents.add(&AddAgent { folder: self.path.clone() }).await?;
        let id = added.agent_id.to_string();
        let terms = ApproveAgent {
            all: Some(true),
            manifest_hash: Some(added.manifest_hash.clone()),
            sandbox: self.sandbox,
            ..ApproveAgent::default()
        };
        agents.approve(&id, &terms).await?;
        agents.start(&id).await?;
        let until = tokio::time::Instant::now() + START_WITHIN;
        loop {
            let agent = agents.get(&id).await?;
            match agent.state {
                ProviderState::Running => break,
                state => look_again(&id, state, agent.reason, until)?,
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let own = own_tools(client, &id).await?;
        Ok(Offered::new(Some(id), own))
    }

    /// Every change of its author counts as seen, also of what its tools say of themselves.
    async fn put_mcp(&self, client: &Client) -> std::result::Result<Offered, PutError> {
        let servers = client.mcp_servers();
        let body = AddMcp { folder: Some(self.path.clone()), ..AddMcp::default() };
        let added = servers.add(&body).await?;
        let id = added.server_id.to_string();
        let terms = ApproveAgent {
            all: Some(true),
            manifest_hash: Some(added.manifest_hash.clone()),
            sandbox: self.sandbox,
            ..ApproveAgent::default()
        };
        servers.approve(&id, &terms).await?;
        let until = tokio::time::Instant::now() + START_WITHIN;
        loop {
            let server = servers.get(&id).await?;
            match server.state {
                ProviderState::Running if server.listed => break,
                ProviderState::Running => look_again(&id, ProviderState::Starting, None, until)?,
                state => look_again(&id, state, server.reason, until)?,
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        for tool in own_tools(client, &id).await? {
            if tool.state == ToolState::Quarantined {
                client.tools().approve(&tool.tool_id).await?;
            }
        }
        let own = own_tools(client, &id).await?;
        Ok(Offered::new(Some(id), own))
    }

    /// Removes it, or one of its tools.
    pub(super) async fn remove(&self, client: &Client, id: &str) -> Result<()> {
        match self.kind {
            DevKind::Agent => {
                client.agents().stop(id).await?;
                client.agents().remove(id).await?;
                return Ok(());
            }
            DevKind::Mcp => {
                client.mcp_servers().stop(id).await?;
                client.mcp_servers().remove(id).await?;
                return Ok(());
            }
            DevKind::Tools => {}
        }
        let id = ToolId::new(id).map_err(|error| CliError::usage(error.to_string()))?;
        client.tools().disable(&id).await?;
        client.tools().remove(&id).await?;
        Ok(())
    }
}

/// The tools of a provider.
async fn own_tools(client: &Client, id: &str) -> Result<Vec<Tool>> {
    let mut tools = client.tools().list().all().await?;
    tools.retain(|tool| tool.provider.as_str() == id);
    Ok(tools)
}

/// Whether to look once more at a provider that does not run yet.
fn look_again(
    id: &str,
    state: ProviderState,
    reason: Option<String>,
    until: tokio::time::Instant,
) -> std::result::Result<(), PutError> {
    let message = match state {
        ProviderState::Crashed | ProviderState::BackingOff => {
            let why = reason.unwrap_or_else(|| "it crashed".to_owned());
            format!("{id} does not run: {why}")
        }
        _ if tokio::time::Instant::now() > until => {
            format!("{id} has not started within {} s", START_WITHIN.as_secs())
        }
        _ => return Ok(()),
    };
    Err(CliError::new(Code::AgentStartFailed, message).into())
}

/// The tools that can be called now.
#[derive(Debug, Default)]
pub(super) struct Offered {
    /// What they belong to, if that is removed as one.
    provider: Option<String>,
    pub(super) tools: Vec<Tool>,
}

impl Offered {
    fn new(provider: Option<String>, mut tools: Vec<Tool>) -> Self {
        tools.sort_by(|one, two| one.tool_id.cmp(&two.tool_id));
        Self { provider, tools }
    }

    /// What is removed at the end: the agent, the server, or each tool.
    pub(super) fn ids(&self) -> Vec<String> {
        match &self.provider {
            Some(provider) => vec![provider.clone()],
            None => self.tools.iter().map(|tool| tool.tool_id.to_string()).collect(),
        }
    }

    /// What is new in it, in a few words.
    pub(super) fn news(&self, before: &Self) -> String {
        let ids = |of: &Self| -> Vec<String> {
            of.tools.iter().map(|tool| tool.tool_id.to_string()).collect()
        };
        let (old, now) = (ids(before), ids(self));
        let listed =
            |ids: Vec<&String>| ids.iter().map(|id| plain::line(id)).collect::<Vec<_>>().join(", ");
        let new = listed(now.iter().filter(|id| !old.contains(id)).collect());
        let gone = listed(old.iter().filter(|id| !now.contains(id)).collect());
        let same = listed(now.iter().filter(|id| old.contains(id)).collect());
        let parts = [("ready", same), ("new", new), ("gone", gone)];
        let parts = parts.into_iter().filter(|(_, ids)| !ids.is_empty());
        let parts: Vec<_> = parts.map(|(word, ids)| format!("{ids} {word}")).collect();
        if parts.is_empty() { "it offers no tools".to_owned() } else { parts.join("; ") }
    }

    /// The tools, a line each.
    pub(super) fn list(&self) -> String {
        let line = |tool: &Tool| {
            let inputs = tool.input_schema.get("properties").and_then(|inputs| inputs.as_object());
            let inputs = inputs.into_iter().flatten().map(|(name, _)| format!(" {name}=…"));
            let inputs: String = inputs.collect();
            let about = plain::cut(&tool.description, 80);
            format!("  {}{}  {about}\n", plain::line(short(tool)), plain::line(&inputs))
        };
        self.tools.iter().map(line).collect()
    }

    /// The tool that a typed name means: its id, its name, or the beginning of one.
    pub(super) fn find(&self, typed: &str) -> Result<&Tool> {
        let exact = |tool: &&Tool| tool.tool_id.as_str() == typed || short(tool) == typed;
        if let Some(tool) = self.tools.iter().find(exact) {
            return Ok(tool);
        }
        let begins = |tool: &&Tool| !typed.is_empty() && short(tool).starts_with(typed);
        let fitting: Vec<&Tool> = self.tools.iter().filter(begins).collect();
        match fitting[..] {
            [one] => Ok(one),
            _ => {
                let names: Vec<_> =
                    self.tools.iter().map(|tool| plain::line(short(tool))).collect();
                let message = format!("there is no tool {typed:?} here; try {}", names.join(", "));
                Err(CliError::new(Code::ToolNotFound, message))
            }
        }
    }
}

/// The name by which a tool is called here.
pub(super) fn short(tool: &Tool) -> &str {
    let id = tool.tool_id.as_str();
    let name = id.split_once('/').map_or(id, |(_, name)| name);
    name.split_once('@').map_or(name, |(name, _)| name)
}
