//! The session of a legacy client, which may be begun anew, and the order of what it says.

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{McpError, McpId, McpMessage, McpNotification, McpRequest, headers};

use super::exchange::{Exchange, ExchangeKind, ExchangeState};
use super::{McpBridge, McpBridgeOut};

/// Longest id of a session that is kept.
const ID_BYTES_MAX: usize = 4 * 1024;

/// Where the session is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SessionStep {
    /// There is none.
    #[default]
    None,
    /// The client's handshake is on its way, or that of the bridge: all else waits.
    Opening,
    /// It is there.
    Ready,
}

/// The session of a legacy client.
#[derive(Debug, Default)]
pub(super) struct BridgeSession {
    pub(super) step: SessionStep,
    id: Option<String>,
    version: Option<String>,
    /// The client's handshake, to begin anew with.
    initialize: Option<Object>,
    /// Grows whenever it is begun anew.
    pub(super) edition: u64,
    /// The exchange that carries its stream.
    listen: Option<u64>,
    /// The core has no such stream.
    is_silent: bool,
}

impl BridgeSession {
    /// The headers of what belongs to it.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let one = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| (name.to_owned(), value.clone()))
        };
        let id = one(headers::SESSION_ID, &self.id);
        id.into_iter().chain(one(headers::PROTOCOL_VERSION, &self.version)).collect()
    }

    pub(super) fn is_given(&self) -> bool {
        self.id.is_some()
    }

    /// The core answered a handshake.
    fn begin(&mut self, id: Option<String>, result: &Object) {
        self.id = id.filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
        let version = result.get("protocolVersion").and_then(|version| version.as_str());
        self.version = version.map(str::to_owned);
        self.edition += 1;
        self.step = SessionStep::Ready;
    }
}

impl McpBridge {
    /// The client shakes hands: from now on all that is legacy waits for the answer.
    pub(super) fn opens(&mut self, params: Option<&Object>) {
        self.session.initialize = Some(params.cloned().unwrap_or_default());
        self.session.step = SessionStep::Opening;
        (self.session.id, self.session.version) = (None, None);
        self.session.is_silent = false;
        if let Some(listen) = self.session.listen.take() {
            self.forget(listen);
        }
    }

    /// The answer to the client's handshake.
    pub(super) fn opened(&mut self, session: Option<String>, result: Option<&Object>) {
        match result {
            Some(result) => self.session.begin(session, result),
            None => self.session.step = SessionStep::None,
        }
    }

    /// Puts what a legacy client says where it belongs in the order.
    pub(super) fn in_order(&mut self, exchange: Exchange) {
        let number = self.enter(exchange.in_session());
        self.queue.push_back(number);
        self.pump();
    }

    /// Sends what may be sent. Notifications and answers arrive before what follows them;
    /// requests do not wait for each other.
    pub(super) fn pump(&mut self) {
        while self.barrier.is_none() {
            let Some(&front) = self.queue.front() else { break };
            let kind = self.exchanges.get(&front).map(|exchange| &exchange.kind);
            let opens =
                matches!(kind, Some(ExchangeKind::Request(it)) if it.method == "initialize");
            if self.session.step == SessionStep::Opening && !opens {
                break;
            }
            let holds_up = opens || matches!(kind, Some(ExchangeKind::Tell));
            self.queue.pop_front();
            self.send(front);
            self.barrier = holds_up.then_some(front);
        }
        self.part();
    }

    /// The core took a notification or an answer of the client.
    pub(super) fn told(&mut self, number: u64, was_taken: bool) {
        let exchange = self.forget(number);
        let told =
            exchange.as_ref().and_then(|exchange| McpMessage::read(exchange.body.as_bytes()).ok());
        let initialized = McpNotification::Initialized(Box::default());
        let is_ready = matches!(&told, Some(McpMessage::Notification { method, .. })
            if *method == initialized.method());
        if was_taken && is_ready {
            self.listen();
        }
        self.pump();
    }

