//! Runs with files: what agents are given, as files or addresses, and what becomes of what they
//! write.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wharf_domain::{Outcome, Run};
use wharf_ports::ObjectStore as _;
use wharf_ports::providers::Approve;
use wharf_vocab::{Code, Fault, Object, RunStatus, SandboxLevel};

use crate::agent::Agent;
use crate::files::{folder, gone};
use crate::stage::{Stage, owner};
use crate::troupe::{CALLER, Part};

const ORIGIN: &str = "http://127.0.0.1:7421";

async fn entered(stage: &mut Stage, part: Part<'_>) -> Agent {
    part.enter(stage).await.1
}

async fn fenced(stage: &mut Stage) -> Agent {
    entered(stage, Part::new(CALLER, &["turn"])).await
}

fn input(call: &Value, name: &str) -> PathBuf {
    PathBuf::from(call["payload"]["input"][name].as_str().expect("a path"))
}

fn output(call: &Value, name: &str) -> PathBuf {
    PathBuf::from(call["payload"]["context"]["outputs"][name].as_str().expect("a path"))
}

fn fault_of(run: &Run) -> &Fault {
    run.outcome.as_ref().and_then(Outcome::error).expect("failed")
}

fn outputs_of(run: &Run) -> &Object {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => outputs,
        other => panic!("{other:?}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("there").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn r163_a_fenced_agent_is_given_copies_and_what_it_writes_goes_to_its_place() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    let (inputs, outputs) = (
        json!({"text.world": "/in/a.txt", "how": "as on http://looks.like/a-reference"}),
        json!({"turned.world": "/out/b.txt", "note.local": "/n.txt", "given.world": "/out/c.txt"}),
    );
    let run = stage.run_with("turn", inputs, outputs).await;
    let call = agent.call().await;
    let context = &call["payload"]["context"];
    assert_eq!(context["refs"], json!(["text"]));
    assert_eq!(call["payload"]["input"]["how"], "as on http://looks.like/a-reference");
    let text = input(&call, "text");
    assert_eq!(text, folder(&call, "inputs_dir").join("text"));
    assert_eq!(std::fs::read_to_string(&text).expect("readable"), "abc");
    assert_eq!(output(&call, "turned"), folder(&call, "outputs_dir").join("turned"));
    // What the agent does to its copy is its own affair.
    std::fs::write(&text, "changed").expect("writes");
    std::fs::write(output(&call, "turned"), "cba").expect("writes");
    std::fs::write(output(&call, "note"), "noted").expect("writes");
    // One is marked, one echoed, one given inline.
    let note = output(&call, "note").display().to_string();
    let result = json!({"turned": {"$written": true}, "note": note, "given": "inline", "n": 3});
    agent.succeed(&call, result).await;
    let run = stage.end_of(&run.key).await;
    let id = &run.key.run;
    let wanted = json!({
        "turned": "world://default/out/b.txt", "note": format!("world://default/@{id}/n.txt"),
        "given": "world://default/out/c.txt", "n": 3,
    });
    assert_eq!(Value::from(outputs_of(&run).clone()), wanted);
    assert_eq!(stage.file("/out/b.txt").await, "cba");
    assert_eq!(stage.file(&format!("/@{id}/n.txt")).await, "noted");
    assert_eq!(stage.file("/out/c.txt").await, "inline");
    assert_eq!(stage.file("/in/a.txt").await, "abc");
    for left in [text.parent(), folder(&call, "outputs_dir").parent()] {
        gone(left.expect("a folder")).await;
    }
    assert_eq!(stage.objects.inner.addresses(), Vec::<String>::new(), "nobody needed any");
}

#[tokio::test]
async fn r163_names_that_are_no_file_names_stay_inside_the_rooms_folders() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    let (given, wanted) = ("../../escape", "a/../../b");
    let (inputs, outputs) = (
        json!({format!("{given}.world"): "/in/a.txt"}),
        json!({format!("{wanted}.world"): "/out/b.txt"}),
    );
    let run = stage.run_with("turn", inputs, outputs).await;
    let call = agent.call().await;
    let (text, turned) = (input(&call, given), output(&call, wanted));
    assert_eq!(text.parent(), Some(folder(&call, "inputs_dir").as_path()));
    assert_eq!(turned.parent(), Some(folder(&call, "outputs_dir").as_path()));
    assert_eq!(names(&folder(&call, "inputs_dir")).len(), 1);
    std::fs::write(&turned, "written").expect("writes");
    // A name that nobody asked for is not made safe: it would be a file that nobody finds.
    agent.succeed(&call, json!({wanted: {"$written": true}})).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Succeeded, "{run:?}");
    assert_eq!(stage.file("/out/b.txt").await, "written");
    let run = stage.run("turn", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({wanted: {"$written": true}})).await;
    let run = stage.end_of(&run.key).await;
    assert!(fault_of(&run).is(Code::ToolInvalidOutput), "{run:?}");
    assert!(!fault_of(&run).message.contains(wanted), "{run:?}");
}

