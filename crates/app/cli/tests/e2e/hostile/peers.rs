//! The peers that attempts are made with: small, blocking, and free of any good manners.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::support::{Api, Core, LONG, TestHome};

/// The program's home with a core that runs, and its owner's API.
pub(crate) struct Stage {
    pub(crate) home: TestHome,
    pub(crate) core: Core,
    pub(crate) api: Api,
}

impl Stage {
    pub(crate) fn up() -> Self {
        Self::configured("")
    }

    /// The same with this text as its configuration.
    pub(crate) fn configured(text: &str) -> Self {
        let home = TestHome::new();
        home.configure(text);
        let core = home.up();
        let api = Api::of(&core);
        Self { home, core, api }
    }

    /// A token with these verbs and options, such as `["--verb", "run", "--world", "lab"]`.
    #[track_caller]
    pub(crate) fn token(&self, options: &[&str]) -> String {
        let all = [&["token", "create"], options].concat();
        self.home.run(&all).code(0).stdout.trim().to_owned()
    }

    /// The API as somebody with such a token meets it.
    #[track_caller]
    pub(crate) fn caller(&self, options: &[&str]) -> Api {
        Api::with_token(&self.core, &self.token(options))
    }

    /// What the core has taken of memory at most so far, in MiB, without the pages of its own
    /// program: those no peer can fill, and a program with its checks has many.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.core.pid()));
        let status = status.expect("the core runs");
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()).expect("it is told");
            kib.parse::<u64>().expect("a number") / 1024
        };
        mib("VmHWM:").saturating_sub(mib("RssFile:"))
    }
}

/// A handler that reads the file it is told to, if it may.
pub(crate) const READS: &str = r#"
def entry(payload, emit, ctrl):
    try:
        with open(payload["inputs"]["path"]) as file:
            return {"cost_micro": 0, "read": file.read()}
    except OSError as error:
        return {"cost_micro": 0, "refused": type(error).__name__}
"#;

/// A WebSocket client that does with frames what it likes.
pub(crate) struct RawSocket(WebSocket<TcpStream>);

impl RawSocket {
    /// Connects to `path`; tells the status if it is not let in. Most sockets want a subprotocol:
    /// `wharf.operator.v1`, `wharf.tool.v1`, `graphql-transport-ws`.
    pub(crate) fn open(core: &Core, path: &str, speaks: &str, token: &str) -> Result<Self, u16> {
        Self::open_at(core.url().trim_start_matches("http://"), path, speaks, token)
    }

    /// The same at a server that is no core; an empty token is not sent.
    pub(crate) fn open_at(host: &str, path: &str, speaks: &str, token: &str) -> Result<Self, u16> {
        let mut request = format!("ws://{host}{path}").into_client_request().expect("a request");
        let headers = request.headers_mut();
        if !speaks.is_empty() {
            headers.insert("sec-websocket-protocol", speaks.parse().expect("a header"));
        }
        if !token.is_empty() {
            headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        let stream = TcpStream::connect(host).expect("connects");
        stream.set_read_timeout(Some(LONG)).expect("set");
        match client(request, stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tokio_tungstenite::tungstenite::HandshakeError::Failure(
                tokio_tungstenite::tungstenite::Error::Http(answer),
            )) => Err(answer.status().as_u16()),
            Err(error) => panic!("no answer to the upgrade: {error}"),
        }
    }

    /// Says something.
    #[track_caller]
    pub(crate) fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).expect("it is sent");
    }

    /// The next message of this type; others are passed over.
    #[track_caller]
    pub(crate) fn hear(&mut self, kind: &str) -> Value {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => {
                    let message: Value = serde_json::from_str(&text).expect("JSON");
                    if message["type"] == kind {
                        return message;
                    }
                }
                Ok(Message::Close(frame)) => panic!("closed while waiting for {kind}: {frame:?}"),
                Ok(_) => {}
                Err(error) => panic!("ended while waiting for {kind}: {error}"),
            }
        }
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).expect("JSON"),
                Ok(Message::Close(frame)) => panic!("closed: {frame:?}"),
                Ok(_) => {}
                Err(error) => panic!("ended: {error}"),
            }
        }
    }

    /// The code with which it is closed; nothing if it just ends.
    pub(crate) fn closed(&mut self) -> Option<u16> {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends pings and never reads, until it is cut off or nothing more can be sent for a while,
    /// and no longer than `most`. The bytes that were taken from it.
    pub(crate) fn flood_pings(&mut self, most: Duration) -> u64 {
        let payload = [b'x'; 125];
        let mut frame = vec![0x89, 0x80 | 125, 0, 0, 0, 0];
        frame.extend_from_slice(&payload);
        self.flood(&frame.repeat(512), most)
    }

    /// Sends these bytes again and again, as [`Self::flood_pings`] does.
    pub(crate) fn flood(&mut self, bytes: &[u8], most: Duration) -> u64 {
        let stream = self.0.get_mut();
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("set");
        let (end, mut sent) = (Instant::now() + most, 0);
        while Instant::now() < end {
            // What was begun is finished first, or the next frame would be none.
            let mut rest = bytes;
            while !rest.is_empty() {
                match stream.write(rest) {
                    Ok(taken) => {
                        sent += taken as u64;
                        rest = &rest[taken..];
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return sent,
                }
            }
        }
        sent
    }

    /// How many pongs there are to read before it ends.
    pub(crate) fn pongs_until_the_end(&mut self) -> usize {
        let mut pongs = 0;
        while let Ok(message) = self.0.read() {
            match message {
                Message::Pong(_) => pongs += 1,
                Message::Close(_) => break,
                _ => {}
            }
        }
        pongs
    }

    /// Whether the other side has cut it off. Reads what is there.
    pub(crate) fn is_cut(&mut self) -> bool {
        let stream = self.0.get_mut();
        stream.set_read_timeout(Some(LONG)).expect("set");
        let mut bytes = [0; 65536];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            }
        }
    }
}

/// A seat with its socket.
pub(crate) struct Seat {
    pub(crate) sid: String,
    pub(crate) token: String,
    pub(crate) socket: RawSocket,
}

impl Seat {
    /// Makes a seat as the caller of `api` and sits down.
    #[track_caller]
    pub(crate) fn take(core: &Core, api: &Api) -> Self {
        let (status, seat) = api.ask("POST", "/v1/operators", &json!({"desc": "hostile"}));
        assert!(status == 200 || status == 201, "{status}: {seat}");
        let text = |name: &str| seat[name].as_str().expect("text").to_owned();
        let (sid, token) = (text("sid"), text("token"));
        let path = format!("/v1/operators/{sid}/ws");
        let socket = RawSocket::open(core, &path, "", &token).expect("let in");
        Self { sid, token, socket }
    }
}

/// A tool server of one Python file, added and approved. The folder must outlive it.
///
/// `source` has `def entry(payload, emit, ctrl)`; `more` are further lines of its manifest.
#[track_caller]
pub(crate) fn tool_server(
    home: &TestHome,
    reference: &str,
    source: &str,
    more: &str,
) -> tempfile::TempDir {
    let folder = crate::tool_servers::handler(reference, source, more);
    crate::tool_servers::add(home, folder.path());
    folder
}
