//! Seats: made, listed, opened, given up.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use bytes::Bytes;
use serde_json::json;
use wharf_domain::Caller;
use wharf_vocab::limits::SOCKET_READ_BYTES;
use wharf_vocab::{Code, Digest, Fault, SeatId, Verb};
use wharf_web::token;
use wharf_wire::operator_v1::{NewSeat, Seat, SeatList, SeatMade, SeatWait};
use wharf_wire::ws::{BEARER_SUBPROTOCOL, BROWSER_SUBPROTOCOL, close};

use super::{Answer, bearer, caller, read};
use crate::desk::{Desk, SeatItem};
use crate::request::RequestId;
use crate::shared::SeatHub;
use crate::{from_wire, socket};

pub(super) async fn create(
    State(shared): State<Arc<SeatHub>>,
    offered: Option<Extension<Caller>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let caller = asker(offered, &headers, |token| {
        seated(&shared, token)?;
        let message = "The token of a seat is good for its seat; it makes no others.";
        Err(Fault::new(Code::PermissionDenied, message))
    })?;
    let mut new: NewSeat = read(&body)?;
    if new.exclusive_roles == Some(true) {
        let roles = new.roles.iter().flatten();
        let taken: Vec<String> = roles.filter(|role| held(&shared, role)).cloned().collect();
        if !taken.is_empty() {
            let body = json!({
                "error": {
                    "code": Code::SeatRoleTaken.as_str(),
                    "message": "Another seat holds one of the roles.",
                    "retryable": false,
                },
                "conflicts": taken,
            });
            return Ok((StatusCode::CONFLICT, Json(body)).into_response());
        }
    }
    let manifest = new.capability_manifest.take().unwrap_or_default();
    let tools = |seat: &SeatId| from_wire::tools(seat, &manifest);
    let roles = new.roles.clone();
    let (seat, token) = crate::seats::create(&shared, &caller, new, tools).await?;
    Ok(Json(SeatMade { sid: seat.id.to_string(), token, roles }).into_response())
}

/// Whether a seat where somebody sits has a role.
fn held(shared: &SeatHub, role: &str) -> bool {
    shared.desks().iter().any(|desk| desk.is_taken() && desk.seat.roles.iter().any(|it| it == role))
}

