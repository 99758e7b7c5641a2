//! A core for tests: a real socket, the core's own session, and a script.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::TempDir;
use wharf_protocol::agent::{
    Additions, AnySchema, CallEnd, CallOutcome, CallRequest, CoreConfig, CoreEvent, CoreLimits,
    CoreSession, HelloReceived, IdPrefix,
};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Fault, Object, Timestamp};
use wharf_wire::agent_v1::{CallId, Chunk, SessionId};

pub(crate) const TOKEN: &str = "t0ken-that-no-output-may-hold";
/// How long a test waits for something that has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a read waits before the session's own deadlines are looked at.
const READ: Duration = Duration::from_millis(10);

/// Where the core listens.
pub(crate) enum Listener {
    Unix(UnixListener, TempDir),
    Tcp(TcpListener),
    /// One connection that the agent inherits.
    Inherited(Mutex<Option<UnixStream>>),
}

impl Listener {
    pub(crate) fn unix() -> Self {
        let dir = TempDir::new().expect("a directory");
        let listener = UnixListener::bind(dir.path().join("s")).expect("a socket");
        Self::Unix(listener, dir)
    }

    pub(crate) fn tcp() -> Self {
        Self::Tcp(TcpListener::bind("127.0.0.1:0").expect("a port"))
    }

    /// A connection, and the agent's end of it.
    pub(crate) fn inherited() -> (Self, UnixStream) {
        let (own, agents) = UnixStream::pair().expect("a connection");
        (Self::Inherited(Mutex::new(Some(own))), agents)
    }

    pub(crate) fn address(&self) -> String {
        match self {
            Self::Unix(_, dir) => dir.path().join("s").display().to_string(),
            Self::Tcp(listener) => format!("tcp:{}", listener.local_addr().expect("bound")),
            Self::Inherited(_) => "fd:3".to_owned(),
        }
    }

    fn accept(&self) -> Box<dyn Stream> {
        match self {
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().expect("a connection");
                stream.set_read_timeout(Some(READ)).expect("a timeout");
                Box::new(stream)
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().expect("a connection");
                stream.set_read_timeout(Some(READ)).expect("a timeout");
                Box::new(stream)
            }
            Self::Inherited(stream) => {
                let stream = stream.lock().expect("no panic").take().expect("one connection");
                stream.set_read_timeout(Some(READ)).expect("a timeout");
                Box::new(stream)
            }
        }
    }
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// One connection, and everything the session has said about it.
pub(crate) struct Core {
    pub(crate) session: CoreSession,
    pub(crate) seen: Vec<CoreEvent>,
    stream: Box<dyn Stream>,
    started: Instant,
}

impl Core {
    /// Waits for an agent and its hello.
    pub(crate) fn greeted(listener: &Listener, limits: CoreLimits) -> (Self, HelloReceived) {
        let stream = listener.accept();
        let session_id = SessionId::new("session").expect("an id");
        let mut config = CoreConfig::new(session_id, IdPrefix::new("core").expect("a prefix"));
        config.limits = limits;
        let started = Instant::now();
        let session = CoreSession::new(moment(started), config, AnySchema);
        let mut core = Self { session, seen: Vec::new(), stream, started };
        let hello = core.wait("hello", |event| match event {
            CoreEvent::Hello(hello) => Some((**hello).clone()),
            _ => None,
        });
        let needs_none = matches!(listener, Listener::Inherited(_));
        assert_eq!(hello.token.expose(), if needs_none { "inherited" } else { TOKEN });
        (core, hello)
    }

    /// Waits for an agent, lets it in, and waits for its tools.
    pub(crate) fn joined(listener: &Listener, limits: CoreLimits) -> Self {
        let (mut core, _) = Self::greeted(listener, limits);
        core.session.accept(core.now(), Additions::ALL).expect("a hello waits");
        core.wait("tools", |event| match event {
            CoreEvent::ToolsRegistered { rejected, .. } => {
                assert_eq!(rejected, &[]);
                Some(())
            }
            _ => None,
        });
        core
    }

    pub(crate) fn now(&self) -> Moment {
        moment(self.started)
    }

