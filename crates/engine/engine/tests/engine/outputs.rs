//! Outputs that go to files: written by the provider, handed over, or written for it.

use std::sync::Arc;

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, object, outputs_of, stream, written};
use serde_json::{Value, json};
use wharf_domain::{Level, Progress, Run, ToolDef};
use wharf_engine::{Attempt, AttemptOutputs, HistoryItem, WrittenFile};
use wharf_ports::{ManualClock, ObjectErrorKind};
use wharf_vocab::{B3, Code, RunStatus, Timestamp};

struct Stage {
    bench: Bench,
    peer: Peer,
}

impl Stage {
    async fn new() -> Self {
        Self::with(tool("acme/work")).await
    }

    async fn with(def: ToolDef) -> Self {
        let bench = Bench::new().await;
        let peer = Peer::join(&bench.handle, "acme", vec![def]).await;
        Self { bench, peer }
    }

    async fn start(&self, outputs: Value) -> (Arc<Run>, Attempt) {
        let run = self.bench.start_with("acme/work", json!({}), outputs).await.expect("accepted");
        (run, self.peer.next().await)
    }

    async fn end(&self, run: &Run, attempt: &Attempt, outputs: Value) -> Arc<Run> {
        self.end_with(run, attempt, object(outputs).into()).await
    }

    async fn end_with(&self, run: &Run, attempt: &Attempt, outputs: AttemptOutputs) -> Arc<Run> {
        attempt.succeeded(outputs, 0).await.expect("told");
        self.bench.end_of(&run.key).await
    }

    async fn warnings(&self, run: &Run) -> Vec<String> {
        let events = self.bench.events(&run.key, 0).await;
        let lines = events.into_iter().filter_map(|event| match event.item {
            HistoryItem::Progress(Progress::Log { level: Level::Warn, text }) => Some(text),
            _ => None,
        });
        lines.collect()
    }
}

fn error(run: &Run) -> &wharf_vocab::Fault {
    run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("did not succeed")
}

#[tokio::test]
async fn t027_values_are_written_as_text_bytes_or_json() {
    let stage = Stage::new().await;
    let outputs = json!({
        "text.world": "/a.txt", "data.world": "/b.json", "raw.world": "/c.png", "n": "world://default/d",
    });
    let (run, attempt) = stage.start(outputs).await;
    let given = json!({
        "text": "grüß", "data": {"a": [1]}, "raw": {"$bytes": "aGk="}, "n": 7, "inline": "stays",
    });
    let run = stage.end(&run, &attempt, given).await;
    assert_eq!(
        outputs_of(&run),
        json!({
            "text": "world://default/a.txt", "data": "world://default/b.json",
            "raw": "world://default/c.png", "n": "world://default/d", "inline": "stays",
        })
    );
    for (at, holds) in
        [("/a.txt", "grüß"), ("/b.json", "{\"a\":[1]}"), ("/c.png", "hi"), ("/d", "7")]
    {
        assert_eq!(stage.bench.get(at).await.as_deref(), Some(holds), "{at}");
    }
    let kinds: Vec<_> = run.artifacts.iter().map(|file| file.media_type.as_str()).collect();
    let wanted =
        ["application/json", "application/octet-stream", "image/png", "text/plain; charset=utf-8"];
    assert_eq!(kinds, wanted);
    assert_eq!(stage.warnings(&run).await, [] as [&str; 0]);
}

#[tokio::test]
async fn t028_what_was_asked_for_and_not_produced_is_null_with_a_warning() {
    let stage = Stage::new().await;
    let outputs = json!({
        "a.world": "/a", "b.world": "/b", "c.world": "/c", "d": "https://drop.example/d",
    });
    let (run, attempt) = stage.start(outputs).await;
    attempt.data().output_addresses().expect("made");
    let run = stage.end_with(&run, &attempt, written(json!({"b": null}), &["c"])).await;
    assert_eq!(outputs_of(&run), json!({"a": null, "b": null, "c": null, "d": null}));
    let warnings = stage.warnings(&run).await;
    for key in ["a", "b", "c", "d"] {
        let named = |line: &String| line.contains(&format!("`{key}`"));
        assert_eq!(warnings.iter().filter(|line| named(line)).count(), 1, "{warnings:?}");
    }
    assert_eq!(run.artifacts, []);
}

