//! What a server says while it works, as the journal has it.

use serde_json::json;
use wharf_domain::{Level, Progress};
use wharf_vocab::RunStatus;

use crate::stage::Plan;
use crate::troupe::Troupe;

fn text(channel: &str, text: &str) -> Progress {
    Progress::Text { channel: channel.to_owned(), text: text.to_owned() }
}

/// Text of one channel as a whole, since pieces may have been joined.
fn all_of(pieces: &[Progress], wanted: &str) -> String {
    let part = |piece: &Progress| match piece {
        Progress::Text { channel, text } if channel == wanted => Some(text.clone()),
        _ => None,
    };
    pieces.iter().filter_map(part).collect()
}

#[tokio::test]
async fn t009_streamed_text_is_kept_as_what_it_adds() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    for reply in ["Hello", "Hello wor", "Hello world"] {
        actor.stream(json!({"reply": reply})).await;
    }
    actor.succeed(json!({"reply": "Hello world"})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"reply": "Hello world"}));
    let pieces = stage.progress_of(&run).await;
    assert_eq!(all_of(&pieces, "reply"), "Hello world");
    assert!(pieces.iter().all(|piece| matches!(piece, Progress::Text { .. })), "{pieces:?}");
}

#[tokio::test]
async fn t009_several_keys_and_other_values_stream_side_by_side() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.stream(json!({"a": "x", "b": "y", "n": 1})).await;
    actor.stream(json!({"a": "xx", "n": [1, 2]})).await;
    actor.stream(json!({"a": "anew"})).await;
    actor.succeed(json!({})).await;
    stage.end_of(&run).await;
    let pieces = stage.progress_of(&run).await;
    let partial = |key: &str, value| Progress::Partial { key: Some(key.to_owned()), value };
    assert_eq!((all_of(&pieces, "a"), all_of(&pieces, "b")), ("xx".into(), "y".into()));
    for value in [partial("n", json!(1)), partial("n", json!([1, 2])), partial("a", json!("anew"))]
    {
        assert!(pieces.contains(&value), "{value:?}");
    }
}

#[tokio::test]
async fn t008_lines_and_phases_are_kept_and_signs_of_life_are_not() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    let event = |data| json!({"kind": "Event", "control": {}, "data": data});
    actor.number(event(json!({"phase": "started"}))).await;
    actor.number(event(json!({"phase": "checkpoint"}))).await;
    actor.number(event(json!({"phase": "checkpoint", "progress": 0.5}))).await;
    actor.say(json!({"kind": "Log", "data": {"msg": "plain"}})).await;
    let data = json!({"msg": "grave", "level": "error", "timestamp": 1.5});
    actor.say(json!({"kind": "Log", "control": {}, "data": data, "more": 1})).await;
    actor.say(json!({"kind": "Frame", "content": {"text": "x"}})).await;
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
    let phase = |phase: &str, fraction| Progress::Phase { phase: phase.to_owned(), fraction };
    let log = |level, text: &str| Progress::Log { level, text: text.to_owned() };
    let expected = [
        phase("started", None),
        phase("checkpoint", Some(0.5)),
        log(Level::Info, "plain"),
        log(Level::Error, "grave"),
    ];
    assert_eq!(stage.progress_of(&run).await, expected);
}

#[tokio::test]
async fn t024_the_list_of_references_is_always_there_so_that_a_prompt_stays_a_prompt() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({"prompt": "read https://x.example/y"})).await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["control"]["refs"], json!([]));
    assert_eq!(request["control"]["run_id"], run.run.as_str());
    assert_eq!(request["control"]["mode"], "real");
    assert!(request["control"]["deadline_ms"].as_u64().is_some_and(|ms| ms > 0));
    assert_eq!(request["inputs"]["prompt"], "read https://x.example/y");
    actor.succeed(json!({})).await;
    stage.end_of(&run).await;
}

#[tokio::test]
async fn thousands_of_lines_in_a_moment_do_not_stall_the_run() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.session.lines_per_second_max = 5).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    for _ in 0..2_000 {
        actor.log("again").await;
    }
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
    let pieces = stage.progress_of(&run).await;
    assert!(pieces.len() < 100, "{}", pieces.len());
    let told = |piece: &Progress| matches!(piece, Progress::Log { level: Level::Warn, text } if text.contains("left out"));
    assert!(pieces.iter().any(told), "{pieces:?}");
    assert_ne!(pieces.first(), Some(&text("log", "again")));
}
