//! Calls of typed tools with the SDK: in this process, through the codec, and over a WebSocket.
//! Both ends share this process, so what is measured is the work of both.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

use crate::Scale;
use crate::cpu::cpu_us;
use crate::report::{Report, per_second};

#[path = "sdk/scene.rs"]
mod scene;

use scene::{LAYERS, Over, ROUTE, Route, Scene, question};

const CALLERS: [usize; 2] = [1, 64];

/// How long a round of calls took.
struct Round {
    cpu_us: f64,
    per_second: f64,
}

pub(crate) fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        local(scale, report).await?;
        elsewhere(scale, report).await
    })?;
    allocations(scale, report)
}

// bench: K14, K35
/// Calls that stay in the process, beside an echo over a channel.
async fn local(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let count = scale.many * 10;
    let floor = round(count, 1, channel_echo()).await?;
    report.floor("SDK: bare echo over a channel, CPU per call", floor.cpu_us, "µs");
    let of = |value| Some((value, "the bare echo over a channel"));
    let mut bare = 0.0;
    for layers in LAYERS {
        let scene = Scene::open(layers, Over::Nothing).await?;
        let local = round(count, 1, calls(&scene)).await?;
        let name = format!("SDK: local call through {layers} layers, CPU per call");
        let goal = if layers == 0 { "≤ 1 µs" } else { "≤ 2 µs" };
        report.figure(&name, local.cpu_us, "µs", of(floor.cpu_us), goal);
        match layers {
            0 => bare = local.cpu_us,
            5 => {
                let added = local.cpu_us - bare;
                report.figure("SDK: five layers add, CPU per call", added, "µs", None, "≤ 1 µs");
            }
            _ => {}
        }
        scene.close().await;
    }
    Ok(())
}

/// Calls that leave the process, or could: with JSON and checks, beside a bare WebSocket echo.
async fn elsewhere(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    for callers in CALLERS {
        let count = if callers == 1 { scale.many / 2 } else { scale.many };
        let floor = round(count, callers, websocket_echo(callers).await?).await?;
        let many = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        let name = format!("SDK: bare WebSocket echo, {many}, CPU per call");
        report.floor(&name, floor.cpu_us, "µs");
        for (over, what, goal) in [
            (Over::Memory, "in memory with JSON and checks", "≤ 15 µs"),
            (Over::WebSocket, "over a WebSocket", "≤ 80 µs"),
        ] {
            for layers in LAYERS {
                let scene = Scene::open(layers, over).await?;
                let made = round(count, callers, calls(&scene)).await?;
                let name = format!("SDK: {what}, {layers} layers, {many}, CPU per call");
                let of = Some((floor.cpu_us, "the bare WebSocket echo"));
                report.figure(&name, made.cpu_us, "µs", of, goal);
                if layers == 0 {
                    let name = format!("SDK: {what}, {many}, calls a second");
                    let of = Some((floor.per_second, "the bare WebSocket echo"));
                    report.figure(&name, made.per_second, "calls/s", of, "");
                }
                scene.close().await;
            }
        }
    }
    Ok(())
}

/// What each call allocates and keeps, told by a program whose allocator counts.
fn allocations(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let counter = own.with_file_name("sdk-allocations");
    let told = Command::new(&counter).arg(scale.many.to_string()).output();
    let told = told.with_context(|| format!("failed to start {}", counter.display()))?;
    ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    for line in String::from_utf8(told.stdout)?.lines() {
        let mut words = line.rsplitn(3, '\t');
        let (Some(kept), Some(made), Some(what)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let name = format!("SDK: {what}, allocations per call");
        report.figure(&name, made.parse()?, "", None, "");
        let name = format!("SDK: {what}, bytes kept per finished call");
        report.figure(&name, kept.parse()?, "bytes", None, "0");
    }
    Ok(())
}

/// One call, by the number of its caller.
type Once =
    Arc<dyn Fn(usize) -> futures::future::BoxFuture<'static, anyhow::Result<()>> + Send + Sync>;

fn calls(scene: &Scene) -> Once {
    let scope = scene.scope();
    Arc::new(move |_| {
        let scope = scope.clone();
        Box::pin(async move {
            let route: Route = ROUTE.call(&scope, question()).await?;
            ensure!(route.stops == 2, "the answer is another one");
            Ok(())
        })
    })
}

/// Makes calls from so many callers at once and says what each cost.
async fn round(count: usize, callers: usize, once: Once) -> anyhow::Result<Round> {
    let each = count / callers;
    let run = async |each: usize| {
        let callers = (0..callers).map(|caller| {
            let once = Arc::clone(&once);
            tokio::spawn(async move {
                for _ in 0..each {
                    once(caller).await?;
                }
                anyhow::Ok(())
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await??;
        }
        anyhow::Ok(())
    };
    run(each.div_ceil(10)).await?;
    let (cpu, began) = (cpu_us()?, Instant::now());
    run(each).await?;
    let calls = each * callers;
    let cpu_us = (cpu_us()? - cpu) / calls as f64;
    Ok(Round {
        cpu_us,
        per_second: per_second(calls, began.elapsed().max(Duration::from_nanos(1))),
    })
}

/// The least that two tasks can do for each other.
fn channel_echo() -> Once {
    let (sender, mut requests) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(64);
    tokio::spawn(async move {
        while let Some((number, answer)) = requests.recv().await {
            // Whoever asked may have gone.
            let _ = answer.send(number);
        }
    });
    Arc::new(move |_| {
        let sender = sender.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            sender.send((7, answer)).await?;
            ensure!(answered.await? == 7, "the echo is another one");
            Ok(())
        })
    })
}

/// Text of the size of a call there and back over a WebSocket of its own for each caller.
async fn websocket_echo(callers: usize) -> anyhow::Result<Once> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    if message.is_text() && socket.send(message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut sockets = Vec::new();
    for _ in 0..callers {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{address}/");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
        sockets.push(Arc::new(tokio::sync::Mutex::new(socket)));
    }
    let text = as_frame()?;
    Ok(Arc::new(move |caller| {
        let socket = Arc::clone(&sockets[caller]);
        let text = text.clone();
        Box::pin(async move {
            let mut socket = socket.lock().await;
            socket.send(Message::text(text)).await?;
            ensure!(matches!(socket.next().await, Some(Ok(Message::Text(_)))), "no echo");
            Ok(())
        })
    }))
}

/// A text of the size of a call.
fn as_frame() -> Result<String, serde_json::Error> {
    let payload = json!({"id": "1", "kind": "elicit", "type": ROUTE.name(), "payload": question()});
    serde_json::to_string(&json!({"type": "request", "payload": payload}))
}