#[tokio::test]
async fn t028_a_file_from_before_the_attempt_was_not_produced_by_it() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let bench = Bench::at(&clock).await;
    bench.put("/a", "old").await;
    clock.advance_ms(60_000);
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let mut shown = Vec::new();
    for writes in [false, true] {
        let run = bench.start_with("acme/work", json!({}), json!({"a.world": "/a"})).await;
        let attempt = peer.next().await;
        let address = attempt.data().output_addresses().expect("made")["a"].clone();
        if writes {
            bench.objects.put_at(&address, "new").expect("good");
        }
        attempt.succeeded(written(json!({}), &["a"]), 0).await.expect("told");
        shown.push(outputs_of(&*bench.end_of(&run.expect("accepted").key).await)["a"].clone());
    }
    assert_eq!(shown, [json!(null), json!("world://default/a")]);
}

#[tokio::test]
async fn t035_an_echo_of_an_address_or_of_its_reference_says_that_it_was_written() {
    let stage = Stage::new().await;
    for echo in ["address", "bare", "reference"] {
        let (run, attempt) = stage.start(json!({"a.world": "/a"})).await;
        let address = attempt.data().output_addresses().expect("made")["a"].clone();
        stage.bench.objects.put_at(&address, echo).expect("good");
        let said = match echo {
            "address" => address.clone(),
            "bare" => address.split('?').next().expect("a part").to_owned(),
            _ => "world://default/a".to_owned(),
        };
        let run = stage.end(&run, &attempt, json!({"a": said})).await;
        assert_eq!(outputs_of(&run), json!({"a": "world://default/a"}), "{echo}");
        assert_eq!(stage.bench.get("/a").await.as_deref(), Some(echo));
    }
}

#[tokio::test]
async fn t030_a_file_that_is_not_what_the_tool_says_it_wrote_fails_the_attempt() {
    let stage = Stage::new().await;
    let hash = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    let b3 = Some(B3::parse(hash).expect("a hash"));
    for said in [WrittenFile { bytes: Some(4), b3: None }, WrittenFile { bytes: None, b3 }] {
        let (run, attempt) = stage.start(json!({"a.world": "/a"})).await;
        let address = attempt.data().output_addresses().expect("made")["a"].clone();
        stage.bench.objects.put_at(&address, "three").expect("good");
        let written = [("a".to_owned(), said)].into();
        let given = AttemptOutputs { written, ..AttemptOutputs::default() };
        let run = stage.end_with(&run, &attempt, given).await;
        assert!(error(&run).is(Code::ArtifactChecksum), "{run:?}");
        assert_eq!(error(&run).details["key"], "a");
    }
}

#[tokio::test]
async fn an_output_that_nobody_asked_for_becomes_a_local_file_if_it_was_handed_over() {
    let stage = Stage::new().await;
    let (run, attempt) = stage.start(json!({})).await;
    let data = attempt.data();
    data.write("log.txt", 2, stream("hi")).await.expect("written");
    for bad in ["a/../b", "", "@x"] {
        let fault = data.write(bad, 0, stream("")).await.expect_err("no name of a file");
        assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
    }
    let run = stage.end_with(&run, &attempt, written(json!({}), &["log.txt"])).await;
    let at = format!("/@{}/log.txt", run.key.run);
    assert_eq!(outputs_of(&run), json!({"log.txt": format!("world://default{at}")}));
    assert_eq!(stage.bench.get(&at).await.as_deref(), Some("hi"));

    let (run, attempt) = stage.start(json!({})).await;
    let run = stage.end_with(&run, &attempt, written(json!({}), &["x"])).await;
    assert!(error(&run).is(Code::ToolInvalidOutput), "{run:?}");
    assert_eq!(error(&run).details["key"], "x");
}

