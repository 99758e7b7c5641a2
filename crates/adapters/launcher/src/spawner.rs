//! The one thread that starts processes.
//!
//! A process that asked to be told of its parent's death is told when the *thread* that made it
//! ends. Threads of the runtime come and go, so all shims are made by one thread that lives until
//! the last launch is over.
//!
//! Who started one program often starts another soon. So when a program runs, the thread makes one
//! shim of the same kind ahead, which waits without an order; that takes a good part off the next
//! start, above all of a program in namespaces. Those that nobody needs for a while go away again,
//! so that a core at rest holds none.

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
use crate::shim::message::Layers;

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
    Shim { kind: ShimKind, handover: Handover, reply: oneshot::Sender<io::Result<Shim>> },
    /// A program runs; what is done now is not in its way any more.
    Settled(ShimKind),
}

/// What a shim does before it has an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShimKind {
    /// Nothing.
    Plain,
    /// It makes namespaces, for a program that is to run in some.
    Apart,
}

impl ShimKind {
    /// The kind for an order.
    pub(crate) fn of(layers: Layers) -> Self {
        if layers.namespaces { Self::Apart } else { Self::Plain }
    }
}

/// The shims that were made ahead, one of each kind at most. One that is dropped loses its socket
/// and ends.
#[derive(Debug, Default)]
struct ShimsAhead {
    plain: Option<Shim>,
    apart: Option<Shim>,
}

impl ShimsAhead {
    fn of(&mut self, kind: ShimKind) -> &mut Option<Shim> {
        match kind {
            ShimKind::Plain => &mut self.plain,
            ShimKind::Apart => &mut self.apart,
        }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_none() && self.apart.is_none()
    }
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
    pub(crate) async fn spawn(&self, kind: ShimKind, handover: Handover) -> Result<Shim, Error> {
        let (reply, answer) = oneshot::channel();
        let request = SpawnRequest::Shim { kind, handover, reply };
        self.requests.try_send(request).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => Error::Stopping,
        })?;
        answer.await.map_err(|_| Error::Stopping)?.map_err(Error::Shim)
    }

    /// Says that a start is over, so that there is time to get ready for the next.
    pub(crate) fn settled(&self, kind: ShimKind) {
        // A thread that has too much to do needs no more.
        let _ = self.requests.try_send(SpawnRequest::Settled(kind));
    }
}

fn serve(runtime: &Handle, program: &PathBuf, waiting: &Receiver<SpawnRequest>) {
    let _entered = runtime.enter();
    let mut ahead = ShimsAhead::default();
    loop {
        let request = if ahead.is_empty() {
            waiting.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            waiting.recv_timeout(AHEAD_FOR)
        };
        match request {
            Ok(SpawnRequest::Shim { kind, handover, reply }) => {
                let shim = ahead.of(kind).take().and_then(|shim| use_ahead(shim, &handover));
                let shim = shim.map_or_else(|| spawn(program, kind, &handover), Ok);
                // Whoever asked may be gone; then the shim loses its socket and ends.
                let _ = reply.send(shim);
            }
            Ok(SpawnRequest::Settled(kind)) => {
                let ahead = ahead.of(kind);
                if ahead.is_none() {
                    *ahead = start(program, kind).ok();
                }
            }
            Err(RecvTimeoutError::Timeout) => ahead = ShimsAhead::default(),
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
fn spawn(program: &PathBuf, kind: ShimKind, handover: &Handover) -> io::Result<Shim> {
    let shim = start(program, kind)?;
    // It waits on the socket until the shim is there to take it.
    handover.send(&shim.control)?;
    Ok(shim)
}

/// Starts a shim, which waits for its order.
fn start(program: &PathBuf, kind: ShimKind) -> io::Result<Shim> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let control = UnixStream::from_std(ours)?;
    let mut child = Command::new(program)
        .arg0("wharf")
        .arg(shim::WORD)
        .args((kind == ShimKind::Apart).then_some(shim::APART))
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
