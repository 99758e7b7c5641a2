//! Cores that end in the middle of a call, and the next ones.

use serde_json::json;
use wharf_vocab::Code;

use crate::peers::{
    answer, asked, asked_beside, fault, let_go_on, marks, peer, peer_elsewhere, start, until,
    until_marked, words,
};

#[tokio::test]
async fn m062_a_task_elsewhere_is_asked_about_again_and_not_called_again() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "job", json!({})).await;
    until_marked(&stage, "asked_about").await;
    let stage = stage.restarted().await;
    let before = marks(&stage, "asked_about").len();
    until(|| marks(&stage, "asked_about").len() > before + 1, "asked about again").await;
    let_go_on(&stage, "finish");
    assert_eq!(words(&stage, &run).await, "done");
    assert_eq!(marks(&stage, "called").len(), 1);
    assert_eq!(stage.end_of(&run).await.attempt, 1);
}

#[tokio::test]
async fn m063_a_run_that_waits_for_an_answer_survives_a_restart() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "ask_twice", json!({})).await;
    let first = asked(&stage, &run).await;
    let stage = stage.restarted().await;
    let again = asked(&stage, &run).await;
    assert_eq!(again.ask_id, first.ask_id, "it is the same question");
    answer(&stage, &again, json!({"name": "one"})).await;
    let second = asked_beside(&stage, &run, &[&first]).await;
    assert_eq!(second.title, "Second?");
    let stage = stage.restarted().await;
    answer(&stage, &second, json!({"name": "two"})).await;
    assert_eq!(stage.said(&run).await, json!(["one", "two"]));
    assert_eq!(stage.end_of(&run).await.attempt, 1);
}

#[tokio::test]
async fn m062_a_question_of_a_task_survives_a_restart() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "job_that_asks", json!({})).await;
    let ask = asked(&stage, &run).await;
    let stage = stage.restarted().await;
    answer(&stage, &ask, json!({"ok": true})).await;
    assert_eq!(words(&stage, &run).await, "done");
    assert_eq!(marks(&stage, "called").len(), 1);
}

#[tokio::test]
async fn m061_a_call_of_a_process_that_went_with_its_core_may_have_run() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "hold", json!({})).await;
    until_marked(&stage, "held").await;
    let stage = stage.restarted().await;
    let fault = fault(&stage, &run).await;
    assert_eq!(fault.details["executed"], "maybe", "{fault}");
    assert_eq!(marks(&stage, "held").len(), 1);
}

#[tokio::test]
async fn m061_a_call_elsewhere_of_which_nothing_is_noted_may_have_run() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "hold", json!({})).await;
    until_marked(&stage, "held").await;
    let stage = stage.restarted().await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolAgentLost), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
    let_go_on(&stage, "release");
    assert_eq!(marks(&stage, "held").len(), 1);
}