#[tokio::test]
async fn r163_what_a_hostile_agent_calls_its_output_fails_the_run_and_writes_nothing() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    let secret = stage.dir.path().join("secret");
    std::fs::write(&secret, "the core's own").expect("writes");
    let plots: [fn(&Path, &Path); 5] = [
        |_, _| {},
        |secret, at| std::os::unix::fs::symlink(secret, at).expect("links"),
        |secret, at| std::fs::hard_link(secret, at).expect("links"),
        |_, at| std::fs::create_dir(at).expect("makes"),
        |_, at| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(rustix::fs::CWD, at, kind, mode, 0).expect("makes");
        },
    ];
    for plot in plots {
        let run = stage.run_with("turn", json!({}), json!({"x.world": "/out/x"})).await;
        let call = agent.call().await;
        plot(&secret, &output(&call, "x"));
        agent.succeed(&call, json!({"x": {"$written": true}})).await;
        let run = stage.end_of(&run.key).await;
        assert!(fault_of(&run).is(Code::ToolInvalidOutput), "{run:?}");
        assert!(fault_of(&run).message.contains("output x"), "{run:?}");
    }
    assert_eq!(stage.objects.inner.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn r163_files_beyond_the_agents_disk_limit_are_not_taken() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["turn"]);
    part.approve.limits.usage.disk_bytes = Some(1_000_000);
    let mut agent = entered(&mut stage, part).await;
    let run = stage.run_with("turn", json!({}), json!({"x.world": "/out/x"})).await;
    let call = agent.call().await;
    let hole = std::fs::File::create(output(&call, "x")).expect("made");
    hole.set_len(1_000_001).expect("sparse");
    agent.succeed(&call, json!({"x": {"$written": true}})).await;
    let run = stage.end_of(&run.key).await;
    assert!(fault_of(&run).is(Code::ToolOutputTooLarge), "{run:?}");
    assert_eq!(stage.objects.inner.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn r163_t032_addresses_are_given_to_agents_that_reach_the_store_and_to_no_others() {
    let literal = format!("network:egress:{}", &ORIGIN["http://".len()..]);
    let fenced = Approve::default;
    let level = |level| Approve { sandbox: Some(level), ..Approve::default() };
    for (permissions, approve, gets_address) in [
        (vec![], fenced(), false),
        (vec!["network:egress:*"], fenced(), false),
        (vec!["network:egress:127.0.0.1:7422"], fenced(), false),
        (vec!["network:egress:api.example.com"], fenced(), false),
        (vec![literal.as_str()], fenced(), true),
        (vec![], level(SandboxLevel::Basic), true),
        (vec![], level(SandboxLevel::None), true),
        (vec![], level(SandboxLevel::Strict), false),
    ] {
        let origin = |options: &mut wharf_agent::AgentEdgeOptions| {
            options.storage_origin = Some(ORIGIN.to_owned());
        };
        let mut stage = Stage::with(origin).await;
        let said = format!("{permissions:?} {:?}", approve.sandbox);
        let part = Part { approve, ..Part::new(CALLER, &["turn"]).may(&permissions) };
        let mut agent = entered(&mut stage, part).await;
        stage.put("/in/a.txt", "abc").await;
        let (inputs, outputs) = (json!({"a.world": "/in/a.txt"}), json!({"b.world": "/out/b"}));
        let run = stage.run_with("turn", inputs, outputs).await;
        let call = agent.call().await;
        let given = call["payload"]["input"]["a"].as_str().expect("text").to_owned();
        let place = output(&call, "b").display().to_string();
        assert_eq!(given.starts_with("memory://"), gets_address, "{said}");
        assert_eq!(place.starts_with("memory://"), gets_address, "{said}");
        assert_eq!(call["payload"]["context"]["refs"], json!(["a"]), "{said}");
        if gets_address {
            assert_eq!(stage.objects.inner.get_at(&given).expect("good"), "abc");
            stage.objects.inner.put_at(&place, "cba").expect("good");
        } else {
            std::fs::write(&place, "cba").expect("writes");
        }
        agent.succeed(&call, json!({"b": {"$written": true}})).await;
        let run = stage.end_of(&run.key).await;
        assert_eq!(outputs_of(&run)["b"], "world://default/out/b", "{said}");
        assert_eq!(stage.file("/out/b").await, "cba", "{said}");
        let shown = format!("{run:?}");
        for address in stage.objects.inner.addresses() {
            assert!(!shown.contains(&address), "{said}: an address is in the record");
        }
    }
}

#[tokio::test]
async fn r163_a_call_that_is_being_prepared_can_be_canceled_and_others_go_on() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    let asked = stage.objects.count();
    stage.objects.answer(false);
    let slow = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    stage.objects.asked(asked + 1).await;
    let quick = stage.run("turn", json!({})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["payload"]["input"], json!({}), "the call without files is not held up");
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&quick.key).await.status(), RunStatus::Succeeded);
    stage.handle.runs().cancel(&owner(), &slow.key, "unwanted").await.expect("canceled");
    let slow = stage.end_of(&slow.key).await;
    assert_eq!(slow.status(), RunStatus::Canceled, "{slow:?}");
    assert_eq!(fault_of(&slow).details["executed"], "no", "{slow:?}");
    // The agent never hears of it; what it sees next is the next call.
    stage.objects.answer(true);
    let next = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    let call = agent.call().await;
    assert_eq!(call["request_id"], next.key.run.as_str());
    let inputs = folder(&call, "inputs_dir");
    let all = inputs.parent().expect("a folder");
    let files: Vec<_> = names(all).iter().flat_map(|room| names(&all.join(room))).collect();
    assert_eq!(files, ["a"], "nothing is left of the first");
}

