//! One end of a connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::tool_v1::{Offer, OfferedTool, Request, ToolMessage, UnreadableFrame};
use wharf_wire::ws::close;

use super::{CallError, Counters, Limits, ToolAnswer, ToolEvent, ToolRequest};
use crate::heartbeat::{Beat, Heartbeat};
use crate::{Closed, Incoming, Moment, Outgoing, Pings, Session};

/// Calls that were answered and may be answered again by mistake; more are not told apart from
/// calls that never were.
const ANSWERED_KEPT_MAX: usize = 256;

/// Frames that may wait before a cost of what is still served is told only with the response.
const COSTS_WAITING_MAX: usize = 64;

/// One end of a connection.
#[derive(Debug)]
pub struct ToolSession {
    /// Whether the peer knows the additions that are keys: the marker of faults, and costs.
    marked: bool,
    /// Whether requests are written without their envelope.
    bare: bool,
    limits: Limits,
    calls: BTreeSet<String>,
    /// Requests that are served, and what each has cost so far.
    served: BTreeMap<String, u64>,
    answered: VecDeque<String>,
    frames: VecDeque<String>,
    frames_bytes: usize,
    events: VecDeque<ToolEvent>,
    counters: Counters,
    /// Signs of life, where the carrier has none of its own.
    heartbeat: Option<Heartbeat>,
    /// Whether a sign of life is to be asked for.
    ping: bool,
    pings: Pings,
    ending: Option<Outgoing>,
    closed: Option<Closed>,
}

impl ToolSession {
    /// A session on a new connection. `marked` says whether the peer is known to read the marker
    /// of faults and costs, `bare` whether requests go without an envelope, as over server-sent events.
    #[must_use]
    pub fn new(marked: bool, bare: bool, limits: Limits) -> Self {
        Self {
            marked,
            bare,
            limits,
            calls: BTreeSet::new(),
            served: BTreeMap::new(),
            answered: VecDeque::new(),
            frames: VecDeque::new(),
            frames_bytes: 0,
            events: VecDeque::new(),
            counters: Counters::default(),
            heartbeat: None,
            ping: false,
            pings: Pings::new(),
            ending: None,
            closed: None,
        }
    }

    /// The same session, which asks for signs of life and misses them after a while.
    #[must_use]
    pub fn with_heartbeat(self, now: Moment, ping_ms: u64, silence_ms: u64) -> Self {
        Self { heartbeat: Some(Heartbeat::new(now, ping_ms, silence_ms)), ..self }
    }

    /// Ends the connection from this side. What waits is still sent.
    pub fn close(&mut self, code: u16, reason: &str) {
        self.finish(Closed::ByOwner, code, reason);
    }

    fn finish(&mut self, why: Closed, code: u16, reason: &str) {
        if self.closed.is_none() {
            self.closed = Some(why);
            self.ending = Some(Outgoing::close(code, reason));
        }
    }

    /// Why the connection is over, once it is.
    #[must_use]
    pub fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Makes a call. Its answer comes as an event under the request's id.
    pub fn call(&mut self, request: Request) -> Result<(), CallError> {
        let id = request.id.clone();
        self.send_call(id, &ToolMessage::Request(request))
    }

    /// Makes a call on behalf of a request that is being served here.
    pub fn call_within(&mut self, of: &str, request: Request) -> Result<(), CallError> {
        let id = request.id.clone();
        self.send_call(id, &ToolMessage::Child { of: of.to_owned(), request })
    }

    fn send_call(&mut self, id: String, message: &ToolMessage) -> Result<(), CallError> {
        if self.closed.is_some() {
            return Err(CallError::Ended);
        }
        if self.calls.len() >= self.limits.calls_max {
            return Err(CallError::Full);
        }
        if self.calls.contains(&id) {
            return Err(CallError::Duplicate);
        }
        let frame = message.write(self.marked, self.bare);
        if frame.len() > self.limits.frame_bytes_max {
            return Err(CallError::TooLarge);
        }
        // The waiter is there before the request is.
        self.calls.insert(id);
        self.push(frame);
        Ok(())
    }

