//! The end that asks: the core, or any other client of a tool server.
//!
//! A [`RunClient`] follows one attempt to its end, over any number of connections. Its owner dials,
//! passes on what arrives, sends what it is polled for and acts on its events. Exactly one [`RunClientEvent::Ended`] comes, and nothing after it.
//!
//! - The server's first message must come in time. It should be an `Ack`; servers of the original
//!   message format send none, and then whatever comes first counts as one.
//! - What an attempt has cost counts as soon as any message says so, also one that is a breach.
//! - A server that numbers its messages is attached to again after a connection is lost; what it
//!   repeats is dropped and what is missing is said. A server that does not number them cannot
//!   say where it was, and asking it again might make it act again: the attempt is lost with its
//!   connection.
//! - A step that the attempt's code asks for is told once for each connection. A server that asks
//!   for more at once than may be open has broken the protocol.
//! - Only a final response ends an attempt well. A second one changes nothing; after it the
//!   server has a moment to close the connection.
//! - A server that says nothing for a while is asked for a sign of life, and then given up.

mod event;
mod pace;
mod receive;

use std::collections::{BTreeSet, VecDeque};

use wharf_vocab::{Micro, StepName};
use wharf_wire::run_v1::{Cancel, Control, Frame, RunRequest, SteppedMessage, close, encode};

pub use event::{Ended, RunClientEvent};

use crate::{Closed, Incoming, Moment, Outgoing, Pings, Session};
use pace::LogPace;

/// How long a session waits, and how much it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How long the server may take to answer a request at all.
    pub ack_ms: u64,
    /// How long the server may say nothing. After half of it the server is asked for a sign of
    /// life.
    pub silence_ms: u64,
    /// How long the server may take to close the connection after the end.
    pub linger_ms: u64,
    /// Largest message.
    pub message_bytes_max: usize,
    /// Outputs that one message may have.
    pub outputs_max: usize,
    /// Longest line of the log; a longer one is cut.
    pub line_bytes_max: usize,
    /// Lines and phases that are taken per second, on average; what is more is left out and
    /// counted.
    pub lines_per_second_max: u32,
    /// Whether the server is known to number its messages before it has sent any.
    pub numbered: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ack_ms: 10_000,
            silence_ms: 15_000,
            linger_ms: 2_000,
            message_bytes_max: 8 * 1024 * 1024,
            outputs_max: 1_024,
            line_bytes_max: 64 * 1024,
            lines_per_second_max: 1_000,
            numbered: false,
        }
    }
}

/// One attempt, as whoever asked for it sees it.
#[derive(Debug)]
pub struct RunClient {
    config: Config,
    request: RunRequest,
    state: RunClientState,
    /// The number of the last message that was taken.
    last: u64,
    /// Whether the server numbers its messages, as far as is known.
    numbered: bool,
    /// Whether a request may have reached the server.
    asked: bool,
    acked: bool,
    /// Whether the server may still acknowledge on this connection.
    may_ack: bool,
    /// The most that the server has reported as cost.
    cost_micro: Micro,
    /// Whether it was said that a reported cost is none.
    cost_warned: bool,
    canceled: bool,
    /// The steps that were asked for on this connection and have no answer.
    steps: BTreeSet<StepName>,
    /// Whether the server may know the attempt from before this session.
    resumed: bool,
    pace: LogPace,
    /// The pings of the server, over all connections.
    pings: Pings,
    events: VecDeque<RunClientEvent>,
    outgoing: VecDeque<Outgoing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunClientState {
    /// There is no connection.
    Apart,
    /// The request was sent and the server has not answered.
    Asked { since: u64 },
    /// The server has answered.
    Open { heard: u64, pinged: bool },
    /// The attempt is over; the server may close the connection until then.
    Over { until: Option<u64> },
}

impl RunClient {
    /// An attempt that the server has not seen. The request's `after` is the session's own.
    #[must_use]
    pub fn new(config: Config, request: RunRequest) -> Self {
        let pace = LogPace::new(config.lines_per_second_max);
        Self {
            numbered: config.numbered,
            config,
            request,
            state: RunClientState::Apart,
            last: 0,
            asked: false,
            acked: false,
            may_ack: true,
            cost_micro: 0,
            cost_warned: false,
            canceled: false,
            steps: BTreeSet::new(),
            resumed: false,
            pace,
            pings: Pings::new(),
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// An attempt that the server knows from before, if it has not forgotten it: it is asked to
    /// say everything again and not to begin anew.
    #[must_use]
    pub fn resume(config: Config, request: RunRequest) -> Self {
        // What is said again comes as fast as it can.
        let pace = LogPace::new(u32::MAX);
        Self { asked: true, resumed: true, pace, ..Self::new(config, request) }
    }

    /// There is a connection: the request is sent.
    pub fn connected(&mut self, now: Moment) {
        if self.state != RunClientState::Apart {
            return;
        }
        let mut request = self.request.clone();
        // Only what the server has acknowledged can be taken up again. What it may never have got
        // is sent as before: under the same run and attempt a server does not begin twice.
        let known = self.acked || self.resumed;
        request.control.after = known.then_some(self.last);
        self.asked = true;
        self.may_ack = true;
        self.state = RunClientState::Asked { since: now.ms };
        self.outgoing.clear();
        self.steps.clear();
        self.outgoing.push_back(Outgoing::Text(encode(&Frame::Request(request))));
        if self.canceled {
            self.send_cancel();
        }
    }

    /// Wants the attempt to stop. It goes on until the server says how it ended.
    pub fn cancel(&mut self) {
        if self.canceled || self.is_over() {
            return;
        }
        self.canceled = true;
        if matches!(self.state, RunClientState::Asked { .. } | RunClientState::Open { .. }) {
            self.send_cancel();
        }
    }

    fn send_cancel(&mut self) {
        let cancel = Cancel { control: Control::of(&self.request.control.run_id) };
        self.outgoing.push_back(Outgoing::Text(encode(&Frame::Cancel(cancel))));
    }

    /// Says what became of a step. Without a connection it is lost, and the server will ask again.
    pub fn answer_step(&mut self, mut answer: SteppedMessage) {
        if matches!(self.state, RunClientState::Open { .. }) {
            self.steps.remove(&answer.step);
            answer.control = Control::of(&self.request.control.run_id);
            self.outgoing.push_back(Outgoing::Text(encode(&Frame::Stepped(answer))));
        }
    }

    /// The server gave a sign of life.
    fn heard(&mut self, now: Moment) {
        if let RunClientState::Open { heard, pinged } = &mut self.state {
            *heard = now.ms;
            *pinged = false;
        }
    }

    fn disconnected(&mut self, closed: &Closed) {
        match self.state {
            RunClientState::Apart => return,
            RunClientState::Over { .. } => {
                self.state = RunClientState::Over { until: None };
                return;
            }
            RunClientState::Asked { .. } | RunClientState::Open { .. } => {}
        }
        self.state = RunClientState::Apart;
        if let Closed::With { code, reason } = closed
            && is_refusal(*code)
        {
            let begun = self.acked || self.resumed;
            return self.conclude(Ended::Refused { close: *code, reason: reason.clone(), begun });
        }
        if !self.numbered {
            self.give_up(closed.to_string());
        }
    }

    /// Nothing more can be done for the attempt.
    pub fn give_up(&mut self, cause: impl Into<String>) {
        self.conclude(Ended::Lost { cause: cause.into(), asked: self.asked });
    }

    /// Whether the attempt goes on and there is no connection.
    #[must_use]
    pub fn wants_connection(&self) -> bool {
        self.state == RunClientState::Apart
    }

    /// Whether the attempt is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, RunClientState::Over { .. })
    }

    /// Whether nothing more is to be done with the connection.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == (RunClientState::Over { until: None })
    }

