//! Tasks that an operator executes and questions that it answers, through a real core: callers
//! and workers over HTTP, the operator over its socket. All of them share the machine with the
//! core, which is in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::cpu::cpu_us;
use crate::http::Client;
use crate::process::resident_mib;
use crate::report::{Report, median_us, per_second};
use crate::{Scale, core};

const AGENT: &str = "bench";
/// More than may be in flight, so that the socket is always read.
const WAITING_MAX: usize = 1_024;
const LOADS: [usize; 3] = [1, 16, 256];
const ASKERS: usize = 16;
/// Tasks of many callers together. Fewer are over before the rate is worth anything.
const MANY_TASKS: usize = 6_000;

type Socket = WebSocketStream<TcpStream>;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let door = Door { address: core.http_addr(), token: core.owner_token().to_owned() };
    let mut client = Client::connect(door.address, &door.token).await?;
    let operator = Operator::sit(door.address, &mut client).await?;
    tasks(scale, &door, &operator.sid, &mut client, report).await?;
    questions(scale, &door, report).await?;
    endurance(scale, &door, &operator.sid, report).await?;
    operator.leave();
    core.stop().await?;
    Ok(())
}

/// Where a core is, and the token that opens it.
struct Door {
    address: SocketAddr,
    token: String,
}

// bench: O31
/// From the request of a task over spawn, prompt and result to its end.
async fn tasks(
    scale: Scale,
    door: &Door,
    sid: &str,
    client: &mut Client,
    report: &mut Report,
) -> anyhow::Result<()> {
    let health = gets(client, scale.singles).await?;
    report.floor("HTTP GET /healthz, 1 caller", health, "req/s");
    let of = Some((health / 3.0, "three GETs, 1 caller"));
    for durability in ["memory", "journal"] {
        let body = task(sid, durability);
        // The first ones pay for connections and for the tool's place in the catalog.
        load(door, "/v1/tasks", &body, LOADS[2], LOADS[2]).await?;
        for callers in LOADS {
            let goals = match (durability, callers) {
                ("memory", 16) => ("≥ 5,000", "≤ 10 ms"),
                ("journal", 16) => ("≥ 1,000", ""),
                _ => ("", ""),
            };
            let count = if callers == 1 { scale.singles / 3 } else { MANY_TASKS };
            let cpu = cpu_us()?;
            let (rate, took) = load(door, "/v1/tasks", &body, callers, count).await?;
            let what = format!("tasks, {durability}, {callers} in flight");
            report.figure(&what, rate, "tasks/s", of, goals.0);
            let each = (cpu_us()? - cpu) / count as f64;
            let name = format!("  {what}, CPU of a task with its callers and worker");
            report.figure(&name, each, "µs", None, "");
            let slow = at_99(&took);
            let p50 = median_us(took) / 1e3;
            report.figure(&format!("  {what}, p50"), p50, "ms", None, "");
            report.figure(&format!("  {what}, p99"), slow, "ms", None, goals.1);
        }
    }
    Ok(())
}

fn task(sid: &str, durability: &str) -> String {
    let body = json!({ "agent": AGENT, "operator_sid": sid, "durability": durability,
        "input": { "prompt": "Say hello." }, "timeout_secs": 60 });
    body.to_string()
}

/// Whether many tasks cost more than few: four parts, of which the first fills what is kept.
async fn endurance(
    scale: Scale,
    door: &Door,
    sid: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (body, count) = (task(sid, "memory"), scale.files / 4);
    let mut parts = Vec::new();
    for _ in 0..4 {
        let cpu = cpu_us()?;
        load(door, "/v1/tasks", &body, 16, count).await?;
        parts.push(((cpu_us()? - cpu) / count as f64, resident_mib(std::process::id())?));
    }
    let [(first_cpu, first_mib), .., (last_cpu, last_mib)] = parts[..] else { return Ok(()) };
    let of = format!("that of the first {count}");
    let name = format!("processor time of a task, the last {count} of {}", count * 4);
    report.figure(&name, last_cpu, "µs", Some((first_cpu, &of)), "flat");
    let name = "  memory of the process at their end";
    report.figure(name, last_mib, "MiB", Some((first_mib, &of)), "bounded");
    Ok(())
}

/// Runs that ask, answered over the socket.
async fn questions(scale: Scale, door: &Door, report: &mut Report) -> anyhow::Result<()> {
    let body = json!({ "tool": "wharf/ask", "inputs": { "question": "Well?" } }).to_string();
    for callers in [1, ASKERS] {
        let count = scale.singles / 3;
        let (rate, _) = load(door, "/v1/runs?wait=30s", &body, callers, count).await?;
        let what = format!("questions answered, {callers} in flight, durable");
        let goal = if callers == ASKERS { "≥ 5,000" } else { "" };
        report.figure(&what, rate, "answers/s", None, goal);
    }
    Ok(())
}

