//! Reading from and writing to addresses of the artifact store.
//!
//! One request per connection over plain `http://`, which is what a core's own store speaks on
//! loopback. A fenced agent that was approved for the store goes through the proxy it was told
//! of. What a store elsewhere offers under `https://` is read by a client of the author's choice.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::io::StreamReader;
use wharf_vocab::{Code, Fault};

use crate::host::file::Reader;

/// How long nothing may happen.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// What is read and written in one go.
const PIECE_BYTES: usize = 256 * 1024;

/// Whether a text is an address and not a path.
pub(super) fn is_address(text: &str) -> bool {
    text.contains("://")
}

/// Begins to read what is at an address. What is at the end before its time is an error.
pub(super) async fn get(url: &str) -> Result<Reader, Fault> {
    let response = timeout(IDLE_MAX, send(url, Method::GET, None, Empty::new())).await;
    let body = response.map_err(|_| unreachable())??.into_body();
    let pieces = stream::try_unfold(body, async |mut body| {
        loop {
            let frame =
                timeout(IDLE_MAX, body.frame()).await.map_err(|_| io::ErrorKind::TimedOut)?;
            match frame.transpose().map_err(io::Error::other)?.map(Frame::into_data) {
                Some(Ok(piece)) => return Ok(Some((piece, body))),
                // Trailers are nobody's business.
                Some(Err(_)) => {}
                None => return Ok::<_, io::Error>(None),
            }
        }
    });
    Ok(Box::pin(StreamReader::new(pieces.into_stream())))
}

/// Writes exactly so many bytes to an address.
pub(super) async fn put(
    url: &str,
    bytes: u64,
    body: &mut (impl AsyncRead + Unpin),
) -> Result<(), Fault> {
    let (pieces, mut receiver) = mpsc::channel::<io::Result<Frame<Bytes>>>(1);
    let sent = StreamBody::new(stream::poll_fn(move |cx| receiver.poll_recv(cx)));
    let mut answered = pin!(send(url, Method::PUT, Some(bytes), sent));
    let read = async {
        let mut left = bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let mut piece = vec![0; most];
            let count = body.read(&mut piece).await.map_err(|_| short())?;
            if count == 0 {
                return Err(short());
            }
            piece.truncate(count);
            left -= count as u64;
            let taken = pieces.send(Ok(Frame::data(piece.into())));
            if !matches!(timeout(IDLE_MAX, taken).await, Ok(Ok(()))) {
                // The store may have said why before it closed the connection.
                break;
            }
        }
        Ok(())
    };
    tokio::select! {
        biased;
        answered = &mut answered => return answered.map(drop),
        read = read => read?,
    }
    drop(pieces);
    timeout(IDLE_MAX, answered).await.map_err(|_| unreachable())?.map(drop)
}

/// Sends a request, and gives the answer if it is a good one.
async fn send<B>(
    url: &str,
    method: Method,
    bytes: Option<u64>,
    body: B,
) -> Result<Response<Incoming>, Fault>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let proxy = std::env::var("HTTP_PROXY").ok();
    let (dial, request) = compose(url, method, bytes, proxy.as_deref()).ok_or_else(unknown)?;
    let connected = async {
        let stream = TcpStream::connect(dial).await?;
        stream.set_nodelay(true)?;
        let mut client = http1::Builder::new();
        let client = client.title_case_headers(true).handshake(TokioIo::new(stream));
        client.await.map_err(io::Error::other)
    };
    let connected = timeout(IDLE_MAX, connected).await.map_err(|_| unreachable())?;
    let (mut sender, connection) = connected.map_err(|_| unreachable())?;
    // It ends with the answer; what goes wrong is said there.
    tokio::spawn(connection);
    let response = sender.send_request(request.map(|()| body)).await;
    let response = response.map_err(|_| unreachable())?;
    match response.status().as_u16() {
        200 | 201 | 204 => Ok(response),
        404 => Err(Fault::new(Code::ArtifactNotFound, "The file is not there any more.")),
        403 => {
            let message = "The artifact store does not take the call's address any more.";
            Err(Fault::new(Code::StorageDenied, message))
        }
        _ => Err(unreachable()),
    }
}

