//! The events of a run, live and from any point.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use wharf_vocab::{Fault, Seq};
use wharf_wire::rest_v1::ErrorBody;

use super::segments::Segments;
use crate::answer::{Answer, invalid};
use crate::app::App;
use crate::from_wire;
use crate::params::Params;
use crate::sse::{self, Events};

/// Streams the events of a run. Each has its sequence number as `id`, and the data is one line of
/// JSON. The stream ends after `finished`; whoever comes back with `Last-Event-ID` misses nothing.
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/events", tag = "runs",
    params(
        ("run_id" = String, Path, description = "The run's id."),
        ("world" = Option<String>, Query, description = "The run's world; `default` when absent."),
        ("after" = Option<u64>, Query, description = "Only events behind this number."),
        ("Last-Event-ID" = Option<u64>, Header,
            description = "The same as `after`, as browsers send it; it wins over `after`."),
    ),
    responses(
        (status = 200, description = "The events; see the schemas whose names end in `Event`.",
            body = String, content_type = "text/event-stream"),
        (status = 404, description = "There is no such run.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let key = from_wire::run_key(segments.get("run_id"), &params)?;
    let after = Seq(match last_event_id(&headers)? {
        Some(last) => last,
        None => params.number("after")?.unwrap_or(0),
    });
    let run = app.handle.run(&key).await?;
    let watch = app.handle.watch(&key, sse::begin_at(after)).await?;
    let events = Events::new(watch, &run, after, &app);
    let headers = [
        (CONTENT_TYPE.as_str(), "text/event-stream"),
        (CACHE_CONTROL.as_str(), "no-store"),
        // Proxies that collect answers would hold events back.
        ("x-accel-buffering", "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty());
    let Some(number) = number else { return Ok(None) };
    let wrong = || invalid("Last-Event-ID", "The header Last-Event-ID must be a whole number.");
    number.parse().map(Some).map_err(|_| wrong())
}
