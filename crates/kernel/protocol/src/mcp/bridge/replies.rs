//! What comes of requests to the core.

use serde::Deserialize;
use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::limits::FROM_SERVER_BYTES_MAX;
use wharf_wire::mcp_v1::{
    McpEra, McpError, McpId, McpListen, McpMessage, McpMeta, McpNotification, McpOpen, McpRequest,
    code, key,
};

use super::exchange::{AnswerHead, ExchangeKind, ExchangeState};
use super::{McpBridge, McpBridgeBody, McpBridgeNews, REMEMBERED_MAX};

/// Longest sentence of a refusal that is passed on.
const SENTENCE_BYTES_MAX: usize = 1_000;

impl McpBridge {
    /// Takes what came of a request. What is told of an exchange that is over does not count.
    pub fn news(&mut self, now_ms: u64, number: u64, news: McpBridgeNews) {
        match news {
            _ if !self.exchanges.contains_key(&number) => {}
            McpBridgeNews::Head { status, body, session, retry_after_ms } => {
                let head = AnswerHead { status, body, session, retry_after_ms, at_ms: now_ms };
                self.begins(number, head);
            }
            McpBridgeNews::Bytes(bytes) => self.takes(now_ms, number, &bytes),
            McpBridgeNews::End => self.is_whole(now_ms, number),
            McpBridgeNews::Broke => self.broke(now_ms, number, None),
            McpBridgeNews::Unreached(why) => match self.is_canceled(number) {
                true => drop(self.forget(number)),
                false => self.failed(now_ms, number, Some(why)),
            },
        }
        self.pump();
    }

    fn is_canceled(&self, number: u64) -> bool {
        let kind = self.exchanges.get(&number).map(|exchange| &exchange.kind);
        matches!(kind, Some(ExchangeKind::Request(request)) if request.canceled.is_some())
    }

