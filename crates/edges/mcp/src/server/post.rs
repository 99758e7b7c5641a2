//! A message that a client posts: its era, what it must bring along, and what becomes of it.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use wharf_protocol::mcp::{McpAnswer, McpCancel, McpDoor, McpServerEvent};
use wharf_protocol::{Moment, Session as _};
use wharf_vocab::{Code, Fault, Timestamp, Verb};
use wharf_web::answer::refusal;
use wharf_web::params::SentTrace;
use wharf_wire::mcp_v1::limits::FROM_CLIENT_BYTES_MAX;
use wharf_wire::mcp_v1::{
    McpEra, McpError, McpId, McpMessage, McpMeta, McpRevision, code, headers,
};

use super::door::McpContext;
use super::frame::{self, EarlyResponse, ServedRequest, bad_request, refused};
use super::routes::{Arrival, denied_of, machine};
use super::{calls, dispatch, questions, session, tools};
use crate::faults::{McpRefusal, RefusalStatus};
use crate::seal::RequestRef;

/// How long a body may take to arrive that the HTTP edge has not gathered.
const BODY_READ: Duration = Duration::from_secs(60);

/// What only legacy clients ask of a server.
const GONE: [&str; 7] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
];

type Outcome = Result<Response, EarlyResponse>;

/// Takes a message.
pub(super) async fn take(arrival: Arrival, body: Body) -> Outcome {
    is_json(&arrival)?;
    let body = gathered(body).await?;
    let message = McpMessage::read(&body).map_err(|unreadable| {
        let error = unreadable.to_error();
        let refusal = McpRefusal::under(RefusalStatus::BadRequest, error);
        refused(McpEra::Legacy, unreadable.id, refusal)
    })?;
    drop(body);
    let (meta, is_answer) = match &message {
        McpMessage::Request { params, .. } | McpMessage::Notification { params, .. } => {
            (McpMeta::of(params.as_ref()), false)
        }
        McpMessage::Result { .. } | McpMessage::Error { .. } => (None, true),
    };
    // Of a header that stands there twice the first decides the era, and then it is refused.
    let version = arrival.headers.get(headers::PROTOCOL_VERSION);
    let version = version.and_then(|version| version.to_str().ok());
    match McpEra::of(meta.as_ref(), version) {
        McpEra::Modern if is_answer => {
            Err(bad_request(McpEra::Modern, None, "Modern clients answer inside of requests.")
                .into())
        }
        McpEra::Modern => modern(arrival, message, meta.unwrap_or_default()).await,
        McpEra::Legacy => legacy(arrival, message).await,
    }
}

fn is_json(arrival: &Arrival) -> Result<(), EarlyResponse> {
    let kind = arrival.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "The body must be `application/json`.";
    let error = McpError::new(code::INVALID_REQUEST, message);
    let message = McpMessage::Error { id: None, error };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, headers, message.write()).into_response().into())
}

async fn gathered(body: Body) -> Result<Bytes, EarlyResponse> {
    match tokio::time::timeout(BODY_READ, to_bytes(body, FROM_CLIENT_BYTES_MAX)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => {
            let message = "The body could not be read, or has more than 4 MiB.";
            Err(refusal(&Fault::new(Code::RequestTooLarge, message)).into())
        }
        Err(_) => {
            let message = "The body took too long to arrive.";
            Err(refusal(&Fault::new(Code::RequestTimeout, message)).into())
        }
    }
}

/// The moment as sessions know it.
pub(super) fn moment(now: Timestamp) -> Moment {
    Moment::new(now.0, now)
}

/// A modern message: all there is to know of its client comes with it.
async fn modern(arrival: Arrival, message: McpMessage, meta: McpMeta) -> Outcome {
    let McpMessage::Request { id, method, params } = &message else {
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    let id = id.clone();
    // Whether there is such a method is said first, whatever else is wrong with the request.
    if GONE.contains(&method.as_str()) {
        return Err(refused(McpEra::Modern, Some(id), McpError::method_not_found().into()).into());
    }
    if let Some(version) = meta.protocol_version().ok().flatten() {
        let mirrors = match method.as_str() {
            "tools/call" => tools::mirrors(&arrival, params.as_ref()),
            _ => Vec::new(),
        };
        let pairs = pairs(&arrival);
        let body = headers::McpMirrored {
            version: &version,
            method,
            params: params.as_ref(),
            mirrors: &mirrors,
        };
        headers::check(&pairs, body)
            .map_err(|error| refused(McpEra::Modern, Some(id.clone()), error.into()))?;
    }
    let mut session = machine(&arrival.shared, McpDoor::Modern);
    // The version stands in `_meta`, or the session says that it is missing.
    let version = McpRevision::MODERN_NEWEST.as_str();
    session.take(moment(arrival.shared.handle.now()), message, Some(version));
    let Some(McpServerEvent::Request { id, request, caller }) = session.poll_event() else {
        return Err(frame::unserved(&mut session, McpEra::Modern).into());
    };
    let at = RequestRef { id, token: meta.progress_token().ok().flatten() };
    let cx = McpContext {
        shared: arrival.shared,
        caller: arrival.caller,
        door: arrival.door,
        revision: caller.revision,
        capabilities: caller.capabilities,
        session: None,
        log_level: caller.log_level,
        trace: SentTrace::of(&arrival.headers),
        closing: arrival.closing.clone(),
    };
    let served = ServedRequest { cx, session, at: Some(at), closing: arrival.closing };
    Ok(dispatch::serve(served, *request).await)
}

/// Headers as pairs; one that is no text is there and means nothing.
fn pairs(arrival: &Arrival) -> Vec<(&str, &str)> {
    let all = arrival.headers.iter();
    all.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or("\u{fffd}"))).collect()
}

