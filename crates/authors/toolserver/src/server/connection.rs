//! One WebSocket: a run's request comes in, what the run says goes out.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use wharf_protocol::Pings;
use wharf_protocol::run::server::{Credential, Due, Heard, Next, Session, answer};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_wire::run_v1::{Frame, Refusal, Request, Unfit, close};

use super::hub::{Hub, Joined, Seat};
use super::metered::Metered;

/// How long a peer may take to receive a frame.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a peer may take to say good-bye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How a connection ends.
enum End {
    /// With a code and a reason.
    Close(Refusal),
    /// The peer is gone.
    Gone,
}

const STUCK: Refusal = Refusal::new(close::TRY_AGAIN, "the reader is too slow");
const PINGING: Refusal = Refusal::new(close::POLICY, Pings::TOO_MANY);
const OVER: Refusal = Refusal::new(close::NORMAL, "the run is over");

/// Serves a connection that was upgraded.
pub(super) async fn serve<S>(hub: Arc<Hub>, credential: Credential, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let bytes_max = hub.options.limits.frame_bytes_max;
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(bytes_max);
    config.max_frame_size = Some(bytes_max);
    config.read_buffer_size = SOCKET_READ_BYTES;
    config.max_write_buffer_size = bytes_max + SOCKET_SPARE_BYTES;
    let stream = Metered::new(stream, Arc::clone(&hub.unfinished));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let session = Session::new(hub.clock.now(), &hub.options.limits);
    let session = Mutex::new(session.serving(hub.options.tool.clone()));
    let pings = Pings::of_a_stranger();
    let mut connection: Connection<Metered<S>> = Connection { hub, session, sink, stream, pings };
    let end = connection.follow(credential).await;
    connection.close(end).await;
}

struct Connection<S> {
    hub: Arc<Hub>,
    session: Mutex<Session>,
    sink: SplitSink<WebSocketStream<S>, Message>,
    stream: SplitStream<WebSocketStream<S>>,
    pings: Pings,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn follow(&mut self, credential: Credential) -> End {
        let joined = match self.first().await {
            Ok(First::Request(request, bytes)) => self.hub.join(credential, request, bytes),
            Ok(First::Unfit(unfit)) => Joined::Unfit(unfit),
            Err(end) => return end,
        };
        let hub = &*self.hub;
        let mut writer = Writer { hub, session: &self.session, sink: &mut self.sink };
        match joined {
            Joined::Refused(refusal) => End::Close(refusal),
            Joined::Unfit(unfit) => match writer.answer(&unfit).await {
                Ok(()) => End::Close(OVER),
                Err(end) => end,
            },
            Joined::Seat(seat) => {
                let (session, stream) = (&self.session, &mut self.stream);
                self.pings.greeted();
                let reader = Reader { hub, session, stream, pings: &mut self.pings, bytes: 0 };
                tokio::select! {
                    end = writer.pass_on(&seat) => end,
                    end = reader.listen(&seat) => end,
                }
            }
        }
    }

    /// The request, which has to come in time.
    async fn first(&mut self) -> Result<First, End> {
        let (hub, session) = (&*self.hub, &self.session);
        let (stream, pings) = (&mut self.stream, &mut self.pings);
        let mut reader = Reader { hub, session, stream, pings, bytes: 0 };
        loop {
            let deadline = lock(session).deadline_ms();
            let heard = tokio::select! {
                heard = reader.next() => heard?,
                () = sleep_until(hub.clock.instant(deadline)) => {
                    match lock(session).time(hub.clock.now()) {
                        Due::Close(refusal) => return Err(End::Close(refusal)),
                        Due::Nothing | Due::KeepAlive(_) => continue,
                    }
                }
            };
            match heard {
                Heard::Request(request) => return Ok(First::Request(request, reader.bytes)),
                Heard::Unfit(unfit) => return Ok(First::Unfit(unfit)),
                Heard::Close(refusal) => return Err(End::Close(refusal)),
                Heard::Cancel | Heard::Nothing => {}
            }
        }
    }

