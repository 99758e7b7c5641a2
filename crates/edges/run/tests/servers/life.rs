//! Servers that are started, used, left alone, ended.

use std::time::Duration;

use serde_json::json;
use wharf_domain::Availability;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vocab::{Code, Isolation};

use crate::launcher::{At, seen};
use crate::stage::{LONG, Stage, id, owner, tool};

#[tokio::test]
async fn t042_a_server_is_started_for_its_first_run_and_shared_by_the_next() {
    let stage = Stage::ready("").await;
    let view = stage.edge.show(&id()).expect("known");
    assert_eq!((view.state, view.instances), (ProviderState::Running, 0), "enabled, and at rest");
    assert!(stage.launcher.specs().is_empty(), "nothing was started yet");
    let one = stage.outputs(&*stage.run(json!({"op": "upper", "text": "hello"})).await).await;
    let two = stage.outputs(&*stage.run(json!({"op": "upper", "text": "again"})).await).await;
    assert_eq!((&one["text"], &two["text"]), (&json!("HELLO"), &json!("AGAIN")));
    assert_eq!(one["pid"], two["pid"]);
    assert_eq!(stage.launcher.specs().len(), 1);
}

#[tokio::test]
async fn t043_what_is_offered_is_what_was_approved_until_the_manifest_changes() {
    for more in ["", "timeout_s = 5", "side_effects = false\nmock = true"] {
        let stage = Stage::ready(more).await;
        let agent = stage.edge.show(&id()).expect("known").provider;
        let offered = agent.manifest.tool_server().expect("a server").offered();
        assert_eq!(agent.pinned.get(&tool()), Some(&offered), "{more}");
        assert_eq!(
            stage.handle.providers().tool(&tool()).expect("known").def.hash(),
            offered.hash(),
            "{more}"
        );
    }
}

#[tokio::test]
async fn t042_a_server_that_has_nothing_to_do_ends_and_comes_back() {
    let stage = Stage::with(|options| options.idle = Duration::from_millis(1)).await;
    stage.write_manifest("well", "");
    stage.approved().await;
    let one = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    let view = stage.until(|view| view.instances == 0).await;
    assert_eq!(view.state, ProviderState::Running, "it still takes runs");
    let two = stage.outputs(&*stage.run(json!({"op": "upper", "text": "b"})).await).await;
    assert_ne!(one["pid"], two["pid"]);
}

#[tokio::test]
async fn a_panic_while_a_run_is_worked_on_ends_it_at_once_and_spares_the_next() {
    let stage = Stage::ready("").await;
    stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    // Whoever waits for the run asks how the process ended that was lost with it.
    stage.launcher.panic_at(At::Exited);
    let fault = stage.fault(&*stage.run(json!({"op": "crash"})).await).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert_eq!(fault.details["executed"], "maybe", "{fault}");
    stage.outputs(&*stage.run(json!({"op": "upper", "text": "b"})).await).await;
}

#[tokio::test]
async fn a_panic_of_a_worker_gives_its_room_back_where_there_is_room_for_one() {
    let stage = Stage::ready("max_concurrency = 1").await;
    for text in ["a", "b", "c"] {
        stage.launcher.panic_at(At::Exited);
        let fault = stage.fault(&*stage.run(json!({"op": "crash"})).await).await;
        assert!(fault.is(Code::ToolWorkerLost), "{fault}");
        stage.outputs(&*stage.run(json!({"op": "upper", "text": text})).await).await;
    }
}

#[tokio::test]
async fn a_panic_while_a_server_is_ended_leaves_neither_its_process_nor_its_place() {
    let stage = Stage::with(|options| options.idle = Duration::from_millis(1)).await;
    stage.write_manifest("well", "");
    stage.approved().await;
    stage.launcher.panic_at(At::Stop);
    let one = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    let process = format!("/proc/{}", one["pid"]);
    stage.until(|view| view.instances == 0 && !std::path::Path::new(&process).exists()).await;
    let two = stage.outputs(&*stage.run(json!({"op": "upper", "text": "b"})).await).await;
    assert_ne!(one["pid"], two["pid"]);
}

