//! Queries and mutations of the owner.

use serde_json::{Value, json};

use crate::support::{OWNER, Stage, eventually};

#[tokio::test]
async fn t045_a_run_is_made_shown_and_canceled() {
    let stage = Stage::start().await;
    let query = "mutation ($input: CreateRunInput!) {
        createRun(input: $input) { runId status tool world mode durability inputs correlationId } }";
    let input = json!({
        "tool": "wharf/sleep", "inputs": {"ms": 60_000, "cost_micro": 0}, "world": "lab",
        "runId": "nap", "correlationId": "c1", "timeoutMs": "120000", "budgetMicro": 5});
    let made = stage.ask_as(OWNER, query, json!({"input": input})).await;
    let run = &made.data()["createRun"];
    assert_eq!((&run["runId"], &run["world"]), (&json!("nap"), &json!("lab")), "{run}");
    assert_eq!(run["inputs"], json!({"ms": 60_000, "cost_micro": 0}));
    assert_eq!((&run["mode"], &run["durability"]), (&json!("real"), &json!("journal")));

    let again = stage.ask_as(OWNER, query, json!({"input": input})).await;
    assert_eq!(again.data()["createRun"]["runId"], "nap", "the same request gives the same run");
    let mut other = input.clone();
    other["inputs"]["ms"] = json!(1);
    let other = stage.ask_as(OWNER, query, json!({"input": other})).await;
    assert_eq!((other.status, other.code()), (200, Some("run.conflict")));

    let cancel =
        "mutation { cancelRun(id: \"nap\", world: \"lab\", reason: \"enough\") { runId } }";
    assert_eq!(stage.ask(cancel).await.data()["cancelRun"]["runId"], "nap");
    let show = "{ run(id: \"nap\", world: \"lab\") { status error { code message } outputs asks { askId } } }";
    let shown = eventually(async || {
        let shown = stage.ask(show).await.data()["run"].clone();
        (shown["status"] == "canceled").then_some(shown)
    })
    .await;
    assert_eq!(shown["error"], json!({"code": "tool.canceled", "message": "enough"}));
    assert_eq!((&shown["outputs"], &shown["asks"]), (&json!({}), &json!([])));
}

#[tokio::test]
async fn o016_questions_are_answered_and_approvals_decided() {
    let stage = Stage::start().await;
    let open = async |kind: &str| {
        let query = "{ inbox { edges { node { askId kind } } } }";
        eventually(async || {
            let inbox = stage.ask(query).await.data()["inbox"]["edges"].clone();
            let asks = inbox.as_array().expect("a list").iter();
            let ask = asks.map(|edge| &edge["node"]).find(|ask| ask["kind"] == kind)?;
            Some(ask["askId"].as_str().expect("an id").to_owned())
        })
        .await
    };
    let start = async |tool: &str, inputs: Value| {
        let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
        let input = json!({"tool": tool, "inputs": inputs});
        let made = stage.ask_as(OWNER, make, json!({"input": input})).await;
        made.data()["createRun"]["runId"].as_str().expect("an id").to_owned()
    };
    let schema = json!({"type": "string", "enum": ["red", "blue"]});
    start("wharf/ask", json!({"question": "Which?", "schema": schema})).await;
    let id = open("question").await;
    let answer = |value: &str| {
        format!("mutation {{ answerQuestion(id: \"{id}\", {value}) {{ runId status }} }}")
    };
    for (wrong, code) in [
        ("value: \"green\"", "ask.answer_invalid"),
        ("value: 1, status: \"declined\"", "request.invalid"),
        ("status: \"maybe\"", "request.invalid"),
    ] {
        assert_eq!(stage.ask(&answer(wrong)).await.code(), Some(code), "{wrong}");
    }
    assert_eq!(stage.ask(&answer("value: \"red\"")).await.code(), None);
    assert_eq!(stage.ask(&answer("value: \"blue\"")).await.code(), Some("ask.decided"));

    let run = start("wharf/approve-me", json!({})).await;
    let id = open("approval").await;
    let deny = format!(
        "mutation {{ decideApproval(id: \"{id}\", allow: false, reason: \"no\") {{ runId status }} }}"
    );
    let denied = stage.ask(&deny).await;
    assert_eq!(denied.data()["decideApproval"], json!({"runId": run, "status": "refused"}));
}