#[tokio::test]
async fn a_body_of_another_size_is_not_taken_and_another_try_counts() {
    let stage = Stage::new().await;
    let (run, attempt) = stage.start(json!({"a.world": "/a"})).await;
    let fault = attempt.data().write("a", 3, stream("four")).await.expect_err("another size");
    assert!(fault.is(Code::ArtifactChecksum), "{fault}");
    assert_eq!(stage.bench.get("/a").await, None);
    attempt.data().write("a", 4, stream("four")).await.expect("written");
    let run = stage.end(&run, &attempt, json!({})).await;
    assert_eq!(outputs_of(&run), json!({"a": "world://default/a"}));
}

#[tokio::test]
async fn r124_outputs_that_are_files_need_not_fit_the_schema_and_all_others_must() {
    let schema = json!({
        "type": "object",
        "properties": {"image": {"type": "object"}, "n": {"type": "integer"}},
        "required": ["image"],
        "additionalProperties": false,
    });
    let stage = Stage::with(ToolDef { output_schema: Some(schema), ..tool("acme/work") }).await;
    let (run, attempt) = stage.start(json!({"image.world": "/i"})).await;
    attempt.data().write("image", 1, stream("x")).await.expect("written");
    attempt.data().write("more", 1, stream("y")).await.expect("written");
    let run = stage.end(&run, &attempt, json!({"n": 1})).await;
    assert_eq!(run.status(), RunStatus::Succeeded, "{run:?}");

    for (outputs, given) in [
        (json!({"image.world": "/i"}), written(json!({"n": "one"}), &["image"])),
        (json!({"image.world": "/i"}), written(json!({"image": "text", "n": 1}), &[])),
        (json!({}), written(json!({"n": 1}), &[])),
    ] {
        let before = stage.bench.get("/i").await;
        let (run, attempt) = stage.start(outputs).await;
        let run = stage.end_with(&run, &attempt, given).await;
        assert!(error(&run).is(Code::ToolInvalidOutput), "{run:?}");
        assert_eq!(stage.bench.get("/i").await, before, "nothing is written that does not fit");
    }
}

#[tokio::test]
async fn t039_the_first_end_counts_and_a_second_writes_nothing() {
    let stage = Stage::new().await;
    let (run, attempt) = stage.start(json!({"a.world": "/a"})).await;
    let run = stage.end(&run, &attempt, json!({"a": "first"})).await;
    let records = stage.bench.audit().await.len();
    attempt.succeeded(object(json!({"a": "second"})), 9).await.expect("told");
    let late = Attempt::new(stage.bench.handle.clone(), attempt.dispatch().clone());
    late.failed(wharf_vocab::Fault::new(Code::ToolFailed, "No."), wharf_vocab::Executed::Yes)
        .await
        .expect("told");
    // Another run passes through the same engine, so what came before it has been looked at.
    let (other, next) = stage.start(json!({})).await;
    succeed(&next, 0).await;
    stage.bench.end_of(&other.key).await;
    let again = stage.bench.handle.runs().get(&run.key).await.expect("known");
    assert_eq!((&again.outcome, again.cost_micro), (&run.outcome, 9), "only its cost counts");
    assert_eq!(stage.bench.get("/a").await.as_deref(), Some("first"));
    let about = |record: &&wharf_domain::AuditRecord| {
        record.subject.as_str().ends_with(run.key.run.as_str())
    };
    let audit = stage.bench.audit().await;
    let told: Vec<_> = audit[records..].iter().filter(about).map(|it| it.event.as_str()).collect();
    assert_eq!(told, ["run.cost_corrected"]);
}

