//! Thousands of connected agents with nothing to do: what each costs in memory.
//!
//! The edge is real, and so is the socket; processes are played, since ten thousand of them would
//! measure the machine and not the core. The agents' ends live in another process.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use wharf_agent::{AgentEdge, AgentEdgeOptions, AgentRule, CoreLimits, Transport};
use wharf_domain::Caller;
use wharf_domain::provider::ProviderLimits;
use wharf_egress::EgressProxy;
use wharf_engine::Handle;
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_ports::launcher::RestartPolicy;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vault::FileVault;
use wharf_vocab::{NodeId, ProviderId, SandboxLevel};

use crate::played::Played;
use crate::process::resident_mib;
use crate::report::Report;
use crate::{Scale, core};

/// The word that makes this program the agents' ends.
pub(crate) const WORD: &str = "__idlers";
const HEARTBEAT_MS: u64 = 120_000;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    raise_open_files();
    let dir = core::scratch()?;
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryStore::new(&AuditKey::new([1; 32]), clock.clone()));
    let node = NodeId::new("bench")?;
    let handle = Handle::start(wharf_engine::EngineOptions::new(node, store, clock, 1)).await?;
    let (launcher, mut launches) = Played::new();
    let socket = dir.path().join("agents.sock");
    let hosting = wharf_hosting::HostingOptions {
        handle: handle.clone(),
        launcher,
        folder: dir.path().join("agents"),
        sockets_dir: None,
        restart: RestartPolicy::default(),
        stop_grace: Duration::from_millis(1),
        connect_within: Duration::from_secs(600),
        vault: Arc::new(FileVault::open(dir.path().join("secrets"))?),
        egress: Arc::new(EgressProxy::new(handle.clone())),
        user_home: None,
        hidden: Vec::new(),
        sandbox: SandboxLevel::Standard,
        sandbox_min: None,
        limits: ProviderLimits::default(),
    };
    let edge = AgentEdge::start(AgentEdgeOptions {
        hosting,
        transport: Transport::Unix(socket.clone()),
        instance: "bench".to_owned(),
        limits: CoreLimits { heartbeat_interval_ms: HEARTBEAT_MS, ..CoreLimits::default() },
        rule: AgentRule::default(),
        rules: BTreeMap::new(),
        storage_origin: None,
    })
    .await?;
    let count = scale.idle_agents;
    let tokens = add_all(edge.control(), dir.path(), count, &mut launches).await?;
    let before = resident_mib(std::process::id())?;
    let mut idlers = Command::new(std::env::current_exe()?)
        .arg(WORD)
        .arg(&socket)
        .stdin(Stdio::piped())
        .spawn()?;
    let mut input = idlers.stdin.take().context("no pipe")?;
    for (id, token) in &tokens {
        writeln!(input, "{id} {token}")?;
    }
    input.flush()?;
    connected(edge.control(), count).await?;
    let each = (resident_mib(std::process::id())? - before) * 1024.0 / count as f64;
    let name = format!("{count} idle connected agents: memory each");
    report.figure(&name, each, "KiB", None, "≤ 40 KiB");
    drop(input);
    idlers.wait()?;
    edge.stop().await;
    handle.stop(Duration::ZERO).await;
    Ok(())
}

/// Adds, approves and starts so many agents; the id and token of each.
async fn add_all(
    agents: &impl ProviderControl,
    dir: &Path,
    count: usize,
    launches: &mut mpsc::Receiver<(String, String)>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut tokens = Vec::with_capacity(count);
    for n in 0..count {
        let folder = dir.join(n.to_string());
        std::fs::create_dir(&folder)?;
        let id = ProviderId::new(format!("idle-{n}"))?;
        let manifest = json!({
            "id": id, "version": "0.1.0", "permissions": [],
            "entrypoint": {"type": "command", "value": "played"},
        });
        std::fs::write(folder.join("opensentience.agent.json"), manifest.to_string())?;
        agents.add(Caller::owner(), folder).await?;
        agents.approve(Caller::owner(), id.clone(), Approve::default()).await?;
        agents.start(Caller::owner(), id).await?;
        tokens.push(launches.recv().await.context("no launch came")?);
    }
    Ok(tokens)
}

async fn connected(agents: &impl ProviderControl, count: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let running =
            agents.list().iter().filter(|view| view.state == ProviderState::Running).count();
        if running == count {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "only {running} of {count} agents are connected");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The agents' ends: each says hello, offers nothing, and waits.
pub(crate) async fn idlers(socket: &str) -> anyhow::Result<()> {
    raise_open_files();
    let mut streams = Vec::new();
    let mut lines = std::io::stdin().lock().lines();
    while let Some(line) = lines.next().transpose()? {
        let (id, token) = line.split_once(' ').context("id and token")?;
        let mut stream = connect(socket).await?;
        let hello = json!({
            "session_token": token, "agent_id": id, "agent_version": "0.1.0",
            "protocol": {"supported_versions": [1], "capabilities": ["tools"]},
        });
        send(&mut stream, "1", "agent.hello", &hello).await?;
        send(&mut stream, "2", "agent.tools.register", &json!({"tools": []})).await?;
        streams.push(stream);
    }
    Ok(())
}

/// A socket whose queue is full says so at once; then it is asked again.
async fn connect(socket: &str) -> anyhow::Result<UnixStream> {
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            other => return Ok(other?),
        }
    }
}

async fn send(
    stream: &mut UnixStream,
    id: &str,
    kind: &str,
    payload: &Value,
) -> anyhow::Result<()> {
    let message = json!({
        "v": 1, "type": kind, "id": id, "ts": "2026-01-01T00:00:00Z", "payload": payload,
    });
    let bytes = serde_json::to_vec(&message)?;
    stream.write_all(&u32::try_from(bytes.len())?.to_be_bytes()).await?;
    stream.write_all(&bytes).await?;
    Ok(())
}

/// Each connection takes a descriptor; the soft limit is often too low for thousands.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, the connections that fail will say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
