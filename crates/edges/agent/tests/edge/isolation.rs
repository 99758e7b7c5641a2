//! Which runs share a process, and what a cancel does to it.

use std::path::{Path, PathBuf};

use serde_json::json;
use wharf_ports::launcher::ExitHow;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vocab::{Code, Isolation, RunStatus};

use crate::agent::Agent;
use crate::launcher::Launch;
use crate::stage::{Stage, id, owner};

/// The agent runs with this isolation; its first launch has joined.
async fn started(stage: &mut Stage, isolation: Isolation) -> (Launch, Agent) {
    let approve = Approve { isolation: Some(isolation), ..Approve::default() };
    let launch = stage.started_with(approve).await;
    let agent = stage.join(&launch, &["echo"]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    (launch, agent)
}

/// The next launch joins.
async fn next(stage: &mut Stage) -> (Launch, Agent) {
    let launch = stage.launch().await;
    let agent = stage.join(&launch, &["echo"]).await;
    (launch, agent)
}

#[tokio::test]
async fn r054_each_world_has_a_process_of_its_own_and_a_spare_waits() {
    let mut stage = Stage::new().await;
    stage.make_world("other").await;
    let (first, mut a) = started(&mut stage, Isolation::World).await;
    let one = stage.run_in("default", "echo").await;
    let call = a.call().await;
    let (_second, mut b) = next(&mut stage).await;
    let two = stage.run_in("other", "echo").await;
    let other_call = b.call().await;
    let (_spare, _c) = next(&mut stage).await;
    stage.until(|view| view.instances == 3).await;
    // A second run of a world goes to the same process, also while the first is under way.
    let again = stage.run_in("default", "echo").await;
    let third_call = a.call().await;
    for call in [&call, &third_call] {
        a.succeed(call, json!({})).await;
    }
    b.succeed(&other_call, json!({})).await;
    for run in [&one, &two, &again] {
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
    let last = stage.run_in("default", "echo").await;
    let call = a.call().await;
    a.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&last.key).await.status(), RunStatus::Succeeded);
    assert!(!first.is_over(), "a world's process stays");
}

#[tokio::test]
async fn r054_each_run_has_a_process_of_its_own_which_ends_with_it() {
    let mut stage = Stage::new().await;
    let (first, mut a) = started(&mut stage, Isolation::Run).await;
    // Both at once: the second waits for a process, not for the first run.
    let one = stage.run("echo", json!({})).await.expect("accepted");
    let two = stage.run("echo", json!({})).await.expect("accepted");
    let call = a.call().await;
    let (second, mut b) = next(&mut stage).await;
    let other_call = b.call().await;
    assert_ne!(call["payload"]["call_id"], other_call["payload"]["call_id"]);
    a.succeed(&call, json!({})).await;
    let goodbye = a.receive().await;
    assert_eq!(goodbye["payload"]["reason"], "core.stop", "{goodbye}");
    first.over().await;
    assert!(!second.is_over());
    b.succeed(&other_call, json!({})).await;
    for run in [&one, &two] {
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
    second.over().await;
    stage.until(|view| view.provider.wanted && view.instances >= 1).await;
}

/// The folders a launch is told of, made as a real launch finds them.
fn folders(launch: &Launch) -> Vec<PathBuf> {
    let names = ["HOME", "TMPDIR", "OPENSENTIENCE_HOME"];
    let folders: Vec<_> = names.iter().map(|name| PathBuf::from(launch.env(name))).collect();
    assert_eq!(launch.spec.private_dirs, folders);
    folders.iter().for_each(|folder| std::fs::create_dir_all(folder).expect("made"));
    folders
}

#[tokio::test]
async fn r054_worlds_and_runs_see_no_folder_of_another_and_leave_none_behind() {
    for isolation in [Isolation::World, Isolation::Run] {
        let mut stage = Stage::new().await;
        stage.make_world("other").await;
        let (first, mut a) = started(&mut stage, isolation).await;
        let firsts = folders(&first);
        std::fs::write(firsts[0].join("note"), "of the first").expect("writes");
        let one = stage.run_in("default", "echo").await;
        let call = a.call().await;
        let (second, mut b) = next(&mut stage).await;
        let seconds = folders(&second);
        for (one, two) in firsts.iter().zip(&seconds) {
            assert!(!one.starts_with(two) && !two.starts_with(one), "{isolation}");
        }
        let two = stage.run_in("other", "echo").await;
        let others_call = b.call().await;
        for (call, folders) in [(&call, &firsts), (&others_call, &seconds)] {
            let outputs = call["payload"]["context"]["outputs_dir"].as_str().expect("a folder");
            assert!(Path::new(outputs).starts_with(&folders[2]), "{isolation}: {outputs}");
        }
        // The process of a run ends while its file is being kept.
        let outputs = call["payload"]["context"]["outputs_dir"].as_str().expect("a folder");
        std::fs::write(Path::new(outputs).join("file"), vec![7; 4 << 20]).expect("writes");
        a.succeed(&call, json!({"file": {"$written": true}})).await;
        b.succeed(&others_call, json!({})).await;
        for run in [&one, &two] {
            let run = stage.end_of(&run.key).await;
            assert_eq!(run.status(), RunStatus::Succeeded, "{isolation}: {run:?}");
        }
        drop((a, b));
        stage.edge.control().stop(owner(), id()).await.expect("stopped");
        for folder in firsts.iter().chain(&seconds) {
            crate::files::gone(folder).await;
        }
    }
}

#[tokio::test]
async fn what_all_runs_share_stays() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let before = folders(&launch);
    launch.exit(1);
    let after = folders(&stage.launch().await);
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]));
    crate::files::gone(&before[1]).await;
    assert!(before[0].exists() && before[2].exists());
}

