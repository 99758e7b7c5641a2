//! A small tool server in a task, with one fault at most.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::execution::{Run, execute};

pub(crate) const TOKEN: &str = "a-secret-of-the-test";
const SUBPROTOCOL: &str = "theory.run.v1";
const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

type Socket = WebSocketStream<TcpStream>;

/// A server that runs until it is dropped.
pub(crate) struct Scripted {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

/// What its connections share.
pub(crate) struct Shared {
    pub(crate) fault: &'static str,
    pub(crate) active: AtomicUsize,
    open: AtomicUsize,
    runs: Mutex<HashMap<(String, u64), Arc<Run>>>,
}

impl Shared {
    pub(crate) fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }
}

impl Scripted {
    pub(crate) async fn start(fault: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let runs = Mutex::new(HashMap::new());
        let shared = Arc::new(Shared {
            fault,
            active: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            runs,
        });
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, task }
    }

    /// Ends it and gives its address.
    pub(crate) async fn stop(mut self) -> String {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.url.clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    stream.set_nodelay(true).expect("an option of sockets");
    let mut head = [0; 4096];
    let Ok(length) = stream.peek(&mut head).await else { return };
    let text = String::from_utf8_lossy(&head[..length]).to_lowercase();
    if text.starts_with("get /run ") && text.contains("upgrade: websocket") {
        return upgraded(stream, shared).await;
    }
    let _ = stream.read(&mut head).await;
    let (status, body) = plain(&text, &shared);
    let slow = shared.has("health-waits-for-runs") && shared.active.load(Ordering::SeqCst) > 0;
    if slow && text.starts_with("get /healthz ") {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(format!("{answer}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn plain(request: &str, shared: &Shared) -> (u16, &'static str) {
    let health = if shared.has("health-without-digest") {
        r#"{"ok":true}"#
    } else {
        r#"{"ok":true,"digest":"scripted"}"#
    };
    let mut words = request.split_whitespace();
    match (words.next(), words.next()) {
        (Some("get"), Some("/healthz")) => (200, health),
        (_, Some("/healthz")) if shared.has("health-takes-any-method") => (200, health),
        (_, Some("/healthz")) => (405, ""),
        (_, Some("/docs")) if shared.has("opens-docs") => (200, "docs"),
        (_, Some("/run")) if shared.has("run-without-upgrade") => (200, ""),
        (_, Some("/run")) => (426, ""),
        _ => (404, ""),
    }
}

fn refusal(status: u16) -> ErrorResponse {
    let mut response = ErrorResponse::new(None);
    *response.status_mut() = status.try_into().expect("a status");
    response
}

#[expect(clippy::result_large_err, reason = "the library asks for it")]
fn handshake(
    request: &Request,
    mut response: Response,
    shared: &Shared,
) -> Result<Response, ErrorResponse> {
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let right = header("authorization").is_some_and(|shown| shown == format!("Bearer {TOKEN}"));
    if !right && !shared.has("takes-any-token") {
        return Err(refusal(if shared.has("refuses-with-403") { 403 } else { 401 }));
    }
    let offered = header("sec-websocket-protocol").unwrap_or_default();
    let known = match shared.fault {
        "takes-any-subprotocol" => true,
        "compares-without-case" => {
            offered.split(',').any(|name| name.trim().eq_ignore_ascii_case(SUBPROTOCOL))
        }
        "takes-no-list" => offered == SUBPROTOCOL,
        _ => offered.split(',').any(|name| name.trim() == SUBPROTOCOL),
    };
    if !known {
        return Err(refusal(400));
    }
    if !shared.has("echoes-nothing") {
        let name = SUBPROTOCOL.parse().expect("a header");
        response.headers_mut().insert("sec-websocket-protocol", name);
    }
    Ok(response)
}

#[expect(clippy::result_large_err, reason = "the library asks for it")]
async fn upgraded(stream: TcpStream, shared: Arc<Shared>) {
    let limit = if shared.has("takes-frames-of-any-size") { None } else { Some(FRAME_BYTES_MAX) };
    let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
    let look = |request: &Request, response| handshake(request, response, &shared);
    let accepted =
        tokio_tungstenite::accept_hdr_async_with_config(stream, look, Some(config)).await;
    let Ok(mut socket) = accepted else { return };
    match first(&mut socket, &shared).await {
        Ok(request) => {
            shared.open.fetch_add(1, Ordering::SeqCst);
            connection(socket, request, &shared).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        }
        Err(Some((code, reason))) => {
            let code = if shared.has("closes-with-one-code") { 1002 } else { code };
            let reason = if shared.has("closes-without-a-reason") { "" } else { reason };
            close(&mut socket, code, reason).await;
        }
        Err(None) => {}
    }
}

/// The first frame, or with what the connection is closed; none drops it.
async fn first(socket: &mut Socket, shared: &Shared) -> Result<Value, Option<(u16, &'static str)>> {
    let patience = Duration::from_millis(300);
    let came = if shared.has("waits-for-the-first-frame") {
        socket.next().await
    } else {
        // Only a server that is checked for it is so impatient; large frames take their time.
        match tokio::time::timeout(patience * 10, socket.next()).await {
            Ok(came) => came,
            Err(_) => return Err(Some((1008, "no request came"))),
        }
    };
    let text = match came {
        Some(Ok(Message::Text(text))) => text,
        Some(Ok(Message::Binary(_))) if shared.has("drops-after-a-binary-frame") => {
            return Err(None);
        }
        Some(Ok(Message::Binary(_))) => return Err(Some((1003, "text is wanted"))),
        Some(Err(Error::Capacity(_))) => return Err(Some((1009, "too large"))),
        Some(Err(Error::Utf8(_))) => return Err(Some((1007, "not UTF-8"))),
        _ => return Err(None),
    };
    let value: Value = serde_json::from_str(text.as_str()).map_err(|_| Some((1007, "not JSON")))?;
    if value["kind"] != "Request" {
        return Err(Some((1002, "not a Request")));
    }
    match value["control"]["run_id"].as_str() {
        Some("") if shared.has("takes-an-empty-run-id") => Ok(value),
        None | Some("") => Err(Some((1008, "no run_id"))),
        Some(_) => Ok(value),
    }
}

async fn close(socket: &mut Socket, code: u16, reason: &str) {
    let frame = CloseFrame { code: code.into(), reason: reason.to_owned().into() };
    let _ = socket.close(Some(frame)).await;
    // Whoever stops reading resets the connection, and the close frame is lost.
    let mut rest = [0; 4096];
    let drained = async { while matches!(socket.get_mut().read(&mut rest).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(Duration::from_secs(5), drained).await;
}

/// What two requests must have in common to be one.
fn digest(request: &Value, shared: &Shared) -> String {
    let default = if shared.has("real-by-default") { "real" } else { "mock" };
    let mode = request["control"]["mode"].as_str().unwrap_or(default);
    let mut data = format!("{mode}{}{}", request["inputs"], request["outputs"]);
    if !shared.has("minds-signatures") {
        while let Some(at) = data.find('?') {
            let end = data[at..].find('"').map_or(data.len(), |end| at + end);
            data.replace_range(at..end, "");
        }
    }
    data
}

async fn connection(mut socket: Socket, request: Value, shared: &Arc<Shared>) {
    let run_id = request["control"]["run_id"].as_str().unwrap_or_default().to_owned();
    let attempt = request["control"]["attempt"].as_u64().unwrap_or(1);
    let digest = digest(&request, shared);
    let (run, known) = {
        let mut runs = shared.runs.lock().expect("no test panics with it");
        match runs.get(&(run_id.clone(), attempt)) {
            Some(run) if !shared.has("runs-anew") => (Arc::clone(run), true),
            _ => {
                let run = Arc::new(Run::new(digest.clone()));
                runs.insert((run_id.clone(), attempt), Arc::clone(&run));
                if let Some(older) = runs.get(&(run_id.clone(), attempt - 1))
                    && !shared.has("keeps-older-attempts")
                {
                    older.cancel();
                }
                (run, false)
            }
        }
    };
    let other = run.digest != digest && !shared.has("runs-conflicts");
    if other || (shared.has("refuses-attempts") && attempt > 1) {
        return close(&mut socket, 1008, "run_id conflict").await;
    }
    let busy = run.watchers.fetch_add(1, Ordering::SeqCst) > 0;
    if shared.has("one-watcher") && busy {
        return close(&mut socket, 1013, "one is enough").await;
    }
    let fresh = !known || (shared.has("runs-conflicts") && run.digest != digest);
    acks(&mut socket, &run_id, shared).await;
    if fresh {
        tokio::spawn(execute(Arc::clone(shared), Arc::clone(&run), request.clone()));
    }
    let after = request["control"]["after"].as_u64().unwrap_or(0);
    let after = if shared.has("ignores-after") { 0 } else { after };
    if !watch(&mut socket, &run, after, shared).await && shared.has("dies-with-its-connection") {
        run.cancel();
    }
    run.watchers.fetch_sub(1, Ordering::SeqCst);
}

async fn acks(socket: &mut Socket, run_id: &str, shared: &Shared) {
    if shared.has("ack-waits-for-a-worker") && shared.open.load(Ordering::SeqCst) >= 4 {
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    let named = if shared.has("ack-of-another-run") { "another" } else { run_id };
    let ack = json!({ "kind": "Ack", "control": { "run_id": named } }).to_string();
    let count = match shared.fault {
        "no-ack" => 0,
        "two-acks" => 2,
        _ => 1,
    };
    for _ in 0..count {
        let _ = socket.send(Message::text(ack.clone())).await;
    }
}

/// Sends what there is and what comes. Says whether the client stayed to the end.
async fn watch(socket: &mut Socket, run: &Run, after: u64, shared: &Shared) -> bool {
    let mut log = run.log.subscribe();
    let mut sent = 0;
    loop {
        let (new, done) = {
            let log = log.borrow_and_update();
            (log.frames[sent..].to_vec(), log.done)
        };
        sent += new.len();
        for (seq, message) in new {
            if seq > after && socket.send(message).await.is_err() {
                return false;
            }
        }
        if done {
            break;
        }
        tokio::select! {
            _ = log.changed() => {}
            came = socket.next() => match came {
                Some(Ok(Message::Text(text))) if text.contains("\"Cancel\"") => {
                    if !shared.has("ignores-cancel") {
                        run.cancel();
                    }
                }
                Some(Ok(_)) => {}
                _ => return false,
            },
        }
    }
    match shared.fault {
        "drops-after-the-final" => {}
        "closes-with-1001" => close(socket, 1001, "gone").await,
        _ => close(socket, 1000, "done").await,
    }
    true
}
