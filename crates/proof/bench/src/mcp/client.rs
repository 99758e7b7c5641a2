//! The least MCP client: one connection, and in the legacy era a session on it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::era::{Era, SESSION_ID};
use crate::http::{Answer, Client};
use crate::report::per_second;

/// Somewhere MCP is spoken.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) token: String,
    pub(super) era: Era,
}

/// A client of one endpoint.
pub(super) struct McpClient {
    client: Client,
    path: String,
    era: Era,
    session: Option<String>,
    /// Requests that were made.
    count: u64,
}

/// A request, written once and sent often, each time with an id of its own.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    headers: String,
    body: String,
}

impl McpClient {
    /// Connects, and begins a session where there are sessions.
    pub(super) async fn connect(to: &Endpoint) -> anyhow::Result<Self> {
        let client = Client::connect(to.address, &to.token).await?;
        let mut this = Self { client, path: to.path.clone(), era: to.era, session: None, count: 0 };
        if to.era == Era::Legacy {
            this.begin().await?;
        }
        Ok(this)
    }

    /// Begins a session; the one before is left as it is.
    pub(super) async fn begin(&mut self) -> anyhow::Result<()> {
        self.session = None;
        let initialize = self.prepare("initialize", self.era.initialize());
        let answer = self.send(&initialize).await?;
        self.session = answer.header(SESSION_ID).map(str::to_owned);
        let headers = self.prepare("notifications/initialized", json!({})).headers;
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = self.client.exchange("POST", &self.path, &headers, body).await?;
        ensure!(answer.status == 202, "a notification was answered with {}", answer.status);
        Ok(())
    }

    pub(super) fn prepare(&self, method: &str, params: Value) -> Prepared {
        let headers = self.era.headers(method, &params, self.session.as_deref());
        Prepared { headers, body: self.era.body(method, params) }
    }

    /// Sends a request and looks at nothing of the answer but its status.
    pub(super) async fn fetch(&mut self, prepared: &Prepared) -> anyhow::Result<Answer> {
        let answer = self.post(prepared).await?;
        ensure!(answer.status == 200, "{} answered {}", self.path, answer.status);
        Ok(answer)
    }

    async fn post(&mut self, Prepared { headers, body }: &Prepared) -> anyhow::Result<Answer> {
        let body = self.numbered(body);
        self.client.exchange("POST", &self.path, headers, &body).await
    }

    /// A body with the next id. A request with an id that was there before may be taken for the
    /// same request.
    fn numbered(&mut self, body: &str) -> String {
        self.count += 1;
        format!(r#"{{"id":{},{body}"#, self.count)
    }

    /// Sends a request; an answer that is no result is an error.
    pub(super) async fn send(&mut self, prepared: &Prepared) -> anyhow::Result<Answer> {
        let answer = self.post(prepared).await?;
        let has = |what: &[u8]| answer.body.windows(what.len()).any(|window| window == what);
        if answer.status != 200 || !has(br#""result":"#) || has(br#""isError":true"#) {
            let text = String::from_utf8_lossy(&answer.body);
            anyhow::bail!("{} answered {}: {text}", self.path, answer.status);
        }
        Ok(answer)
    }

    /// The same, with the result.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let answer = self.send(&self.prepare(method, params)).await?;
        let text = std::str::from_utf8(&answer.body)?;
        let data = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        let mut message: Value = serde_json::from_str(data.unwrap_or(text))?;
        message.get_mut("result").map(Value::take).context("no result")
    }

    /// Opens a stream that nothing is said on; it is open as long as this client is kept.
    pub(super) async fn listen(&mut self) -> anyhow::Result<()> {
        let answer = match self.era {
            Era::Legacy => {
                let headers = self.prepare("", json!({})).headers;
                self.client.open("GET", &self.path, &headers, "").await?
            }
            Era::Modern => {
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                let Prepared { headers, body } = self.prepare("subscriptions/listen", filter);
                let body = self.numbered(&body);
                self.client.open("POST", &self.path, &headers, &body).await?
            }
        };
        ensure!(answer.status == 200, "a stream was answered with {}", answer.status);
        Ok(())
    }
}

/// So many requests one after the other; how long each took.
pub(super) async fn one_by_one(
    client: &mut McpClient,
    request: &Prepared,
    count: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        client.send(request).await?;
        took.push(started.elapsed());
    }
    Ok(took)
}

/// So many requests by all of these clients at once; how many there were a second.
pub(super) async fn at_once(
    clients: Vec<(McpClient, Prepared)>,
    count: usize,
) -> anyhow::Result<f64> {
    let each = (count / clients.len()).max(1);
    let done = each * clients.len();
    let started = Instant::now();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|(mut client, request)| {
            tokio::spawn(async move { one_by_one(&mut client, &request, each).await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(per_second(done, started.elapsed()))
}
