//! The two places that are open: health, and runs.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_VERSION, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_protocol::run::server::Credential;
use wharf_wire::run_v1::{HEALTH_PATH, RUN_PATH};

use super::access::{Tokens, is_local_program};
use super::handshake::accept;
use super::hub::Hub;
use super::{connection, handshake};

type ServerResponse = Response<Full<Bytes>>;

/// Answers requests.
pub(super) struct HttpService {
    pub(super) hub: Arc<Hub>,
    pub(super) tokens: Option<Tokens>,
    pub(super) digest: String,
    pub(super) sockets: TaskTracker,
    /// Set when nobody is served any more.
    pub(super) over: CancellationToken,
}

impl HttpService {
    pub(super) fn answer(&self, request: Request<Incoming>) -> Result<ServerResponse, Infallible> {
        Ok(match request.uri().path() {
            HEALTH_PATH => self.health(request.method()),
            RUN_PATH => self.run(request).unwrap_or_else(refused),
            _ => refused((StatusCode::NOT_FOUND, "There is nothing here.")),
        })
    }

    fn health(&self, method: &Method) -> ServerResponse {
        if method != Method::GET {
            return refused((StatusCode::METHOD_NOT_ALLOWED, "Only GET is answered here."));
        }
        let is_ok = !self.hub.is_draining();
        let status = if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        written(status, &json!({"ok": is_ok, "digest": self.digest}))
    }

    /// Accepts a WebSocket, or refuses it before anything was accepted.
    fn run(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<ServerResponse, handshake::UpgradeRefusal> {
        let credential = self.credential(&request)?;
        let headers = accept(request.method(), request.version(), request.headers())?;
        let place = Arc::clone(&self.hub.connections)
            .try_acquire_owned()
            .map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "Too many connections are open."))?;
        let upgraded = hyper::upgrade::on(&mut request);
        let (hub, over) = (Arc::clone(&self.hub), self.over.clone());
        self.sockets.spawn(async move {
            let _place = place;
            let serving = async {
                if let Ok(upgraded) = upgraded.await {
                    connection::serve(hub, credential, TokioIo::new(upgraded)).await;
                }
            };
            tokio::select! {
                () = over.cancelled() => {}
                () = serving => {}
            }
        });
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        answer.headers_mut().extend(headers);
        Ok(answer)
    }

    fn credential(
        &self,
        request: &Request<Incoming>,
    ) -> Result<Credential, handshake::UpgradeRefusal> {
        match &self.tokens {
            Some(tokens) => tokens
                .check(request.headers())
                .ok_or((StatusCode::UNAUTHORIZED, "A token is needed.")),
            None if is_local_program(request.headers()) => Ok(Credential::default()),
            None => Err((StatusCode::FORBIDDEN, "Only programs on this machine are served.")),
        }
    }
}

fn refused((status, message): handshake::UpgradeRefusal) -> ServerResponse {
    let mut answer = written(status, &json!({"error": {"message": message}}));
    let extra = match status {
        StatusCode::UNAUTHORIZED => (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
        StatusCode::METHOD_NOT_ALLOWED => (ALLOW, HeaderValue::from_static("GET")),
        StatusCode::UPGRADE_REQUIRED => (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        _ => return answer,
    };
    answer.headers_mut().insert(extra.0, extra.1);
    answer
}

fn written(status: StatusCode, value: &serde_json::Value) -> ServerResponse {
    let mut answer = Response::new(Full::from(value.to_string()));
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
