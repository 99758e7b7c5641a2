//! Answers: JSON, and errors in the one shape all of them have.

use axum::Json;
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::ErrorBody;

/// What a route gives back.
pub type Answer = Result<Response, FaultResponse>;

/// A fault on its way to the peer.
#[derive(Debug)]
pub struct FaultResponse {
    fault: Fault,
    /// Whether this edge refused for want of rights or of a token; what the engine refuses it writes down.
    denied: bool,
    /// The status, when not the code's own.
    status: Option<StatusCode>,
}

impl FaultResponse {
    /// A refusal under another status than its code's own.
    #[must_use]
    pub fn under(status: StatusCode, fault: Fault) -> Self {
        Self { fault, denied: false, status: Some(status) }
    }

    /// A refusal for want of rights or of a token, which is to be written down.
    #[must_use]
    pub fn denied(fault: Fault) -> Self {
        let codes = [
            Code::PermissionDenied,
            Code::AuthRequired,
            Code::AuthInvalid,
            Code::RequestOriginForbidden,
        ];
        Self { denied: codes.into_iter().any(|code| fault.is(code)), fault, status: None }
    }
}

impl From<Fault> for FaultResponse {
    fn from(fault: Fault) -> Self {
        Self { fault, denied: false, status: None }
    }
}

impl IntoResponse for FaultResponse {
    fn into_response(self) -> Response {
        let mut response = match self.status {
            Some(status) => refusal_with(status, &self.fault),
            None => refusal(&self.fault),
        };
        if self.denied {
            // Whoever lets requests through writes it down.
            response.extensions_mut().insert(self.fault);
        }
        response
    }
}

/// A JSON answer.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    (status, Json(value)).into_response()
}

/// A JSON answer to what went well.
pub fn ok(value: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, value))
}

/// An answer to what went well and has nothing to show.
pub fn done() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// An error as peers see it.
pub fn refusal(fault: &Fault) -> Response {
    let status = StatusCode::from_u16(fault.http_status());
    refusal_with(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), fault)
}

/// An error under another status than its code's own.
pub fn refusal_with(status: StatusCode, fault: &Fault) -> Response {
    let body = ErrorBody { error: fault.into() };
    let mut response = json(status, &body);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Sets what holds for all answers.
pub fn seal(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Something inside went wrong; nobody outside learns what.
pub fn internal() -> Fault {
    Fault::new(Code::CoreInternal, "Something inside the core went wrong; its log says more.")
}

/// A field or parameter cannot be used.
pub fn invalid(field: &str, message: impl Into<String>) -> Fault {
    Fault::new(Code::RequestInvalid, message).with("field", field)
}

/// What a peer named itself, cut so that an answer stays small.
pub fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