#[tokio::test]
async fn r163_a_call_that_is_being_prepared_takes_a_place() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["turn"]);
    part.limits = json!({"max_concurrent_calls": 1});
    let mut agent = entered(&mut stage, part).await;
    stage.put("/in/a.txt", "abc").await;
    let asked = stage.objects.count();
    stage.objects.answer(false);
    let first = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    stage.objects.asked(asked + 1).await;
    let second = stage.run("turn", json!({})).await.expect("accepted");
    stage.objects.answer(true);
    for run in [first, second] {
        let call = agent.call().await;
        assert_eq!(call["request_id"], run.key.run.as_str(), "in the order in which they came");
        agent.succeed(&call, json!({})).await;
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn r163_a_store_that_breaks_off_is_asked_again_before_the_agent_is() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    stage.objects.cut(1);
    let run = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    let call = agent.call().await;
    assert_eq!(std::fs::read_to_string(input(&call, "a")).expect("readable"), "abc");
    agent.succeed(&call, json!({})).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Succeeded, "{run:?}");
    assert_eq!(run.attempt, 2, "{run:?}");

    stage.objects.cut(usize::MAX);
    let run = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    let run = stage.end_of(&run.key).await;
    assert!(fault_of(&run).is(Code::StorageUnavailable), "{run:?}");
    assert_eq!(fault_of(&run).details["executed"], "no", "{run:?}");
    stage.objects.cut(0);
    let run = stage.run("turn", json!({})).await.expect("accepted");
    assert_eq!(agent.call().await["request_id"], run.key.run.as_str(), "it heard of none");
}

#[tokio::test]
async fn r163_an_input_that_is_gone_by_then_fails_the_run_by_its_name() {
    let mut stage = Stage::new().await;
    let _agent = fenced(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    stage.objects.answer(false);
    let asked = stage.objects.count();
    let run = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    stage.objects.asked(asked + 1).await;
    stage.objects.inner.delete("default/in/a.txt".to_owned()).await.expect("removed");
    stage.objects.answer(true);
    let run = stage.end_of(&run.key).await;
    assert!(fault_of(&run).is(Code::ArtifactChanged), "{run:?}");
    assert_eq!(fault_of(&run).details["key"], "a", "{run:?}");
}

#[tokio::test]
async fn r163_a_connection_lost_while_files_are_copied_has_begun_nothing() {
    let mut stage = Stage::new().await;
    let (launch, agent) = Part::new(CALLER, &["turn"]).enter(&mut stage).await;
    stage.put("/in/a.txt", "abc").await;
    let asked = stage.objects.count();
    stage.objects.answer(false);
    let run = stage.run_with("turn", json!({"a.world": "/in/a.txt"}), json!({})).await;
    stage.objects.asked(asked + 1).await;
    drop(agent);
    launch.exit(1);
    // It is tried again with the next process, since nothing was begun.
    let launch = stage.launch().await;
    stage.objects.answer(true);
    let mut agent = stage.join(&launch, &["turn"]).await;
    let call = agent.call().await;
    assert_eq!(std::fs::read_to_string(input(&call, "a")).expect("readable"), "abc");
    agent.succeed(&call, json!({})).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Succeeded, "{run:?}");
}

#[tokio::test]
async fn r163_files_that_nobody_wants_any_more_are_not_stored() {
    let mut stage = Stage::new().await;
    let mut agent = fenced(&mut stage).await;
    let run = stage.run_with("turn", json!({}), json!({"x.world": "/out/x"})).await;
    let call = agent.call().await;
    std::fs::write(output(&call, "x"), "late").expect("writes");
    let asked = stage.objects.count();
    stage.objects.answer(false);
    agent.succeed(&call, json!({"x": {"$written": true}})).await;
    stage.objects.asked(asked + 1).await;
    stage.handle.runs().cancel(&owner(), &run.key, "unwanted").await.expect("canceled");
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Canceled, "{run:?}");
    gone(&folder(&call, "outputs_dir")).await;
    stage.objects.answer(true);
    assert_eq!(stage.objects.inner.keys(), Vec::<String>::new());
}