pub(super) async fn list(
    State(shared): State<Arc<SeatHub>>,
    offered: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Answer {
    let caller = asker(offered, &headers, |token| seated(&shared, token))?;
    let items = seats_seen_by(&shared, &caller)?;
    let (operators, total) = (items.clone(), items.len());
    Ok(Json(SeatList { items, next_cursor: None, operators, total }).into_response())
}

/// The seats that a caller may see: its own, or all for an administrator.
pub(crate) fn seats_seen_by(shared: &SeatHub, caller: &Caller) -> Result<Vec<Seat>, Fault> {
    caller.rights.check_verb(Verb::Operate)?;
    let all = caller.rights.check_verb(Verb::Admin).is_ok();
    let made = |desk: &Desk| desk.seat.by.as_ref().is_some_and(|by| by.grant == caller.grant);
    let sees = |desk: &Arc<Desk>| all || made(desk) || caller.sits_on(&desk.seat.id);
    Ok(shared.desks().iter().filter(|it| sees(it)).map(seat).collect())
}

/// Who asks: the caller whom the listener let in, or whoever has the token of a seat.
fn asker(
    offered: Option<Extension<Caller>>,
    headers: &HeaderMap,
    by_seat: impl FnOnce(&str) -> Result<Caller, Fault>,
) -> Result<Caller, Fault> {
    match (offered, bearer(headers)) {
        (None, Some(token)) => by_seat(token),
        (offered, _) => caller(offered),
    }
}

/// Whoever sits on the seat that a token opens.
fn seated(shared: &SeatHub, token: &str) -> Result<Caller, Fault> {
    let digest = Digest::of(&[token.as_bytes()]);
    // Digests are compared, so how long it takes says nothing about the token.
    let desk = shared.desks().into_iter().find(|desk| desk.seat.token == digest);
    let invalid = || Fault::new(Code::AuthInvalid, "This token opens no seat.");
    shared.options.handle.seats().authenticate(&desk.ok_or_else(invalid)?.seat.id, token)
}

pub(super) async fn show(
    State(shared): State<Arc<SeatHub>>,
    Path(sid): Path<String>,
    offered: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Answer {
    let (desk, _) = desk_of(&shared, &sid, offered, &headers)?;
    Ok(Json(seat_in_full(&desk)).into_response())
}

/// One seat with all that waits for it, if a caller may see it.
pub(crate) fn seat_seen_by(shared: &SeatHub, caller: &Caller, sid: &str) -> Result<Seat, Fault> {
    let id = SeatId::new(sid).map_err(|_| wharf_domain::seat::unknown_text(sid))?;
    Ok(seat_in_full(&desk_for(shared, &id, caller)?))
}

fn seat_in_full(desk: &Arc<Desk>) -> Seat {
    let waiting = desk.waiting().iter().map(wait).collect();
    Seat { waiting, ..seat(desk) }
}

pub(super) async fn close(
    State(shared): State<Arc<SeatHub>>,
    Path(sid): Path<String>,
    offered: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Answer {
    let (desk, caller) = desk_of(&shared, &sid, offered, &headers)?;
    let why = (close::NORMAL, "the seat was given up");
    crate::seats::close(&shared, &caller, &desk.seat.id, why).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Opens the socket of a seat. Nothing is accepted before the token is checked.
pub(super) async fn open(
    State(shared): State<Arc<SeatHub>>,
    Path(sid): Path<String>,
    ticket: Option<Extension<Caller>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let id = SeatId::new(&sid).map_err(|_| wharf_domain::seat::unknown_text(&sid))?;
    // Whoever comes with a ticket of the seat was let in by the listener.
    if !ticket.is_some_and(|Extension(caller)| caller.sits_on(&id)) {
        let carried =
            || token::offered(&headers).find_map(|offer| offer.strip_prefix(BEARER_SUBPROTOCOL));
        let given = bearer(&headers).or_else(|| carried().filter(|token| !token.is_empty()));
        let missing = || Fault::new(Code::AuthRequired, "A seat is opened with its token.");
        shared.options.handle.seats().authenticate(&id, given.ok_or_else(missing)?)?;
    }
    let offered = token::offered(&headers).any(|offer| offer == BROWSER_SUBPROTOCOL);
    let gone = || wharf_domain::seat::unknown(&id);
    let desk = shared.desk(&id).ok_or_else(gone)?;
    let Ok(mut upgrade) = upgrade else {
        let message = "A seat is opened by a WebSocket.";
        return Err(Fault::new(Code::RequestInvalid, message).into());
    };
    if offered {
        upgrade = upgrade.protocols([BROWSER_SUBPROTOCOL]);
    }
    // A little more than a frame may have, so that one that is too large can be told so.
    let bytes_max = shared.options.limits.frame_bytes_max + 64 * 1024;
    let upgrade = upgrade
        .read_buffer_size(SOCKET_READ_BYTES)
        .max_write_buffer_size(socket::WRITE_BYTES_MAX)
        .max_message_size(bytes_max)
        .max_frame_size(bytes_max);
    Ok(upgrade.on_upgrade(move |socket| socket::serve(shared, desk, socket)))
}

/// A seat and who asks for it: the seat itself by its token, whoever made it, or an administrator.
fn desk_of(
    shared: &SeatHub,
    sid: &str,
    offered: Option<Extension<Caller>>,
    headers: &HeaderMap,
) -> Result<(Arc<Desk>, Caller), Fault> {
    let id = SeatId::new(sid).map_err(|_| wharf_domain::seat::unknown_text(sid))?;
    let by_seat = |token: &str| shared.options.handle.seats().authenticate(&id, token);
    let caller = asker(offered, headers, by_seat)?;
    Ok((desk_for(shared, &id, &caller)?, caller))
}

/// A seat, for whoever sits there or made it, and for administrators.
fn desk_for(shared: &SeatHub, id: &SeatId, caller: &Caller) -> Result<Arc<Desk>, Fault> {
    let desk = shared.desk(id).ok_or_else(|| wharf_domain::seat::unknown(id))?;
    let made = desk.seat.by.as_ref().is_some_and(|by| by.grant == caller.grant);
    if !made && !caller.sits_on(id) {
        caller.rights.check_verb(Verb::Admin)?;
    }
    Ok(desk)
}

fn seat(desk: &Arc<Desk>) -> Seat {
    let last_seen = desk.last_seen().and_then(|at| {
        let ms = i64::try_from(at.0).ok()?;
        Some(jiff::Timestamp::from_millisecond(ms).ok()?.to_string())
    });
    Seat {
        sid: desk.seat.id.to_string(),
        desc: desk.seat.desc.clone(),
        roles: desk.seat.roles.clone(),
        connected: desk.is_taken(),
        last_seen,
        pending: desk.pending(),
        person: desk.caller.person,
        waiting: Vec::new(),
    }
}

fn wait((id, item, taken): &(RequestId, SeatItem, bool)) -> SeatWait {
    let run = item.run();
    let (kind, tool, ask) = match item {
        SeatItem::Ask(ask) => (ask.spec.kind.as_str(), ask.spec.tool.to_string(), Some(ask)),
        SeatItem::Spawn(task) => ("task", task.tool().to_string(), None),
    };
    SeatWait {
        req_id: id.to_string(),
        kind: kind.to_owned(),
        ask_id: ask.map(|ask| ask.spec.ask_id.to_string()),
        run_id: run.run.to_string(),
        world: run.world.to_string(),
        tool,
        title: ask.map(|ask| ask.spec.title.clone()),
        taken: *taken,
    }
}
