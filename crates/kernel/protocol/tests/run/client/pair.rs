//! Both ends against each other, over connections that break at any message.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use serde_json::json;
use wharf_protocol::run::client::{Config, Ended, RunClient, RunClientEvent};
use wharf_protocol::run::server::{
    Book, Credential, Ending, Limits, NextFrames, OpenResult, Profile, RunNo, RunReport, RunServer,
    WatcherNo,
};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::Timestamp;
use wharf_wire::run_v1::{Frame, LogLevel, encode};

use super::{object, request};
use crate::server::{Heard, ack, hears_text};

/// Lines that the run says before its end.
const LINES: usize = 5;

/// What is on its way to the client.
enum Coming {
    Text(String),
    Close(u16, String),
}

struct Connection {
    session: RunServer,
    watcher: Option<WatcherNo>,
    to_server: VecDeque<String>,
    to_client: VecDeque<Coming>,
}

struct Pair {
    client: RunClient,
    book: Book,
    connection: Option<Connection>,
    run: Option<RunNo>,
    said: usize,
    ms: u64,
    starts: usize,
    cancels: usize,
    lines: Vec<String>,
    ends: Vec<Ended>,
    gaps: usize,
}

/// Something that happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The next message arrives at the server.
    ToServer,
    /// The next message arrives at the client.
    ToClient,
    /// The run says a line, or ends.
    Work,
    /// The connection breaks, with all that is on its way.
    Cut,
    /// The client wants the run to stop.
    Cancel,
}

impl Pair {
    fn new() -> Self {
        let config = Config { numbered: true, ..Config::default() };
        let mut pair = Self {
            client: RunClient::new(config, request()),
            book: Book::new(Limits::default(), Profile::Default),
            connection: None,
            run: None,
            said: 0,
            ms: 0,
            starts: 0,
            cancels: 0,
            lines: Vec::new(),
            ends: Vec::new(),
            gaps: 0,
        };
        pair.settle();
        pair
    }

    fn now(&self) -> Moment {
        Moment::new(self.ms, Timestamp(self.ms))
    }

    fn step(&mut self, step: Step) {
        self.ms += 1;
        match step {
            Step::ToServer => self.reach_server(),
            Step::ToClient => self.reach_client(),
            Step::Work => self.work(),
            Step::Cut => self.cut(),
            Step::Cancel => self.client.cancel(),
        }
        self.settle();
    }

    fn reach_server(&mut self) {
        let now = self.now();
        let Some(connection) = &mut self.connection else { return };
        let Some(text) = connection.to_server.pop_front() else { return };
        match hears_text(&mut connection.session, now, &text) {
            Heard::Request(asked) => {
                let (run, watcher) = match self.book.open(Credential(1), &asked, None) {
                    OpenResult::Started { run, watcher, .. } => {
                        self.starts += 1;
                        (run, watcher)
                    }
                    OpenResult::Attached { run, watcher } => (run, watcher),
                    other => panic!("{other:?}"),
                };
                assert!(self.run.is_none_or(|known| known == run));
                self.run = Some(run);
                connection.watcher = Some(watcher);
                let ack = ack(&mut connection.session, now).expect("once");
                connection.to_client.push_back(Coming::Text(encode(&Frame::Ack(ack))));
            }
            Heard::Cancel => self.cancels += 1,
            Heard::Nothing => {}
            other => panic!("{other:?}"),
        }
    }

    fn reach_client(&mut self) {
        let now = self.now();
        let Some(connection) = &mut self.connection else { return };
        match connection.to_client.pop_front() {
            Some(Coming::Text(text)) => self.client.receive(now, Incoming::Text(&text)),
            Some(Coming::Close(code, reason)) => {
                self.client.end(now, Closed::With { code, reason });
                self.leave();
            }
            None => {}
        }
    }

    fn work(&mut self) {
        let (now, Some(run)) = (self.now(), self.run) else { return };
        if self.said < LINES {
            let text = format!("line {}", self.said);
            let said = RunReport::Log { level: LogLevel::Info, text, at: None };
            self.book.say(now, run, said).expect("few");
        } else {
            let (result, cost) = (Ok(object(json!({"n": 1}))), Some(json!(7)));
            let ending = Ending { result, cost, written: BTreeMap::new(), missing: Vec::new() };
            self.book.finish(now, run, ending);
        }
        self.said += 1;
    }

    fn cut(&mut self) {
        if self.connection.is_some() {
            self.leave();
            self.client.end(self.now(), Closed::Broken("cut".to_owned()));
        }
    }

    fn leave(&mut self) {
        let now = self.now();
        if let Some(watcher) = self.connection.take().and_then(|connection| connection.watcher) {
            self.book.leave(now, watcher);
        }
    }

