//! A launcher of real processes, without a fence: what a fence would show is shown in plain ways.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::{TcpStream, UnixListener};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use wharf_ports::launcher::{
    Exit, ExitHow, FenceReport, Inbound, LaunchSpec, Launched, Launcher, LogLine, LogSource,
};
use wharf_vocab::{Code, Fault, LaunchId, SandboxLevel, Timestamp};

type Lines = Arc<Mutex<VecDeque<LogLine>>>;

/// Launches real processes and remembers how.
#[derive(Debug, Default)]
pub(crate) struct Children {
    specs: Mutex<Vec<LaunchSpec>>,
    lines: Lines,
    panics: Arc<Mutex<Option<At>>>,
}

/// Where somebody who looks after a process panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// When the process is to stop.
    Stop,
    /// When its end is waited for.
    Exited,
}

impl Children {
    /// How each process was launched so far.
    pub(crate) fn specs(&self) -> Vec<LaunchSpec> {
        self.specs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whoever asks this of a process next panics, once.
    pub(crate) fn panic_at(&self, at: At) {
        *self.panics.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// All that processes have written so far, freed of secrets.
    pub(crate) fn log(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{}\n", line.text)).collect()
    }
}

impl Launcher for Children {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        self.specs.lock().unwrap_or_else(PoisonError::into_inner).push(spec.clone());
        let (lines, panics) = (Arc::clone(&self.lines), Arc::clone(&self.panics));
        async move {
            let started = start(&spec, &lines, panics).map_err(|error| {
                Fault::new(Code::AgentStartFailed, format!("It could not be started: {error}."))
            })?;
            Ok(Arc::new(started) as Arc<dyn Launched>)
        }
        .boxed()
    }

    fn probe(&self) -> BoxFuture<'_, FenceReport> {
        async { FenceReport::at(SandboxLevel::Strict) }.boxed()
    }

    fn tail(&self, _log: &Path, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        let kept = last(&self.lines, lines);
        async { Ok(kept) }.boxed()
    }
}

/// What a server was told so far, one message per line.
pub(crate) fn seen(spec: &LaunchSpec) -> String {
    std::fs::read_to_string(format!("{}/seen.jsonl", spec.env["TMPDIR"])).unwrap_or_default()
}

fn last(lines: &Lines, count: usize) -> Vec<LogLine> {
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().skip(lines.len().saturating_sub(count)).cloned().collect()
}

fn start(
    spec: &LaunchSpec,
    lines: &Lines,
    panics: Arc<Mutex<Option<At>>>,
) -> std::io::Result<Started> {
    for folder in spec.private_dirs.iter().chain(&spec.given_dirs).chain(&spec.fence.artifacts) {
        std::fs::create_dir_all(folder)?;
    }
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.cwd).env_clear().envs(&spec.env);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    if let Some(folder) = &spec.fence.artifacts {
        command.env("TEST_ARTIFACTS", folder);
    }
    if !spec.secret_files.is_empty() {
        let folder = PathBuf::from(&spec.env["TMPDIR"]).join("secrets");
        std::fs::create_dir_all(&folder)?;
        for (name, secret) in &spec.secret_files {
            std::fs::write(folder.join(name.as_str()), secret.expose())?;
        }
        command.env("WHARF_SECRETS_DIR", folder);
    }
    if let Some(inbound) = &spec.fence.inbound {
        tokio::spawn(let_in(UnixListener::bind(&inbound.socket)?, inbound.clone()));
    }
    let mut child = command.spawn()?;
    let pid = child.id().unwrap_or_default();
    let secrets = Arc::new(spec.secrets.clone());
    let mut readers = Vec::new();
    if let Some(out) = child.stdout.take() {
        readers.push(tokio::spawn(read(
            out,
            LogSource::Stdout,
            Arc::clone(lines),
            secrets.clone(),
        )));
    }
    if let Some(err) = child.stderr.take() {
        readers.push(tokio::spawn(read(err, LogSource::Stderr, Arc::clone(lines), secrets)));
    }
    let (kill, killed) = watch::channel(false);
    let exit = watch::Sender::new(None);
    tokio::spawn(watch_over(child, killed, exit.clone(), readers, Arc::clone(lines)));
    let fence = FenceReport::at(spec.fence.level);
    let (id, lines) = (spec.launch.clone(), Arc::clone(lines));
    Ok(Started { id, pid, fence, kill, exit, lines, panics })
}

