//! A small HTTP client of one connection per call, which sends exactly what it is told.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

#[derive(Debug, Clone)]
pub(crate) struct Call {
    addr: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(addr: SocketAddr, method: &str, path: &str) -> Self {
        let line = format!("{method} {path} HTTP/1.1");
        let headers = vec![("host".to_owned(), addr.to_string())];
        Self { addr, line, headers, body: Vec::new() }
    }

    /// Sets a header, or takes it away if the value is empty.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes(body.to_string().into_bytes()).header("content-type", "application/json")
    }

    pub(crate) fn bytes(self, body: Vec<u8>) -> Self {
        let length = body.len().to_string();
        Self { body, ..self }.header("content-length", &length)
    }

    /// The head as it goes over the wire.
    pub(crate) fn head(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{}\r\n{}\r\n", self.line, headers.collect::<String>())
    }

    /// Sends everything, then reads the answer, as simple clients do.
    pub(crate) async fn send(self) -> Answer {
        let call = self.header("connection", "close");
        let mut stream = TcpStream::connect(call.addr).await.expect("connects");
        let sent = async {
            stream.write_all(call.head().as_bytes()).await.expect("sends the head");
            stream.write_all(&call.body).await.expect("sends the body");
        };
        timeout(PATIENCE, sent).await.expect("the core reads");
        Answer::read(&mut BufReader::new(stream)).await.expect("an answer")
    }

    pub(crate) async fn open_events(self) -> EventReader {
        let mut stream = TcpStream::connect(self.addr).await.expect("connects");
        stream.write_all(self.head().as_bytes()).await.expect("sends the head");
        EventReader::new(stream).await
    }
}

impl Answer {
    /// Reads an answer; `None` if the connection ends before its head is whole.
    pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        timeout(PATIENCE, Self::read_on(stream)).await.expect("an answer in time")
    }

    async fn read_on(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut answer = Self::read_head(stream).await?;
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().expect("a length")];
            stream.read_exact(&mut answer.body).await.expect("the whole body");
        } else if answer.header("transfer-encoding").is_some() {
            while let Some(chunk) = read_chunk(stream).await {
                answer.body.extend(chunk);
            }
        }
        Some(answer)
    }

    pub(crate) async fn read_head(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = stream.read_line(&mut line).await.ok()?;
            if read == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines.first()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &String| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Some(Self { status, headers: lines[1..].iter().map(header).collect(), body: Vec::new() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text()))
    }

    /// The error's code, checked to be of the shape all errors have.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        let error = &body["error"];
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(error["message"].as_str().is_some_and(|text| text.len() > 10), "{body}");
        assert!(error["retryable"].is_boolean(), "{body}");
        error["code"].as_str().expect("a code").to_owned()
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        self.json()["error"].clone()
    }
}

async fn read_chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
    let mut chunk = vec![0; length + 2];
    stream.read_exact(&mut chunk).await.ok()?;
    chunk.truncate(length);
    (length > 0).then_some(chunk)
}

/// One message of an event stream; comments have no name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: Value,
    pub(crate) comment: Option<String>,
}

pub(crate) struct EventReader {
    stream: BufReader<TcpStream>,
    text: String,
}

impl EventReader {
    async fn new(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let head = timeout(PATIENCE, Answer::read_head(&mut stream)).await.expect("in time");
        let head = head.expect("a head");
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        Self { stream, text: String::new() }
    }

    /// The next message; `None` once the stream has ended in order.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let message = parse(message);
                self.text = rest.to_owned();
                match message {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let chunk = timeout(PATIENCE, read_chunk(&mut self.stream)).await.expect("in time")?;
            self.text.push_str(std::str::from_utf8(&chunk).expect("whole characters"));
        }
    }

    /// All events to the end of the stream, without comments.
    pub(crate) async fn rest(mut self) -> Vec<Message> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.extend(Some(message).filter(|message| message.comment.is_none()));
        }
        all
    }
}

fn parse(text: &str) -> Option<Message> {
    let mut message = Message { id: None, event: String::new(), data: Value::Null, comment: None };
    let mut any = false;
    for line in text.lines() {
        let (field, value) = line.split_once(':').expect("a field");
        let value = value.trim_start();
        match field {
            "" => message.comment = Some(value.to_owned()),
            "id" => message.id = Some(value.parse().expect("a number")),
            "event" => message.event = value.to_owned(),
            "data" => message.data = serde_json::from_str(value).expect("JSON on one line"),
            "retry" => continue,
            other => panic!("unknown field {other}"),
        }
        any = true;
    }
    any.then_some(message)
}
