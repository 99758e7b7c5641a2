//! The server under test: plain HTTP to it, and WebSockets opened by hand, so that every header
//! of a handshake is chosen here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use wharf_wire::run_v1::{HEALTH_PATH, RUN_PATH, SUBPROTOCOL};

use super::session::{End, Seen, Session};
use super::{Options, Profile};
use crate::error::Error;

const ACCEPT: &str = "sec-websocket-accept";
const PROTOCOL: &str = "sec-websocket-protocol";
/// More than any answer outside of runs may have.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Where the server is, and how it is checked.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) options: Options,
    base: String,
    client: reqwest::Client,
}

/// An answer to a plain request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) took: Duration,
}

/// What became of a handshake.
#[derive(Debug)]
pub(super) enum Opening {
    /// It was accepted, with this subprotocol.
    Open(Box<Session>, Option<String>),
    /// It was refused with a status.
    Refused(u16),
    /// It came to nothing; one sentence says why.
    Failed(String),
}

/// Which credential a handshake shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Credential<'a> {
    /// The right one, if there is one.
    Right,
    /// None.
    Missing,
    /// This header.
    Header(&'a str),
}

impl Server {
    pub(super) fn new(options: Options) -> Result<Self, Error> {
        let bad = || Error::Address { url: options.url.clone() };
        let (base, socket) = place(&options.url).ok_or_else(bad)?;
        // The client asks for one even if it never speaks TLS; a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(10));
        if let Some(path) = socket {
            builder = builder.unix_socket(path);
        }
        let client = builder.build().map_err(Error::Http)?;
        client.get(&base).build().map_err(|_| bad())?;
        Ok(Self { base, client, options })
    }

    /// Whether anybody is there.
    pub(super) async fn reachable(&self) -> Result<(), Error> {
        match self.ask(Method::GET, HEALTH_PATH).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Unreachable { url: self.options.url.clone() }),
        }
    }

    /// Whether Wharf's additions are checked too.
    pub(super) fn is_full(&self) -> bool {
        self.options.profile == Profile::Full
    }

    /// A plain request without a credential.
    pub(super) async fn ask(&self, method: Method, path: &str) -> Result<Answer, String> {
        let started = Instant::now();
        let answered = async {
            let mut response =
                self.client.request(method, format!("{}{path}", self.base)).send().await?;
            let status = response.status().as_u16();
            let mut body = Vec::new();
            while let Some(part) = response.chunk().await? {
                body.extend_from_slice(&part);
                if body.len() > BODY_BYTES_MAX {
                    break;
                }
            }
            Ok::<_, reqwest::Error>(Answer { status, body, took: started.elapsed() })
        };
        match tokio::time::timeout(self.options.reply, answered).await {
            Ok(answer) => answer.map_err(|_| format!("{path} gave no answer.")),
            Err(_) => Err(format!("{path} gave no answer in time.")),
        }
    }

    /// Opens a WebSocket with exactly these headers.
    pub(super) async fn open(&self, protocols: Option<&str>, who: Credential<'_>) -> Opening {
        let key = generate_key();
        let mut request = self
            .client
            .get(format!("{}{RUN_PATH}", self.base))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", &key);
        if let Some(protocols) = protocols {
            request = request.header(PROTOCOL, protocols);
        }
        match (who, &self.options.token) {
            (Credential::Right, Some(token)) => {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            (Credential::Header(header), _) => request = request.header(AUTHORIZATION, header),
            (Credential::Right | Credential::Missing, _) => {}
        }
        match tokio::time::timeout(self.options.reply, upgrade(request, &key)).await {
            Ok(opening) => opening,
            Err(_) => Opening::Failed("The handshake was not answered in time.".to_owned()),
        }
    }

    /// Opens a WebSocket as a core does.
    pub(super) async fn dial(&self) -> Result<Session, String> {
        match self.open(Some(SUBPROTOCOL), Credential::Right).await {
            Opening::Open(session, _) => Ok(*session),
            Opening::Refused(status) => Err(format!("A right handshake was refused: {status}.")),
            Opening::Failed(why) => Err(why),
        }
    }

    /// Opens a connection, sends a request and reads all that comes.
    pub(super) async fn exchange(&self, request: &Value) -> Seen {
        let mut session = match self.dial().await {
            Ok(session) => session,
            Err(why) => return Seen::unopened(why),
        };
        session.send(request).await;
        session.read_to_end(self.options.reply).await;
        session.finish()
    }
}

async fn upgrade(request: reqwest::RequestBuilder, key: &str) -> Opening {
    let Ok(response) = request.send().await else {
        return Opening::Failed("The handshake was not answered.".to_owned());
    };
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Opening::Refused(status.as_u16());
    }
    let header = |name| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    if header(ACCEPT).as_deref() != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Opening::Failed("The handshake's Sec-WebSocket-Accept is wrong.".to_owned());
    }
    let protocol = header(PROTOCOL);
    match response.upgrade().await {
        Ok(stream) => Opening::Open(Box::new(Session::new(stream).await), protocol),
        Err(_) => Opening::Failed("The connection broke after the handshake.".to_owned()),
    }
}

/// The address for plain requests, and the socket if it is one.
fn place(url: &str) -> Option<(String, Option<PathBuf>)> {
    if let Some(path) = url.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return (!path.is_empty()).then(|| ("http://localhost".to_owned(), Some(path.into())));
    }
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return None,
    };
    let host = rest.trim_end_matches('/');
    let host = host.strip_suffix(RUN_PATH).unwrap_or(host);
    (!host.is_empty()).then(|| (format!("{scheme}://{host}"), None))
}

impl Seen {
    fn unopened(why: String) -> Self {
        Self { frames: Vec::new(), end: Some(End::Unopened(why)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_leniently_and_nothing_else_is_taken() {
        let base = |url| place(url).map(|(base, _)| base);
        for url in ["http://h:1", "ws://h:1", "ws://h:1/", "ws://h:1/run", "http://h:1/run/"] {
            assert_eq!(base(url).as_deref(), Some("http://h:1"), "{url}");
        }
        assert_eq!(base("wss://h/run").as_deref(), Some("https://h"));
        assert_eq!(place("unix:/a/b").and_then(|(_, path)| path), Some(PathBuf::from("/a/b")));
        assert_eq!(place("unix:///a/b").and_then(|(_, p)| p), Some(PathBuf::from("/a/b")));
        for url in ["h:1", "ftp://h", "http://", "unix:", ""] {
            assert_eq!(place(url), None, "{url}");
        }
    }
}