/// Passes connections on to the port, as the real one does.
async fn let_in(listener: UnixListener, inbound: Inbound) {
    while let Ok((mut outside, _)) = listener.accept().await {
        let port = inbound.port;
        tokio::spawn(async move {
            if let Ok(mut inside) = TcpStream::connect(("127.0.0.1", port)).await {
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }
        });
    }
}

async fn read(
    from: impl AsyncRead + Unpin,
    source: LogSource,
    lines: Lines,
    secrets: Arc<Vec<String>>,
) {
    let mut from = BufReader::new(from).lines();
    while let Ok(Some(mut text)) = from.next_line().await {
        for secret in secrets.iter() {
            text = text.replace(secret, "***");
        }
        let line = LogLine { at: Timestamp(0), source, text: text.into() };
        lines.lock().unwrap_or_else(PoisonError::into_inner).push_back(line);
    }
}

async fn watch_over(
    mut child: Child,
    mut killed: watch::Receiver<bool>,
    exit: watch::Sender<Option<Exit>>,
    readers: Vec<tokio::task::JoinHandle<()>>,
    lines: Lines,
) {
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        () = async { drop(killed.wait_for(|killed| *killed).await) } => None,
    };
    let status = match ended {
        Some(status) => status,
        None => {
            let _ = child.start_kill();
            child.wait().await
        }
    };
    for reader in readers {
        let _ = reader.await;
    }
    let how = match status {
        Ok(status) => status
            .signal()
            .map_or_else(|| ExitHow::Code(status.code().unwrap_or_default()), ExitHow::Signal),
        Err(_) => ExitHow::Lost,
    };
    let written = last(&lines, 50);
    let last_stderr = written.iter().rev().find(|line| line.source == LogSource::Stderr);
    let last_stderr = last_stderr.map(|line| Arc::clone(&line.text));
    exit.send_replace(Some(Exit { how, last_stderr, survivors: 0 }));
}

#[derive(Debug)]
struct Started {
    id: LaunchId,
    pid: u32,
    fence: FenceReport,
    kill: watch::Sender<bool>,
    exit: watch::Sender<Option<Exit>>,
    lines: Lines,
    panics: Arc<Mutex<Option<At>>>,
}

impl Started {
    fn panics_at(&self, at: At) {
        let due = || self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = *due() == Some(at);
        if is_due {
            *due() = None;
            panic!("as the test wants it");
        }
    }

    fn end(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.subscribe();
        async move {
            let ended = exit.wait_for(Option::is_some).await.expect("somebody watches over it");
            ended.clone().expect("it ended")
        }
        .boxed()
    }
}

impl Launched for Started {
    fn id(&self) -> &LaunchId {
        &self.id
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn fence(&self) -> &FenceReport {
        &self.fence
    }

    fn owns(&self, pid: u32) -> bool {
        pid == self.pid
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        self.panics_at(At::Exited);
        self.end()
    }

    fn stop(&self, _grace: Duration) -> BoxFuture<'static, Exit> {
        self.panics_at(At::Stop);
        self.kill()
    }

    fn kill(&self) -> BoxFuture<'static, Exit> {
        self.kill.send_replace(true);
        self.end()
    }

    fn tail(&self, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        let kept = last(&self.lines, lines);
        async { Ok(kept) }.boxed()
    }

    fn follow(&self, lines: usize) -> BoxStream<'static, LogLine> {
        futures::stream::iter(last(&self.lines, lines)).boxed()
    }
}
