//! Reads the head of a request, and what heads have in common.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use wharf_vocab::Code;

use crate::body::Framing;
use crate::refusal::ProxyRefusal;

/// Most bytes of a request's head.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most headers of a request or a response.
pub(crate) const HEADERS_MAX: usize = 100;

/// Why a connection ends before its time.
#[derive(Debug)]
pub(crate) enum End {
    /// With an answer of the proxy itself.
    Refused(ProxyRefusal),
    /// Without a word, because one of the ends is gone or was already being answered.
    Cut,
}

impl From<ProxyRefusal> for End {
    fn from(refusal: ProxyRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Cut
    }
}

/// The bytes of a head, and those that came after it.
#[derive(Debug)]
pub(crate) struct HeadBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

/// Reads a request's head. Only lines that end in CR LF are lines, so that no two readers can see
/// different ones.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    limit: Duration,
) -> Result<HeadBytes, End> {
    let late =
        |_| ProxyRefusal::new(Code::RequestTimeout, "The request's head took too long to arrive.");
    timeout(limit, read_all(stream)).await.map_err(late)?
}

async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> Result<HeadBytes, End> {
    let mut bytes = Vec::with_capacity(2048);
    let mut seen = 0;
    loop {
        match scan(&bytes, seen) {
            Scan::End(length) if length <= HEAD_BYTES_MAX => {
                let rest = bytes.split_off(length);
                return Ok(HeadBytes { bytes, rest });
            }
            Scan::Bad => {
                return Err(ProxyRefusal::invalid("This is not a request of HTTP/1.1.").into());
            }
            Scan::More if bytes.len() < HEAD_BYTES_MAX => {}
            Scan::End(_) | Scan::More => {
                let message = format!("The request's head is longer than {HEAD_BYTES_MAX} bytes.");
                return Err(ProxyRefusal::with_status(431, Code::RequestTooLarge, message).into());
            }
        }
        // The last byte may be half of a line's end.
        seen = bytes.len().saturating_sub(1);
        bytes.reserve(2048);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(End::Cut);
        }
    }
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
enum Scan {
    /// A whole head of this length.
    End(usize),
    /// The beginning of one.
    More,
    /// No head.
    Bad,
}

fn scan(bytes: &[u8], from: usize) -> Scan {
    for at in from..bytes.len() {
        let good = match bytes[at] {
            b'\n' if bytes[..=at].ends_with(b"\r\n\r\n") => return Scan::End(at + 1),
            b'\n' => bytes[..at].ends_with(b"\r"),
            b'\r' => bytes.get(at + 1).is_none_or(|next| *next == b'\n'),
            b'\t' => true,
            byte => !byte.is_ascii_control(),
        };
        if !good {
            return Scan::Bad;
        }
    }
    Scan::More
}

/// Whether a header speaks of the connection it came over and ends there.
fn ends_here(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let hop = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
    hop.contains(&lower.as_str()) || lower.starts_with("proxy-")
}

/// The headers that `Connection` names. None if it names one that says where a message ends or
/// whom it is for: without it the next reader would see another message.
pub(crate) fn named_by_connection(headers: &[httparse::Header<'_>]) -> Option<Vec<String>> {
    let mut named = Vec::new();
    for value in values(headers, "connection") {
        for name in std::str::from_utf8(value).ok()?.split(',') {
            let name = name.trim().to_ascii_lowercase();
            if ["host", "content-length", "transfer-encoding"].contains(&name.as_str()) {
                return None;
            }
            named.push(name);
        }
    }
    Some(named)
}

/// The values of all headers of one name.
pub(crate) fn values<'a>(
    headers: &'a [httparse::Header<'_>],
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// The one value of a header; an error if there are several.
pub(crate) fn only<'a>(
    headers: &'a [httparse::Header<'_>],
    name: &'a str,
) -> Result<Option<&'a [u8]>, DuplicateHeader> {
    let mut all = values(headers, name);
    let first = all.next();
    if all.next().is_some() { Err(DuplicateHeader) } else { Ok(first) }
}

/// A header that may stand once stands several times.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DuplicateHeader;

/// Adds the headers that go on, how the body comes, and the end of the head.
pub(crate) fn finish(
    head: &mut Vec<u8>,
    headers: &[httparse::Header<'_>],
    framing: Framing,
    goes_on: impl Fn(&str) -> bool,
    is_last: bool,
) {
    for header in headers {
        if !ends_here(header.name) && goes_on(header.name) {
            push(head, header.name, header.value);
        }
    }
    if framing == Framing::Chunked {
        push(head, "Transfer-Encoding", b"chunked");
    }
    if is_last {
        push(head, "Connection", b"close");
    }
    head.extend_from_slice(b"\r\n");
}

/// Adds a header to a head.
pub(crate) fn push(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cr_lf_ends_a_line_and_control_characters_are_no_head() {
        let head = b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
        assert_eq!(scan(head, 0), Scan::End(head.len() - 4));
        for cut in 0..head.len() - 4 {
            assert_eq!(scan(&head[..cut], 0), Scan::More, "cut at {cut}");
            assert_eq!(scan(head, cut.saturating_sub(1)), Scan::End(head.len() - 4));
        }
        for bad in [
            b"GET / HTTP/1.1\nA: b\n\n".as_slice(),
            b"GET / HTTP/1.1\r\nA: b\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"\n",
        ] {
            assert_eq!(scan(bad, 0), Scan::Bad, "{bad:?}");
        }
    }
}
