//! Reads bodies: no larger than allowed, no slower than allowed, and never too many at once.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use futures::future::poll_fn;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use wharf_vocab::limits::FLOW_JSON_DEPTH_MAX;
use wharf_vocab::{Code, Fault, json};

use crate::answer::FaultResponse;
use crate::app::App;

/// Largest secret, and largest body that is read before it is known who sends it.
pub(crate) const SECRET_BYTES_MAX: usize = 64 * 1024;

/// Largest body of a call of a hook.
const HOOK_BYTES_MAX: usize = 1024 * 1024;

/// A body that was read as JSON.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        Ok(Self(with_body(request, app, app.options.limits.body_bytes_max, json::read).await?))
    }
}

/// A body that holds a document of a flow, whose steps may stand in each other.
#[derive(Debug)]
pub(crate) struct DeepJsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for DeepJsonBody<T> {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        let read = |bytes: &[u8]| json::read_to(bytes, FLOW_JSON_DEPTH_MAX);
        Ok(Self(with_body(request, app, app.options.limits.body_bytes_max, read).await?))
    }
}

/// A body that was read as JSON, or nothing if it was empty.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for OptionalJsonBody<T> {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        Ok(Self(
            with_body(request, app, app.options.limits.body_bytes_max, read_unless_empty).await?,
        ))
    }
}

/// A small body that was read as JSON, or nothing if it was empty.
#[derive(Debug)]
pub(crate) struct SmallJsonBody<T>(pub(crate) Option<T>);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for SmallJsonBody<T> {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        Ok(Self(with_body(request, app, SECRET_BYTES_MAX, read_unless_empty).await?))
    }
}

fn read_unless_empty<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<T>, Fault> {
    match bytes.trim_ascii() {
        [] => Ok(None),
        bytes => json::read(bytes).map(Some),
    }
}

/// A secret as it was sent: any bytes, of which there are not many.
pub(crate) struct SecretBody(pub(crate) Vec<u8>);

impl FromRequest<Arc<App>> for SecretBody {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        let read = |bytes: &[u8]| Ok(bytes.to_vec());
        Ok(Self(with_body(request, app, SECRET_BYTES_MAX, read).await?))
    }
}

/// What the caller of a hook sent, as it came.
pub(crate) struct HookBody(pub(crate) Vec<u8>);

impl FromRequest<Arc<App>> for HookBody {
    type Rejection = FaultResponse;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, FaultResponse> {
        let read = |bytes: &[u8]| Ok(bytes.to_vec());
        Ok(Self(with_body(request, app, HOOK_BYTES_MAX, read).await?))
    }
}

/// Reads a body and makes something of it while its memory is still counted.
async fn with_body<T>(
    request: Request,
    app: &App,
    max: usize,
    read: impl FnOnce(&[u8]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (parts, body) = request.into_parts();
    let (bytes, _reserved) = whole(&parts.headers, body, app, max).await?;
    read(&bytes)
}

/// A request whose body has arrived whole, and the memory that is reserved for it.
pub(crate) async fn gathered(
    request: Request,
    app: &App,
) -> Result<(Request, Option<OwnedSemaphorePermit>), Fault> {
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    let (parts, body) = request.into_parts();
    let (bytes, reserved) =
        whole(&parts.headers, body, app, app.options.limits.body_bytes_max).await?;
    Ok((Request::from_parts(parts, Body::from(bytes)), Some(reserved)))
}

/// Reads all of a body into memory that is reserved for it.
async fn whole(
    headers: &HeaderMap,
    body: Body,
    app: &App,
    max: usize,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), Fault> {
    let announced = announced(headers);
    if announced.is_some_and(|bytes| bytes > max as u64) {
        return Err(too_large(max as u64));
    }
    let until = Instant::now() + app.options.limits.body_read;
    let expected = announced.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(max);
    let kib = u32::try_from(expected.div_ceil(1024)).unwrap_or(u32::MAX);
    let reserved = Arc::clone(&app.bodies).acquire_many_owned(kib);
    let Ok(Ok(reserved)) = tokio::time::timeout_at(until, reserved).await else {
        let message = "The core has too much to do; try again in a moment.";
        return Err(Fault::new(Code::CoreBusy, message));
    };
    let bytes = collect(body, max, expected, until).await?;
    Ok((bytes, reserved))
}

async fn collect(
    mut body: Body,
    max: usize,
    expected: usize,
    until: Instant,
) -> Result<Vec<u8>, Fault> {
    // A peer that announces much and sends nothing gets little.
    let mut bytes = Vec::with_capacity(expected.min(64 * 1024));
    loop {
        let frame = poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx));
        match tokio::time::timeout_at(until, frame).await {
            Err(_) => return Err(too_slow()),
            Ok(None) => return Ok(bytes),
            Ok(Some(Err(_))) => {
                let message = "The body broke off before its end; send the request again.";
                return Err(Fault::new(Code::RequestInvalid, message));
            }
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if bytes.len() + data.len() > max {
                    return Err(too_large(max as u64));
                }
                bytes.extend_from_slice(&data);
            }
        }
    }
}

/// How many bytes a request says that its body has.
pub(crate) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body has more bytes than a message may have.
fn too_large(max: u64) -> Fault {
    let message = format!(
        "The body is larger than {max} bytes. Put what is large into the world as a file and name \
         it in the inputs, such as text.world=/in/text.txt."
    );
    Fault::new(Code::RequestTooLarge, message).with("max_bytes", max)
}

fn too_slow() -> Fault {
    Fault::new(Code::RequestTimeout, "The request took too long to arrive; send it again.")
}
