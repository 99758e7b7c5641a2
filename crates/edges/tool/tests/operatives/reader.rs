//! A reader of server-sent events.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::stage::PATIENCE;

/// A stream of events.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    pub(crate) status: u16,
    pub(crate) head: String,
}

impl Events {
    pub(crate) async fn open(addr: SocketAddr, query: &str, token: &str, last: &str) -> Self {
        let last = match last {
            "" => String::new(),
            last => format!("last-event-id: {last}\r\n"),
        };
        // An answer to HTTP/1.0 comes without chunks.
        let head = format!(
            "GET /v1/tool/sse?{query} HTTP/1.0\r\nhost: {addr}\r\n\
             authorization: Bearer {token}\r\n{last}\r\n"
        );
        let mut stream = TcpStream::connect(addr).await.expect("connects");
        stream.write_all(head.as_bytes()).await.expect("sends");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = timeout(PATIENCE, reader.read_line(&mut head)).await.expect("in time");
            assert!(read.expect("reads") > 0, "the head is cut: {head:?}");
        }
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        Self { reader, status, head }
    }

    /// The next event: its number and its data; nothing when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(u64, Value)> {
        let (mut id, mut data) = (0, None);
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.reader.read_line(&mut line)).await.expect("in time");
            if read.unwrap_or(0) == 0 {
                return None;
            }
            assert!(!line.contains('\r'), "lines end with LF: {line:?}");
            let line = line.trim_end_matches('\n');
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().expect("a number");
            } else if let Some(text) = line.strip_prefix("data: ") {
                assert!(data.is_none(), "one line of data per event");
                data = Some(serde_json::from_str(text).expect("JSON"));
            } else if line.is_empty() {
                if let Some(data) = data.take() {
                    return Some((id, data));
                }
            } else {
                assert!(line.starts_with(':'), "{line:?}");
            }
        }
    }

    pub(crate) async fn hear(&mut self) -> (u64, Value) {
        self.next().await.expect("an event")
    }
}
