//! What a call is made with, and what its answer becomes.

use serde_json::json;
use wharf_engine::NewRun;
use wharf_vocab::Code;

use crate::peers::{fault, outputs, peer, start};
use crate::stage::{object, owner, tool_id, world};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn m058_a_call_names_its_run() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let inputs = object(json!({"a": [1, {"b": null}]}));
        let mut new = NewRun::new(tool_id("echo"), inputs, world("default"));
        new.traceparent = Some(TRACE.to_owned());
        new.idempotency_key = Some("k".to_owned());
        let run = stage.handle.runs().create(&owner(), new).await.expect("accepted").run;
        let said = stage.said(&run).await;
        assert_eq!(said["given"], json!({"a": [1, {"b": null}]}));
        let meta = &said["meta"];
        assert_eq!(meta["dev.wharf/run"]["run_id"], run.key.run.as_str());
        assert_eq!(meta["dev.wharf/run"]["attempt"], 1);
        assert!(meta.get("progressToken").is_some(), "{meta}");
        assert!(meta["dev.wharf/run"]["idempotency_key"].is_string(), "{meta}");
        let trace = meta["traceparent"].as_str().expect("a trace");
        assert_eq!(trace[..35], TRACE[..35]);
    }
}

#[tokio::test]
async fn m059_a_result_is_kept_whole() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "rich", json!({})).await;
    let given = outputs(&stage, &run).await;
    assert_eq!(given["structured"], json!({"n": 1}));
    assert_eq!(given["meta"]["a"], 1);
    assert_eq!(given["rest"], json!({"vendor": [2]}));
    assert_eq!(given["content"][0]["type"], "text");
}

#[tokio::test]
async fn m059_structured_content_must_be_what_the_tool_promises() {
    let stage = peer("modern", "").await;
    let fits = start(&stage, "measured", json!({"value": {"n": 1.5}})).await;
    assert_eq!(outputs(&stage, &fits).await["structured"], json!({"n": 1.5}));
    let differs = start(&stage, "measured", json!({"value": {"n": "many"}})).await;
    let fault = fault(&stage, &differs).await;
    assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
    assert_eq!(fault.details["executed"], "yes");
}

#[tokio::test]
async fn m059_a_result_that_tells_of_a_failure_is_one() {
    let stage = peer("legacy", "").await;
    let run = start(&stage, "wrong", json!({})).await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolFailed), "{fault}");
    assert_eq!(fault.message, "There is no such city.[2J", "it is escaped");
    assert_eq!(fault.details["executed"], "yes");
    assert_eq!(fault.details["content"][0]["type"], "text");
    assert_eq!(stage.end_of(&run).await.attempt, 1, "it acted, so it is not repeated");
}

#[tokio::test]
async fn m060_long_blocks_are_files_of_the_run() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "large", json!({})).await;
    let given = outputs(&stage, &run).await;
    let content = &given["content"];
    assert_eq!(content[0]["text"], "");
    assert_eq!(content[0]["dev.wharf/kept"]["bytes"], 100_000);
    assert_eq!(content[1]["dev.wharf/kept"]["bytes"], 75_000);
    assert_eq!(content[2]["text"], "short");
    let ended = stage.end_of(&run).await;
    let mut sizes: Vec<u64> = ended.artifacts.iter().map(|file| file.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [75_000, 100_000]);
}

#[tokio::test]
async fn m072_errors_of_servers_are_told_by_what_they_mean() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        for (number, code, executed) in [
            (-32601, Code::ToolInvalidInput, "no"),
            (-32602, Code::ToolInvalidInput, "no"),
            (-32603, Code::ToolFailed, "maybe"),
            (-32002, Code::ArtifactNotFound, "no"),
            (-32000, Code::ToolFailed, "maybe"),
            (42, Code::ToolFailed, "maybe"),
        ] {
            let inputs = json!({"code": number, "message": "no\u{202e}pe\n", "data": {"why": 1}});
            let run = start(&stage, "refuse", inputs).await;
            let fault = fault(&stage, &run).await;
            assert!(fault.is(code), "{number}: {fault}");
            assert_eq!(fault.details["executed"], executed, "{number}");
            assert_eq!(fault.details["code"], number);
            assert_eq!(fault.details["mcp_data"], json!({"why": 1}));
            assert_eq!(fault.message, "nope", "it is escaped");
            assert_eq!(stage.end_of(&run).await.attempt, 1);
        }
    }
}

#[tokio::test]
async fn m072_a_result_of_an_unknown_kind_breaks_the_protocol() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "strange", json!({})).await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolProtocolViolation), "{fault}");
    assert_eq!(stage.call("echo", json!({})).await["given"], json!({}), "the connection lives");
}
