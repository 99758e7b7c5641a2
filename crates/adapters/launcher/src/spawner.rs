//! The one thread that starts processes.
//!
//! A process that asked to be told of its parent's death is told when the *thread* that made it
//! ends. Threads of the runtime come and go, so all shims are made by one thread that lives until
//! the last launch is over.
//!
//! Who started one program often starts another soon. So when a program runs, the thread makes one
//! shim ahead, which waits without an order; that takes a good part off the next start. One that
//! nobody needs for a while goes away again, so that a core at rest holds none.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::shim;
use crate::shim::handover::Handover;

/// Starts that may wait.
const WAITING_MAX: usize = 256;
/// How long a shim that was made ahead waits for an order.
const AHEAD_FOR: Duration = Duration::from_secs(20);

/// A shim that was started.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) child: Child,
    pub(crate) pid: i32,
    pub(crate) control: UnixStream,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// The way to the thread. The thread ends when the last of these is dropped.
#[derive(Debug)]
pub(crate) struct Spawner {
    requests: SyncSender<SpawnRequest>,
}

#[derive(Debug)]
enum SpawnRequest {
    /// Somebody wants a shim.
    Shim { handover: Handover, reply: oneshot::Sender<io::Result<Shim>> },
    /// A program runs; what is done now is not in its way any more.
    Settled,
}

impl Spawner {
    /// Starts the thread; its processes are watched by the runtime that is running now.
    pub(crate) fn start(program: PathBuf) -> io::Result<Self> {
        let (requests, waiting) = sync_channel(WAITING_MAX);
        let runtime = Handle::current();
        thread::Builder::new()
            .name("wharf-spawner".into())
            .spawn(move || serve(&runtime, &program, &waiting))?;
        Ok(Self { requests })
    }

    /// Starts a shim and hands it its order.
    pub(crate) async fn spawn(&self, handover: Handover) -> Result<Shim, Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.try_send(SpawnRequest::Shim { handover, reply }).map_err(|refused| {
            match refused {
                TrySendError::Full(_) => Error::Busy,
                TrySendError::Disconnected(_) => Error::Stopping,
            }
        })?;
        answer.await.map_err(|_| Error::Stopping)?.map_err(Error::Shim)
    }

    /// Says that a start is over, so that there is time to get ready for the next.
    pub(crate) fn settled(&self) {
        // A thread that has too much to do needs no more.
        let _ = self.requests.try_send(SpawnRequest::Settled);
    }
}

fn serve(runtime: &Handle, program: &PathBuf, waiting: &Receiver<SpawnRequest>) {
    let _entered = runtime.enter();
    // A shim that is dropped loses its socket and ends.
    let mut ahead: Option<Shim> = None;
    loop {
        let request = match &ahead {
            None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => waiting.recv_timeout(AHEAD_FOR),
        };
        match request {
            Ok(SpawnRequest::Shim { handover, reply }) => {
                let shim = ahead.take().and_then(|shim| use_ahead(shim, &handover));
                let shim = shim.map_or_else(|| spawn(program, &handover), Ok);
                // Whoever asked may be gone; then the shim loses its socket and ends.
                let _ = reply.send(shim);
            }
            Ok(SpawnRequest::Settled) => ahead = ahead.or_else(|| start(program).ok()),
            Err(RecvTimeoutError::Timeout) => ahead = None,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Hands an order to a shim that was made ahead, if it lives.
fn use_ahead(mut shim: Shim, handover: &Handover) -> Option<Shim> {
    let lives = matches!(shim.child.try_wait(), Ok(None));
    (lives && handover.send(&shim.control).is_ok()).then_some(shim)
}

/// Starts a shim and hands it its order.
fn spawn(program: &PathBuf, handover: &Handover) -> io::Result<Shim> {
    let shim = start(program)?;
    // It waits on the socket until the shim is there to take it.
    handover.send(&shim.control)?;
    Ok(shim)
}

/// Starts a shim, which waits for its order.
fn start(program: &PathBuf) -> io::Result<Shim> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let control = UnixStream::from_std(ours)?;
    let mut child = Command::new(program)
        .arg0("wharf")
        .arg(shim::WORD)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    match (pid, child.stdout.take(), child.stderr.take()) {
        (Some(pid), Some(stdout), Some(stderr)) => Ok(Shim { child, pid, control, stdout, stderr }),
        _ => Err(io::ErrorKind::Other.into()),
    }
}
