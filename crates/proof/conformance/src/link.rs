//! One connection with an agent: what is sent and received is written down as it happens.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use wharf_wire::agent_v1::FrameDecoder;

use crate::transcript::Transcript;

/// More messages than any check needs; an agent that sends more is cut off.
const LINES_MAX: usize = 50_000;
/// How long an agent may take to read what it is sent.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection with an agent. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Link {
    writer: OwnedWriteHalf,
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    transcript: Mutex<Transcript>,
    changed: Notify,
}

impl Shared {
    fn write_down(&self, change: impl FnOnce(&mut Transcript)) {
        change(&mut self.transcript.lock());
        self.changed.notify_waiters();
    }
}

impl Link {
    /// Reads from the connection from now on; frames above `limit` bytes are a fault.
    pub(crate) fn new(stream: UnixStream, limit: u32) -> Self {
        let (read, writer) = stream.into_split();
        let shared = Arc::new(Shared::default());
        let reader = tokio::spawn(read_all(read, FrameDecoder::new(limit), Arc::clone(&shared)));
        Self { writer, shared, reader }
    }

    /// What was seen until now.
    pub(crate) fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.shared.transcript.lock()
    }

    /// Sends a message. A connection the agent has closed shows in the transcript, not here.
    pub(crate) async fn send(&mut self, message: Value) {
        let bytes = frame(&message);
        self.shared.write_down(|transcript| transcript.sent(message));
        self.write(&bytes).await;
    }

    /// Sends a message, one byte at a time.
    pub(crate) async fn send_slowly(&mut self, message: Value) {
        let bytes = frame(&message);
        self.shared.write_down(|transcript| transcript.sent(message));
        for byte in bytes.chunks(1) {
            self.write(byte).await;
            tokio::task::yield_now().await;
        }
    }

    /// Sends several messages at once.
    pub(crate) async fn send_together(&mut self, messages: Vec<Value>) {
        let bytes: Vec<u8> = messages.iter().flat_map(frame).collect();
        self.shared.write_down(|transcript| messages.into_iter().for_each(|m| transcript.sent(m)));
        self.write(&bytes).await;
    }

    /// Sends bytes that hold no whole message.
    pub(crate) async fn send_garbage(&mut self, bytes: &[u8]) {
        self.shared.write_down(|transcript| transcript.garbled = true);
        self.write(bytes).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        // A peer that is gone or does not read is noticed by what does not come back.
        let _ = timeout(WRITE_TIME_MAX, self.writer.write_all(bytes)).await;
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn close(&mut self) {
        let _ = self.writer.shutdown().await;
    }

    /// Waits until `look` sees what it is looking for, the agent closes, or time is up.
    pub(crate) async fn wait<T>(
        &self,
        within: Duration,
        look: impl Fn(&Transcript) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + within;
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            {
                let transcript = self.transcript();
                let found = look(&transcript);
                if found.is_some() || transcript.ended {
                    return found;
                }
            }
            if timeout_at(until, changed).await.is_err() {
                return look(&self.transcript());
            }
        }
    }

    /// Waits until the agent has closed its end; false if it has not in time.
    pub(crate) async fn closed(&self, within: Duration) -> bool {
        self.wait(within, |transcript| transcript.ended.then_some(())).await.is_some()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A message with its length in front.
fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), body.as_bytes()].concat()
}

async fn read_all(mut read: OwnedReadHalf, mut frames: FrameDecoder, shared: Arc<Shared>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match read.read(&mut buffer).await {
            Ok(0) => {
                let end = frames.finish();
                shared.write_down(|transcript| {
                    end.unwrap_or_else(|error| transcript.frame_error(error));
                });
                break;
            }
            Ok(count) => count,
            // A connection that is torn down by force is closed as well.
            Err(_) => break,
        };
        frames.push(&buffer[..count]);
        if !take_frames(&mut frames, &shared) {
            break;
        }
    }
    shared.write_down(|transcript| transcript.ended = true);
}

/// Writes down every complete frame; false when nothing that follows could be read.
fn take_frames(frames: &mut FrameDecoder, shared: &Shared) -> bool {
    let mut transcript = shared.transcript.lock();
    let goes_on = loop {
        match frames.next_frame() {
            Ok(Some(frame)) if transcript.lines.len() < LINES_MAX => transcript.frame(frame),
            Ok(Some(_)) => break false,
            Ok(None) => break true,
            Err(error) => {
                transcript.frame_error(error);
                break false;
            }
        }
    };
    drop(transcript);
    shared.changed.notify_waiters();
    goes_on
}
