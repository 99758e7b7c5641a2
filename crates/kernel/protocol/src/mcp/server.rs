//! The server's end: legacy clients shake hands first, modern requests stand alone, and both may
//! come over one connection.

mod receive;

use std::collections::VecDeque;

use serde_json::{Number, Value};
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpEra, McpError, McpFilter, McpId, McpImplementation, McpListened,
    McpLog, McpLogLevel, McpMessage, McpMeta, McpNotification, McpOpen, McpProgress, McpRequest,
    McpResultType, McpRevision, key,
};

use super::core::{McpEnd, McpReader as _};
use super::table::McpOpenCall;
use super::{
    McpAnswer, McpCallError, McpCallOptions, McpCancel, McpCounters, McpSend, McpServerConfig,
    McpServerEvent,
};
use crate::{Closed, Incoming, Moment, Outgoing, Session};

/// What a connection may bring.
#[derive(Debug, Clone, PartialEq)]
pub enum McpDoor {
    /// Both eras, beginning with nothing: stdio, or a POST that says `initialize`.
    Both,
    /// A legacy client that shook hands before, perhaps with another core. This is one of several
    /// connections that it has, so its answers and cancels may be about what came over others.
    Resumed {
        /// What was agreed.
        revision: McpRevision,
        /// What it can do.
        capabilities: Box<McpOpen<McpClientCapabilities>>,
    },
    /// Modern requests only.
    Modern,
}

/// A legacy client.
#[derive(Debug)]
struct McpLegacyClient {
    revision: McpRevision,
    capabilities: McpOpen<McpClientCapabilities>,
    info: Option<McpOpen<McpImplementation>>,
}

/// One connection of a client. The time is its owner's.
#[derive(Debug)]
pub struct McpServerSession {
    config: McpServerConfig,
    core: McpEnd,
    takes_legacy: bool,
    is_one_of_many: bool,
    legacy: Option<McpLegacyClient>,
    /// The `initialize` that waits for its answer, and who will be there after it.
    greeting: Option<(McpId, McpLegacyClient)>,
    /// From which level on a legacy client wants logs.
    log_level: Option<McpLogLevel>,
    events: VecDeque<McpServerEvent>,
}

impl McpServerSession {
    /// A session on a new connection.
    #[must_use]
    pub fn new(config: McpServerConfig, door: McpDoor) -> Self {
        let takes_legacy = door != McpDoor::Modern;
        let is_one_of_many = matches!(door, McpDoor::Resumed { .. });
        let legacy = match door {
            McpDoor::Resumed { revision, capabilities } => {
                Some(McpLegacyClient { revision, capabilities: *capabilities, info: None })
            }
            McpDoor::Both | McpDoor::Modern => None,
        };
        Self {
            core: McpEnd::new(config.limits),
            config,
            takes_legacy,
            is_one_of_many,
            legacy,
            greeting: None,
            log_level: None,
            events: VecDeque::new(),
        }
    }

    /// Answers a request; `false` if nobody waits for it. Modern results say what kind they are and
    /// who gives them, and a handshake says which version was agreed on.
    pub fn answer(&mut self, id: &McpId, answer: Result<Object, McpError>) -> bool {
        let Some(served) = self.core.served.get(id) else { return false };
        let (era, listens) = (served.era, served.listening.is_some());
        let mut answer = answer;
        if let Ok(result) = &mut answer {
            if era == McpEra::Modern {
                self.sign(result, listens.then_some(id));
            }
            if let Some((_, legacy)) = self.greeting.take_if(|(greeting, _)| greeting == id) {
                let version = Value::from(legacy.revision.as_str());
                result.insert("protocolVersion".to_owned(), version);
                self.legacy = Some(legacy);
            }
        }
        self.greeting.take_if(|(greeting, _)| greeting == id);
        self.core.answer(id, answer).is_some()
    }

    fn sign(&self, result: &mut Object, listen: Option<&McpId>) {
        let complete = || Value::from(McpResultType::Complete.as_str());
        result.entry(McpResultType::FIELD).or_insert_with(complete);
        let mut meta = McpMeta::default().with(key::SERVER_INFO, &self.config.info);
        if let Some(id) = listen {
            meta.set(key::SUBSCRIPTION_ID, id);
        }
        meta.0.extend(McpMeta::of(Some(result)).unwrap_or_default().0);
        result.insert(key::META.to_owned(), meta.0.into());
    }

    /// Says how far a request is; `false` if nobody wants to know, or it is no more than before.
    pub fn progress(
        &mut self,
        id: &McpId,
        progress: Number,
        total: Option<Number>,
        message: Option<String>,
    ) -> bool {
        if self.core.is_full() {
            return false;
        }
        let Some(served) = self.core.served.get_mut(id) else { return false };
        let Some(progress_token) = served.token.clone() else { return false };
        if !served.rise.take(&progress) {
            return false;
        }
        let params = McpProgress { progress_token, progress, total, message, meta: None };
        let told = McpNotification::Progress(McpOpen::boxed(params));
        self.core.notify(Some(id.clone()), &told)
    }

    /// Logs something on a request's stream; `false` if the client does not want to know.
    pub fn log(&mut self, id: &McpId, log: McpLog) -> bool {
        let Some(served) = self.core.served.get(id) else { return false };
        let wanted = match served.era {
            McpEra::Legacy => self.log_level.is_none_or(|level| log.level >= level),
            McpEra::Modern => served.log_level.is_some_and(|level| log.level >= level),
        };
        wanted
            && !self.core.is_full()
            && self.core.notify(Some(id.clone()), &McpNotification::Log(McpOpen::boxed(log)))
    }