    /// Takes a call back. The peer is told, and whatever it still says is ignored. `false` if
    /// the call was over.
    pub fn cancel(&mut self, id: &str) -> bool {
        if !self.calls.remove(id) {
            return false;
        }
        self.remember(id.to_owned());
        if self.closed.is_none() {
            self.write(&ToolMessage::Cancel { id: id.to_owned() });
        }
        true
    }

    /// Says something on the way to the answer of a request; `false` if nobody waits for it, or
    /// it is too large.
    pub fn progress(&mut self, id: &str, data: Value) -> bool {
        if !self.served.contains_key(id) {
            return false;
        }
        let message =
            ToolMessage::Progress { id: id.to_owned(), data: Some(data), cost_micro: None };
        let frame = message.write(self.marked, self.bare);
        let fits = frame.len() <= self.limits.frame_bytes_max;
        if fits {
            self.push(frame);
        }
        fits
    }

    /// Says what a request has cost so far, in millionths of a dollar. A peer that knows of costs
    /// is told at once, also when the request is over; when much waits to be sent, with the
    /// response. `false` if that is nothing new, or nobody is told now.
    pub fn cost(&mut self, id: &str, so_far_micro: u64) -> bool {
        if let Some(known) = self.served.get_mut(id) {
            if so_far_micro <= *known {
                return false;
            }
            *known = so_far_micro;
            if self.frames.len() >= COSTS_WAITING_MAX {
                return false;
            }
        }
        if !self.marked || self.closed.is_some() {
            return false;
        }
        let cost_micro = Some(so_far_micro);
        self.write(&ToolMessage::Progress { id: id.to_owned(), data: None, cost_micro });
        true
    }

    /// Answers a request; `false` if it was answered or called off before. An answer that is too
    /// large for a frame becomes a failure that says so.
    pub fn answer(&mut self, id: &str, answer: &ToolAnswer) -> bool {
        let Some(cost) = self.served.remove(id) else {
            return false;
        };
        self.respond(id, answer, cost);
        true
    }

    fn respond(&mut self, id: &str, answer: &ToolAnswer, cost: u64) {
        let message = |answer: &ToolAnswer| ToolMessage::Response {
            id: id.to_owned(),
            response: answer.to_response(),
            cost_micro: (cost > 0).then_some(cost),
        };
        let mut frame = message(answer).write(self.marked, self.bare);
        if frame.len() > self.limits.frame_bytes_max {
            let fault = Fault::new(Code::ToolOutputTooLarge, "The output is too large to be sent.");
            let fault = ToolAnswer::Failed(fault.executed(Executed::Yes));
            frame = message(&fault).write(self.marked, self.bare);
        }
        self.push(frame);
    }

    /// Offers tools, and no others.
    pub fn offer(&mut self, tools: Vec<OfferedTool>) {
        self.write(&ToolMessage::Offer(tools));
    }

    /// Says what became of an offer.
    pub fn offered(&mut self, offer: Offer) {
        self.write(&ToolMessage::Offered(offer));
    }

    fn write(&mut self, message: &ToolMessage) {
        self.push(message.write(self.marked, self.bare));
    }

    fn push(&mut self, frame: String) {
        self.frames_bytes += frame.len();
        self.frames.push_back(frame);
    }

    /// Takes a frame that was read elsewhere, for owners who share the session and read frames
    /// before they lock it. They see to the size of frames themselves.
    pub fn receive_read(&mut self, read: Result<ToolMessage, UnreadableFrame>) {
        match read {
            _ if self.closed.is_some() => {}
            Ok(message) => self.take(message),
            Err(unreadable) => self.unread(unreadable),
        }
        self.check_readable();
    }

    /// Takes a frame that nobody can read.
    fn garbage(&mut self) {
        self.counters.unreadable += 1;
        self.check_readable();
    }

