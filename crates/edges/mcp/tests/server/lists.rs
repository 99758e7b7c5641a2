//! What clients are told of lists, and how arguments are completed (M11, M42).

use std::collections::BTreeSet;

use serde_json::json;

use crate::client::{ALL, OF_06, OF_11};
use crate::stage::Stage;

#[tokio::test]
async fn m011_the_first_stream_after_a_restart_is_told_that_every_list_may_have_changed() {
    for revision in [OF_06, OF_11] {
        let stage = Stage::start().await;
        let client = stage.client().speaking(revision).await;
        let stage = stage.killed().await;
        let mut stream = client.moved(stage.addr()).get(None).await;
        let mut told = BTreeSet::new();
        while told.len() < 3 {
            told.insert(stream.message().await["method"].to_string());
        }
        let expected = ["prompts", "resources", "tools"];
        let expected = expected.map(|list| format!("\"notifications/{list}/list_changed\""));
        assert_eq!(told, expected.into());
    }
}

#[tokio::test]
async fn m042_worlds_are_completed_by_their_beginning() {
    let stage = Stage::start().await;
    let of = json!({"type": "ref/resource", "uri": "world://{world}/{+path}"});
    let narrow = stage.token(json!({"verbs": ["read"], "worlds": ["other"]})).await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        for (begun, fit) in [("", vec!["default", "other"]), ("ot", vec!["other"]), ("x", vec![])] {
            let params = json!({"ref": of, "argument": {"name": "world", "value": begun}});
            let result = client.request(1, "completion/complete", params).await.result().await;
            assert_eq!(result["completion"]["values"], json!(fit), "{result}");
        }
        let params = json!({"ref": of, "argument": {"name": "path", "value": "/a"}});
        let result = client.request(2, "completion/complete", params).await.result().await;
        assert_eq!(result["completion"]["values"], json!([]), "there is no such file");
        let params = json!({"ref": {"type": "ref/prompt", "name": "no"},
                            "argument": {"name": "a", "value": ""}});
        client.request(3, "completion/complete", params).await.refused(200, -32602).await;

        let foreign = stage.client().bearing(&narrow).at("/mcp?world=other");
        let foreign = foreign.speaking(revision).await;
        let params = json!({"ref": of, "argument": {"name": "world", "value": ""}});
        let result = foreign.request(4, "completion/complete", params).await.result().await;
        assert_eq!(result["completion"]["values"], json!(["other"]), "no other is named");
    }
}