#[tokio::test]
async fn a_cancel_kills_the_process_of_a_run_at_its_deadline() {
    let mut stage = Stage::new().await;
    let (first, mut a) = started(&mut stage, Isolation::Run).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    a.call().await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("known");
    assert_eq!(a.receive().await["type"], "core.tool.cancel");
    first.over().await;
    assert_eq!(first.exit_of(), Some(ExitHow::Signal(9)), "killed, not asked");
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn a_run_that_is_canceled_while_it_waits_for_a_process_was_never_sent() {
    let mut stage = Stage::new().await;
    let (_first, mut a) = started(&mut stage, Isolation::Run).await;
    stage.run("echo", json!({})).await.expect("accepted");
    a.call().await;
    let waiting = stage.run("echo", json!({})).await.expect("accepted");
    stage.launch().await;
    stage.handle.runs().cancel(&owner(), &waiting.key, "enough").await.expect("known");
    assert_eq!(stage.end_of(&waiting.key).await.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancel_is_replaced_and_its_other_calls_may_end() {
    for isolation in [Isolation::Shared, Isolation::World] {
        let mut stage = Stage::new().await;
        let (first, mut a) = started(&mut stage, isolation).await;
        let ignored = stage.run("echo", json!({})).await.expect("accepted");
        a.call().await;
        let other = stage.run("echo", json!({})).await.expect("accepted");
        let others_call = a.call().await;
        stage.handle.runs().cancel(&owner(), &ignored.key, "enough").await.expect("known");
        assert_eq!(a.receive().await["type"], "core.tool.cancel");
        assert_eq!(stage.end_of(&ignored.key).await.status(), RunStatus::Canceled);
        assert_eq!(a.receive().await["payload"]["reason"], "core.replaced");
        // New calls go to the new process while the old one still works.
        let (_second, mut b) = next(&mut stage).await;
        let new = stage.run("echo", json!({})).await.expect("accepted");
        let call = b.call().await;
        b.succeed(&call, json!({})).await;
        assert_eq!(stage.end_of(&new.key).await.status(), RunStatus::Succeeded);
        assert!(!first.is_over(), "{isolation}: it may still end its other call");
        a.succeed(&others_call, json!({})).await;
        assert_eq!(stage.end_of(&other.key).await.status(), RunStatus::Succeeded);
        first.over().await;
        stage.until(|view| view.state == ProviderState::Running).await;
    }
}

#[tokio::test]
async fn an_agent_that_answers_a_cancel_stays() {
    let mut stage = Stage::new().await;
    let (first, mut a) = started(&mut stage, Isolation::Shared).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = a.call().await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("known");
    assert_eq!(a.receive().await["type"], "core.tool.cancel");
    a.fail(&call, "tool.canceled", false).await;
    stage.end_of(&run.key).await;
    let new = stage.run("echo", json!({})).await.expect("accepted");
    let call = a.call().await;
    a.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&new.key).await.status(), RunStatus::Succeeded);
    assert!(!first.is_over());
}

#[tokio::test]
async fn an_agent_has_no_more_processes_than_it_may() {
    let mut stage = Stage::new().await;
    let (_first, mut a) = started(&mut stage, Isolation::Run).await;
    let mut kept = Vec::new();
    stage.run("echo", json!({})).await.expect("accepted");
    a.call().await;
    for _ in 1..64 {
        let (launch, mut agent) = next(&mut stage).await;
        stage.run("echo", json!({})).await.expect("accepted");
        agent.call().await;
        kept.push((launch, agent));
    }
    let view = stage.until(|view| view.instances == 64).await;
    assert_eq!(view.state, ProviderState::Running);
    let mut new = crate::stage::new("echo", wharf_vocab::Object::new());
    new.timeout_ms = Some(2_000);
    let run = stage.handle.runs().create(&owner(), new).await.expect("accepted").run;
    let fault = stage.failure_of(&run).await;
    assert!(fault.is(Code::ToolBusy) || fault.is(Code::ToolTimeout), "{fault}");
    assert_eq!(stage.edge.control().show(&id()).expect("known").instances, 64);
    stage.edge.control().stop(owner(), id()).await.expect("stopped");
    assert_eq!(stage.edge.control().show(&id()).expect("known").instances, 0);
    for (launch, _) in &kept {
        assert!(launch.is_over());
    }
}
