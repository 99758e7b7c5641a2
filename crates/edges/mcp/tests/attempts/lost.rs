//! Servers that go away in the middle of a call.

use serde_json::json;
use wharf_vocab::Code;

use crate::peers::{fault, marks, peer, start, words};

#[tokio::test]
async fn m061_a_call_whose_server_ended_may_have_run_and_is_not_repeated() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "die", json!({})).await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolAgentLost), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
    assert!(fault.message.contains('7'), "it says how the process ended: {fault}");
    assert_eq!(marks(&stage, "died").len(), 1);
    assert_eq!(stage.call("echo", json!({})).await["given"], json!({}), "there is another one");
}

#[tokio::test]
async fn m061_a_call_that_changes_nothing_is_repeated() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "die_once", json!({})).await;
        assert_eq!(words(&stage, &run).await, "alive");
        assert_eq!(marks(&stage, "died").len(), 2);
        assert_eq!(stage.end_of(&run).await.attempt, 2);
    }
}

#[tokio::test]
async fn m061_what_a_server_says_of_a_tool_counts_only_if_it_is_trusted() {
    let stage = peer("modern", "trust_annotations = false").await;
    let run = start(&stage, "die_once", json!({})).await;
    assert!(fault(&stage, &run).await.is(Code::ToolAgentLost));
    assert_eq!(marks(&stage, "died").len(), 1);
}