    /// Opens the stream of what belongs to no request.
    fn listen(&mut self) {
        let is_open = self.session.listen.is_some_and(|it| self.exchanges.contains_key(&it));
        if self.session.is_silent || is_open || self.ends_at.is_some() {
            return;
        }
        let number = self.enter(Exchange::new(ExchangeKind::Listen, String::new()).in_session());
        self.session.listen = Some(number);
        self.send(number);
    }

    /// The core does not want to open that stream.
    pub(super) fn not_listening(&mut self, now_ms: u64, number: u64, status: u16) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let went_on = exchange.from.take().is_some();
        match status {
            404 => {
                let edition = exchange.edition;
                self.forget(number);
                self.session.listen = None;
                self.renew(edition);
            }
            // It does not know any more where the stream was.
            400 if went_on => self.failed(now_ms, number, None),
            408 | 429 | 500..=599 => self.failed(now_ms, number, None),
            _ => {
                self.session.is_silent = true;
                self.forget(number);
            }
        }
    }

    /// Begins a session anew that the core has forgotten.
    pub(super) fn renew(&mut self, edition: u64) {
        if self.session.step != SessionStep::Ready || self.session.edition != edition {
            return;
        }
        let Some(params) = self.session.initialize.clone() else { return };
        self.session.step = SessionStep::Opening;
        self.session.id = None;
        let id = McpId::Text(format!("{}-anew-{edition}", self.config.name));
        let method = McpRequest::Initialize(Box::default()).method().to_owned();
        let message = McpMessage::Request { id: id.clone(), method, params: Some(params) };
        let number = self.enter(Exchange::new(ExchangeKind::Handshake(id), message.write()));
        self.send(number);
    }

    /// What came of that.
    pub(super) fn renewed(&mut self, number: u64, session: Option<String>, answer: McpMessage) {
        self.forget(number);
        match answer {
            McpMessage::Result { result, .. } => {
                self.session.begin(session, &result);
                let told = McpNotification::Initialized(Box::default());
                let (method, params) = (told.method().to_owned(), told.params());
                let body = McpMessage::Notification { method, params }.write();
                let number = self.enter(Exchange::new(ExchangeKind::Tell, body).in_session());
                self.queue.push_front(number);
            }
            McpMessage::Error { error, .. } => {
                self.session.step = SessionStep::None;
                self.refuse_held(&error);
            }
            _ => {}
        }
        self.pump();
    }

    /// A request waits again, for a session that is begun anew.
    pub(super) fn wait_again(&mut self, number: u64) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.state = ExchangeState::Held;
        exchange.from = None;
        exchange.head = None;
        exchange.answer = Vec::new();
        let edition = exchange.edition;
        self.queue.push_back(number);
        self.renew(edition);
        self.pump();
    }

    /// Nothing that waits for a session can be sent.
    pub(super) fn refuse_held(&mut self, error: &McpError) {
        let held: Vec<u64> = self.queue.iter().copied().collect();
        for number in held {
            if let Some(Exchange { kind: ExchangeKind::Request(request), .. }) = self.forget(number)
                && request.canceled.is_none()
            {
                self.refuse(Some(request.id), error.clone());
            }
        }
    }

    /// Closes the stream of the session.
    pub(super) fn stop_listening(&mut self) {
        if let Some(listen) = self.session.listen.take() {
            self.forget(listen);
        }
    }

    /// Says that the session is over, if there is one.
    pub(super) fn say_goodbye(&mut self) -> bool {
        if self.session.step != SessionStep::Ready || !self.session.is_given() {
            return false;
        }
        self.session.step = SessionStep::None;
        let number = self.enter(Exchange::new(ExchangeKind::Goodbye, String::new()).in_session());
        self.send(number);
        debug_assert!(matches!(self.outs.back(), Some(McpBridgeOut::Send { .. })), "it was sent");
        true
    }
}
