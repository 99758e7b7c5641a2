//! Answers on the wire: one JSON message, or messages as server-sent events.
//!
//! The session of a request makes every message; here it is only put where it belongs.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;
use wharf_protocol::Moment;
use wharf_protocol::mcp::{McpCallOptions, McpServerSession};
use wharf_vocab::Verb;
use wharf_web::sse::{Sse, framed, respond};
use wharf_wire::mcp_v1::limits::FROM_SERVER_BYTES_MAX;
use wharf_wire::mcp_v1::{
    McpCanceled, McpEra, McpError, McpId, McpMessage, McpNotification, McpOpen, code,
};

use super::door::{McpContext, McpReply, StreamItem, StreamSaid};
use crate::faults::{McpRefusal, RefusalStatus};
use crate::seal::RequestRef;

/// How often a quiet stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A list of tools that is to be filled, and how it begins.
const NO_TOOLS: &str = r#""tools":[]"#;
const TOOLS: &str = r#""tools":"#;
/// What a stream says when the core stops.
const FAREWELL: &str = "the core stops";

/// A request that is being served, and what it needs to be answered.
pub(crate) struct ServedRequest {
    pub(crate) cx: McpContext,
    /// Makes the messages.
    pub(crate) session: McpServerSession,
    /// The request; of a session's own stream there is none.
    pub(crate) at: Option<RequestRef>,
    /// Ends when the core closes its streams.
    pub(crate) closing: CancellationToken,
}

impl ServedRequest {
    /// The answer to send.
    pub(crate) fn answer(mut self, reply: McpReply) -> Response {
        let era = self.cx.revision.era();
        match (reply, self.at.take()) {
            (McpReply::Now(Ok(result)), Some(at)) => {
                self.session.answer(&at.id, Ok(result));
                said(&mut self.session, era)
            }
            (McpReply::Tools { around, page }, Some(at)) => {
                self.session.answer(&at.id, Ok(around));
                with_tools(&mut self.session, era, &page.tools)
            }
            (McpReply::Now(Ok(_)) | McpReply::Tools { .. }, None) => {
                StatusCode::ACCEPTED.into_response()
            }
            (McpReply::Now(Err(refusal)), at) => refused(era, at.map(|at| at.id), refusal),
            (McpReply::Stream(items), at) => self.stream(items, at),
        }
    }

    fn stream(self, items: BoxStream<'static, StreamItem>, at: Option<RequestRef>) -> Response {
        let Self { cx, mut session, closing, .. } = self;
        let permit = match cx.shared.shares.stream(&cx.caller) {
            Ok(permit) => permit,
            Err(fault) => return refused(cx.revision.era(), at.map(|at| at.id), fault.into()),
        };
        let allowed = {
            let (shared, caller) = (Arc::clone(&cx.shared), cx.caller.clone());
            Box::new(move || shared.handle.trust().check_current(&caller).is_ok())
        };
        let source = items.map(move |item| {
            // The stream counts for as long as somebody reads it.
            let _open = &permit;
            event(&cx, &mut session, at.as_ref().map(|at| &at.id), item)
        });
        respond(Sse::new(source.boxed(), allowed, KEEP_ALIVE, closing, FAREWELL))
    }
}

/// What a session has to say at once.
pub(crate) fn said(session: &mut McpServerSession, era: McpEra) -> Response {
    told(session.poll_message().map(|send| send.message), era)
}

