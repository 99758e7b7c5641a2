//! Servers that are started, shared or kept apart, left alone, ended.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_ports::providers::{ProviderControl as _, ProviderState};
use wharf_ports::vault::{Secret, Vault as _};
use wharf_vocab::{Code, SecretName};

use crate::stage::{LONG, Stage, id, owner, tool};

async fn stage(mood: &str, more: &str) -> Stage {
    with_tools(Stage::new().await).ready(mood, more).await
}

fn with_tools(stage: Stage) -> Stage {
    let names = ["echo", "die", "spill", "hold", "env"];
    stage.state(&json!({ "tools": names.map(tool) }));
    stage
}

async fn pid(stage: &Stage, world: &str) -> Value {
    let run = stage.start_run_in(world, "echo", json!({})).await.expect("accepted");
    stage.said(&run).await["pid"].clone()
}

#[tokio::test]
async fn m043_adding_runs_nothing_and_approving_looks_once() {
    let stage = with_tools(Stage::new().await);
    stage.manifest("legacy", "");
    let added = stage.add().await.expect("added");
    assert_eq!((added.state, stage.marks("began")), (ProviderState::Added, 0));
    assert!(stage.names().is_empty());
    stage.approve().await.expect("approved");
    stage.settled().await;
    assert_eq!((stage.names().len(), stage.marks("began")), (5, 1));
}

#[tokio::test]
async fn m045_a_server_has_folders_of_its_own_and_no_more_variables_than_were_said() {
    let stage = with_tools(Stage::new().await);
    let name = SecretName::new("key").expect("valid");
    stage.vault.set(name, Secret::new(b"c4nary".to_vec())).await.expect("set");
    let more = "[env]\nMODE = \"test\"\n[env_secrets]\nAPI_KEY = \"key\"";
    let stage = stage.ready("legacy", more).await;
    let env = stage.call("env", json!({})).await;
    assert_eq!((&env["MODE"], &env["API_KEY"]), (&json!("test"), &json!("[redacted]")), "{env}");
    let known = [
        "HOME",
        "LANG",
        "LC_CTYPE",
        "MODE",
        "API_KEY",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "TMPDIR",
        "TZ",
    ];
    let all = env.as_object().expect("variables").keys();
    let more: Vec<_> = all.filter(|name| !known.contains(&name.as_str())).collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(stage.launcher.log().contains("hello from the server"));
    let spec = stage.launcher.specs().remove(0);
    assert_eq!(spec.env["API_KEY"], "c4nary", "it gets what others must not see");
    assert!(!spec.args.iter().any(|arg| arg.contains("c4nary")));
    assert!(stage.doors.opened().is_empty(), "and no way out");
}

#[tokio::test]
async fn m045_lines_that_are_no_message_are_logged_and_a_hundred_end_the_launch() {
    let stage = stage("legacy", "").await;
    stage.call("spill", json!({"lines": 99})).await;
    assert_eq!(stage.launcher.log().matches("this is no message").count(), 99);
    assert_eq!(stage.marks("began"), 1);
    let last = stage.start_run("spill", json!({"lines": 1})).await.expect("accepted");
    stage.end_of(&last).await;
    stage.until_so(|stage| stage.launcher.alive() == 0).await;
    pid(&stage, "default").await;
    assert_eq!(stage.marks("began"), 2, "another process");
}

#[tokio::test]
async fn m048_runs_share_a_process_unless_they_are_kept_apart() {
    let shared = stage("legacy", "").await;
    let one = pid(&shared, "default").await;
    assert_eq!(pid(&shared, "other").await, one);
}

#[tokio::test]
async fn m077_worlds_that_are_kept_apart_share_no_session() {
    let world = stage("legacy", "isolation = \"world\"").await;
    let one = pid(&world, "default").await;
    assert_eq!(pid(&world, "default").await, one);
    assert_ne!(pid(&world, "other").await, one, "another process");
}

