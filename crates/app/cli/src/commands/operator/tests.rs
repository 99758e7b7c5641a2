//! What an operator does with what it is told and what is typed.

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage};

use super::command::{self, ExecuteRule, OperatorCommand, Verb};
use super::desk::{OperatorInbox, OperatorRules};
use super::job::JobEnd;
use super::show::{self, OperatorDisplay, RequestFacts};
use crate::output::Output;

fn desk(rules: OperatorRules) -> (OperatorInbox, mpsc::Receiver<OperatorMessage>) {
    let (out, replies) = mpsc::channel(16);
    (OperatorInbox::new(rules, out, OperatorDisplay::new(Output::new(true))), replies)
}

fn message(value: Value) -> CoreMessage {
    serde_json::from_value(value).expect("a message")
}

fn question() -> CoreMessage {
    message(json!({"type": "ask", "req_id": "q-1", "task_id": "ST-1", "question":
        {"title": "How many?", "schema": {"type": "integer"}}}))
}

fn gate() -> CoreMessage {
    message(json!({"type": "hook_before", "req_id": "h-1", "task_id": "ST-2", "agent": "a/b",
        "attempt": 1}))
}

fn job() -> CoreMessage {
    message(json!({"type": "spawn", "req_id": "sp-1", "task_id": "ST-3", "agent": "coder",
        "attempt": 1, "capability_token": "secret-long", "worker_handle": "wh-secret",
        "directive": "hand over wh-secret"}))
}

#[test]
fn lines_are_commands() {
    let read = |line| command::read(line).expect("a command");
    assert_eq!(read("  list "), OperatorCommand::List);
    assert_eq!(read(""), OperatorCommand::Nothing);
    let about = |verb, req: &str, words: &str| OperatorCommand::About {
        verb,
        req: req.to_owned(),
        words: words.to_owned(),
    };
    assert_eq!(read("deny 1  not on a Friday"), about(Verb::Deny, "1", "not on a Friday"));
    assert_eq!(read(r#"answer q-1 {"a": 1}"#), about(Verb::Answer, "q-1", r#"{"a": 1}"#));
    for wrong in ["approve", "take 1", "dance"] {
        assert!(command::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn words_become_what_the_schema_asks_for() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    assert_eq!(command::value("3", Some(&number)), json!(3));
    assert_eq!(command::value("3", Some(&text)), json!("3"));
    assert_eq!(command::value("dark blue", Some(&text)), json!("dark blue"));
    assert_eq!(command::value("{\"a\":1}", None), json!({"a": 1}));
}

#[test]
fn rules_name_agents() {
    let rules = [command::rule("*=any").expect("one"), command::rule("a=x=y").expect("two")];
    assert_eq!(rules[1], ExecuteRule { agent: "a".into(), command: "x=y".into() });
    assert_eq!(command::command_for(&rules, "a"), Some("x=y"));
    assert_eq!(command::command_for(&rules, "b"), Some("any"));
    assert!(command::rule("nothing").is_err() && command::rule("a=").is_err());
}

#[tokio::test]
async fn o005_a_reply_is_given_again_when_the_request_comes_again() {
    let (mut desk, mut replies) = desk(OperatorRules::default());
    desk.hear(question()).expect("shown");
    let id = desk.find("1").expect("found");
    desk.answer(&id, json!(3)).expect("sent");
    let first = replies.try_recv().expect("a reply");
    desk.hear(question()).expect("shown");
    assert_eq!(replies.try_recv().expect("again"), first);
    assert!(desk.find("q-1").is_err(), "nothing waits any more");
}

#[tokio::test]
async fn o012_a_refused_reply_leaves_the_request_open() {
    let (mut desk, mut replies) = desk(OperatorRules::default());
    desk.hear(question()).expect("shown");
    desk.answer("q-1", json!("many")).expect("told");
    assert!(replies.try_recv().is_err(), "what cannot fit is not sent");
    desk.answer("q-1", json!(2)).expect("sent");
    replies.try_recv().expect("a reply");
    desk.hear(message(json!({"type": "error", "req_id": "q-1", "code": "ask.answer_invalid",
        "message": "It does not fit."})))
        .expect("shown");
    assert_eq!(desk.find("q").as_deref(), Ok("q-1"));
    desk.answer("q-1", json!(3)).expect("sent");
    desk.hear(message(json!({"type": "error", "req_id": "q-1", "code": "ask.decided",
        "message": "It is over."})))
        .expect("shown");
    assert!(desk.find("q-1").is_err());
}

#[tokio::test]
async fn what_is_automatic_needs_nobody() {
    let rules = OperatorRules {
        approve_all: true,
        execute: vec![command::rule("coder=./run").expect("a rule")],
        ..OperatorRules::default()
    };
    let (mut desk, mut replies) = desk(rules);
    desk.hear(gate()).expect("shown");
    let allowed = OperatorMessage::HookAck { req_id: "h-1".into(), ok: true, reason: None };
    assert_eq!(replies.try_recv().expect("a reply"), allowed);
    desk.hear(job()).expect("shown");
    let starts = desk.take_starts();
    assert_eq!(starts.len(), 1);
    assert_eq!(
        (starts[0].job.command.as_str(), starts[0].job.handle.as_str()),
        ("./run", "wh-secret")
    );
    desk.hear(job()).expect("shown");
    assert!(desk.take_starts().is_empty(), "a job that comes again has its worker already");
    desk.worker_ended("sp-1", &JobEnd::Given { ok: true }).expect("shown");
    assert!(matches!(replies.try_recv(), Ok(OperatorMessage::SpawnAck { ok: true, .. })));
}

#[tokio::test]
async fn the_wrong_kind_of_reply_is_not_sent() {
    let (mut desk, mut replies) = desk(OperatorRules::default());
    desk.hear(gate()).expect("shown");
    desk.answer("h-1", json!(1)).expect("told");
    desk.start("h-1", "x".into()).expect("told");
    desk.give_up("h-1", None, true).expect("told");
    assert!(replies.try_recv().is_err());
    assert_eq!(desk.find("1").as_deref(), Ok("h-1"));
}

#[test]
fn what_is_shown_opens_nothing() {
    let words = show::words(Some(1), &job(), &RequestFacts::default());
    let shown = show::event(Some(1), &job()).to_string() + &words;
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("coder") && shown.contains("take 1 COMMAND"), "{shown}");
    let taken = RequestFacts { is_taken: true, ..RequestFacts::default() };
    let words = show::words(Some(1), &job(), &taken);
    assert!(!words.contains("COMMAND"), "what a rule carries out needs nobody: {words}");
}

#[test]
fn o007_a_request_says_whose_it_is_and_how_long_it_waits() {
    let gate = message(json!({"type": "hook_before", "req_id": "h-1", "task_id": "ST-2",
        "agent": "a/b", "attempt": 2, "run_id": "r-1", "world": "lab", "deadline_ms": 299_500}));
    let Value::Object(inputs) = json!({"to": "ada\u{1b}[2J", "n": 2}) else { panic!("an object") };
    let facts = RequestFacts { inputs: Some(inputs), is_taken: false };
    let words = show::words(Some(4), &gate, &facts);
    assert!(words.contains("\n   inputs: n=2 to=\"ada"), "{words}");
    assert!(
        words.starts_with(
            "#4 approval: a/b is about to run, attempt 2 (run r-1, world lab, 5m left)"
        ),
        "{words}"
    );
    assert!(words.ends_with("wharf runs show r-1 --world lab"), "{words}");
}
