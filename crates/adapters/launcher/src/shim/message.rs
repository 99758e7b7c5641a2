//! What core and shim tell each other: a sealed order first, then one JSON object per line, on a
//! socket of their own.
//!
//! Both ends are the same binary, so there are no versions. Nothing here is shown or logged,
//! because an order carries the program's environment and secrets.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines, Take};
use tokio::net::unix::OwnedReadHalf;
use wharf_domain::provider::Usage;
use wharf_vocab::limits::LAUNCH_ORDER_BYTES_MAX;
use wharf_vocab::{Resource, SandboxLevel};

/// What to start, and how to fence it in.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    /// How long the program may take to end when something else than the core stops the shim.
    pub(crate) grace_ms: u64,
    /// Directories of the program's own.
    pub(crate) private_dirs: Vec<PathBuf>,
    /// Directories that the core fills for it, to be read.
    pub(crate) given_dirs: Vec<PathBuf>,
    /// Other programs that it starts.
    pub(crate) starts: Vec<PathBuf>,
    /// The secrets it gets, by name.
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    /// Where the core has put them, if the program has no files of its own to see them in.
    pub(crate) secrets_dir: Option<PathBuf>,
    pub(crate) fence: FenceOrder,
}

/// How to fence a program in. It is carried out as it stands or the launch fails.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FenceOrder {
    pub(crate) level: SandboxLevel,
    pub(crate) layers: Layers,
    /// Only find out whether it can be done; start nothing.
    pub(crate) trial: bool,
    /// Layers that shall fail, to see what happens then.
    pub(crate) missing: Layers,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) sockets: Vec<PathBuf>,
    pub(crate) egress: Option<PathBuf>,
    pub(crate) tcp_port: Option<u16>,
    pub(crate) inbound: Option<InboundOrder>,
    /// The folder that appears as `/artifacts`, where that can be.
    pub(crate) artifacts: Option<PathBuf>,
    pub(crate) usage: Usage,
    /// Ids for processes, where the kernel counts them in each namespace.
    pub(crate) ids: Option<u64>,
    /// The control group that counts for all of it.
    pub(crate) group: Option<PathBuf>,
    /// Folders that are never opened to the program as a by-product: the owner's home.
    pub(crate) homes: Vec<PathBuf>,
    /// What the program never sees.
    pub(crate) hidden: Vec<PathBuf>,
}

/// A way in. The socket is open already and comes along with the order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InboundOrder {
    /// Where it stands, to be removed when all is over.
    pub(crate) socket: PathBuf,
    /// Where it leads.
    pub(crate) port: u16,
}

impl FenceOrder {
    /// The port on which the program may listen.
    pub(crate) fn listens_on(&self) -> Option<u16> {
        self.inbound.as_ref().map(|inbound| inbound.port)
    }
}

/// The layers of the sandbox that a kernel may have or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Layers {
    pub(crate) namespaces: bool,
    pub(crate) landlock: bool,
    pub(crate) seccomp: bool,
}

impl Layers {
    pub(crate) const NONE: Self = Self { namespaces: false, landlock: false, seccomp: false };
    pub(crate) const ALL: Self = Self { namespaces: true, landlock: true, seccomp: true };
}

/// Every later line from the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShimCommand {
    /// TERM to the program's group, then kill all that is left.
    Stop { grace_ms: u64 },
    /// Kill everything now.
    Kill,
}

/// A line from the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShimReport {
    /// The program runs.
    Started { pid: i32 },
    /// It could not be started; nothing follows.
    Failed(StartFailure),
    /// It could be fenced in; nothing follows. Process ids may be counted apart.
    Tried { landlock: i32, ids_apart: bool },
    /// It ended, and everything below it is gone; nothing follows.
    Ended { how: ProgramExit, survivors: u32 },
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgramExit {
    Code(i32),
    Signal(i32),
    /// It was killed because it took too much of something.
    Limit(Resource),
    /// It did not end, although it was killed.
    Unknown,
}

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    pub(crate) step: StartStep,
    pub(crate) errno: Option<i32>,
    /// Whether the program's file is there, as seen from the working directory.
    #[serde(default)]
    pub(crate) program_exists: bool,
}

/// What was being done when a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartStep {
    /// Reading the order, or getting ready to become the program.
    Prepare,
    /// Setting what it may use up.
    Limits,
    /// Making namespaces.
    Namespaces,
    /// Making its own view of files.
    Files,
    /// Making its own network.
    Network,
    /// Applying Landlock.
    Landlock,
    /// Applying the filter of system calls.
    Seccomp,
    /// Entering the working directory.
    Cwd,
    /// Becoming the program.
    Exec,
}

impl StartStep {
    /// Whether it is a layer of the fence.
    pub(crate) fn is_of_the_fence(self) -> bool {
        !matches!(self, Self::Prepare | Self::Cwd | Self::Exec)
    }

    /// What is being done, for people.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Prepare => "getting ready",
            Self::Limits => "setting limits",
            Self::Namespaces => "making namespaces",
            Self::Files => "making its view of files",
            Self::Network => "making its network",
            Self::Landlock => "applying Landlock",
            Self::Seccomp => "filtering system calls",
            Self::Cwd => "entering the working directory",
            Self::Exec => "beginning the program",
        }
    }
}

impl StartFailure {
    pub(crate) fn new(step: StartStep, error: &io::Error) -> Self {
        Self { step, errno: error.raw_os_error(), program_exists: false }
    }
}

/// Says at which step an operation of the system failed.
pub(crate) trait AtStep<T> {
    fn at(self, step: StartStep) -> Result<T, StartFailure>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: StartStep) -> Result<T, StartFailure> {
        self.map_err(|error| StartFailure::new(step, &error.into()))
    }
}

/// What the process that carries out an order tells the warden, one line each. A program that is
/// not in namespaces tells nothing: its socket is closed when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InitReport {
    /// All is ready for the program. A descriptor of its `/proc` comes along.
    Built,
    /// The program runs, under this id there. A descriptor of its process comes along if it can.
    Started { pid: i32 },
    /// It could not be started.
    Failed(StartFailure),
    /// It could be fenced in. If ids for processes were set, so many there are.
    Tried { landlock: i32, ids: Option<u64> },
    /// It ended.
    Ended(ProgramExit),
    /// Nothing of its group is left.
    Alone,
}

/// The lines that one end of the socket reads.
#[derive(Debug)]
pub(crate) struct ShimInbox(Lines<BufReader<Take<OwnedReadHalf>>>);

impl ShimInbox {
    pub(crate) fn new(socket: OwnedReadHalf) -> Self {
        // All a peer ever says fits in twice the largest order; beyond it the peer is broken.
        let bytes_max = u64::try_from(2 * LAUNCH_ORDER_BYTES_MAX).unwrap_or(u64::MAX);
        Self(BufReader::new(socket.take(bytes_max)).lines())
    }

    /// The next message; none when the peer is gone or does not make sense. Giving up the future
    /// loses nothing.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.0.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }
}

/// Writes one message.
pub(crate) async fn send<T: Serialize>(
    socket: &mut (impl AsyncWrite + Unpin),
    message: &T,
) -> io::Result<()> {
    socket.write_all(&encode(message)?).await
}

/// One message as it is written.
pub(crate) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
