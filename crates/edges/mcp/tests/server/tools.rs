//! What `tools/list` shows (M15–M17).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wharf_domain::{Availability, ToolDef};
use wharf_engine::in_process::{InProcess, LocalCx, ToolOutput};
use wharf_vocab::{Object, ProviderId, ToolId};

use crate::client::{ALL, Client, OF_06, OF_11, OF_26};
use crate::stage::Stage;

async fn list(client: &Client) -> Value {
    client.request(1, "tools/list", json!({})).await.result().await
}

fn names(page: &Value) -> Vec<String> {
    let tools = page["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn tool<'a>(page: &'a Value, name: &str) -> &'a Value {
    let tools = page["tools"].as_array().expect("tools");
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {page}"))
}

#[tokio::test]
async fn m015_tools_are_listed_by_name_as_the_token_may_use_them() {
    let stage = Stage::start().await;
    let narrow = stage.token(json!({"verbs": ["read", "run"], "tools": ["wharf/*"]})).await;
    for revision in ALL {
        let all = list(&stage.client().speaking(revision).await).await;
        let known = names(&all);
        assert!(known.is_sorted(), "{known:?}");
        for name in ["wharf__echo", "wharf__ask", "test__steps", "test__act_now"] {
            assert!(known.contains(&name.to_owned()), "{known:?}");
        }
        assert!(all.get("nextCursor").is_none());
        let modern = revision == OF_26;
        assert_eq!(all.get("ttlMs"), modern.then_some(&json!(5_000)));
        assert_eq!(all.get("cacheScope"), modern.then_some(&json!("private")));
        // Less by token, by address, and by provider.
        let client = stage.client().bearing(&narrow).speaking(revision).await;
        let known = names(&list(&client).await);
        assert!(known.iter().all(|name| name.starts_with("wharf__")), "{known:?}");
        let client = stage.client().at("/mcp?tools=wharf/echo,test/*").speaking(revision).await;
        let known = names(&list(&client).await);
        assert!(known.contains(&"wharf__echo".to_owned()) && !known.contains(&"wharf__ask".into()));
        let client = stage.client().at("/mcp/test").speaking(revision).await;
        let known = names(&list(&client).await);
        assert!(known.contains(&"act.now".to_owned()) && !known.contains(&"echo".to_owned()));
    }
}

#[tokio::test]
async fn m015_a_tool_that_may_not_be_used_is_one_that_there_is_not() {
    let stage = Stage::start().await;
    let narrow = stage.token(json!({"verbs": ["read", "run"], "tools": ["wharf/echo"]})).await;
    for revision in ALL {
        let client = stage.client().bearing(&narrow).speaking(revision).await;
        let denied = client.call(1, "wharf__sleep", json!({})).await.refused(200, -32602).await;
        let absent = client.call(1, "wharf__none", json!({})).await.refused(200, -32602).await;
        assert_eq!(denied, absent);
    }
    assert!(stage.runs().await.is_empty());
}

#[tokio::test]
async fn m015_pages_stay_where_they_were_while_the_list_changes() {
    let stage = Stage::start().await;
    let offer = |names: &[String]| {
        let mut many = InProcess::new("many").expect("an id");
        for name in names {
            let id = ToolId::new(format!("many/{name}")).expect("an id");
            let def = ToolDef::new(id, "One of many.", json!({"type": "object"}));
            many = many.object_tool(def, async |input: Object, _: LocalCx| {
                Ok(ToolOutput { outputs: input, cost_micro: 0 })
            });
        }
        many
    };
    let every: Vec<String> = (0..450).map(|n| format!("t{n:03}")).collect();
    offer(&every).register(&stage.handle).await.expect("registers");
    let many = ProviderId::new("many").expect("an id");
    for revision in ALL {
        let client = stage.client().at("/mcp/many").speaking(revision).await;
        let first = list(&client).await;
        assert_eq!(names(&first), every[..200]);
        let cursor = first["nextCursor"].clone();
        let next = |cursor: Value| client.request(2, "tools/list", json!({"cursor": cursor}));
        // What goes before the place moves nothing.
        let def = |name: &String| {
            let id = ToolId::new(format!("many/{name}")).expect("an id");
            ToolDef::new(id, "One of many.", json!({"type": "object"}))
        };
        let fewer = every[50..].iter().map(def).collect();
        stage.handle.providers().set_tools(&many, fewer).expect("fewer");
        let second = next(cursor.clone()).await.result().await;
        assert_eq!(names(&second), every[200..400]);
        let third = next(second["nextCursor"].clone()).await.result().await;
        assert_eq!(names(&third), every[400..]);
        assert!(third.get("nextCursor").is_none());
        stage.handle.providers().set_tools(&many, every.iter().map(def).collect()).expect("all");

        let elsewhere = stage.client().speaking(revision).await;
        for (client, bad) in
            [(&client, json!("x")), (&client, json!("")), (&elsewhere, cursor.clone())]
        {
            let page = client.request(3, "tools/list", json!({"cursor": bad})).await;
            page.refused(200, -32602).await;
        }
    }
}

#[tokio::test]
async fn m015_only_tools_that_can_be_called_now_or_soon_are_listed() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    let test = ProviderId::new("test").expect("an id");
    let providers = stage.handle.providers();
    let listed = async || names(&list(&client).await).contains(&"test__steps".to_owned());
    assert!(listed().await);
    let down = Availability::down("gone");
    for (availability, is_listed) in [
        (down, false),
        (Availability::Unhealthy, false),
        (Availability::Coming, true),
        (Availability::Up, true),
    ] {
        let set = providers.set_availability(test.clone(), availability.clone()).await;
        set.expect("set");
        assert_eq!(listed().await, is_listed, "{availability:?}");
    }
    let steps = ToolId::new("test/steps").expect("an id");
    providers.set_quarantine(&test, vec![(steps, "it changed".to_owned())]);
    assert!(!listed().await);
    // It is there all the same, and says why it is not run.
    let result = client.call(1, "test__steps", json!({})).await.result().await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("tool.quarantined: "), "{text}");
    assert!(stage.runs().await.is_empty());
}

