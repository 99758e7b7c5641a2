//! What a client sends.

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpEra, McpError, McpId, McpMessage, McpMeta, McpNotification, McpRequest, McpResultType,
    McpRevision, code,
};

use super::{McpLegacyClient, McpServerSession};
use crate::Moment;
use crate::mcp::core::{McpEnd, McpReader};
use crate::mcp::table::{McpKnown, McpServedRequest};
use crate::mcp::{McpAnswer, McpCaller, McpCancel, McpServerEvent};

impl McpReader for McpServerSession {
    fn core(&mut self) -> &mut McpEnd {
        &mut self.core
    }

    fn take_bytes(&mut self, now: Moment, bytes: &[u8]) {
        match McpMessage::read(bytes) {
            Ok(message) => self.take(now, message, None),
            Err(unreadable) => {
                if let Some(id) = unreadable.id.clone().filter(|_| unreadable.is_answer) {
                    if self.core.calls.end(&id).is_some() {
                        self.answered(id, McpAnswer::Violation("the answer cannot be read"));
                    }
                } else if unreadable.id.as_ref().is_none_or(|id| !self.is_served(id)) {
                    self.core.refuse(unreadable.id.clone(), unreadable.to_error());
                }
                self.core.violation(now);
            }
        }
    }

    fn too_long(&mut self, now: Moment, answers: Option<McpId>) {
        match answers.filter(|id| self.core.calls.end(id).is_some()) {
            Some(id) => self.answered(id, McpAnswer::Violation("the answer is too large")),
            None => {
                let error = McpError::new(code::INVALID_REQUEST, "The message is too large.");
                self.core.refuse(None, error);
            }
        }
        self.core.violation(now);
    }
}

impl McpServerSession {
    /// Takes a message that was read elsewhere; over HTTP with the version that a header names.
    pub fn take(&mut self, now: Moment, message: McpMessage, version_header: Option<&str>) {
        match message {
            _ if self.core.closed().is_some() => {}
            McpMessage::Request { id, method, params } => {
                if self.is_served(&id) {
                    // A second answer under its id would be taken for the first one's.
                    return self.core.violation(now);
                }
                let meta = McpMeta::of(params.as_ref());
                let era = McpEra::of(meta.as_ref(), version_header);
                let taken = match era {
                    McpEra::Modern => self.modern(&id, &method, params, &meta.unwrap_or_default()),
                    McpEra::Legacy => self.legacy(&id, &method, params, meta),
                };
                if let Err(error) = taken {
                    self.core.refuse(Some(id), error);
                }
            }
            McpMessage::Notification { method, params } => {
                match McpNotification::read(&method, params) {
                    Ok(told) => self.told(now, told),
                    Err(_) => self.core.violation(now),
                }
            }
            McpMessage::Result { id, result } => {
                let kind = McpResultType::Complete;
                self.answer_came(now, id, McpAnswer::Result { kind, result });
            }
            McpMessage::Error { id: Some(id), error } => {
                self.answer_came(now, id, McpAnswer::Error(error));
            }
            McpMessage::Error { id: None, .. } => self.core.violation(now),
        }
    }

    fn answer_came(&mut self, now: Moment, id: McpId, answer: McpAnswer) {
        let was_open = self.core.calls.end(&id).is_some();
        let elsewhere = self.is_one_of_many && self.core.calls.known(&id) == McpKnown::Never;
        match was_open || elsewhere {
            true => self.answered(id, answer),
            false => self.core.misdirected(now, &id),
        }
    }

    /// A modern request: all there is to know of its client comes with it.
    fn modern(
        &mut self,
        id: &McpId,
        method: &str,
        params: Option<Object>,
        meta: &McpMeta,
    ) -> Result<(), McpError> {
        let missing =
            |what| McpError::params(format!("The parameters lack the {what} in `_meta`."));
        let version = meta.protocol_version()?.ok_or_else(|| missing("protocol version"))?;
        let revision = McpRevision::parse(&version)
            .filter(|revision| revision.era() == McpEra::Modern)
            .ok_or_else(|| McpError::unsupported_version(&version))?;
        let capabilities =
            meta.client_capabilities()?.ok_or_else(|| missing("client capabilities"))?;
        let request = McpRequest::read(method, params)?;
        if !request.is_for_servers(revision) {
            return Err(McpError::method_not_found());
        }
        let caller = McpCaller {
            revision,
            capabilities,
            info: meta.client_info()?,
            progress: false,
            log_level: meta.log_level()?,
        };
        self.serve(id, request, caller, meta.progress_token()?)
    }

