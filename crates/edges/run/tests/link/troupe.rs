//! A tool server that says what a test tells it to.

use std::path::PathBuf;
use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use wharf_run::link::{ServerAddress, ServerEndpoint};

use crate::stage::LONG;

pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
}

/// A place where connections arrive.
pub(crate) struct Troupe {
    listener: Listener,
    /// Whether the subprotocol is echoed.
    pub(crate) echoes: bool,
    pub(crate) token: Option<&'static str>,
}

impl Troupe {
    pub(crate) async fn tcp() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        Self { listener: Listener::Tcp(listener), echoes: true, token: None }
    }

    pub(crate) async fn at(address: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("binds again");
        Self { listener: Listener::Tcp(listener), echoes: true, token: None }
    }

    pub(crate) fn unix(path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).expect("binds");
        Self { listener: Listener::Unix(listener, path), echoes: true, token: None }
    }

    pub(crate) async fn tls(config: rustls::ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self { listener: Listener::Tls(listener, acceptor), echoes: true, token: None }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().port()
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        match &self.listener {
            Listener::Tcp(listener) | Listener::Tls(listener, _) => {
                listener.local_addr().expect("bound")
            }
            Listener::Unix(..) => panic!("a socket in the file system has no port"),
        }
    }

    pub(crate) fn endpoint(&self) -> ServerEndpoint {
        ServerEndpoint::new(match &self.listener {
            Listener::Unix(_, path) => ServerAddress::Unix(path.clone()),
            Listener::Tcp(listener) => {
                ServerAddress::Loopback(listener.local_addr().expect("bound"))
            }
            Listener::Tls(..) => {
                ServerAddress::Tls { host: "localhost".to_owned(), port: self.port() }
            }
        })
    }

    async fn wire(&self) -> Option<Box<dyn Wire>> {
        Some(match &self.listener {
            Listener::Unix(listener, _) => Box::new(listener.accept().await.expect("accepts").0),
            Listener::Tcp(listener) => Box::new(listener.accept().await.expect("accepts").0),
            Listener::Tls(listener, acceptor) => {
                let (stream, _) = listener.accept().await.expect("accepts");
                Box::new(acceptor.accept(stream).await.ok()?)
            }
        })
    }

    /// A connection before anything was said on it.
    pub(crate) async fn raw(&self) -> Box<dyn Wire> {
        let accepted = tokio::time::timeout(LONG, self.wire()).await.expect("somebody comes");
        accepted.expect("a connection")
    }

    /// Waits for somebody to come; `None` if the handshake was refused.
    #[expect(clippy::result_large_err, reason = "the library wants a response for an error")]
    pub(crate) async fn try_accept(&self) -> Option<Actor> {
        let wire = tokio::time::timeout(LONG, self.wire()).await.expect("somebody comes")?;
        let mut seen = None;
        let (echoes, token) = (self.echoes, self.token);
        let socket = accept_hdr_async(wire, |request: &Request, mut response: Response| {
            seen = Some(request.clone());
            let authorization = request.headers().get("authorization").map(HeaderValue::as_bytes);
            if let Some(token) = token
                && authorization != Some(format!("Bearer {token}").as_bytes())
            {
                let mut refusal = ErrorResponse::new(None);
                *refusal.status_mut() = StatusCode::UNAUTHORIZED;
                return Err(refusal);
            }
            if echoes {
                let protocol = HeaderValue::from_static("theory.run.v1");
                response.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
            }
            Ok(response)
        });
        let socket = socket.await.ok()?;
        Some(Actor { socket, handshake: seen.expect("a request"), run_id: String::new(), seq: 0 })
    }

    pub(crate) async fn accept(&self) -> Actor {
        self.try_accept().await.expect("a handshake")
    }

    /// Waits for a request, and acknowledges it.
    pub(crate) async fn take(&self) -> (Actor, Value) {
        let mut actor = self.accept().await;
        let request = actor.request().await;
        actor.say(json!({"kind": "Ack", "control": {"run_id": actor.run_id}})).await;
        (actor, request)
    }
}

