//! The connection to a seat. It is made again for as long as the seat is there; the core sends
//! everything again that waits.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use reqwest::header::{CONNECTION, HeaderValue, UPGRADE};
use reqwest::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use reqwest::{Method, StatusCode, Upgraded};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use wharf_client::{Client, Error};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session};
use wharf_socket::{Clock, Owner, Patience, PumpEnd, pump, split_frames};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_vocab::{Backoff, Code};
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage, Seat, close};
use wharf_wire::rest_v1::ErrorBody;

use super::seat::{HeldSeat, bearer};
use crate::commands::CliError;

/// Largest message that is read.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long making a connection and sending a message may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The core pings every half minute; without anything for this long the connection is dead.
const SILENCE_MS: u64 = 90_000;
/// How long to rest between tries while the core is away.
pub(super) const RECONNECT: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// What comes from a seat.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// A connection was made; what waits follows.
    Connected,
    Frame(Box<CoreMessage>),
    /// A frame that this program does not know.
    Unknown,
    /// The connection is gone and will be made again.
    Lost(String),
    /// The seat cannot be sat on any more.
    Ended(CliError),
}

type Socket = WebSocketStream<Upgraded>;

/// Why a connection ended.
enum LinkEnd {
    /// Nobody listens here any more.
    Left,
    Lost(String),
    /// The core ended it on purpose.
    Closed(String),
}

/// Keeps a connection until nobody listens or the seat is gone.
pub(super) async fn keep(
    client: Client,
    taken: HeldSeat,
    heard: mpsc::Sender<LinkEvent>,
    mut replies: mpsc::Receiver<OperatorMessage>,
) {
    let (mut backoff, mut away) = (RECONNECT, false);
    loop {
        let lost = match open(&client, &taken).await {
            Ok(socket) => {
                (backoff, away) = (RECONNECT, false);
                while replies.try_recv().is_ok() {}
                if heard.send(LinkEvent::Connected).await.is_err() {
                    return;
                }
                match serve(socket, &heard, &mut replies).await {
                    LinkEnd::Left => return,
                    LinkEnd::Lost(why) => why,
                    LinkEnd::Closed(why) => match taken_away(&client, &taken, &why).await {
                        Some(failure) => return end(&heard, failure).await,
                        None => why,
                    },
                }
            }
            Err(failure) if failure.is_outage() => failure.message().to_owned(),
            Err(failure) => return end(&heard, failure.into()).await,
        };
        if !std::mem::replace(&mut away, true) && heard.send(LinkEvent::Lost(lost)).await.is_err() {
            return;
        }
        if rest(backoff.pause(), &mut replies).await {
            return;
        }
    }
}

/// Rests for a while; `true` if nobody has anything to say any more. What is said meanwhile is
/// said again when the core asks again.
async fn rest(pause: Duration, replies: &mut mpsc::Receiver<OperatorMessage>) -> bool {
    let mut resting = std::pin::pin!(tokio::time::sleep(pause));
    loop {
        tokio::select! {
            () = &mut resting => return false,
            reply = replies.recv() => if reply.is_none() { return true },
        }
    }
}

async fn end(heard: &mpsc::Sender<LinkEvent>, failure: CliError) {
    // When nobody listens nobody needs to know.
    let _ = heard.send(LinkEvent::Ended(failure)).await;
}

/// Why the seat cannot be sat on again after the core closed the connection, if so.
async fn taken_away(client: &Client, taken: &HeldSeat, why: &str) -> Option<CliError> {
    let client = client.found_again().ok()?;
    let path = ["v1", "operators", taken.sid.as_str()];
    let request = client.request(Method::GET, &path).timeout(PATIENCE);
    let seat = seat_of(&client, request.headers(bearer(&taken.token).ok()?)).await;
    match seat {
        Ok(seat) if seat.connected => {
            let message = format!("the seat was taken over: {why}");
            Some(CliError::failed(Code::SeatNotFound, message))
        }
        Err(error) if !error.is_outage() => Some(error.into()),
        Ok(_) | Err(_) => None,
    }
}

async fn seat_of(client: &Client, request: reqwest::RequestBuilder) -> wharf_client::Result<Seat> {
    let answer = client.send(request).await?;
    answer.json().await.map_err(|error| client.lost(&error))
}

