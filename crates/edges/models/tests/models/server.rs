//! A server on a real socket that answers as a test tells it, and keeps what it was asked.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What is done with a connection, once its request has been read.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends this in pieces of odd sizes.
    Send(String),
    /// Waits until the peer is gone, and says so.
    AwaitEnd,
}

/// A request that was made.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Answers requests in the order of its scripts.
pub(crate) struct FakeProvider {
    pub(crate) base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// The peer of a connection is gone.
    pub(crate) ended: Arc<Notify>,
}

impl FakeProvider {
    pub(crate) async fn new(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base_url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let (asked, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (kept, told) = (Arc::clone(&asked), Arc::clone(&ended));
        tokio::spawn(async move {
            for script in scripts {
                let Ok((stream, _)) = listener.accept().await else { return };
                serve(stream, script, &kept, &told).await;
            }
        });
        Self { base_url, asked, ended }
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Step>, kept: &Mutex<Vec<Asked>>, told: &Notify) {
    stream.set_nodelay(true).expect("set");
    let Some(asked) = read(&mut stream).await else { return };
    kept.lock().push(asked);
    for step in script {
        match step {
            Step::Send(text) => {
                let sizes = [1, 2, 3, 5, 7, 11, 64, 4096].into_iter().cycle();
                let mut rest = text.as_bytes();
                for size in sizes {
                    if rest.is_empty() {
                        break;
                    }
                    let (piece, after) = rest.split_at(size.min(rest.len()));
                    if stream.write_all(piece).await.is_err() {
                        told.notify_one();
                        return;
                    }
                    rest = after;
                    tokio::task::yield_now().await;
                }
            }
            Step::AwaitEnd => {
                let mut byte = [0];
                while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {}
                told.notify_one();
            }
        }
    }
    // Whoever closes while something is unread takes back what it has sent.
    let _ = stream.shutdown().await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut all = Vec::new();
    let end = loop {
        if let Some(at) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut all).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length:").and_then(|value| value.trim().parse::<usize>().ok())
    })?;
    while all.len() < end + length {
        if stream.read_buf(&mut all).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&all[end..end + length]).expect("JSON");
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Asked { path, head, body })
}

/// The head of a stream.
pub(crate) fn stream_head() -> Step {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                Connection: close\r\n\r\n: hello\n\n";
    Step::Send(head.to_owned())
}

/// Events without names, as OpenAI sends them.
pub(crate) fn chunks(all: &[Value]) -> Step {
    Step::Send(all.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect())
}

pub(crate) fn done() -> Step {
    Step::Send("data: [DONE]\n\n".to_owned())
}

/// A piece of text, as OpenAI sends it.
pub(crate) fn delta(text: &str) -> Value {
    json!({"id": "c1", "model": "test-1", "choices": [
        {"index": 0, "delta": {"content": text}, "finish_reason": null}], "usage": null})
}

/// The end, as OpenAI tells it.
pub(crate) fn finish(reason: &str) -> Value {
    json!({"id": "c1", "model": "test-1",
           "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

pub(crate) fn usage(prompt: u64, completion: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
}

/// A whole answer, as OpenAI gives it.
pub(crate) fn says(texts: &[&str]) -> Vec<Step> {
    let mut all: Vec<Value> = texts.iter().map(|text| delta(text)).collect();
    all.extend([finish("stop"), usage(100, 50)]);
    vec![stream_head(), chunks(&all), done()]
}

/// Events with names, as Anthropic sends them.
pub(crate) fn events(all: &[Value]) -> Step {
    let event = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"))
    };
    Step::Send(all.iter().map(event).collect())
}

/// A refusal.
pub(crate) fn refuses(status: u16, headers: &str, error: &Value) -> Vec<Step> {
    let body = json!({"error": error}).to_string();
    vec![Step::Send(format!(
        "HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n{headers}\r\n{body}",
        body.len()
    ))]
}
