//! Servers that break the rules. Whatever they do, the call they work on ends once, and others are
//! not disturbed.

use serde_json::json;
use wharf_domain::Progress;
use wharf_vocab::Code;
use wharf_vocab::limits::RUN_ASKS_OPEN_MAX;

use crate::peers::{fault, let_go_on, peer, progress, start, until, words};

#[tokio::test]
async fn m085_only_the_first_answer_counts() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        for _ in 0..3 {
            let run = start(&stage, "double", json!({})).await;
            assert_eq!(words(&stage, &run).await, "first");
        }
        assert_eq!(stage.call("echo", json!({})).await["given"], json!({}));
    }
}

#[tokio::test]
async fn m085_answers_to_what_nobody_asked_are_nobodys() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "lie", json!({})).await;
        assert_eq!(words(&stage, &run).await, "the truth");
        assert_eq!(progress(&stage, &run).await, []);
    }
}

#[tokio::test]
async fn m085_a_flood_of_progress_keeps_no_answer_back() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "flood", json!({})).await;
    let beside = start(&stage, "echo", json!({"x": 1})).await;
    assert_eq!(stage.said(&beside).await["given"], json!({"x": 1}));
    assert_eq!(words(&stage, &run).await, "flooded");
    let told = progress(&stage, &run).await;
    let fractions = told.iter().filter_map(|piece| match piece {
        Progress::Phase { fraction, .. } => *fraction,
        _ => None,
    });
    assert!(fractions.is_sorted(), "what is left out leaves the order");
}

#[tokio::test]
async fn m078_an_answer_that_is_too_large_fails_its_call_alone() {
    let stage = peer("legacy", "").await;
    let run = start(&stage, "huge", json!({})).await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolProtocolViolation), "{fault}");
    assert_eq!(stage.call("echo", json!({})).await["given"], json!({}));
    assert_eq!(stage.launcher.specs().len(), 1, "the connection lives");
}

#[tokio::test]
async fn m085_a_server_cannot_ask_more_than_a_run_may() {
    let stage = peer("legacy", "").await;
    let refused = 200 - RUN_ASKS_OPEN_MAX;
    let run = start(&stage, "ask_all_at_once", json!({"count": 200, "refused": refused})).await;
    let open = || stage.handle.runs().live(&run.key).expect("open").open_asks().count();
    until(|| open() == RUN_ASKS_OPEN_MAX, "all that may be asked is").await;
    let beside = start(&stage, "echo", json!({})).await;
    assert_eq!(stage.said(&beside).await["given"], json!({}), "others are not disturbed");
    let_go_on(&stage, "release");
    assert_eq!(stage.said(&run).await, refused);
}
