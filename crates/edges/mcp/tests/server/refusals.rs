//! What a client is told when something does not work (section 6, M72).

use serde_json::{Value, json};
use wharf_domain::{Caller, WorldSettings};

use crate::client::{ALL, OF_06};
use crate::stage::{Stage, world};

#[tokio::test]
async fn m072_arguments_that_do_not_fit() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        for arguments in [json!({}), json!({"n": "many"}), json!({"n": 1, "x": 2})] {
            let answer = client.call(1, "wharf__count", arguments.clone()).await;
            assert_eq!(answer.status, 200);
            let response = answer.response().await;
            if revision == OF_06 {
                assert_eq!(response["error"]["code"], -32602, "{response}");
                assert_eq!(response["error"]["data"]["code"], "tool.invalid_input");
                continue;
            }
            let result = &response["result"];
            assert_eq!(result["isError"], true, "{response}");
            let text = result["content"][0]["text"].as_str().expect("text");
            assert!(text.starts_with("tool.invalid_input: "), "{text}");
            assert_eq!(result["_meta"]["dev.wharf/run"]["executed"], "no");
            if arguments["n"] == "many" {
                assert!(text.contains("/n"), "it says where: {text}");
            }
        }
        // Parameters that are none are never a result.
        for params in
            [json!({}), json!({"name": 7}), json!({"name": "wharf__echo", "arguments": []})]
        {
            let body = client.body(2, "tools/call", params.clone());
            let response = client.raw(&body, &client.headers(&body)).await.response().await;
            assert_eq!(response["error"]["code"], -32602, "{params} {response}");
        }
    }
    assert!(stage.runs().await.is_empty());
}

#[tokio::test]
async fn m072_what_a_model_is_to_read_is_a_result() {
    let stage = Stage::start().await;
    let poor = WorldSettings { limit_micro: Some(0), ..WorldSettings::default() };
    let made = stage.handle.worlds().create(&Caller::owner(), world("poor"), poor).await;
    made.expect("a world");
    for revision in ALL {
        let client = stage.client().at("/mcp?world=poor").speaking(revision).await;
        let paid = json!({"ms": 1, "cost_micro": 100});
        let result = client.call(1, "test__dear", paid).await.result().await;
        assert_eq!(result["isError"], true, "{revision} {result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with("budget.exceeded: "), "{text}");
    }
}

#[tokio::test]
async fn m072_methods_that_there_are_not() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        let status = if client.session.is_some() { 200 } else { 404 };
        for method in ["no/such", "elicitation/create", "roots/list", "sampling/createMessage"] {
            let params = match method {
                "elicitation/create" => {
                    json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
                }
                "sampling/createMessage" => json!({"messages": [], "maxTokens": 1}),
                _ => json!({}),
            };
            client.request(1, method, params).await.refused(status, -32601).await;
        }
    }
}

#[tokio::test]
async fn m072_no_code_is_made_up() {
    let stage = Stage::start().await;
    let mut codes: Vec<i64> = Vec::new();
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        for (method, params) in [
            ("tools/call", json!({"name": "none"})),
            ("tools/list", json!({"cursor": "x"})),
            ("resources/read", json!({"uri": "world://default/none.txt"})),
            ("resources/read", json!({"uri": "a:b"})),
            ("prompts/get", json!({"name": "none"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            ),
            ("tasks/get", json!({"taskId": "x"})),
            ("no/such", json!({})),
        ] {
            let response = client.request(1, method, params).await.response().await;
            codes.extend(response["error"]["code"].as_i64());
        }
    }
    let known =
        |code: &i64| matches!(code, -32700 | -32603..=-32600 | -32002 | -32022..=-32020 | -32042);
    assert!(codes.len() >= 20 && codes.iter().all(known), "{codes:?}");
}

#[tokio::test]
async fn m078_one_grant_has_so_many_calls_under_way() {
    let stage = Stage::start().await;
    let client = stage.client().speaking("2026-07-28").await;
    let calls = (0..256).map(|id| client.call(id, "test__steps", json!({"of": 1})));
    let open = futures::future::join_all(calls).await;
    assert!(open.iter().all(|answer| answer.status == 200));
    let answer = client.request(999, "tools/list", json!({})).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    let response: Value = answer.json().await;
    assert_eq!((&response["error"]["code"], &response["id"]), (&json!(-32603), &json!(999)));
    drop(open);
    crate::stage::eventually(async || {
        let answer = client.request(1000, "tools/list", json!({})).await;
        (answer.status == 200).then_some(())
    })
    .await;
}
