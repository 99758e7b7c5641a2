//! Calls are runs (M19, M23, M24), and what becomes of one that is refused.

use serde_json::{Value, json};
use wharf_vocab::{Durability, Mode};

use crate::client::{ALL, OF_06, OF_11, OF_26};
use crate::stage::Stage;

#[tokio::test]
async fn m019_a_call_makes_a_run_with_the_arguments_as_inputs() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        let answer = client.call(7, "wharf__echo", json!({"a": 1, "b": "x"})).await;
        assert_eq!((answer.status, answer.is_stream()), (200, false), "{revision}");
        let message = answer.json().await;
        assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &json!(7)));
        let result = &message["result"];
        assert_eq!(result["structuredContent"], json!({"a": 1, "b": "x"}), "{revision}");
        let meta = &result["_meta"]["dev.wharf/run"];
        let run = stage.run(meta["run_id"].as_str().expect("an id")).await;
        assert_eq!(run.spec.inputs.get("a"), Some(&json!(1)));
        assert_eq!(run.spec.tool.as_str(), "wharf/echo");
        assert!(run.spec.mcp.is_some() && !run.spec.caller.person);
    }
    assert_eq!(stage.runs().await.len(), 3);
}

#[tokio::test]
async fn m019_a_call_says_what_its_run_may_take() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().at("/mcp?world=other").speaking(revision).await;
        let id = format!("my-{revision}");
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let wish = json!({
            "run_id": id, "timeout_ms": 5_000, "budget_micro": 77, "mode": "mock",
            "durability": "memory", "something": "else",
        });
        let params = json!({
            "name": "wharf__echo", "arguments": {"a": 1},
            "_meta": {"traceparent": trace, "tracestate": "vendor=a1", "dev.wharf/run": wish},
        });
        let result = client.request(1, "tools/call", params).await.result().await;
        let meta = &result["_meta"]["dev.wharf/run"];
        assert_eq!((&meta["run_id"], &meta["world"]), (&json!(id), &json!("other")), "{result}");
        let run = stage.runs().await.into_iter().find(|run| run.key.run.as_str() == id);
        let spec = run.expect("a run").spec.clone();
        assert_eq!((spec.timeout_ms, spec.budget_micro), (5_000, Some(77)));
        assert_eq!((spec.mode, spec.durability), (Mode::Mock, Durability::Memory));
        assert_eq!(spec.traceparent.as_deref(), Some(trace));
        assert_eq!(spec.tracestate.as_deref(), Some("vendor=a1"));
    }
}

#[tokio::test]
async fn m019_wishes_that_do_not_fit_make_no_run() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        for wish in [
            json!("now"),
            json!({"run_id": "no/id"}),
            json!({"run_id": 7}),
            json!({"timeout_ms": "1s"}),
            json!({"timeout_ms": 0}),
            json!({"budget_micro": -1}),
            json!({"mode": "maybe"}),
            json!({"durability": "eternal"}),
            json!({"detach": "yes"}),
            json!({"idempotency_key": ""}),
            json!({"idempotency_key": "k", "durability": "memory"}),
        ] {
            let params = json!({
                "name": "wharf__echo", "arguments": {}, "_meta": {"dev.wharf/run": wish},
            });
            let error = client.request("x", "tools/call", params).await.refused(200, -32602).await;
            assert_eq!(error["id"], "x", "{wish}");
        }
    }
    assert!(stage.runs().await.is_empty());
}

#[tokio::test]
async fn m024_results_have_outputs_as_value_and_text_and_say_which_run_it_was() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        let slept = json!({"ms": 1, "cost_micro": 12});
        let result = client.call(1, "wharf__sleep", slept).await.result().await;
        assert_eq!(result["structuredContent"], json!({"slept_ms": 1}));
        let content = result["content"].as_array().expect("content");
        assert_eq!(content.len(), 1);
        let text = content[0]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), json!({"slept_ms": 1}));
        let meta = &result["_meta"]["dev.wharf/run"];
        assert_eq!((&meta["status"], &meta["cost_micro"]), (&json!("succeeded"), &json!(12)));
        assert!(result.get("isError").is_none());
        let modern = revision == OF_26;
        assert_eq!(result.get("resultType").is_some(), modern);
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(info == "wharf", modern, "{result}");
    }
}

#[tokio::test]
async fn m024_files_that_a_run_wrote_are_linked() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    let result = client.call(1, "test__file", json!({})).await.result().await;
    let link = &result["content"][1];
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(5)), "{result}");
    let uri = link["uri"].as_str().expect("an address");
    assert!(uri.starts_with("world://default/"), "{uri}");
    let file = &link["_meta"]["dev.wharf/file"];
    assert!(file["href"].as_str().is_some_and(|href| href.starts_with("/v1/worlds/")), "{link}");
    assert_eq!(file["bytes"], 5);
}

#[tokio::test]
async fn m024_a_failure_is_a_result_that_says_so() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        let told = json!({"code": "acme.no_stock", "message": "Nothing is left."});
        let result = client.call(1, "wharf__fail", told).await.result().await;
        assert_eq!(result["isError"], true, "{revision}");
        assert_eq!(result["content"][0]["text"], "acme.no_stock: Nothing is left.");
        assert!(result.get("structuredContent").is_none());
        let meta = &result["_meta"]["dev.wharf/run"];
        assert_eq!((&meta["status"], &meta["code"]), (&json!("failed"), &json!("acme.no_stock")));
        assert_eq!(meta["retryable"], false);
        assert!(meta["executed"].is_string(), "{meta}");
    }
}

#[tokio::test]
async fn m024_values_that_are_no_objects_travel_as_the_revision_knows_them() {
    let stage = Stage::start().await;
    for (revision, value) in
        [(OF_06, json!({"value": 42})), (OF_11, json!({"value": 42})), (OF_26, json!(42))]
    {
        let client = stage.client().speaking(revision).await;
        let result = client.call(1, "test__number", json!({})).await.result().await;
        assert_eq!(result["structuredContent"], value, "{revision}");
    }
}

#[tokio::test]
async fn m005_at_the_door_of_one_provider_tools_have_their_own_names() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().at("/mcp/wharf").speaking(revision).await;
        let result = client.call(1, "echo", json!({"a": 1})).await.result().await;
        assert_eq!(result["structuredContent"], json!({"a": 1}));
        for other in ["wharf__echo", "steps", "test__steps", "wharf/echo"] {
            client.call(2, other, json!({})).await.refused(200, -32602).await;
        }
    }
    let at_both = stage.client().at("/mcp/test").speaking(OF_26).await;
    let result = at_both.call(1, "act.now", json!({"b": 2})).await.result().await;
    assert_eq!(result["structuredContent"], json!({"b": 2}));
}
