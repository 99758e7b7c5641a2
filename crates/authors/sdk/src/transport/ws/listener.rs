//! The side of a WebSocket that is connected to.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderValue, StatusCode};
use tokio_util::task::AbortOnDropHandle;
use wharf_wire::tool_v1::SUBPROTOCOL;
use wharf_wire::ws::{BEARER_SUBPROTOCOL, BROWSER_SUBPROTOCOL};

use super::frames::Socket;
use super::{config, refusal};
use crate::transport::{Error, Link, Options};

/// Connections that may wait to be accepted.
const WAITING_MAX: usize = 64;

/// Takes a connection as a WebSocket: its handshake, its token and its subprotocol.
pub async fn accept<S>(stream: S, options: &Options) -> Result<Link, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut marked = false;
    let greeter = Greeter { options, marked: &mut marked };
    let shaken = accept_hdr_async_with_config(stream, greeter, Some(config(options)));
    let shaken = tokio::time::timeout(options.connect_max, shaken).await;
    let shaken = shaken.map_err(|_| Error::Timeout { address: "the peer".to_owned() })?;
    let socket = Socket::new(shaken.map_err(refusal)?, options.keep_alive);
    Ok(Link::new(socket, marked, false, options))
}

/// Lets those in who may, and finds out whether they know the additions to the protocol.
struct Greeter<'a> {
    options: &'a Options,
    marked: &'a mut bool,
}

impl Callback for Greeter<'_> {
    fn on_request(
        self,
        request: &Request,
        mut response: Response,
    ) -> Result<Response, ErrorResponse> {
        let offers: Vec<&str> = offers(request.headers()).collect();
        if let Some(token) = &self.options.token
            && !shows(request.headers(), &offers, token)
        {
            let mut refusal = ErrorResponse::new(Some("a token is needed".to_owned()));
            *refusal.status_mut() = StatusCode::UNAUTHORIZED;
            return Err(refusal);
        }
        *self.marked = !self.options.plain && offers.contains(&SUBPROTOCOL);
        // Some clients give up when none of their offers is taken.
        let known = if *self.marked { SUBPROTOCOL } else { BROWSER_SUBPROTOCOL };
        if offers.contains(&known) {
            let chosen = HeaderValue::from_static(known);
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, chosen);
        }
        Ok(response)
    }
}

fn offers(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    all.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
}

/// Whether a token was shown, in the header or as browsers do it.
fn shows(headers: &HeaderMap, offers: &[&str], token: &str) -> bool {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let header = header.and_then(|value| value.strip_prefix("Bearer "));
    let offered = offers.iter().filter_map(|offer| offer.strip_prefix(BEARER_SUBPROTOCOL));
    let mut shown = header.into_iter().chain(offered);
    shown.any(|shown| crate::transport::options::is_same(shown, token))
}

/// Listens for WebSockets. Handshakes go on side by side; one that fails concerns nobody else.
///
/// ```
/// use wharf_sdk::transport::{Options, ws};
/// use wharf_sdk::{Scope, Tool, operative};
///
/// const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut listener = ws::Listener::bind("127.0.0.1:0", Options::default()).await?;
/// let address = format!("ws://{}", listener.address());
///
/// let server = Scope::root();
/// server.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) })?;
/// let client = ws::connect(&address, &Options::default()).await?;
/// let link = listener.accept().await.expect("a connection");
/// let serving = operative::serve(&server, &link);
///
/// let client = Scope::root().with_transport(client);
/// assert_eq!(DOUBLE.call(&client, 21).await?, 42);
/// serving.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    links: mpsc::Receiver<Link>,
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    /// Begins to listen.
    pub async fn bind(address: impl AsRef<str>, options: Options) -> Result<Self, Error> {
        let listener = TcpListener::bind(address.as_ref()).await.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let (sender, links) = mpsc::channel(WAITING_MAX);
        let task = tokio::spawn(listen(listener, options, sender));
        Ok(Self { address, links, _task: AbortOnDropHandle::new(task) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next connection; `None` once there can be no more.
    pub async fn accept(&mut self) -> Option<Link> {
        self.links.recv().await
    }
}

async fn listen(listener: TcpListener, options: Options, links: mpsc::Sender<Link>) {
    // They end with whoever listens.
    let mut handshakes = JoinSet::new();
    loop {
        // A place before the connection, so that handshakes are bounded.
        let Ok(place) = links.clone().reserve_owned().await else { return };
        let Some(stream) = crate::transport::dial::next(&listener).await else { continue };
        while handshakes.try_join_next().is_some() {}
        let options = options.clone();
        handshakes.spawn(async move {
            if let Ok(link) = accept::<TcpStream>(stream, &options).await {
                place.send(link);
            }
        });
    }
}