#[tokio::test]
async fn t045_a_run_is_told_where_its_caller_stands() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    let run = |id: &str, context: Value| {
        let input = json!({"tool": "wharf/echo", "runId": id, "context": context});
        stage.ask_as(OWNER, make, json!({"input": input}))
    };
    let full = json!({"projectRoot": "/p", "resourcePaths": ["/p/a", "/b"], "ui": {"dark": true}});
    assert_eq!(run("full", full.clone()).await.data()["createRun"]["runId"], "full");
    // What surrounds a call is part of the request: the same gives the same run, also by REST.
    assert_eq!(run("full", full.clone()).await.code(), None);
    let rest = json!({"tool": "wharf/echo", "run_id": "full", "context":
        {"project_root": "/p", "resource_paths": ["/p/a", "/b"], "ui": {"dark": true}}});
    let again = stage.call(OWNER, "POST", "/v1/runs", Some(&rest)).await;
    assert_eq!((again.code(), &again.body["run_id"]), (None, &json!("full")), "{}", again.body);
    for (field, value) in
        [("projectRoot", json!("/q")), ("resourcePaths", json!([])), ("ui", json!({}))]
    {
        let mut other = full.clone();
        other[field] = value;
        assert_eq!(run("full", other).await.code(), Some("run.conflict"), "{field}");
    }
    assert_eq!(run("none", Value::Null).await.code(), None);
    assert_eq!(run("none", json!({"ui": {}})).await.code(), None, "it says as much as none");
    for (field, context) in [
        ("context.projectRoot", json!({"projectRoot": "p"})),
        ("context.projectRoot", json!({"projectRoot": "/p\n"})),
        ("context.resourcePaths", json!({"resourcePaths": ["/p", "../a"]})),
        ("context.resourcePaths", json!({"resourcePaths": vec!["/p"; 101]})),
        ("context.ui", json!({"ui": [1]})),
    ] {
        let refused = run("never", context.clone()).await;
        assert_eq!(refused.code(), Some("request.invalid"), "{context}");
        let details = &refused.body["errors"][0]["extensions"]["details"];
        assert_eq!(details["field"], field, "{context}");
    }
}

#[tokio::test]
async fn t045_amounts_are_text_of_any_size() {
    let stage = Stage::start().await;
    let make = "mutation { createWorld(id: \"big\", settings: {
        limitMicro: \"18446744073709551615\", defaultHoldMicro: 7, publish: staged,
        retentionDays: 30, policy: [{tool: \"acme/*\"}]
    }) { world limitMicro defaultHoldMicro heldMicro spentMicro publish retentionDays
         policy { tool when approve audience } } }";
    let made = stage.ask(make).await;
    let rule = json!({"tool": "acme/*", "when": "always", "approve": true, "audience": "person"});
    let expect = json!({"world": "big", "limitMicro": "18446744073709551615",
        "defaultHoldMicro": "7", "heldMicro": "0", "spentMicro": "0", "publish": "staged",
        "retentionDays": 30, "policy": [rule]});
    assert_eq!(made.data()["createWorld"], expect);

    let set = "mutation ($settings: WorldSettingsInput!) {
        setWorld(id: \"big\", settings: $settings) { limitMicro defaultHoldMicro publish retentionDays } }";
    let kept = stage.ask_as(OWNER, set, json!({"settings": {"defaultHoldMicro": "9"}})).await;
    let expect = json!({"limitMicro": "18446744073709551615", "defaultHoldMicro": "9",
        "publish": "staged", "retentionDays": 30});
    assert_eq!(kept.data()["setWorld"], expect, "what is not named stays");
    let nulls = json!({"settings": {"limitMicro": null, "retentionDays": null}});
    let lifted = stage.ask_as(OWNER, set, nulls).await;
    assert_eq!(lifted.data()["setWorld"]["limitMicro"], Value::Null);
    assert_eq!(lifted.data()["setWorld"]["retentionDays"], Value::Null);
    for bad in [json!({"retentionDays": 0}), json!({"policy": [{"tool": "x", "approve": true}]})] {
        let answer = stage.ask_as(OWNER, set, json!({"settings": bad})).await;
        assert_eq!(answer.code(), Some("request.invalid"), "{bad}");
    }

    stage.finished("wharf/sleep", json!({"ms": 1, "cost_micro": 90_000_000})).await;
    let costs = "{ costs(by: world, world: \"default\") {
        items { key runs failed costMicro saturated } total { runs costMicro } } }";
    let expect = json!({
        "items": [{"key": "default", "runs": "1", "failed": "0", "costMicro": "90000000", "saturated": false}],
        "total": {"runs": "1", "costMicro": "90000000"}});
    assert_eq!(stage.ask(costs).await.data()["costs"], expect);
}

