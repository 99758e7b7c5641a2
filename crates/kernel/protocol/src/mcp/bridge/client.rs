//! What the client says.

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::limits::FROM_CLIENT_BYTES_MAX;
use wharf_wire::mcp_v1::{
    McpCanceled, McpEra, McpError, McpId, McpMessage, McpMeta, McpNotification, McpRequest, code,
    headers,
};

use super::exchange::{Exchange, ExchangeKind, ExchangeState, OpenRequest};
use super::{HELD_BYTES_MAX, McpBridge, OPEN_MAX};
use crate::mcp::McpLine;

impl McpBridge {
    /// Takes a line of the client.
    pub fn line(&mut self, line: McpLine) {
        let message = match line {
            _ if self.ends_at.is_some() => return,
            McpLine::Whole(line) => McpMessage::read(&line),
            McpLine::TooLong { answers: None } => {
                let most = FROM_CLIENT_BYTES_MAX / (1024 * 1024);
                let message = format!("The message is larger than {most} MiB.");
                return self.refuse(None, McpError::new(code::INVALID_REQUEST, message));
            }
            // The core waits for the answer until its question is over.
            McpLine::TooLong { answers: Some(_) } => return,
        };
        match message {
            Ok(McpMessage::Request { id, method, params }) => self.asks(id, method, params),
            Ok(McpMessage::Notification { method, params }) => self.tells(method, params),
            Ok(answer @ (McpMessage::Result { .. } | McpMessage::Error { id: Some(_), .. })) => {
                self.answers(&answer);
            }
            Ok(McpMessage::Error { id: None, .. }) => {}
            Err(unreadable) if unreadable.is_answer => {}
            Err(unreadable) => self.refuse(unreadable.id.clone(), unreadable.to_error()),
        }
    }

    fn asks(&mut self, id: McpId, method: String, params: Option<Object>) {
        if self.open.contains_key(&id) {
            // A second answer under its id would be taken for the first one's.
            return;
        }
        let meta = McpMeta::of(params.as_ref());
        let era = McpEra::of(meta.as_ref(), None);
        let request = OpenRequest {
            id,
            method,
            era,
            progress_token: meta.as_ref().and_then(|meta| meta.progress_token().ok()?),
            progress: None,
            run: None,
            goes_on: false,
            repeatable: true,
            canceled: None,
            mended: false,
            repeated: false,
        };
        match era {
            McpEra::Legacy => self.asks_in_session(request, params),
            McpEra::Modern => {
                let version = meta.and_then(|meta| meta.protocol_version().ok()?);
                self.asks_alone(request, params, &version.unwrap_or_default());
            }
        }
    }

    fn asks_in_session(&mut self, mut request: OpenRequest, mut params: Option<Object>) {
        if request.method == "initialize" {
            self.opens(params.as_ref());
        }
        if request.is_call() {
            self.mark_call(&mut request, &mut params);
        }
        let message = written(&request, params);
        if let Some(message) = self.fits(&request.id, message) {
            self.in_order(Exchange::new(ExchangeKind::Request(request), message));
        }
    }

    fn asks_alone(&mut self, mut request: OpenRequest, mut params: Option<Object>, version: &str) {
        if request.is_call() {
            self.mark_call(&mut request, &mut params);
        }
        let mirrored = self.mirrored(version, &request.method, params.as_ref());
        let message = written(&request, params);
        if let Some(message) = self.fits(&request.id, message) {
            let exchange = Exchange::new(ExchangeKind::Request(request), message);
            let number = self.enter(exchange.mirroring(mirrored));
            self.send(number);
        }
    }

    /// The message, if there is room for it.
    fn fits(&mut self, id: &McpId, message: String) -> Option<String> {
        let full = self.open.len() >= OPEN_MAX;
        if full || self.held_bytes.saturating_add(message.len()) > HELD_BYTES_MAX {
            let message = "Too many requests wait for an answer; try again when some are answered.";
            self.refuse(Some(id.clone()), McpError::new(code::INTERNAL, message));
            return None;
        }
        Some(message)
    }