    /// A legacy request: who its client is was said in the handshake.
    fn legacy(
        &mut self,
        id: &McpId,
        method: &str,
        params: Option<Object>,
        meta: Option<McpMeta>,
    ) -> Result<(), McpError> {
        if !self.takes_legacy {
            return Err(McpError::params("The parameters lack the protocol version in `_meta`."));
        }
        let request = McpRequest::read(method, params)?;
        let token = meta.map_or(Ok(None), |meta| meta.progress_token())?;
        if matches!(request, McpRequest::Ping(_)) {
            self.core.served.insert(id.clone(), McpServedRequest::new(McpEra::Legacy));
            self.core.answer(id, Ok(Object::new()));
            return Ok(());
        }
        if let McpRequest::Initialize(hello) = &request {
            if self.legacy.is_some() || self.greeting.is_some() {
                let message = "The session is initialized already.";
                return Err(McpError::new(code::INVALID_REQUEST, message));
            }
            let legacy = McpLegacyClient {
                revision: McpRevision::agreed(&hello.protocol_version),
                capabilities: hello.capabilities.clone(),
                info: Some(hello.client_info.clone()),
            };
            let caller = legacy.caller();
            self.serve(id, request, caller, token)?;
            self.greeting = Some((id.clone(), legacy));
            return Ok(());
        }
        let Some(legacy) = &self.legacy else {
            let message = "The session has to be initialized first.";
            return Err(McpError::new(code::INVALID_REQUEST, message));
        };
        if !request.is_for_servers(legacy.revision) {
            return Err(McpError::method_not_found());
        }
        let mut caller = legacy.caller();
        if let McpRequest::SetLevel(wish) = &request {
            self.log_level = Some(wish.level);
        }
        caller.log_level = self.log_level;
        self.serve(id, request, caller, token)
    }

    fn serve(
        &mut self,
        id: &McpId,
        request: McpRequest,
        caller: McpCaller,
        token: Option<McpId>,
    ) -> Result<(), McpError> {
        if self.core.served.len() >= self.core.limits.served_max {
            return Err(McpError::new(code::INTERNAL, "Too many requests are under way."));
        }
        let caller = Box::new(McpCaller { progress: token.is_some(), ..caller });
        let served = McpServedRequest {
            log_level: caller.log_level,
            listening: matches!(request, McpRequest::Listen(_)).then_some(false),
            token,
            ..McpServedRequest::new(caller.revision.era())
        };
        self.core.served.insert(id.clone(), served);
        let request = Box::new(request);
        self.events.push_back(McpServerEvent::Request { id: id.clone(), request, caller });
        Ok(())
    }

    fn told(&mut self, now: Moment, told: McpNotification) {
        match &told {
            McpNotification::Canceled(canceled) => match canceled.request_id.clone() {
                // A handshake cannot be called off, and a cancel that comes too late is harmless.
                Some(id) if self.greeting.as_ref().is_none_or(|(greeting, _)| *greeting != id) => {
                    if self.core.served.remove(&id).is_some() || self.is_one_of_many {
                        let cancel = McpCancel::Peer(canceled.reason.clone());
                        self.events.push_back(McpServerEvent::Canceled { id, cancel });
                    } else {
                        self.core.counters.unknown_ids += 1;
                    }
                }
                _ => self.core.counters.unknown_ids += 1,
            },
            McpNotification::Progress(progress) => {
                let id = progress.progress_token.clone();
                if self.core.calls.rises(&id, &progress.progress) {
                    let progress = Box::new(progress.known.clone());
                    self.events.push_back(McpServerEvent::Progress { id, progress });
                } else if self.core.calls.known(&id) != McpKnown::Open {
                    self.core.misdirected(now, &id);
                }
            }
            _ => self.events.push_back(McpServerEvent::Told(Box::new(told))),
        }
    }
}

impl McpLegacyClient {
    fn caller(&self) -> McpCaller {
        McpCaller {
            revision: self.revision,
            capabilities: self.capabilities.clone(),
            info: self.info.clone(),
            progress: false,
            log_level: None,
        }
    }
}
