//! The way to a core's MCP endpoint, which may be found at another address when it comes back.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;
use tokio::sync::mpsc;
use wharf_client::{Client, Locator};
use wharf_protocol::mcp::{McpBridgeBody, McpBridgeNews, McpBridgeRequest};
use wharf_wire::mcp_v1::headers;

use crate::commands::{Output, Result};
use crate::plain;

use super::McpBridgeArgs;

/// How long the head of an answer may take: the core sends it at once, or when a call that is
/// quick is over.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Streams say something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a core that was started may take before another one is.
const START_AGAIN: Duration = Duration::from_secs(60);
/// Where a core that was started here says what it has to say, in its home.
const START_LOG: &str = "up.log";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The way to a core.
pub(super) struct CoreDoor {
    locator: Locator,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    world: Option<String>,
    client: Mutex<Option<Client>>,
    starts: bool,
    started: Mutex<Option<Instant>>,
    output: Output,
}

impl CoreDoor {
    /// The way that the options name. A core that is away may come; everything else that is wrong
    /// stays so.
    pub(super) fn new(locator: Locator, args: &McpBridgeArgs, output: Output) -> Result<Self> {
        let mut path = vec!["mcp".to_owned()];
        path.extend(args.provider.iter().flat_map(|id| id.split('/')).map(str::to_owned));
        let mut query = Vec::new();
        query.extend(args.world.clone().map(|world| ("world", world)));
        if !args.tools.is_empty() {
            query.push(("tools", args.tools.join(",")));
        }
        let patience = args.patience.map(|time| format!("{}ms", time.as_millis()));
        query.extend(patience.map(|patience| ("patience", patience)));
        if args.detach {
            query.push(("detach", "true".to_owned()));
        }
        let door = Self {
            locator,
            path,
            query,
            world: args.world.clone(),
            client: Mutex::new(None),
            starts: args.start,
            started: Mutex::new(None),
            output,
        };
        match door.client() {
            Err(error) if !error.is_outage() => Err(error.into()),
            _ => Ok(door),
        }
    }

    /// Whom to ask, as of now.
    fn client(&self) -> wharf_client::Result<Client> {
        let known = self.known().clone();
        let found = match known {
            Some(known) => known.found_again(),
            None => Client::new(self.locator.clone()),
        };
        match found {
            Ok(found) => {
                *self.known() = Some(found.clone());
                Ok(found)
            }
            Err(error) => {
                if error.is_outage() && self.starts {
                    self.start_core();
                }
                Err(error)
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock()
    }

    /// Makes a request, and tells all that comes of it.
    pub(super) async fn ask(
        &self,
        exchange: u64,
        request: McpBridgeRequest,
        heard: mpsc::Sender<(u64, McpBridgeNews)>,
    ) {
        let told = Told { exchange, heard };
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => {
                return told.tell(McpBridgeNews::Unreached(error.message().to_owned())).await;
            }
        };
        let sent = self.prepared(&client, request).send();
        let last = match tokio::time::timeout(HEAD_TIMEOUT, sent).await {
            Ok(Ok(answer)) => told.pass_on(answer).await,
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                if self.starts {
                    self.start_core();
                }
                McpBridgeNews::Unreached(client.lost(&error).message().to_owned())
            }
            Ok(Err(_)) | Err(_) => McpBridgeNews::Broke,
        };
        told.tell(last).await;
    }

    fn prepared(&self, client: &Client, request: McpBridgeRequest) -> RequestBuilder {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let at = |method| client.request(method, &path).query(&self.query);
        let with = |request: RequestBuilder, more: Vec<(String, String)>| {
            more.into_iter().fold(request, |request, (name, value)| request.header(name, value))
        };
        match request {
            McpBridgeRequest::Post { headers, body } => {
                let accept = format!("{JSON}, {EVENTS}");
                let request = at(Method::POST).header(ACCEPT, accept).header(CONTENT_TYPE, JSON);
                with(request, headers).body(body)
            }
            McpBridgeRequest::Get { headers } => {
                with(at(Method::GET).header(ACCEPT, EVENTS), headers)
            }
            McpBridgeRequest::Delete { headers } => with(at(Method::DELETE), headers),
            McpBridgeRequest::CancelRun { run_id } => {
                let path = ["v1", "runs", &run_id, "cancel"];
                let world = self.world.as_ref().map(|world| [("world", world)]);
                let request = client
                    .request(Method::POST, &path)
                    .query(&world.iter().flatten().collect::<Vec<_>>());
                request.json(&json!({"reason": "The MCP client does not want it any more."}))
            }
        }
    }

    /// Starts a core for the home, unless that was done a moment ago. It outlives this program.
    fn start_core(&self) {
        let Ok(home) = self.locator.home() else { return };
        let mut started = self.started.lock();
        if self.locator.url.is_some() || started.is_some_and(|at| at.elapsed() < START_AGAIN) {
            return;
        }
        *started = Some(Instant::now());
        let log = home.path().join(START_LOG);
        let shown = plain::line(&log.display().to_string());
        let begun = (|| {
            DirBuilder::new().recursive(true).mode(0o700).create(home.path())?;
            let log = File::options().append(true).create(true).mode(0o600).open(&log)?;
            let mut command = tokio::process::Command::new(std::env::current_exe()?);
            command.arg("up").arg("--home").arg(home.path());
            // Signals for the client's programs are not meant for the core.
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
            command.spawn()
        })();
        match begun {
            Ok(mut core) => {
                self.output.note(&format!("starting a core; its log is {shown}"));
                tokio::spawn(async move { core.wait().await });
            }
            Err(error) => self.output.note(&format!("cannot start a core: {error}")),
        }
    }
}

/// Whom to tell what comes of a request.
struct Told {
    exchange: u64,
    heard: mpsc::Sender<(u64, McpBridgeNews)>,
}

impl Told {
    async fn tell(&self, news: McpBridgeNews) {
        // Nobody listens when the program ends.
        let _ = self.heard.send((self.exchange, news)).await;
    }

    /// Tells of an answer; how it ended is returned.
    async fn pass_on(&self, mut answer: Response) -> McpBridgeNews {
        self.tell(head_of(&answer)).await;
        loop {
            match tokio::time::timeout(SILENCE_MAX, answer.chunk()).await {
                Ok(Ok(Some(piece))) => self.tell(McpBridgeNews::Bytes(piece.to_vec())).await,
                Ok(Ok(None)) => return McpBridgeNews::End,
                Ok(Err(_)) | Err(_) => return McpBridgeNews::Broke,
            }
        }
    }
}

fn head_of(answer: &Response) -> McpBridgeNews {
    let headers = answer.headers();
    let kind = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let body = match kind.split(';').next().unwrap_or_default().trim() {
        kind if kind.eq_ignore_ascii_case(JSON) => McpBridgeBody::Json,
        kind if kind.eq_ignore_ascii_case(EVENTS) => McpBridgeBody::Events,
        _ => McpBridgeBody::Other,
    };
    let seconds = text(headers, RETRY_AFTER.as_str()).and_then(|text| text.parse::<u64>().ok());
    McpBridgeNews::Head {
        status: answer.status().as_u16(),
        body,
        session: text(headers, headers::SESSION_ID).map(str::to_owned),
        retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1_000)),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
