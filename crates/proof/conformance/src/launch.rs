//! One start of the agent's command: its socket, its environment, its output and its end.
//!
//! The environment is exactly what a core gives, so that an agent that relies on more is found
//! out here. Everything the command starts is ended with it, even what has left its process
//! group: every descendant inherits the token of this launch in its environment.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::{Error, Options};

/// What programs are looked up in.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The agent id an agent is told when nobody knows its own.
const ANY_AGENT_ID: &str = "dev.example.agent";
/// A socket's path may have 107 bytes; this leaves room for its name.
const FOLDER_BYTES_MAX: usize = 90;

/// What is started, and how it is checked.
#[derive(Debug)]
pub(crate) struct Setup {
    program: PathBuf,
    args: Vec<String>,
    dir: PathBuf,
    agent_id: String,
    pub(crate) options: Options,
}

impl Setup {
    /// Reads the command and the manifest beside it.
    pub(crate) fn new(command: Vec<String>, options: Options) -> Result<Self, Error> {
        let mut words = command.into_iter();
        let program = words.next().filter(|word| !word.is_empty()).ok_or(Error::NoCommand)?;
        let dir = options
            .dir
            .canonicalize()
            .map_err(|source| Error::Folder { path: options.dir.clone(), source })?;
        let program =
            if program.contains('/') { dir.join(program) } else { PathBuf::from(program) };
        let agent_id = options.agent_id.clone().or_else(|| manifest_id(&dir));
        let agent_id = agent_id.unwrap_or_else(|| ANY_AGENT_ID.to_owned());
        Ok(Self { program, args: words.collect(), dir, agent_id, options })
    }
}

/// The id in the manifest of the folder, if there is one.
fn manifest_id(dir: &Path) -> Option<String> {
    let text = std::fs::read(dir.join("opensentience.agent.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(manifest["id"].as_str()?.to_owned())
}

/// One start of the command. Dropping it ends everything it started.
#[derive(Debug)]
pub(crate) struct Launch {
    child: Child,
    listener: UnixListener,
    /// The single-use token of this launch.
    pub(crate) token: String,
    output: [Drain; 2],
    /// Removed when everything else is over.
    _place: TempDir,
}

impl Launch {
    /// Starts the command with a socket of its own.
    pub(crate) fn start(setup: &Setup) -> Result<Self, Error> {
        let place = place().map_err(Error::Place)?;
        let folder = |name: &str| -> Result<PathBuf, Error> {
            let path = place.path().join(name);
            std::fs::create_dir(&path).map_err(Error::Place)?;
            Ok(path)
        };
        let (home, temporary, data) = (folder("home")?, folder("tmp")?, folder("data")?);
        let socket = place.path().join("core.sock");
        let listener = UnixListener::bind(&socket).map_err(Error::Place)?;
        let token = format!("{}{}", Uuid::now_v7().simple(), Uuid::now_v7().simple());
        let mut child = Command::new(&setup.program)
            .args(&setup.args)
            .current_dir(&setup.dir)
            .env_clear()
            .env("PATH", SYSTEM_PATH)
            .env("HOME", home)
            .env("TMPDIR", temporary)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("OPENSENTIENCE_SOCKET", &socket)
            .env("OPENSENTIENCE_SESSION_TOKEN", &token)
            .env("OPENSENTIENCE_AGENT_ID", &setup.agent_id)
            .env("OPENSENTIENCE_RUN_ID", Uuid::now_v7().to_string())
            .env("OPENSENTIENCE_PROTOCOL_VERSIONS", "1")
            .env(
                "OPENSENTIENCE_HEARTBEAT_INTERVAL_MS",
                setup.options.heartbeat.as_millis().to_string(),
            )
            .env("OPENSENTIENCE_HOME", data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Start {
                program: setup.program.display().to_string(),
                source,
            })?;
        let output =
            [Drain::new(child.stdout.take(), &token), Drain::new(child.stderr.take(), &token)];
        Ok(Self { child, listener, token, output, _place: place })
    }

    /// The next connection of the agent; `None` if it exits or lets time pass instead.
    pub(crate) async fn accept(&mut self, within: Duration) -> Option<UnixStream> {
        let accepted = async {
            tokio::select! {
                biased;
                accepted = self.listener.accept() => accepted.ok(),
                _ = self.child.wait() => None,
            }
        };
        Some(timeout(within, accepted).await.ok().flatten()?.0)
    }

    /// How the command ended; `None` if it has not in time.
    pub(crate) async fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        timeout(within, self.child.wait()).await.ok()?.ok()
    }

    /// Ends everything that was started, and says whether the output ever showed the token.
    pub(crate) async fn end(mut self, within: Duration) -> bool {
        self.kill();
        let _ = self.exit(within).await;
        let mut shown = false;
        for drain in &mut self.output {
            shown |= drain.finish(within).await;
        }
        shown
    }

    fn kill(&self) {
        // Once the child is reaped its number may belong to somebody else.
        let group = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for pid in carriers(&self.token) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A short, private folder.
fn place() -> std::io::Result<TempDir> {
    let place = tempfile::Builder::new().prefix("wharf-").tempdir()?;
    if place.path().as_os_str().len() <= FOLDER_BYTES_MAX {
        return Ok(place);
    }
    tempfile::Builder::new().prefix("wharf-").tempdir_in("/tmp")
}

/// Every process whose environment holds the token.
fn carriers(token: &str) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            holds(&environment, token.as_bytes()).then_some(pid)
        })
        .collect()
}

fn holds(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

/// Reads one of the command's outputs to its end and looks for the token in it.
#[derive(Debug)]
struct Drain {
    shown: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Drain {
    fn new(output: Option<impl AsyncRead + Unpin + Send + 'static>, token: &str) -> Self {
        let shown = Arc::new(AtomicBool::new(false));
        let (seen, token) = (Arc::clone(&shown), token.to_owned());
        let task = output.map(|output| tokio::spawn(look_for(token, output, seen)));
        Self { shown, task }
    }

    async fn finish(&mut self, within: Duration) -> bool {
        if let Some(mut task) = self.task.take()
            && timeout(within, &mut task).await.is_err()
        {
            task.abort();
        }
        self.shown.load(Ordering::Acquire)
    }
}

async fn look_for(token: String, mut output: impl AsyncRead + Unpin, shown: Arc<AtomicBool>) {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        if holds(&kept, token.as_bytes()) {
            shown.store(true, Ordering::Release);
        }
        // A token may be cut by two reads, so its length stays for the next one.
        kept.drain(..kept.len().saturating_sub(token.len()));
    }
}
