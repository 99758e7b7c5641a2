//! A second turn that reads what the first one left, as the original text has it.

use serde_json::{Value, json};
use wharf_toolserver::server::Profile;
use wharf_toolserver::{Call, Done, Reporter};

use super::kit::{Stage, done};

/// Says what it was told before, and remembers what it is told now.
async fn agent(call: Call, _report: Reporter) -> Done {
    let before = if call.files.is_reference("state", &call.inputs["state"]) {
        call.files.read("state", 1_000).await
    } else {
        Ok(bytes::Bytes::new())
    };
    match before {
        Ok(before) => {
            let before = String::from_utf8_lossy(&before).into_owned();
            done(json!({"response": before, "state": call.inputs["message"]}))
        }
        Err(failure) => Done { result: Err(failure), cost: None },
    }
}

/// A request of the original text. It leaves out the host of its storage, which cannot be reached
/// then; that output goes to the run's own folder instead.
fn turn(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/wire/testdata/run_v1/seed");
    let text = std::fs::read_to_string(format!("{folder}/request.{name}.json")).expect("readable");
    let mut request: Value = serde_json::from_str(&text).expect("JSON");
    let run = request["control"]["run_id"].as_str().expect("an id").to_owned();
    request["outputs"]["response"] = format!("/artifacts/{run}/response.txt").into();
    if request["inputs"].get("state").is_none() {
        request["inputs"]["state"] = "nothing yet".into();
    }
    request
}

#[tokio::test]
async fn t026_turn_two_of_the_original_text_reads_the_state_of_turn_one() {
    let stage = Stage::with(agent, |options| options.profile = Profile::Upstream).await;
    let first = stage.run(&turn("turn1")).await;
    assert_eq!(first.code(), "", "{first:?}");
    assert_eq!(first.end()["outputs"]["state"], "/artifacts/r1/agent-state.json");
    let second = stage.run(&turn("turn2")).await;
    assert_eq!(second.code(), "", "{second:?}");
    let file =
        |path: &str| std::fs::read_to_string(stage.folder.path().join("artifacts").join(path));
    assert_eq!(file("r2/response.txt").expect("written"), "What's the weather?");
    assert_eq!(file("r2/agent-state.json").expect("written"), "San Francisco");
    assert_eq!(file("r1/agent-state.json").expect("kept"), "What's the weather?");
}

#[tokio::test]
async fn t026_by_default_another_runs_file_is_read_only_where_it_is_listed() {
    let stage = Stage::new(agent).await;
    assert_eq!(stage.run(&turn("turn1")).await.code(), "");
    assert_eq!(stage.run(&turn("turn2")).await.code(), "ERR_PATH");
    let mut listed = turn("turn2");
    listed["control"]["run_id"] = "r3".into();
    listed["control"]["refs"] = json!(["state"]);
    listed["outputs"] = json!({"response": "/artifacts/r3/response.txt"});
    assert_eq!(stage.run(&listed).await.code(), "");
}
