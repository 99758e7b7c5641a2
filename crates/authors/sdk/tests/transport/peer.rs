//! A peer that is written out: what it says, and what it must be told, frame by frame.

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, http::HeaderValue};
use wharf_sdk::transport::{Link, Options, ws};

use crate::carrier::soon;

/// A peer at the other end of a WebSocket that knows the plain protocol and nothing else: it drops
/// whatever it does not know, and never answers it.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    /// A peer that connects to us, and our end of the connection.
    pub(crate) async fn connecting(subprotocol: Option<&str>, options: Options) -> (Self, Link) {
        let mut listener = ws::Listener::bind("127.0.0.1:0", options).await.expect("bound");
        let address = listener.address();
        let mut request = format!("ws://{address}/").into_client_request().expect("an address");
        if let Some(name) = subprotocol {
            let name = HeaderValue::from_str(name).expect("a header");
            request.headers_mut().insert("sec-websocket-protocol", name);
        }
        let stream = TcpStream::connect(address).await.expect("connected");
        let shaken = tokio_tungstenite::client_async(request, stream).await;
        let (socket, response) = shaken.expect("a handshake");
        let chosen = response.headers().get("sec-websocket-protocol");
        assert_eq!(chosen.map(|name| name.to_str().expect("text")), subprotocol);
        (Self { socket }, listener.accept().await.expect("accepted"))
    }

    /// A peer that we connect to, which picks no subprotocol, and our end of the connection.
    pub(crate) async fn listening(options: Options) -> (Self, Link) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = format!("ws://{}/", listener.local_addr().expect("bound"));
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                let socket = tokio_tungstenite::accept_async(stream).await.expect("a handshake");
                // Whoever wanted more than the plain protocol comes again.
                let mut peer = Self { socket };
                if peer.is_there().await {
                    return peer;
                }
            }
        });
        let link = ws::connect(&address, &options).await.expect("connected");
        (soon(accepting).await.expect("accepted"), link)
    }

    /// Whether the other end stays.
    async fn is_there(&mut self) -> bool {
        self.socket.send(Message::Ping(Vec::new().into())).await.is_ok()
            && matches!(soon(self.socket.next()).await, Some(Ok(Message::Pong(_))))
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
        while let Some(Ok(message)) = soon(self.socket.next()).await {
            answered += u32::from(matches!(message, Message::Pong(_)));
        }
        answered
    }

    pub(crate) async fn say(&mut self, frame: Value) {
        self.say_text(&frame.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("sent");
    }

    pub(crate) async fn say_bytes(&mut self, bytes: &'static [u8]) {
        self.socket.send(Message::binary(bytes)).await.expect("sent");
    }

    /// The next frame.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(&text).expect("JSON");
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no frame: {other:?}"),
            }
        }
    }

    /// The next frame, which a strict reader must know: its type, and exactly its keys.
    pub(crate) async fn hear_strictly(&mut self) -> Value {
        let frame = self.hear().await;
        let keys = |value: &Value| -> Vec<String> {
            let mut keys: Vec<_> = value.as_object().expect("an object").keys().cloned().collect();
            keys.sort();
            keys
        };
        let expected: &[&str] = match frame["type"].as_str().expect("a type") {
            "request" => {
                assert_eq!(keys(&frame["payload"]), ["id", "kind", "payload", "type"]);
                &["payload", "type"]
            }
            "progress" => &["data", "id", "type"],
            "cancel" => &["id", "type"],
            "response" => {
                let expected: &[&str] = match frame["response"]["status"].as_str() {
                    Some("accepted" | "other") => &["content", "status"],
                    Some("declined" | "cancelled" | "denied") => &["status"],
                    None => &["ok"],
                    Some(other) => panic!("an unknown status: {other}"),
                };
                assert_eq!(keys(&frame["response"]), expected);
                &["id", "response", "type"]
            }
            // Types that it does not know are ignored.
            other => panic!("an unknown type: {other}"),
        };
        assert_eq!(keys(&frame), expected);
        frame
    }

    /// Whether the connection has been ended by the other side.
    pub(crate) async fn is_gone(&mut self) -> bool {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return true,
                Some(Ok(_)) => {}
            }
        }
    }
}
