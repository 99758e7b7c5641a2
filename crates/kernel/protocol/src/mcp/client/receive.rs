//! What a server sends.

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpEra, McpError, McpId, McpMessage, McpNotification, McpRequest, McpResultType, code,
};

use super::McpClientSession;
use crate::Moment;
use crate::mcp::core::{McpEnd, McpReader};
use crate::mcp::oversize::answered_by;
use crate::mcp::table::{McpKnown, McpServedRequest};
use crate::mcp::{McpAnswer, McpCancel, McpClientEvent};

/// What is shown of a line that is no message.
const STRAY_BYTES_MAX: usize = 1024;
/// How deeply a list of tools may be nested, which is as deep as JSON is read at all.
const LIST_NESTING_MAX: usize = 120;

impl McpReader for McpClientSession {
    fn core(&mut self) -> &mut McpEnd {
        &mut self.core
    }

    fn take_bytes(&mut self, now: Moment, bytes: &[u8]) {
        self.heard_ms = now.ms;
        self.misses = 0;
        match McpMessage::read(bytes) {
            Ok(message) => self.take(now, message),
            Err(_) if McpMessage::is_too_deep(bytes) && self.too_deep(now, bytes) => {}
            Err(unreadable) => {
                if unreadable.is_answer
                    && let Some(id) = unreadable.id
                    && self.core.calls.end(&id).is_some()
                {
                    self.ended(now, id, McpAnswer::Violation("the answer cannot be read"));
                    return self.core.violation(now);
                }
                self.core.stray();
                let shown = &bytes[..bytes.len().min(STRAY_BYTES_MAX)];
                let shown = String::from_utf8_lossy(shown).into_owned();
                self.events.push_back(McpClientEvent::Stray(shown));
            }
        }
    }

    fn too_long(&mut self, now: Moment, answers: Option<McpId>) {
        self.heard_ms = now.ms;
        match answers.filter(|id| self.core.calls.end(id).is_some()) {
            Some(id) => self.ended(now, id, McpAnswer::Violation("the answer is too large")),
            None => self.core.violation(now),
        }
    }
}

impl McpClientSession {
    /// A message that is nested too deeply ends the call that it answers, unless that lists tools;
    /// `false` if it answers none.
    fn too_deep(&mut self, now: Moment, bytes: &[u8]) -> bool {
        let Some(id) = answered_by(bytes) else { return false };
        let Some(call) = self.core.calls.get_mut(&id) else { return false };
        if call.is_tool_list
            && let Ok(message) = McpMessage::read_within(bytes, LIST_NESTING_MAX)
        {
            self.take(now, message);
            return true;
        }
        self.core.calls.end(&id);
        self.ended(now, id, McpAnswer::Violation("the answer is nested too deeply"));
        self.core.violation(now);
        true
    }

    fn take(&mut self, now: Moment, message: McpMessage) {
        match message {
            McpMessage::Result { id, result } => self.result(now, id, result),
            McpMessage::Error { id: Some(id), error } => {
                if self.core.calls.end(&id).is_some() {
                    self.ended(now, id, McpAnswer::Error(error));
                } else {
                    self.core.misdirected(now, &id);
                }
            }
            // It could not read something of ours, and does not say what.
            McpMessage::Error { id: None, .. } => self.core.violation(now),
            McpMessage::Request { id, method, params } => self.asked(now, id, &method, params),
            McpMessage::Notification { method, params } => {
                match McpNotification::read(&method, params) {
                    Ok(told) => self.told(now, told),
                    Err(_) => self.core.violation(now),
                }
            }
        }
    }

    fn result(&mut self, now: Moment, id: McpId, result: Object) {
        let Some(call) = self.core.calls.end(&id) else {
            return self.core.misdirected(now, &id);
        };
        let modern = self.revision().is_none_or(|revision| revision.era() == McpEra::Modern);
        let kind = if modern { McpResultType::of(&result) } else { McpResultType::Complete };
        let fits = match &kind {
            McpResultType::Complete => true,
            McpResultType::InputRequired => call.may_need_input,
            // Whether tasks were declared is said with each request, by whoever made it.
            McpResultType::Task => call.is_tool_call,
            McpResultType::Other(_) => false,
        };
        if !fits {
            self.core.violation(now);
        }
        let answer = match fits {
            true => McpAnswer::Result { kind, result },
            false => McpAnswer::Violation("the result is of a kind that the request has not"),
        };
        self.ended(now, id, answer);
    }

