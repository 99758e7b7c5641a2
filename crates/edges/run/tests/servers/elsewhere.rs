//! Servers that this core does not start.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use wharf_ports::vault::Secret;
use wharf_ports::vault::Vault as _;
use wharf_run::Storage;
use wharf_vocab::{Code, SecretName};

use crate::stage::Stage;

const TOKEN: &str = "a-token-of-the-tests";

/// A server that somebody else started, and its port.
async fn somebody_elses(stage: &Stage, bearer: Option<&str>) -> (Child, u16) {
    let mut command = Command::new("python3");
    command.arg(stage.folder().join("server.py")).arg("0").env("TMPDIR", stage.dir.path());
    command.stdout(Stdio::piped()).kill_on_drop(true);
    if let Some(bearer) = bearer {
        command.env("TEST_BEARER", bearer);
    }
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next_line().await.expect("readable").expect("a line");
    (child, line.parse().expect("a port"))
}

#[tokio::test]
async fn t042_a_server_elsewhere_gives_the_same_as_one_that_was_started_here() {
    let here = Stage::ready("").await;
    let elsewhere = Stage::new().await;
    let (_server, port) = somebody_elses(&elsewhere, None).await;
    elsewhere.write_manifest_of(&format!("url = \"ws://127.0.0.1:{port}\""));
    elsewhere.approved().await;
    for (text, op) in [("grüße", "upper"), ("", "upper"), ("x", "unknown")] {
        let inputs = json!({"op": op, "text": text});
        let one = here.run(inputs.clone()).await;
        let two = elsewhere.run(inputs).await;
        let (one, two) = (here.end_of(&one.key).await, elsewhere.end_of(&two.key).await);
        let told = |run: &wharf_domain::Run| {
            let mut told = serde_json::to_value(run.outcome.as_ref()).expect("JSON");
            if let Some(outputs) = told.pointer_mut("/outputs").and_then(|o| o.as_object_mut()) {
                outputs.remove("pid");
            }
            told
        };
        assert_eq!(told(&one), told(&two), "{op} {text}");
    }
    assert!(elsewhere.launcher.specs().is_empty(), "nothing was started for it");
}

#[tokio::test]
async fn t042_t044_a_server_elsewhere_is_shown_its_token_from_the_vault() {
    let stage = Stage::new().await;
    let (_server, port) = somebody_elses(&stage, Some(TOKEN)).await;
    let name = SecretName::new("TOOL_TOKEN").expect("valid");
    stage.vault.set(name.clone(), Secret::new(TOKEN.as_bytes())).await.expect("kept");
    let lines = format!("url = \"ws://localhost:{port}/run\"\ntoken_secret = \"TOOL_TOKEN\"");
    stage.write_manifest_of(&lines);
    stage.approved().await;
    let run = stage.run(json!({"op": "upper", "text": "a"})).await;
    assert_eq!(stage.outputs(&run).await["text"], "A");
    let audit = stage.handle.audit().list(0, 10_000).await.expect("readable");
    assert!(audit.iter().all(|sealed| !format!("{:?}", sealed.record).contains(TOKEN)));
    stage.vault.set(name, Secret::new(&b"another"[..])).await.expect("kept");
    let fault = stage.fault(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    assert!(!fault.message.contains("another"), "{fault}");
}

#[tokio::test]
async fn t042_a_server_elsewhere_that_is_not_there_is_named_as_the_cause() {
    let stage = Stage::new().await;
    let (mut server, port) = somebody_elses(&stage, None).await;
    server.kill().await.expect("killed");
    stage.write_manifest_of(&format!("url = \"ws://127.0.0.1:{port}\""));
    stage.approved().await;
    let fault = stage.fault(&*stage.run(json!({"op": "upper", "text": "a"})).await).await;
    assert!(fault.is(Code::ToolUnavailable), "{fault}");
    assert!(fault.message.contains("cannot be reached"), "{fault}");
}

#[tokio::test]
async fn t033_a_server_elsewhere_that_could_not_reach_files_is_refused_when_it_is_added() {
    let stage = Stage::new().await;
    for (lines, words) in [
        ("url = \"wss://tools.example.com\"", "public_url"),
        ("url = \"ws://127.0.0.1:9\"\nprofile = \"seed\"", "https://"),
        ("url = \"ws://tools.example.com\"", "url"),
        ("url = \"https://tools.example.com\"", "url"),
    ] {
        stage.write_manifest_of(lines);
        let fault = stage.add().await.expect_err(lines);
        assert!(fault.is(Code::ToolManifestInvalid), "{lines}: {fault}");
        assert!(fault.message.contains(words), "{lines}: {fault}");
    }
    let public = |options: &mut wharf_run::RunEdgeOptions| {
        let origin = "https://files.example.com".to_owned();
        options.storage = Storage { origin, is_public: true };
    };
    let stage = Stage::with(public).await;
    for lines in ["url = \"wss://tools.example.com\"", "url = \"wss://t.dev\"\nprofile = \"seed\""]
    {
        stage.write_manifest_of(lines);
        stage.add().await.expect(lines);
    }
}
