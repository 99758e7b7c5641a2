//! A launcher of real processes, without a fence: what a fence would show is shown in plain ways.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use wharf_ports::launcher::{
    Exit, ExitHow, FenceReport, LaunchSpec, Launched, Launcher, LogLine, LogSource,
};
use wharf_vocab::{Code, Fault, LaunchId, SandboxLevel, Timestamp};

type Lines = Arc<Mutex<VecDeque<LogLine>>>;

/// Launches real processes and remembers how.
#[derive(Debug, Default)]
pub(crate) struct Children {
    specs: Mutex<Vec<LaunchSpec>>,
    pids: Mutex<Vec<u32>>,
    lines: Lines,
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Children {
    /// How each process was launched so far.
    pub(crate) fn specs(&self) -> Vec<LaunchSpec> {
        locked(&self.specs).clone()
    }

    /// All that processes have written so far, and what was noted of them.
    pub(crate) fn log(&self) -> String {
        locked(&self.lines).iter().map(|line| format!("{}\n", line.text)).collect()
    }

    /// Processes that are still there, of all that were started.
    pub(crate) fn alive(&self) -> usize {
        let is_alive = |pid: &&u32| {
            let pid = i32::try_from(**pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| test_kill_process_group(pid).is_ok())
        };
        locked(&self.pids).iter().filter(is_alive).count()
    }
}

impl Launcher for Children {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        let mut kept = spec.clone();
        // Whoever holds the socket keeps the core from seeing the program's end.
        kept.stdio = None;
        locked(&self.specs).push(kept);
        async move {
            let started = start(&spec, &self.lines).map_err(|error| {
                Fault::new(Code::AgentStartFailed, format!("It could not be started: {error}."))
            })?;
            locked(&self.pids).push(started.pid);
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

fn last(lines: &Lines, count: usize) -> Vec<LogLine> {
    let lines = locked(lines);
    lines.iter().skip(lines.len().saturating_sub(count)).cloned().collect()
}

fn start(spec: &LaunchSpec, lines: &Lines) -> std::io::Result<Started> {
    for folder in spec.private_dirs.iter().chain(&spec.given_dirs) {
        std::fs::create_dir_all(folder)?;
    }
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.cwd).env_clear().envs(&spec.env);
    command.stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    match &spec.stdio {
        Some(socket) => {
            command.stdin(socket.try_clone()?).stdout(socket.try_clone()?);
        }
        None => {
            command.stdin(Stdio::null()).stdout(Stdio::piped());
        }
    }
    let mut child = command.spawn()?;
    // The program holds its own ends.
    drop(command);
    let pid = child.id().unwrap_or_default();
    let secrets = Arc::new(spec.secrets.clone());
    let mut readers = Vec::new();
    if let Some(out) = child.stdout.take() {
        let lines = Arc::clone(lines);
        readers.push(tokio::spawn(read(out, LogSource::Stdout, lines, secrets.clone())));
    }
    if let Some(err) = child.stderr.take() {
        readers.push(tokio::spawn(read(err, LogSource::Stderr, Arc::clone(lines), secrets)));
    }
    let exit = watch::Sender::new(None);
    tokio::spawn(watch_over(child, exit.clone(), readers, Arc::clone(lines)));
    let fence = FenceReport::at(spec.fence.level);
    Ok(Started { id: spec.launch.clone(), pid, fence, exit, lines: Arc::clone(lines) })
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
        locked(&lines).push_back(line);
    }
}

async fn watch_over(
    mut child: Child,
    exit: watch::Sender<Option<Exit>>,
    readers: Vec<tokio::task::JoinHandle<()>>,
    lines: Lines,
) {
    let status = child.wait().await;
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
    exit: watch::Sender<Option<Exit>>,
    lines: Lines,
}

impl Started {
    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            // It may be gone already.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
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
        let mut exit = self.exit.subscribe();
        async move {
            let ended = exit.wait_for(Option::is_some).await.expect("somebody watches over it");
            ended.clone().expect("it ended")
        }
        .boxed()
    }

    fn stop(&self, grace: Duration) -> BoxFuture<'static, Exit> {
        self.signal(Signal::TERM);
        let (exited, pid) = (self.exited(), self.pid);
        async move {
            let mut exited = exited;
            if let Ok(exit) = tokio::time::timeout(grace, &mut exited).await {
                return exit;
            }
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            exited.await
        }
        .boxed()
    }

    fn kill(&self) -> BoxFuture<'static, Exit> {
        self.signal(Signal::KILL);
        self.exited()
    }

    fn tail(&self, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        let kept = last(&self.lines, lines);
        async { Ok(kept) }.boxed()
    }

    fn follow(&self, lines: usize) -> BoxStream<'static, LogLine> {
        futures::stream::iter(last(&self.lines, lines)).boxed()
    }

    fn note(&self, line: &str) {
        let line = LogLine { at: Timestamp(0), source: LogSource::Stdout, text: line.into() };
        locked(&self.lines).push_back(line);
    }
}
