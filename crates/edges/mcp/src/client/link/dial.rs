//! Connections to servers elsewhere, and which secret goes with them.
//!
//! Names are resolved here, every address is judged, and the connection is made to an address that
//! was judged: nothing can change in between.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response};
use url::Url;
use wharf_vocab::{Code, Executed, Fault};

use super::address::{UpstreamAddress, UpstreamReach, is_localhost};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a silent connection is asked for a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long a connection nobody uses is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How often one request may be sent on within its origin.
const REDIRECTS_MAX: usize = 3;

/// Finds the addresses of a name.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Resolves names for the HTTP client and judges every address.
struct JudgedNames {
    lookup: Lookup,
    reach: UpstreamReach,
}

/// A name leads to where nothing may be reached.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that may not be reached")]
struct NameAstray;

impl reqwest::dns::Resolve for JudgedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, reach) = (Arc::clone(&self.lookup), self.reach);
        Box::pin(async move {
            let here = is_localhost(name.as_str());
            let found = lookup(name.as_str().to_owned()).await?;
            // All of them are good or the name is not: which one is taken is not ours to say.
            if !found.iter().all(|address| reach.allows(*address, here)) {
                return Err(NameAstray.into());
            }
            if found.is_empty() {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Secrets as headers of requests to one origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretHeaders(Vec<(HeaderName, HeaderValue)>);

impl SecretHeaders {
    /// Adds a header; `false` if the secret holds what a header cannot. A line's end behind a
    /// secret does not belong to it.
    pub(crate) fn add(&mut self, name: HeaderName, prefix: &str, secret: &[u8]) -> bool {
        let value = [prefix.as_bytes(), secret.trim_ascii()].concat();
        let Ok(mut value) = HeaderValue::from_bytes(&value) else { return false };
        value.set_sensitive(true);
        self.0.retain(|(header, _)| *header != name);
        self.0.push((name, value));
        true
    }
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialFailure {
    /// For people, as the end of a sentence about the server; it holds no address.
    pub(crate) why: &'static str,
    /// Whether the server may have got the request.
    pub(crate) executed: Executed,
}

impl DialFailure {
    fn unsent(why: &'static str) -> Self {
        Self { why, executed: Executed::No }
    }
}

/// A request to a server or to somebody it named.
#[derive(Debug, Clone)]
pub(crate) struct DialRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

impl DialRequest {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }
}

/// One set of pooled connections for one server.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamDial {
    address: UpstreamAddress,
    client: Client,
}

impl UpstreamDial {
    /// Makes connections as the operating system knows names.
    pub(crate) fn new(address: UpstreamAddress) -> Result<Self, Fault> {
        Self::with_lookup(address, system())
    }

    fn with_lookup(address: UpstreamAddress, lookup: Lookup) -> Result<Self, Fault> {
        // Whoever comes second finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tcp_nodelay(true)
            .tcp_keepalive(KEEP_ALIVE)
            .pool_idle_timeout(IDLE)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(JudgedNames { lookup, reach: address.reach() }))
            .build()
            .map_err(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "no HTTP client");
                let why = "No HTTP client can be made; there may be no certificates here.";
                Fault::new(Code::CoreInternal, why)
            })?;
        Ok(Self { address, client })
    }

    /// The server's address.
    pub(crate) fn address(&self) -> &UpstreamAddress {
        &self.address
    }

    /// Sends a request and waits for the head of its answer. Secrets go with it if it goes to the
    /// server's own origin, and nowhere else. Only a redirect within the origin that keeps method
    /// and body is followed.
    pub(crate) async fn send(
        &self,
        mut request: DialRequest,
        secrets: &SecretHeaders,
    ) -> Result<Response, DialFailure> {
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send_once(&request, secrets).await?;
            let Some(next) = redirected(&answer) else { return Ok(answer) };
            let next = request.url.join(&next).ok();
            let within = next.filter(|next| next.origin() == request.url.origin());
            let Some(next) = within else {
                return Err(DialFailure::unsent("it sends requests on to somebody else"));
            };
            request.url = next;
        }
        Err(DialFailure::unsent("it sends requests on without end"))
    }

    async fn send_once(
        &self,
        request: &DialRequest,
        secrets: &SecretHeaders,
    ) -> Result<Response, DialFailure> {
        if !self.address.lets_reach(&request.url) {
            return Err(ASTRAY);
        }
        let mut headers = request.headers.clone();
        if self.address.is_origin_of(&request.url) {
            for (name, value) in &secrets.0 {
                headers.insert(name.clone(), value.clone());
            }
        }
        let mut builder =
            self.client.request(request.method.clone(), request.url.clone()).headers(headers);
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(failure)
    }
}