    fn check_readable(&mut self) {
        if self.counters.unreadable > self.limits.unreadable_max {
            self.finish(Closed::Violations, close::POLICY, "too many frames could not be read");
        }
    }

    fn take(&mut self, message: ToolMessage) {
        match message {
            ToolMessage::Request(request) => self.request(request, None),
            ToolMessage::Child { of, request } => self.request(request, Some(of)),
            ToolMessage::Progress { id, data, cost_micro } => {
                let told = self.take_cost(&id, cost_micro);
                match data {
                    Some(data) if self.calls.contains(&id) => {
                        self.events.push_back(ToolEvent::Progress { id, data });
                    }
                    _ if told => {}
                    _ => self.counters.unknown_ids += 1,
                }
            }
            ToolMessage::Response { id, response, cost_micro } if self.calls.contains(&id) => {
                self.take_cost(&id, cost_micro);
                self.calls.remove(&id);
                self.remember(id.clone());
                let answer = ToolAnswer::of_response(response);
                self.events.push_back(ToolEvent::Answered { id, answer });
            }
            ToolMessage::Response { id, cost_micro, .. } if self.answered.contains(&id) => {
                self.take_cost(&id, cost_micro);
                self.counters.duplicate_responses += 1;
            }
            ToolMessage::Cancel { id } if self.served.remove(&id).is_some() => {
                self.events.push_back(ToolEvent::Canceled { id });
            }
            // A cancel that comes too late is harmless.
            ToolMessage::Response { .. } | ToolMessage::Cancel { .. } => {
                self.counters.unknown_ids += 1
            }
            ToolMessage::Offer(tools) => self.events.push_back(ToolEvent::Offer(tools)),
            ToolMessage::Offered(offer) => self.events.push_back(ToolEvent::Offered(offer)),
            ToolMessage::Unknown => self.counters.unknown_types += 1,
        }
    }

    /// Takes in what a call has cost, if it is one that was made here; says whether it was told.
    fn take_cost(&mut self, id: &str, cost_micro: Option<u64>) -> bool {
        let Some(so_far_micro) = cost_micro.filter(|_| self.marked) else { return false };
        let known = self.calls.contains(id) || self.answered.iter().any(|it| it == id);
        if known {
            self.events.push_back(ToolEvent::Cost { id: id.to_owned(), so_far_micro });
        }
        known
    }

    fn request(&mut self, request: Request, of: Option<String>) {
        let Request { id, kind, method, payload } = request;
        let refuse = |code, message: &str| {
            ToolAnswer::Failed(Fault::new(code, message).executed(Executed::No))
        };
        if id.len() > self.limits.id_bytes_max {
            self.counters.unreadable += 1;
            return;
        }
        if self.served.contains_key(&id) {
            // The first one goes on; a second answer under its id would be taken for its own.
            self.counters.unknown_ids += 1;
            return;
        }
        if of.as_ref().is_some_and(|of| !self.calls.contains(of)) {
            let message = "The call on whose behalf this was asked is over.";
            return self.respond(&id, &refuse(Code::PermissionDenied, message), 0);
        }
        if self.served.len() >= self.limits.served_max {
            let message = "Too many calls are under way on this connection.";
            return self.respond(&id, &refuse(Code::ToolBusy, message), 0);
        }
        self.served.insert(id.clone(), 0);
        self.events.push_back(ToolEvent::Request(ToolRequest { id, kind, method, payload, of }));
    }

