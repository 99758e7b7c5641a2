//! Talks to a core over HTTP. It knows how to ask and how errors look, not what is asked for.

use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use reqwest::{Method, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, limits};
use wharf_wire::rest_v1::{ErrorBody, Page};

use crate::failure::{Failure, Result};
use crate::finder::{Finder, Target};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an ordinary request may take; event streams are read without such a limit.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Query parameters; those without a value are left out.
pub(crate) type Query<'a> = [(&'a str, Option<&'a str>)];

/// A core that is talked to.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    finder: Finder,
    target: Target,
}

impl Client {
    /// Finds the core and gets ready to talk to it; nothing is sent yet.
    pub(crate) fn new(finder: Finder) -> Result<Self> {
        let target = finder.find()?;
        let http = connector(&target.url)?;
        Ok(Self { http, finder, target })
    }

    /// The same core after it may have come back with another port or token.
    pub(crate) fn found_again(&self) -> Result<Self> {
        let target = self.finder.find()?;
        if target == self.target {
            return Ok(self.clone());
        }
        let http = connector(&target.url)?;
        Ok(Self { http, finder: self.finder.clone(), target })
    }

    /// Reads one thing.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &Query<'_>,
    ) -> Result<T> {
        let request = self.request(Method::GET, path, query)?.timeout(REQUEST_TIMEOUT);
        self.read(self.send(request).await?).await
    }

    /// Sends something and reads what comes back.
    pub(crate) async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T> {
        let request = self.request(method, path, &[])?.timeout(REQUEST_TIMEOUT).json(body);
        self.read(self.send(request).await?).await
    }

    /// Sends something to which only yes or no is answered.
    pub(crate) async fn post(
        &self,
        path: &[&str],
        query: &Query<'_>,
        body: &impl Serialize,
    ) -> Result<()> {
        let request = self.request(Method::POST, path, query)?.timeout(REQUEST_TIMEOUT).json(body);
        self.send(request).await.map(drop)
    }

    /// Puts bytes somewhere; only yes or no is answered.
    pub(crate) async fn put_bytes(&self, path: &[&str], bytes: Vec<u8>) -> Result<()> {
        let request = self.request(Method::PUT, path, &[])?.timeout(REQUEST_TIMEOUT);
        let request = request.header("content-type", "application/octet-stream").body(bytes);
        self.send(request).await.map(drop)
    }

    /// Asks for something that needs no words, and reads what comes back.
    pub(crate) async fn act<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        self.exchange(self.request(Method::POST, path, &[])?.timeout(REQUEST_TIMEOUT)).await
    }

    /// Makes a request that was put together elsewhere, and reads what comes back.
    pub(crate) async fn exchange<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T> {
        self.read(self.send(request).await?).await
    }

    /// Removes something.
    pub(crate) async fn delete(&self, path: &[&str], query: &Query<'_>) -> Result<()> {
        let request = self.request(Method::DELETE, path, query)?.timeout(REQUEST_TIMEOUT);
        self.send(request).await.map(drop)
    }

    /// Opens a stream of server-sent events.
    pub(crate) async fn stream(
        &self,
        path: &[&str],
        query: &Query<'_>,
    ) -> Result<impl Stream<Item = reqwest::Result<Bytes>> + Send + use<>> {
        let request = self.request(Method::GET, path, query)?.header("accept", "text/event-stream");
        // The stream lasts as long as it likes, but its head must come soon.
        let opened = tokio::time::timeout(REQUEST_TIMEOUT, self.send(request)).await;
        let response =
            opened.map_err(|_| self.unreachable("did not answer in time", Executed::Maybe))??;
        Ok(response.bytes_stream())
    }

    /// Reads a list page by page until it ends or `most` items are there. The second value says
    /// whether there is more.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        query: &Query<'_>,
        most: Option<usize>,
    ) -> Result<(Vec<Value>, bool)> {
        let most = most.unwrap_or(usize::MAX);
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let want = (most - items.len()).min(limits::PAGE_ITEMS_MAX).to_string();
            let mut query = query.to_vec();
            query.push(("limit", Some(&want)));
            query.push(("cursor", cursor.as_deref()));
            let page: Page<Value> = self.get(path, &query).await?;
            let went_on = !page.items.is_empty();
            items.extend(page.items);
            match page.next_cursor {
                Some(next) if items.len() < most && went_on => cursor = Some(next),
                next => {
                    let more = next.is_some() || items.len() > most;
                    items.truncate(most);
                    return Ok((items, more));
                }
            }
        }
    }

    /// The beginning of a request, without a limit to how long it may take.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &Query<'_>,
    ) -> Result<reqwest::RequestBuilder> {
        let mut url = self.target.url.clone();
        url.path_segments_mut()
            .map_err(|()| Failure::usage("the core's address cannot carry a path"))?
            .pop_if_empty()
            .extend(path);
        let query: Vec<_> =
            query.iter().filter_map(|(key, value)| value.map(|value| (key, value))).collect();
        let request = self.http.request(method, url).bearer_auth(&self.target.token);
        Ok(if query.is_empty() { request } else { request.query(&query) })
    }

    /// Makes a request; an answer that is an error becomes the failure.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|error| self.lost(&error))?;
        Err(self.refused(status, &body))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T> {
        let body = response.bytes().await.map_err(|error| self.lost(&error))?;
        serde_json::from_slice(&body).map_err(|error| {
            let message =
                format!("{} sent an answer that cannot be read: {error}", self.target.url);
            Failure::new(Code::CoreInternal, message)
        })
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> Failure {
        if let Ok(body) = serde_json::from_slice::<ErrorBody>(body) {
            return Failure::answered(status.as_u16(), body);
        }
        // Something between here and the core answered, or it is no core at all.
        match status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                self.unreachable(&format!("answers {status}"), Executed::Maybe)
            }
            _ => {
                let message = format!("{} answers {status} like no core does", self.target.url);
                Failure::new(Code::CoreInternal, message)
            }
        }
    }

    /// What it means that a connection was lost.
    pub(crate) fn lost(&self, error: &reqwest::Error) -> Failure {
        if error.is_builder() {
            Failure::usage("the token or the address holds characters that it cannot have")
        } else if error.is_connect() {
            self.unreachable("does not answer", Executed::No)
        } else if error.is_timeout() {
            self.unreachable("did not answer in time", Executed::Maybe)
        } else {
            self.unreachable("broke off the connection", Executed::Maybe)
        }
    }

    fn unreachable(&self, what: &str, executed: Executed) -> Failure {
        let url = self.target.url.as_str().trim_end_matches('/');
        let hint = if executed == Executed::No { "; start it with: wharf up" } else { "" };
        let message = format!("the core at {url} {what}{hint}");
        Fault::new(Code::CoreUnreachable, message).executed(executed).into()
    }
}

