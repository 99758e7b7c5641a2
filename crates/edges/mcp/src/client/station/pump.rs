//! The task that owns one session and the link below it.
//!
//! It moves messages both ways and hands what happens to whoever it belongs to. Reading never
//! waits for writing: a server that does not read fills the session's own queue, which is bounded,
//! and is then not read from any more. Nothing here knows runs.

use std::collections::HashMap;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wharf_protocol::mcp::{
    McpAnswer, McpCallError, McpCallOptions, McpClientEvent, McpClientSession, McpOpenError,
    McpPeer,
};
use wharf_protocol::{Closed, Incoming, Moment, Session as _};
use wharf_vocab::{Code, Executed, Fault, Object, ProviderId, Timestamp};
use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpError, McpId, McpMessage, McpMeta, McpNotification, McpRequest, code};

use super::super::link::{LinkNews, LinkOrder, LinkSend, UpstreamLink};
use super::super::report::ProviderLog;
use super::super::upstream::{
    CallEnd, CallEvent, CallKey, CallOptions, CallOrder, CallSender, UpstreamEnd, UpstreamOrder,
    UpstreamPhase, unsent,
};
use crate::news::{McpNews, UpstreamNews};

/// Why a connection did not come about.
#[derive(Debug)]
pub(crate) struct OpenFailure {
    /// What the session says.
    pub(crate) why: McpOpenError,
    /// What the link says, if it knows more.
    pub(crate) fault: Option<Box<Fault>>,
}

/// How the beginning of a connection ended.
pub(crate) type Opened = Result<McpPeer, OpenFailure>;

/// What a pump works with.
pub(crate) struct PumpParts {
    pub(crate) provider: ProviderId,
    pub(crate) link: UpstreamLink,
    pub(crate) end: UpstreamEnd,
    /// Told once, when it is known whether calls can be made.
    pub(crate) opened: oneshot::Sender<Opened>,
    /// The folders that were approved, for a server that asks outside of any call.
    pub(crate) roots: Object,
    /// Where news for clients go.
    pub(crate) news: McpNews,
    /// Where lines go that belong to no call.
    pub(crate) log: ProviderLog,
}

/// The time as sessions have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PumpClock(Instant);

impl PumpClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Moment {
        let ms = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The sessions of MCP never ask for the calendar.
        Moment::new(ms, Timestamp(0))
    }

    fn at(self, ms: u64) -> Instant {
        self.0 + std::time::Duration::from_millis(ms)
    }
}

/// A call that waits for its end.
struct PumpCall {
    key: CallKey,
    tell: CallSender,
    takes_asks: bool,
    /// Whether it was given to the link.
    is_sent: bool,
    /// Why it did not run, if the link says so.
    fault: Option<Fault>,
    mirrors: Vec<McpMirror>,
    /// The task of 2025-11-25 that it is about.
    task: Option<String>,
}

/// A session, its link, and the calls that were made.
pub(crate) struct Pump {
    parts: PumpParts,
    session: McpClientSession,
    clock: PumpClock,
    opened: Option<oneshot::Sender<Opened>>,
    /// Whether the link takes nothing any more.
    is_mute: bool,
    /// What the link said about the beginning.
    open_fault: Option<Fault>,
    calls: HashMap<McpId, PumpCall>,
    /// The session's name of each call, in the order they were made.
    keys: HashMap<CallKey, McpId>,
    /// The call that each question of the server belongs to.
    asks: HashMap<McpId, McpId>,
}

impl Pump {
    pub(crate) fn new(mut parts: PumpParts, session: McpClientSession, clock: PumpClock) -> Self {
        let (unused, _) = oneshot::channel();
        let opened = Some(std::mem::replace(&mut parts.opened, unused));
        Self {
            parts,
            session,
            clock,
            opened,
            is_mute: false,
            open_fault: None,
            calls: HashMap::new(),
            keys: HashMap::new(),
            asks: HashMap::new(),
        }
    }