#[tokio::test]
async fn m048_each_run_has_a_process_and_a_spare_is_kept_warm() {
    let stage = stage("legacy", "isolation = \"run\"").await;
    let one = pid(&stage, "default").await;
    stage.until(|view| view.instances == 1).await;
    // The spare is there before anybody asks for it.
    let began = stage.marks("began");
    let two = pid(&stage, "default").await;
    assert_ne!(one, two);
    stage.until_so(|stage| stage.marks("began") > began).await;
    stage.until(|view| view.instances == 1).await;
    stage.until_so(|stage| stage.launcher.alive() == 1).await;
}

#[tokio::test]
async fn m048_a_server_ends_after_a_while_without_work_and_comes_back() {
    let stage = with_tools(Stage::with(|it| it.idle = Duration::from_millis(1)).await);
    let stage = stage.ready("legacy", "").await;
    let one = pid(&stage, "default").await;
    let view = stage.until(|view| view.instances == 0).await;
    assert_eq!(view.state, ProviderState::Running, "it still takes runs");
    stage.until_so(|stage| stage.launcher.alive() == 0).await;
    assert_ne!(pid(&stage, "default").await, one);
}

#[tokio::test]
async fn m049_a_server_is_told_by_the_end_of_its_input_then_by_a_signal_then_killed() {
    let [polite, late, deaf] = ["legacy", "late", "deaf"].map(|mood| async move {
        let stage = stage(mood, "").await;
        stage.edge.stop(owner(), id()).await.expect("stopped");
        stage.until_so(|stage| stage.launcher.alive() == 0).await;
        (stage.marks("eof"), stage.marks("term"))
    });
    let (polite, late, deaf) = futures::join!(polite, late, deaf);
    assert_eq!(polite, (1, 0), "the end of its input is enough");
    assert_eq!((late, deaf), ((1, 1), (1, 1)));
}

#[tokio::test]
async fn m061_a_server_that_dies_loses_its_call_and_the_next_one_finds_another() {
    let stage = stage("legacy", "").await;
    let one = pid(&stage, "default").await;
    let fault = stage.fault("die", json!({})).await;
    assert!(fault.is(Code::ToolAgentLost), "{fault}");
    assert_eq!(fault.details.get("executed"), Some(&json!("maybe")));
    assert_ne!(pid(&stage, "default").await, one);
}

#[tokio::test]
async fn m048_none_is_left_after_the_cores_end() {
    for more in ["", "isolation = \"run\"", "isolation = \"world\""] {
        let stage = stage("legacy", more).await;
        pid(&stage, "default").await;
        stage.start_run("hold", json!({})).await.expect("accepted");
        stage.until_so(|stage| stage.marks("held") == 1).await;
        stage.handle.stop(Duration::from_millis(1)).await;
        stage.edge.stop_all().await;
        assert_eq!(stage.launcher.alive(), 0, "{more}");
    }
}

#[tokio::test]
async fn m078_a_server_has_sixty_four_calls_at_once() {
    let stage = stage("legacy", "").await;
    let mut runs = Vec::new();
    for _ in 0..70 {
        runs.push(stage.start_run("hold", json!({})).await.expect("accepted"));
    }
    stage.until_so(|stage| stage.marks("held") == 64).await;
    let mut running = 0;
    for run in &runs {
        let known = stage.handle.runs().get(&run.key).await.expect("known");
        running += usize::from(known.status().as_str() == "running");
    }
    assert_eq!((running, stage.marks("held")), (64, 64), "the others wait");
    stage.edge.stop(owner(), id()).await.expect("stopped");
    for run in runs {
        let ended = stage.handle.runs().wait(&run.key, LONG).await.expect("known");
        assert!(ended.is_over());
    }
}

#[tokio::test]
async fn m068_a_server_that_asks_for_its_folders_at_once_is_told_of_those_that_were_approved() {
    let stage = Stage::new().await;
    stage.state(&json!({"tools": [tool("roots")]}));
    let folder = stage.dir.path().join("data").display().to_string();
    let stage =
        stage.ready("legacy", &format!("permissions = [\"filesystem:read:{folder}/**\"]")).await;
    let told = stage.call("roots", json!({})).await;
    assert_eq!(told["roots"][0]["uri"], format!("file://{folder}"), "{told}");
}