fn told(message: Option<McpMessage>, era: McpEra) -> Response {
    match message {
        Some(McpMessage::Error { id, error }) => refused(era, id, error.into()),
        Some(message) => json(StatusCode::OK, message.write()),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// The same with tools in it that are written already. No text in JSON has a bare quotation mark, so
/// the empty list of the result is found by what it looks like.
fn with_tools(session: &mut McpServerSession, era: McpEra, tools: &str) -> Response {
    let message = session.poll_message().map(|send| send.message);
    let Some(McpMessage::Result { id, .. }) = &message else { return told(message, era) };
    let written = message.as_ref().map(McpMessage::write).unwrap_or_default();
    match written.split_once(NO_TOOLS) {
        Some((before, behind)) if written.len() + tools.len() <= FROM_SERVER_BYTES_MAX => {
            json(StatusCode::OK, [before, TOOLS, tools, behind].concat())
        }
        _ => {
            let error = McpError::new(code::INTERNAL, "The result is too large to be sent.");
            refused(era, Some(id.clone()), error.into())
        }
    }
}

/// What a session has to say to a message that it did not take. A modern one was not fit to be
/// looked at, so HTTP says so, too.
pub(crate) fn unserved(session: &mut McpServerSession, era: McpEra) -> Response {
    match session.poll_message().map(|send| send.message) {
        Some(McpMessage::Error { id, error })
            if era == McpEra::Modern && error.code != code::METHOD_NOT_FOUND =>
        {
            refused(era, id, McpRefusal::under(RefusalStatus::BadRequest, error))
        }
        Some(McpMessage::Error { id, error }) => refused(era, id, error.into()),
        Some(message) => json(StatusCode::OK, message.write()),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// A refusal to send.
pub(crate) fn refused(era: McpEra, id: Option<McpId>, refusal: McpRefusal) -> Response {
    let McpRefusal { error, http } = refusal;
    let status = match http {
        RefusalStatus::ByCode => status_of(era, id.is_some(), error.code),
        RefusalStatus::BadRequest => StatusCode::BAD_REQUEST,
        RefusalStatus::Scope(_) => StatusCode::FORBIDDEN,
        RefusalStatus::NoSession => StatusCode::NOT_FOUND,
        RefusalStatus::Busy => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = json(status, McpMessage::Error { id, error }.write());
    let headers = response.headers_mut();
    match http {
        RefusalStatus::Scope(verb) => {
            headers.insert(WWW_AUTHENTICATE, insufficient(verb));
        }
        RefusalStatus::Busy => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    response
}

fn insufficient(verb: Option<Verb>) -> HeaderValue {
    let scope = verb.map(|verb| format!(", scope=\"{verb}\"")).unwrap_or_default();
    let text = format!("Bearer error=\"insufficient_scope\"{scope}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The status of an error. But for those that HTTP has a word for, clients look for errors of
/// requests in answers that went well.
fn status_of(era: McpEra, has_id: bool, number: i64) -> StatusCode {
    match (era, number) {
        (_, code::PARSE | code::INVALID_REQUEST) if !has_id => StatusCode::BAD_REQUEST,
        (McpEra::Modern, code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (McpEra::Modern, number) if code::is_modern(number) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn json(status: StatusCode, written: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], written).into_response()
}

/// One event of a stream, as text; nothing if the client does not want to know.
fn event(
    cx: &McpContext,
    session: &mut McpServerSession,
    id: Option<&McpId>,
    item: StreamItem,
) -> String {
    let StreamItem { event, said } = item;
    if let StreamSaid::Prime { retry_ms } = said {
        return framed(event.as_deref(), Some(retry_ms), "");
    }
    say(cx, session, id, said);
    let mut text = String::new();
    while let Some(send) = session.poll_message() {
        text.push_str(&framed(event.as_deref(), None, &send.message.write()));
    }
    text
}

/// Has the session make a message of what is said. What it does not make is not wanted.
fn say(cx: &McpContext, session: &mut McpServerSession, id: Option<&McpId>, said: StreamSaid) {
    match (said, id) {
        (StreamSaid::Progress { progress, total, message }, Some(id)) => {
            session.progress(id, progress, total, message);
        }
        (StreamSaid::Log(log), Some(id)) => {
            if cx.log_level.is_none_or(|level| log.level >= level) {
                session.log(id, log);
            }
        }
        (StreamSaid::Ask { id: ask, request }, of) => {
            let now = cx.shared.handle.now();
            let now = Moment::new(now.0, now);
            // One that was asked on this stream already is not asked again.
            let _ = session.ask(now, ask, of, &request, McpCallOptions::default());
        }
        (StreamSaid::TakeBack { id: ask, reason }, _) => {
            if !session.take_back(&ask, &reason) {
                // It was asked on a stream before this one.
                let params =
                    McpCanceled { request_id: Some(ask), reason: Some(reason), meta: None };
                session.notify(&McpNotification::Canceled(McpOpen::boxed(params)));
            }
        }
        (StreamSaid::Acknowledge(filter), Some(id)) => {
            session.acknowledge(id, filter);
        }
        (StreamSaid::Notify(told), id) => {
            if !id.is_some_and(|id| session.tell(id, &told)) {
                session.notify(&told);
            }
        }
        (StreamSaid::Answer(answer), Some(id)) => {
            session.answer(id, answer);
        }
        (
            StreamSaid::Prime { .. }
            | StreamSaid::Progress { .. }
            | StreamSaid::Log(_)
            | StreamSaid::Acknowledge(_)
            | StreamSaid::Answer(_),
            _,
        ) => {}
    }
}

/// A message that cannot be used, with the request it was about.
pub(crate) fn bad_request(era: McpEra, id: Option<McpId>, message: &str) -> Response {
    let error = McpError::new(code::INVALID_REQUEST, message);
    refused(era, id, McpRefusal::under(RefusalStatus::BadRequest, error))
}

/// An answer given before a request is served. It is boxed, because every check on the way hands it
/// on by its error.
pub(super) struct EarlyResponse(Box<Response>);

impl From<Response> for EarlyResponse {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl EarlyResponse {
    /// The answer.
    pub(super) fn into_response(self) -> Response {
        *self.0
    }
}
