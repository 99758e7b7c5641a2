//! The paths below `/mcp` and what answers there.
//!
//! Checks come in one order: the HTTP edge looks at head, host, origin and token; then come the
//! address, the verb, and only then the body.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing;
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_protocol::mcp::{McpDoor, McpServerConfig, McpServerSession};
use wharf_vocab::{Code, Fault, Verb};
use wharf_web::answer::FaultResponse;
use wharf_web::params::SentTrace;
use wharf_web::params::{Params, Segments};
use wharf_web::token;
use wharf_wire::mcp_v1::{McpEra, McpError, McpId, McpMessage, McpRevision, code, headers, key};

use super::door::McpContext;
use super::frame::{EarlyResponse, ServedRequest, bad_request, refused};
use super::query::{self, DoorQuery};
use super::session::{self, SessionRef};
use super::shared::ServerShared;
use super::{changes, oauth, post, stream};
use crate::faults::{McpRefusal, RefusalStatus};
use crate::seal::{EventPlace, RequestRef, SessionSeal};

/// The paths below `/mcp`.
pub(crate) fn router(shared: Arc<ServerShared>) -> Router {
    let all = || routing::post(take).get(read).delete(end);
    Router::new().route("/mcp", all()).route("/mcp/{*provider}", all()).with_state(shared)
}

/// Somebody who may be here, and what the address asks for.
pub(super) struct Arrival {
    pub(super) shared: Arc<ServerShared>,
    pub(super) caller: Caller,
    pub(super) door: DoorQuery,
    pub(super) headers: HeaderMap,
    pub(super) closing: CancellationToken,
}

impl Arrival {
    /// Lets a request in, or says why not.
    async fn of(shared: &Arc<ServerShared>, parts: &mut Parts) -> Result<Self, EarlyResponse> {
        let Ok(params) = Params::from_request_parts(parts, &()).await;
        query::refuse_tokens(&params).map_err(plain)?;
        let bearer = match parts.extensions.remove::<Caller>() {
            Some(bearer) => bearer,
            None => {
                let fault = parts.extensions.remove::<Fault>();
                let fault = fault.unwrap_or_else(|| {
                    Fault::new(Code::AuthRequired, "This needs a token in `Authorization`.")
                });
                let sent = token::bearer(&parts.headers).map(str::to_owned);
                let admitted = oauth::admit(shared, sent.as_deref(), fault).await;
                admitted.map_err(|fault| oauth::unauthorized(shared, fault))?
            }
        };
        let segments = Segments::from_request_parts(parts, &()).await;
        let segments = segments.map_err(IntoResponse::into_response)?;
        let provider = Some(segments.get("provider")).filter(|text| !text.is_empty());
        let door = DoorQuery::read(provider, &params, &bearer).map_err(plain)?;
        let closing = parts.extensions.remove::<CancellationToken>().unwrap_or_default();
        let arrival = Self {
            shared: Arc::clone(shared),
            caller: query::client(bearer, &door),
            door,
            headers: std::mem::take(&mut parts.headers),
            closing,
        };
        arrival.check()?;
        Ok(arrival)
    }

