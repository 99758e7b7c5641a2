//! Making a connection.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::handshake::client::{Request, generate_key};
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, error::ProtocolError};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_wire::run_v1::SUBPROTOCOL;
use wharf_wire::run_v1::limits::FRAME_BYTES_MAX;

use super::{ServerAddress, ServerEndpoint, Settings};

/// A stream of bytes to a server.
pub(super) type ServerStream = Box<dyn Bytes>;
/// A WebSocket to a server.
pub(super) type ServerSocket = WebSocketStream<ServerStream>;

/// Anything that carries bytes in both directions.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// Why a server was not reached. Its words are for people and hold no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DialError(pub(super) String);

impl DialError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Reaches a server, encrypted where that is needed.
pub(super) async fn reach(
    endpoint: &ServerEndpoint,
    settings: &Settings,
    tls: impl FnOnce() -> Result<Arc<ClientConfig>, DialError>,
) -> Result<ServerStream, DialError> {
    let reached = async {
        match &endpoint.address {
            ServerAddress::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| no_way(&error))?;
                Ok(Box::new(stream) as ServerStream)
            }
            ServerAddress::Loopback(address) => {
                let stream = TcpStream::connect(address).await.map_err(|error| no_way(&error))?;
                Ok(Box::new(without_delay(stream)?) as ServerStream)
            }
            ServerAddress::Tls { host, port } => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| DialError::new("its name is no name of a host"))?;
                let connector = TlsConnector::from(tls()?);
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                let stream = without_delay(stream.map_err(|error| no_way(&error))?)?;
                let stream = connector.connect(name, stream).await;
                let stream = stream.map_err(|error| {
                    DialError::new(format!("no encrypted connection can be made ({error})"))
                })?;
                Ok(Box::new(stream) as ServerStream)
            }
        }
    };
    let slow = || DialError::new("it did not answer in time");
    tokio::time::timeout(settings.connect, reached).await.unwrap_or_else(|_| Err(slow()))
}

/// Opens the WebSocket for a run. Nothing is followed elsewhere: whoever answers with another
/// place is not the server.
pub(super) async fn open(
    endpoint: &ServerEndpoint,
    wire: ServerStream,
    settings: &Settings,
) -> Result<ServerSocket, DialError> {
    let request = request(endpoint)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(settings.session.message_bytes_max))
        .max_frame_size(Some(settings.session.message_bytes_max))
        .read_buffer_size(SOCKET_READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(FRAME_BYTES_MAX + SOCKET_SPARE_BYTES);
    let opening = client_async_with_config(request, wire, Some(config));
    match tokio::time::timeout(settings.handshake, opening).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(no_socket(&error)),
        Err(_) => Err(DialError::new("it did not open the connection in time")),
    }
}

fn request(endpoint: &ServerEndpoint) -> Result<Request, DialError> {
    let host = endpoint.host();
    let unfit = || DialError::new("its address cannot be written as a request");
    let mut request = Request::builder()
        .uri(format!("ws://{host}{}", endpoint.path))
        .header(header::HOST, &host)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, generate_key())
        .header(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
        .body(())
        .map_err(|_| unfit())?;
    if let Some(bearer) = bearer(endpoint)? {
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }
    Ok(request)
}

/// The header that carries the token; a line's end behind the token does not belong to it.
pub(super) fn bearer(endpoint: &ServerEndpoint) -> Result<Option<HeaderValue>, DialError> {
    let Some(bearer) = &endpoint.bearer else { return Ok(None) };
    let value = [b"Bearer ", bearer.expose().trim_ascii()].concat();
    let mut value = HeaderValue::from_bytes(&value)
        .map_err(|_| DialError::new("its token has a character that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn without_delay(stream: TcpStream) -> Result<TcpStream, DialError> {
    stream.set_nodelay(true).map_err(|error| no_way(&error))?;
    Ok(stream)
}

fn no_way(error: &io::Error) -> DialError {
    DialError(match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::NotFound => "its socket is not there".to_owned(),
        _ => format!("it cannot be reached ({error})"),
    })
}

fn no_socket(error: &tungstenite::Error) -> DialError {
    DialError(match error {
        tungstenite::Error::Http(response) => match response.status().as_u16() {
            401 | 403 => format!("it refused the token (HTTP {})", response.status().as_u16()),
            status => format!("it answered with HTTP {status} instead of opening the connection"),
        },
        tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_)) => {
            format!("it does not speak {SUBPROTOCOL}")
        }
        tungstenite::Error::Io(_) | tungstenite::Error::ConnectionClosed => {
            "it closed the connection before opening it".to_owned()
        }
        _ => "it does not speak WebSocket as it should".to_owned(),
    })
}

/// Trusts what this machine trusts, and these certificates.
pub(super) fn tls_config(roots: &[CertificateDer<'static>]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = if roots.is_empty() {
        Verifier::new(Arc::clone(&provider))?
    } else {
        Verifier::new_with_extra_roots(roots.iter().cloned(), Arc::clone(&provider))?
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
