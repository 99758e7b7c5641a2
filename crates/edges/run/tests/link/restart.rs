//! The core is killed while a server works; its run goes on and ends once.

use serde_json::{Value, json};
use wharf_domain::Progress;
use wharf_vocab::{Code, RunStatus};

use crate::stage::{Plan, Stage, lines};
use crate::troupe::{Actor, Troupe};

fn is_log(piece: &Progress, wanted: &str) -> bool {
    matches!(piece, Progress::Log { text, .. } if text == wanted)
}

/// Says everything that a run had to say, from the beginning.
async fn say(actor: &mut Actor, part: usize) {
    let event = |progress| json!({"kind": "Event", "control": {}, "data": {"phase": "checkpoint", "progress": progress}});
    let parts: [Value; 6] = [
        json!({"kind": "Log", "control": {}, "data": {"msg": "begun"}}),
        json!({"kind": "Response", "control": {"final": false}, "outputs": {"reply": "Hel"}}),
        event(0.5),
        json!({"kind": "Response", "control": {"final": false}, "outputs": {"reply": "Hello"}}),
        json!({"kind": "Log", "control": {}, "data": {"msg": "middle"}}),
        json!({"kind": "Response", "control": {"final": false}, "outputs": {"reply": "Hello you"}}),
    ];
    actor.number(parts[part].clone()).await;
}

fn reply_of(pieces: &[Progress]) -> String {
    let text = |piece: &Progress| match piece {
        Progress::Text { channel, text } if channel == "reply" => Some(text.clone()),
        Progress::Partial { .. } => panic!("a text is repeated as a whole: {pieces:?}"),
        _ => None,
    };
    pieces.iter().filter_map(text).collect()
}

async fn until_middle(stage: &Stage, troupe: &Troupe) -> wharf_vocab::RunKey {
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    for part in 0..5 {
        say(&mut actor, part).await;
    }
    stage.until_written(&run, |piece| is_log(piece, "middle")).await;
    run
}

#[tokio::test]
async fn t017_after_a_kill_the_server_says_all_again_and_the_journal_has_it_once() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = until_middle(&stage, &troupe).await;

    let stage = stage.killed().await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["control"]["after"], 0, "it is taken up, not begun");
    assert_eq!(request["control"]["run_id"], run.run.as_str());
    for part in 0..6 {
        say(&mut actor, part).await;
    }
    actor.log("end").await;
    actor.succeed(json!({"reply": "Hello you"})).await;
    let ended = stage.end_of(&run).await;
    assert_eq!((ended.status(), ended.attempt), (RunStatus::Succeeded, 1));
    let pieces = stage.progress_of(&run).await;
    assert_eq!(lines(&pieces), ["begun", "middle", "end"]);
    assert_eq!(reply_of(&pieces), "Hello you");
    let phases = pieces.iter().filter(|piece| matches!(piece, Progress::Phase { .. })).count();
    assert_eq!(phases, 1);
}

#[tokio::test]
async fn t017_killed_again_and_again_the_journal_still_has_it_once() {
    let troupe = Troupe::tcp().await;
    let mut stage = Plan::new(troupe.endpoint()).open().await;
    let run = until_middle(&stage, &troupe).await;
    for _ in 0..3 {
        stage = stage.killed().await;
        let (mut actor, _) = troupe.take().await;
        for part in 0..6 {
            say(&mut actor, part).await;
        }
        let whole =
            |piece: &Progress| matches!(piece, Progress::Text { text, .. } if text == " you");
        stage.until_written(&run, whole).await;
    }
    stage = stage.killed().await;
    let (mut actor, _) = troupe.take().await;
    for part in 0..6 {
        say(&mut actor, part).await;
    }
    actor.succeed(json!({})).await;
    stage.end_of(&run).await;
    let pieces = stage.progress_of(&run).await;
    assert_eq!(lines(&pieces), ["begun", "middle"]);
    assert_eq!(reply_of(&pieces), "Hello you");
}

#[tokio::test]
async fn t042_a_server_that_lost_the_run_too_ends_it_with_that_cause() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = until_middle(&stage, &troupe).await;
    let stage = stage.killed().await;
    let (mut actor, _) = troupe.take().await;
    actor.fail("ERR_WORKER", "The run is not known here any more.").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("not known here"), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
}

#[tokio::test]
async fn t042_a_server_that_comes_back_after_the_core_is_waited_for() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = until_middle(&stage, &troupe).await;
    let address = troupe.address();
    drop(troupe);
    let stage = stage.killed().await;
    let troupe = Troupe::at(address).await;
    let (mut actor, _) = troupe.take().await;
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t035_an_output_whose_address_was_signed_before_the_kill_is_confirmed() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start_with(json!({}), json!({"out.world": "/o.txt"})).await;
    let (mut actor, request) = troupe.take().await;
    let old = request["outputs"]["out"].as_str().expect("an address").to_owned();
    let line = format!("writing to {old}");
    actor.log(&line).await;
    stage.until_written(&run, |piece| matches!(piece, Progress::Log { .. })).await;
    stage.objects.put_at(&old, "written").expect("good");

    let stage = stage.killed().await;
    let (mut actor, request) = troupe.take().await;
    assert_ne!(request["outputs"]["out"], old.as_str(), "it is signed anew");
    actor.log(&line).await;
    actor.succeed(json!({"out": old})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"out": "world://default/o.txt"}));
    assert_eq!(stage.file("/o.txt").await.as_deref(), Some("written"));
    let pieces = stage.progress_of(&run).await;
    assert_eq!(lines(&pieces), ["writing to world://default/o.txt"]);
}
