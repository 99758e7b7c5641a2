//! Reading from and writing to addresses of the artifact store.
//!
//! As much HTTP as that takes, so that agents need no client: one request per connection over
//! plain `http://`, which is what a core's own store speaks on loopback. A fenced agent that was
//! approved for the store goes through the proxy it was told of. What a store elsewhere offers
//! under `https://` is read by a client of the author's choice.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead as _, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _,
    BufReader, ReadBuf,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use wharf_vocab::{Code, Fault};

/// How long nothing may happen.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Most bytes of an answer's head.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// What is read and written in one go.
const PIECE_BYTES: usize = 256 * 1024;

/// An address, taken apart.
#[derive(Debug)]
struct Address<'a> {
    /// Host and port as they stand there.
    authority: &'a str,
    /// Path and query.
    path: &'a str,
}

/// Whether a text is an address and not a path.
pub(super) fn is_address(text: &str) -> bool {
    text.contains("://")
}

/// The bytes at an address, as they come. What is at the end before its time is an error.
#[derive(Debug)]
pub(super) struct Body {
    stream: BufReader<TcpStream>,
    /// How much is still to come; unknown if the answer ends with the connection.
    left: Option<u64>,
    idle: Pin<Box<Sleep>>,
}

/// Begins to read what is at an address.
pub(super) async fn get(url: &str) -> Result<Body, Fault> {
    let mut stream = BufReader::with_capacity(PIECE_BYTES, request(url, "GET", None).await?);
    let left = answer(&mut stream).await?;
    Ok(Body { stream, left, idle: Box::pin(sleep(IDLE_MAX)) })
}

/// Writes exactly so many bytes to an address.
pub(super) async fn put(
    url: &str,
    bytes: u64,
    body: &mut (impl AsyncRead + Unpin),
) -> Result<(), Fault> {
    let mut stream = request(url, "PUT", Some(bytes)).await?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let count = body.read(&mut piece[..most]).await.map_err(|_| short())?;
        if count == 0 {
            return Err(short());
        }
        left -= count as u64;
        let written = timeout(IDLE_MAX, stream.write_all(&piece[..count])).await;
        if !matches!(written, Ok(Ok(()))) {
            // The store may have said why before it closed the connection.
            break;
        }
    }
    answer(&mut BufReader::new(stream)).await.map(drop)
}

impl<'a> Address<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        (!authority.is_empty() && plain(authority) && plain(path) && !path.contains('#'))
            .then_some(Self { authority, path })
    }

    fn host_and_port(&self) -> String {
        let has_port = self.authority.rsplit(':').next().is_some_and(|port| {
            port.len() < self.authority.len() && port.bytes().all(|b| b.is_ascii_digit())
        });
        if has_port { self.authority.to_owned() } else { format!("{}:80", self.authority) }
    }
}

/// Connects and sends the head of a request.
async fn request(url: &str, method: &str, bytes: Option<u64>) -> Result<TcpStream, Fault> {
    let proxy = std::env::var("HTTP_PROXY").ok();
    let (dial, head) = compose(url, method, bytes, proxy.as_deref()).ok_or_else(unknown)?;
    let connected = async {
        let mut stream = TcpStream::connect(dial).await?;
        stream.set_nodelay(true)?;
        stream.write_all(head.as_bytes()).await?;
        Ok::<_, io::Error>(stream)
    };
    match timeout(IDLE_MAX, connected).await {
        Ok(Ok(stream)) => Ok(stream),
        _ => Err(unreachable()),
    }
}

/// Where to connect, and what to send there first.
fn compose(
    url: &str,
    method: &str,
    bytes: Option<u64>,
    proxy: Option<&str>,
) -> Option<(String, String)> {
    let address = Address::parse(url)?;
    let (dial, target) = match proxy.and_then(|proxy| proxy.strip_prefix("http://")) {
        // A proxy is told the whole address.
        Some(proxy) => (proxy.trim_end_matches('/').to_owned(), url),
        None => (address.host_and_port(), address.path),
    };
    let length = bytes.map(|bytes| format!("Content-Length: {bytes}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {}\r\n{length}Connection: close\r\n\r\n",
        address.authority
    );
    Some((dial, head))
}

/// Reads the head of an answer; how many bytes follow, if it says so.
async fn answer(stream: &mut BufReader<TcpStream>) -> Result<Option<u64>, Fault> {
    let head = timeout(IDLE_MAX, head(stream)).await;
    let head = head.map_err(|_| unreachable())?.map_err(|_| unreachable())?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    match status {
        "200" | "201" | "204" => {}
        "404" => {
            return Err(Fault::new(Code::ArtifactNotFound, "The file is not there any more."));
        }
        "403" => {
            let message = "The artifact store does not take the call's address any more.";
            return Err(Fault::new(Code::StorageDenied, message));
        }
        _ => return Err(unreachable()),
    }
    let mut length = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(unreachable());
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse().map_err(|_| unreachable())?);
        }
    }
    Ok(length)
}

/// The lines before an answer's body, without those that only say that there is more to come.
async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut limited = stream.take(HEAD_BYTES_MAX);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if limited.read_line(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if !head.starts_with("HTTP/1.1 100 ") {
            return Ok(head);
        }
    }
}

impl AsyncRead for Body {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.left == Some(0) || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let Poll::Ready(found) = Pin::new(&mut this.stream).poll_fill_buf(cx) else {
            ready!(this.idle.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        };
        let found = found?;
        if found.is_empty() && this.left.is_some() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let most = this.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let count = found.len().min(buf.remaining()).min(most);
        buf.put_slice(&found[..count]);
        Pin::new(&mut this.stream).consume(count);
        this.left = this.left.map(|left| left - count as u64);
        this.idle.as_mut().reset(Instant::now() + IDLE_MAX);
        Poll::Ready(Ok(()))
    }
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
        let (dial, head) = compose(url, "GET", None, None).expect("an address");
        assert_eq!(dial, "store.example:9000");
        let rest = "Host: store.example:9000\r\nConnection: close\r\n\r\n";
        assert_eq!(head, format!("GET /w/a?sig=1 HTTP/1.1\r\n{rest}"));
        let proxy = Some("http://127.0.0.1:3128/");
        let (dial, head) = compose(url, "PUT", Some(7), proxy).expect("an address");
        assert_eq!(dial, "127.0.0.1:3128");
        let rest = "Host: store.example:9000\r\nContent-Length: 7\r\nConnection: close\r\n\r\n";
        assert_eq!(head, format!("PUT {url} HTTP/1.1\r\n{rest}"));
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
            ("http://store.example/a\r\nX: y", None),
            ("/run/w/in/a", None),
        ] {
            let address = Address::parse(url).map(|address| address.host_and_port());
            assert_eq!(address.as_deref(), wanted, "{url}");
        }
    }
}
