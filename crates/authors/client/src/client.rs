//! Talks to a core over HTTP. It knows how to ask and what errors look like, not what is asked.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::rest_v1::ErrorBody;

use crate::call::REQUEST_TIMEOUT;
use crate::error::{Error, Result};
use crate::locator::{CoreAccess, Locator};
use crate::trust::{self, Trust};

/// The largest message of an event stream that is read; a core sends far smaller ones.
pub(crate) const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to one core. Cloning it is cheap, and clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    core: Arc<CoreAddress>,
}

#[derive(Debug)]
struct CoreAddress {
    locator: Locator,
    target: CoreAccess,
}

impl Client {
    /// Finds the core and prepares to talk to it; nothing is sent yet.
    pub fn new(locator: Locator) -> Result<Self> {
        let target = locator.find()?;
        let http = connector(&target)?;
        Ok(Self { http, core: Arc::new(CoreAddress { locator, target }) })
    }

    /// The same core, which may have come back with another port or token.
    pub fn found_again(&self) -> Result<Self> {
        let CoreAddress { locator, target } = &*self.core;
        if locator.find()? == *target {
            return Ok(self.clone());
        }
        Self::new(locator.clone())
    }

    /// The core's address, without a slash at its end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.core.target.url.as_str().trim_end_matches('/')
    }

    /// The token that requests are sent with.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.core.target.token
    }

    /// Whether the core's address is one of this machine alone.
    pub(crate) fn is_near(&self) -> bool {
        let host = self.core.target.url.host_str().unwrap_or_default();
        let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || number.is_ok_and(|number| number.is_loopback())
    }

    /// A name for the core that stays the same when its port changes.
    pub(crate) fn core_name(&self) -> Result<String> {
        self.core.locator.core_name()
    }

    /// Opens a stream of server-sent events. It lasts as long as it likes, but its head must come
    /// soon.
    pub(crate) async fn stream(
        &self,
        request: RequestBuilder,
    ) -> Result<impl Stream<Item = reqwest::Result<Bytes>> + Send + use<>> {
        let request = request.header("accept", "text/event-stream");
        let opened = tokio::time::timeout(REQUEST_TIMEOUT, self.send(request)).await;
        let response =
            opened.map_err(|_| self.unreachable("did not answer in time", Executed::Maybe))??;
        Ok(response.bytes_stream())
    }

    /// The beginning of a request with the caller's token, for what has no method of its own. It
    /// has no time limit.
    pub fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.core.target.url.clone();
        // Only addresses without a host cannot carry a path, and the locator takes none of those.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url).bearer_auth(&self.core.target.token)
    }

    /// Sends a request; an answer that is an error becomes the [`Error`].
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|error| self.lost(&error))?;
        Err(self.refused(status, &body))
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T> {
        let body = response.bytes().await.map_err(|error| self.lost(&error))?;
        // An answer without a body is that of a `Call<()>`.
        let text = if body.is_empty() { &b"null"[..] } else { &body };
        serde_json::from_slice(text).map_err(|error| {
            let message =
                format!("{} sent an answer that cannot be read: {error}", self.core.target.url);
            Error::new(Code::CoreInternal, message)
        })
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> Error {
        if let Ok(body) = serde_json::from_slice::<ErrorBody>(body) {
            return Error::answered(status.as_u16(), body);
        }
        // Something between here and the core answered, or it is no core at all.
        match status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                self.unreachable(&format!("answers {status}"), Executed::Maybe)
            }
            _ => {
                let message =
                    format!("{} answers {status} which no core does", self.core.target.url);
                Error::new(Code::CoreInternal, message)
            }
        }
    }

    /// The error that a failed connection amounts to.
    #[must_use]
    pub fn lost(&self, error: &reqwest::Error) -> Error {
        if error.is_builder() {
            Error::usage("the token or the address holds characters that it cannot have")
        } else if error.is_connect() {
            match trust::objection(error) {
                Some(why) => {
                    let message = format!("the core at {} {why}", self.base_url());
                    Fault::new(Code::CoreUnreachable, message).executed(Executed::No).into()
                }
                None => self.unreachable("does not answer", Executed::No),
            }
        } else if error.is_timeout() {
            self.unreachable("did not answer in time", Executed::Maybe)
        } else {
            self.unreachable("closed the connection", Executed::Maybe)
        }
    }

    fn unreachable(&self, what: &str, executed: Executed) -> Error {
        let url = self.base_url();
        let hint = if executed == Executed::No { "; start it with: wharf up" } else { "" };
        let message = format!("the core at {url} {what}{hint}");
        Fault::new(Code::CoreUnreachable, message).executed(executed).into()
    }
}

