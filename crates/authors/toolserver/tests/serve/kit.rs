//! A server with a handler of a test's own, and a client that shows everything it gets.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_util::sync::CancellationToken;
use wharf_toolserver::server::{Listen, Options, Server};
use wharf_toolserver::transfer::Policy;
use wharf_toolserver::{Call, Done, Failure, Handler, Reporter};
use wharf_vocab::Object;

/// A handler that is a function.
struct Does<F>(F);

impl<F> fmt::Debug for Does<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Does")
    }
}

impl<F, R> Handler for Does<F>
where
    F: Fn(Call, Reporter) -> R + Send + Sync + 'static,
    R: Future<Output = Done> + Send + 'static,
{
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        Box::pin((self.0)(call, report))
    }

    fn digest(&self) -> String {
        "b3:test".to_owned()
    }
}

pub(crate) fn done(outputs: Value) -> Done {
    let Value::Object(outputs) = outputs else { panic!("outputs are an object") };
    Done { result: Ok(outputs), cost: Some(json!(1)) }
}

pub(crate) fn failed(code: &str, message: &str) -> Done {
    Done { result: Err(Failure::new(code, message)), cost: None }
}

/// Gives its inputs back.
pub(crate) async fn echo(call: Call, _report: Reporter) -> Done {
    Done { result: Ok(call.inputs), cost: Some(json!(1)) }
}

/// Works until it is told to stop.
pub(crate) async fn wait(call: Call, _report: Reporter) -> Done {
    call.cancel.cancelled().await;
    done(json!({"stopped": true}))
}

/// A server at work.
pub(crate) struct Stage {
    pub(crate) address: String,
    stop: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
    pub(crate) folder: TempDir,
}

/// Options for a server of a test: a free port, and a folder of its own.
pub(crate) fn options(folder: &TempDir) -> Options {
    let files = Policy {
        artifacts: Some(folder.path().join("artifacts")),
        scratch: folder.path().join("scratch"),
        ..Policy::default()
    };
    Options { listen: Listen::Tcp("127.0.0.1:0".to_owned()), files, ..Options::default() }
}

impl Stage {
    pub(crate) async fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Call, Reporter) -> R + Send + Sync + 'static,
        R: Future<Output = Done> + Send + 'static,
    {
        Self::with(handler, |_| {}).await
    }

    pub(crate) async fn with<F, R>(handler: F, change: impl FnOnce(&mut Options)) -> Self
    where
        F: Fn(Call, Reporter) -> R + Send + Sync + 'static,
        R: Future<Output = Done> + Send + 'static,
    {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options = options(&folder);
        change(&mut options);
        let server = Server::bind(options).await.expect("the server listens");
        let address = server.address().to_string();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let handler: Arc<dyn Handler> = Arc::new(Does(handler));
        let serving = tokio::spawn(async move {
            server.serve(handler, stopped).await.expect("the handler is ready");
        });
        Self { address, stop, serving, folder }
    }

    /// Asks the server to stop, as a signal does.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.expect("the server accepts")
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_with(&[]).await.expect("the handshake is accepted")
    }

    /// A client with further headers; the status when it is refused.
    pub(crate) async fn client_with(
        &self,
        headers: &[(&'static str, &str)],
    ) -> Result<Client, u16> {
        let stream = self.tcp().await;
        let url = format!("ws://{}/run", self.address);
        let mut request = url.into_client_request().expect("a request");
        let mut all = vec![("sec-websocket-protocol", "theory.run.v1")];
        all.extend(headers);
        for (name, value) in all {
            request.headers_mut().insert(name, value.parse().expect("a value"));
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Client { socket }),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("no answer to the handshake: {error}"),
        }
    }

    /// A client that has asked for a run.
    pub(crate) async fn ask(&self, request: &Value) -> Client {
        let mut client = self.client().await;
        client.send(request).await;
        client
    }

    /// A run from its request to its end.
    pub(crate) async fn run(&self, request: &Value) -> Heard {
        self.ask(request).await.rest().await
    }

    /// One plain HTTP request: the status and the body.
    pub(crate) async fn http(&self, head: &str) -> (u16, String) {
        let mut stream = self.tcp().await;
        let text = format!("{head}\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
        stream.write_all(text.as_bytes()).await.expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
        (status.expect("a status"), body)
    }
}

pub(crate) fn request(run_id: &str, inputs: Value) -> Value {
    let control = json!({"run_id": run_id, "mode": "mock"});
    let parts = [("control", control), ("inputs", inputs), ("outputs", json!({}))];
    let mut request = json!({"kind": "Request"});
    for (name, part) in parts {
        request[name] = part;
    }
    request
}

/// A client of a server.
pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
}

