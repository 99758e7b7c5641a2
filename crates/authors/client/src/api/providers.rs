//! Agents, tools with their servers, and operatives.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use reqwest::Method;
use serde_json::Value;
use wharf_protocol::sse::{self, SseMessage};
use wharf_vocab::{Code, ToolId};
use wharf_wire::rest_v1::{
    AddAgent, AddFailed, AddStep, AddTool, Agent, AgentLogLine, ApproveAgent, ErrorBody,
    FoundAgents, Operative, Page, Provider, ScanAgents, Tool, ToolDiff,
};

use crate::call::{Call, List};
use crate::client::{Client, MESSAGE_BYTES_MAX};
use crate::error::{Error, Result};

/// How long a log may say nothing at all, keep-alives included, before the core counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Agents, as [`Client::agents`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a>(pub(super) &'a Client);

impl Agents<'_> {
    /// All agents.
    pub fn list(&self) -> List<Agent> {
        List::new(self.0, &["v1", "agents"])
    }

    /// One agent.
    pub fn get(&self, id: &str) -> Call<Agent> {
        self.0.read_at(&["v1", "agents", id])
    }

    /// Looks for agents in a folder of the core's machine; nothing is added.
    pub fn scan(&self, scan: &ScanAgents) -> Call<FoundAgents> {
        self.0.post_to(&["v1", "agents", "scan"]).body(scan)
    }

    /// Adds the agent in a folder of the core's machine.
    pub fn add(&self, agent: &AddAgent) -> Call<Agent> {
        self.0.post_to(&["v1", "agents"]).body(agent)
    }

    /// Approves what an agent asks for.
    pub fn approve(&self, id: &str, terms: &ApproveAgent) -> Call<Agent> {
        self.0.post_to(&["v1", "agents", id, "approve"]).body(terms)
    }

    /// Takes an agent's approval back and stops it.
    pub fn revoke(&self, id: &str) -> Call<Agent> {
        self.0.post_to(&["v1", "agents", id, "revoke"])
    }

    /// Starts an agent; the answer does not wait until it runs.
    pub fn start(&self, id: &str) -> Call<Agent> {
        self.0.post_to(&["v1", "agents", id, "start"])
    }

    /// Stops an agent.
    pub fn stop(&self, id: &str) -> Call<Agent> {
        self.0.post_to(&["v1", "agents", id, "stop"])
    }

    /// Stops an agent and starts it again.
    pub fn restart(&self, id: &str) -> Call<Agent> {
        self.0.post_to(&["v1", "agents", id, "restart"])
    }

    /// Removes an agent; its folder stays.
    pub fn remove(&self, id: &str) -> Call<()> {
        self.0.delete_at(&["v1", "agents", id])
    }

    /// The last lines of an agent's log.
    pub fn logs(&self, id: &str, lines: u64) -> Call<Page<AgentLogLine>> {
        let lines = lines.to_string();
        self.0.read_at(&["v1", "agents", id, "logs"]).query("lines", Some(&lines))
    }

    /// The last lines of an agent's log, and then new ones until its process ends.
    pub async fn follow_logs(&self, id: &str, lines: u64) -> Result<LogFollower> {
        LogFollower::open(self.0, &["v1", "agents", id, "logs"], lines).await
    }
}

/// Tools, as [`Client::tools`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a>(pub(super) &'a Client);

