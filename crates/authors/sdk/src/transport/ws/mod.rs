//! Calls over a WebSocket.

mod frames;
mod listener;

use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_wire::tool_v1::SUBPROTOCOL;

use super::dial::dial;
use super::{Address, Error, Link, Options};
use frames::Socket;
pub use listener::{Listener, accept};

/// Connects to whoever listens at an address: `ws://`, or `wss://` with the feature `tls`. A token
/// goes in the header, never in the address.
///
/// ```no_run
/// use wharf_sdk::transport::{Options, ws};
/// use wharf_sdk::Scope;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let link = ws::connect("ws://localhost:7000/tools", &Options::default()).await?;
/// let scope = Scope::root().with_transport(link);
/// # Ok(()) }
/// ```
pub async fn connect(address: &str, options: &Options) -> Result<Link, Error> {
    connect_to(&Address::parse(address)?, options).await
}

/// The same with an address that was read already.
pub async fn connect_to(address: &Address, options: &Options) -> Result<Link, Error> {
    let unfit = |why| Error::Address { address: address.to_string(), why };
    let request = address.as_ws().into_client_request();
    let mut request = request.map_err(|_| unfit("it is no address of a WebSocket"))?;
    let headers = request.headers_mut();
    if !options.plain {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    if let Some(token) = &options.token {
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut bearer = bearer.map_err(|_| unfit("the token cannot be sent"))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    let stream = dial(address, options).await?;
    let config = Some(config(options));
    let shaken = client_async_with_config(request, stream, config);
    let shaken = tokio::time::timeout(options.connect_max, shaken).await;
    let shaken = shaken.map_err(|_| Error::Timeout { address: address.authority() })?;
    let (socket, response) = match shaken {
        Ok(shaken) => shaken,
        // A peer that picks no subprotocol knows the plain protocol only.
        Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_)))
            if !options.plain =>
        {
            let options = Options { plain: true, ..options.clone() };
            return Box::pin(connect_to(address, &options)).await;
        }
        Err(error) => return Err(refusal(error)),
    };
    let marked = chosen(&response) == Some(SUBPROTOCOL);
    Ok(Link::new(Socket::new(socket, options.keep_alive), marked, false, options))
}

/// The subprotocol that a server chose.
fn chosen<T>(response: &Response<T>) -> Option<&str> {
    response.headers().get(SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok())
}

/// Limits that hold before a frame has been read.
fn config(options: &Options) -> WebSocketConfig {
    let bytes_max = options.limits.frame_bytes_max;
    WebSocketConfig::default()
        .read_buffer_size(SOCKET_READ_BYTES)
        .write_buffer_size(16 * 1024)
        .max_write_buffer_size(bytes_max + SOCKET_SPARE_BYTES)
        .max_message_size(Some(bytes_max))
        .max_frame_size(Some(bytes_max))
}

fn refusal(error: tungstenite::Error) -> Error {
    match error {
        tungstenite::Error::Http(response) => {
            let status = response.status().as_u16();
            let body = response.into_body().unwrap_or_default();
            Error::Refused { status, message: super::dial::refusal(&body) }
        }
        tungstenite::Error::Io(source) => Error::Connect { address: "the peer".to_owned(), source },
        error => Error::Protocol { why: error.to_string() },
    }
}
