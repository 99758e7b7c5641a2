//! Files of runs whose server is fenced in: it finds them in a folder, and leaves them there.

use serde_json::json;
use wharf_engine::NewRun;
use wharf_ports::providers::Approve;
use wharf_vocab::{Code, RunId, SandboxLevel};

use crate::launcher::seen;
use crate::stage::{Stage, object, owner, tool, world};

/// What a server found under `/artifacts`, and what is left of it.
fn left_in_artifacts(stage: &Stage) -> Vec<String> {
    let specs = stage.launcher.specs();
    let folder = specs[0].fence.artifacts.clone().expect("it has one");
    let entries = std::fs::read_dir(folder).expect("there");
    entries.map(|entry| entry.expect("readable").file_name().display().to_string()).collect()
}

#[tokio::test]
async fn t033_a_fenced_server_reads_and_writes_files_in_its_folder() {
    let stage = Stage::ready("").await;
    stage.put("/in/a.txt", "some text").await;
    let inputs = json!({"op": "copy", "file.world": "/in/a.txt"});
    let run = stage.run_with(inputs, json!({"out.world": "/out/deep/b.txt"})).await;
    let outputs = stage.outputs(&run).await;
    assert_eq!(outputs["seen"], json!([run.key.run.as_str()]), "one folder per run");
    assert_eq!(outputs["out"], "world://default/out/deep/b.txt");
    assert_eq!(stage.file("/out/deep/b.txt").await.expect("written"), "SOME TEXT");
    assert_eq!(left_in_artifacts(&stage), Vec::<String>::new(), "the run's folder goes with it");
}

#[tokio::test]
async fn t033_t036_local_files_are_a_runs_own_and_a_later_run_may_read_them() {
    let stage = Stage::ready("").await;
    stage.put("/in.txt", "state").await;
    let inputs = json!({"op": "copy", "file.world": "/in.txt"});
    let first = stage.run_with(inputs, json!({"out.local": "/state/s.txt"})).await;
    stage.outputs(&first).await;
    let run = first.key.run.as_str();
    assert_eq!(stage.file(&format!("/@{run}/state/s.txt")).await.expect("written"), "STATE");
    let inputs = json!({"op": "copy", "file.local": format!("/@{run}/state/s.txt")});
    let second = stage.run_with(inputs, json!({"out.local": "/state/s.txt"})).await;
    stage.outputs(&second).await;
    let run = second.key.run.as_str();
    assert_eq!(stage.file(&format!("/@{run}/state/s.txt")).await.expect("written"), "STATE");
}

#[tokio::test]
async fn t033_runs_of_two_worlds_with_one_id_have_folders_of_their_own() {
    let stage = Stage::ready("").await;
    let settings = wharf_domain::WorldSettings::default();
    stage.handle.worlds().create(&owner(), world("other"), settings).await.expect("made");
    let go = stage.dir.path().join("go");
    let start = |name: &str| {
        let inputs = json!({"op": "hold and write", "until": go.display().to_string()});
        let mut new = NewRun::new(tool(), object(inputs), world(name));
        new.outputs = object(json!({"out.local": "/o.txt"}));
        new.run_id = Some(RunId::new("same").expect("valid"));
        let handle = stage.handle.clone();
        async move { handle.runs().create(&owner(), new).await.expect("accepted").run }
    };
    let (one, two) = (start("default").await, start("other").await);
    // Both are at work before either may end.
    while stage.launcher.specs().first().is_none_or(|spec| seen(spec).lines().count() < 2) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    std::fs::write(&go, "").expect("written");
    let one = stage.outputs(&one).await;
    let two = stage.outputs(&two).await;
    assert_eq!(one["out"], "world://default/@same/o.txt");
    assert_eq!(two["out"], "world://other/@same/o.txt");
    let said = seen(&stage.launcher.specs()[0]);
    let places: Vec<String> = said
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|request| request["outputs"]["out"].as_str().expect("a place").to_owned())
        .collect();
    assert_ne!(places[0], places[1]);
    assert!(places.iter().any(|place| place == "/artifacts/same/o.txt"), "{places:?}");
    assert_eq!(left_in_artifacts(&stage), Vec::<String>::new());
}

#[tokio::test]
async fn t026_what_a_lying_server_links_to_is_not_taken() {
    let stage = Stage::ready("").await;
    let target = stage.dir.path().join("outside").join("key.txt");
    std::fs::create_dir_all(target.parent().expect("a folder")).expect("made");
    std::fs::write(&target, "not for tools").expect("written");
    for op in ["link", "parent link"] {
        let inputs = json!({"op": op, "target": target.display().to_string()});
        let run = stage.run_with(inputs, json!({"out.world": "/stolen/key.txt"})).await;
        let fault = stage.fault(&run).await;
        assert!(fault.is(Code::ToolInvalidOutput), "{op}: {fault}");
        assert!(stage.file("/stolen/key.txt").await.is_err(), "{op}");
    }
    assert_eq!(std::fs::read_to_string(&target).expect("there"), "not for tools");
    assert_eq!(left_in_artifacts(&stage), Vec::<String>::new());
}

#[tokio::test]
async fn t032_a_server_that_is_not_fenced_in_is_given_addresses() {
    let stage = Stage::new().await;
    stage.write_manifest("well", "");
    stage.add().await.expect("added");
    let approve = Approve { sandbox: Some(SandboxLevel::Basic), ..Approve::default() };
    stage.approve(approve).await.expect("approved");
    stage.put("/in.txt", "x").await;
    let run = stage.run_with(json!({"op": "look", "file.world": "/in.txt"}), json!({})).await;
    stage.fault(&run).await;
    let spec = &stage.launcher.specs()[0];
    assert_eq!(spec.fence.artifacts, None);
    let seen: serde_json::Value = serde_json::from_str(seen(spec).trim()).expect("JSON");
    let file = seen["inputs"]["file"].as_str().expect("text").to_owned();
    assert!(file.contains("://") && !file.starts_with("world:"), "{file}");
    assert_eq!(seen["control"]["refs"], json!(["file"]));
}
