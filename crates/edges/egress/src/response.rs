//! Passes a server's answer on, up to its end.

use httparse::{EMPTY_HEADER, Status};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use wharf_vocab::Code;

use crate::body::Framing;
use crate::head::{self, End, HEADERS_MAX};
use crate::refusal::ProxyRefusal;

/// Most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most answers that say only that another will follow.
const INTERIM_MAX: usize = 8;

/// An answer's head as it goes on.
#[derive(Debug)]
struct ResponseHead {
    status: u16,
    head: Vec<u8>,
    framing: Framing,
}

/// Passes the answer to a request on. The last answer's head says that the connection ends with
/// it, because this proxy takes one request per connection.
pub(crate) async fn relay(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    is_head: bool,
) -> Result<(), End> {
    for _ in 0..INTERIM_MAX {
        let bytes = read_head(from).await.ok_or_else(wrong)?;
        let answer = ResponseHead::parse(&bytes, is_head).ok_or_else(wrong)?;
        to.write_all(&answer.head).await?;
        if answer.status >= 200 {
            let passed = answer.framing.relay(from, to).await;
            passed.map_err(|_| End::Cut)?;
            return Ok(to.shutdown().await?);
        }
    }
    Err(wrong())
}

fn wrong() -> End {
    let message = "The host did not answer, or not in HTTP/1.1.";
    End::Refused(ProxyRefusal::new(Code::EgressUnreachable, message))
}

/// Reads up to the empty line; none if there is none or it comes too late.
async fn read_head(from: &mut (impl AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let found = from.fill_buf().await.ok().filter(|found| !found.is_empty())?;
        let line = found.iter().position(|byte| *byte == b'\n').map_or(found.len(), |at| at + 1);
        bytes.extend_from_slice(&found[..line]);
        from.consume(line);
        if bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n") {
            return Some(bytes);
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
}

impl ResponseHead {
    fn parse(bytes: &[u8], is_head: bool) -> Option<Self> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(bytes) {
            Ok(Status::Complete(length)) if length == bytes.len() => {}
            _ => return None,
        }
        let (status, reason) = (response.code?, response.reason.unwrap_or_default());
        // Nothing was asked that could turn the connection into something else.
        if !(100..=599).contains(&status) || status == 101 {
            return None;
        }
        let headers = &*response.headers;
        let framing = match (status, Framing::of(headers)?) {
            (..200 | 204 | 304, _) => Framing::None,
            _ if is_head => Framing::None,
            (_, Framing::None) => Framing::UntilClose,
            (_, framing) => framing,
        };
        let named = head::named_by_connection(headers)?;
        let mut head = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
        let goes_on = |header: &str| !named.iter().any(|name| header.eq_ignore_ascii_case(name));
        head::finish(&mut head, headers, framing, goes_on, status >= 200);
        Some(Self { status, head, framing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn relayed(answer: &str, is_head: bool) -> Result<String, End> {
        let (mut from, mut to) = (answer.as_bytes(), Vec::new());
        relay(&mut from, &mut to, is_head).await?;
        Ok(String::from_utf8(to).expect("text"))
    }

    #[tokio::test]
    async fn an_answer_passes_up_to_its_end_and_says_that_it_is_the_last() {
        let close = "Connection: close\r\n\r\n";
        for (answer, is_head, passed) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhiHTTP/1.1",
                false,
                format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{close}hi"),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
                true,
                format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{close}"),
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nmore",
                false,
                format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n{close}"),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nmore",
                false,
                format!(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{close}2\r\nhi\r\n0\r\n\r\n"
                ),
            ),
            ("HTTP/1.0 200 OK\r\n\r\nold", false, format!("HTTP/1.1 200 OK\r\n{close}old")),
        ] {
            let found = relayed(answer, is_head).await.expect(answer);
            assert_eq!(found, passed);
        }
    }

    #[tokio::test]
    async fn what_is_not_an_answer_is_not_passed_on() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        let waiting = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX + 1);
        for answer in [
            "",
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            &long,
            &waiting,
        ] {
            assert!(matches!(relayed(answer, false).await, Err(End::Refused(_))), "{answer}");
        }
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi";
        assert!(matches!(relayed(cut, false).await, Err(End::Cut)));
    }
}