    /// Talks to the server until it is gone, or nobody wants anything of it any more.
    pub(crate) async fn run(mut self) {
        let why = loop {
            self.tell(None);
            self.send_ready();
            if self.session.is_closed() {
                break "broke the protocol too often".to_owned();
            }
            if let Some(why) = self.step().await {
                break why;
            }
        };
        self.session.end(self.clock.now(), Closed::Broken(why.clone()));
        let ended = UpstreamPhase::Ended(why);
        self.parts.end.state.send_modify(|state| state.phase = ended);
        self.tell(None);
        // Whatever the session did not know of is lost as well.
        for (_, call) in self.calls.drain() {
            call.end(McpAnswer::Lost);
        }
    }

    /// Waits for the next thing to do and does it; why there is nothing more to do.
    async fn step(&mut self) -> Option<String> {
        let deadline = self.session.deadline().map(|ms| self.clock.at(ms));
        let has_sends = !self.is_mute && self.session.sends_waiting() > 0;
        let wants = self.session.wants_input();
        let parts = &mut self.parts;
        tokio::select! {
            has_room = has_room(&parts.link.orders), if has_sends => {
                // Nobody else fills the room before the next round.
                self.is_mute = !has_room;
                None
            }
            news = parts.link.news.recv(), if wants => match news {
                Some(LinkNews::Ended(why)) => Some(why),
                Some(news) => {
                    self.hear(news);
                    None
                }
                None => Some("is gone".to_owned()),
            },
            order = parts.end.orders.recv() => match order {
                Some(order) => {
                    self.obey(order);
                    None
                }
                None => Some("is not wanted any more".to_owned()),
            },
            () = parts.end.closing.cancelled() => Some("was ended".to_owned()),
            unwanted = parts.end.unwanted.take() => {
                for key in unwanted {
                    self.cancel(key, "Nobody waits for it any more.");
                }
                None
            }
            () = sleep_until(deadline) => {
                self.session.tick(self.clock.now());
                None
            }
        }
    }

    /// Gives the link what it takes at once. When it takes nothing any more, what the server said
    /// last may still be on its way.
    fn send_ready(&mut self) {
        while self.session.sends_waiting() > 0 {
            let permit = match self.parts.link.orders.try_reserve() {
                Ok(permit) if !self.is_mute => permit,
                Err(TrySendError::Full(())) => return,
                Ok(_) | Err(TrySendError::Closed(())) => {
                    self.is_mute = true;
                    self.session.poll_message();
                    continue;
                }
            };
            if let Some(send) = self.session.poll_message() {
                permit.send(outgoing(&mut self.calls, send.message));
            }
        }
    }

    fn hear(&mut self, news: LinkNews) {
        let now = self.clock.now();
        let is_sign_of_life = !matches!(news, LinkNews::Failed { .. } | LinkNews::Lost { .. });
        if is_sign_of_life && self.parts.end.state.borrow().phase == UpstreamPhase::Unhealthy {
            self.parts.end.state.send_modify(|state| state.phase = UpstreamPhase::Well);
        }
        match news {
            LinkNews::Bytes(bytes) => self.session.receive(now, Incoming::Bytes(&bytes)),
            LinkNews::Message { of, text } => {
                self.session.receive(now, Incoming::Text(&text));
                self.tell(of.as_ref());
            }
            LinkNews::Refused { id, status, error } => {
                self.session.refused(now, &id, status, error);
            }
            LinkNews::Failed { id, fault } => {
                match self.calls.get_mut(&id) {
                    Some(call) => call.fault = Some(fault),
                    None => self.open_fault = Some(fault),
                }
                self.session.lost(now, &id);
            }
            LinkNews::Lost { id } => self.session.lost(now, &id),
            LinkNews::SessionGone { id } => {
                if let Some(call) = self.calls.get_mut(&id) {
                    call.fault = Some(session_gone());
                }
                self.session.lost(now, &id);
            }
            // It ends the loop before it comes here.
            LinkNews::Ended(_) => {}
        }
    }

    fn obey(&mut self, order: UpstreamOrder) {
        match order {
            UpstreamOrder::Call(order) => self.call(*order),
            UpstreamOrder::Cancel { key, reason } => self.cancel(key, &reason),
            UpstreamOrder::Answer { id, answer } => {
                self.asks.remove(&id);
                // A server that does not want to know any more has said so.
                self.session.answer(&id, answer);
            }
        }
    }

