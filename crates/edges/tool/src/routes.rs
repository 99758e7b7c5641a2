//! HTTP: where peers connect, and operatives for whoever looks after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{delete, get};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use wharf_domain::{AuditRecord, Caller, Subject};
use wharf_socket::{Patience, hang_up, pump, split_frames};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_vocab::{Code, DateTime, Fault, ProviderId, Verb};
use wharf_web::answer::{Answer, FaultResponse};
use wharf_web::params::SentTrace;
use wharf_web::token;
use wharf_wire::rest_v1::{Operative, Page};
use wharf_wire::tool_v1::{SUBPROTOCOL, ToolMessage};
use wharf_wire::ws::BROWSER_SUBPROTOCOL;

use crate::offer;
use crate::peer::{NewPeer, Peer, PeerClose};
use crate::query::{self, PeerQuery, Role};
use crate::sessions::{Post, SessionKey, SseEntry};
use crate::shared::PeerHub;
use crate::shares::SharePermit;
use crate::stations::ServedName;
use crate::{sink, sse};

/// Where peers connect.
pub(crate) fn peers(shared: Arc<PeerHub>) -> Router {
    // What a frame may have, a message may have.
    let body = DefaultBodyLimit::max(shared.options.limits.frame_bytes_max);
    Router::new()
        .route("/v1/tool/ws", get(open))
        .route("/v1/tool/sse", get(read).post(post))
        .layer(body)
        .with_state(shared)
}

/// Operatives, for whoever looks after them.
pub(crate) fn operatives(shared: Arc<PeerHub>) -> Router {
    Router::new()
        .route("/v1/operatives", get(list))
        .route("/v1/operatives/{name}", delete(forget))
        .with_state(shared)
}

type QueryParams = Query<BTreeMap<String, String>>;

/// Opens a WebSocket. Whatever can be refused is refused before.
async fn open(
    State(shared): State<Arc<PeerHub>>,
    Extension(caller): Extension<Caller>,
    Query(asked): QueryParams,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let wanted = PeerQuery::read(&asked)?;
    let Ok(mut upgrade) = upgrade else {
        let message = "This route is a WebSocket; server-sent events are at /v1/tool/sse.";
        return Err(Fault::new(Code::RequestInvalid, message).into());
    };
    let offered: Vec<&str> = token::offered(&headers).collect();
    let marked = offered.contains(&SUBPROTOCOL);
    let (opening, place) = admit(&shared, &caller, wanted.role, marked, false).await?;
    let opening = NewPeer { trace: SentTrace::of(&headers), ..opening };
    if marked {
        upgrade = upgrade.protocols([SUBPROTOCOL]);
    } else if offered.contains(&BROWSER_SUBPROTOCOL) {
        upgrade = upgrade.protocols([BROWSER_SUBPROTOCOL]);
    }
    // A little more than a frame may have, so that one that is too large can be told so.
    let bytes_max = shared.options.limits.frame_bytes_max + 64 * 1024;
    let upgrade = upgrade
        .read_buffer_size(SOCKET_READ_BYTES)
        .max_write_buffer_size(bytes_max + SOCKET_SPARE_BYTES)
        .max_message_size(bytes_max)
        .max_frame_size(bytes_max);
    Ok(upgrade.on_upgrade(move |socket| serve(shared, opening, socket, place)))
}

/// Serves a connection until it ends.
async fn serve(shared: Arc<PeerHub>, opening: NewPeer, socket: WebSocket, _place: SharePermit) {
    let write_max = shared.options.write_max;
    let (mut source, mut sink) = split_frames(socket);
    let mut peer = match Peer::begin(&shared, opening).await {
        Ok(peer) => peer,
        Err(PeerClose { code, reason }) => {
            return hang_up(&mut sink, code, reason, write_max).await;
        }
    };
    let patience = Patience { write: Some(write_max), close: write_max, lingers: false };
    pump(&mut source, &mut sink, &mut peer, patience).await;
    peer.end().await;
}

/// Lets somebody in, if it may have this role.
async fn admit(
    shared: &Arc<PeerHub>,
    caller: &Caller,
    role: Role,
    marked: bool,
    over_events: bool,
) -> Result<(NewPeer, SharePermit), Fault> {
    let checked = query::check(&role, caller).and_then(|()| match &role {
        // A peer that only names its tools may know no other way to be told what is wrong.
        Role::Operative { provider, tools: Some(names) } => {
            offer::definitions(provider, caller, &offer::untyped(names)).map(drop)
        }
        _ => Ok(()),
    });
    if let Err(fault) = &checked {
        audit(shared, caller, fault);
    }
    checked?;
    if let Role::Principal { world, .. } = &role {
        shared.options.handle.worlds().get(world).await?;
    }
    if shared.draining.is_cancelled() {
        return Err(Fault::new(Code::CoreStopping, "The core is stopping."));
    }
    let place = shared.shares.place(caller)?;
    let station = match &role {
        Role::Principal { .. } => None,
        Role::Operative { provider, .. } => Some(sink::claim(shared, caller, provider).await?),
    };
    let trace = SentTrace::default();
    Ok((NewPeer { caller: caller.clone(), role, station, marked, over_events, trace }, place))
}

