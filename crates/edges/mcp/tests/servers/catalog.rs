//! What servers offer, as the catalog has it.

use serde_json::{Value, json};
use wharf_vocab::Code;

use crate::stage::{Stage, tool};

#[tokio::test]
async fn m054_all_pages_are_read_and_names_that_are_no_ids_reach_the_server_as_they_are() {
    let stage = Stage::new().await;
    let names = (0..25).map(|n| tool(&format!("t{n}"))).chain([tool("get wéather")]);
    stage.state(&json!({"tools": names.collect::<Vec<_>>(), "page": 4}));
    let stage = stage.ready("legacy", "").await;
    let names = stage.names();
    assert_eq!(names.len(), 26);
    let encoded = names.iter().find(|name| name.starts_with("x-")).expect("encoded");
    assert_eq!(stage.call(encoded, json!({})).await["name"], "get wéather");
}

#[tokio::test]
async fn m054_a_list_without_end_is_cut_and_one_that_is_huge_too() {
    let stage = Stage::new().await;
    stage.state(&json!({"endless": true}));
    let stage = stage.ready("legacy", "").await;
    assert_eq!(stage.names().len(), 50, "as many pages as are read");
    assert!(stage.launcher.log().contains("Not all tools are read"));

    let stage = Stage::new().await;
    let many: Vec<Value> = (0..2_500).map(|n| tool(&format!("t{n:04}"))).collect();
    stage.state(&json!({ "tools": many, "page": 500 }));
    let stage = stage.ready("modern", "").await;
    assert_eq!(stage.names().len(), 2_000);
    assert_eq!(stage.call("t1999", json!({})).await["name"], "t1999");
}

#[tokio::test]
async fn m054_a_bad_schema_takes_its_tool_out_and_no_other() {
    let stage = Stage::new().await;
    let with = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let deep = (0..70).fold(json!({}), |inner, _| json!({ "not": inner }));
    stage.state(&json!({"tools": [
        tool("good"),
        with("network", json!({"type": "object", "$ref": "http://127.0.0.1:1/canary"})),
        with("draft", json!({"$schema": "http://json-schema.org/draft-03/schema#"})),
        with("large", json!({"type": "object", "description": "x".repeat(70_000)})),
        with("deep", deep),
        with("wrong", json!({"type": "object", "properties": []})),
        {"name": "none"},
        {"inputSchema": {}},
        7,
    ]}));
    let stage = stage.ready("legacy", "").await;
    assert_eq!(stage.names(), ["deep", "draft", "good", "large", "network", "none", "wrong"]);
    assert_eq!(stage.call("good", json!({})).await["name"], "good");
    for (name, why) in [
        ("network", "outside of itself"),
        ("draft", "2020-12 nor draft-07"),
        ("large", "bytes long"),
        ("deep", "deep"),
        ("wrong", "not valid JSON Schema"),
        ("none", "cannot be read"),
    ] {
        let quarantine = stage.tool(name).expect("there").quarantine.unwrap_or_default();
        assert!(quarantine.contains(why), "{name}: {quarantine}");
        let fault = stage.fault(name, json!({})).await;
        assert!(fault.is(Code::ToolQuarantined), "{name}: {fault}");
    }
}

#[tokio::test]
async fn m054_schemas_of_draft_7_hold_as_they_are_meant() {
    let stage = Stage::new().await;
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}],
                                "additionalItems": false}},
    });
    stage.state(&json!({"tools": [{"name": "echo", "inputSchema": schema}]}));
    let stage = stage.ready("legacy", "").await;
    assert_eq!(stage.call("echo", json!({"pair": ["a", 1]})).await["given"]["pair"][1], 1);
    for wrong in [json!({"pair": [1, 1]}), json!({"pair": ["a", 1, 2]})] {
        let fault = stage.fault("echo", wrong).await;
        assert!(fault.is(Code::ToolInvalidInput), "{fault}");
    }
    let origin = stage.tool("echo").expect("there").def.mcp.clone().expect("described");
    assert_eq!(origin.input_schema, Some(schema), "clients see what the server said");
}

#[tokio::test]
async fn m057_a_list_is_read_again_when_its_server_tells_of_a_change() {
    for mood in ["legacy", "modern"] {
        let stage = Stage::new().await;
        let both = json!({"tools": [tool("change"), tool("more")]});
        stage.state(&json!({"tools": [tool("change")]}));
        let stage = stage.ready(mood, "accept_new = true").await;
        assert!(stage.tool("more").is_none());
        stage.call("change", json!({ "state": both })).await;
        stage.until_so(|stage| stage.tool("more").is_some()).await;
        assert_eq!(stage.call("more", json!({})).await["name"], "more");
    }
}

#[tokio::test]
async fn m057_a_stream_that_a_server_ends_is_opened_again_and_what_was_missed_is_read() {
    let stage = Stage::new().await;
    stage.state(&json!({"tools": [tool("seen")]}));
    let stage = stage.ready("modern:curt", "accept_new = true").await;
    stage.state(&json!({"tools": [tool("seen"), tool("more")]}));
    stage.until_so(|stage| stage.tool("more").is_some()).await;
    let seen = stage.call("seen", json!({})).await;
    let count =
        |method: &str| seen.as_array().into_iter().flatten().filter(|one| one[0] == method).count();
    assert!(count("subscriptions/listen") >= 2, "{seen}");
    assert!(count("subscriptions/listen") < 20, "with pauses: {seen}");
}