    fn call(&mut self, order: CallOrder) {
        let CallOrder { key, request, options, tell } = order;
        let how = McpCallOptions {
            timeout_ms: options.timeout.and_then(|it| u64::try_from(it.as_millis()).ok()),
            progress: options.progress,
        };
        match self.session.call(self.clock.now(), &request, how) {
            Ok(id) => {
                let CallOptions { takes_asks, mirrors, task, .. } = options;
                let (is_sent, fault) = (false, None);
                let call = PumpCall { key, tell, takes_asks, is_sent, fault, mirrors, task };
                self.calls.insert(id.clone(), call);
                self.keys.insert(key, id);
            }
            Err(error) => tell.end(CallEnd::Unsent(unsent(error))),
        }
    }

    fn cancel(&mut self, key: CallKey, reason: &str) {
        let Some(id) = self.keys.get(&key).cloned() else { return };
        self.session.cancel(&id, reason);
        // Over HTTP this is what ends its stream; elsewhere it means nothing.
        let _ = self.parts.link.orders.try_send(LinkOrder::Forget(id));
    }

    /// Hands on what happened. `of` is the request whose stream carried what was just heard.
    fn tell(&mut self, of: Option<&McpId>) {
        while let Some(event) = self.session.poll_event() {
            match event {
                McpClientEvent::Ready(peer) => self.open(Ok(*peer)),
                McpClientEvent::Failed(why) => {
                    let fault = self.open_fault.take().map(Box::new);
                    self.open(Err(OpenFailure { why, fault }));
                }
                McpClientEvent::Answered { id, answer } => self.answered(&id, answer),
                McpClientEvent::Progress { id, progress } => {
                    self.event(&id, CallEvent::Progress(progress));
                }
                McpClientEvent::Asked { id, request } => {
                    self.asked(of, id, request);
                }
                McpClientEvent::AskCanceled { id, .. } => {
                    if let Some(call) = self.asks.remove(&id) {
                        self.event(&call, CallEvent::AskCanceled(id));
                    }
                }
                McpClientEvent::Told { notification, .. } => self.told(of, *notification),
                McpClientEvent::Stray(line) => self.parts.log.stray(&line),
                McpClientEvent::Unhealthy => {
                    let unhealthy = UpstreamPhase::Unhealthy;
                    self.parts.end.state.send_modify(|state| state.phase = unhealthy);
                }
            }
        }
    }

    fn open(&mut self, opened: Opened) {
        if let Ok(peer) = &opened {
            let agreed = LinkOrder::Agreed(peer.revision);
            // Nothing else was ordered yet but the handshake, so there is room.
            let _ = self.parts.link.orders.try_send(agreed);
        }
        if let Some(tell) = self.opened.take() {
            // Whoever wanted to know may have left.
            let _ = tell.send(opened);
        }
    }

    fn answered(&mut self, id: &McpId, answer: McpAnswer) {
        if let Some(call) = self.calls.remove(id) {
            self.keys.remove(&call.key);
            self.asks.retain(|_, of| of != id);
            call.end(answer);
        }
    }

    fn event(&self, id: &McpId, event: CallEvent) -> bool {
        self.calls.get(id).is_some_and(|call| call.tell.event(event))
    }

    /// The call that something belongs to which does not say so: the one whose stream carried it,
    /// else the one that was made last of those that take questions. Where a server works on
    /// several calls over one stream nothing tells more.
    fn owner(&self, of: Option<&McpId>) -> Option<McpId> {
        let takes = |id: &&McpId| self.calls.get(*id).is_some_and(|call| call.takes_asks);
        let carried = of.filter(takes);
        let newest = || {
            let open = self.calls.iter().filter(|(_, call)| call.takes_asks);
            // What belongs to a task says so.
            open.max_by_key(|(_, call)| (call.task.is_none(), call.key)).map(|(id, _)| id)
        };
        carried.or_else(newest).cloned()
    }

