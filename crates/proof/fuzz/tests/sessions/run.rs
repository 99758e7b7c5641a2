//! Both ends of the wire of tool servers: the core as a client, and the server.

use serde_json::json;
use wharf_fuzz::{Dice, Fuzz, Met, Stock};
use wharf_protocol::run::client::{Config, RunClient, RunClientEvent};
use wharf_protocol::run::server::{
    Book, Credential, Ending, Limits, NextFrames, OpenResult, Profile, RunNo, RunReport, RunServer,
    ServerEvent, WatcherNo,
};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::run_v1::{LogLevel, Mode, RequestControl, RunRequest};

const WORDS: [&str; 4] = ["r1", "r2", "success", "error"];
const PACE_MS: u64 = 100;

fn moment(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(0))
}

fn object(value: &serde_json::Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// The core's end, once its request was acknowledged.
struct Attempt {
    session: RunClient,
    ended: bool,
    now: u64,
}

impl Attempt {
    fn open() -> Self {
        let control = RequestControl {
            required: vec!["out".to_owned()],
            ..RequestControl::new("r1", Mode::Real)
        };
        let (inputs, outputs) = (object(&json!({"a": 1})), object(&json!({"out": "/x"})));
        let request = RunRequest { control, inputs, outputs };
        let mut attempt =
            Self { session: RunClient::new(Config::default(), request), ended: false, now: 1_000 };
        attempt.acknowledge();
        attempt
    }

    fn acknowledge(&mut self) {
        self.session.connected(moment(self.now));
        while self.session.poll_send().is_some() {}
        let ack = r#"{"kind": "Ack", "control": {"run_id": "r1"}}"#;
        self.session.receive(moment(self.now), Incoming::Text(ack));
    }

    fn meet(&mut self, dice: &mut Dice, frame: &[u8]) -> Met {
        self.now += PACE_MS;
        let text = String::from_utf8_lossy(frame);
        self.session.receive(moment(self.now), Incoming::Text(&text));
        if dice.one_in(16) {
            self.session.tick(moment(self.now));
        }
        if dice.one_in(64) {
            let reset = Closed::Broken("reset".to_owned());
            self.session.end(moment(self.now), reset);
        }
        let mut met = Met::Taken;
        let mut events = 0;
        while let Some(event) = self.session.poll_event() {
            assert!(!self.ended, "something follows the end: {event:?}");
            events += 1;
            match event {
                RunClientEvent::Ended(ended) => {
                    let broken = format!("{ended:?}").starts_with("Broken");
                    met = if broken { Met::Cut } else { Met::Taken };
                    self.ended = true;
                }
                RunClientEvent::Dropped(_) => met = Met::Cut,
                _ => {}
            }
        }
        assert!(events <= 64, "one frame makes {events} events");
        let sent = std::iter::from_fn(|| self.session.poll_send()).collect::<Vec<_>>();
        assert!(sent.len() <= 4, "one frame makes the core say {}", sent.len());
        assert_eq!(self.ended, self.session.is_over());
        if sent.iter().any(|it| matches!(it, Outgoing::Close { .. })) {
            met = Met::Cut;
        }
        // What comes after the end changes nothing, so the ended attempt is kept for a while.
        if self.ended && (self.session.is_done() || dice.one_in(4)) {
            *self = Self::open();
        } else if self.session.wants_connection() {
            self.acknowledge();
            while let Some(event) = self.session.poll_event() {
                assert!(
                    !matches!(event, RunClientEvent::Ended(_)),
                    "an acknowledgment ends nothing"
                );
            }
        }
        met
    }
}

#[test]
fn t005_fuzz_run_client() {
    let stock = Stock::of_wire("run_v1", &["ack", "event", "log", "response", "token"], &WORDS)
        .with_name("abc-123", "r1");
    let mut attempt = Attempt::open();
    Fuzz::new("run_client").run(&stock, |dice, frame| attempt.meet(dice, frame));
}

/// The server's end: its runs, and one connection.
struct Server {
    book: Book,
    session: RunServer,
    watched: Option<(RunNo, WatcherNo)>,
    open: Vec<RunNo>,
    now: u64,
}

impl Server {
    fn start() -> Self {
        let limits = Limits { retain_bytes_max: 64 * 1024, ..Limits::default() };
        let session = RunServer::new(moment(0), &limits, Profile::Default);
        let book = Book::new(limits, Profile::Default);
        let mut server = Self { book, session, watched: None, open: Vec::new(), now: 0 };
        server.connect(
            r#"{"kind": "Request", "control": {"run_id": "r1", "mode": "mock"},
            "inputs": {}, "outputs": {}}"#,
        );
        server
    }

    /// Another connection, which asks for something.
    fn connect(&mut self, request: &str) -> Option<ServerEvent> {
        if let Some((_, watcher)) = self.watched.take() {
            self.book.leave(moment(self.now), watcher);
        }
        let now = moment(self.now);
        self.session = RunServer::new(now, &Limits::default(), Profile::Default);
        let heard = self.hear(request);
        if let Some(ServerEvent::Request { request, .. }) = &heard {
            match self.book.open(Credential(1), request, None) {
                OpenResult::Started { run, watcher, superseded } => {
                    self.open.retain(|run| !superseded.contains(run));
                    self.open.push(run);
                    self.watched = Some((run, watcher));
                }
                OpenResult::Attached { run, watcher } => self.watched = Some((run, watcher)),
                OpenResult::Unfit(_) | OpenResult::Refused(_) => {}
            }
            self.session.ack(moment(self.now));
        }
        heard
    }

    fn hear(&mut self, text: &str) -> Option<ServerEvent> {
        self.session.receive(moment(self.now), Incoming::Text(text));
        self.session.poll_event()
    }

    fn meet(&mut self, dice: &mut Dice, frame: &[u8]) -> Met {
        self.now += PACE_MS;
        let text = String::from_utf8_lossy(frame).into_owned();
        // A request begins a connection; everything else goes on with the one there is.
        let is_request = text.contains("\"Request\"");
        let heard = if is_request { self.connect(&text) } else { self.hear(&text) };
        if let (Some(ServerEvent::Cancel), Some((run, _))) = (&heard, self.watched) {
            self.book.cancel(run);
        }
        self.work(dice);
        if self.session.is_closed() {
            self.connect(
                r#"{"kind": "Request", "control": {"run_id": "r2"}, "inputs": {},
                "outputs": {}}"#,
            );
            return Met::Cut;
        }
        match heard {
            Some(ServerEvent::Unfit(_)) => Met::Refused,
            Some(ServerEvent::Request { .. } | ServerEvent::Cancel | ServerEvent::Stepped(_))
            | None => Met::Taken,
        }
    }

    /// Says something in the name of some run, and ends some; what is kept stays small.
    fn work(&mut self, dice: &mut Dice) {
        if let Some((run, watcher)) = self.watched {
            let said = RunReport::Log {
                level: LogLevel::Info,
                text: "x".repeat(dice.below(2_000)),
                at: None,
            };
            let _ = self.book.say(moment(self.now), run, said);
            while let NextFrames::Frames(_) = self.book.next(watcher) {}
        }
        while self.open.len() > 4 || (!self.open.is_empty() && dice.one_in(8)) {
            let run = self.open.remove(0);
            self.book.finish(moment(self.now), run, Ending::failed("ERR_X", "over"));
            let again = self.book.finish(moment(self.now), run, Ending::failed("ERR_X", "again"));
            assert!(again.is_none(), "a run ended twice");
        }
        self.book.time(moment(self.now));
        assert!(self.book.open_runs() <= 8, "{} runs are open", self.book.open_runs());
        assert!(self.book.ended_runs() <= 4_096, "{} runs are kept", self.book.ended_runs());
    }
}

#[test]
fn t005_fuzz_run_server() {
    let stock =
        Stock::of_wire("run_v1", &["request", "cancel", "ack"], &WORDS).with_name("abc-123", "r1");
    let mut server = Server::start();
    Fuzz::new("run_server").run(&stock, |dice, frame| server.meet(dice, frame));
}
