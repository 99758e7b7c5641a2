//! A launcher whose processes are played by the test.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, watch};
use wharf_ports::launcher::{Exit, ExitHow, FenceReport, LaunchSpec, Launched, Launcher, LogLine};
use wharf_vocab::{Fault, LaunchId, Resource, SandboxLevel};

/// A launcher that hands each launch to the test.
#[derive(Debug)]
pub(crate) struct Played {
    launches: mpsc::Sender<Launch>,
    prompt: watch::Sender<bool>,
}

/// A launch as the test sees it.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) spec: Arc<LaunchSpec>,
    process: Arc<Process>,
}

struct Process {
    id: LaunchId,
    fence: FenceReport,
    foreign: AtomicBool,
    /// Whoever asks next whether a process is of this launch panics.
    startles: AtomicBool,
    /// A real process that stands for this one; 0 for none.
    real: AtomicU32,
    exit: watch::Sender<Option<Exit>>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Played {
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<Launch>) {
        let (launches, receiver) = mpsc::channel(64);
        (Arc::new(Self { launches, prompt: watch::Sender::new(true) }), receiver)
    }

    /// Whether the core hears of a start at once, or only when this is said again.
    pub(crate) fn be_prompt(&self, prompt: bool) {
        self.prompt.send_replace(prompt);
    }
}

impl Launcher for Played {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        async move {
            let process = Arc::new(Process {
                id: spec.launch.clone(),
                fence: FenceReport::at(spec.fence.level),
                foreign: AtomicBool::new(false),
                startles: AtomicBool::new(false),
                real: AtomicU32::new(0),
                exit: watch::Sender::new(None),
            });
            let launch = Launch { spec: Arc::new(spec), process: Arc::clone(&process) };
            self.launches.send(launch).await.expect("the test listens");
            // A process may be faster than the word of its start.
            let mut prompt = self.prompt.subscribe();
            prompt.wait_for(|prompt| *prompt).await.expect("the launcher lives");
            Ok(process as Arc<dyn Launched>)
        }
        .boxed()
    }

    fn probe(&self) -> BoxFuture<'_, FenceReport> {
        async { FenceReport::at(SandboxLevel::Strict) }.boxed()
    }

    fn tail(&self, _log: &Path, _lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }
}

impl Launch {
    pub(crate) fn env(&self, name: &str) -> &str {
        &self.spec.env[name]
    }

    /// The process ends by itself.
    pub(crate) fn exit(&self, code: i32) {
        self.process.end(ExitHow::Code(code));
    }

    /// The process ends because it took too much of something.
    pub(crate) fn exceed(&self, resource: Resource) {
        self.process.end(ExitHow::Limit(resource));
    }

    /// From now on whoever connects is no process of this launch.
    pub(crate) fn disown(&self) {
        self.process.foreign.store(true, Ordering::SeqCst);
    }

    /// Whoever asks next whether a process is of this launch panics, once.
    pub(crate) fn startle(&self) {
        self.process.startles.store(true, Ordering::SeqCst);
    }

    /// Whoever connects is a process of this launch again.
    pub(crate) fn own(&self) {
        self.process.foreign.store(false, Ordering::SeqCst);
    }

    /// From now on a real process stands for the one that is played.
    pub(crate) fn is_really(&self, pid: u32) {
        self.process.real.store(pid, Ordering::SeqCst);
    }

    /// How it ended.
    pub(crate) fn exit_of(&self) -> Option<ExitHow> {
        self.process.exit.borrow().as_ref().map(|exit| exit.how)
    }

    /// Waits until the process has ended.
    pub(crate) async fn over(&self) {
        tokio::time::timeout(crate::agent::LONG, self.process.wait()).await.expect("it ends");
    }

    /// Whether the process has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.process.exit.borrow().is_some()
    }
}

impl Process {
    fn end(&self, how: ExitHow) {
        self.exit.send_if_modified(|exit| {
            let first = exit.is_none();
            if first {
                *exit = Some(Exit { how, last_stderr: None, survivors: 0 });
            }
            first
        });
    }

    fn wait(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.subscribe();
        async move {
            let ended = exit.wait_for(Option::is_some).await.expect("the process is kept");
            ended.clone().expect("it has ended")
        }
        .boxed()
    }
}

impl Launched for Process {
    fn id(&self) -> &LaunchId {
        &self.id
    }

    fn pid(&self) -> u32 {
        match self.real.load(Ordering::SeqCst) {
            0 => 4242,
            real => real,
        }
    }

    fn fence(&self) -> &FenceReport {
        &self.fence
    }

    fn owns(&self, pid: u32) -> bool {
        assert!(!self.startles.swap(false, Ordering::SeqCst), "as the test wants it");
        let known = [std::process::id(), self.real.load(Ordering::SeqCst)];
        known.contains(&pid) && !self.foreign.load(Ordering::SeqCst)
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        self.wait()
    }

    fn stop(&self, _grace: Duration) -> BoxFuture<'static, Exit> {
        self.end(ExitHow::Code(0));
        self.wait()
    }

    fn kill(&self) -> BoxFuture<'static, Exit> {
        self.end(ExitHow::Signal(9));
        self.wait()
    }

    fn tail(&self, _lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn follow(&self, _lines: usize) -> BoxStream<'static, LogLine> {
        futures::stream::empty().boxed()
    }
}