fn connector(target: &CoreAccess) -> Result<reqwest::Client> {
    let CoreAccess { url, trust, .. } = target;
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would take the token somewhere else.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")));
    match trust {
        _ if url.scheme() != "https" => {
            // Plain HTTP needs no certificates, and reading those of the system would cost every
            // command time.
            builder = builder.tls_backend_preconfigured(trust::config(&[])?);
        }
        Trust::Only(certificates) => {
            builder = builder.tls_backend_preconfigured(trust::config(certificates)?);
        }
        Trust::System => {
            // It is only an error if a provider is installed already, and then all is well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        Error::new(Code::CoreUnreachable, format!("cannot set up HTTP for {url}: {error}"))
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, List};
    use crate::scripted::{Reply, Scripted, ScriptedClient as _};
    use serde_json::{Value, json};

    fn get(scripted: &Scripted, path: &[&str]) -> Call<Value> {
        Call::new(&scripted.client(), Method::GET, path)
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end_or_its_limit() {
        let mut scripted = Scripted::new();
        scripted
            .start(|request| {
                let last = request.line.contains("cursor=two");
                let (items, next) =
                    if last { (json!([3]), None) } else { (json!([1, 2]), Some("two")) };
                Reply::Json(200, json!({"items": items, "next_cursor": next}))
            })
            .await;
        let client = scripted.client();
        let list = List::<Value>::new(&client, &["v1", "runs"]).query("tool", Some("a/b"));
        let first = async |most| list.first(most).await;
        assert_eq!(list.all().await, Ok(vec![json!(1), json!(2), json!(3)]));
        assert_eq!(first(2).await, Ok((vec![json!(1), json!(2)], true)));
        assert_eq!(first(1).await, Ok((vec![json!(1)], true)));
        let first = scripted.seen().remove(0).line;
        assert_eq!(first, "GET /v1/runs?tool=a%2Fb&limit=200");
    }

    #[tokio::test]
    async fn an_error_body_becomes_the_error() {
        let mut scripted = Scripted::new();
        let error = json!({"code": "budget.exceeded", "message": "no money", "retryable": false});
        scripted.start(move |_| Reply::Json(402, json!({"error": error.clone()}))).await;
        let error = get(&scripted, &["x"]).await.expect_err("refused");
        assert_eq!((error.status(), error.message()), (402, "no money"));
    }

    #[tokio::test]
    async fn what_is_no_core_is_not_taken_for_one() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Json(200, json!("hello"))).await;
        let list = List::<Value>::new(&scripted.client(), &["x"]);
        assert!(list.all().await.expect_err("unreadable").is(Code::CoreInternal));
        scripted.start(|_| Reply::Json(502, json!("proxy"))).await;
        assert!(get(&scripted, &["x"]).await.expect_err("away").is_outage());
    }

    #[tokio::test]
    async fn a_path_cannot_be_escaped_from() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Json(200, json!({}))).await;
        get(&scripted, &["v1", "runs", "../x?y=1"]).await.expect("ok");
        assert_eq!(scripted.seen()[0].line, "GET /v1/runs/..%2Fx%3Fy=1");
    }

    #[test]
    fn loopback_is_recognised_in_every_spelling() {
        for (url, expect) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:7420", true),
            ("http://localhost:7420", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).expect("url")), expect, "{url}");
        }
    }
}