/// What a connection brought.
#[derive(Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) frames: Vec<Value>,
    /// The code it was closed with; nothing when the peer just went.
    pub(crate) close: Option<u16>,
}

impl Heard {
    /// The final response; panics unless there is exactly one.
    #[track_caller]
    pub(crate) fn end(&self) -> &Value {
        let is_final = |frame: &&Value| frame["control"]["final"] == true;
        let finals: Vec<_> = self.frames.iter().filter(is_final).collect();
        assert_eq!(finals.len(), 1, "closed with {:?} after {:?}", self.close, self.kinds());
        finals[0]
    }

    /// The code of the failure, or an empty text for a success.
    #[track_caller]
    pub(crate) fn code(&self) -> &str {
        self.end()["error"]["code"].as_str().unwrap_or_default()
    }

    /// The frames by kind, events by phase.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let name = |frame: &'_ Value| match frame["kind"].as_str() {
            Some("Event") => frame["data"]["phase"].as_str().map(str::to_owned),
            kind => kind.map(str::to_owned),
        };
        let names = self.frames.iter().filter_map(name);
        names.map(|name| &*name.leak()).collect()
    }
}

/// A frame or the end.
pub(crate) enum Got {
    Frame(Value),
    Close(Option<u16>),
}

impl Client {
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("sent");
    }

    /// Sends pings and reads nothing meanwhile; then how many were answered, and the code of the
    /// end.
    pub(crate) async fn flood(mut self) -> (u32, Option<u16>) {
        for _ in 0..2_000 {
            // Whoever has hung up is sent nothing more.
            if self.socket.send(Message::Ping(vec![7; 125].into())).await.is_err() {
                break;
            }
        }
        let mut answered = 0;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), self.socket.next());
            match next.await.expect("something comes within a minute") {
                Some(Ok(Message::Pong(_))) => answered += 1,
                Some(Ok(Message::Close(frame))) => {
                    return (answered, frame.map(|frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return (answered, None),
            }
        }
    }

    /// What comes next; a test that waits for longer than a minute fails.
    pub(crate) async fn next(&mut self) -> Got {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), self.socket.next());
            match next.await.expect("something comes within a minute") {
                Some(Ok(Message::Text(text))) => {
                    return Got::Frame(serde_json::from_str(&text).expect("strict JSON"));
                }
                Some(Ok(Message::Close(frame))) => {
                    return Got::Close(frame.map(|frame| frame.code.into()));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("an unexpected message: {other:?}"),
                Some(Err(_)) | None => return Got::Close(None),
            }
        }
    }

    pub(crate) async fn frame(&mut self) -> Value {
        match self.next().await {
            Got::Frame(frame) => frame,
            Got::Close(code) => panic!("closed with {code:?}"),
        }
    }

    /// Everything until the connection is closed.
    pub(crate) async fn rest(mut self) -> Heard {
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Got::Frame(frame) => frames.push(frame),
                Got::Close(close) => return Heard { frames, close },
            }
        }
    }

    /// Reads until a phase is told.
    pub(crate) async fn until(&mut self, phase: &str) {
        while self.frame().await["data"]["phase"] != phase {}
    }
}

/// An object of one entry.
pub(crate) fn one(key: &str, value: Value) -> Object {
    Object::from_iter([(key.to_owned(), value)])
}
