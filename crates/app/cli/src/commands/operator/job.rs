//! One worker: a command of this machine that is given a prompt and whose output is the result.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use wharf_vocab::Code;
use wharf_wire::operator_v1::WorkerPrompt;

use super::link::RECONNECT;
use super::seat::bearer;
use wharf_client::{Client, Error, Result};

/// Largest result.
const RESULT_BYTES_MAX: usize = 2 * 1024 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a core that has just started may not know a task yet.
const UNKNOWN_MAX: Duration = Duration::from_secs(30);
/// How long a worker has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Debug, Clone)]
pub(super) struct WorkerJob {
    pub(super) req_id: String,
    pub(super) task_id: String,
    pub(super) agent: String,
    /// What the worker may do at the core.
    pub(super) handle: String,
    pub(super) command: String,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobEnd {
    /// Its output is the result.
    Given { ok: bool },
    /// It gave its result itself.
    ByItself,
    /// Nobody waits for the result any more.
    Late(String),
    /// Nothing could be given; the operator has to say so.
    Failed(String),
    /// It was stopped.
    Stopped,
}

/// Runs the worker to its end. `stop` ends it early.
pub(super) async fn run(
    job: WorkerJob,
    client: Client,
    places: Arc<Semaphore>,
    stop: Arc<Notify>,
) -> JobEnd {
    let mut child = None;
    let working = async {
        let Ok(_place) = places.acquire().await else { return JobEnd::Stopped };
        work(&job, &client, &mut child).await
    };
    let ended = tokio::select! {
        ended = working => ended,
        () = stop.notified() => JobEnd::Stopped,
    };
    if let (JobEnd::Stopped, Some(child)) = (&ended, &mut child) {
        end(child).await;
    }
    ended
}

async fn work(job: &WorkerJob, client: &Client, child: &mut Option<Child>) -> JobEnd {
    let prompt = match prompt(job, client).await {
        Ok(prompt) => prompt,
        Err(failure) => return unusable(&failure),
    };
    let started = match start(job, client) {
        Ok(started) => child.insert(started),
        Err(error) => return JobEnd::Failed(format!("the worker cannot be started: {error}")),
    };
    let (status, output) = match communicate(started, prompt.prompt.as_bytes()).await {
        Ok(done) => done,
        Err(error) => {
            end(started).await;
            return JobEnd::Failed(error);
        }
    };
    submit(job, client, status, output).await
}

/// Starts the command in a group of its own, so that all it starts can be ended.
fn start(job: &WorkerJob, client: &Client) -> std::io::Result<Child> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(&job.command).process_group(0).kill_on_drop(true);
    // A worker's right is its handle, never what the operator itself may do.
    command.env_remove("WHARF_TOKEN");
    command.env("WHARF_WORKER_HANDLE", &job.handle).env("WHARF_TASK_ID", &job.task_id);
    command.env("WHARF_AGENT", &job.agent).env("WHARF_BASE_URL", base_url(client));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.spawn()
}

fn base_url(client: &Client) -> String {
    client.found_again().map(|client| client.base_url().to_owned()).unwrap_or_default()
}

/// Hands over the prompt and reads what the worker prints.
async fn communicate(
    child: &mut Child,
    prompt: &[u8],
) -> std::result::Result<(ExitStatus, Vec<u8>), String> {
    let broken = |error: std::io::Error| format!("the worker cannot be talked to: {error}");
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let feed = async {
        if let Some(mut input) = input {
            // A worker need not read its prompt.
            let _ = input.write_all(prompt).await;
        }
    };
    let read = async {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let limit = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX) + 1;
            output.take(limit).read_to_end(&mut bytes).await?;
        }
        Ok(bytes)
    };
    let ((), bytes) = tokio::join!(feed, read);
    let bytes = bytes.map_err(broken)?;
    if bytes.len() > RESULT_BYTES_MAX {
        return Err(format!("the worker printed more than {RESULT_BYTES_MAX} bytes"));
    }
    Ok((child.wait().await.map_err(broken)?, bytes))
}

async fn prompt(job: &WorkerJob, client: &Client) -> Result<WorkerPrompt> {
    let query = [("task_id", job.task_id.as_str())];
    let build = |client: &Client| {
        let request = client.request(Method::GET, &["v1", "worker", "prompt"]).query(&query);
        Ok(request.headers(bearer(&job.handle)?))
    };
    let body = patiently(client, build).await?;
    serde_json::from_slice(&body).map_err(|error| {
        Error::new(Code::CoreInternal, format!("the prompt cannot be read: {error}"))
    })
}

async fn submit(job: &WorkerJob, client: &Client, status: ExitStatus, output: Vec<u8>) -> JobEnd {
    let ok = status.success();
    let (kind, body) = body(status, output);
    let query = [("task_id", job.task_id.as_str()), ("ok", if ok { "true" } else { "false" })];
    let build = |client: &Client| {
        let mut headers = bearer(&job.handle)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let request = client.request(Method::POST, &["v1", "worker", "submit"]).query(&query);
        Ok(request.headers(headers).body(body.clone()))
    };
    match patiently(client, build).await {
        Ok(_) => JobEnd::Given { ok },
        Err(failure) => unusable(&failure),
    }
}

/// The result as it is sent: objects and lists as JSON, everything else as text.
fn body(status: ExitStatus, output: Vec<u8>) -> (&'static str, Vec<u8>) {
    let first = output.trim_ascii_start().first();
    if matches!(first, Some(b'{' | b'[')) && serde_json::from_slice::<Value>(&output).is_ok() {
        return ("application/json", output);
    }
    let text = String::from_utf8_lossy(&output);
    let text = text.trim_end_matches(['\r', '\n']);
    let text = if text.is_empty() && !status.success() {
        format!("the worker ended with {status}")
    } else {
        text.to_owned()
    };
    ("text/plain; charset=utf-8", text.into_bytes())
}

/// What a refusal of the core means for a worker.
fn unusable(failure: &Error) -> JobEnd {
    let words = failure.message().to_owned();
    if failure.is(Code::WorkerAlreadyFinal) {
        JobEnd::ByItself
    } else if failure.is(Code::WorkerRunOver) || failure.is(Code::WorkerSuperseded) {
        JobEnd::Late(words)
    } else {
        JobEnd::Failed(words)
    }
}

/// Asks again for as long as the core is away. One that has just started may not know the task
/// yet, so its credential gets a while.
async fn patiently(
    client: &Client,
    build: impl Fn(&Client) -> Result<RequestBuilder>,
) -> Result<Bytes> {
    let (mut backoff, mut unknown_since) = (RECONNECT, None::<Instant>);
    loop {
        let failure = match client.found_again() {
            Ok(client) => match ask(&client, build(&client)?).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        if failure.is(Code::AuthInvalid) {
            if unknown_since.get_or_insert_with(Instant::now).elapsed() > UNKNOWN_MAX {
                return Err(failure);
            }
        } else if !failure.is_outage() {
            return Err(failure);
        }
        sleep(backoff.pause()).await;
    }
}

async fn ask(client: &Client, request: RequestBuilder) -> Result<Bytes> {
    let answer = client.send(request.timeout(REQUEST_TIMEOUT)).await?;
    answer.bytes().await.map_err(|error| client.lost(&error))
}

/// Ends a worker and all it started.
async fn end(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(group) = group else { return };
    // A group that is gone needs no signal.
    let _ = kill_process_group(group, Signal::TERM);
    if timeout(GRACE, child.wait()).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait().await;
    }
}
