//! The handle to a launch.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use wharf_ports::launcher::{Exit, ExitHow, FenceReport, LaunchUsage, Launched, LogLine};
use wharf_vocab::{Code, Fault, LaunchId};

use crate::error::Error;
use crate::log::{LogBook, read_tail};
use crate::shim::message::ShimCommand;
use crate::{tree, usage};

/// A launch whose program was started.
#[derive(Debug)]
pub(crate) struct LaunchedProcess {
    pub(crate) id: LaunchId,
    pub(crate) pid: i32,
    pub(crate) fence: FenceReport,
    pub(crate) shim_pid: i32,
    /// When this is dropped, the supervisor kills the launch.
    pub(crate) commands: mpsc::Sender<ShimCommand>,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
    pub(crate) book: Arc<LogBook>,
    pub(crate) log_path: PathBuf,
}

impl LaunchedProcess {
    fn command(&self, command: ShimCommand) -> BoxFuture<'static, Exit> {
        // The supervisor is either gone, or has been told so often that it is stopping already.
        let _ = self.commands.try_send(command);
        self.exited()
    }
}

impl Launched for LaunchedProcess {
    fn id(&self) -> &LaunchId {
        &self.id
    }

    fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    fn fence(&self) -> &FenceReport {
        &self.fence
    }

    fn owns(&self, pid: u32) -> bool {
        // After the end the shim's id may belong to a stranger.
        let ended = self.exit.borrow().is_some();
        match i32::try_from(pid) {
            Ok(pid) if !ended => pid != self.shim_pid && tree::is_below(pid, self.shim_pid),
            _ => false,
        }
    }

    fn usage(&self) -> Option<LaunchUsage> {
        // After the end the shim's id may belong to a stranger.
        let ended = self.exit.borrow().is_some();
        if ended { None } else { usage::of(self.shim_pid, self.pid) }
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.clone();
        async move {
            let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
            // The supervisor ends without a word only with the whole runtime.
            ended.unwrap_or(Exit { how: ExitHow::Lost, last_stderr: None, survivors: 0 })
        }
        .boxed()
    }

    fn stop(&self, grace: Duration) -> BoxFuture<'static, Exit> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.command(ShimCommand::Stop { grace_ms })
    }

    fn kill(&self) -> BoxFuture<'static, Exit> {
        self.command(ShimCommand::Kill)
    }

    fn tail(&self, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        async move {
            match self.book.tail(lines) {
                Some(lines) => Ok(lines),
                None => read_log(self.log_path.clone(), lines).await,
            }
        }
        .boxed()
    }

    fn follow(&self, lines: usize) -> BoxStream<'static, LogLine> {
        self.book.follow(lines)
    }
}

/// Reads the end of a log from disk.
pub(crate) async fn read_log(path: PathBuf, lines: usize) -> Result<Vec<LogLine>, Fault> {
    let reading = spawn_blocking(move || {
        read_tail(&path, lines).map_err(|source| Error::LogRead { path, source }.into_fault(None))
    });
    reading.await.unwrap_or_else(|_| {
        Err(Fault::new(Code::CoreStopping, "The core is stopping and reads no log any more."))
    })
}
