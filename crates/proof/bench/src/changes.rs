//! A thousand pages that are open on one core while runs come and go: each has a socket with the
//! feed of changes, whose frames are written once for all who may know the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use wharf_domain::Caller;
use wharf_engine::{Handle, NewRun};
use wharf_server::Core;
use wharf_vocab::RunId;

use crate::cpu::cpu_us;
use crate::report::{Report, median_us};
use crate::{Scale, core};

/// How many runs a second are started, and for how long.
const RATE: u64 = 1_000;
const LASTS: Duration = Duration::from_secs(10);
/// How long a reader may take to see the end of the last run.
const PATIENCE: Duration = Duration::from_secs(60);
const QUERY: &str = "subscription { changes { reset items { kind world id seq status } } }";
/// The same, asked for in another way: then each socket writes its frames itself.
const OTHER: &str =
    "subscription { changes(kinds: []) { reset items { kind world id seq status } } }";

type Socket = WebSocketStream<TcpStream>;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let alone = round(0, QUERY).await?;
    report.floor("runs/s that were reached without a reader", alone.rate, "runs/s");
    let other = round(scale.readers / 10, OTHER).await?;
    let readers = scale.readers / 10;
    let name = format!("processor time per socket and second, {readers} sockets, own frames");
    report.floor(&name, other.per_socket(readers, alone.cpu_us), "µs");
    let told = round(scale.readers, QUERY).await?;
    let mute = round_beside(scale.readers / 10, scale.readers / 10, QUERY).await?;
    let name = format!("runs/s that were reached with {} sockets", scale.readers);
    report.figure(&name, told.rate, "runs/s", Some((alone.rate, "unwatched")), "1,000");
    let name = format!("from commit to a page, p50 of {} sockets", scale.readers);
    report.figure(&name, told.late_us / 1e3, "ms", None, "frames are 250 ms apart");
    let name = format!("processor time per socket and second, {} sockets", scale.readers);
    let of = Some((other.per_socket(readers, alone.cpu_us), "own frames"));
    report.figure(&name, told.per_socket(scale.readers, alone.cpu_us), "µs", of, "");
    let name = format!("runs/s with {readers} sockets and {readers} more that are not read");
    report.figure(&name, mute.rate, "runs/s", Some((alone.rate, "unwatched")), "1,000");
    let name = format!("from commit to a page, p50 of {readers} sockets beside them");
    report.figure(&name, mute.late_us / 1e3, "ms", None, "frames are 250 ms apart");
    Ok(())
}

/// What one round came to.
struct Round {
    rate: f64,
    /// How long half of the readers waited at most for the last run's end.
    late_us: f64,
    /// What the process used, readers included.
    cpu_us: f64,
    took: Duration,
}

impl Round {
    /// What each socket adds to what the runs take by themselves.
    fn per_socket(&self, sockets: usize, load_us: f64) -> f64 {
        (self.cpu_us - load_us) / sockets.max(1) as f64 / self.took.as_secs_f64()
    }
}

async fn round(readers: usize, query: &'static str) -> anyhow::Result<Round> {
    round_beside(0, readers, query).await
}

/// A round with sockets that ask for everything and read nothing of it.
async fn round_beside(mute: usize, readers: usize, query: &'static str) -> anyhow::Result<Round> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let mut unread = Vec::new();
    for _ in 0..mute {
        unread.push(subscribed(&core, query).await?);
    }
    let mut tasks = Vec::new();
    for _ in 0..readers {
        let socket = subscribed(&core, query).await?;
        tasks.push(tokio::spawn(tokio::time::timeout(PATIENCE + LASTS, follow(socket))));
    }
    let (begun, cpu) = (Instant::now(), cpu_us()?);
    let started = load(core.handle()).await?;
    let rate = started as f64 / begun.elapsed().as_secs_f64();
    let run = core::request("wharf/echo", json!({"text": "the last one"}))?;
    let run = NewRun { run_id: Some(RunId::new("last-of-all")?), ..run };
    let run = core.handle().runs().create(&Caller::owner(), run).await?.run;
    core.handle().runs().wait(&run.key, PATIENCE).await?;
    let ended = Instant::now();
    let mut late = Vec::with_capacity(readers);
    for task in tasks {
        let seen = task.await?.context("a reader did not see the last run")??;
        late.push(seen.saturating_duration_since(ended));
    }
    let (took, cpu_us) = (begun.elapsed(), cpu_us()? - cpu);
    drop(unread);
    core.stop().await?;
    Ok(Round { rate, late_us: median_us(late), cpu_us, took })
}

/// Starts runs at an even pace; how many were started.
async fn load(handle: &Handle) -> anyhow::Result<u64> {
    const AT_ONCE: u64 = 32;
    let begun = Instant::now();
    let count = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (handle, count) = (handle.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                while begun.elapsed() < LASTS {
                    let due = u64::try_from(begun.elapsed().as_millis())? * RATE / 1_000;
                    if count.load(Ordering::Relaxed) >= due {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    let run = core::request("wharf/echo", json!({"text": "hello"}))?;
                    let run = handle.runs().create(&Caller::owner(), run).await?.run;
                    handle.runs().wait(&run.key, PATIENCE).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    Ok(count.load(Ordering::Relaxed))
}

/// A socket that has asked for changes and got the first frame.
async fn subscribed(core: &Core, query: &str) -> anyhow::Result<Socket> {
    let mut request = format!("ws://{}/graphql", core.http_addr()).into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("authorization", format!("Bearer {}", core.owner_token()).parse()?);
    headers.insert("sec-websocket-protocol", "graphql-transport-ws".parse()?);
    let stream = TcpStream::connect(core.http_addr()).await?;
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    let greeting = json!({"type": "connection_init"});
    socket.send(Message::Text(greeting.to_string().into())).await?;
    ensure!(heard(&mut socket).await?["type"] == "connection_ack", "the core does not greet");
    let wish = json!({"type": "subscribe", "id": "1", "payload": {"query": query}});
    socket.send(Message::Text(wish.to_string().into())).await?;
    let first = heard(&mut socket).await?;
    ensure!(first["payload"]["data"]["changes"]["reset"] == true, "no first frame: {first}");
    Ok(socket)
}

async fn heard(socket: &mut Socket) -> anyhow::Result<Value> {
    loop {
        match socket.next().await.context("the socket was closed")?? {
            Message::Text(text) => return Ok(serde_json::from_str(&text)?),
            Message::Close(frame) => bail!("the socket was closed: {frame:?}"),
            _ => {}
        }
    }
}

/// Reads until the last run has ended; when that was.
async fn follow(mut socket: Socket) -> anyhow::Result<Instant> {
    loop {
        let text = match socket.next().await.context("the socket was closed")?? {
            Message::Text(text) => text,
            Message::Close(frame) => bail!("the socket was closed: {frame:?}"),
            _ => continue,
        };
        ensure!(!text.contains("\"reset\":true"), "a reader fell behind");
        // Reading all of it as JSON would measure the reader.
        if text.contains("\"last-of-all\"") && ended(&text)? {
            return Ok(Instant::now());
        }
    }
}

fn ended(text: &str) -> anyhow::Result<bool> {
    let frame: Value = serde_json::from_str(text)?;
    let items = frame["payload"]["data"]["changes"]["items"].as_array().cloned();
    let mut items = items.unwrap_or_default().into_iter();
    Ok(items.any(|it| it["id"] == "last-of-all" && it["status"] == "succeeded"))
}