/// A legacy message: a handshake, or one of a session.
async fn legacy(arrival: Arrival, message: McpMessage) -> Outcome {
    arrival.legacy_version()?;
    let method = match &message {
        McpMessage::Request { method, .. } => Some(method.as_str()),
        _ => None,
    };
    let has_session = arrival.headers.contains_key(headers::SESSION_ID);
    match method {
        Some("initialize") => initialize(arrival, message).await,
        Some("ping") if !has_session => {
            let mut session = machine(&arrival.shared, McpDoor::Both);
            session.take(moment(arrival.shared.handle.now()), message, None);
            Ok(frame::said(&mut session, McpEra::Legacy))
        }
        _ => in_session(arrival, message).await,
    }
}

async fn initialize(arrival: Arrival, message: McpMessage) -> Outcome {
    let mut machine = machine(&arrival.shared, McpDoor::Both);
    machine.take(moment(arrival.shared.handle.now()), message, None);
    let Some(McpServerEvent::Request { id, request, caller }) = machine.poll_event() else {
        return Err(frame::unserved(&mut machine, McpEra::Legacy).into());
    };
    let (shared, door) = (&arrival.shared, &arrival.door);
    let provider = door.provider.as_ref();
    let begun =
        session::begin(shared, &arrival.caller, provider, caller.revision, &caller.capabilities);
    let cx = McpContext {
        shared: arrival.shared,
        caller: arrival.caller,
        door: arrival.door,
        revision: caller.revision,
        capabilities: caller.capabilities,
        session: None,
        log_level: None,
        trace: SentTrace::default(),
        closing: arrival.closing.clone(),
    };
    let at = Some(RequestRef { id, token: None });
    let served = ServedRequest { cx, session: machine, at, closing: arrival.closing };
    let mut response = dispatch::serve(served, *request).await;
    if let (StatusCode::OK, Ok(begun)) = (response.status(), HeaderValue::from_str(&begun)) {
        response.headers_mut().insert(headers::SESSION_ID, begun);
    }
    Ok(response)
}

async fn in_session(arrival: Arrival, message: McpMessage) -> Outcome {
    let (session, seal) = arrival.session()?;
    let token = match &message {
        McpMessage::Request { params, .. } => McpMeta::of(params.as_ref()),
        _ => None,
    };
    let token = token.and_then(|meta| meta.progress_token().ok().flatten());
    let now = moment(arrival.shared.handle.now());
    let (cx, mut machine, closing) = arrival.resumed(session, seal);
    machine.take(now, message, None);
    match machine.poll_event() {
        Some(McpServerEvent::Request { id, request, .. }) => {
            let at = Some(RequestRef { id, token });
            let served = ServedRequest { cx, session: machine, at, closing };
            Ok(dispatch::serve(served, *request).await)
        }
        Some(McpServerEvent::Canceled { id, cancel }) => canceled(cx, id, cancel).await,
        Some(McpServerEvent::Answered { id, answer }) => answered(cx, id, answer).await,
        // What else a client tells is not acted upon.
        Some(McpServerEvent::Told(_) | McpServerEvent::Progress { .. }) => {
            Ok(StatusCode::ACCEPTED.into_response())
        }
        None => Ok(frame::unserved(&mut machine, McpEra::Legacy)),
    }
}

async fn canceled(cx: McpContext, id: McpId, cancel: McpCancel) -> Outcome {
    cx.caller.rights.check(Verb::Run, &cx.door.world).map_err(|fault| denied_of(None, fault))?;
    let reason = match cancel {
        McpCancel::Peer(reason) => reason,
        McpCancel::Disconnected => None,
    };
    calls::canceled(cx, id, reason).await;
    Ok(StatusCode::ACCEPTED.into_response())
}

async fn answered(cx: McpContext, id: McpId, answer: McpAnswer) -> Outcome {
    cx.caller.rights.check(Verb::Answer, &cx.door.world).map_err(|fault| denied_of(None, fault))?;
    questions::answered(cx, id, answer).await;
    Ok(StatusCode::ACCEPTED.into_response())
}
