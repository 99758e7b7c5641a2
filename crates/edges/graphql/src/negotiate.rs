//! How an answer over plain HTTP is written: its kind and its status.
//!
//! Whoever asks for `application/graphql-response+json` is told by the status, too, that an
//! operation could not be understood. Others get 200 for everything in which an operation was
//! found, as clients from before that kind expect.

use async_graphql::Value;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use wharf_vocab::{Code, Fault};

/// The kinds of answers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    Json,
    GraphQl,
}

impl AnswerFormat {
    /// The kind that a request asks for.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
        let weight = |kind: &str| ranges.iter().find_map(|range| weight_of(range, kind));
        match (weight(GRAPHQL), weight(JSON)) {
            (Some(graphql), json) if graphql > 0.0 && graphql >= json.unwrap_or(0.0) => {
                Self::GraphQl
            }
            _ => Self::Json,
        }
    }

    fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => JSON,
            Self::GraphQl => GRAPHQL,
        })
    }
}

const JSON: &str = "application/json";
const GRAPHQL: &str = "application/graphql-response+json";

/// How much a range of `Accept` wants a kind, if it names it.
fn weight_of(range: &str, kind: &str) -> Option<f32> {
    let mut parts = range.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

/// An answer to an operation, or to a request in which none was found.
pub(crate) fn respond(
    kind: AnswerFormat,
    answered: Result<async_graphql::Response, Fault>,
) -> Response {
    match answered {
        Ok(answer) => {
            let misunderstood = kind == AnswerFormat::GraphQl && is_request_error(&answer);
            let status = if misunderstood { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            written(kind, status, &answer)
        }
        Err(fault) => refusal(kind, fault),
    }
}

/// Whether nothing was executed because the operation could not be understood: what goes wrong
/// later says in which field.
fn is_request_error(answer: &async_graphql::Response) -> bool {
    let nowhere = |error: &async_graphql::ServerError| error.path.is_empty();
    answer.data == Value::Null && !answer.errors.is_empty() && answer.errors.iter().all(nowhere)
}

/// An error of a request in which no operation was found, in the shape of all answers here.
pub(crate) fn refusal(kind: AnswerFormat, fault: Fault) -> Response {
    let status = StatusCode::from_u16(fault.http_status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let errors = crate::error::response(&fault).errors;
    let mut response = written(kind, status, &json!({ "errors": errors }));
    let headers = response.headers_mut();
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    if fault.is(Code::AuthRequired) || fault.is(Code::AuthInvalid) {
        // The edge in front writes down who was refused.
        response.extensions_mut().insert(fault);
    }
    response
}

fn written(kind: AnswerFormat, status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(CONTENT_TYPE, kind.name())], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t045_the_kind_of_an_answer_is_what_the_request_asks_for() {
        let of = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, value.parse().expect("a header"));
            }
            AnswerFormat::wanted(&headers)
        };
        let both = "application/graphql-response+json, application/json;q=0.9";
        for accept in [&[GRAPHQL][..], &[both], &[JSON, GRAPHQL]] {
            assert_eq!(of(accept), AnswerFormat::GraphQl, "{accept:?}");
        }
        let less = "application/graphql-response+json;q=0.5,application/json";
        let none = "application/graphql-response+json;q=0";
        for accept in [&[][..], &["*/*"], &[JSON], &[less], &[none]] {
            assert_eq!(of(accept), AnswerFormat::Json, "{accept:?}");
        }
    }
}
