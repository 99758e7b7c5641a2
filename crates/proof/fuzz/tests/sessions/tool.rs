//! Both ends of the wire of tools: whoever calls, and whoever serves.

use std::collections::BTreeSet;

use serde_json::json;
use wharf_fuzz::{Dice, Fuzz, Met, Stock};
use wharf_protocol::tool::{Limits, ToolAnswer, ToolEvent, ToolSession};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::Timestamp;
use wharf_wire::tool_v1::{Kind, Request};

const CALLS: [&str; 4] = ["r1", "r2", "r3", "r4"];
const WORDS: [&str; 6] = ["r1", "r2", "r3", "r4", "r5", "r6"];
/// So many frames, then the connection ends and another is made.
const FRAMES_MAX: u32 = 200;

const AT: Moment = Moment { ms: 0, at: Timestamp(0) };

struct End {
    session: ToolSession,
    /// Calls made here that are not answered yet.
    calls: BTreeSet<String>,
    /// Requests of the other side that are not answered yet.
    served: BTreeSet<String>,
    frames: u32,
}

impl End {
    fn connect(calls: &[&str]) -> Self {
        let mut session = ToolSession::new(true, false, Limits::default());
        for &id in calls {
            let (kind, method) = (Kind::Elicit, "get-location".to_owned());
            let request = Request { id: id.to_owned(), kind, method, payload: json!({}) };
            session.call(request).expect("made");
        }
        let calls = calls.iter().map(|&id| id.to_owned()).collect();
        Self { session, calls, served: BTreeSet::new(), frames: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, frame: &[u8], calls: &[&str]) -> Met {
        let before = self.session.counters();
        self.session.receive(AT, Incoming::Text(&String::from_utf8_lossy(frame)));
        self.events();
        while self.served.len() > 8 || (!self.served.is_empty() && dice.one_in(3)) {
            let Some(id) = self.served.pop_first() else { break };
            self.session.cost(&id, dice.roll());
            assert!(self.session.answer(&id, &ToolAnswer::Accepted(json!({"n": 1}))));
            assert!(!self.session.answer(&id, &ToolAnswer::Declined), "{id} was answered twice");
        }
        let mut bytes = 0;
        while let Some(Outgoing::Text(frame)) = self.session.poll_send() {
            bytes += frame.len();
        }
        assert!(bytes < 64 * 1024 && self.session.bytes_waiting() == 0);
        assert_eq!(self.session.calls_waiting(), self.calls.len());
        assert_eq!(self.session.served(), self.served.len());
        self.frames += 1;
        let met = if self.session.counters() == before { Met::Taken } else { Met::Refused };
        if self.frames >= FRAMES_MAX || (!calls.is_empty() && self.calls.is_empty()) {
            self.session.end(AT, Closed::ended());
            self.events();
            assert!(self.calls.is_empty() && self.served.is_empty(), "all is told to be over");
            *self = Self::connect(calls);
        }
        met
    }

    fn events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                ToolEvent::Answered { id, .. } => {
                    assert!(self.calls.remove(&id), "{id} was answered twice");
                }
                ToolEvent::Request(request) => {
                    assert!(self.served.insert(request.id.clone()), "{} came twice", request.id);
                }
                ToolEvent::Canceled { id } => {
                    assert!(self.served.remove(&id), "{id} was not open");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn k025_fuzz_tool_principal() {
    let stock = Stock::of_wire("tool_v1", &["response", "progress", "child", "cancel"], &WORDS);
    let mut end = End::connect(&CALLS);
    Fuzz::new("tool_principal").run(&stock, |dice, frame| end.meet(dice, frame, &CALLS));
}

#[test]
fn k025_fuzz_tool_operative() {
    let stock = Stock::of_wire("tool_v1", &["request", "cancel", "offer", "progress"], &WORDS);
    let mut end = End::connect(&[]);
    Fuzz::new("tool_operative").run(&stock, |dice, frame| end.meet(dice, frame, &[]));
}
