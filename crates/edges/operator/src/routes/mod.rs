//! HTTP: seats, tasks, workers.

mod call;
mod seats;
mod tasks;
mod worker;

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Json, Router};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, json};
use wharf_wire::rest_v1::{ErrorBody, ErrorInfo};

use crate::edge::Shared;

/// Seats: opened with their own tokens.
pub(crate) fn seats(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/operators", get(seats::list).post(seats::create))
        .route("/v1/operators/{sid}", get(seats::show).delete(seats::close))
        .route("/v1/operators/{sid}/ws", get(seats::open))
        .with_state(shared)
}

/// Tasks: for bearers of tokens.
pub(crate) fn tasks(shared: Arc<Shared>) -> Router {
    Router::new().route("/v1/tasks", post(tasks::create)).with_state(shared)
}

/// Workers: with what a spawn gave them.
pub(crate) fn workers(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/worker/prompt", get(worker::prompt))
        .route("/v1/worker/submit", post(worker::submit))
        .route("/v1/worker/result", post(worker::result))
        .route("/v1/worker/progress", post(worker::progress))
        .route("/v1/worker/artifact", post(worker::artifact).put(worker::artifact))
        .route("/v1/worker/ask", post(worker::ask))
        .route("/v1/worker/invoke", post(worker::invoke))
        .route("/v1/worker/stats", post(worker::stats))
        .route("/v1/worker/degradation", post(worker::degradation))
        .layer(from_fn_with_state(Arc::clone(&shared), call::recalled))
        .route("/v1/worker/{*rest}", any(no_route))
        .with_state(shared)
}

/// There is no such route for workers.
async fn no_route() -> Refused {
    Fault::new(Code::RequestRouteUnknown, "There is no such route for workers.").into()
}

/// What a route gives back.
type Answer = Result<Response, Refused>;

/// A fault on its way to the peer.
#[derive(Debug)]
struct Refused(Fault);

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let fault = self.0;
        let status = StatusCode::from_u16(fault.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = ErrorInfo {
            code: fault.code.to_string(),
            message: fault.message,
            retryable: fault.retryable,
            details: Some(fault.details).filter(|details| !details.is_empty()),
        };
        let mut response = (status, Json(ErrorBody { error })).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The caller whom the listener let in, if it was one.
fn caller(offered: Option<Extension<Caller>>) -> Result<Caller, Fault> {
    let missing = || Fault::new(Code::AuthRequired, "This needs a token.");
    offered.map(|Extension(caller)| caller).ok_or_else(missing)
}

/// The token of a request's header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Reads a JSON body; an empty one stands for an empty object.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    json::read(or_empty(body))
}

/// Reads a body that may be any JSON.
fn read_any(body: &[u8]) -> Result<Value, Fault> {
    json::value(or_empty(body))
}

fn or_empty(body: &[u8]) -> &[u8] {
    if body.is_empty() { b"{}" } else { body }
}