impl Tools<'_> {
    /// All tools.
    pub fn list(&self) -> List<Tool> {
        List::new(self.0, &["v1", "tools"])
    }

    /// One tool.
    pub fn get(&self, id: &ToolId) -> Call<Tool> {
        self.0.read_at(&tool_path(id, &[]))
    }

    /// Adds the tool server in a folder of the core's machine. Installing its packages may take
    /// longer than a call does; [`Tools::add_telling`] waits for them.
    pub fn add(&self, tool: &AddTool) -> Call<Tool> {
        self.0.post_to(&["v1", "tools"]).body(tool)
    }

    /// The same, and each step is told while it is under way; the answer as the core wrote it.
    pub async fn add_telling(&self, tool: &AddTool, mut told: impl FnMut(&str)) -> Result<Value> {
        let request = self.0.request(Method::POST, &["v1", "tools"]).json(tool);
        let response = self.0.send(request.header("accept", "text/event-stream")).await?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            // A core that knows no steps.
            return self.0.read(response).await;
        }
        let mut events = Events::new(response.bytes_stream());
        while let Some(SseMessage { event, data, .. }) = events.next().await? {
            match &*event {
                "step" => {
                    let step: AddStep = serde_json::from_str(&data).map_err(|_| unreadable())?;
                    told(&step.text);
                }
                "tool" => return serde_json::from_str(&data).map_err(|_| unreadable()),
                "failed" => {
                    let AddFailed { status, error } =
                        serde_json::from_str(&data).map_err(|_| unreadable())?;
                    return Err(Error::answered(status, ErrorBody { error }));
                }
                // Events of later versions are skipped.
                _ => {}
            }
        }
        Err(Error::new(Code::CoreUnreachable, "the core broke off; see what became of the tool"))
    }

    /// How a tool's definition differs from the one that was approved.
    pub fn diff(&self, id: &ToolId) -> Call<ToolDiff> {
        self.0.read_at(&tool_path(id, &["diff"]))
    }

    /// Approves a tool server on these terms.
    pub fn approve_server(&self, id: &ToolId, terms: &ApproveAgent) -> Call<Tool> {
        self.0.post_to(&tool_path(id, &["approve"])).body(terms)
    }

    /// Approves the definition that an agent's tool has now.
    pub fn approve(&self, id: &ToolId) -> Call<Tool> {
        self.0.post_to(&tool_path(id, &["approve"]))
    }

    /// Allows calls of a tool that has a server of its own.
    pub fn enable(&self, id: &ToolId) -> Call<Tool> {
        self.0.post_to(&tool_path(id, &["enable"]))
    }

    /// Stops a tool's server and forbids calls of it.
    pub fn disable(&self, id: &ToolId) -> Call<Tool> {
        self.0.post_to(&tool_path(id, &["disable"]))
    }

    /// Stops a tool's server and starts it again.
    pub fn restart(&self, id: &ToolId) -> Call<Tool> {
        self.0.post_to(&tool_path(id, &["restart"]))
    }

    /// Removes a tool server; its folder stays.
    pub fn remove(&self, id: &ToolId) -> Call<()> {
        Call::new(self.0, Method::DELETE, &tool_path(id, &[]))
    }

    /// The last lines of the log of a tool's server.
    pub fn logs(&self, id: &ToolId, lines: u64) -> Call<Page<AgentLogLine>> {
        let lines = lines.to_string();
        self.0.read_at(&tool_path(id, &["logs"])).query("lines", Some(&lines))
    }

    /// The last lines of the log of a tool's server, and then new ones until its process ends.
    pub async fn follow_logs(&self, id: &ToolId, lines: u64) -> Result<LogFollower> {
        LogFollower::open(self.0, &tool_path(id, &["logs"]), lines).await
    }

    /// What the log of a tool's server says of one run.
    pub fn logs_of_run(&self, id: &ToolId, run: &str, lines: u64) -> Call<Page<AgentLogLine>> {
        self.logs(id, lines).query("run", Some(run))
    }
}

/// The path of a tool's route: both parts of the id, and what follows them.
fn tool_path<'a>(tool: &'a ToolId, rest: &[&'a str]) -> Vec<&'a str> {
    let (namespace, name) = tool.as_str().split_once('/').unwrap_or((tool.as_str(), ""));
    ["v1", "tools", namespace, name].into_iter().chain(rest.iter().copied()).collect()
}

/// Providers of every kind in one shape, as [`Client::providers`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Providers<'a>(pub(super) &'a Client);

impl Providers<'_> {
    /// All providers.
    pub fn list(&self) -> List<Provider> {
        List::new(self.0, &["v1", "providers"])
    }

    /// One provider.
    pub fn get(&self, id: &str) -> Call<Provider> {
        self.0.read_at(&["v1", "providers", id])
    }

    /// Lets a provider finish what is under way and stops it then; the answer does not wait for
    /// that.
    pub fn drain(&self, id: &str) -> Call<Provider> {
        self.0.post_to(&["v1", "providers", id, "drain"])
    }
}

/// Operatives, as [`Client::operatives`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Operatives<'a>(pub(super) &'a Client);

impl Operatives<'_> {
    /// All operatives that the core knows.
    pub fn list(&self) -> List<Operative> {
        List::new(self.0, &["v1", "operatives"])
    }

    /// Forgets an operative that is not connected.
    pub fn forget(&self, name: &str) -> Call<()> {
        self.0.delete_at(&["v1", "operatives", name])
    }
}

/// Messages of a stream, until it ends.
struct Events {
    pieces: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    parser: sse::Parser,
}

impl Events {
    fn new(pieces: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static) -> Self {
        Self { pieces: Box::pin(pieces), parser: sse::Parser::new(MESSAGE_BYTES_MAX) }
    }

    async fn next(&mut self) -> Result<Option<SseMessage>> {
        loop {
            if let Some(message) = self.parser.pop() {
                return Ok(Some(message));
            }
            match tokio::time::timeout(SILENCE_MAX, self.pieces.next()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(piece))) => self.parser.push(&piece).map_err(|_| unreadable())?,
                Ok(Some(Err(_))) | Err(_) => {
                    let message = "the core broke off what it was telling";
                    return Err(Error::new(Code::CoreUnreachable, message));
                }
            }
        }
    }
}

/// A log that is followed to its end.
pub struct LogFollower(Events);

