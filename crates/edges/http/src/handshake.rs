//! The handshake of TLS, and what is said to whoever speaks plain HTTP instead.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wharf_tls::{Acceptor, TlsStream};
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::ErrorBody;

/// What is still read of a peer that speaks plain HTTP, and for how long.
const PLAIN_BYTES_MAX: u64 = 64 * 1024;
const PLAIN_PATIENCE: Duration = Duration::from_secs(2);

/// Encrypts a connection, within this time for each of its two steps.
pub(crate) async fn secure(
    stream: TcpStream,
    tls: &Acceptor,
    at_most: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    within(at_most, stream.peek(&mut first)).await?;
    // A handshake begins with 22, and a request with the name of a method.
    if first[0].is_ascii_uppercase() {
        within(PLAIN_PATIENCE, refuse_plain(stream)).await?;
        return Err(io::Error::other("it speaks plain HTTP"));
    }
    tls.accept(stream, at_most).await
}

async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    let message = "This core speaks TLS; use https:// in the place of http://.";
    let fault = Fault::new(Code::RequestInvalid, message);
    let body = serde_json::to_string(&ErrorBody { error: (&fault).into() })?;
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes would take the answer away from the peer again.
    let mut unread = stream.take(PLAIN_BYTES_MAX);
    tokio::io::copy(&mut unread, &mut tokio::io::sink()).await?;
    Ok(())
}

async fn within<T>(at_most: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(at_most, step).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
