//! T5 and T6: first frames that are wrong, and inputs that are none.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use wharf_vocab::Object;
use wharf_wire::run_v1::code;

use super::judged;
use crate::findings::Findings;
use crate::run::frames::{request, run_id};
use crate::run::rules::how;
use crate::run::server::Server;
use crate::run::session::{End, Session};

/// How long a server may take to judge a frame by its length alone.
const BY_LENGTH: Duration = Duration::from_millis(250);

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    wrong_frames(server, findings).await;
    not_text(server, findings).await;
    inputs(server, findings).await;
}

async fn wrong_frames(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let texts = [
        ("a list", "[]".to_owned(), 1002),
        ("a text", "\"Request\"".to_owned(), 1002),
        ("null", "null".to_owned(), 1002),
        ("no kind", json!({ "control": { "run_id": run } }).to_string(), 1002),
        ("another kind", json!({ "kind": "Ack", "control": { "run_id": run } }).to_string(), 1002),
        ("no control", json!({ "kind": "Request" }).to_string(), 1008),
        ("no run id", json!({ "kind": "Request", "control": {} }).to_string(), 1008),
        ("an empty run id", request("", &Object::new()).to_string(), 1008),
        ("half an object", "{\"kind\":".to_owned(), 1007),
        ("no JSON", "hello".to_owned(), 1007),
        ("NaN", "{\"kind\":\"Request\",\"inputs\":{\"x\":NaN}}".to_owned(), 1007),
    ];
    for (named, text, code) in texts {
        let Ok(mut session) = server.dial().await else { continue };
        session.send_message(Message::text(text)).await;
        closed(server, session, named, code, findings).await;
    }
}

async fn not_text(server: &Server, findings: &mut Findings) {
    if let Ok(mut session) = server.dial().await {
        let bytes = request(&run_id(), &Object::new()).to_string().into_bytes();
        session.send_message(Message::binary(bytes)).await;
        closed(server, session, "a binary frame", 1003, findings).await;
    }
    if let Ok(mut session) = server.dial().await {
        session.send_raw_text(b"{\"kind\":\"\xff\xfe\"}", Duration::ZERO).await;
        closed(server, session, "bytes that are not UTF-8", 1007, findings).await;
    }
    if let Ok(mut session) = server.dial().await {
        let large = vec![b' '; server.options.frame_bytes_max + 1];
        session.send_raw_text(&large, BY_LENGTH).await;
        closed(server, session, "a frame that is too large", 1009, findings).await;
    }
}

async fn closed(
    server: &Server,
    mut session: Session,
    named: &str,
    code: u16,
    findings: &mut Findings,
) {
    session.read_to_end(server.options.reply).await;
    let seen = session.finish();
    let wrong = format!("After {named} the connection {}, not closed with {code}.", how(&seen));
    let right = matches!(&seen.end, Some(End::Closed { code: got, .. }) if *got == code);
    findings.check(5, right, wrong);
    let silent = seen.frames.is_empty();
    findings.check(5, silent, format!("After {named} a frame came, not only a close."));
    if server.is_full() {
        let told = !matches!(&seen.end, Some(End::Closed { reason, .. }) if reason.is_empty());
        findings.check(5, told, format!("After {named} the close has no reason."));
    }
}

/// T6: null and missing mean empty, everything else is refused before the start.
async fn inputs(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let plain = judged(server, &run, &request(&run, &Object::new()), findings).await;
    let Some(expected) = plain.outcome() else { return };
    for (named, empty) in [("null", Some(Value::Null)), ("missing", None)] {
        let run = run_id();
        let mut ask = request(&run, &Object::new());
        for key in ["inputs", "outputs"] {
            match (&empty, ask.as_object_mut()) {
                (Some(value), _) => ask[key] = value.clone(),
                (None, Some(fields)) => drop(fields.remove(key)),
                (None, None) => {}
            }
        }
        let seen = judged(server, &run, &ask, findings).await;
        if let Some(outcome) = seen.outcome() {
            let wrong = format!("Empty inputs gave {expected}, inputs that are {named} {outcome}.");
            findings.check(6, outcome == expected, wrong);
        }
    }
    for key in ["inputs", "outputs"] {
        for value in [json!([]), json!("text"), json!(3), json!(false)] {
            let run = run_id();
            let mut ask = request(&run, &Object::new());
            ask[key] = value.clone();
            let seen = judged(server, &run, &ask, findings).await;
            let outcome = seen.ended_as();
            let right = outcome == code::INPUTS;
            findings.check(6, right, format!("With {key} {value} the run ended as {outcome}."));
            let started = format!("With {key} {value} the handler had started.");
            findings.check(6, !seen.worked(), started);
        }
    }
}
