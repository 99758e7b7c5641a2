//! What is worked on: the tools of a folder or a file, or an agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_client::Client;
use wharf_vocab::{Code, ProviderState, SandboxLevel, ToolId};
use wharf_wire::rest_v1::{AddAgent, AddTool, ApproveAgent, Tool};

use crate::commands::tools::add::{others, traceback};
use crate::commands::{CliError, Result};
use crate::{inputs, plain};

/// The manifest that makes a folder one of an agent.
const AGENT_MANIFEST: &str = "opensentience.agent.json";
/// How long an agent may take to offer its tools.
const AGENT_WITHIN: Duration = Duration::from_secs(20);
const AGENT_LOOK: Duration = Duration::from_millis(50);

/// What is worked on.
#[derive(Debug)]
pub(super) struct DevProvider {
    /// Its folder or file, by its whole path.
    path: String,
    folder: PathBuf,
    is_agent: bool,
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
        let whole = inputs::canonical_path(path)?;
        let folder = match path.is_dir() {
            true => PathBuf::from(&whole),
            false => Path::new(&whole).parent().map(Path::to_path_buf).unwrap_or_default(),
        };
        let is_agent = path.is_dir() && folder.join(AGENT_MANIFEST).exists();
        Ok(Self { path: whole, folder, is_agent, namespace, sandbox })
    }

    /// The folder whose files count.
    pub(super) fn watched(&self) -> &Path {
        &self.folder
    }

    /// Whether it is an agent.
    pub(super) fn is_agent(&self) -> bool {
        self.is_agent
    }

    /// The ids of all that could be meant and is there already.
    pub(super) async fn known(&self, client: &Client) -> Result<Vec<String>> {
        if self.is_agent {
            let agents = client.agents().list().all().await?;
            return Ok(agents.iter().map(|agent| agent.agent_id.to_string()).collect());
        }
        let tools = client.tools().list().all().await?;
        Ok(tools.iter().map(|tool| tool.tool_id.to_string()).collect())
    }

    /// Adds and approves it as it is now; what it offers then.
    pub(super) async fn put(&self, client: &Client) -> std::result::Result<Offered, PutError> {
        if self.is_agent {
            return self.put_agent(client).await;
        }
        let body = AddTool {
            folder: self.path.clone(),
            namespace: self.namespace.clone(),
            approve: Some(true),
            permissions: None,
            sandbox: self.sandbox,
        };
        let first = client.tools().add(&body).await?;
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
        let until = tokio::time::Instant::now() + AGENT_WITHIN;
        loop {
            let agent = agents.get(&id).await?;
            match agent.state {
                ProviderState::Running => break,
                ProviderState::Crashed | ProviderState::BackingOff => {
                    let why = agent.reason.unwrap_or_else(|| "it crashed".to_owned());
                    let message = format!("{id} does not run: {why}");
                    return Err(CliError::new(Code::AgentStartFailed, message).into());
                }
                _ if tokio::time::Instant::now() > until => {
                    let message = format!("{id} has not started within 20 s");
                    return Err(CliError::new(Code::AgentStartFailed, message).into());
                }
                _ => tokio::time::sleep(AGENT_LOOK).await,
            }
        }
        let tools = client.tools().list().all().await?;
        let own = tools.into_iter().filter(|tool| tool.provider.as_str() == id);
        Ok(Offered::new(Some(id.clone()), own.collect()))
    }

    /// Removes it, or one of its tools.
    pub(super) async fn remove(&self, client: &Client, id: &str) -> Result<()> {
        if self.is_agent {
            client.agents().stop(id).await?;
            client.agents().remove(id).await?;
            return Ok(());
        }
        let id = ToolId::new(id).map_err(|error| CliError::usage(error.to_string()))?;
        client.tools().disable(&id).await?;
        client.tools().remove(&id).await?;
        Ok(())
    }
}

/// The tools that can be called now.
#[derive(Debug, Default)]
pub(super) struct Offered {
    agent: Option<String>,
    pub(super) tools: Vec<Tool>,
}

impl Offered {
    fn new(agent: Option<String>, mut tools: Vec<Tool>) -> Self {
        tools.sort_by(|one, two| one.tool_id.cmp(&two.tool_id));
        Self { agent, tools }
    }

    /// What is removed at the end: the agent, or each tool.
    pub(super) fn ids(&self) -> Vec<String> {
        match &self.agent {
            Some(agent) => vec![agent.clone()],
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
