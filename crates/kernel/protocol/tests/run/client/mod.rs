//! The end that asks, against a script.

mod attach;
mod endings;
mod limits;
mod order;
mod pair;
mod steps;

use serde_json::{Value, json};
use wharf_protocol::run::client::{Config, Ended, RunClient, RunClientEvent};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::run_v1::{Mode, RequestControl, RunRequest};

/// A session, a clock that is moved by hand, and what the session wants.
pub(crate) struct Stage {
    pub(crate) session: RunClient,
    pub(crate) ms: u64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        adjust(&mut config);
        Self { session: RunClient::new(config, request()), ms: 1_000 }
    }

    /// A session whose request the server has acknowledged.
    pub(crate) fn open() -> Self {
        Self::new().opened()
    }

    pub(crate) fn opened(mut self) -> Self {
        self.session.connected(self.now());
        assert!(matches!(self.session.poll_send(), Some(Outgoing::Text(_))));
        assert_eq!(self.say(&json!({"kind": "Ack"})), [RunClientEvent::Accepted { acked: true }]);
        self
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::new(self.ms, Timestamp(0))
    }

    /// The server says something; what follows from it.
    pub(crate) fn say(&mut self, frame: &Value) -> Vec<RunClientEvent> {
        self.say_text(&frame.to_string())
    }

    pub(crate) fn say_text(&mut self, text: &str) -> Vec<RunClientEvent> {
        self.session.receive(self.now(), Incoming::Text(text));
        self.events()
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.ms += ms;
        self.session.tick(self.now());
    }

    pub(crate) fn events(&mut self) -> Vec<RunClientEvent> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    pub(crate) fn sent(&mut self) -> Vec<Outgoing> {
        std::iter::from_fn(|| self.session.poll_send()).collect()
    }

    /// The messages that were sent, as JSON.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        let text = |sent| match sent {
            Outgoing::Text(text) => Some(serde_json::from_str(&text).expect("JSON")),
            _ => None,
        };
        self.sent().into_iter().filter_map(text).collect()
    }

    pub(crate) fn drop_connection(&mut self) -> Vec<RunClientEvent> {
        self.session.end(self.now(), Closed::Broken("reset".to_owned()));
        self.events()
    }
}

pub(crate) fn request() -> RunRequest {
    let control = RequestControl {
        attempt: 2,
        refs: Some(vec!["file".to_owned()]),
        deadline_ms: Some(9_000),
        required: vec!["out".to_owned()],
        ..RequestControl::new("r1", Mode::Real)
    };
    RunRequest { control, inputs: object(json!({"a": 1})), outputs: object(json!({"out": "/x"})) }
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn log(seq: Option<u64>, text: &str) -> Value {
    json!({"kind": "Log", "control": {"run_id": "r1", "seq": seq}, "data": {"msg": text}})
}

pub(crate) fn success(control: Value, outputs: &Value) -> Value {
    let mut control = object(control);
    control.insert("status".to_owned(), "success".into());
    control.insert("final".to_owned(), true.into());
    json!({"kind": "Response", "control": control, "outputs": outputs})
}

/// The end among events, which must be the last of them.
#[track_caller]
pub(crate) fn end(events: &[RunClientEvent]) -> &Ended {
    let ends = events.iter().filter(|event| matches!(event, RunClientEvent::Ended(_))).count();
    assert_eq!(ends, 1, "{events:?}");
    match events.last() {
        Some(RunClientEvent::Ended(ended)) => ended,
        _ => panic!("something follows the end: {events:?}"),
    }
}