#[tokio::test]
async fn t042_a_server_that_never_gets_well_is_given_up_with_its_last_words() {
    let stage = Stage::with(|options| options.healthy_within = Duration::from_millis(400)).await;
    stage.write_manifest("broken", "");
    stage.approved().await;
    let fault = stage.fault(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    assert!(fault.message.contains("/healthz"), "{fault}");
    assert!(fault.message.contains("ImportError: no module named luck"), "{fault}");
    let view = stage.until(|view| view.state == ProviderState::Crashed).await;
    assert!(!view.provider.wanted);
    assert!(view.reason.expect("a reason").contains("ImportError"));
}

#[tokio::test]
async fn t042_a_server_that_dies_loses_its_run_and_is_started_for_the_next() {
    let stage = Stage::ready("").await;
    let fault = stage.fault(&*stage.run(json!({"op": "crash"})).await).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.ends_with("while it worked on the run: exit code 3."), "{fault}");
    let next = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    assert_eq!(next["text"], "A");
    assert_eq!(stage.launcher.specs().len(), 2);
}

#[tokio::test]
async fn t042_a_tool_that_is_added_again_ends_its_runs_where_they_are() {
    let stage = Stage::ready("").await;
    let until = stage.dir.path().join("go");
    let held = json!({"op": "hold", "until": until.display().to_string()});
    let under_way = stage.run(held).await;
    let asked = || stage.launcher.specs().first().map_or(0, |spec| seen(spec).lines().count());
    stage.until(|_| asked() >= 1).await;

    stage.write("more.py", "# another file of the tool\n");
    stage.write_manifest("well", "mock = true");
    stage.approved().await;
    let next = stage.outputs(&*stage.run(json!({"op": "upper", "text": "new"})).await).await;
    assert_eq!(next["text"], "NEW");
    assert_eq!(stage.launcher.specs().len(), 2, "another process takes new runs");
    let waiting = stage.handle.runs().get(&under_way.key).await.expect("known");
    assert!(!waiting.is_over(), "the run goes on");

    std::fs::write(&until, "").expect("written");
    stage.outputs(&under_way).await;
    let run = stage.end_of(&under_way.key).await;
    assert_eq!(run.attempt, 1, "it ended where it was");
    stage.until(|view| view.instances == 1).await;
}

#[tokio::test]
async fn t042_runs_beyond_the_limit_wait_for_their_turn() {
    let stage = Stage::ready("max_concurrency = 2").await;
    let until = stage.dir.path().join("go");
    let inputs = json!({"op": "hold", "until": until.display().to_string()});
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(stage.run(inputs.clone()).await);
    }
    let asked = || stage.launcher.specs().first().map_or(0, |spec| seen(spec).lines().count());
    stage.until(|_| asked() >= 2).await;
    std::fs::write(&until, "").expect("written");
    for run in &runs {
        let outputs = stage.outputs(run).await;
        assert_eq!(outputs["most"], 2, "{outputs:?}");
    }
}

#[tokio::test]
async fn beyond_those_that_may_wait_attempts_come_back_when_there_is_room() {
    let stage = Stage::ready("max_concurrency = 1").await;
    let until = stage.dir.path().join("go");
    let inputs = json!({"op": "hold", "until": until.display().to_string()});
    let first = stage.run(inputs.clone()).await;
    let asked = || stage.launcher.specs().first().map_or(0, |spec| seen(spec).lines().count());
    stage.until(|_| asked() >= 1).await;
    let second = stage.run(inputs).await;
    std::fs::write(&until, "").expect("written");
    assert_eq!(stage.outputs(&first).await["most"], 1);
    assert_eq!(stage.outputs(&second).await["most"], 1);
    let second = stage.end_of(&second.key).await;
    assert_eq!(second.attempt, 1, "waiting for room is no try that went wrong");
}

#[tokio::test]
async fn a_run_that_waits_for_a_place_is_canceled_without_being_sent() {
    let stage = Stage::new().await;
    stage.write_manifest("broken", "");
    stage.approved().await;
    let run = stage.run(json!({"op": "wait"})).await;
    // It waits for a process that never gets well.
    stage.until(|view| view.instances == 1).await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("asked");
    let fault = stage.fault(&run).await;
    assert!(fault.is(Code::ToolCanceled), "{fault}");
    assert_eq!(fault.details["executed"], "no", "{fault}");
}

