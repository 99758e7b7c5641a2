//! Tokens of requests: in their header, or as a subprotocol of a WebSocket.
//!
//! A page cannot set headers when it opens a WebSocket, but it can name subprotocols. It offers
//! `wharf.bearer.<token>` beside the one it wants to speak; the server never chooses that one.

use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use wharf_wire::ws::{BEARER_SUBPROTOCOL, SESSION_SUBPROTOCOL};

/// The token in a request's header.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The token that a request for a WebSocket offers, if it offers one and no other.
#[must_use]
pub fn of_websocket(parts: &Parts) -> Option<&str> {
    offered_after(parts, BEARER_SUBPROTOCOL)
}

/// The page's half of a console session that a request for a WebSocket offers, if it offers one
/// and no other.
#[must_use]
pub fn session_of_websocket(parts: &Parts) -> Option<&str> {
    offered_after(parts, SESSION_SUBPROTOCOL)
}

/// What a request for a WebSocket offers behind a prefix, if it does so once.
fn offered_after<'p>(parts: &'p Parts, prefix: &str) -> Option<&'p str> {
    let upgrade = parts.headers.get(UPGRADE)?.as_bytes();
    if parts.method != Method::GET || !upgrade.eq_ignore_ascii_case(b"websocket") {
        return None;
    }
    let mut found = offered(&parts.headers).filter_map(|name| name.strip_prefix(prefix));
    match (found.next(), found.next()) {
        (Some(text), None) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Takes tokens out of the subprotocols that are offered.
pub fn forget_token(headers: &mut HeaderMap) {
    forget(headers, BEARER_SUBPROTOCOL);
}

/// Takes halves of console sessions out of the subprotocols that are offered.
pub fn forget_session(headers: &mut HeaderMap) {
    forget(headers, SESSION_SUBPROTOCOL);
}

fn forget(headers: &mut HeaderMap, prefix: &str) {
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return;
    }
    let rest: Vec<&str> = offered(headers).filter(|name| !name.starts_with(prefix)).collect();
    let rest = HeaderValue::from_str(&rest.join(", ")).ok().filter(|rest| !rest.is_empty());
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Some(rest) = rest {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, rest);
    }
}

/// The subprotocols that a request offers.
pub fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: Method, upgrade: &str, offered: &[&str]) -> Parts {
        let (mut parts, ()) = axum::http::Request::new(()).into_parts();
        parts.method = method;
        parts.headers.insert(UPGRADE, upgrade.parse().expect("a value"));
        for value in offered {
            parts.headers.append(SEC_WEBSOCKET_PROTOCOL, value.parse().expect("a value"));
        }
        parts
    }

    #[test]
    fn one_token_is_taken_from_a_request_for_a_websocket_only() {
        let of = |offered: &[&str]| {
            of_websocket(&parts(Method::GET, "WebSocket", offered)).map(str::to_owned)
        };
        assert_eq!(of(&["wharf.v1, wharf.bearer.t0k"]).as_deref(), Some("t0k"));
        assert_eq!(of(&["wharf.v1", "wharf.bearer.t0k"]).as_deref(), Some("t0k"));
        for none in [&[][..], &["wharf.v1"], &["wharf.bearer."], &["x.wharf.bearer.t0k"]] {
            assert_eq!(of(none), None, "{none:?}");
        }
        assert_eq!(of(&["wharf.bearer.a, wharf.bearer.b"]), None, "which one is meant?");
        let offered = ["wharf.bearer.t0k"];
        assert_eq!(of_websocket(&parts(Method::POST, "websocket", &offered)), None);
        assert_eq!(of_websocket(&parts(Method::GET, "h2c", &offered)), None);
    }

    #[test]
    fn c007_a_session_is_offered_once_and_not_passed_on() {
        let offer = "graphql-transport-ws, wharf.session.k3y";
        let mut parts = parts(Method::GET, "websocket", &[offer]);
        assert_eq!(session_of_websocket(&parts), Some("k3y"));
        assert_eq!(of_websocket(&parts), None);
        forget_session(&mut parts.headers);
        assert_eq!(session_of_websocket(&parts), None);
        assert_eq!(offered(&parts.headers).collect::<Vec<_>>(), ["graphql-transport-ws"]);
        let twice = ["wharf.session.a, wharf.session.b"];
        assert_eq!(
            session_of_websocket(&super::tests::parts(Method::GET, "websocket", &twice)),
            None
        );
    }

    #[test]
    fn a_token_is_not_passed_on() {
        let left = |offered: &[&str]| {
            let mut headers = parts(Method::GET, "websocket", offered).headers;
            forget_token(&mut headers);
            let left = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
            left.map(|value| value.to_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(left(&["wharf.v1,wharf.bearer.t0k", "x"]), ["wharf.v1, x"]);
        assert_eq!(left(&["wharf.bearer.t0k"]), [""; 0]);
        assert_eq!(left(&[]), [""; 0]);
    }
}