#[tokio::test]
async fn two_runs_that_write_one_path_both_end_and_the_later_one_is_there() {
    let stage = Stage::new().await;
    let (first, one) = stage.start(json!({"a.world": "/a"})).await;
    let (second, two) = stage.start(json!({"a.world": "/a"})).await;
    let second = stage.end(&second, &two, json!({"a": "second"})).await;
    let first = stage.end(&first, &one, json!({"a": "the first"})).await;
    assert_eq!(outputs_of(&first), outputs_of(&second));
    assert_eq!(stage.bench.get("/a").await.as_deref(), Some("the first"));
    assert_eq!(stage.bench.listed().await, ["/a"]);
    let query = wharf_engine::FileQuery::new(crate::support::default_world(), 10);
    let page =
        stage.bench.handle.files().list(&crate::support::owner(), query).await.expect("lists");
    assert_eq!(page.files[0].artifact.run.as_ref(), Some(&first.key.run));
    assert_eq!(page.files[0].artifact.bytes, 9);
}

/// What the core's own log of a run says about outputs that were not named.
async fn found(stage: &Stage, run: &Run) -> Vec<String> {
    let events = stage.bench.events(&run.key, 0).await;
    let lines = events.into_iter().filter_map(|event| match event.item {
        HistoryItem::Progress(Progress::Log { level: Level::Info, text }) => Some(text),
        _ => None,
    });
    lines.collect()
}

#[tokio::test]
async fn t028_an_output_that_was_written_and_not_named_is_found_and_taken_on() {
    let stage = Stage::new().await;
    let outputs = json!({"text.world": "/text", "usage.world": "/usage.json", "c.world": "/c"});
    let (run, attempt) = stage.start(outputs).await;
    let addresses = attempt.data().output_addresses().expect("made");
    for (name, holds) in [("text", "hello"), ("usage", "{}")] {
        stage.bench.objects.put_at(&addresses[name], holds).expect("good");
    }
    let run = stage.end_with(&run, &attempt, written(json!({}), &["text"])).await;
    let (text, usage) = ("world://default/text", "world://default/usage.json");
    assert_eq!(outputs_of(&run), json!({"text": text, "usage": usage, "c": null}));
    assert_eq!(stage.bench.listed().await, ["/text", "/usage.json"]);
    let file = run.artifacts.iter().find(|file| file.path.as_str() == "/usage.json");
    let file = file.expect("on record");
    assert_eq!((file.key.as_deref(), file.bytes, file.b3.is_some()), (Some("usage"), 2, true));
    let lines = found(&stage, &run).await;
    assert!(lines.len() == 1 && lines[0].contains("`usage` was written"), "{lines:?}");
    assert_eq!(stage.warnings(&run).await, ["The output `c` was asked for and not produced."]);
}

#[tokio::test]
async fn t028_what_others_wrote_is_not_taken_for_an_output_that_was_not_named() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let bench = Bench::at(&clock).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    bench.put("/a", "same").await;
    // Written a moment before, and the same again: only the time tells who wrote it.
    for writes in [false, true] {
        clock.advance_ms(5);
        let run = bench.start_with("acme/work", json!({}), json!({"a.world": "/a"})).await;
        let (run, attempt) = (run.expect("accepted"), peer.next().await);
        let address = attempt.data().output_addresses().expect("made")["a"].clone();
        clock.advance_ms(5);
        if writes {
            bench.objects.put_at(&address, "same").expect("good");
        }
        attempt.succeeded(object(json!({})), 0).await.expect("told");
        let run = bench.end_of(&run.key).await;
        let wanted = if writes { json!("world://default/a") } else { json!(null) };
        assert_eq!(outputs_of(&run)["a"], wanted);
        assert_eq!(run.artifacts.len(), usize::from(writes));
    }
}

#[tokio::test]
async fn t028_an_output_that_cannot_be_looked_for_is_told_as_such() {
    let stage = Stage::new().await;
    let (run, attempt) = stage.start(json!({"a.world": "/a"})).await;
    attempt.data().output_addresses().expect("made");
    stage.bench.objects.fail_next(usize::MAX, ObjectErrorKind::Unavailable);
    let run = stage.end(&run, &attempt, json!({})).await;
    assert_eq!((run.status(), outputs_of(&run)), (RunStatus::Succeeded, json!({"a": null})));
    let warnings = stage.warnings(&run).await;
    assert!(warnings.len() == 1 && warnings[0].contains("did not say"), "{warnings:?}");
}