const ASTRAY: DialFailure =
    DialFailure { why: "its address lies where nothing may be reached", executed: Executed::No };

fn redirected(answer: &Response) -> Option<String> {
    let keeps_method = matches!(answer.status().as_u16(), 307 | 308);
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    keeps_method.then(|| location.to_owned())
}

/// What it means that no answer came.
fn failure(error: reqwest::Error) -> DialFailure {
    if leads_astray(&error) {
        return ASTRAY;
    }
    // An address may hold what is nobody's business, so it leaves the error before it is read.
    let error = error.without_url();
    tracing::debug!(error = &error as &dyn std::error::Error, "a server was not reached");
    if error.is_connect() {
        DialFailure::unsent("it cannot be reached")
    } else if error.is_builder() {
        DialFailure::unsent("the request cannot be written")
    } else {
        DialFailure { why: "the connection broke off", executed: Executed::Maybe }
    }
}

fn leads_astray(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        // An I/O error gives the source of what it wraps, and not what it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if error.is::<NameAstray>() || wrapped.is_some_and(|it| it.is::<NameAstray>()) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Reads a body up to a size; `None` if it is larger, or broke off.
pub(crate) async fn read_body(mut answer: Response, bytes_max: usize) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        if read.len() + piece.len() > bytes_max {
            return None;
        }
        read.extend_from_slice(&piece);
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::response::IntoResponse as _;
    use parking_lot::Mutex;
    use reqwest::header::AUTHORIZATION;

    use super::*;

    /// Leads every name to these addresses.
    fn fixed(addresses: &[&str]) -> Lookup {
        let addresses: Vec<IpAddr> =
            addresses.iter().map(|text| text.parse().expect("an address")).collect();
        Arc::new(move |_| {
            let addresses = addresses.clone();
            Box::pin(async move { Ok(addresses) })
        })
    }

    fn dial(url: &str, lookup: Lookup) -> UpstreamDial {
        let address = UpstreamAddress::read(url, false).expect("a good address");
        UpstreamDial::with_lookup(address, lookup).expect("a client")
    }

    /// Serves on loopback whatever a function answers.
    async fn serve<F>(answer: F) -> u16
    where
        F: Fn(Request<Body>) -> axum::response::Response + Clone + Send + Sync + 'static,
    {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let service = Router::new().fallback(move |request| {
            let answer = answer.clone();
            async move { answer(request) }
        });
        tokio::spawn(async move { axum::serve(listener, service).await });
        port
    }

    async fn get(dial: &UpstreamDial, url: &str) -> Result<u16, DialFailure> {
        let mut secrets = SecretHeaders::default();
        assert!(secrets.add(AUTHORIZATION, "Bearer ", b"canary\n"));
        let request = DialRequest::new(Method::GET, url.parse().expect("an address"));
        dial.send(request, &secrets).await.map(|answer| answer.status().as_u16())
    }

    #[tokio::test]
    async fn m076_a_name_that_leads_astray_is_not_connected_to() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let port = serve(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            "here".into_response()
        })
        .await;
        // A name of the internet that leads to this machine, and one of this machine that leads
        // away, also if only one of several addresses does.
        for addresses in [&["127.0.0.1"][..], &["8.8.8.8", "127.0.0.1"], &["10.0.0.1"], &["::1"]] {
            let url = format!("https://mcp.example:{port}/");
            assert_eq!(get(&dial(&url, fixed(addresses)), &url).await, Err(ASTRAY));
        }
        let url = format!("http://localhost:{port}/");
        assert_eq!(get(&dial(&url, fixed(&["8.8.8.8"])), &url).await, Err(ASTRAY));
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        assert_eq!(get(&dial(&url, fixed(&["::1", "127.0.0.1"])), &url).await, Ok(200));
        assert_eq!(get(&dial(&url, system()), &url).await, Ok(200));
    }

    #[tokio::test]
    async fn m070_a_secret_goes_to_one_origin() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = |seen: &Arc<Mutex<Vec<(String, bool)>>>| {
            let seen = Arc::clone(seen);
            move |request: Request<Body>| {
                let secret = request.headers().get(AUTHORIZATION);
                let secret = secret.is_some_and(|value| value == "Bearer canary");
                seen.lock().push((request.uri().path().to_owned(), secret));
                let to = |status: u16, place: String| {
                    let status = axum::http::StatusCode::from_u16(status).expect("a status");
                    (status, [(LOCATION, place)]).into_response()
                };
                let query = request.uri().query().unwrap_or_default().to_owned();
                match request.uri().path() {
                    "/same307" => to(307, "/end".into()),
                    "/same308" => to(308, "end".into()),
                    "/loop" => to(307, "/loop".into()),
                    "/away" => to(307, query),
                    "/moved" => to(302, "/end".into()),
                    _ => "end".into_response(),
                }
            }
        };
        let port = serve(record(&seen)).await;
        let other = serve(record(&seen)).await;
        let base = format!("http://127.0.0.1:{port}");
        let dial = dial(&base, system());
        assert_eq!(get(&dial, &format!("{base}/same307")).await, Ok(200));
        assert_eq!(get(&dial, &format!("{base}/same308")).await, Ok(200));
        assert_eq!(get(&dial, &format!("{base}/moved")).await, Ok(302));
        for (path, secret) in seen.lock().drain(..) {
            assert!(secret, "{path}");
        }
        // Elsewhere, directly or by a redirect: the secret stays, and redirects are not followed.
        let elsewhere = format!("http://127.0.0.1:{other}/other");
        assert!(get(&dial, &format!("{base}/away?{elsewhere}")).await.is_err());
        assert_eq!(get(&dial, &elsewhere).await, Ok(200));
        assert_eq!(get(&dial, &format!("http://localhost:{port}/name")).await, Ok(200));
        let seen: Vec<_> = std::mem::take(&mut *seen.lock());
        let away = seen.iter().filter(|(path, _)| path != "/away");
        let expected = [("/other".to_owned(), false), ("/name".to_owned(), false)];
        assert_eq!(away.cloned().collect::<Vec<_>>(), expected);
        assert!(get(&dial, &format!("{base}/loop")).await.is_err());
    }

    #[tokio::test]
    async fn m061_it_is_told_whether_a_request_left() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url = format!("http://127.0.0.1:{port}/");
        let dial = dial(&url, system());
        let (answer, ()) = tokio::join!(get(&dial, &url), async {
            // Whoever accepts and hangs up may have read everything.
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut read = [0; 16];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut read).await;
        });
        assert_eq!(answer.expect_err("no answer").executed, Executed::Maybe);
        drop(listener);
        assert_eq!(get(&dial, &url).await.expect_err("nobody there").executed, Executed::No);
    }

    #[tokio::test]
    async fn m078_a_body_is_read_up_to_its_limit() {
        let port = serve(|_| "x".repeat(1000).into_response()).await;
        let url = format!("http://127.0.0.1:{port}/");
        let dial = dial(&url, system());
        for (bytes_max, fits) in [(1000, true), (999, false)] {
            let request = DialRequest::new(Method::GET, url.parse().expect("an address"));
            let answer = dial.send(request, &SecretHeaders::default()).await.expect("an answer");
            assert_eq!(read_body(answer, bytes_max).await.is_some(), fits);
        }
    }
}
