//! Servers of the original text and of its authors' software, with their own frames.

use serde_json::{Value, json};
use wharf_domain::{Level, Progress};
use wharf_engine::NewRun;
use wharf_vocab::{RunId, RunKey, RunStatus, ToolId};

use crate::stage::{Plan, Stage, object, owner, world};
use crate::troupe::{Actor, Troupe};

/// A frame of the authors' software, as it stands in its file.
fn upstream(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/wire/testdata/run_v1/upstream");
    std::fs::read_to_string(format!("{folder}/{name}.json")).expect("readable").trim().to_owned()
}

fn phase(phase: &str, fraction: Option<f64>) -> Progress {
    Progress::Phase { phase: phase.to_owned(), fraction }
}

fn log(text: &str) -> Progress {
    Progress::Log { level: Level::Info, text: text.to_owned() }
}

/// A run of this id, and a connection on which nothing was said yet.
async fn asked(id: &str, outputs: Value) -> (Troupe, Stage, RunKey, Actor, Value) {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let tool = ToolId::new("test/tool@1").expect("valid");
    let inputs = object(json!({"prompt": "A cat playing piano", "duration": 10}));
    let run_id = Some(RunId::new(id).expect("valid"));
    let outputs = object(outputs);
    let new = NewRun { run_id, outputs, ..NewRun::new(tool, inputs, world()) };
    let run = stage.handle.runs().create(&owner(), new).await.expect("accepted").run.key.clone();
    let mut actor = troupe.accept().await;
    let request = actor.request().await;
    (troupe, stage, run, actor, request)
}

#[tokio::test]
async fn t007_example_3_of_the_original_text_runs_word_by_word() {
    let stream = include_str!("../../../../kernel/wire/testdata/run_v1/seed/example3.jsonl");
    let outputs = json!({"video.world": "/videos/cat-piano.mp4"});
    let (_troupe, stage, run, mut actor, request) = asked("r3", outputs).await;
    assert_eq!(request["control"]["run_id"], "r3");
    let put = request["outputs"]["video"].as_str().expect("an address");
    stage.objects.put_at(put, "a film").expect("good");
    for line in stream.lines() {
        // Only the address is another than in the text, which leaves it out.
        actor.say_text(line.replace("https://s3.../w1/videos/cat-piano.mp4?put", put)).await;
    }
    actor.close(1000, "").await;
    let expected = json!({"video": "world://default/videos/cat-piano.mp4"});
    assert_eq!(stage.outputs_of(&run).await, expected);
    assert_eq!(stage.end_of(&run).await.cost_micro, 200_000);
    assert_eq!(stage.file("/videos/cat-piano.mp4").await.as_deref(), Some("a film"));
    let said = [phase("started", None), log("Loading model"), phase("checkpoint", Some(0.5))];
    assert_eq!(stage.progress_of(&run).await, said);
}

#[tokio::test]
async fn t008_what_the_authors_software_streams_is_text_lines_and_progress() {
    let (_troupe, stage, run, mut actor, _) = asked("r1", json!({})).await;
    for name in ["ack", "event.started", "log", "token", "token", "event.paused", "response"] {
        actor.say_text(upstream(name)).await;
    }
    assert_eq!(stage.outputs_of(&run).await["tokens"], 2);
    assert_eq!(stage.end_of(&run).await.cost_micro, 100);
    let pieces = stage.progress_of(&run).await;
    let text: String = pieces.iter().filter_map(text_of).collect();
    assert_eq!(text, "Mock Mock ");
    let others: Vec<Progress> = pieces.into_iter().filter(|it| text_of(it).is_none()).collect();
    let stub = "Using generic handler stub - override protocol/handler.py";
    assert_eq!(others, [phase("started", None), log(stub), phase("paused", None)]);
}

fn text_of(piece: &Progress) -> Option<&str> {
    match piece {
        Progress::Text { channel, text } if channel == "text" => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn t039_an_envelope_that_reports_an_error_fails_the_run() {
    for name in ["envelope.error.meta", "envelope.error.execution_id"] {
        let (_troupe, stage, run, mut actor, _) = asked("r1", json!({})).await;
        actor.say_text(upstream("ack")).await;
        actor.say_text(upstream(name)).await;
        let fault = stage.fault_of(&run).await;
        assert_eq!(fault.details["code"], "ERR_PROVIDER", "{name}");
        assert_eq!(fault.message, "rate limited");
    }
}

#[tokio::test]
async fn t011_a_cost_that_was_reported_outlives_whatever_ends_the_attempt() {
    for last in [
        r#"{"kind":"Response","control":{"final":true}}"#,
        r#"{"kind":"Response","control":{"final":true,"status":"success","cost_micro":-1}}"#,
        r#"{"kind":"Log","control":{"run_id":"another"},"data":{"msg":"x"}}"#,
        "not even JSON",
        "",
    ] {
        let (_troupe, stage, run, mut actor, _) = asked("r1", json!({})).await;
        actor
            .say(json!({"kind": "Log", "control": {"cost_micro": 700}, "data": {"msg": "paid"}}))
            .await;
        stage.until_written(&run, |piece| *piece == log("paid")).await;
        if last.is_empty() {
            drop(actor);
        } else {
            actor.say_text(last.to_owned()).await;
        }
        let run = stage.end_of(&run).await;
        assert_eq!(run.status(), RunStatus::Failed, "{last}");
        assert_eq!(run.cost_micro, 700, "{last}");
    }
}

#[tokio::test]
async fn t011_a_run_is_stopped_when_what_it_reports_passes_its_budget() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let tool = ToolId::new("test/tool@1").expect("valid");
    let new = NewRun { budget_micro: Some(1_000), ..NewRun::new(tool, object(json!({})), world()) };
    let run = stage.handle.runs().create(&owner(), new).await.expect("accepted").run.key.clone();
    let (mut actor, _) = troupe.take().await;
    for cost in [400, 900, 1_300] {
        let control = json!({"cost_micro": cost, "final": false});
        actor.number(json!({"kind": "Response", "control": control, "outputs": {}})).await;
    }
    assert_eq!(actor.hear().await["kind"], "Cancel");
    actor.fail("ERR_CANCELED", "Stopped.").await;
    let run = stage.end_of(&run).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("an error");
    assert_eq!(error.code.as_str(), "budget.exceeded", "{error}");
    assert_eq!(run.cost_micro, 1_300);
}
