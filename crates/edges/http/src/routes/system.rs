//! Liveness, readiness, metrics, and the API document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use wharf_vocab::{Code, Fault, Verb};
use wharf_web::answer::internal;

use super::table::{get, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::{measures, metrics};

routes! {
    "system";
    /// Reports that the process is alive.
    healthz => get("/healthz", Need::Nothing, healthz)
        .says(200, "The process answers.")
        .common_errors();
    /// Reports that the process is alive, at the path the operator protocol uses.
    is_alive => get("/v1/healthz", Need::Nothing, is_alive)
        .sends(200, "text/plain", "The process answers.")
        .common_errors();
    /// Reports whether the core accepts new runs.
    readyz => get("/readyz", Need::Nothing, readyz)
        .says(200, "The core accepts new runs.")
        .fails(503, "The core is stopping.")
        .common_errors();
    /// Metrics in the text format of Prometheus.
    metrics => get("/metrics", Need::Everywhere(Verb::Metrics), metrics)
        .sends(200, "text/plain", "Metrics.")
        .common_errors();
    /// This document.
    openapi => get("/openapi.json", Need::READ, openapi)
        .says(200, "The API as an OpenAPI 3.1 document.")
        .common_errors();
}

async fn healthz() -> Response {
    answer::json(StatusCode::OK, &json!({"status": "ok"}))
}

async fn is_alive() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok").into_response()
}

async fn readyz(State(app): State<Arc<App>>) -> Answer {
    if app.handle.is_stopping() || app.stops.draining.is_cancelled() {
        let message = "The core is stopping; try again when it is back.";
        return Err(Fault::new(Code::CoreStopping, message).into());
    }
    answer::ok(&json!({"status": "ready"}))
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    measures::take(&app).await;
    let text = metrics::render(&app.handle);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn openapi(State(app): State<Arc<App>>) -> Answer {
    let document = tokio::task::spawn_blocking(move || app.document()).await;
    let document = document.map_err(|_| internal())?;
    Ok(([(CONTENT_TYPE, "application/json")], document).into_response())
}