#[tokio::test]
async fn t019_a_run_is_canceled_at_its_server() {
    let stage = Stage::ready("").await;
    let run = stage.run(json!({"op": "wait"})).await;
    stage.until(|view| view.instances == 1 && view.state == ProviderState::Running).await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("asked");
    let fault = stage.fault(&run).await;
    assert!(fault.is(Code::ToolCanceled), "{fault}");
}

#[tokio::test]
async fn t042_where_runs_are_kept_apart_each_has_a_process() {
    let stage = Stage::new().await;
    stage.write_manifest("well", "");
    stage.add().await.expect("added");
    let approve = Approve { isolation: Some(Isolation::Run), ..Approve::default() };
    stage.approve(approve).await.expect("approved");
    let one = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    let two = stage.outputs(&*stage.run(json!({"op": "upper", "text": "b"})).await).await;
    assert_ne!(one["pid"], two["pid"]);
    stage.until(|view| view.instances == 0).await;
}

#[tokio::test]
async fn t043_an_approval_puts_the_tool_into_the_catalog_and_enables_it() {
    let stage = Stage::new().await;
    stage.write_manifest("well", "max_cost_micro = 5");
    stage.add().await.expect("added");
    assert!(stage.handle.providers().tools().iter().all(|known| known.def.tool != tool()));
    let view = stage.approve(Approve::default()).await.expect("approved");
    assert!(view.provider.wanted);
    let tools = stage.handle.providers().tools();
    let known = tools.iter().find(|known| known.def.tool == tool()).expect("in the catalog");
    assert!(known.def.reattach);
    assert_eq!(known.def.timeout_ms, Some(600_000));
    assert_eq!(known.def.max_cost_micro, Some(5));
    assert_eq!(known.availability, Availability::Up);
    stage.edge.stop(owner(), id()).await.expect("disabled");
    let tools = stage.handle.providers().tools();
    let known = tools.iter().find(|known| known.def.tool == tool()).expect("still there");
    assert!(matches!(known.availability, Availability::Down { .. }));
    stage.edge.start(owner(), id()).await.expect("enabled");
    stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    stage.edge.stop(owner(), id()).await.expect("disabled");
    stage.edge.remove(owner(), id()).await.expect("removed");
    assert!(stage.handle.providers().tools().iter().all(|known| known.def.tool != tool()));
    let fault = stage.edge.show(&id()).expect_err("gone");
    assert!(fault.is(Code::ToolNotFound), "{fault}");
}

#[tokio::test]
async fn t043_a_server_whose_files_were_changed_takes_no_run() {
    let stage = Stage::ready("").await;
    stage.write("server.py", "print('another one')");
    let run = stage.run(json!({"op": "upper", "text": "a"})).await;
    let fault = stage.fault(&run).await;
    assert!(fault.message.contains("server.py was changed"), "{fault}");
    let view = stage.until(|view| view.state == ProviderState::Drifted).await;
    assert!(stage.launcher.specs().is_empty(), "{view:?}");
    let lines = stage.edge.drift(id()).await.expect("compared");
    assert_eq!(lines, ["server.py was changed"]);
}

#[tokio::test]
async fn t042_a_run_of_a_launched_server_is_lost_with_its_core_and_said_to_be() {
    let stage = Stage::ready("").await;
    let run = stage.run(json!({"op": "wait"})).await;
    let asked = || stage.launcher.specs().first().map_or(0, |spec| seen(spec).lines().count());
    stage.until(|_| asked() == 1).await;
    let stage = stage.restarted().await;
    let fault = stage.fault(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
    let next = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    assert_eq!(next["text"], "A", "the tool is enabled still");
}

#[tokio::test]
async fn t042_when_the_core_stops_no_server_is_left() {
    let stage = Stage::ready("").await;
    let outputs = stage.outputs(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    let pid = outputs["pid"].as_u64().expect("a pid");
    stage.handle.stop(Duration::from_secs(1)).await;
    tokio::time::timeout(LONG, stage.edge.stop_all()).await.expect("stops");
    assert!(!std::path::Path::new(&format!("/proc/{pid}/cmdline")).exists(), "{pid} lives");
}