    fn begins(&mut self, number: u64, head: AnswerHead) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let is_stream = head.body == McpBridgeBody::Events;
        exchange.was_sent = true;
        exchange.answer_begins(head);
        if self.is_canceled(number) && is_stream {
            self.call_off(number);
        }
    }

    fn broke(&mut self, now_ms: u64, number: u64, why: Option<String>) {
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.was_sent = true;
        }
        match self.is_canceled(number) {
            true => self.call_off(number),
            false => self.failed(now_ms, number, why),
        }
    }

    fn takes(&mut self, now_ms: u64, number: u64, bytes: &[u8]) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Some(parser) = &mut exchange.events else {
            if exchange.answer.len() + bytes.len() > FROM_SERVER_BYTES_MAX {
                return self.too_large(number);
            }
            exchange.answer.extend_from_slice(bytes);
            return;
        };
        if parser.push(bytes).is_err() {
            return self.too_large(number);
        }
        while let Some(parser) = self.exchanges.get_mut(&number).and_then(|it| it.events.as_mut()) {
            let Some(event) = parser.pop() else { return };
            if event.event == "message" && !event.data.is_empty() {
                if let Some(exchange) = self.exchanges.get_mut(&number) {
                    exchange.is_fruitful = true;
                }
                self.arrived(now_ms, number, event.data);
            }
        }
    }

    fn too_large(&mut self, number: u64) {
        let message = "The answer is larger than what is read.";
        self.answer_with(number, McpError::new(code::INTERNAL, message));
    }

    /// The body of an answer is whole.
    fn is_whole(&mut self, now_ms: u64, number: u64) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let Some(head) = exchange.head.clone() else { return self.broke(now_ms, number, None) };
        if exchange.events.is_some() {
            return self.broke(now_ms, number, None);
        }
        let text = String::from_utf8_lossy(&exchange.answer).into_owned();
        match (head.status, &exchange.kind) {
            (200..=299, ExchangeKind::Tell) => self.told(number, true),
            (200..=299, ExchangeKind::CancelRun(_) | ExchangeKind::Goodbye) => {
                self.forget(number);
            }
            (200..=299, _) if head.body == McpBridgeBody::Json => {
                self.arrived(now_ms, number, text);
                // It was no answer to what was asked.
                if self.exchanges.contains_key(&number) {
                    self.unusable(number);
                }
            }
            (200..=299, ExchangeKind::Listen) => self.not_listening(now_ms, number, 405),
            (200..=299, _) => self.unusable(number),
            (status, ExchangeKind::Listen) => self.not_listening(now_ms, number, status),
            (status, _) => self.refused(now_ms, number, status, &text),
        }
    }

    fn unusable(&mut self, number: u64) {
        let message = "The core answered with something that is no answer.";
        self.answer_with(number, McpError::new(code::INTERNAL, message));
    }

    /// The core did not take a request.
    fn refused(&mut self, now_ms: u64, number: u64, status: u16, text: &str) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let error = match McpMessage::read(text.as_bytes()) {
            Ok(McpMessage::Error { error, .. }) => Some(error),
            _ => None,
        };
        let is_busy = matches!(status, 408 | 429 | 502 | 503 | 504);
        let went_on = exchange.from.is_some();
        let in_session = exchange.in_session;
        match &mut exchange.kind {
            _ if is_busy => {
                let why = error.map_or_else(|| sentence(status, text), |error| error.message);
                self.failed(now_ms, number, Some(why));
            }
            // A session that the core does not know any more is begun anew, and the request made
            // again; a stream that it cannot go on with is asked for by the request itself.
            ExchangeKind::Request(request)
                if in_session
                    && status == 404
                    && !request.mended
                    && request.method != "initialize" =>
            {
                request.mended = true;
                self.wait_again(number);
            }
            ExchangeKind::Request(request) if went_on && request.repeatable => {
                exchange.from = None;
                self.failed(now_ms, number, None);
            }
            ExchangeKind::Request(request)
                if request.era == McpEra::Modern
                    && request.is_call()
                    && !request.mended
                    && error.as_ref().is_some_and(|it| it.code == code::HEADER_MISMATCH) =>
            {
                request.mended = true;
                self.list_for(number, None, 0);
            }
            ExchangeKind::Tell => self.told(number, false),
            ExchangeKind::CancelRun(_) | ExchangeKind::Goodbye => {
                self.forget(number);
            }
            _ => {
                let plain = || McpError::new(code::INTERNAL, sentence(status, text));
                self.answer_with(number, error.unwrap_or_else(plain));
            }
        }
    }

    /// Ends an exchange with an error of the bridge or of the core.
    fn answer_with(&mut self, number: u64, error: McpError) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        match &exchange.kind {
            ExchangeKind::Request(request) => {
                let id = request.id.clone();
                self.answered(number, &McpMessage::Error { id: Some(id), error }, None);
            }
            ExchangeKind::Handshake(id) => {
                let answer = McpMessage::Error { id: Some(id.clone()), error };
                self.renewed(number, None, answer);
            }
            ExchangeKind::Mirrors { call, id } => {
                let (call, id) = (*call, id.clone());
                let answer = McpMessage::Error { id: Some(id.clone()), error };
                self.listed_for(number, call, &id, answer);
            }
            _ => {
                self.forget(number);
            }
        }
    }

    /// A message of the core.
    fn arrived(&mut self, _now_ms: u64, number: u64, text: String) {
        let Ok(message) = McpMessage::read(text.as_bytes()) else { return };
        match message {
            McpMessage::Result { .. } | McpMessage::Error { .. } => {
                self.answer_arrived(number, message, text);
            }
            McpMessage::Request { id, .. } => {
                // A stream that is read again repeats its questions.
                let is_new = !self.asked.contains(&id) && self.asked.len() < REMEMBERED_MAX;
                if is_new && !self.is_canceled(number) {
                    self.asked.insert(id);
                    self.lines.push_back(one_line(text));
                }
            }
            McpMessage::Notification { method, params } => {
                if !self.is_canceled(number) && self.is_news(number, &method, params) {
                    self.lines.push_back(one_line(text));
                }
            }
        }
    }

    fn answer_arrived(&mut self, number: u64, message: McpMessage, text: String) {
        let (McpMessage::Result { id, .. } | McpMessage::Error { id: Some(id), .. }) = &message
        else {
            return;
        };
        let Some(exchange) = self.exchanges.get(&number) else { return };
        match &exchange.kind {
            ExchangeKind::Handshake(own) if own == id => {
                let session = exchange.head.as_ref().and_then(|head| head.session.clone());
                self.renewed(number, session, message);
            }
            ExchangeKind::Mirrors { call, id: own } if own == id => {
                let (call, own) = (*call, own.clone());
                self.listed_for(number, call, &own, message);
            }
            ExchangeKind::Request(request) if request.id == *id => {
                self.answered(number, &message, Some(text));
            }
            _ => {}
        }
    }

    /// The answer that the client waits for; `text` is how the core wrote it.
    fn answered(&mut self, number: u64, answer: &McpMessage, text: Option<String>) {
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            // What is left of the body is read by whoever is at it, for the connection's sake.
            exchange.state = ExchangeState::Held;
        }
        let Some(exchange) = self.forget(number) else { return };
        let ExchangeKind::Request(request) = exchange.kind else { return };
        let result = match answer {
            McpMessage::Result { result, .. } => Some(result),
            _ => None,
        };
        if request.method == "initialize" {
            let session = exchange.head.and_then(|head| head.session);
            self.opened(session, result);
        }
        if let Some(result) = result {
            match request.method.as_str() {
                "tools/list" if request.era == McpEra::Modern => drop(self.learn_mirrors(result)),
                "tools/call" => self.suspend(&request, result),
                _ => {}
            }
        }
        if request.canceled.is_none() {
            let line = text.map_or_else(|| answer.write(), one_line);
            self.lines.push_back(line);
        }
        self.pump();
    }

    /// Whether a notification tells the client something that it has not been told.
    fn is_news(&mut self, number: u64, method: &str, params: Option<Object>) -> bool {
        let Ok(told) = McpNotification::read(method, params) else { return true };
        let Some(exchange) = self.exchanges.get_mut(&number) else { return false };
        match (&told, &mut exchange.kind) {
            (McpNotification::Canceled(canceled), _) => {
                canceled.request_id.as_ref().is_none_or(|id| self.asked.remove(id))
            }
            (McpNotification::Progress(progress), ExchangeKind::Request(request))
                if request.progress_token.as_ref() == Some(&progress.progress_token) =>
            {
                let now = progress.progress.as_f64().unwrap_or(f64::MAX);
                let rises = request.progress.is_none_or(|last| now > last);
                if rises {
                    request.progress = Some(now);
                }
                rises
            }
            // The client was told when it was listened to for the first time. What it may have
            // missed meanwhile is told instead.
            (McpNotification::Listened(_), ExchangeKind::Request(request)) if request.repeated => {
                request.repeated = false;
                let (id, body) = (request.id.clone(), exchange.body.clone());
                self.catch_up(&id, &body);
                false
            }
            _ => true,
        }
    }

    /// Tells a listener whose stream was away that all it listens to may have changed.
    fn catch_up(&mut self, id: &McpId, body: &str) {
        let Ok(McpMessage::Request { method, params, .. }) = McpMessage::read(body.as_bytes())
        else {
            return;
        };
        let Ok(McpRequest::Listen(listen)) = McpRequest::read(&method, params) else { return };
        let listen: &McpOpen<McpListen> = &listen;
        let filter = &listen.notifications;
        let meta = McpMeta::default().with(key::SUBSCRIPTION_ID, id);
        let mut params = Object::new();
        params.insert(key::META.to_owned(), meta.0.into());
        for (wanted, told) in [
            (filter.tools_list_changed, McpNotification::ToolsChanged(Box::default())),
            (filter.prompts_list_changed, McpNotification::PromptsChanged(Box::default())),
            (filter.resources_list_changed, McpNotification::ResourcesChanged(Box::default())),
        ] {
            if wanted == Some(true) {
                let method = told.method().to_owned();
                let params = Some(params.clone());
                self.tell(&McpMessage::Notification { method, params });
            }
        }
    }
}

/// A message as one line. The core writes none with line ends, but a stream may.
fn one_line(text: String) -> String {
    match text.contains(['\n', '\r']) {
        true => text.replace(['\n', '\r'], " "),
        false => text,
    }
}

/// What a refusal says that is no message of the protocol.
fn sentence(status: u16, text: &str) -> String {
    #[derive(Deserialize)]
    struct RefusalData {
        error: RefusalError,
    }
    #[derive(Deserialize)]
    struct RefusalError {
        message: String,
    }
    let said = serde_json::from_str::<Value>(text).ok();
    let said = said.and_then(|said| RefusalData::deserialize(said).ok());
    match said {
        Some(said) if said.error.message.len() <= SENTENCE_BYTES_MAX => said.error.message,
        _ => format!("The core answered with status {status}"),
    }
}
