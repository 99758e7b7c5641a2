//! One attempt from its request to its end, over as many connections as it takes.

use std::borrow::Cow;
use std::time::Duration;

use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use wharf_domain::run::{AttemptError, AttemptReport};
use wharf_engine::Attempt;
use wharf_protocol::Pings;
use wharf_protocol::run::client::{Closed, Event, Outgoing, Session};
use wharf_vocab::{Backoff, Executed, Fault};

use super::dial::{Socket, Unreached};
use super::known::Known;
use super::server::away;
use super::{Endpoint, Files, Server, Stop};
use crate::from_wire;
use crate::to_wire::{self, Order};

/// First pause before an attempt is attached to again; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a server may leave what is sent to it unread.
const SEND_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to close the connection after the end.
const LINGER: Duration = Duration::from_secs(2);
/// Messages that are taken in one go before their progress is written.
const MESSAGES_AT_ONCE: usize = 64;
/// Bytes that are taken in one go, but for one message that is larger.
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// A connection that lasted so long was worth making, whatever came of it.
const WORTH: Duration = Duration::from_secs(5);
/// Shorter tokens could be a word of any message.
const TOKEN_BYTES_MIN: usize = 8;
/// What a provider is given beyond its grace to say how it ended.
const SLACK: Duration = Duration::from_millis(500);

/// One attempt under way.
pub(super) struct Drive<'a> {
    server: &'a Server,
    attempt: &'a Attempt,
    stop: &'a Stop,
    session: Session,
    order: Order,
    known: Known,
    /// The start of the server under which the attempt began.
    life: Option<u64>,
    /// When an attempt that is to stop is given up.
    stop_by: Option<Instant>,
    /// The token that the server was shown.
    token: Option<String>,
    /// Since when connections are made and nothing comes of them.
    in_vain: Option<Instant>,
    /// The pauses between connections.
    pauses: Backoff,
    report: Option<AttemptReport>,
    /// The pings of the server, over all connections.
    pings: Pings,
}

/// What is done about a connection that is not there.
enum Trouble {
    /// Another try may help.
    Passing(String),
    /// Nothing helps.
    Lasting(String),
}

impl<'a> Drive<'a> {
    /// Gets ready; an error means that nothing was asked of the server.
    pub(super) async fn begin(
        server: &'a Server,
        attempt: &'a Attempt,
        files: &Files,
        stop: &'a Stop,
    ) -> Result<Self, Fault> {
        let settings = server.settings();
        let order = to_wire::order(attempt, files, settings, server.handle().now()).await?;
        let mut config = settings.session.clone();
        config.numbered = server.replays();
        let (session, known) = if attempt.dispatch().reattach {
            let known = Known::so_far(attempt.progress_so_far().await?);
            (Session::resume(config, order.request.clone()), known)
        } else {
            (Session::new(config, order.request.clone()), Known::nothing())
        };
        Ok(Self {
            server,
            attempt,
            stop,
            session,
            order,
            known,
            life: None,
            stop_by: None,
            token: None,
            in_vain: None,
            pauses: Backoff::new(PAUSE_MIN, PAUSE_MAX),
            report: None,
            pings: Pings::new(),
        })
    }

    pub(super) async fn run(mut self) -> AttemptReport {
        let mut connected = self.attempt.dispatch().reattach;
        loop {
            let socket = if connected { self.again().await } else { self.first().await };
            connected = true;
            if let Some(socket) = socket {
                let (since, number) = (Instant::now(), self.session.last_number());
                self.session.connected(self.server.now());
                self.talk(socket).await;
                self.weigh(since, self.session.last_number() > number);
            }
            // Nothing is lost by this when the attempt goes on.
            self.tell().await;
            if let Some(report) = self.report.take() {
                return report;
            }
        }
    }

    /// The first connection. When it cannot be made the attempt provably never began, and the
    /// engine may try again.
    async fn first(&mut self) -> Option<Socket> {
        let made = async {
            if let Some(fault) = self.server.refuses() {
                return Err(fault);
            }
            let endpoint = self.server.endpoint().await?;
            let dialed = self.server.dial(&endpoint).await;
            Ok((endpoint, dialed.map_err(|why| away(&why.0))?))
        };
        let made = tokio::select! {
            made = made => made,
            _ = self.stop.wanted() => {
                self.stop_by = Some(Instant::now());
                self.session.cancel();
                self.session.give_up("it was not reached in time");
                return None;
            }
        };
        match made {
            Ok((endpoint, socket)) => {
                self.life = Some(endpoint.life);
                self.token = token(&endpoint);
                Some(socket)
            }
            Err(fault) => {
                let result = Err(AttemptError::Failed(fault, Executed::No));
                self.report = Some(AttemptReport::new(result, 0));
                None
            }
        }
    }