    /// The number of the last message that was taken; 0 if there was none.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.last
    }

    /// The most that the server has reported as cost, however the attempt ended.
    #[must_use]
    pub fn cost_micro(&self) -> Micro {
        self.cost_micro
    }

    /// Whether the server is known to number its messages.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.numbered
    }

    /// Whether the attempt was told to stop.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.canceled
    }

    /// Ends a connection from this side.
    fn hang_up(&mut self, code: u16, closed: Closed) {
        self.outgoing.push_back(Outgoing::close(code, ""));
        self.disconnected(&closed);
        if self.state == RunClientState::Apart {
            self.events.push_back(RunClientEvent::Dropped(closed));
        }
    }

    fn conclude(&mut self, ended: Ended) {
        if self.is_over() {
            return;
        }
        self.state = RunClientState::Over { until: None };
        let left_out = self.pace.rest();
        self.events.extend(left_out.map(receive::left_out));
        self.events.push_back(RunClientEvent::Ended(ended));
    }
}

impl Session for RunClient {
    type Event = RunClientEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Text(text) => self.received(now, text),
            Incoming::Bytes(_) => self.received_binary(),
            Incoming::Ping if !self.pings.take(now.ms) => self.give_up(Closed::Pings.to_string()),
            Incoming::Ping | Incoming::Pong => self.heard(now),
            Incoming::TooLarge => self.too_large(),
            Incoming::NotText | Incoming::NotAFrame => {
                self.disconnected(&Closed::Broken("what came is no WebSocket".to_owned()));
            }
        }
    }

    /// Afterwards [`RunClient::wants_connection`] says whether another connection is worth making.
    fn end(&mut self, _now: Moment, how: Closed) {
        self.disconnected(&how);
    }

    fn tick(&mut self, now: Moment) {
        if self.deadline().is_none_or(|at| now.ms < at) {
            return;
        }
        match self.state {
            RunClientState::Asked { .. } => self.hang_up(close::PROTOCOL, Closed::NoAck),
            RunClientState::Open { heard, pinged: false } => {
                self.state = RunClientState::Open { heard, pinged: true };
                self.outgoing.push_back(Outgoing::Ping);
            }
            RunClientState::Open { .. } => self.hang_up(close::POLICY, Closed::Silent),
            RunClientState::Over { .. } => {
                self.state = RunClientState::Over { until: None };
                self.outgoing.push_back(Outgoing::close(close::NORMAL, ""));
            }
            RunClientState::Apart => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        match self.state {
            RunClientState::Apart => None,
            RunClientState::Asked { since } => Some(since.saturating_add(self.config.ack_ms)),
            RunClientState::Open { heard, pinged: false } => {
                Some(heard.saturating_add(self.config.silence_ms / 2))
            }
            RunClientState::Open { heard, .. } => {
                Some(heard.saturating_add(self.config.silence_ms))
            }
            RunClientState::Over { until } => until,
        }
    }

    fn poll_event(&mut self) -> Option<RunClientEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// There is no connection, or nothing more is to be done with it.
    fn is_closed(&self) -> bool {
        self.wants_connection() || self.is_done()
    }
}

/// Whether a server that closes with this code would do so again.
fn is_refusal(code: u16) -> bool {
    matches!(
        code,
        close::PROTOCOL | close::UNSUPPORTED | close::INVALID | close::POLICY | close::TOO_LARGE
    )
}
