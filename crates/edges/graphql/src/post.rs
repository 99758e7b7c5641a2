//! Operations over plain HTTP: one per request.

use async_graphql::{Executor, Request};
use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault};

use crate::access::Session;
use crate::document;
use crate::error::invalid;
use crate::exec::Core;

/// Answers one operation. An operation that was understood is answered with 200, whatever came of
/// it; its errors stand in the answer.
pub(crate) async fn post(
    State(core): State<Core>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let session = Session { handle: core.handle.clone(), caller };
    match answer(&core, session, &headers, body).await {
        Ok(answer) => Json(answer).into_response(),
        Err(fault) => refusal(&fault),
    }
}

async fn answer(
    core: &Core,
    session: Session,
    headers: &HeaderMap,
    body: Body,
) -> Result<async_graphql::Response, Fault> {
    // Only what a form on another site cannot send is taken.
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(invalid("content-type", "Send the operation as application/json."));
    }
    let _place = core.place().await?;
    let reading = axum::body::to_bytes(body, core.limits.message_bytes_max);
    let bytes = match tokio::time::timeout(core.limits.body_read, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let max = core.limits.message_bytes_max;
            let message = format!("The body is larger than {max} bytes, or broke off.");
            return Err(Fault::new(Code::RequestTooLarge, message).with("max_bytes", max));
        }
        Err(_) => {
            let message = "The request took too long to arrive; send it again.";
            return Err(Fault::new(Code::RequestTimeout, message));
        }
    };
    let request = read(&bytes)?.data(session);
    drop(bytes);
    Ok(core.execute(request).await)
}

/// Reads an operation; several at once are not taken.
fn read(bytes: &[u8]) -> Result<Request, Fault> {
    document::check_json(bytes)?;
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(invalid("body", "Send one operation per request, as a JSON object."));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = format!(
            "The body is not an operation as JSON, with `query` and perhaps `operationName` and \
             `variables`: see line {line}, column {column}."
        );
        invalid("body", message).with("line", line).with("column", column)
    })
}

/// An error of a request in which no operation was found, in the shape of all answers here.
pub(crate) fn refusal(fault: &Fault) -> Response {
    let status = StatusCode::from_u16(fault.http_status());
    let answer = crate::error::response(fault);
    let body = Json(json!({ "errors": answer.errors }));
    (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body).into_response()
}