    fn asked(&mut self, now: Moment, id: McpId, method: &str, params: Option<Object>) {
        // Modern servers ask inside of results only, and take no answers.
        let modern = self.revision().is_some_and(|revision| revision.era() == McpEra::Modern);
        if modern || self.core.served.contains_key(&id) {
            return self.core.violation(now);
        }
        let request = match McpRequest::read(method, params) {
            Ok(request) => request,
            Err(error) => return self.core.refuse(Some(id), error),
        };
        if matches!(request, McpRequest::Ping(_)) {
            self.core.served.insert(id.clone(), McpServedRequest::new(McpEra::Legacy));
            self.core.answer(&id, Ok(Object::new()));
            return;
        }
        let capabilities = &self.config.capabilities;
        let declared = match request {
            McpRequest::Elicit(_) => capabilities.elicitation.is_some(),
            McpRequest::Sample(_) => capabilities.sampling.is_some(),
            McpRequest::RootsList(_) => capabilities.roots.is_some(),
            McpRequest::TasksGet(_)
            | McpRequest::TasksResult(_)
            | McpRequest::TasksList(_)
            | McpRequest::TasksCancel(_) => capabilities.tasks.is_some(),
            McpRequest::Other { .. } => true,
            _ => false,
        };
        if !declared || self.revision().is_none() {
            return self.core.refuse(Some(id), McpError::method_not_found());
        }
        if self.core.served.len() >= self.core.limits.served_max {
            let error = McpError::new(code::INTERNAL, "Too many questions are open.");
            return self.core.refuse(Some(id), error);
        }
        self.core.served.insert(id.clone(), McpServedRequest::new(McpEra::Legacy));
        self.events.push_back(McpClientEvent::Asked { id, request: Box::new(request) });
    }

    fn told(&mut self, now: Moment, told: McpNotification) {
        let Ok(listen) = told.meta().map_or(Ok(None), |meta| meta.subscription_id()) else {
            return self.core.violation(now);
        };
        match &told {
            McpNotification::Canceled(canceled) => match canceled.request_id.clone() {
                Some(id) => self.canceled(id, canceled.reason.clone()),
                None => self.core.counters.unknown_ids += 1,
            },
            McpNotification::Progress(progress) => {
                let id = progress.progress_token.clone();
                if self.core.calls.rises(&id, &progress.progress) {
                    let progress = Box::new(progress.known.clone());
                    self.events.push_back(McpClientEvent::Progress { id, progress });
                } else if self.core.calls.known(&id) != McpKnown::Open {
                    self.core.misdirected(now, &id);
                }
            }
            _ => self.told_of_listen(now, listen, told),
        }
    }

    fn told_of_listen(&mut self, now: Moment, listen: Option<McpId>, told: McpNotification) {
        if let Some(id) = &listen {
            let is_ack = matches!(told, McpNotification::Listened(_));
            let call = self.core.calls.get_mut(id);
            match call.and_then(|call| call.listening.as_mut()) {
                Some(acknowledged) if is_ack => *acknowledged = true,
                Some(true) => {}
                // Nothing may come before it was said what will come.
                Some(false) => return self.core.violation(now),
                None => return self.core.misdirected(now, id),
            }
        }
        self.events.push_back(McpClientEvent::Told { listen, notification: Box::new(told) });
    }

    /// A legacy server takes back what it asked; a modern one ends a subscription.
    fn canceled(&mut self, id: McpId, reason: Option<String>) {
        if self.core.served.remove(&id).is_some() {
            let cancel = McpCancel::Peer(reason);
            self.events.push_back(McpClientEvent::AskCanceled { id, cancel });
        } else if self.core.calls.get_mut(&id).is_some_and(|call| call.listening.is_some()) {
            self.core.calls.end(&id);
            self.answered(id, McpAnswer::Canceled);
        } else {
            self.core.counters.unknown_ids += 1;
        }
    }
}