    fn tells(&mut self, method: String, params: Option<Object>) {
        let canceled = McpNotification::read(&method, params.clone());
        if let Ok(McpNotification::Canceled(canceled)) = canceled {
            let McpCanceled { request_id, reason, .. } = canceled.known;
            if let Some(number) = request_id.and_then(|id| self.open.get(&id).copied()) {
                self.cancel(number, reason);
            }
            return;
        }
        let meta = McpMeta::of(params.as_ref());
        let era = McpEra::of(meta.as_ref(), None);
        let version = meta.and_then(|meta| meta.protocol_version().ok()?).unwrap_or_default();
        let mirrored = self.mirrored(&version, &method, params.as_ref());
        let exchange =
            Exchange::new(ExchangeKind::Tell, McpMessage::Notification { method, params }.write());
        match era {
            McpEra::Legacy => self.in_order(exchange),
            McpEra::Modern => {
                let number = self.enter(exchange.mirroring(mirrored));
                self.send(number);
            }
        }
    }

    /// The client answers what the core asked it; only legacy cores do.
    fn answers(&mut self, answer: &McpMessage) {
        let (McpMessage::Result { id, .. } | McpMessage::Error { id: Some(id), .. }) = answer
        else {
            return;
        };
        if self.asked.remove(id) {
            self.in_order(Exchange::new(ExchangeKind::Tell, answer.write()));
        }
    }

    /// The client does not want to know any more.
    pub(super) fn cancel(&mut self, number: u64, reason: Option<String>) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let ExchangeKind::Request(request) = &mut exchange.kind else { return };
        // The one request that must not be canceled.
        if request.method == "initialize" {
            return;
        }
        request.canceled = Some(reason);
        let is_on_its_way = exchange.state == ExchangeState::Sent && exchange.head.is_none();
        if !is_on_its_way {
            return self.call_off(number);
        }
        // Nobody hears of it any more, but the core must have got it before it is told to stop.
        if let ExchangeKind::Request(request) = &exchange.kind
            && request.era == McpEra::Modern
            && request.run.is_none()
        {
            self.call_off(number);
        }
    }

    /// Ends a request that the client does not wait for, here and at the core.
    pub(super) fn call_off(&mut self, number: u64) {
        let Some(exchange) = self.forget(number) else { return };
        let ExchangeKind::Request(request) = exchange.kind else { return };
        if !exchange.was_sent && exchange.head.is_none() {
            return self.pump();
        }
        match (request.era, request.run) {
            // Closing the connection of any other request cancels it.
            (McpEra::Modern, None) => {}
            (McpEra::Modern, Some(run)) => self.cancel_run(run),
            (McpEra::Legacy, _) => {
                let request_id = Some(request.id);
                let reason = request.canceled.flatten();
                let canceled = McpCanceled { request_id, reason, meta: None };
                let told = McpNotification::Canceled(Box::new(canceled.into()));
                let (method, params) = (told.method().to_owned(), told.params());
                let body = McpMessage::Notification { method, params }.write();
                self.in_order(Exchange::new(ExchangeKind::Tell, body));
            }
        }
        self.pump();
    }

    pub(super) fn cancel_run(&mut self, run: String) {
        let number = self.enter(Exchange::new(ExchangeKind::CancelRun(run), String::new()));
        self.send(number);
    }

    /// The headers that repeat parts of a modern message.
    pub(super) fn mirrored(
        &self,
        version: &str,
        method: &str,
        params: Option<&Object>,
    ) -> Vec<(String, String)> {
        if version.is_empty() {
            return Vec::new();
        }
        let tool =
            params.filter(|_| method == "tools/call").and_then(|it| it.get("name")?.as_str());
        let mirrors = tool.and_then(|tool| self.mirrors.get(tool)).map_or(&[][..], Vec::as_slice);
        let version = headers::encode(version);
        headers::write(headers::McpMirrored { version: &version, method, params, mirrors })
    }
}

fn written(request: &OpenRequest, params: Option<Object>) -> String {
    let (id, method) = (request.id.clone(), request.method.clone());
    McpMessage::Request { id, method, params }.write()
}

/// Puts an object below a key, unless something else stands there.
pub(super) fn object_below<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.entry(key).or_insert_with(|| Value::Object(Object::new())).as_object_mut()
}

/// The request for the first page of all tools, with what stands beside another request.
pub(super) fn list_request(id: &McpId, meta: &McpMeta, cursor: Option<&str>) -> McpMessage {
    let mut params = Object::new();
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor.into());
    }
    let mut meta = meta.clone();
    meta.0.remove(wharf_wire::mcp_v1::key::PROGRESS_TOKEN);
    meta.0.remove(wharf_wire::mcp_v1::key::WHARF_RUN);
    params.insert(wharf_wire::mcp_v1::key::META.to_owned(), meta.0.into());
    let method = McpRequest::ToolsList(Box::default()).method().to_owned();
    McpMessage::Request { id: id.clone(), method, params: Some(params) }
}
