//! Pages of other origins that the owner lets in: what browsers must be told so that such a page
//! may read answers of the tool protocol, ask for tickets and read streams of events. It needs a
//! token all the same.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::app::App;

/// What such pages may fetch, besides streams of events.
const WITHIN: [&str; 2] = ["/v1/tool/", "/v1/tickets"];

/// The origin of the page, if it was let in and asks for what such pages may fetch.
pub(crate) fn origin(app: &App, parts: &Parts, route: &str) -> Option<HeaderValue> {
    let path = parts.uri.path();
    if !app.is_stream(route) && !WITHIN.iter().any(|within| path.starts_with(within)) {
        return None;
    }
    let origin = parts.headers.get(ORIGIN)?;
    let named = origin.to_str().is_ok_and(|text| app.hosts.lets_in(text));
    named.then(|| origin.clone())
}

/// Whether a browser asks what a page may do, before the page does it.
pub(crate) fn asks_first(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What the page may do.
pub(crate) fn allowance() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, last-event-id"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets a page read an answer.
pub(crate) fn open(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
}
