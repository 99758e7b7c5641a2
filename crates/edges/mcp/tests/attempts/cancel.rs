//! Calls that are called off.

use std::path::PathBuf;

use serde_json::{Value, json};
use wharf_domain::Run;
use wharf_vocab::{Code, RunStatus};

use crate::peers::{
    fault, let_go_on, marks, peer, peer_elsewhere, start, until, until_marked, words,
};
use crate::stage::{Stage, owner};

async fn cancel(stage: &Stage, run: &Run) {
    stage.handle.runs().cancel(&owner(), &run.key, "Enough.").await.expect("asked");
    let ended = stage.end_of(run).await;
    assert_eq!(ended.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn m064_a_server_is_told_and_a_late_answer_is_nobodys() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "hold", json!({})).await;
        until_marked(&stage, "held").await;
        cancel(&stage, &run).await;
        until_marked(&stage, "cancelled").await;
        let told: Value = serde_json::from_str(&marks(&stage, "cancelled")[0]).expect("JSON");
        assert_eq!(told["reason"], "Enough.");
        let_go_on(&stage, "release");
        // What it answers now falls on a call that is over.
        assert_eq!(stage.call("echo", json!({})).await["given"], json!({}));
        assert_eq!(fault(&stage, &run).await.details["executed"], "maybe");
        assert_eq!(stage.launcher.specs().len(), 1);
    }
}

#[tokio::test]
async fn m064_a_server_that_hears_nothing_is_replaced_and_one_that_does_is_not() {
    let stage = peer("legacy", "").await;
    let run = start(&stage, "hold", json!({})).await;
    until_marked(&stage, "held").await;
    cancel(&stage, &run).await;
    until_marked(&stage, "pinged").await;
    assert_eq!(stage.launcher.specs().len(), 1, "it answers, so silence was correct");

    let run = start(&stage, "freeze", json!({})).await;
    until(|| marks(&stage, "held").len() == 2, "frozen").await;
    cancel(&stage, &run).await;
    until(|| stage.launcher.alive() == 0, "the process is gone").await;
    let run = start(&stage, "echo", json!({"a": 1})).await;
    assert_eq!(stage.said(&run).await["given"], json!({"a": 1}), "by another process");
}

#[tokio::test]
async fn m064_a_process_of_one_run_is_killed() {
    let stage = peer("modern", "isolation = \"run\"").await;
    let run = start(&stage, "hold", json!({})).await;
    until_marked(&stage, "held").await;
    let process = PathBuf::from("/proc").join(&marks(&stage, "held")[0]);
    assert!(process.exists());
    cancel(&stage, &run).await;
    until(|| !process.exists(), "the process is gone").await;
}

#[tokio::test]
async fn m064_a_task_is_called_off_by_its_name() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "job", json!({})).await;
    until_marked(&stage, "asked_about").await;
    cancel(&stage, &run).await;
    until_marked(&stage, "canceled").await;
    assert_eq!(marks(&stage, "called").len(), 1);
}

#[tokio::test]
async fn m064_a_run_that_is_canceled_before_it_was_sent_did_not_run() {
    let stage = peer("modern", "max_concurrency = 1").await;
    let first = start(&stage, "hold", json!({})).await;
    until_marked(&stage, "held").await;
    let second = start(&stage, "hold", json!({})).await;
    cancel(&stage, &second).await;
    assert!(fault(&stage, &second).await.is(Code::ToolCanceled));
    let_go_on(&stage, "release");
    assert_eq!(words(&stage, &first).await, "released");
    assert_eq!(marks(&stage, "held").len(), 1);
}