    /// Says why it is over, and waits a little until the peer has heard it.
    async fn close(mut self, end: End) {
        let End::Close(Refusal { code, reason }) = end else { return };
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        let goodbye = async {
            self.sink.send(Message::Close(Some(frame))).await?;
            // What the peer still sends is of no interest, but must be taken for it to read on.
            while let Some(Ok(_)) = self.stream.next().await {}
            Ok::<_, Error>(())
        };
        let _ = timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

enum First {
    /// A request, and how many bytes it had.
    Request(Request, usize),
    Unfit(Unfit),
}

fn lock(session: &Mutex<Session>) -> std::sync::MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what the peer sends.
struct Reader<'a, S> {
    hub: &'a Hub,
    session: &'a Mutex<Session>,
    stream: &'a mut SplitStream<WebSocketStream<S>>,
    pings: &'a mut Pings,
    /// How many bytes the last text had.
    bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<'_, S> {
    async fn next(&mut self) -> Result<Heard, End> {
        let read = self.stream.next().await;
        let mut session = lock(self.session);
        Ok(match read {
            Some(Ok(Message::Text(text))) => {
                self.bytes = text.len();
                session.text(self.hub.clock.now(), text.as_str())
            }
            Some(Ok(Message::Binary(_))) => session.binary(),
            Some(Ok(Message::Ping(_))) if !self.pings.take(self.hub.clock.now().ms) => {
                tracing::debug!("a peer sends too many pings");
                Heard::Close(PINGING)
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Heard::Nothing,
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => session.too_large(),
            Some(Err(Error::Utf8(_))) => session.garbled(),
            Some(Err(Error::Protocol(error))) => {
                tracing::debug!(%error, "a peer broke the rules of WebSockets");
                session.broken()
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
        })
    }

    /// Reads until the connection is to end.
    async fn listen(mut self, seat: &Seat) -> End {
        loop {
            match self.next().await {
                Err(end) => return end,
                Ok(Heard::Close(refusal)) => return End::Close(refusal),
                Ok(Heard::Cancel) => seat.cancel(),
                Ok(Heard::Nothing | Heard::Request(_) | Heard::Unfit(_)) => {}
            }
        }
    }
}

/// Writes what the peer is to know.
struct Writer<'a, S> {
    hub: &'a Hub,
    session: &'a Mutex<Session>,
    sink: &'a mut SplitSink<WebSocketStream<S>, Message>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<'_, S> {
    /// Acknowledges, and answers a request that no run came of.
    async fn answer(&mut self, unfit: &Unfit) -> Result<(), End> {
        self.acknowledge().await?;
        self.feed(answer(self.hub.profile(), unfit)).await?;
        self.flush().await
    }

    async fn acknowledge(&mut self) -> Result<(), End> {
        let ack = lock(self.session).ack(self.hub.clock.now());
        match ack {
            Some(ack) => self.send(&ack).await,
            None => Ok(()),
        }
    }

    /// Passes on what the run says until there is no more.
    async fn pass_on(&mut self, seat: &Seat) -> End {
        let cut = seat.cut.clone();
        tokio::select! {
            biased;
            () = cut.cancelled() => End::Close(STUCK),
            end = self.copy(seat) => end,
        }
    }

    async fn copy(&mut self, seat: &Seat) -> End {
        if let Err(end) = self.acknowledge().await {
            return end;
        }
        loop {
            let mut said = std::pin::pin!(seat.said.notified());
            said.as_mut().enable();
            let done = match seat.next() {
                Next::Frames(texts) => self.feed_all(texts).await,
                Next::Wait => match self.flush().await {
                    Ok(()) => self.wait(said).await,
                    Err(end) => Err(end),
                },
                Next::Close(refusal) => match self.flush().await {
                    Ok(()) => Err(End::Close(refusal)),
                    Err(end) => Err(end),
                },
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Waits for news, and breaks a silence that lasts.
    async fn wait(&mut self, news: impl Future<Output = ()>) -> Result<(), End> {
        let deadline = lock(self.session).deadline_ms();
        let deadline: Instant = self.hub.clock.instant(deadline);
        tokio::select! {
            () = news => return Ok(()),
            () = sleep_until(deadline) => {}
        }
        let due = lock(self.session).time(self.hub.clock.now());
        match due {
            Due::Nothing => Ok(()),
            Due::KeepAlive(frame) => self.send(&frame).await,
            Due::Close(refusal) => Err(End::Close(refusal)),
        }
    }

    async fn send(&mut self, frame: &Frame) -> Result<(), End> {
        self.feed(self.hub.profile().encode(frame)).await?;
        self.flush().await
    }

    async fn feed_all(&mut self, texts: Vec<String>) -> Result<(), End> {
        for text in texts {
            self.feed(text).await?;
        }
        lock(self.session).sent(self.hub.clock.now());
        Ok(())
    }

    async fn feed(&mut self, text: String) -> Result<(), End> {
        bounded(self.sink.feed(Message::text(text))).await
    }

    async fn flush(&mut self) -> Result<(), End> {
        bounded(self.sink.flush()).await
    }
}

async fn bounded(write: impl Future<Output = Result<(), Error>>) -> Result<(), End> {
    match timeout(WRITE_TIMEOUT, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Error::WriteBufferFull(_))) | Err(_) => {
            tracing::debug!("a peer does not read what it is sent");
            Err(End::Close(STUCK))
        }
        Ok(Err(_)) => Err(End::Gone),
    }
}
