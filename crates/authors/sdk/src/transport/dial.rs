//! Connections to a host.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::{Address, Error, Options};

/// A stream of bytes in both directions.
pub(super) trait DialStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> DialStream for T {}

/// A stream whatever it is made of.
pub(super) type Io = Box<dyn DialStream>;

/// Connects to a host, encrypted if the address says so.
pub(super) async fn dial(address: &Address, options: &Options) -> Result<Io, Error> {
    let told = || address.authority();
    let connected = tokio::time::timeout(options.connect_max, connect(address)).await;
    connected
        .map_err(|_| Error::Timeout { address: told() })?
        .map_err(|source| Error::Connect { address: told(), source })
}

async fn connect(address: &Address) -> io::Result<Io> {
    let stream = TcpStream::connect((address.host(), address.port())).await?;
    // Frames are small, and somebody waits for each.
    stream.set_nodelay(true)?;
    if address.is_encrypted() { encrypt(address, stream).await } else { Ok(Box::new(stream)) }
}

#[cfg(feature = "tls")]
async fn encrypt(address: &Address, stream: TcpStream) -> io::Result<Io> {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls_platform_verifier::BuilderVerifierExt;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(io::Error::other)?
        .with_no_client_auth();
    let name = ServerName::try_from(address.host().to_owned()).map_err(io::Error::other)?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    Ok(Box::new(connector.connect(name, stream).await?))
}

#[cfg(not(feature = "tls"))]
async fn encrypt(_address: &Address, _stream: TcpStream) -> io::Result<Io> {
    let why = "encrypted addresses need the feature `tls` of wharf-sdk";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The next connection of a listener; `None` if there is none just now.
pub(super) async fn next(listener: &tokio::net::TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => {
            stream.set_nodelay(true).ok()?;
            Some(stream)
        }
        Err(_) => {
            // Too many open files, mostly: others have to go first.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            None
        }
    }
}

/// What a refusal says: the message of the error it carries, else the text itself, shortened.
pub(super) fn refusal(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| json.pointer("/error/message"));
    match message.and_then(serde_json::Value::as_str) {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).chars().take(200).collect(),
    }
}