impl LogFollower {
    pub(super) async fn open(client: &Client, path: &[&str], lines: u64) -> Result<Self> {
        let request = client.request(Method::GET, path);
        let request = request.query(&[("lines", lines.to_string()), ("follow", "true".to_owned())]);
        Ok(Self(Events::new(client.stream(request).await?)))
    }

    /// The next line, as the core wrote it (an [`AgentLogLine`]); none at the end.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        while let Some(message) = self.0.next().await? {
            // Events of later versions are skipped.
            if message.event == "log" {
                return serde_json::from_str(&message.data).map(Some).map_err(|_| unreadable());
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for LogFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFollower").finish_non_exhaustive()
    }
}

fn unreadable() -> Error {
    Error::new(Code::CoreInternal, "the core sent a line that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Scripted, ScriptedClient as _};
    use serde_json::json;

    #[test]
    fn both_parts_of_an_id_are_parts_of_the_path() {
        let id = ToolId::new("text/shout@1").expect("valid");
        assert_eq!(tool_path(&id, &["logs"]), ["v1", "tools", "text", "shout@1", "logs"]);
        let id = ToolId::new("dev.example.hello/echo").expect("valid");
        assert_eq!(tool_path(&id, &[]), ["v1", "tools", "dev.example.hello", "echo"]);
    }

    async fn followed(reply: Reply) -> (Vec<String>, Result<()>) {
        let mut scripted = Scripted::new();
        let mut reply = Some(reply);
        scripted.start(move |_| reply.take().unwrap_or(Reply::Break)).await;
        let mut texts = Vec::new();
        let client = scripted.client();
        let ended = async {
            let mut log = client.agents().follow_logs("dev.wharf.hello", 5).await?;
            while let Some(line) = log.next().await? {
                texts.push(line["text"].as_str().expect("text").to_owned());
            }
            Ok(())
        }
        .await;
        let asked = scripted.seen().remove(0).line;
        assert_eq!(asked, "GET /v1/agents/dev.wharf.hello/logs?lines=5&follow=true");
        (texts, ended)
    }

    #[tokio::test]
    async fn a_log_is_followed_to_its_end() {
        let one = json!({"at": "2026-11-15T09:00:00.000Z", "source": "stdout", "text": "one"});
        let two = json!({"at": "2026-11-15T09:00:00.000Z", "source": "stderr", "text": "two"});
        let text = format!(
            "event: log\ndata: {one}\n\n: still here\n\nevent: telepathy\ndata: 7\n\n\
             event: log\ndata: {two}\n\n"
        );
        assert_eq!(followed(Reply::Events(text)).await, (vec!["one".into(), "two".into()], Ok(())));
    }

    async fn added(reply: Reply) -> (Vec<String>, Result<Value>) {
        let mut scripted = Scripted::new();
        let mut reply = Some(reply);
        scripted.start(move |_| reply.take().unwrap_or(Reply::Break)).await;
        let mut told = Vec::new();
        let tool = AddTool { folder: "/srv/shout".to_owned(), ..AddTool::default() };
        let client = scripted.client();
        let ended = client.tools().add_telling(&tool, |step| told.push(step.to_owned())).await;
        (told, ended)
    }

    #[tokio::test]
    async fn what_is_done_while_a_tool_is_added_is_told_as_it_comes() {
        let step = "event: step\ndata: {\"text\":\"installing six 1.17.0\"}\n\n: still here\n\n";
        let done = format!("{step}event: later\ndata: 7\n\nevent: tool\ndata: {{\"x\":1}}\n\n");
        let told = vec!["installing six 1.17.0".to_owned()];
        assert_eq!(added(Reply::Events(done)).await, (told.clone(), Ok(json!({"x": 1}))));

        let error = json!({"code": "tool.environment_failed", "message": "no", "retryable": false});
        let failed = json!({"status": 422, "error": error});
        let failed = format!("{step}event: failed\ndata: {failed}\n\n");
        let (heard, ended) = added(Reply::Events(failed)).await;
        let ended = ended.expect_err("it failed");
        assert!(heard == told && ended.is(Code::ToolEnvironmentFailed), "{ended}");
        assert_eq!(ended.status(), 422);

        let (_, ended) = added(Reply::Events(step.to_owned())).await;
        assert!(ended.expect_err("broken off").is(Code::CoreUnreachable));
        let (_, ended) = added(Reply::Json(200, json!({"x": 2}))).await;
        assert_eq!(ended, Ok(json!({"x": 2})), "an older core tells no steps");
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_followed_says_why() {
        let error = json!({"code": "agent.not_found", "message": "no", "retryable": false});
        let (_, ended) = followed(Reply::Json(404, json!({"error": error}))).await;
        assert!(ended.expect_err("refused").is(Code::AgentNotFound));
        let (_, ended) = followed(Reply::Events("event: log\ndata: {\n\n".into())).await;
        assert!(ended.expect_err("unreadable").is(Code::CoreInternal));
    }
}