/// One connection, from the server's side.
pub(crate) struct Actor {
    socket: WebSocketStream<Box<dyn Wire>>,
    pub(crate) handshake: Request,
    pub(crate) run_id: String,
    /// The number of the last message that had one.
    pub(crate) seq: u64,
}

impl Actor {
    /// The next message of the client.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let next =
                tokio::time::timeout(LONG, self.socket.next()).await.expect("says something");
            match next.expect("goes on").expect("readable") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) async fn request(&mut self) -> Value {
        let request = self.hear().await;
        assert_eq!(request["kind"], "Request");
        request["control"]["run_id"].as_str().expect("an id").clone_into(&mut self.run_id);
        request
    }

    /// The next message of the client; `None` if it went without one.
    pub(crate) async fn try_hear(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(LONG, self.socket.next()).await.expect("does something")? {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                _ => return None,
            }
        }
    }

    /// Sends pings and reads nothing meanwhile; then how many were answered before the end.
    pub(crate) async fn flood(&mut self) -> u32 {
        for _ in 0..2_000 {
            // Whoever has hung up is sent nothing more.
            if self.socket.send(Message::Ping(vec![7; 125].into())).await.is_err() {
                break;
            }
        }
        let mut answered = 0;
        while let Some(Ok(message)) =
            tokio::time::timeout(LONG, self.socket.next()).await.expect("it ends")
        {
            answered += u32::from(matches!(message, Message::Pong(_)));
        }
        answered
    }

    pub(crate) async fn say_binary(&mut self) {
        let _ = self.socket.send(Message::binary(vec![1, 2, 3])).await;
    }

    pub(crate) async fn say(&mut self, frame: Value) {
        self.say_text(frame.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: String) {
        // The client may have gone by now.
        let _ = self.socket.send(Message::text(text)).await;
    }

    /// Says something with the next number.
    pub(crate) async fn number(&mut self, mut frame: Value) {
        self.seq += 1;
        frame["control"]["seq"] = self.seq.into();
        frame["control"]["run_id"] = self.run_id.as_str().into();
        self.say(frame).await;
    }

    pub(crate) async fn log(&mut self, text: &str) {
        self.number(json!({"kind": "Log", "control": {}, "data": {"msg": text}})).await;
    }

    pub(crate) async fn stream(&mut self, outputs: Value) {
        self.number(json!({"kind": "Response", "control": {"final": false}, "outputs": outputs}))
            .await;
    }

    /// The end, and the close after it.
    pub(crate) async fn succeed(&mut self, outputs: Value) {
        let control = json!({"final": true, "status": "success", "cost_micro": 5});
        self.end(json!({"kind": "Response", "control": control, "outputs": outputs})).await;
    }

    pub(crate) async fn fail(&mut self, code: &str, message: &str) {
        let control = json!({"final": true, "status": "error", "cost_micro": 3});
        let error = json!({"code": code, "message": message});
        self.end(json!({"kind": "Response", "control": control, "outputs": {}, "error": error}))
            .await;
    }

    pub(crate) async fn end(&mut self, frame: Value) {
        self.number(frame).await;
        self.close(1000, "").await;
    }

    pub(crate) async fn close(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame { code: code.into(), reason: reason.to_owned().into() };
        let _ = self.socket.close(Some(frame)).await;
    }

    /// Reads until the client has gone; the code it closed with, if it said one.
    pub(crate) async fn gone(&mut self) -> Option<u16> {
        let mut code = None;
        let gone = async {
            while let Some(Ok(message)) = self.socket.next().await {
                if let Message::Close(Some(frame)) = message {
                    code = Some(frame.code.into());
                }
            }
        };
        tokio::time::timeout(LONG, gone).await.expect("the client goes");
        code
    }
}
