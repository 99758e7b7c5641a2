//! Liveness, readiness, metrics and the API document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use wharf_vocab::{Code, Fault};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::metrics;

/// Reports that the process is alive.
#[utoipa::path(
    get, path = "/healthz", tag = "system", security(()),
    responses((status = 200, description = "The process answers."))
)]
pub(super) async fn healthz() -> Response {
    answer::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// Reports that the process is alive, at the path the operator protocol uses.
#[utoipa::path(
    get, path = "/v1/healthz", tag = "system", security(()),
    operation_id = "is_alive",
    responses((status = 200, description = "The process answers.", body = String,
        content_type = "text/plain"))
)]
pub(super) async fn is_alive() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok").into_response()
}

/// Reports whether the core accepts new runs.
#[utoipa::path(
    get, path = "/readyz", tag = "system", security(()),
    responses(
        (status = 200, description = "The core accepts new runs."),
        (status = 503, description = "The core is stopping.", body = wharf_wire::rest_v1::ErrorBody),
    )
)]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Answer {
    if app.handle.is_stopping() || app.stops.draining.is_cancelled() {
        let message = "The core is stopping; try again when it is back.";
        return Err(Fault::new(Code::CoreStopping, message).into());
    }
    Ok(answer::json(StatusCode::OK, &json!({"status": "ready"})))
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "system",
    responses((status = 200, description = "Metrics.", body = String, content_type = "text/plain"))
)]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let text = metrics::render(&app.handle);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "system",
    responses((status = 200, description = "The API as an OpenAPI 3.1 document."))
)]
pub(super) async fn openapi(State(app): State<Arc<App>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], app.document.clone()).into_response()
}
