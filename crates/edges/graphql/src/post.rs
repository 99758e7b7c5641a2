//! Operations over plain HTTP: one per request, in a body or, if it only reads, in an address.

use std::collections::BTreeMap;

use async_graphql::parser::types::OperationType;
use async_graphql::{Executor, Request, Variables};
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use wharf_vocab::{Code, Fault};
use wharf_web::params::SentTrace;

use crate::access::{CallerExtensions, CallerSession, caller};
use crate::document;
use crate::exec::RequestContext;
use crate::negotiate::{AnswerFormat, respond};

/// Answers one operation. An operation that was understood is answered with 200, whatever came of
/// it; its errors stand in the answer.
pub(crate) async fn post(
    State(core): State<RequestContext>,
    admitted: CallerExtensions,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answered = async {
        let trace = SentTrace::of(&headers);
        let session = CallerSession::new(core.handle.clone(), caller(admitted)?);
        let session = CallerSession { trace, ..session };
        answer(&core, session, &headers, body).await
    };
    respond(AnswerFormat::wanted(&headers), answered.await)
}

/// Answers one query that stands in the address. Whatever changes something is sent by POST, so
/// that nothing happens because an address was opened.
pub(crate) async fn get(
    core: &RequestContext,
    admitted: CallerExtensions,
    uri: &Uri,
    headers: &HeaderMap,
) -> Response {
    let answered = async {
        let session = CallerSession::new(core.handle.clone(), caller(admitted)?);
        let mut request = read_address(uri)?;
        if let Ok(OperationType::Mutation) = document::check(&mut request) {
            let message = "Mutations are sent by POST.";
            return Err(Fault::new(Code::RequestMethodUnknown, message));
        }
        let _place = core.place().await?;
        Ok(core.execute(request.data(session)).await)
    };
    respond(AnswerFormat::wanted(headers), answered.await)
}

/// Reads an operation from an address: `query`, and perhaps `operationName` and `variables`.
fn read_address(uri: &Uri) -> Result<Request, Fault> {
    let asked = Query::<BTreeMap<String, String>>::try_from_uri(uri);
    let Query(mut asked) =
        asked.map_err(|_| Fault::invalid("query", "The address cannot be read."))?;
    let Some(query) = asked.remove("query").filter(|query| !query.is_empty()) else {
        let message = "Send an operation by POST, or a query as ?query= in the address; \
                       a WebSocket opens here for subscriptions.";
        return Err(Fault::invalid("query", message));
    };
    let mut request = Request::new(query);
    if let Some(name) = asked.remove("operationName").filter(|name| !name.is_empty()) {
        request = request.operation_name(name);
    }
    if let Some(variables) = asked.remove("variables").filter(|text| !text.is_empty()) {
        document::check_json(variables.as_bytes())?;
        let wrong =
            |_| Fault::invalid("variables", "The parameter `variables` must be a JSON object.");
        request = request.variables(serde_json::from_str::<Variables>(&variables).map_err(wrong)?);
    }
    Ok(request)
}

async fn answer(
    core: &RequestContext,
    session: CallerSession,
    headers: &HeaderMap,
    body: Body,
) -> Result<async_graphql::Response, Fault> {
    // Only what a form on another site cannot send is taken.
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Fault::invalid("content-type", "Send the operation as application/json."));
    }
    let _place = core.place().await?;
    let reading = axum::body::to_bytes(body, core.limits.message_bytes_max);
    let bytes = match tokio::time::timeout(core.limits.body_read, reading).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let max = core.limits.message_bytes_max;
            let message = format!(
                "The body is larger than {max} bytes, or broke off. Put what is large into the \
                 world as a file and name it in the inputs, such as text.world=/in/text.txt."
            );
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
        return Err(Fault::invalid("body", "Send one operation per request, as a JSON object."));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = format!(
            "The body is not an operation as JSON, with `query` and perhaps `operationName` and \
             `variables`: see line {line}, column {column}."
        );
        Fault::invalid("body", message).with("line", line).with("column", column)
    })
}