    /// Calls a tool of the agent's that knows this name.
    pub(crate) fn call(&mut self, call_id: &str, name: &str, input: &Value) {
        self.call_with(call_id, name, input, |_| {});
    }

    pub(crate) fn call_with(
        &mut self,
        call_id: &str,
        name: &str,
        input: &Value,
        change: impl FnOnce(&mut CallRequest),
    ) {
        let tool_id = self.session.tools().find(|id| id.ends_with(&format!("/{name}")));
        let tool_id = tool_id.expect("a registered tool").to_owned();
        let mut request = CallRequest::new(id(call_id), tool_id, format!("request-{call_id}"));
        request.input = object(input);
        change(&mut request);
        self.session.call(self.now(), request).expect("the call can be sent");
        self.flush();
    }

    /// Waits for the single end of a call.
    pub(crate) fn end(&mut self, call_id: &str) -> CallEnd {
        let wanted = id(call_id);
        self.wait(call_id, |event| match event {
            CoreEvent::CallEnded { call_id, end } if *call_id == wanted => Some((**end).clone()),
            _ => None,
        })
    }

    /// Waits for a call to succeed.
    #[track_caller]
    pub(crate) fn output(&mut self, call_id: &str) -> Value {
        match self.end(call_id).outcome {
            CallOutcome::Succeeded(output) => Value::Object(output),
            other => panic!("{call_id} ended with {other:?}"),
        }
    }

    /// Waits for a call to fail.
    #[track_caller]
    pub(crate) fn failure(&mut self, call_id: &str) -> Fault {
        match self.end(call_id).outcome {
            CallOutcome::Failed(fault) => fault,
            other => panic!("{call_id} ended with {other:?}"),
        }
    }

    /// The pieces of output a call has given so far.
    pub(crate) fn chunks(&self, wanted: &str) -> Vec<Chunk> {
        let of_call = |event: &CoreEvent| match event {
            CoreEvent::Chunk { call_id, gap, chunk, .. } if call_id.as_str() == wanted => {
                assert_eq!(*gap, None);
                Some(chunk.clone())
            }
            _ => None,
        };
        self.seen.iter().filter_map(of_call).collect()
    }

    /// Fails if the agent has broken the protocol or has answered a call twice.
    #[track_caller]
    pub(crate) fn assert_flawless(&self) {
        let flaw = self.seen.iter().find(|event| {
            matches!(
                event,
                CoreEvent::Violation(_)
                    | CoreEvent::LateResult { .. }
                    | CoreEvent::PeerError { .. }
            )
        });
        assert_eq!(flaw, None);
    }

    /// Waits until something has been seen; what was seen before counts.
    #[track_caller]
    pub(crate) fn wait<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&CoreEvent) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut looked = 0;
        loop {
            while looked < self.seen.len() {
                if let Some(found) = pick(&self.seen[looked]) {
                    return found;
                }
                looked += 1;
            }
            let closed = self.session.is_closed();
            assert!(!closed && Instant::now() < deadline, "no {what}: {:?}", self.seen);
            self.step();
        }
    }

    /// Writes what waits, reads what is there, and does what is due.
    pub(crate) fn step(&mut self) {
        self.flush();
        let mut input = [0; 64 * 1024];
        match self.stream.read(&mut input) {
            Ok(0) => self.session.end(self.now(), Closed::ended()),
            Ok(count) => self.session.receive(self.now(), Incoming::Bytes(&input[..count])),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => self.session.end(self.now(), Closed::ended()),
        }
        self.session.tick(self.now());
        self.flush();
        while let Some(event) = self.session.poll_event() {
            self.seen.push(event);
        }
    }

    pub(crate) fn flush(&mut self) {
        while let Some(Outgoing::Bytes(frame)) = self.session.poll_send() {
            if self.stream.write_all(&frame).is_err() {
                self.session.end(self.now(), Closed::ended());
            }
        }
    }
}

pub(crate) fn id(text: &str) -> CallId {
    CallId::new(text).expect("an id")
}

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn moment(started: Instant) -> Moment {
    let ms = |time: Duration| u64::try_from(time.as_millis()).expect("a test is short");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Moment::new(ms(started.elapsed()), Timestamp(ms(since)))
}