    /// Connects if that is wanted, and puts on their way what both ends have to say.
    fn settle(&mut self) {
        let now = self.now();
        if self.connection.is_none() && self.client.wants_connection() {
            self.client.connected(now);
            self.connection = Some(Connection {
                session: RunServer::new(now, &Limits::default(), Profile::Default),
                watcher: None,
                to_server: VecDeque::new(),
                to_client: VecDeque::new(),
            });
        }
        while let Some(sent) = self.client.poll_send() {
            if let (Outgoing::Text(text), Some(connection)) = (sent, &mut self.connection) {
                connection.to_server.push_back(text);
            }
        }
        if let Some(connection) = &mut self.connection
            && let Some(watcher) = connection.watcher
        {
            loop {
                match self.book.next(watcher) {
                    NextFrames::Frames(frames) => {
                        connection.to_client.extend(frames.into_iter().map(Coming::Text));
                    }
                    NextFrames::Wait => break,
                    NextFrames::Close(refusal) => {
                        let close = Coming::Close(refusal.code, refusal.reason.to_owned());
                        connection.to_client.push_back(close);
                        connection.watcher = None;
                        self.book.leave(now, watcher);
                        break;
                    }
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            assert!(self.ends.is_empty(), "something follows the end: {event:?}");
            match event {
                RunClientEvent::Log { text, .. } => self.lines.push(text),
                RunClientEvent::Gap { .. } => self.gaps += 1,
                RunClientEvent::Ended(ended) => self.ends.push(ended),
                _ => {}
            }
        }
    }

    /// Lets both ends come to their end without further trouble.
    fn finish(&mut self) {
        for _ in 0..100 {
            for step in [Step::ToServer, Step::ToClient, Step::Work] {
                self.step(step);
            }
        }
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(self.starts, 1, "a run begins once");
        assert_eq!(self.gaps, 0);
        let expected: Vec<_> = (0..LINES).map(|n| format!("line {n}")).collect();
        assert_eq!(self.lines, expected);
        let [Ended::Succeeded { outputs, cost_micro: 7, .. }] = &self.ends[..] else {
            panic!("{:?}", self.ends)
        };
        assert_eq!(outputs, &object(json!({"n": 1})));
        assert!(self.client.is_over() && !self.client.wants_connection());
    }
}

/// An undisturbed run, step by step.
fn calm() -> Vec<Step> {
    let round = [Step::ToServer, Step::ToClient, Step::Work, Step::ToClient];
    (0..8).flat_map(|_| round).collect()
}

#[test]
fn t010_both_ends_agree_on_one_end() {
    let mut pair = Pair::new();
    calm().into_iter().for_each(|step| pair.step(step));
    pair.finish();
    pair.check();
}

#[test]
fn t042_a_connection_may_break_at_any_message_and_then_at_any_other() {
    let steps = calm();
    for first in 0..steps.len() {
        for second in first..=steps.len() {
            let mut pair = Pair::new();
            for (at, step) in steps.iter().enumerate() {
                if at == first || at == second {
                    pair.step(Step::Cut);
                }
                pair.step(*step);
            }
            pair.finish();
            pair.check();
        }
    }
}

#[test]
fn t019_a_cancel_reaches_the_server_over_a_connection_that_breaks_at_any_message() {
    let steps = calm();
    // Once the end has arrived there is nothing to cancel.
    for at in 0..16 {
        let mut pair = Pair::new();
        for (now, step) in steps.iter().enumerate() {
            if now == at {
                pair.step(Step::Cancel);
                pair.step(Step::Cut);
            }
            pair.step(*step);
        }
        pair.finish();
        pair.check();
        assert!(pair.cancels >= 1, "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn t017_whatever_happens_to_connections_a_run_is_heard_once_and_ends_once(
        steps in proptest::collection::vec(
            prop_oneof![
                4 => Just(Step::ToServer),
                6 => Just(Step::ToClient),
                3 => Just(Step::Work),
                2 => Just(Step::Cut),
                1 => Just(Step::Cancel),
            ],
            0..120,
        )
    ) {
        let mut pair = Pair::new();
        steps.into_iter().for_each(|step| pair.step(step));
        pair.finish();
        pair.check();
    }

    #[test]
    fn whatever_a_server_says_an_attempt_ends_at_most_once(
        texts in proptest::collection::vec(frame(), 0..40)
    ) {
        let mut session = RunClient::new(Config::default(), request());
        session.connected(Moment::new(0, Timestamp(0)));
        let mut ends = 0;
        for (ms, text) in texts.into_iter().enumerate() {
            session.receive(Moment::new(ms as u64, Timestamp(0)), Incoming::Text(&text));
            while let Some(event) = session.poll_event() {
                prop_assert_eq!(ends, 0, "nothing follows the end");
                ends += usize::from(matches!(event, RunClientEvent::Ended(_)));
            }
            prop_assert_eq!(ends == 1, session.is_over());
        }
    }
}

/// Anything that a server might send, most of it nearly right.
fn frame() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("Ack"),
        Just("Log"),
        Just("Event"),
        Just("Response"),
        Just("Token"),
        Just("Request"),
    ];
    let number = prop_oneof![
        Just(json!(null)),
        (0..9_u64).prop_map(|n| json!(n)),
        Just(json!(-1)),
        Just(json!(u64::MAX)),
        Just(json!(0.5)),
        Just(json!("x")),
    ];
    let status = prop_oneof![
        Just(json!("success")),
        Just(json!("error")),
        Just(json!(null)),
        Just(json!(1))
    ];
    let built = (kind, number.clone(), number, status, any::<bool>()).prop_map(
        |(kind, seq, cost, status, is_final)| {
            json!({
                "kind": kind,
                "control": {
                    "seq": seq, "cost_micro": cost, "status": status, "final": is_final,
                },
                "data": {"msg": "x", "phase": "checkpoint", "progress": 0.5},
                "outputs": {"k": "v"},
            })
            .to_string()
        },
    );
    prop_oneof![8 => built, 1 => ".{0,20}"]
}