async fn open(client: &Client, taken: &HeldSeat) -> wharf_client::Result<Socket> {
    let client = client.found_again()?;
    let broken = || Error::new(Code::CoreUnreachable, "the core closed the connection");
    let path = ["v1", "operators", taken.sid.as_str(), "ws"];
    let key = generate_key();
    let mut headers = bearer(&taken.token)?;
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::try_from(key.as_str()).map_err(|_| broken())?);
    let sent = client.request(Method::GET, &path).headers(headers).send();
    let answer = tokio::time::timeout(PATIENCE, sent).await.map_err(|_| broken())?;
    let answer = answer.map_err(|error| client.lost(&error))?;
    let status = answer.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = answer.bytes().await.map_err(|error| client.lost(&error))?;
        return Err(match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Error::answered(status.as_u16(), body),
            Err(_) if status.is_server_error() => broken(),
            Err(_) => {
                Error::new(Code::CoreInternal, format!("the core answers {status} to a seat"))
            }
        });
    }
    let accepted = answer.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|value| value != derive_accept_key(key.as_bytes()).as_str()) {
        return Err(Error::new(Code::CoreInternal, "what answers is not a WebSocket"));
    }
    let upgraded = answer.upgrade().await.map_err(|error| client.lost(&error))?;
    let limits = WebSocketConfig::default()
        .read_buffer_size(SOCKET_READ_BYTES)
        .max_write_buffer_size(MESSAGE_BYTES_MAX + SOCKET_SPARE_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await)
}

async fn serve(
    socket: Socket,
    heard: &mpsc::Sender<LinkEvent>,
    replies: &mut mpsc::Receiver<OperatorMessage>,
) -> LinkEnd {
    let (mut source, mut sink) = split_frames(socket);
    let clock = Clock::start();
    let mut link = SeatLink { session: SeatEnd::new(clock.now()), clock, heard, replies };
    // The core has read everything before it answers that somebody leaves.
    let patience = Patience { write: Some(PATIENCE), close: PATIENCE, lingers: true };
    let end = pump(&mut source, &mut sink, &mut link, patience).await;
    match link.session.closed {
        _ if end == PumpEnd::GivenBack || link.session.leaving => LinkEnd::Left,
        Some(Closed::With { code: close::NORMAL, reason }) => LinkEnd::Closed(reason),
        Some(Closed::With { reason, .. }) if !reason.is_empty() => LinkEnd::Lost(reason),
        _ => LinkEnd::Lost("the connection to the core was lost".to_owned()),
    }
}

/// A connection and whom it serves.
struct SeatLink<'a> {
    session: SeatEnd,
    clock: Clock,
    heard: &'a mpsc::Sender<LinkEvent>,
    replies: &'a mut mpsc::Receiver<OperatorMessage>,
}

impl Owner for SeatLink<'_> {
    type Session = SeatEnd;
    type Command = Option<OperatorMessage>;

    fn session(&mut self) -> &mut SeatEnd {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    async fn work(&mut self) -> ControlFlow<()> {
        while let Some(event) = self.session.poll_event() {
            if self.heard.send(event).await.is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    async fn next(&mut self) -> Option<OperatorMessage> {
        self.replies.recv().await
    }

    async fn obey(&mut self, reply: Option<OperatorMessage>) {
        match reply.map(|reply| serde_json::to_string(&reply)) {
            Some(Ok(text)) => self.session.out.push_back(Outgoing::Text(text)),
            Some(Err(_)) => {}
            None if self.session.leaving => {}
            None => {
                self.session.leaving = true;
                let (code, reason) = (close::NORMAL, String::new());
                self.session.out.push_back(Outgoing::Close { code, reason });
            }
        }
    }
}

/// The operator's end of one connection of a seat.
struct SeatEnd {
    events: VecDeque<LinkEvent>,
    out: VecDeque<Outgoing>,
    /// When the core was heard last.
    heard_ms: u64,
    /// Whether nobody has anything to say any more.
    leaving: bool,
    closed: Option<Closed>,
}

impl SeatEnd {
    fn new(now: Moment) -> Self {
        let (events, out) = (VecDeque::new(), VecDeque::new());
        Self { events, out, heard_ms: now.ms, leaving: false, closed: None }
    }
}

impl Session for SeatEnd {
    type Event = LinkEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        self.heard_ms = now.ms;
        if let Incoming::Text(text) = incoming {
            let frame = serde_json::from_str(text);
            self.events.push_back(frame.map_or(LinkEvent::Unknown, LinkEvent::Frame));
        }
    }

    fn end(&mut self, _now: Moment, how: Closed) {
        self.closed.get_or_insert(how);
    }

    fn tick(&mut self, now: Moment) {
        if self.deadline().is_some_and(|deadline| deadline <= now.ms) {
            self.closed = Some(Closed::Silent);
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.closed.is_none().then_some(self.heard_ms + SILENCE_MS)
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
}
