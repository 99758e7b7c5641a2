//! `wharf up --demo`: the example agents, added, approved and started, and an example tool server
//! that starts with its first run.

pub(crate) mod tour;

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_domain::Caller;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vocab::{Code, Fault, ProviderId};

use crate::{Home, files};

/// Files of an example, each with its name.
macro_rules! example {
    ($folder:literal: $($file:literal),+) => {
        &[$(($file, include_str!(concat!("../../../../examples/", $folder, "/", $file)))),+]
    };
}

/// The example tool server.
const TOOL: &[(&str, &str)] = example!("tools/llm/litellm/1":
    "wharf.tool.toml", "README.md", "handler.py", "chat.py", "prices.py", "prices.json",
    "input.schema.json", "output.schema.json");
const HELLO_MANIFEST: &str =
    include_str!("../../../../examples/agents/hello/opensentience.agent.json");
/// The Python examples: all of each is in this program.
const PYTHON: [(&str, &[(&str, &str)]); 4] = [
    ("hello-python", example!("agents/hello-python": "agent.py", "opensentience.agent.json")),
    (
        "llm-text",
        example!("agents/llm-text":
        "agent.py", "wharf_agent.py", "opensentience.agent.json"),
    ),
    (
        "multi-turn",
        example!("agents/multi-turn":
        "agent.py", "wharf_agent.py", "opensentience.agent.json"),
    ),
    ("video", example!("agents/video": "agent.py", "wharf_agent.py", "opensentience.agent.json")),
];
/// How long the core waits for an example before it says that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The Rust example, as it is built beside this program.
const HELLO_PROGRAM: &str = "hello-agent";

/// Adds, approves and starts the examples. One that cannot be had here is left out, and the log
/// says why.
pub(crate) async fn furnish(
    home: &Home,
    agents: &impl ProviderControl,
    tools: &impl ProviderControl,
) {
    let folder = home.path().join("tools").join("demo").join("litellm");
    let enabled = match written(&folder, TOOL) {
        Ok(folder) => approved(tools, folder).await.map(drop),
        Err(fault) => Err(fault),
    };
    if let Err(fault) = enabled {
        tracing::warn!(code = %fault.code, "the example tool is left out: {}", fault.message);
    }
    let folder = home.path().join("agents").join("demo");
    let python = PYTHON.iter().map(|(name, files)| written(&folder.join(name), files));
    for prepared in std::iter::once(hello(&folder)).chain(python) {
        let started = match prepared {
            Ok(folder) => start(agents, folder).await,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = started {
            tracing::warn!(code = %fault.code, "an example agent is left out: {}", fault.message);
        }
    }
}

/// Adds and approves an example, unless it was before; which one it is now.
async fn approved(
    edge: &impl ProviderControl,
    folder: PathBuf,
) -> Result<Option<ProviderId>, Fault> {
    let owner = Caller::owner();
    let view = edge.add(owner.clone(), folder).await?;
    let id = view.provider.id;
    // One that runs since the last start goes on, unless this program brings another one.
    if view.provider.wanted && edge.drift(id.clone()).await?.is_empty() {
        return Ok(None);
    }
    edge.approve(owner, id.clone(), Approve::default()).await?;
    Ok(Some(id))
}

async fn start(agents: &impl ProviderControl, folder: PathBuf) -> Result<(), Fault> {
    let Some(id) = approved(agents, folder).await? else { return Ok(()) };
    agents.start(Caller::owner(), id.clone()).await?;
    // Their tools are to be there when the core says that it is ready.
    let deadline = tokio::time::Instant::now() + READY_WITHIN;
    while agents.show(&id)?.state != ProviderState::Running
        && tokio::time::Instant::now() < deadline
    {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// The Rust example: its program lies beside this one.
fn hello(folder: &Path) -> Result<PathBuf, Fault> {
    let program = std::env::current_exe()
        .ok()
        .map(|wharf| wharf.with_file_name(HELLO_PROGRAM))
        .filter(|program| program.exists())
        .ok_or_else(|| {
            let message = format!("{HELLO_PROGRAM} was not built beside this program.");
            Fault::new(Code::AgentStartFailed, message)
        })?;
    let folder = folder.join("hello");
    let mut manifest: serde_json::Value =
        serde_json::from_str(HELLO_MANIFEST).map_err(|_| broken())?;
    manifest["entrypoint"]["value"] = program.display().to_string().into();
    write(&folder, "opensentience.agent.json", &manifest.to_string())?;
    Ok(folder)
}

fn written(folder: &Path, files: &[(&str, &str)]) -> Result<PathBuf, Fault> {
    for (name, text) in files {
        write(folder, name, text)?;
    }
    Ok(folder.to_owned())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Fault> {
    let failed = |error: std::io::Error| {
        let message = format!("{} cannot be written: {error}.", folder.join(name).display());
        Fault::new(Code::HomeUnwritable, message)
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    files::replace(&folder.join(name), text.as_bytes()).map_err(failed)
}

fn broken() -> Fault {
    Fault::new(Code::AgentManifestInvalid, "The example's manifest is not JSON.")
}
