//! One request: what is refused at once, what the S3 protocol decides, and what is read on.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::BoxFuture;
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use s3s::Body;
use s3s::service::S3Service;
use tokio_util::task::TaskTracker;
use tracing::instrument::WithSubscriber as _;

use super::EndpointOptions;
use super::body::SharedBody;

/// The only way of signing that is let in.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Answers requests.
#[derive(Clone)]
pub(super) struct Requests {
    service: S3Service,
    options: Arc<EndpointOptions>,
    /// What goes on beside answers.
    tasks: TaskTracker,
}

impl Requests {
    pub(super) fn new(
        service: S3Service,
        options: Arc<EndpointOptions>,
        tasks: TaskTracker,
    ) -> Self {
        Self { service, options, tasks }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let (parts, incoming) = request.into_parts();
        let method = parts.method.clone();
        let waits = parts.headers.contains_key(EXPECT);
        let body = SharedBody::new(incoming, self.options.byte_timeout);
        let answer = if is_packed(&parts) {
            unwelcome(StatusCode::NOT_IMPLEMENTED)
        } else if is_welcome(&parts) {
            let request = Request::from_parts(parts, Body::http_body_unsync(body.clone()));
            // The protocol writes whole requests to its log, and those hold addresses.
            let answer = self.service.call(request).with_subscriber(tracing::Dispatch::none());
            answer.await.unwrap_or_else(|_| unwelcome(StatusCode::INTERNAL_SERVER_ERROR))
        } else {
            unwelcome(StatusCode::FORBIDDEN)
        };
        tracing::debug!(%method, status = answer.status().as_u16(), "artifact store");
        // Who waits for a go-ahead sends nothing when it does not come.
        if !answer.status().is_success() && !waits && !body.is_end_stream() {
            self.tasks.spawn(body.drain(self.options.refused_body_bytes_max));
        }
        answer
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

/// Whether a request may be looked at more closely: it reads or writes, and is signed in the one
/// way that covers its method, host, path and all of its query.
fn is_welcome(parts: &Parts) -> bool {
    let known = [Method::GET, Method::HEAD, Method::PUT].contains(&parts.method);
    let query = parts.uri.query().unwrap_or_default();
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    let older = names.any(|name| {
        name.eq_ignore_ascii_case("signature") || name.eq_ignore_ascii_case("awsaccesskeyid")
    });
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    let other = headers.any(|value| !value.as_bytes().starts_with(ALGORITHM.as_bytes()));
    known && !older && !other
}

/// Whether the body is in chunks with signatures or sums of their own, inside of HTTP's. Addresses
/// are signed without the body, so such chunks would be kept as part of the object.
fn is_packed(parts: &Parts) -> bool {
    let says = |name: &str, what: &[u8]| {
        let mut values = parts.headers.get_all(name).iter();
        values.any(|value| {
            let value = value.as_bytes().to_ascii_lowercase();
            value.windows(what.len()).any(|part| part == what)
        })
    };
    let announced = ["x-amz-decoded-content-length", "x-amz-trailer"];
    says(CONTENT_ENCODING.as_str(), b"aws-chunked")
        || says("x-amz-content-sha256", b"streaming-")
        || announced.iter().any(|name| parts.headers.contains_key(*name))
}

fn unwelcome(status: StatusCode) -> Response<Body> {
    let code = match status {
        StatusCode::FORBIDDEN => "AccessDenied",
        StatusCode::NOT_IMPLEMENTED => "NotImplemented",
        _ => "InternalError",
    };
    let text =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code></Error>");
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}