/// Where to connect, and the head of what is sent there.
fn compose(
    url: &str,
    method: Method,
    bytes: Option<u64>,
    proxy: Option<&str>,
) -> Option<(String, Request<()>)> {
    // A signature counts for the address as it stands, so nothing of it is made regular.
    let uri: Uri = url.parse().ok().filter(|_| !url.contains('#'))?;
    // What names a store alone is no file in it.
    url.strip_prefix("http://")?.find('/')?;
    let path = uri.path_and_query().filter(|_| uri.scheme_str() == Some("http"))?;
    let authority = uri.authority()?;
    let (dial, target) = match proxy.and_then(|proxy| proxy.strip_prefix("http://")) {
        // A proxy is told the whole address.
        Some(proxy) => (proxy.trim_end_matches('/').to_owned(), uri.clone()),
        None => {
            let port = authority.port_u16().unwrap_or(80);
            (format!("{}:{port}", authority.host()), Uri::from(path.clone()))
        }
    };
    let mut request = Request::builder().method(method).uri(target);
    request = request.header(HOST, authority.as_str()).header(CONNECTION, "close");
    if let Some(bytes) = bytes {
        request = request.header(CONTENT_LENGTH, bytes);
    }
    Some((dial, request.body(()).ok()?))
}

fn unreachable() -> Fault {
    Fault::new(Code::StorageUnavailable, "The artifact store does not answer as it should.")
}

fn unknown() -> Fault {
    let message = "The tool can read and write files at http:// addresses only.";
    Fault::new(Code::ToolInternal, message)
}

/// The fault of a tool that ran out of bytes.
pub(super) fn short() -> Fault {
    Fault::new(Code::ToolFailed, "The tool had fewer bytes to write than it said.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_told_the_whole_address_and_the_store_its_own_name() {
        let url = "http://store.example:9000/w/a?sig=1";
        let (dial, request) = compose(url, Method::GET, None, None).expect("an address");
        assert_eq!(dial, "store.example:9000");
        assert_eq!(request.uri(), "/w/a?sig=1");
        assert_eq!(request.headers()[HOST], "store.example:9000");
        assert_eq!(request.headers()[CONNECTION], "close");
        let proxy = Some("http://127.0.0.1:3128/");
        let (dial, request) = compose(url, Method::PUT, Some(7), proxy).expect("an address");
        assert_eq!(dial, "127.0.0.1:3128");
        assert_eq!(request.uri(), url);
        assert_eq!(request.headers()[HOST], "store.example:9000");
        assert_eq!(request.headers()[CONTENT_LENGTH], "7");
    }

    #[test]
    fn an_address_is_taken_apart_as_it_stands() {
        for (url, wanted) in [
            ("http://127.0.0.1:7421/w/a.txt?X-Amz-Expires=1", Some("127.0.0.1:7421")),
            ("http://store.example/a", Some("store.example:80")),
            ("http://[::1]:9000/a", Some("[::1]:9000")),
            ("http://[::1]/a", Some("[::1]:80")),
            ("https://store.example/a", None),
            ("http://store.example", None),
            ("http:///a", None),
            ("http://store.example/a b", None),
            ("http://store.example/a#b", None),
            ("http://store.example/a\r\nX: y", None),
            ("/run/w/in/a", None),
        ] {
            let dialed = compose(url, Method::GET, None, None).map(|(dial, _)| dial);
            assert_eq!(dialed.as_deref(), wanted, "{url}");
        }
        let url = "http://store.example/w//a/../b?x=%2f&y";
        let (_, request) = compose(url, Method::GET, None, None).expect("an address");
        assert_eq!(request.uri(), "/w//a/../b?x=%2f&y");
    }
}
