//! Answers that the proxy itself gives.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wharf_vocab::{Code, Fault};

/// How long and how much is still read from somebody who was refused, so that they come to read
/// the answer and do not only see their own writing fail.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 256 * 1024;

/// An answer instead of what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProxyRefusal {
    status: u16,
    fault: Fault,
}

impl ProxyRefusal {
    /// A refusal with the status of its code.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_status(code.http_status(), code, message)
    }

    /// A refusal with another status.
    pub(crate) fn with_status(status: u16, code: Code, message: impl Into<String>) -> Self {
        Self { status, fault: Fault::new(code, message) }
    }

    /// The request is not one.
    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(Code::RequestInvalid, message)
    }

    /// The answer as it goes over the wire.
    fn bytes(&self) -> Vec<u8> {
        let error = json!({
            "code": self.fault.code.as_str(),
            "message": self.fault.message,
            "retryable": self.fault.retryable,
        });
        let body = json!({ "error": error }).to_string();
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            self.status,
            reason(self.status),
            body.len()
        );
        [head.into_bytes(), body.into_bytes()].concat()
    }

    /// Answers and ends the connection.
    pub(crate) async fn send(self, stream: &mut UnixStream) {
        let answer = async {
            stream.write_all(&self.bytes()).await?;
            stream.shutdown().await?;
            let mut rest = stream.take(LINGER_BYTES_MAX);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        // Whoever was refused may have left; there is nobody else to tell.
        let _ = tokio::time::timeout(LINGER, answer).await;
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Refused",
    }
}
