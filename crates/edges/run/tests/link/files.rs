//! References: what a server is given for them, and what is confirmed of what it wrote.

use std::collections::BTreeMap;

use serde_json::json;
use wharf_run::link::FileAccess;
use wharf_vocab::Code;

use crate::stage::{Plan, world};
use crate::troupe::Troupe;

#[tokio::test]
async fn t033_references_are_addresses_and_records_never_hold_them() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    stage.put("/in.txt", "hello").await;
    let run = stage
        .start_with(json!({"file.world": "/in.txt", "n": 1}), json!({"out.world": "/out.txt"}))
        .await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["control"]["refs"], json!(["file"]));
    assert_eq!(request["inputs"]["n"], 1);
    let (get, put) = (&request["inputs"]["file"], &request["outputs"]["out"]);
    let (get, put) = (get.as_str().expect("an address"), put.as_str().expect("an address"));
    assert_eq!(&stage.objects.get_at(get).expect("good")[..], b"hello");
    stage.objects.put_at(put, "bye").expect("good");
    actor.log(&format!("read {get}, wrote {put}")).await;
    actor.stream(json!({"out": put})).await;
    actor.succeed(json!({"out": put})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"out": "world://default/out.txt"}));
    assert_eq!(stage.file("/out.txt").await.as_deref(), Some("bye"));
    let shown = format!("{:?}{:?}", stage.progress_of(&run).await, stage.end_of(&run).await);
    for address in stage.objects.addresses() {
        assert!(!shown.contains(&address), "{address}");
    }
    assert!(!shown.contains("signature="), "{shown}");
}

#[tokio::test]
async fn t030_size_and_hash_that_the_server_reports_are_checked() {
    for (told, good) in [("bye", true), ("BYE", false)] {
        let troupe = Troupe::tcp().await;
        let stage = Plan::new(troupe.endpoint()).open().await;
        let run = stage.start_with(json!({}), json!({"out.world": "/out.txt"})).await;
        let (mut actor, request) = troupe.take().await;
        let put = request["outputs"]["out"].as_str().expect("an address");
        stage.objects.put_at(put, "bye").expect("good");
        let b3 = blake3::hash(told.as_bytes()).to_hex().to_string();
        let control = json!({
            "final": true, "status": "success", "cost_micro": 0,
            "written": {"out": {"bytes": 3, "b3": b3}},
        });
        actor.end(json!({"kind": "Response", "control": control, "outputs": {"out": put}})).await;
        if good {
            assert_eq!(stage.outputs_of(&run).await, json!({"out": "world://default/out.txt"}));
        } else {
            assert!(stage.fault_of(&run).await.is(Code::ArtifactChecksum));
        }
    }
}

#[tokio::test]
async fn t028_an_output_that_is_said_to_be_written_and_is_not_is_missing() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start_with(json!({}), json!({"out.world": "/out.txt"})).await;
    let (mut actor, request) = troupe.take().await;
    actor.succeed(json!({"out": request["outputs"]["out"]})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"out": null}));
}

#[tokio::test]
async fn t027_an_output_that_is_given_inline_is_written_for_the_server() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start_with(json!({}), json!({"out.world": "/out.txt"})).await;
    let (mut actor, _) = troupe.take().await;
    actor.succeed(json!({"out": "inline"})).await;
    stage.end_of(&run).await;
    assert_eq!(stage.file("/out.txt").await.as_deref(), Some("inline"));
}

#[tokio::test]
async fn t033_a_server_in_a_fence_is_given_paths_and_no_address() {
    let troupe = Troupe::tcp().await;
    let mut plan = Plan::new(troupe.endpoint());
    let path = |name: &str, at: &str| BTreeMap::from([(name.to_owned(), at.to_owned())]);
    plan.files = FileAccess::Paths {
        inputs: path("file", "/artifacts/r/@world/in.txt"),
        outputs: path("out", "/artifacts/r/out.txt"),
    };
    plan.settings.required = vec!["out".to_owned()];
    let stage = plan.open().await;
    stage.put("/in.txt", "hello").await;
    let inputs = json!({"file.world": "/in.txt"});
    let run = stage.start_with(inputs, json!({"out.world": "/out.txt"})).await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["inputs"]["file"], "/artifacts/r/@world/in.txt");
    assert_eq!(request["outputs"]["out"], "/artifacts/r/out.txt");
    assert_eq!(request["control"]["required"], json!(["out"]));
    assert!(stage.objects.addresses().is_empty(), "none was made");
    // Whoever gave the paths stores the file; here nobody does, so it is missing.
    actor.succeed(json!({"out": "/artifacts/r/out.txt"})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"out": null}));
    assert_eq!(world().as_str(), "default");
}