    /// The call that is about a task of 2025-11-25.
    fn of_task(&self, task: &str) -> Option<McpId> {
        let is_it = |call: &PumpCall| call.task.as_deref() == Some(task);
        self.calls.iter().find(|(_, call)| is_it(call)).map(|(id, _)| id.clone())
    }

    /// Hands on what the server asks; what nobody can answer is refused.
    fn asked(&mut self, of: Option<&McpId>, id: McpId, request: Box<McpRequest>) {
        let task = request.meta().and_then(McpMeta::related_task).map(str::to_owned);
        let is_roots = matches!(*request, McpRequest::RootsList(_));
        let event = CallEvent::Asked { id: id.clone(), request };
        let owner = task.and_then(|task| self.of_task(&task)).or_else(|| self.owner(of));
        if let Some(call) = owner
            && self.event(&call, event)
        {
            self.asks.insert(id, call);
            return;
        }
        // Some servers want to know their folders as soon as they begin.
        let error = McpError::new(code::INTERNAL, "No call is under way that this belongs to.");
        let answer = if is_roots { Ok(self.parts.roots.clone()) } else { Err(error) };
        self.session.answer(&id, answer);
    }

    fn told(&mut self, of: Option<&McpId>, told: McpNotification) {
        let provider = || self.parts.provider.clone();
        match told {
            McpNotification::Log(log) => match self.owner(of) {
                Some(call) => drop(self.event(&call, CallEvent::Log(Box::new(log.known)))),
                None => self.parts.log.message(&log),
            },
            McpNotification::ToolsChanged(_) => self.lists_changed(),
            McpNotification::PromptsChanged(_) => {
                self.parts.news.tell(UpstreamNews::PromptsChanged { provider: provider() });
                self.lists_changed();
            }
            McpNotification::ResourcesChanged(_) => {
                self.parts.news.tell(UpstreamNews::ResourcesChanged { provider: provider() });
                self.lists_changed();
            }
            McpNotification::ResourceUpdated(updated) => {
                let uri = updated.uri.clone();
                self.parts.news.tell(UpstreamNews::ResourceUpdated { provider: provider(), uri });
            }
            McpNotification::TaskOf11(task) => {
                if let Some(call) = self.of_task(&task.task_id) {
                    self.event(&call, CallEvent::TaskOf11(Box::new(task.known)));
                }
            }
            // The session takes care of these, or nobody has to know: tasks of the extension are
            // asked about, and whoever was sent to an address says so.
            McpNotification::Task(_) | McpNotification::ElicitationDone(_) => {}
            McpNotification::Initialized(_)
            | McpNotification::Canceled(_)
            | McpNotification::Progress(_)
            | McpNotification::RootsChanged(_)
            | McpNotification::Listened(_)
            | McpNotification::Other { .. } => {}
        }
    }

    fn lists_changed(&self) {
        self.parts.end.state.send_modify(|state| state.lists_changed += 1);
    }
}

impl PumpCall {
    fn end(self, answer: McpAnswer) {
        let end = match (answer, self.fault) {
            (McpAnswer::Lost, Some(fault)) => CallEnd::Unsent(fault),
            (McpAnswer::Lost, None) if self.is_sent => CallEnd::Lost,
            (McpAnswer::Lost, None) => CallEnd::Unsent(unsent(McpCallError::Ended)),
            (answer, _) => CallEnd::Answered(answer),
        };
        self.tell.end(end);
    }
}

/// A message on its way out, with what it repeats in headers.
fn outgoing(calls: &mut HashMap<McpId, PumpCall>, message: McpMessage) -> LinkOrder {
    let mut mirrors = Vec::new();
    if let McpMessage::Request { id, .. } = &message
        && let Some(call) = calls.get_mut(id)
    {
        call.is_sent = true;
        mirrors = std::mem::take(&mut call.mirrors);
    }
    LinkOrder::Send(Box::new(LinkSend { message, mirrors }))
}

fn session_gone() -> Fault {
    let message = "The MCP server has forgotten its session and begins no other one.";
    Fault::new(Code::ToolUnavailable, message).executed(Executed::No)
}

async fn has_room(orders: &mpsc::Sender<LinkOrder>) -> bool {
    orders.reserve().await.is_ok()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
