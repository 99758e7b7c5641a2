//! Files that go in and out of fenced agents.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wharf_domain::Outcome;
use wharf_ports::providers::Approve;
use wharf_vocab::{Code, RunStatus, SandboxLevel};

use crate::agent::LONG;
use crate::stage::Stage;
use crate::troupe::{CALLER, Part};

pub(crate) fn folder(call: &Value, name: &str) -> PathBuf {
    PathBuf::from(call["payload"]["context"][name].as_str().expect("a folder"))
}

pub(crate) async fn gone(path: &Path) {
    let deadline = tokio::time::Instant::now() + LONG;
    while path.exists() {
        assert!(tokio::time::Instant::now() < deadline, "{} stays", path.display());
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn r163_r153_a_file_that_a_fenced_agent_wrote_becomes_an_output() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["draw"]).enter(&mut stage).await;
    let run = stage.run("draw", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let (inputs, outputs) = (folder(&call, "inputs_dir"), folder(&call, "outputs_dir"));
    for folder in [&inputs, &outputs] {
        let mode = std::fs::metadata(folder).expect("exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    assert!(outputs.starts_with(stage.dir.path().join("agents")), "{}", outputs.display());
    std::fs::write(outputs.join("picture.svg"), "<svg/>").expect("writes");
    let output = json!({"picture.svg": {"$written": true}, "n": 1});
    agent.succeed(&call, output).await;
    let run = stage.end_of(&run.key).await;
    let Some(Outcome::Succeeded { outputs: given }) = &run.outcome else { panic!("{run:?}") };
    let place = format!("world://default/@{}/picture.svg", run.key.run);
    assert_eq!(given["picture.svg"], place.as_str());
    assert_eq!(given["n"], 1);
    assert_eq!(stage.file(&format!("/@{}/picture.svg", run.key.run)).await, "<svg/>");
    for folder in [outputs.parent().expect("a folder"), &inputs] {
        gone(folder).await;
    }
}

#[tokio::test]
async fn r163_what_is_named_and_not_there_fails_the_run_by_its_name() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["draw"]).enter(&mut stage).await;
    let link = "picture";
    for (key, prepare) in [("missing", false), (link, true)] {
        let run = stage.run("draw", json!({})).await.expect("accepted");
        let call = agent.call().await;
        if prepare {
            let path = folder(&call, "outputs_dir").join(key);
            std::os::unix::fs::symlink("/etc/passwd", path).expect("links");
        }
        agent.succeed(&call, json!({key: {"$written": true}})).await;
        let run = stage.end_of(&run.key).await;
        let fault = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
        assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
        assert!(fault.message.contains(key), "{fault}");
        gone(&folder(&call, "outputs_dir")).await;
    }
}

#[tokio::test]
async fn r163_every_call_finds_its_folders_empty_and_unfenced_agents_get_none() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["draw"]).enter(&mut stage).await;
    let mut seen = Vec::new();
    for n in 0..3 {
        let run = stage.run("draw", json!({})).await.expect("accepted");
        let call = agent.call().await;
        let outputs = folder(&call, "outputs_dir");
        assert_eq!(std::fs::read_dir(&outputs).expect("exists").count(), 0);
        if n == 1 {
            std::fs::write(outputs.join("left behind"), "x").expect("writes");
        }
        agent.succeed(&call, json!({})).await;
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
        seen.push(outputs);
    }
    assert_eq!(seen[0], seen[1], "what was not used is used again");
    assert_ne!(seen[1], seen[2]);
    gone(&seen[1]).await;
    drop(agent);
    gone(&seen[2]).await;

    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["draw"]);
    part.approve = Approve { sandbox: Some(SandboxLevel::None), ..Approve::default() };
    let (_, mut agent) = part.enter(&mut stage).await;
    let run = stage.run("draw", json!({})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["payload"]["context"], json!({"mode": "real"}));
    agent.succeed(&call, json!({"x": {"$written": true}})).await;
    let run = stage.end_of(&run.key).await;
    let fault = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
}