fn connector(url: &Url) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would take the token somewhere else.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")));
    if url.scheme() == "https" {
        // It is only an error if a provider is installed already, and then all is well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        builder = builder.tls_backend_preconfigured(no_tls()?);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        Failure::new(Code::CoreUnreachable, format!("cannot set up HTTP for {url}: {error}"))
    })
}

/// A configuration that trusts nobody: plain HTTP needs no certificates, and reading those of the
/// system would cost every command time.
fn no_tls() -> Result<rustls::ClientConfig> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::new(Code::CoreInternal, format!("cannot set up TLS: {error}")))?;
    Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
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
    use crate::scripted::{Reply, Scripted};
    use serde_json::json;

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
        let list = async |most| client.list(&["v1", "runs"], &[("tool", Some("a/b"))], most).await;
        assert_eq!(list(None).await, Ok((vec![json!(1), json!(2), json!(3)], false)));
        assert_eq!(list(Some(2)).await, Ok((vec![json!(1), json!(2)], true)));
        assert_eq!(list(Some(1)).await, Ok((vec![json!(1)], true)));
        let first = scripted.seen().remove(0).line;
        assert_eq!(first, "GET /v1/runs?tool=a%2Fb&limit=200");
    }

    #[tokio::test]
    async fn an_error_body_becomes_the_failure() {
        let mut scripted = Scripted::new();
        let error = json!({"code": "budget.exceeded", "message": "no money", "retryable": false});
        scripted.start(move |_| Reply::Json(402, json!({"error": error.clone()}))).await;
        let failure = scripted.client().get::<Value>(&["x"], &[]).await.expect_err("refused");
        assert_eq!((failure.exit().number(), failure.message()), (3, "no money"));
    }

    #[tokio::test]
    async fn what_is_no_core_is_not_taken_for_one() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Json(200, json!("hello"))).await;
        let failure = scripted.client().list(&["x"], &[], None).await.expect_err("unreadable");
        assert!(failure.is(Code::CoreInternal));
        scripted.start(|_| Reply::Json(502, json!("proxy"))).await;
        let failure = scripted.client().get::<Value>(&["x"], &[]).await.expect_err("away");
        assert!(failure.is_outage());
    }

    #[tokio::test]
    async fn a_path_cannot_be_escaped_from() {
        let mut scripted = Scripted::new();
        scripted.start(|_| Reply::Json(200, json!({}))).await;
        let _: Value = scripted.client().get(&["v1", "runs", "../x?y=1"], &[]).await.expect("ok");
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
