//! Passes bodies on, and knows where they end.

use std::io::{self, ErrorKind};

use httparse::Header;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::head;

/// Longest line between the parts of a chunked body.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Most lines after the last part.
const TRAILERS_MAX: usize = 100;

/// How a message says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    None,
    /// After so many bytes.
    Length(u64),
    /// It comes in parts that say how long they are.
    Chunked,
    /// When the connection ends.
    UntilClose,
}

/// Why a body did not pass.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It ended too early, or is not what its head said.
    Source,
    /// It is wanted no longer.
    Sink,
}

impl Framing {
    /// What headers say; none if they do not say it clearly.
    pub(crate) fn of(headers: &[Header<'_>]) -> Option<Self> {
        let length = head::only(headers, "content-length").ok()?;
        let coding = head::only(headers, "transfer-encoding").ok()?;
        match (length, coding) {
            (None, None) => Some(Self::None),
            (None, Some(coding)) => {
                coding.eq_ignore_ascii_case(b"chunked").then_some(Self::Chunked)
            }
            (Some(length), None) => number(length, 10).map(Self::Length),
            (Some(_), Some(_)) => None,
        }
    }

    /// Passes a body on; nothing after its end is touched.
    pub(crate) async fn relay(
        self,
        from: &mut (impl AsyncBufRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), BodyError> {
        match self {
            Self::None => Ok(()),
            Self::Length(bytes) => exactly(bytes, from, to).await,
            Self::Chunked => chunks(from, to).await,
            Self::UntilClose => {
                tokio::io::copy_buf(from, to).await.map(drop).map_err(|_| BodyError::Source)
            }
        }
    }
}

/// Reads a number without sign or spaces.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = text.chars().all(|digit| digit.is_digit(radix));
    u64::from_str_radix(text, radix).ok().filter(|_| plain)
}

async fn exactly(
    mut left: u64,
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), BodyError> {
    while left > 0 {
        let found = from.fill_buf().await.map_err(|_| BodyError::Source)?;
        let taken = found.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if taken == 0 {
            return Err(BodyError::Source);
        }
        to.write_all(&found[..taken]).await.map_err(|_| BodyError::Sink)?;
        from.consume(taken);
        left -= taken as u64;
    }
    Ok(())
}

/// Passes parts on in the plainest form: without extensions, without what comes after the last.
async fn chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), BodyError> {
    loop {
        let head = line(from).await.map_err(|_| BodyError::Source)?;
        let size = head.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = number(size.trim_ascii_end(), 16).ok_or(BodyError::Source)?;
        if size == 0 {
            break;
        }
        to.write_all(format!("{size:x}\r\n").as_bytes()).await.map_err(|_| BodyError::Sink)?;
        exactly(size, from, to).await?;
        if !line(from).await.is_ok_and(|line| line.is_empty()) {
            return Err(BodyError::Source);
        }
        to.write_all(b"\r\n").await.map_err(|_| BodyError::Sink)?;
    }
    for _ in 0..TRAILERS_MAX {
        if line(from).await.map_err(|_| BodyError::Source)?.is_empty() {
            return to.write_all(b"0\r\n\r\n").await.map_err(|_| BodyError::Sink);
        }
    }
    Err(BodyError::Source)
}

/// Reads a line that ends in CR LF, and gives it without them.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let bad = || io::Error::from(ErrorKind::InvalidData);
    let mut line = Vec::new();
    loop {
        let found = from.fill_buf().await?;
        let end = found.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(found.len());
        if taken == 0 || line.len() + taken > LINE_BYTES_MAX {
            return Err(bad());
        }
        line.extend_from_slice(&found[..taken]);
        from.consume(taken);
        if end.is_some() {
            let text = line.strip_suffix(b"\r\n").ok_or_else(bad)?;
            let clean = !text.iter().any(|byte| matches!(byte, b'\r' | 0));
            return if clean { Ok(text.to_vec()) } else { Err(bad()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn relay(framing: Framing, bytes: &str) -> (Option<String>, String) {
        let (mut from, mut to) = (bytes.as_bytes(), Vec::new());
        let done = framing.relay(&mut from, &mut to).await;
        let passed = String::from_utf8(to).expect("text");
        (done.ok().map(|()| passed), String::from_utf8_lossy(from).into_owned())
    }

    #[tokio::test]
    async fn a_body_passes_up_to_its_end_and_not_beyond() {
        let next = "GET / HTTP/1.1\r\n";
        for (framing, body, passed) in [
            (Framing::None, "", ""),
            (Framing::Length(0), "", ""),
            (Framing::Length(5), "hello", "hello"),
            (Framing::Chunked, "0\r\n\r\n", "0\r\n\r\n"),
            (Framing::Chunked, "05\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            (
                Framing::Chunked,
                "A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
                "a\r\n0123456789\r\n0\r\n\r\n",
            ),
            (Framing::Chunked, "1\r\nx\r\n0\r\nTrailer: 1\r\n\r\n", "1\r\nx\r\n0\r\n\r\n"),
        ] {
            let (done, rest) = relay(framing, &format!("{body}{next}")).await;
            assert_eq!((done.as_deref(), rest.as_str()), (Some(passed), next), "{body}");
        }
        let (done, rest) = relay(Framing::UntilClose, "all of it").await;
        assert_eq!((done.as_deref(), rest.as_str()), (Some("all of it"), ""));
    }

    #[tokio::test]
    async fn a_body_that_is_not_what_its_head_said_is_broken() {
        let long = format!("{}\r\nx", "1".repeat(LINE_BYTES_MAX));
        let trailers = format!("0\r\n{}\r\n", "a: b\r\n".repeat(TRAILERS_MAX));
        for (framing, body) in [
            (Framing::Length(6), "hello"),
            (Framing::Chunked, ""),
            (Framing::Chunked, "5\r\nhel"),
            (Framing::Chunked, "5\r\nhello"),
            (Framing::Chunked, "5\r\nhello0\r\n\r\n"),
            (Framing::Chunked, "5\nhello\n0\n\n"),
            (Framing::Chunked, "\r\n0\r\n\r\n"),
            (Framing::Chunked, "+5\r\nhello\r\n0\r\n\r\n"),
            (Framing::Chunked, "-1\r\nhello\r\n0\r\n\r\n"),
            (Framing::Chunked, "0x5\r\nhello\r\n0\r\n\r\n"),
            (Framing::Chunked, "11111111111111111\r\nhello\r\n0\r\n\r\n"),
            (Framing::Chunked, "5\r\r\nhello\r\n0\r\n\r\n"),
            (Framing::Chunked, "0\r\n"),
            (Framing::Chunked, &long),
            (Framing::Chunked, &trailers),
        ] {
            assert_eq!(relay(framing, body).await.0, None, "{body}");
        }
    }
}
