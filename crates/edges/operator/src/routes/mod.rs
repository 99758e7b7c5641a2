//! HTTP: seats, tasks, workers.

mod call;
mod seats;
mod tasks;
mod worker;

use std::sync::Arc;

use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, json};
use wharf_web::answer::{Answer, FaultResponse};
use wharf_web::token::bearer;

pub(crate) use seats::{seat_seen_by, seats_seen_by};

use crate::shared::SeatHub;

/// Seats: opened with their own tokens.
pub(crate) fn seats(shared: Arc<SeatHub>) -> Router {
    Router::new()
        .route("/v1/operators", get(seats::list).post(seats::create))
        .route("/v1/operators/{sid}", get(seats::show).delete(seats::close))
        .route("/v1/operators/{sid}/ws", get(seats::open))
        .with_state(shared)
}

/// Tasks: for bearers of tokens.
pub(crate) fn tasks(shared: Arc<SeatHub>) -> Router {
    Router::new().route("/v1/tasks", post(tasks::create)).with_state(shared)
}

/// Workers: with what a spawn gave them.
pub(crate) fn workers(shared: Arc<SeatHub>) -> Router {
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
async fn no_route() -> FaultResponse {
    Fault::new(Code::RequestRouteUnknown, "There is no such route for workers.").into()
}

/// The caller whom the listener let in, if it was one.
fn caller(offered: Option<Extension<Caller>>) -> Result<Caller, Fault> {
    let missing = || Fault::new(Code::AuthRequired, "This needs a token.");
    offered.map(|Extension(caller)| caller).ok_or_else(missing)
}

/// What can be read and makes no sense.
fn unprocessable(fault: Fault) -> Response {
    let mut response = FaultResponse::from(fault).into_response();
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    response
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