#[tokio::test]
async fn m016_names_are_the_same_for_all_and_after_a_restart() {
    let stage = Stage::start().await;
    let ids = ["a.b/c", "a_b/c", "text/c@1"];
    let before = register_and_list(&stage, &ids).await;
    let narrow = stage.token(json!({"verbs": ["read", "run"], "tools": ["a_b/*"]})).await;
    let seen = names(&list(&stage.client().bearing(&narrow).speaking(OF_26).await).await);
    assert_eq!(seen.len(), 1);
    assert!(before.contains(&seen[0]), "a token changes no name: {before:?} {seen:?}");
    let stage = stage.killed().await;
    let after = register_and_list(&stage, &["a_b/c", "text/c@1", "a.b/c"]).await;
    assert_eq!(before, after);
    assert_eq!(before.len(), 3);
}

async fn register_and_list(stage: &Stage, ids: &[&str]) -> BTreeSet<String> {
    for id in ids {
        let id = ToolId::new(*id).expect("an id");
        let provider = InProcess::new(id.provider().as_str()).expect("an id");
        let def = ToolDef::new(id, "Named.", json!({"type": "object"}));
        let provider = provider.object_tool(def, async |input: Object, _: LocalCx| {
            Ok(ToolOutput { outputs: input, cost_micro: 0 })
        });
        provider.register(&stage.handle).await.expect("registers");
    }
    let page = list(&stage.client().speaking(OF_06).await).await;
    let is_own = |name: &String| name.starts_with("a_b__c") || name == "text__c_v1";
    let own = names(&page).into_iter().filter(is_own);
    let own: BTreeSet<String> = own.collect();
    for name in &own {
        let client = stage.client().speaking(OF_06).await;
        let echoed = client.call(1, name, json!({"n": name})).await.result().await;
        assert_eq!(echoed["structuredContent"]["n"], **name);
    }
    own
}

#[tokio::test]
async fn m017_tools_are_described_as_the_catalog_knows_them() {
    let stage = Stage::start().await;
    for revision in ALL {
        let page = list(&stage.client().speaking(revision).await).await;
        let count = tool(&page, "wharf__count");
        assert_eq!(count["description"], "Counts to n, one number at a time.");
        assert_eq!(count["inputSchema"]["type"], "object");
        assert!(count["inputSchema"]["properties"]["n"].is_object());
        assert!(count["outputSchema"]["properties"]["sum"].is_object());
        assert_eq!(count["annotations"]["readOnlyHint"], true);
        assert_eq!(count["annotations"]["idempotentHint"], false);
        let meta = &count["_meta"]["dev.wharf/tool"];
        assert_eq!(*meta, json!({"id": "wharf/count", "approval": false, "max_cost_micro": 0}));
        let acts = tool(&page, "test__act_now");
        assert_eq!(acts["annotations"]["readOnlyHint"], false);
        assert_eq!(acts["annotations"]["idempotentHint"], true);
        assert_eq!(acts["inputSchema"]["type"], "object");
        let guarded = &tool(&page, "wharf__approve-me")["_meta"]["dev.wharf/tool"];
        assert_eq!(guarded["approval"], true);
        let dear = &tool(&page, "test__dear")["_meta"]["dev.wharf/tool"];
        assert_eq!(dear["max_cost_micro"], 500);
        let core_tasks = revision == OF_11;
        let execution = count.get("execution");
        assert_eq!(execution, core_tasks.then_some(&json!({"taskSupport": "optional"})));
        let number = &tool(&page, "test__number")["outputSchema"];
        match revision == OF_26 {
            true => assert_eq!(*number, json!({"type": "integer"})),
            false => assert_eq!(number["properties"]["value"], json!({"type": "integer"})),
        }
    }
}
