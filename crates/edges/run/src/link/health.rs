//! What a server says of itself.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wharf_wire::run_v1::HEALTH_PATH;

use super::ServerEndpoint;
use super::dial::{DialError, ServerStream};

/// Most that is read of an answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// How a server is, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes runs.
    pub ok: bool,
    /// A hash of what it serves, if it says one.
    pub digest: Option<String>,
}

/// Asks a server how it is.
pub(super) async fn ask(
    endpoint: &ServerEndpoint,
    mut wire: ServerStream,
) -> Result<Health, DialError> {
    let host = endpoint.host();
    let request = format!(
        "GET {HEALTH_PATH} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\
         Connection: close\r\n\r\n"
    );
    let asked = async {
        wire.write_all(request.as_bytes()).await?;
        wire.flush().await?;
        let mut answer = Vec::new();
        (&mut wire).take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = asked.await.map_err(|_| DialError("it closed the connection".to_owned()))?;
    read(&answer).ok_or_else(|| DialError("it does not say how it is".to_owned()))
}

fn read(answer: &[u8]) -> Option<Health> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status: u16 = head.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    // The body may come in chunks; the object in it is all that matters.
    let object = body.get(body.find('{')?..=body.rfind('}')?)?;
    let said: Value = serde_json::from_str(object).ok()?;
    let ok = said.get("ok")?.as_bool()? && status == 200;
    let digest = said.get("digest").and_then(Value::as_str).map(str::to_owned);
    Some(Health { ok, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t001_an_answer_about_health_is_read() {
        let health =
            |ok, digest: Option<&str>| Some(Health { ok, digest: digest.map(str::to_owned) });
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n{\"ok\":true,\"digest\":\"ab\"}", health(true, Some("ab"))),
            ("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"ok\": true}", health(true, None)),
            ("HTTP/1.1 200 OK\r\n\r\nb\r\n{\"ok\":true}\r\n0\r\n\r\n", health(true, None)),
            ("HTTP/1.1 503 Draining\r\n\r\n{\"ok\":false}", health(false, None)),
            ("HTTP/1.1 503 Busy\r\n\r\n{\"ok\":true}", health(false, None)),
            ("HTTP/1.1 404 Not Found\r\n\r\nnothing", None),
            ("HTTP/1.1 200 OK\r\n\r\n}{", None),
            ("HTTP/1.1 2", None),
            ("", None),
        ] {
            assert_eq!(read(answer.as_bytes()), expected, "{answer}");
        }
        assert_eq!(read(b"\xff"), None);
    }
}