    /// Whether the token is good for anything here.
    fn check(&self) -> Result<(), EarlyResponse> {
        let rights = &self.caller.rights;
        if rights.verbs.is_empty() {
            return rights.check_verb(Verb::Read).map_err(|fault| denied(fault).into());
        }
        if let Some(verb) = rights.verbs.first() {
            rights.check(*verb, &self.door.world).map_err(denied)?;
        }
        match &self.door.provider {
            Some(provider) if !self.shared.handle.providers().is_known(provider) => {
                let message = "There is no such provider.";
                Err(plain(Fault::new(Code::RequestRouteUnknown, message)).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the caller may do this here.
    pub(super) fn may(&self, verb: Verb) -> Result<(), EarlyResponse> {
        self.caller.rights.check(verb, &self.door.world).map_err(|fault| denied(fault).into())
    }

    /// A header that may stand there once.
    pub(super) fn header(&self, name: &str) -> Result<Option<&str>, EarlyResponse> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => match value.to_str() {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.bad_header(name, "is no text")),
            },
            (Some(_), Some(_)) => Err(self.bad_header(name, "stands there twice")),
        }
    }

    fn bad_header(&self, name: &str, wrong: &str) -> EarlyResponse {
        bad_request(McpEra::Legacy, None, &format!("The header `{name}` {wrong}.")).into()
    }

    /// The session that a legacy request belongs to.
    pub(super) fn session(&self) -> Result<(SessionRef, SessionSeal), EarlyResponse> {
        let Some(text) = self.header(headers::SESSION_ID)? else {
            let message = "The header `mcp-session-id` is missing; send `initialize` first.";
            return Err(bad_request(McpEra::Legacy, None, message).into());
        };
        let provider = self.door.provider.as_ref();
        let resumed = session::resume(&self.shared, &self.caller, provider, text);
        resumed.ok_or_else(|| {
            let message = "There is no such session; begin a new one with `initialize`.";
            let error = McpError::new(code::INVALID_REQUEST, message);
            let refusal = McpRefusal::under(RefusalStatus::NoSession, error);
            refused(McpEra::Legacy, None, refusal).into()
        })
    }

    /// The version that a legacy request names, if it names one.
    pub(super) fn legacy_version(&self) -> Result<(), EarlyResponse> {
        let named = self.header(headers::PROTOCOL_VERSION)?;
        let known = named.map(McpRevision::parse);
        match known {
            None => Ok(()),
            Some(Some(revision)) if revision.era() == McpEra::Legacy => Ok(()),
            Some(_) => {
                let message = "The header `mcp-protocol-version` names no version that is spoken.";
                Err(bad_request(McpEra::Legacy, None, message).into())
            }
        }
    }

    /// A context in a legacy session, and what makes its messages.
    pub(super) fn resumed(
        self,
        session: SessionRef,
        seal: SessionSeal,
    ) -> (McpContext, McpServerSession, CancellationToken) {
        let capabilities = Box::new(seal.capabilities.into());
        let live = self.shared.sessions.known(&session);
        let cx = McpContext {
            revision: seal.revision,
            capabilities: *Clone::clone(&capabilities),
            session: Some(session),
            log_level: live.and_then(|live| live.log_level()),
            trace: SentTrace::of(&self.headers),
            closing: self.closing.clone(),
            shared: self.shared,
            caller: self.caller,
            door: self.door,
        };
        let door = McpDoor::Resumed { revision: seal.revision, capabilities };
        let session = machine(&cx.shared, door);
        (cx, session, self.closing)
    }
}

/// What makes the messages of one request.
pub(super) fn machine(shared: &ServerShared, door: McpDoor) -> McpServerSession {
    McpServerSession::new(McpServerConfig::new(shared.implementation()), door)
}

/// A refusal for want of a right, with the request it is about.
pub(super) fn denied_of(id: Option<McpId>, fault: Fault) -> Response {
    let mut response = refused(McpEra::Legacy, id, fault.clone().into());
    // Whoever lets requests through writes it down.
    response.extensions_mut().insert(fault);
    response
}

fn denied(fault: Fault) -> Response {
    denied_of(None, fault)
}

fn plain(fault: Fault) -> Response {
    FaultResponse::from(fault).into_response()
}

/// A message of a client.
async fn take(State(shared): State<Arc<ServerShared>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let arrival = match Arrival::of(&shared, &mut parts).await {
        Ok(arrival) => arrival,
        Err(early) => return early.into_response(),
    };
    post::take(arrival, body).await.unwrap_or_else(EarlyResponse::into_response)
}

/// A stream of a legacy session: its own, or that of a call that goes on.
async fn read(State(shared): State<Arc<ServerShared>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let opened = async {
        let arrival = Arrival::of(&shared, &mut parts).await?;
        not_modern(&arrival)?;
        arrival.may(Verb::Read)?;
        arrival.legacy_version()?;
        let (session, seal) = arrival.session()?;
        let last = arrival.header(headers::LAST_EVENT_ID)?.map(str::to_owned);
        Ok(open(arrival.resumed(session, seal), last.as_deref()).await)
    };
    opened.await.unwrap_or_else(EarlyResponse::into_response)
}

async fn open(
    (cx, mut session, closing): (McpContext, McpServerSession, CancellationToken),
    last: Option<&str>,
) -> Response {
    let Some(last) = last.filter(|last| !last.is_empty()) else {
        let reply = changes::get_stream(cx.clone()).await;
        return ServedRequest { cx, session, at: None, closing }.answer(reply);
    };
    let place = EventPlace::read(&cx.shared.handle, &cx.caller, last);
    let resumed = match place {
        Some(place) => {
            let at = place.request.clone();
            serve_again(&cx, &mut session, &at);
            stream::resume(cx.clone(), place).await.map(|reply| (reply, at))
        }
        None => Err(McpError::params("There is no such event to go on from.").into()),
    };
    match resumed {
        Ok((reply, at)) => ServedRequest { cx, session, at: Some(at), closing }.answer(reply),
        Err(McpRefusal { error, http: RefusalStatus::ByCode }) => {
            let refusal = McpRefusal::under(RefusalStatus::BadRequest, error);
            refused(McpEra::Legacy, None, refusal)
        }
        Err(refusal) => refused(McpEra::Legacy, None, refusal),
    }
}

/// Tells what makes messages of a request that it served before, perhaps at another core.
fn serve_again(cx: &McpContext, session: &mut McpServerSession, at: &RequestRef) {
    let mut params = wharf_vocab::Object::new();
    params.insert("name".to_owned(), "".into());
    if let Some(token) = &at.token {
        let meta = serde_json::json!({ key::PROGRESS_TOKEN: token });
        params.insert(key::META.to_owned(), meta);
    }
    let method = "tools/call".to_owned();
    let request = McpMessage::Request { id: at.id.clone(), method, params: Some(params) };
    session.take(post::moment(cx.shared.handle.now()), request, None);
}

/// Ends a legacy session.
async fn end(State(shared): State<Arc<ServerShared>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let ended = async {
        let arrival = Arrival::of(&shared, &mut parts).await?;
        not_modern(&arrival)?;
        arrival.legacy_version()?;
        let (session, _) = arrival.session()?;
        shared.sessions.delete(&session, shared.handle.now());
        Ok(StatusCode::NO_CONTENT.into_response())
    };
    ended.await.unwrap_or_else(EarlyResponse::into_response)
}

/// Modern clients have neither sessions nor streams of their own.
fn not_modern(arrival: &Arrival) -> Result<(), EarlyResponse> {
    let version = arrival.header(headers::PROTOCOL_VERSION)?;
    match McpEra::of(None, version) {
        McpEra::Legacy => Ok(()),
        McpEra::Modern => {
            let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
            response.headers_mut().insert(ALLOW, axum::http::HeaderValue::from_static("POST"));
            Err(response.into())
        }
    }
}