    /// Whether a connection that is over was worth making. A server that only hangs up is asked
    /// ever more rarely, and given up like one that is not there.
    fn weigh(&mut self, since: Instant, brought_news: bool) {
        if brought_news || since.elapsed() >= WORTH {
            self.in_vain = None;
            self.pauses.reset();
        } else {
            self.in_vain.get_or_insert(since);
        }
    }

    /// A connection to a server that works on the attempt already.
    async fn again(&mut self) -> Option<Socket> {
        let apart_since = self.in_vain.unwrap_or_else(Instant::now);
        let give_up_at = apart_since + self.server.settings().apart_max;
        let mut cause = self.in_vain.map(|_| "it closes every connection at once".to_owned());
        loop {
            if let Some(cause) = cause.take()
                && !self.rest(cause, give_up_at).await
            {
                return None;
            }
            let until = self.stop_by.map_or(give_up_at, |at| at.min(give_up_at));
            let (stop, stopping) = (self.stop, self.stop_by.is_some());
            let reached = tokio::select! {
                reached = tokio::time::timeout_at(until, self.reach()) => reached,
                grace = stop.wanted(), if !stopping => {
                    self.stop_within(grace);
                    continue;
                }
            };
            let slow = || Err(Trouble::Passing("it did not answer in time".to_owned()));
            match reached.unwrap_or_else(|_| slow()) {
                Ok(socket) => return Some(socket),
                Err(Trouble::Lasting(cause)) => {
                    self.session.give_up(cause);
                    return None;
                }
                Err(Trouble::Passing(why)) => cause = Some(why),
            }
        }
    }

    /// Pauses before the next connection; `false` if the attempt is given up.
    async fn rest(&mut self, cause: String, give_up_at: Instant) -> bool {
        let until = self.stop_by.map_or(give_up_at, |at| at.min(give_up_at));
        if Instant::now() + self.pauses.peek() >= until {
            self.session.give_up(cause);
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep(self.pauses.pause()) => {}
            grace = self.stop.wanted(), if self.stop_by.is_none() => self.stop_within(grace),
        }
        true
    }

    async fn reach(&mut self) -> Result<Socket, Trouble> {
        let endpoint = self.server.endpoint().await.map_err(|fault| {
            let message = fault.message.trim_end_matches('.').to_owned();
            Trouble::Lasting(message)
        })?;
        if self.life.is_some_and(|life| life != endpoint.life) {
            let cause = "it was started anew while the attempt was under way".to_owned();
            return Err(Trouble::Lasting(cause));
        }
        let dialed = self.server.dial(&endpoint).await;
        let socket = dialed.map_err(|Unreached(why)| Trouble::Passing(why))?;
        self.life = Some(endpoint.life);
        self.token = token(&endpoint);
        Ok(socket)
    }

    fn stop_within(&mut self, grace: Duration) {
        self.stop_by = Some(Instant::now() + grace + SLACK);
        self.session.cancel();
    }

    /// Talks over one connection until it is of no use any more.
    async fn talk(&mut self, mut socket: Socket) {
        loop {
            if !self.send(&mut socket).await {
                return;
            }
            self.tell().await;
            if self.report.is_some() {
                let tasks = &self.server.settings().tasks;
                tasks.spawn_until_end("closing a connection", linger(socket));
                return;
            }
            if self.session.wants_connection() {
                return;
            }
            let wake = self.session.next_deadline().map(|ms| self.server.at(ms));
            tokio::select! {
                message = socket.next() => {
                    let mut bytes = self.take(message);
                    for _ in 1..MESSAGES_AT_ONCE {
                        if bytes >= BYTES_AT_ONCE {
                            break;
                        }
                        let Some(message) = socket.next().now_or_never() else { break };
                        bytes += self.take(message);
                    }
                }
                () = sleep_until(wake) => self.session.tick(self.server.now()),
                grace = self.stop.wanted(), if self.stop_by.is_none() => self.stop_within(grace),
                () = sleep_until(self.stop_by), if self.stop_by.is_some() => {
                    self.session.give_up("it did not stop in time");
                }
            }
        }
    }

    /// Sends what is to be sent; `false` if the connection is of no use any more.
    async fn send(&mut self, socket: &mut Socket) -> bool {
        while let Some(outgoing) = self.session.poll_send() {
            let (message, last) = match outgoing {
                Outgoing::Text(text) => (Message::text(text), false),
                Outgoing::Ping => (Message::Ping(Vec::new().into()), false),
                Outgoing::Close { code } => {
                    let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
                    (Message::Close(Some(frame)), true)
                }
            };
            let sent = tokio::time::timeout(SEND_MAX, socket.send(message)).await;
            let how = match sent {
                Ok(Ok(())) if last => return false,
                Ok(Ok(())) => continue,
                Ok(Err(error)) => broke(&error),
                Err(_) => Closed::Broken("it takes nothing more".to_owned()),
            };
            self.session.disconnected(&how);
            return false;
        }
        true
    }

