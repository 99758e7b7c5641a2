//! One attempt from its request to its end, over as many connections as it takes.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::Instant;
use wharf_domain::run::AttemptError;
use wharf_engine::{Attempt, AttemptEnd, AttemptRef};
use wharf_protocol::run::client::{RunClient, RunClientEvent};
use wharf_protocol::{Incoming, Moment, Session as _};
use wharf_socket::{Owner, Patience, PumpEnd, linger, pump, sleep_until, split_frames};
use wharf_vocab::{Backoff, Executed, Fault};
use wharf_wire::run_v1::SteppedMessage;

use super::dial::{DialError, ServerSocket};
use super::known::KnownProgress;
use super::server::away;
use super::steps::StepDesk;
use super::to_wire::{self, ServerOrder};
use super::{FileAccess, ServerEndpoint, ServerLink, StopSignal, from_wire};

/// First pause before an attempt is attached to again; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a server may leave what is sent to it unread.
const SEND_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to close the connection after the end.
const LINGER: Duration = Duration::from_secs(2);
/// A connection that lasted so long was worth making, whatever came of it.
const WORTH: Duration = Duration::from_secs(5);
/// Shorter tokens could be a word of any message.
const TOKEN_BYTES_MIN: usize = 8;
/// What a provider is given beyond its grace to say how it ended.
const SLACK: Duration = Duration::from_millis(500);

/// One attempt under way.
pub(super) struct Drive<'a> {
    server: &'a ServerLink,
    attempt: &'a Attempt,
    stop: &'a StopSignal,
    session: RunClient,
    order: ServerOrder,
    known: KnownProgress,
    steps: StepDesk,
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
    report: Option<AttemptEnd>,
}

/// What is done about a connection that is not there.
enum DialTrouble {
    /// Another try may help.
    Passing(String),
    /// Nothing helps.
    Lasting(String),
}

impl<'a> Drive<'a> {
    /// Gets ready; an error means that nothing was asked of the server.
    pub(super) async fn begin(
        server: &'a ServerLink,
        attempt: &'a Attempt,
        files: &FileAccess,
        stop: &'a StopSignal,
    ) -> Result<Self, Fault> {
        let settings = server.settings();
        let order = to_wire::order(attempt, files, settings, server.handle().now()).await?;
        let mut config = settings.session.clone();
        config.numbered = server.replays();
        let (session, known) = if attempt.dispatch().reattach {
            let known = KnownProgress::so_far(attempt.progress_so_far().await?);
            (RunClient::resume(config, order.request.clone()), known)
        } else {
            (RunClient::new(config, order.request.clone()), KnownProgress::nothing())
        };
        let tasks = settings.tasks.clone();
        let steps = StepDesk::new(server.handle().clone(), AttemptRef::clone(attempt), tasks);
        Ok(Self {
            server,
            attempt,
            stop,
            session,
            order,
            known,
            steps,
            life: None,
            stop_by: None,
            token: None,
            in_vain: None,
            pauses: Backoff::new(PAUSE_MIN, PAUSE_MAX),
            report: None,
        })
    }

    pub(super) async fn run(mut self) -> AttemptEnd {
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
    async fn first(&mut self) -> Option<ServerSocket> {
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
                self.report = Some(AttemptEnd::new(result, 0));
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
    async fn again(&mut self) -> Option<ServerSocket> {
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
            let slow = || Err(DialTrouble::Passing("it did not answer in time".to_owned()));
            match reached.unwrap_or_else(|_| slow()) {
                Ok(socket) => return Some(socket),
                Err(DialTrouble::Lasting(cause)) => {
                    self.session.give_up(cause);
                    return None;
                }
                Err(DialTrouble::Passing(why)) => cause = Some(why),
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

    async fn reach(&mut self) -> Result<ServerSocket, DialTrouble> {
        let endpoint = self.server.endpoint().await.map_err(|fault| {
            let message = fault.message.trim_end_matches('.').to_owned();
            DialTrouble::Lasting(message)
        })?;
        if self.life.is_some_and(|life| life != endpoint.life) {
            let cause = "it was started anew while the attempt was under way".to_owned();
            return Err(DialTrouble::Lasting(cause));
        }
        let dialed = self.server.dial(&endpoint).await;
        let socket = dialed.map_err(|DialError(why)| DialTrouble::Passing(why))?;
        self.life = Some(endpoint.life);
        self.token = token(&endpoint);
        Ok(socket)
    }

    fn stop_within(&mut self, grace: Duration) {
        self.stop_by = Some(Instant::now() + grace + SLACK);
        self.session.cancel();
    }

    /// Talks over one connection until it is of no use any more.
    async fn talk(&mut self, socket: ServerSocket) {
        let (mut source, mut sink) = split_frames(socket);
        let patience = Patience { write: Some(SEND_MAX), close: SEND_MAX, lingers: false };
        if pump(&mut source, &mut sink, self, patience).await == PumpEnd::GivenBack {
            let tasks = &self.server.settings().tasks;
            tasks.spawn_until_end("closing a connection", linger(source, sink, LINGER));
        }
    }

    /// Writes what the server said as progress, and keeps how the attempt ended.
    async fn tell(&mut self) {
        let (mut pieces, mut cost, mut end) = (Vec::new(), None, None);
        while let Some(event) = self.session.poll_event() {
            match event {
                RunClientEvent::Ended(ended) => end = Some(ended),
                RunClientEvent::Cost(so_far) => cost = Some(so_far),
                RunClientEvent::Step(step) => self.steps.ask(*step),
                RunClientEvent::Accepted { acked: false } => self.server.note_no_ack(),
                RunClientEvent::Dropped(why) => {
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
        self.report = Some(AttemptEnd::new(result, self.session.cost_micro()));
    }
}

/// What happens to an attempt while its server works on it.
pub(super) enum DriveCommand {
    /// It is to stop.
    StopSignal(Duration),
    /// It had its time to stop.
    GiveUp,
    /// A step that it asked for is done.
    Stepped(SteppedMessage),
}

impl Owner for Drive<'_> {
    type Session = RunClient;
    type Command = DriveCommand;

    /// Their progress is written together.
    const FRAMES_AT_ONCE: usize = 64;

    fn session(&mut self) -> &mut RunClient {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.server.now()
    }

    fn receive(&mut self, incoming: Incoming<'_>) {
        let now = self.server.now();
        match incoming {
            Incoming::Text(text) => {
                let text = without(text, self.token.as_deref());
                self.session.receive(now, Incoming::Text(&text));
            }
            other => self.session.receive(now, other),
        }
        if self.session.is_numbered() && !self.server.replays() {
            self.server.learn_replays();
        }
    }

    async fn work(&mut self) -> ControlFlow<()> {
        self.tell().await;
        if self.report.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    async fn next(&mut self) -> DriveCommand {
        let stop = async {
            match self.stop_by {
                None => DriveCommand::StopSignal(self.stop.wanted().await),
                at => {
                    sleep_until(at).await;
                    DriveCommand::GiveUp
                }
            }
        };
        tokio::select! {
            biased;
            command = stop => command,
            answer = self.steps.next() => DriveCommand::Stepped(answer),
        }
    }

    async fn obey(&mut self, command: DriveCommand) {
        match command {
            DriveCommand::StopSignal(grace) => self.stop_within(grace),
            DriveCommand::GiveUp => self.session.give_up("it did not stop in time"),
            DriveCommand::Stepped(answer) => self.session.answer_step(answer),
        }
    }
}

/// The token that a server is shown, if it is long enough to be recognised.
fn token(endpoint: &ServerEndpoint) -> Option<String> {
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
