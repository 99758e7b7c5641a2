//! A request of a worker, with the check that comes before everything else.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequest, Query, Request, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use serde::Deserialize;
use wharf_domain::grant::{WorkerGrant, WorkerScope};
use wharf_engine::{ByteStream, ObjectError, ObjectErrorKind};
use wharf_vocab::{Code, Fault};

use super::{FaultResponse, bearer};
use crate::credential::TaskMatch;
use crate::shared::SeatHub;

/// How long a body may take to arrive.
const BODY_READ: Duration = Duration::from_secs(60);
/// How long nothing of a file may arrive.
const FILE_SILENCE: Duration = Duration::from_secs(30);

/// Sees to it that tasks of before the start are known if a worker carries what is not.
pub(super) async fn recalled(
    State(shared): State<Arc<SeatHub>>,
    request: Request,
    next: Next,
) -> Response {
    let handle = &shared.options.handle;
    let known = shared.tasks.knows(handle, bearer(request.headers()));
    if !known && let Err(fault) = shared.tasks.recall(handle).await {
        return FaultResponse::from(fault).into_response();
    }
    next.run(request).await
}

/// What stands in the query of worker routes.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct WorkerQuery {
    task_id: Option<String>,
    pub(super) ok: Option<bool>,
    pub(super) name: Option<String>,
}

/// A request of a worker. Whatever may be wrong with it is told after its credential was looked
/// at.
pub(super) struct WorkerCall {
    pub(super) headers: HeaderMap,
    source: IpAddr,
    asked: Result<WorkerQuery, Fault>,
    pub(super) body: Body,
}

impl<S: Send + Sync> FromRequest<S> for WorkerCall {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let source = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let asked = Query::try_from_uri(&parts.uri).map(|Query(asked)| asked).map_err(|_| {
            let message = "The query cannot be read; `ok` must be true or false.";
            Fault::new(Code::RequestInvalid, message)
        });
        Ok(Self { headers: parts.headers, source, asked, body })
    }
}

impl WorkerCall {
    /// Who works on what, if the credential is good.
    pub(super) fn check(
        &self,
        shared: &SeatHub,
        scope: &WorkerScope,
    ) -> Result<(TaskMatch, WorkerGrant), Fault> {
        let task_id = self.asked.as_ref().ok().and_then(|asked| asked.task_id.as_deref());
        let checked = self.check_for(shared, scope, task_id)?;
        self.asked.as_ref().map_err(Clone::clone)?;
        Ok(checked)
    }

    fn check_for(
        &self,
        shared: &SeatHub,
        scope: &WorkerScope,
        task_id: Option<&str>,
    ) -> Result<(TaskMatch, WorkerGrant), Fault> {
        let handle = &shared.options.handle;
        let checked = shared.tasks.check(handle, bearer(&self.headers), scope, task_id);
        let wrong = checked.as_ref().is_err_and(|fault| fault.is(Code::AuthInvalid));
        // Only wrong credentials are turned away, so whoever guesses keeps nobody else out.
        if wrong && !shared.tasks.may_fail(self.source, handle.now()) {
            let message = "Too many credentials from this address were wrong; wait a minute.";
            return Err(Fault::new(Code::ToolRateLimited, message));
        }
        checked
    }

    pub(super) fn asked(&self) -> WorkerQuery {
        self.asked.clone().unwrap_or_default()
    }

    /// How long the body says that it is.
    pub(super) fn length(&self) -> Option<u64> {
        self.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The whole body, if it is not too large.
    pub(super) async fn bytes(self, bytes_max: usize) -> Result<Bytes, Fault> {
        let length = self.length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if length.is_some_and(|length| length > bytes_max) {
            return Err(too_large(bytes_max));
        }
        let mut stream = self.body.into_data_stream();
        let gather = async {
            let mut bytes = Vec::with_capacity(length.unwrap_or(0));
            while let Some(piece) = stream.next().await {
                let piece = piece.map_err(|_| {
                    Fault::new(Code::RequestInvalid, "The body broke off before its end.")
                })?;
                if bytes.len() + piece.len() > bytes_max {
                    return Err(too_large(bytes_max));
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(bytes.into())
        };
        let late = |_| Fault::new(Code::RequestTimeout, "The body took too long to arrive.");
        tokio::time::timeout(BODY_READ, gather).await.map_err(late)?
    }
}

/// The bytes of a file as they arrive; nothing is read before it is wanted.
pub(super) fn arriving(body: Body) -> ByteStream {
    let pieces = futures::stream::unfold(Some(body.into_data_stream()), |body| async move {
        let mut body = body?;
        let cut = |text: &str| ObjectError::new(ObjectErrorKind::Interrupted, text);
        match tokio::time::timeout(FILE_SILENCE, body.next()).await {
            Ok(None) => None,
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some(body))),
            Ok(Some(Err(_))) => Some((Err(cut("the worker broke off")), None)),
            Err(_) => Some((Err(cut("the worker sent nothing for too long")), None)),
        }
    });
    pieces.boxed()
}

fn too_large(bytes_max: usize) -> Fault {
    Fault::new(Code::RequestTooLarge, format!("The body may have {bytes_max} bytes."))
}
