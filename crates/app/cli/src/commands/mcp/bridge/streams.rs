//! Standard input and output. Reading and writing them blocks, so each has a thread of its own.

use std::io::Read as _;

use tokio::sync::{mpsc, oneshot};
use wharf_protocol::mcp::{McpLine, McpLines};
use wharf_wire::mcp_v1::limits::FROM_CLIENT_BYTES_MAX;

use crate::commands::Output;

/// Lines that may wait on either side.
const LINES_MAX: usize = 16;
const READ_BYTES: usize = 64 * 1024;

/// What the client says.
pub(super) struct LinesIn(mpsc::Receiver<McpLine>);

impl LinesIn {
    /// Begins to read standard input.
    pub(super) fn open() -> Self {
        let (sender, lines) = mpsc::channel(LINES_MAX);
        std::thread::spawn(move || read(&sender));
        Self(lines)
    }

    /// The next line; `None` when the client has left.
    pub(super) async fn next(&mut self) -> Option<McpLine> {
        self.0.recv().await
    }
}

fn read(sender: &mpsc::Sender<McpLine>) {
    let mut lines = McpLines::new(FROM_CLIENT_BYTES_MAX);
    let mut piece = vec![0; READ_BYTES];
    let mut input = std::io::stdin().lock();
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        lines.push(&piece[..read]);
        while let Some(line) = lines.pop() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    }
    // A last line may have no end.
    lines.push(b"\n");
    while let Some(line) = lines.pop() {
        if sender.blocking_send(line).is_err() {
            return;
        }
    }
}

/// What the client is told.
pub(super) struct LinesOut {
    lines: mpsc::Sender<String>,
    done: oneshot::Receiver<()>,
}

impl LinesOut {
    /// Begins to write standard output.
    pub(super) fn open(output: Output) -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(LINES_MAX);
        let (finished, done) = oneshot::channel();
        std::thread::spawn(move || {
            while let Some(line) = waiting.blocking_recv() {
                if output.line(&line).is_err() {
                    break;
                }
            }
            let _ = finished.send(());
        });
        Self { lines, done }
    }

    /// Writes a line; `false` if nobody reads any more.
    pub(super) async fn send(&self, line: String) -> bool {
        self.lines.send(line).await.is_ok()
    }

    /// Waits until everything is written, or nobody reads it.
    pub(super) async fn finish(self) {
        drop(self.lines);
        let most = std::time::Duration::from_secs(5);
        let _ = tokio::time::timeout(most, self.done).await;
    }
}
