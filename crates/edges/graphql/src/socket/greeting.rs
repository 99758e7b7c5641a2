//! How a peer that came without a token says who it is: in its first message.

use axum::extract::ws::{Message, WebSocket};
use futures::StreamExt;
use futures::stream::SplitStream;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Actor, AuditRecord, Caller, Subject};
use wharf_protocol::Pings;
use wharf_vocab::Code;

use crate::document;
use crate::exec::RequestContext;

/// Why a socket is closed: a code and a reason.
pub(super) type SocketClose = (u16, &'static str);

/// Said to a peer that pings without end.
pub(super) const TOO_MANY_PINGS: SocketClose = (1008, Pings::TOO_MANY);

/// Waits for the first message of a peer and reads who it is. The message is given back, so that
/// it is answered like every other.
pub(super) async fn await_caller(
    core: &RequestContext,
    input: &mut SplitStream<WebSocket>,
    stop: &CancellationToken,
) -> Result<(Caller, Message), SocketClose> {
    let first = tokio::time::timeout(core.limits.socket_init, first(input));
    let message = match stop.run_until_cancelled(first).await {
        Some(Ok(said)) => said?,
        Some(Err(_)) => return Err((4408, "Connection initialisation timeout")),
        None => return Err((1001, "The core is stopping.")),
    };
    let text = match &message {
        Message::Text(text) => text.as_bytes(),
        Message::Binary(bytes) => bytes,
        _ => &[],
    };
    let Some(token) = token(text) else {
        denied(core, Code::AuthRequired);
        return Err((4401, "Send a token in the payload of connection_init."));
    };
    match (core.bearer)(&token) {
        Ok(caller) => Ok((caller, message)),
        Err(_) => {
            denied(core, Code::AuthInvalid);
            Err((4401, "This token is not valid here; it may be expired or revoked."))
        }
    }
}

/// The first message that says something.
async fn first(input: &mut SplitStream<WebSocket>) -> Result<Message, SocketClose> {
    let (begun, mut pings) = (Instant::now(), Pings::of_a_stranger());
    loop {
        match input.next().await {
            Some(Ok(said @ (Message::Text(_) | Message::Binary(_)))) => return Ok(said),
            Some(Ok(Message::Ping(_))) if !pings.take(super::since(begun)) => {
                return Err(TOO_MANY_PINGS);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            // The peer has gone.
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err((1000, "")),
        }
    }
}

#[derive(Deserialize)]
struct InitMessage {
    r#type: String,
    #[serde(default)]
    payload: Map<String, Value>,
}

/// The token in a `connection_init`: `Authorization` as in a header, or `token`.
fn token(bytes: &[u8]) -> Option<String> {
    document::check_json(bytes).ok()?;
    let greeting: InitMessage = serde_json::from_slice(bytes).ok()?;
    if greeting.r#type != "connection_init" {
        return None;
    }
    let named = |name: &str| {
        let mut found = greeting.payload.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().and_then(|(_, value)| value.as_str())
    };
    let bearer = named("authorization").and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    });
    let token = bearer.or_else(|| named("token"))?.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// Writes down that somebody was refused, and nothing of what was sent.
fn denied(core: &RequestContext, code: Code) {
    let record = AuditRecord::denied(Actor::NOBODY, Subject::route("/graphql"));
    core.handle.audit().denied(record.fact("error_code", code.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t045_a_token_is_read_from_where_clients_put_it() {
        let of = |payload: &str| {
            token(format!("{{\"type\":\"connection_init\",\"payload\":{payload}}}").as_bytes())
        };
        for payload in [
            r#"{"Authorization":"Bearer t0k"}"#,
            r#"{"authorization":"bearer  t0k "}"#,
            r#"{"token":"t0k","other":1}"#,
        ] {
            assert_eq!(of(payload).as_deref(), Some("t0k"), "{payload}");
        }
        for payload in ["{}", "null", "[]", r#"{"authorization":"t0k"}"#, r#"{"token":""}"#] {
            assert_eq!(of(payload), None, "{payload}");
        }
        assert_eq!(token(br#"{"type":"connection_init"}"#), None);
        assert_eq!(token(br#"{"type":"subscribe","payload":{"token":"t0k"}}"#), None);
    }
}