    /// Takes a message; how many bytes it had.
    fn take(&mut self, message: Option<Result<Message, Error>>) -> usize {
        let now = self.server.now();
        let bytes = message.as_ref().and_then(|it| it.as_ref().ok()).map_or(0, Message::len);
        match message {
            Some(Ok(Message::Text(text))) => {
                let text = without(text.as_str(), self.token.as_deref());
                self.session.received(now, &text);
            }
            Some(Ok(Message::Binary(_))) => self.session.received_binary(),
            Some(Ok(Message::Ping(_))) if !self.pings.take(now.ms) => {
                let run = &self.attempt.dispatch().run;
                tracing::info!(%run, "a tool server sends too many pings");
                self.session.give_up(format!("it sends {}", Pings::TOO_MANY));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.session.heard(now),
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame.map_or((1005, String::new()), |frame| {
                    (frame.code.into(), frame.reason.as_str().to_owned())
                });
                self.session.disconnected(&Closed::With { code, reason });
            }
            Some(Ok(Message::Frame(_))) => {}
            Some(Err(Error::Capacity(_))) => self.session.too_large(),
            Some(Err(error)) => self.session.disconnected(&broke(&error)),
            None => self.session.disconnected(&Closed::Broken("it ended".to_owned())),
        }
        if self.session.is_numbered() && !self.server.replays() {
            self.server.learn_replays();
        }
        bytes
    }

    /// Writes what the server said as progress, and keeps how the attempt ended.
    async fn tell(&mut self) {
        let (mut pieces, mut cost, mut end) = (Vec::new(), None, None);
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Ended(ended) => end = Some(ended),
                Event::Cost(so_far) => cost = Some(so_far),
                Event::Accepted { acked: false } => self.server.note_no_ack(),
                Event::Dropped(why) => {
                    let run = &self.attempt.dispatch().run;
                    tracing::debug!(%run, %why, "a connection to a tool server was given up");
                }
                event => pieces.extend(from_wire::progress(event)),
            }
        }
        if self.attempt.dispatch().reattach {
            pieces.iter_mut().for_each(|piece| self.order.shown.restore(piece));
            pieces = self.known.only_new(pieces);
        }
        if !pieces.is_empty()
            && let Err(fault) = self.attempt.progress(pieces).await
        {
            return self.untold(fault);
        }
        // What the end says is told with the end.
        if let (Some(so_far), None) = (cost, &end)
            && let Err(fault) = self.attempt.report_cost(so_far).await
        {
            return self.untold(fault);
        }
        if let Some(ended) = end {
            let (cost, canceled) = (self.session.cost_micro(), self.session.is_canceled());
            self.report = Some(from_wire::ended(ended, cost, canceled, &self.order.places));
        }
    }

    /// The engine is stopping: the attempt is taken up again by the next one.
    fn untold(&mut self, fault: Fault) {
        let result = Err(AttemptError::Failed(fault, Executed::Maybe));
        self.report = Some(AttemptReport::new(result, self.session.cost_micro()));
    }
}

/// The token that a server is shown, if it is long enough to be recognised.
fn token(endpoint: &Endpoint) -> Option<String> {
    let bearer = endpoint.bearer.as_ref()?.expose().trim_ascii();
    let token = std::str::from_utf8(bearer).ok()?;
    (token.len() >= TOKEN_BYTES_MIN).then(|| token.to_owned())
}

/// A message without the token, which a careless server may repeat.
fn without<'t>(text: &'t str, token: Option<&str>) -> Cow<'t, str> {
    match token {
        Some(token) if text.contains(token) => text.replace(token, "***").into(),
        _ => text.into(),
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Lets a server close the connection in its own way after the end.
async fn linger(mut socket: Socket) {
    let mut pings = Pings::of_a_stranger();
    let rest = async {
        while let Some(Ok(message)) = socket.next().await {
            if matches!(message, Message::Ping(_)) && !pings.take(0) {
                return;
            }
        }
    };
    if tokio::time::timeout(LINGER, rest).await.is_err() {
        // Whether the server hears of it does not matter any more.
        let _ = tokio::time::timeout(LINGER, socket.close(None)).await;
    }
}

fn broke(error: &Error) -> Closed {
    Closed::Broken(match error {
        Error::Io(error) => error.kind().to_string(),
        Error::ConnectionClosed | Error::AlreadyClosed => "it ended".to_owned(),
        Error::WriteBufferFull(_) => "it does not read".to_owned(),
        Error::Protocol(_) | Error::Utf8(_) => "what came is no WebSocket".to_owned(),
        _ => "it failed".to_owned(),
    })
}
