//! What core and shim tell each other: one JSON object per line, on a socket of their own.
//!
//! Both ends are the same binary, so there are no versions. Nothing here is shown or logged,
//! because an order carries the program's environment.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines, Take};
use tokio::net::unix::OwnedReadHalf;
use wharf_vocab::limits::LAUNCH_ORDER_BYTES_MAX;

/// The first line from the core: what to start.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    /// How long the program may take to end when something else than the core stops the shim.
    pub(crate) grace_ms: u64,
}

/// Every later line from the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    /// TERM to the program's group, then kill all that is left.
    Stop { grace_ms: u64 },
    /// Kill everything now.
    Kill,
}

/// A line from the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The program runs.
    Started { pid: i32 },
    /// It could not be started; nothing follows.
    Failed(Failure),
    /// It ended, and everything below it is gone; nothing follows.
    Ended { how: How, survivors: u32 },
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    Code(i32),
    Signal(i32),
    /// It did not end, although it was killed.
    Unknown,
}

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: Option<i32>,
    /// Whether the program's file is there, as seen from the working directory.
    #[serde(default)]
    pub(crate) program_exists: bool,
}

/// What was being done when a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Reading the order, or getting ready to become the program.
    Prepare,
    /// Entering the working directory.
    Cwd,
    /// Becoming the program.
    Exec,
}

impl Failure {
    pub(crate) fn new(step: Step, error: &io::Error) -> Self {
        Self { step, errno: error.raw_os_error(), program_exists: false }
    }
}

/// The lines that one end of the socket reads.
#[derive(Debug)]
pub(crate) struct Inbox(Lines<BufReader<Take<OwnedReadHalf>>>);

impl Inbox {
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