    /// Tells a legacy client something that belongs to no request.
    pub fn notify(&mut self, notification: &McpNotification) -> bool {
        self.legacy.is_some() && self.core.notify(None, notification)
    }

    /// Says what a `subscriptions/listen` will be told; before that it is told nothing.
    pub fn acknowledge(&mut self, id: &McpId, filter: McpFilter) -> bool {
        let served = self.core.served.get_mut(id);
        let Some(acknowledged) = served.and_then(|served| served.listening.as_mut()) else {
            return false;
        };
        if std::mem::replace(acknowledged, true) {
            return false;
        }
        let params = McpListened { notifications: filter.into(), meta: None };
        self.tell_of(id, &McpNotification::Listened(McpOpen::boxed(params)))
    }

    /// Tells a `subscriptions/listen` something; `false` if nobody listens there.
    pub fn tell(&mut self, id: &McpId, notification: &McpNotification) -> bool {
        let served = self.core.served.get(id);
        served.is_some_and(|served| served.listening == Some(true))
            && self.tell_of(id, notification)
    }

    fn tell_of(&mut self, id: &McpId, told: &McpNotification) -> bool {
        let mut params = told.params().unwrap_or_default();
        let meta = McpMeta::of(Some(&params)).unwrap_or_default().with(key::SUBSCRIPTION_ID, id);
        params.insert(key::META.to_owned(), meta.0.into());
        let tagged = McpNotification::read(told.method(), Some(params));
        tagged.is_ok_and(|told| self.core.notify(Some(id.clone()), &told))
    }

    /// Asks a legacy client something under an id of the owner's, on the stream of a request if it
    /// belongs to one. It ends with one [`McpServerEvent::Answered`].
    pub fn ask(
        &mut self,
        now: Moment,
        id: McpId,
        of: Option<&McpId>,
        request: &McpRequest,
        options: McpCallOptions,
    ) -> Result<(), McpCallError> {
        let within_modern = of
            .and_then(|of| self.core.served.get(of))
            .is_some_and(|served| served.era == McpEra::Modern);
        // Modern clients are asked inside of results only.
        if self.legacy.is_none() || within_modern {
            return Err(McpCallError::NotSpoken);
        }
        let mut params = request.params();
        if options.progress {
            let meta = request.meta().cloned().unwrap_or_default().with(key::PROGRESS_TOKEN, &id);
            params.get_or_insert_default().insert(key::META.to_owned(), meta.0.into());
        }
        let deadline_ms = options.timeout_ms.map(|ms| now.ms.saturating_add(ms));
        let method = request.method().to_owned();
        let message = McpMessage::Request { id: id.clone(), method, params };
        let call = McpOpenCall::of(request, deadline_ms);
        self.core.call(id, McpSend { of: of.cloned(), message }, call)
    }

    /// Takes back what the client was asked; it ends as canceled. `false` if it was over.
    pub fn take_back(&mut self, id: &McpId, reason: &str) -> bool {
        let was_open = self.core.give_up(id, reason);
        if was_open {
            self.answered(id.clone(), McpAnswer::Canceled);
        }
        was_open
    }

    /// What was agreed with a legacy client.
    #[must_use]
    pub fn agreed(&self) -> Option<McpRevision> {
        self.legacy.as_ref().map(|legacy| legacy.revision)
    }

    /// The next message, for owners who need to know which it is.
    pub fn poll_message(&mut self) -> Option<McpSend> {
        self.core.poll_message()
    }

    /// Whether a request waits for its answer.
    #[must_use]
    pub fn is_served(&self, id: &McpId) -> bool {
        self.core.served.contains_key(id)
    }

    /// Requests that wait for an answer.
    #[must_use]
    pub fn served(&self) -> usize {
        self.core.served.len()
    }

    /// Questions that wait for the client's answer.
    #[must_use]
    pub fn asks_waiting(&self) -> usize {
        self.core.calls.len()
    }

    /// Messages that wait to be sent.
    #[must_use]
    pub fn sends_waiting(&self) -> usize {
        self.core.waiting()
    }

    /// What was ignored.
    #[must_use]
    pub fn counters(&self) -> McpCounters {
        self.core.counters
    }

    fn answered(&mut self, id: McpId, answer: McpAnswer) {
        self.events.push_back(McpServerEvent::Answered { id, answer });
    }
}

impl Session for McpServerSession {
    type Event = McpServerEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        self.read(now, incoming);
    }

    /// Every question is lost, and nobody waits here for what is served. Whether a run goes on
    /// without its client is for the owner to say.
    fn end(&mut self, _now: Moment, how: Closed) {
        self.core.end(how);
        for id in self.core.calls.ids() {
            self.core.calls.end(&id);
            self.answered(id, McpAnswer::Lost);
        }
        let served = std::mem::take(&mut self.core.served).into_keys();
        self.events.extend(
            served.map(|id| McpServerEvent::Canceled { id, cancel: McpCancel::Disconnected }),
        );
    }

    fn tick(&mut self, now: Moment) {
        if self.is_closed() {
            return;
        }
        for id in self.core.calls.due(now.ms) {
            if self.core.give_up(&id, "It took too long.") {
                self.answered(id, McpAnswer::TimedOut);
            }
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.core.calls.deadline_ms().filter(|_| !self.is_closed())
    }

    fn poll_event(&mut self) -> Option<McpServerEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.core.poll_send()
    }

    fn is_closed(&self) -> bool {
        self.core.closed().is_some()
    }

    fn wants_input(&self) -> bool {
        !self.is_closed() && !self.core.is_full()
    }
}
