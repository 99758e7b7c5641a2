//! One connection: what is sent is sent at once, what comes is kept with the time it came.

use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

/// No run of a check says more than this.
const FRAMES_MAX: usize = 100_000;
const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What one write of raw bytes holds.
const PART_BYTES: usize = 64 * 1024;
/// How long an answer to a close may take to be sent.
const ANSWER: Duration = Duration::from_secs(1);

/// An open connection.
#[derive(Debug)]
pub(super) struct Session {
    socket: WebSocketStream<reqwest::Upgraded>,
    started: Instant,
    seen: Seen,
}

/// What came over a connection.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) frames: Vec<Taken>,
    /// How it ended; absent while it is open.
    pub(super) end: Option<End>,
}

/// A frame that came.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// How long after the request was sent.
    pub(super) at: Duration,
    /// The message, or why it is none.
    pub(super) value: Result<Value, String>,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// With a close frame.
    Closed {
        /// Its code; 1005 when it had none.
        code: u16,
        /// Its reason.
        reason: String,
    },
    /// Without one.
    Dropped,
    /// It was still open when the time was over.
    Open,
    /// It said more than a check reads.
    Endless,
    /// It never was one.
    Unopened(String),
}

impl Session {
    pub(super) async fn new(stream: reqwest::Upgraded) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
        Self { socket, started: Instant::now(), seen: Seen::default() }
    }

    /// Sends a message; times count from here. A server that has gone shows when reading.
    pub(super) async fn send(&mut self, message: &Value) {
        self.send_message(Message::text(message.to_string())).await;
    }

    /// Sends any WebSocket message.
    pub(super) async fn send_message(&mut self, message: Message) {
        self.started = Instant::now();
        let _ = self.socket.send(message).await;
    }

    /// Sends a text frame of these bytes past the library, which would refuse wrong ones. Goes on
    /// only while the server says nothing, since one that has refused it reads no more.
    pub(super) async fn send_raw_text(&mut self, payload: &[u8], pause: Duration) {
        self.started = Instant::now();
        if self.write_raw(&header(payload.len())).await.is_err() {
            return;
        }
        for (number, part) in payload.chunks(PART_BYTES).enumerate() {
            if self.write_raw(part).await.is_err() {
                return;
            }
            // Whoever judges a frame by its length does so now.
            let wait = if number == 0 { pause } else { Duration::ZERO };
            if self.next(wait).await.is_some() || self.has_ended() {
                return;
            }
            self.seen.end = None;
        }
    }

    async fn write_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let stream = self.socket.get_mut();
        let wrote = tokio::time::timeout(Duration::from_secs(5), async {
            stream.write_all(bytes).await?;
            stream.flush().await
        });
        wrote.await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }

    /// The next message, or none if the connection ended or none came in time.
    pub(super) async fn next(&mut self, within: Duration) -> Option<&Taken> {
        let until = Instant::now() + within;
        loop {
            if self.has_ended() {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(came) = tokio::time::timeout(left, self.socket.next()).await else {
                self.seen.end = Some(End::Open);
                return None;
            };
            let value = match came {
                Some(Ok(Message::Text(text))) => read(text.as_str()),
                Some(Ok(Message::Binary(_))) => Err("It is binary.".to_owned()),
                Some(Ok(Message::Close(frame))) => {
                    // This sends the answer, with which the connection ends in order.
                    let _ = tokio::time::timeout(ANSWER, self.socket.flush()).await;
                    self.seen.end = Some(match frame {
                        Some(frame) => End::Closed {
                            code: frame.code.into(),
                            reason: frame.reason.to_string(),
                        },
                        None => End::Closed { code: 1005, reason: String::new() },
                    });
                    return None;
                }
                Some(Ok(_)) => continue,
                Some(Err(WsError::Utf8(_))) => Err("It is not UTF-8.".to_owned()),
                Some(Err(_)) | None => {
                    self.seen.end = Some(End::Dropped);
                    return None;
                }
            };
            self.seen.frames.push(Taken { at: self.started.elapsed(), value });
            if self.seen.frames.len() >= FRAMES_MAX {
                self.seen.end = Some(End::Endless);
            }
            return self.seen.frames.last();
        }
    }

    /// Reads until `wanted` came. Says whether it did.
    pub(super) async fn read_until(
        &mut self,
        within: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> bool {
        let until = Instant::now() + within;
        self.reopen();
        while let Some(taken) = self.next(until.saturating_duration_since(Instant::now())).await {
            if taken.value.as_ref().is_ok_and(&wanted) {
                return true;
            }
        }
        false
    }

    /// Reads until the connection ends.
    pub(super) async fn read_to_end(&mut self, within: Duration) {
        self.read_until(within, |_| false).await;
    }

    /// What came so far.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Ends the connection without a word and gives what came.
    pub(super) fn finish(self) -> Seen {
        self.seen
    }

    /// A wait that ran out is no end of the connection.
    fn reopen(&mut self) {
        if self.seen.end == Some(End::Open) {
            self.seen.end = None;
        }
    }

    fn has_ended(&self) -> bool {
        self.seen.end.as_ref().is_some_and(|end| *end != End::Open)
    }
}

/// The header of a masked text frame whose mask changes nothing.
fn header(length: usize) -> Vec<u8> {
    let mut header = vec![0x81];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => header.push(0x80 | short),
        (_, Ok(middle)) => {
            header.push(0x80 | 126);
            header.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            header.push(0x80 | 127);
            header.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    header.extend_from_slice(&[0; 4]);
    header
}

/// Reads a frame as strict JSON.
fn read(text: &str) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("It is not strict JSON ({error})."))?;
    match value.get("kind") {
        Some(Value::String(_)) => Ok(value),
        _ => Err("It is no object with a kind.".to_owned()),
    }
}
