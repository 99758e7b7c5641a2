//! The end that works.

mod book;
mod fuzz;
mod interleavings;
mod retention;
mod session;
mod speech;

use serde_json::{Value, json};
use wharf_protocol::run::server::{
    Book, Credential, Ending, Limits, NextFrames, OpenResult, Profile, RunNo, RunServer,
    ServerEvent, WatcherNo,
};
use wharf_protocol::{Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Object, Timestamp};
use wharf_wire::run_v1::{
    Ack, FromServer, Mode, RequestControl, RunRequest, SteppedMessage, UnfitRequest,
    decode_from_server,
};

fn at(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(1_700_000_000_000 + ms))
}

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn request(run_id: &str, attempt: u32) -> RunRequest {
    let mut control = RequestControl::new(run_id, Mode::Mock);
    control.attempt = attempt;
    RunRequest { control, inputs: object(&json!({"a": 1})), outputs: Object::new() }
}

fn book(limits: Limits) -> Book {
    Book::new(limits, Profile::Default)
}

const ME: Credential = Credential(1);

#[track_caller]
fn started(book: &mut Book, request: &RunRequest) -> (RunNo, WatcherNo) {
    match book.open(ME, request, None) {
        OpenResult::Started { run, watcher, .. } => (run, watcher),
        other => panic!("not started but {other:?}"),
    }
}

#[track_caller]
fn attached(book: &mut Book, request: &RunRequest) -> WatcherNo {
    match book.open(ME, request, None) {
        OpenResult::Attached { watcher, .. } => watcher,
        other => panic!("not attached but {other:?}"),
    }
}

/// Everything a reader gets until it has to wait or to close, and the code it is closed with.
fn drain(book: &mut Book, watcher: WatcherNo) -> (Vec<Value>, Option<u16>) {
    let mut frames = Vec::new();
    loop {
        match book.next(watcher) {
            NextFrames::Frames(texts) => {
                frames.extend(texts.iter().map(|text| serde_json::from_str(text).expect("JSON")));
            }
            NextFrames::Wait => return (frames, None),
            NextFrames::Close(refusal) => return (frames, Some(refusal.code)),
        }
    }
}

fn done(outputs: &Value) -> Ending {
    Ending {
        result: Ok(object(outputs)),
        cost: Some(json!(1)),
        written: Default::default(),
        missing: Vec::new(),
    }
}

/// What a frame of the peer means.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Request(Box<RunRequest>),
    Unfit(UnfitRequest),
    Cancel,
    Stepped(Box<SteppedMessage>),
    Nothing,
    Close { code: u16, reason: String },
}

pub(crate) fn hears(session: &mut RunServer, now: Moment, incoming: Incoming<'_>) -> Heard {
    session.receive(now, incoming);
    match session.poll_event() {
        Some(ServerEvent::Request { request, .. }) => Heard::Request(request),
        Some(ServerEvent::Unfit(unfit)) => Heard::Unfit(unfit),
        Some(ServerEvent::Cancel) => Heard::Cancel,
        Some(ServerEvent::Stepped(stepped)) => Heard::Stepped(stepped),
        None => match session.poll_send() {
            Some(Outgoing::Close { code, reason }) => Heard::Close { code, reason },
            Some(other) => panic!("{other:?}"),
            None => Heard::Nothing,
        },
    }
}

pub(crate) fn hears_text(session: &mut RunServer, now: Moment, text: &str) -> Heard {
    hears(session, now, Incoming::Text(text))
}

/// The acknowledgment, if there is one now.
pub(crate) fn ack(session: &mut RunServer, now: Moment) -> Option<Ack> {
    session.ack(now);
    match session.poll_send()? {
        Outgoing::Text(text) => match decode_from_server(&text) {
            Ok(FromServer::Ack(ack)) => Some(ack),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
