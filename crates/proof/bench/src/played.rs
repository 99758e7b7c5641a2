//! Launches that are played: nothing is started, and nothing ends by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use std::future::Future;
use std::pin::Pin;

use tokio::sync::{mpsc, watch};
use wharf_ports::launcher::{Exit, ExitHow, FenceReport, LaunchSpec, Launched, Launcher, LogLine};
use wharf_vocab::{Fault, LaunchId, SandboxLevel};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A launcher that only tells the agent's id and token.
#[derive(Debug)]
pub(crate) struct Played {
    launches: mpsc::Sender<(String, String)>,
}

impl Played {
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<(String, String)>) {
        let (launches, receiver) = mpsc::channel(16);
        (Arc::new(Self { launches }), receiver)
    }
}

impl Launcher for Played {
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn Launched>, Fault>> {
        Box::pin(async move {
            let value = |name: &str| spec.env.get(name).cloned().unwrap_or_default();
            let told = (value("OPENSENTIENCE_AGENT_ID"), value("OPENSENTIENCE_SESSION_TOKEN"));
            // The benchmark may be over.
            let _ = self.launches.send(told).await;
            let process = Process {
                id: spec.launch.clone(),
                over: watch::Sender::new(false),
                fence: FenceReport::at(spec.fence.level),
            };
            Ok(Arc::new(process) as Arc<dyn Launched>)
        })
    }

    fn probe(&self) -> BoxFuture<'_, FenceReport> {
        Box::pin(async { FenceReport::at(SandboxLevel::Strict) })
    }

    fn tail(&self, _log: &Path, _lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[derive(Debug)]
struct Process {
    id: LaunchId,
    over: watch::Sender<bool>,
    fence: FenceReport,
}

impl Process {
    fn end(&self) -> BoxFuture<'static, Exit> {
        self.over.send_replace(true);
        self.exited()
    }
}

impl Launched for Process {
    fn id(&self) -> &LaunchId {
        &self.id
    }

    fn pid(&self) -> u32 {
        0
    }

    fn fence(&self) -> &FenceReport {
        &self.fence
    }

    fn owns(&self, _pid: u32) -> bool {
        true
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        let mut over = self.over.subscribe();
        Box::pin(async move {
            // A sender that is gone ends the wait too.
            let _ = over.wait_for(|over| *over).await;
            Exit { how: ExitHow::Code(0), last_stderr: None, survivors: 0 }
        })
    }

    fn stop(&self, _grace: Duration) -> BoxFuture<'static, Exit> {
        self.end()
    }

    fn kill(&self) -> BoxFuture<'static, Exit> {
        self.end()
    }

    fn tail(&self, _lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn follow(
        &self,
        _lines: usize,
    ) -> Pin<Box<dyn futures::Stream<Item = LogLine> + Send + 'static>> {
        Box::pin(futures::stream::empty())
    }
}