    /// A frame that is none is counted, and answered when somebody waits for an answer. A
    /// response that cannot be read still ends its call.
    fn unread(&mut self, unreadable: UnreadableFrame) {
        self.counters.unreadable += 1;
        let UnreadableFrame { id: Some(id), is_request, why } = unreadable else { return };
        let told = |who| format!("The {who} cannot be read: {why}.");
        if is_request && id.len() <= self.limits.id_bytes_max && !self.served.contains_key(&id) {
            let fault = Fault::new(Code::ProtocolMalformed, told("request"));
            self.respond(&id, &ToolAnswer::Failed(fault.executed(Executed::No)), 0);
        } else if self.calls.remove(&id) {
            self.remember(id.clone());
            let fault = Fault::new(Code::ToolProtocolViolation, told("response"));
            let answer = ToolAnswer::Failed(fault.executed(Executed::Maybe));
            self.events.push_back(ToolEvent::Answered { id, answer });
        }
    }

    fn remember(&mut self, id: String) {
        if self.answered.len() >= ANSWERED_KEPT_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(id);
    }

    /// Answers every request that is served with this, before an orderly end.
    pub fn answer_all(&mut self, answer: &ToolAnswer) {
        for (id, cost) in std::mem::take(&mut self.served) {
            self.respond(&id, answer, cost);
            self.events.push_back(ToolEvent::Canceled { id });
        }
    }

    /// How many frames wait to be sent.
    #[must_use]
    pub fn frames_waiting(&self) -> usize {
        self.frames.len()
    }

    /// How many bytes they have.
    #[must_use]
    pub fn bytes_waiting(&self) -> usize {
        self.frames_bytes
    }

    /// Whether a request waits for its answer.
    #[must_use]
    pub fn is_served(&self, id: &str) -> bool {
        self.served.contains_key(id)
    }

    /// How many calls wait for an answer.
    #[must_use]
    pub fn calls_waiting(&self) -> usize {
        self.calls.len()
    }

    /// How many requests are served.
    #[must_use]
    pub fn served(&self) -> usize {
        self.served.len()
    }

    /// What was ignored.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Session for ToolSession {
    type Event = ToolEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        if self.closed.is_some() {
            return;
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.heard(now);
        }
        match incoming {
            Incoming::Text(text) if text.len() > self.limits.frame_bytes_max => self.garbage(),
            Incoming::Text(text) => self.receive_read(ToolMessage::read(text)),
            Incoming::Bytes(_) => self.garbage(),
            Incoming::Ping if !self.pings.take(now.ms) => {
                self.finish(Closed::Pings, close::POLICY, Pings::TOO_MANY);
            }
            Incoming::Ping | Incoming::Pong => {}
            Incoming::TooLarge => {
                self.finish(Closed::Violations, close::TOO_LARGE, "a frame is too large");
            }
            Incoming::NotText | Incoming::NotAFrame => {}
        }
    }

    /// Every call is lost, and nobody waits for what is served.
    fn end(&mut self, _now: Moment, how: Closed) {
        self.closed.get_or_insert(how);
        self.ending = None;
        self.frames.clear();
        self.frames_bytes = 0;
        let lost = std::mem::take(&mut self.calls)
            .into_iter()
            .map(|id| ToolEvent::Answered { id, answer: ToolAnswer::Lost });
        self.events.extend(lost);
        let served = std::mem::take(&mut self.served).into_keys();
        self.events.extend(served.map(|id| ToolEvent::Canceled { id }));
    }

    fn tick(&mut self, now: Moment) {
        if self.closed.is_some() {
            return;
        }
        match self.heartbeat.as_mut().map_or(Beat::Nothing, |it| it.tick(now)) {
            Beat::Nothing => {}
            Beat::Ping => self.ping = true,
            Beat::Silent => self.end(now, Closed::Silent),
        }
    }

    fn deadline(&self) -> Option<u64> {
        let heartbeat = self.heartbeat.as_ref().filter(|_| self.closed.is_none());
        heartbeat.map(Heartbeat::deadline)
    }

    fn poll_event(&mut self) -> Option<ToolEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        if let Some(frame) = self.frames.pop_front() {
            self.frames_bytes -= frame.len();
            return Some(Outgoing::Text(frame));
        }
        if std::mem::take(&mut self.ping) {
            return Some(Outgoing::Ping);
        }
        self.ending.take()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
}