/// Writes down who was refused.
fn audit(shared: &PeerHub, caller: &Caller, fault: &Fault) {
    let mut record = AuditRecord::denied(&caller.grant, Subject::route("/v1/tool"))
        .fact("error_code", fault.code.as_str());
    for missing in ["verb", "world", "permission", "provider"] {
        if let Some(value) = fault.details.get(missing).and_then(Value::as_str) {
            record = record.fact(missing, value);
        }
    }
    shared.options.handle.audit().denied(record);
}

/// Opens the stream of a session's events.
async fn read(
    State(shared): State<Arc<PeerHub>>,
    Extension(caller): Extension<Caller>,
    Query(asked): QueryParams,
    headers: HeaderMap,
) -> Answer {
    let wanted = PeerQuery::read(&asked)?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = match last.filter(|text| !text.is_empty()) {
        Some(text) => Some(text.parse().map_err(|_| {
            Fault::new(Code::RequestInvalid, "Last-Event-ID must be the number of an event.")
        })?),
        None => wanted.after,
    };
    let key = SessionKey::new(&caller, &wanted.role, wanted.session.clone());
    let known = shared.sessions.find(&key);
    if known.is_none() && after.is_some_and(|after| after > 0) {
        return Err(FaultResponse::under(StatusCode::GONE, sse::gone()));
    }
    let entry = session(&shared, &caller, (wanted, &headers), &key).await?;
    let events = sse::events(&shared, &entry, caller, after).await;
    events.map_err(|fault| match fault.is(Code::TransportLost) {
        true => FaultResponse::under(StatusCode::GONE, fault),
        false => fault.into(),
    })
}

/// Takes a message of a session.
async fn post(
    State(shared): State<Arc<PeerHub>>,
    Extension(caller): Extension<Caller>,
    Query(asked): QueryParams,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let wanted = PeerQuery::read(&asked)?;
    let text = String::from_utf8(body.into())
        .map_err(|_| Fault::new(Code::RequestInvalid, "The message is not text."))?;
    let post = match ToolMessage::read(&text) {
        Err(unreadable) if unreadable.id.is_none() => {
            let message = format!("The message cannot be read: {}.", unreadable.why);
            return Err(Fault::new(Code::RequestInvalid, message).into());
        }
        Ok(ToolMessage::Unknown) if is_farewell(&text) => Post::Leaves,
        _ => {
            let room = room(&shared, text.len())?;
            Post::Message(text, room)
        }
    };
    let key = SessionKey::new(&caller, &wanted.role, wanted.session.clone());
    let entry = match post {
        // Nobody begins a session in order to leave it.
        Post::Leaves => match shared.sessions.find(&key) {
            Some(entry) => entry,
            None => return Ok((StatusCode::ACCEPTED, Json(serde_json::json!({}))).into_response()),
        },
        _ => session(&shared, &caller, (wanted, &headers), &key).await?,
    };
    Ok(entry.post(shared.options.write_max, post).await?)
}

/// Room for a message that waits for its session; a small one needs none.
fn room(shared: &PeerHub, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Fault> {
    if bytes <= SOCKET_READ_BYTES {
        return Ok(None);
    }
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    let full = |_| Fault::new(Code::CoreBusy, "Too much waits to be read; try again in a moment.");
    Arc::clone(&shared.posted).try_acquire_many_owned(kib).map(Some).map_err(full)
}

/// Whether a client says that it will not come back.
fn is_farewell(text: &str) -> bool {
    let message: Option<Value> = serde_json::from_str(text).ok();
    message.is_some_and(|message| message["type"] == "closed")
}

/// The session that is meant, which is begun if there is none.
async fn session(
    shared: &Arc<PeerHub>,
    caller: &Caller,
    (wanted, headers): (PeerQuery, &HeaderMap),
    key: &SessionKey,
) -> Result<SseEntry, Fault> {
    // Rights may have been different when it was begun.
    query::check(&wanted.role, caller)?;
    if let Some(entry) = shared.sessions.find(key) {
        return Ok(entry);
    }
    let (opening, place) = admit(shared, caller, wanted.role, wanted.marked, true).await?;
    let opening = NewPeer { trace: SentTrace::of(headers), ..opening };
    Ok(sse::find_or_begin(shared, key, opening, place))
}

/// Lists operatives by name.
async fn list(State(shared): State<Arc<PeerHub>>, Extension(caller): Extension<Caller>) -> Answer {
    caller.rights.check_verb(Verb::Read)?;
    let items: Vec<Operative> = shared.stations().iter().map(|it| item(&shared, it)).collect();
    Ok(Json(Page { items, next_cursor: None }).into_response())
}

fn item(shared: &PeerHub, station: &ServedName) -> Operative {
    let name = &station.name;
    let tools =
        shared.options.handle.providers().tools().into_iter().map(|tool| tool.def.tool.clone());
    let own = tools.filter(|tool| tool.provider() == *name);
    Operative {
        name: name.to_string(),
        connected: station.is_served(),
        grant: station.caller().map(|caller| caller.grant.clone()),
        last_seen: station.last_seen().map(DateTime),
        tools: own.collect(),
    }
}

/// Forgets an operative and its tools.
async fn forget(
    State(shared): State<Arc<PeerHub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let allowed = caller.rights.check_verb(Verb::Admin);
    if let Err(fault) = &allowed {
        audit(&shared, &caller, fault);
    }
    allowed?;
    let unknown = |_| Fault::new(Code::AgentNotFound, "There is no such operative.");
    let name = ProviderId::new(&name).map_err(unknown)?;
    sink::forget(&shared, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