/// What all but one in a hundred take at most, in milliseconds.
fn at_99(took: &[Duration]) -> f64 {
    let mut took = took.to_vec();
    took.sort_unstable();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default().as_secs_f64() * 1e3
}

async fn gets(client: &mut Client, count: usize) -> anyhow::Result<f64> {
    let started = Instant::now();
    for _ in 0..count {
        let (status, _) = client.request("GET", "/healthz", "").await?;
        ensure!(status == 200, "/healthz answered {status}");
    }
    Ok(per_second(count, started.elapsed()))
}

/// So many requests by so many callers, each of which waits for the end of what it started.
async fn load(
    door: &Door,
    path: &'static str,
    body: &str,
    callers: usize,
    count: usize,
) -> anyhow::Result<(f64, Vec<Duration>)> {
    let mut clients = Vec::new();
    for _ in 0..callers {
        clients.push(Client::connect(door.address, &door.token).await?);
    }
    let started = Instant::now();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let body = body.to_owned();
            tokio::spawn(async move {
                let mut took = Vec::new();
                for _ in 0..count / callers {
                    let started = Instant::now();
                    let (status, answer) = client.request("POST", path, &body).await?;
                    let answer = String::from_utf8_lossy(&answer);
                    ensure!(status == 200, "{path} answered {status}: {answer}");
                    ensure!(answer.contains("succeeded"), "it did not succeed: {answer}");
                    took.push(started.elapsed());
                }
                anyhow::Ok(took)
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    Ok((per_second(took.len(), started.elapsed()), took))
}

/// An operator with as many workers as there may be tasks at once.
struct Operator {
    sid: String,
    tasks: Vec<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Operator {
    async fn sit(address: SocketAddr, client: &mut Client) -> anyhow::Result<Self> {
        let manifest = json!({ "tools": [AGENT] });
        // A person: another seat of the owner's would not be asked about the owner's own runs.
        let new = json!({ "desc": "bench", "person": true, "capability_manifest": manifest });
        let (status, body) = client.request("POST", "/v1/operators", &new.to_string()).await?;
        ensure!(status == 200, "no seat: {status}");
        let made: Value = serde_json::from_slice(&body)?;
        let text = |name: &str| made[name].as_str().map(str::to_owned).context("an odd seat");
        let (sid, token) = (text("sid")?, text("token")?);

        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{address}/v1/operators/{sid}/ws");
        let mut request = url.into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
        let (sink, source) = socket.split();
        let (spawns, queue) = mpsc::channel(WAITING_MAX);
        let (replies, outgoing) = mpsc::channel(WAITING_MAX);
        let mut tasks = vec![
            tokio::spawn(write(sink, outgoing)),
            tokio::spawn(read(source, spawns, replies.clone())),
        ];
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..LOADS.into_iter().max().unwrap_or(1) {
            tasks.push(tokio::spawn(work(address, Arc::clone(&queue), replies.clone())));
        }
        Ok(Self { sid, tasks })
    }

    fn leave(self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<Value>,
) -> anyhow::Result<()> {
    while let Some(reply) = outgoing.recv().await {
        sink.send(Message::text(reply.to_string())).await?;
    }
    Ok(())
}

/// Hands spawns to workers and answers questions at once.
async fn read(
    mut source: SplitStream<Socket>,
    spawns: mpsc::Sender<Value>,
    replies: mpsc::Sender<Value>,
) -> anyhow::Result<()> {
    while let Some(message) = source.next().await {
        let Message::Text(text) = message? else { continue };
        let message: Value = serde_json::from_str(&text)?;
        match message["type"].as_str() {
            Some("spawn") => spawns.send(message).await?,
            Some("ask") => {
                let req_id = &message["req_id"];
                let reply = json!({ "type": "answer", "req_id": req_id, "value": "Well." });
                replies.send(reply).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A worker: fetches prompts and posts results, one after the other.
async fn work(
    address: SocketAddr,
    queue: Arc<Mutex<mpsc::Receiver<Value>>>,
    replies: mpsc::Sender<Value>,
) -> anyhow::Result<()> {
    let mut client = None;
    loop {
        let Some(spawn) = queue.lock().await.recv().await else { return Ok(()) };
        let field = |name: &str| spawn[name].as_str().unwrap_or_default();
        let credential = match field("worker_handle") {
            "" => field("capability_token"),
            short => short,
        };
        let client = match &mut client {
            Some(client) => client,
            none => none.insert(Client::connect(address, credential).await?),
        };
        client.be(credential);
        let task = field("task_id");
        let prompt = format!("/v1/worker/prompt?task_id={task}");
        let (status, _) = client.request("GET", &prompt, "").await?;
        ensure!(status == 200, "a prompt answered {status}");
        let submit = format!("/v1/worker/submit?task_id={task}");
        let (status, _) = client.request("POST", &submit, r#"{"text":"Hello."}"#).await?;
        ensure!(status == 204, "a result answered {status}");
        let ack = json!({ "type": "spawn_ack", "req_id": field("req_id"), "value": {} });
        replies.send(ack).await?;
    }
}