#[tokio::test]
async fn t045_two_who_change_different_settings_at_once_both_have_their_way() {
    let stage = Stage::start().await;
    let set = "mutation ($settings: WorldSettingsInput!) {
        setWorld(id: \"lab\", settings: $settings) { world } }";
    let show = "{ world(id: \"lab\") { defaultHoldMicro retentionDays } }";
    for number in 1..=20 {
        let (hold, days) = tokio::join!(
            stage.ask_as(OWNER, set, json!({"settings": {"defaultHoldMicro": number}})),
            stage.ask_as(OWNER, set, json!({"settings": {"retentionDays": number}})),
        );
        hold.data();
        days.data();
        let expect = json!({"defaultHoldMicro": number.to_string(), "retentionDays": number});
        assert_eq!(stage.ask(show).await.data()["world"], expect);
    }
    let nowhere = "mutation { setWorld(id: \"nowhere\", settings: {}) { world } }";
    assert_eq!(stage.ask(nowhere).await.code(), Some("world.not_found"));
}

#[tokio::test]
async fn t045_a_world_is_removed() {
    let stage = Stage::start().await;
    let gone = stage.ask("mutation { removeWorld(id: \"lab\") }").await;
    assert_eq!(gone.data()["removeWorld"], "lab");
    let look = stage.ask("{ world(id: \"lab\") { world } }").await;
    assert_eq!(look.code(), Some("world.not_found"));
    assert_eq!(
        stage.ask("mutation { removeWorld(id: \"lab\") }").await.code(),
        Some("world.not_found")
    );
}

#[tokio::test]
async fn t045_tools_and_asks_are_shown() {
    let stage = Stage::start().await;
    let tool =
        "{ tool(id: \"wharf/echo\") { toolId name provider state sideEffects inputSchema } }";
    let shown = stage.ask(tool).await;
    let tool = &shown.data()["tool"];
    assert_eq!((&tool["name"], &tool["provider"]), (&json!("echo"), &json!("wharf")));
    assert_eq!((&tool["state"], &tool["sideEffects"]), (&json!("available"), &json!(false)));
    assert!(tool["inputSchema"].is_object());
    assert_eq!(
        stage.ask("{ tool(id: \"no/tool\") { name } }").await.code(),
        Some("tool.not_found")
    );

    let id = stage.begin("wharf/ask", json!({"question": "Which?"})).await;
    let inbox = "{ inbox(kind: question) { edges { node { askId runId title kind } } } }";
    let asks = eventually(async || {
        let asks = stage.ask(inbox).await.data()["inbox"]["edges"].clone();
        (asks.as_array()?.len() == 1).then_some(asks)
    })
    .await;
    let node = &asks[0]["node"];
    assert_eq!((&node["runId"], &node["title"]), (&json!(id), &json!("Which?")));
    assert_eq!(
        stage.ask("{ inbox(kind: approval) { edges { cursor } } }").await.data()["inbox"]["edges"],
        json!([])
    );
    let run = stage.ask(&format!("{{ run(id: \"{id}\") {{ status asks {{ askId }} }} }}")).await;
    assert_eq!(run.data()["run"], json!({"status": "waiting", "asks": [{"askId": node["askId"]}]}));
}

#[tokio::test]
async fn t045_errors_have_codes_and_say_nothing_of_values() {
    let stage = Stage::start().await;
    let run = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    for (query, variables, code) in [
        ("{ run(id: \"none\") { runId } }", json!({}), "run.not_found"),
        ("{ run(id: \"a b\") { runId } }", json!({}), "request.invalid"),
        ("{ nothing }", json!({}), "request.invalid"),
        ("{ runs(first: 201) { edges { cursor } } }", json!({}), "request.invalid"),
        ("{ runs(first: 0) { edges { cursor } } }", json!({}), "request.invalid"),
        ("{ runs(after: \"c4nary\") { edges { cursor } } }", json!({}), "request.cursor_invalid"),
        ("{ runs(status: c4nary) { edges { cursor } } }", json!({}), "request.invalid"),
        (
            "query ($n: Int) { runs(first: $n) { edges { cursor } } }",
            json!({"n": "c4nary"}),
            "request.invalid",
        ),
        ("{ costs(since: \"c4nary\") { total { runs } } }", json!({}), "request.invalid"),
        ("{ c4nary( }", json!({}), "request.invalid"),
        (run, json!({"input": {"tool": "wharf/echo", "inputs": ["c4nary"]}}), "tool.invalid_input"),
        (
            run,
            json!({"input": {"tool": "wharf/count", "inputs": {"n": "c4nary"}}}),
            "tool.invalid_input",
        ),
        (run, json!({"input": {"tool": "no/tool"}}), "tool.not_found"),
        (run, json!({"input": {"tool": "wharf/echo", "world": "nowhere"}}), "world.not_found"),
        (run, json!({"input": {"tool": "wharf/echo", "budgetMicro": -1}}), "request.invalid"),
        ("{ trace(path: \"../c4nary\") { cut } }", json!({}), "scope.path_invalid"),
        ("subscription { runEvents(id: \"x\") { seq } }", json!({}), "request.invalid"),
    ] {
        let answer = stage.ask_as(OWNER, query, variables.clone()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (200, Some(code)),
            "{query} {variables}: {}",
            answer.body
        );
        let error = &answer.body["errors"][0];
        assert!(error["extensions"]["retryable"].is_boolean(), "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.len() > 10 && !message.contains("c4nary"), "{query}: {message}");
    }
}
