//! The upgrade to a WebSocket, checked by hand before anything is accepted.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, Method, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use wharf_wire::run_v1::SUBPROTOCOL;

/// Why an upgrade is refused: a status and one sentence.
pub(super) type UpgradeRefusal = (StatusCode, &'static str);

/// The headers that accept an upgrade, or why it is refused.
pub(super) fn accept(
    method: &Method,
    version: Version,
    headers: &HeaderMap,
) -> Result<[(HeaderName, HeaderValue); 4], UpgradeRefusal> {
    if method != Method::GET {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "Only GET is answered here."));
    }
    if version != Version::HTTP_11 || !has(headers, &CONNECTION, "upgrade") {
        return Err((StatusCode::UPGRADE_REQUIRED, "This is a WebSocket."));
    }
    if !has(headers, &UPGRADE, "websocket") {
        return Err((StatusCode::UPGRADE_REQUIRED, "This is a WebSocket."));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err((StatusCode::UPGRADE_REQUIRED, "Only version 13 of WebSockets is spoken."));
    }
    let is_key = |key: &&HeaderValue| BASE64_STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next().filter(is_key), keys.next()) else {
        return Err((StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is not a key."));
    };
    if !offers(headers) {
        return Err((StatusCode::BAD_REQUEST, "The subprotocol theory.run.v1 is not offered."));
    }
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
        .map_err(|_| (StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is not a key."))?;
    Ok([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
        (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL)),
    ])
}

/// Whether a comma list holds a word, in any case.
fn has(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|one| one.eq_ignore_ascii_case(word))
}

/// Whether the subprotocol is among those offered; it is spelled exactly.
fn offers(headers: &HeaderMap) -> bool {
    words(headers, &SEC_WEBSOCKET_PROTOCOL).any(|one| one == SUBPROTOCOL)
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}
