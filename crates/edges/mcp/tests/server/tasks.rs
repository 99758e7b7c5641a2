//! Runs as tasks, of both kinds (M35–M38).

use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::{Caller, Resolution};
use wharf_vocab::RunStatus;

use crate::client::{Answer, Client, OF_06, OF_11, OF_26};
use crate::stage::{Stage, eventually};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A core that makes tasks of runs soon.
async fn soon() -> Stage {
    Stage::with(|options| options.server.task_after = Duration::from_millis(20)).await
}

/// A client that takes tasks of the extension.
async fn takes_tasks(stage: &Stage, more: Value) -> Client {
    let mut able = json!({"extensions": {EXTENSION: {}}});
    for (name, value) in more.as_object().expect("an object") {
        able[name] = value.clone();
    }
    stage.client().able(able).speaking(OF_26).await
}

/// Calls a tool as a task of 2025-11-25.
async fn begin(client: &Client, tool: &str, arguments: Value, task: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "task": task});
    let result = client.request(1, "tools/call", params).await.result().await;
    result["task"].clone()
}

fn id_of(task: &Value) -> &str {
    task["taskId"].as_str().expect("an id")
}

async fn of_task(client: &Client, method: &str, id: &str) -> Answer {
    client.request(9, method, json!({"taskId": id})).await
}

async fn get(client: &Client, id: &str) -> Value {
    of_task(client, "tasks/get", id).await.result().await
}

/// Waits until a task has a status.
async fn until(client: &Client, id: &str, status: &str) -> Value {
    eventually(async || {
        let task = get(client, id).await;
        (task["status"] == status).then_some(task)
    })
    .await
}

#[tokio::test]
async fn m036_a_call_becomes_a_task_of_2025_11_25_at_once() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    for (wish, kept) in [
        (json!({}), 604_800_000_u64),
        (json!({"ttl": 5}), 60_000),
        (json!({"ttl": 120_000}), 120_000),
        (json!({"ttl": 1e15}), 604_800_000),
    ] {
        let task = begin(&client, "test__steps", json!({"of": 0}), wish).await;
        assert_eq!(task["status"], "working");
        assert_eq!(task["ttl"], kept);
        assert_eq!(task["pollInterval"], 1_000);
        let shown = get(&client, id_of(&task)).await;
        assert_eq!(shown["taskId"], task["taskId"]);
        assert_eq!(shown["createdAt"], task["createdAt"]);
        stage.step(1);
        let over = until(&client, id_of(&task), "completed").await;
        assert_ne!(over["lastUpdatedAt"], Value::Null);
        let result = of_task(&client, "tasks/result", id_of(&task)).await.result().await;
        assert_eq!(result["structuredContent"], json!({"steps": 0}));
        let related = &result["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], task["taskId"]);
    }
}

#[tokio::test]
async fn m036_the_result_of_a_task_is_waited_for_and_its_questions_are_asked_there() {
    let stage = Stage::start().await;
    let client = stage.client().able(json!({"elicitation": {}})).speaking(OF_11).await;
    let task = begin(&client, "wharf__ask", json!({"question": "Which?"}), json!({})).await;
    let waits = until(&client, id_of(&task), "input_required").await;
    assert!(waits["statusMessage"].as_str().expect("text").contains("Which?"), "{waits}");
    let mut answer = of_task(&client, "tasks/result", id_of(&task)).await;
    let question = loop {
        let message = answer.message().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], task["taskId"]);
    let given = json!({"action": "accept", "content": {"answer": "this"}});
    let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": given});
    assert_eq!(client.raw(&body, &client.headers(&body)).await.status, 202);
    assert_eq!(answer.result().await["structuredContent"]["answer"], "this");
    // Whoever comes later gets the same, and is not asked what is answered.
    let again = of_task(&client, "tasks/result", id_of(&task)).await.response().await;
    assert_eq!(again["result"]["structuredContent"]["answer"], "this");
}

#[tokio::test]
async fn m035_a_task_is_its_grants_in_any_session_and_after_a_restart() {
    let stage = soon().await;
    let token = stage.token(json!({"verbs": ["run", "read", "answer"]})).await;
    let client = stage.client().bearing(&token).speaking(OF_11).await;
    let task = begin(&client, "test__steps", json!({"of": 0}), json!({})).await;
    let other = stage.client().bearing(&token).speaking(OF_11).await;
    assert_eq!(get(&other, id_of(&task)).await["status"], "working");

    let owner = stage.client().speaking(OF_11).await;
    let mut forged = id_of(&task).to_owned();
    let last = forged.pop().expect("not empty");
    forged.push(if last == 'A' { 'B' } else { 'A' });
    let (task_id, forged) = (id_of(&task), forged.as_str());
    let cases = [(&owner, task_id), (&client, forged), (&client, ""), (&client, "task")];
    for (client, id) in cases {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            of_task(client, method, id).await.refused(200, -32602).await;
        }
    }
    let modern = takes_tasks(&stage, json!({})).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id_of(&task), "inputResponses": {}});
        modern.request(1, method, params).await.refused(200, -32602).await;
    }

    let stage = stage.killed().await;
    let client = client.moved(stage.addr());
    assert_eq!(get(&client, id_of(&task)).await["status"], "working");
    stage.step(1);
    let result = of_task(&client, "tasks/result", id_of(&task)).await.result().await;
    assert_eq!(result["structuredContent"], json!({"steps": 0}));
}

#[tokio::test]
async fn m036_tasks_of_2025_11_25_are_listed_page_by_page_for_their_grant() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    client.call(1, "wharf__echo", json!({"no": "task"})).await.result().await;
    let mut made = Vec::new();
    for number in 0..60 {
        let task = begin(&client, "wharf__echo", json!({ "n": number }), json!({})).await;
        made.push(id_of(&task).to_owned());
    }
    let list = async |cursor: Option<&Value>| {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        client.request(1, "tasks/list", params).await
    };
    let first = list(None).await.result().await;
    let second = list(Some(&first["nextCursor"])).await.result().await;
    assert_eq!(second.get("nextCursor"), None);
    let tasks = |page: &Value| page["tasks"].as_array().expect("tasks").clone();
    let all: Vec<Value> = [tasks(&first), tasks(&second)].concat();
    let mut ids: Vec<&str> = all.iter().map(id_of).collect();
    ids.reverse();
    assert_eq!(ids, made, "newest first");
    list(Some(&json!("nonsense"))).await.refused(200, -32602).await;
    let token = stage.token(json!({"verbs": ["run", "read"]})).await;
    let other = stage.client().bearing(&token).speaking(OF_11).await;
    let none = other.request(1, "tasks/list", json!({})).await.result().await;
    assert_eq!(none["tasks"], json!([]));
}

#[tokio::test]
async fn m036_a_task_is_canceled_once_and_not_when_it_is_over() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    let task = begin(&client, "test__steps", json!({}), json!({})).await;
    let canceled = of_task(&client, "tasks/cancel", id_of(&task)).await.result().await;
    assert_eq!(canceled["status"], "cancelled");
    assert_eq!(stage.only_run().await.status(), RunStatus::Canceled);
    of_task(&client, "tasks/cancel", id_of(&task)).await.refused(200, -32602).await;
    let older = stage.client().speaking(OF_06).await;
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
        let params = json!({"taskId": task["taskId"]});
        older.request(1, method, params).await.refused(200, -32601).await;
    }
}

#[tokio::test]
async fn m036_a_session_is_told_of_tasks_that_change() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    let mut stream = client.get(None).await;
    assert_eq!(stream.status, 200);
    let task = begin(&client, "test__steps", json!({"of": 0}), json!({})).await;
    stage.step(1);
    loop {
        let message = stream.message().await;
        if message["method"] == "notifications/tasks/status" {
            let told = &message["params"];
            assert_eq!(told["taskId"], task["taskId"]);
            if told["status"] == "completed" {
                break;
            }
            assert_eq!(told["status"], "working");
        }
    }
}

#[tokio::test]
async fn m037_a_call_that_takes_long_becomes_a_task_of_the_extension() {
    let stage = soon().await;
    let client = takes_tasks(&stage, json!({})).await;
    let task = client.call(1, "test__steps", json!({"of": 0})).await.result().await;
    assert_eq!(task["resultType"], "task");
    assert_eq!(task["status"], "working");
    assert_eq!(task["pollIntervalMs"], 1_000);
    assert!(task.get("ttlMs").is_some(), "{task}");
    let shown = get(&client, id_of(&task)).await;
    assert_eq!((&shown["resultType"], &shown["status"]), (&json!("complete"), &json!("working")));
    stage.step(1);
    let over = until(&client, id_of(&task), "completed").await;
    assert_eq!(over["result"]["structuredContent"], json!({"steps": 0}));
    assert_eq!(over["result"]["_meta"]["dev.wharf/run"]["status"], "succeeded");
    let late = of_task(&client, "tasks/cancel", id_of(&task)).await.result().await;
    assert_eq!(late["resultType"], "complete");
    assert_eq!(get(&client, id_of(&task)).await["status"], "completed");

    for method in ["tasks/result", "tasks/list"] {
        of_task(&client, method, id_of(&task)).await.refused(404, -32601).await;
    }
    let other = stage.client().speaking(OF_26).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": task["taskId"], "inputResponses": {}});
        let refused = other.request(1, method, params).await.refused(400, -32021).await;
        let needed = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(needed, &json!({EXTENSION: {}}));
    }
}

#[tokio::test]
async fn m037_a_task_is_canceled_with_an_answer_at_once() {
    let stage = soon().await;
    let client = takes_tasks(&stage, json!({})).await;
    let task = client.call(1, "test__steps", json!({})).await.result().await;
    let heard = of_task(&client, "tasks/cancel", id_of(&task)).await.result().await;
    assert_eq!(heard["resultType"], "complete");
    assert_eq!(heard.get("status"), None, "it is only heard");
    until(&client, id_of(&task), "cancelled").await;
}

#[tokio::test]
async fn m037_what_a_task_asks_is_answered_by_updates() {
    let stage = soon().await;
    // One that cannot be asked when it calls gets a task, and can be asked later.
    let silent = takes_tasks(&stage, json!({})).await;
    let schema = json!({"type": "integer", "minimum": 1});
    let arguments = json!({"question": "How many?", "schema": schema});
    let task = silent.call(1, "wharf__ask", arguments).await.result().await;
    let id = id_of(&task);
    let waits = get(&silent, id).await;
    assert_eq!(waits["status"], "working", "this client cannot answer");
    assert!(waits["statusMessage"].as_str().expect("text").contains("inbox"), "{waits}");
    let client = takes_tasks(&stage, json!({"elicitation": {}})).await;
    let asked = get(&client, id).await;
    assert_eq!(asked["status"], "input_required");
    let key = |task: &Value| {
        let requests = task["inputRequests"].as_object().expect("requests");
        requests.keys().next().expect("one").clone()
    };
    let first = key(&asked);
    assert_eq!(asked["inputRequests"][&first]["params"]["message"], "How many?");
    let update = async |answers: Value| {
        let params = json!({"taskId": id, "inputResponses": answers});
        client.request(1, "tasks/update", params).await.result().await
    };
    let given = |number: i64| json!({"action": "accept", "content": {"answer": number}});
    assert_eq!(update(json!({"nobody": given(5)})).await["resultType"], "complete");
    assert_eq!(key(&get(&client, id).await), first);
    update(json!({ first.clone(): given(0) })).await;
    let again = get(&client, id).await;
    let second = key(&again);
    assert_ne!(second, first, "an answered key is used up");
    let message = again["inputRequests"][&second]["params"]["message"].as_str().expect("text");
    assert!(message.contains("does not fit"), "{message}");
    update(json!({ first: given(7) })).await;
    assert_eq!(get(&client, id).await["status"], "input_required");
    update(json!({ second: given(3) })).await;
    let over = until(&client, id, "completed").await;
    assert_eq!(over["result"]["structuredContent"]["answer"], 3);
}

#[tokio::test]
async fn m037_a_client_that_listens_is_told_of_its_tasks_with_all_there_is() {
    let stage = soon().await;
    let client = takes_tasks(&stage, json!({})).await;
    let task = client.call(1, "test__steps", json!({"of": 0})).await.result().await;
    let ids = json!([task["taskId"], "nobody"]);
    let params = json!({"notifications": {"taskIds": ids}});
    let mut stream = client.request("listen", "subscriptions/listen", params.clone()).await;
    let honoured = stream.message().await;
    assert_eq!(honoured["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(honoured["params"]["notifications"]["taskIds"], json!([task["taskId"]]));
    let told = stream.message().await;
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(told["params"]["status"], "working");
    let tag = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(tag, "listen");
    stage.step(1);
    let told = loop {
        let message = stream.message().await;
        if message["params"]["status"] == "completed" {
            break message;
        }
    };
    assert_eq!(told["params"]["result"]["structuredContent"], json!({"steps": 0}));
    let undeclared = stage.client().speaking(OF_26).await;
    undeclared.request(1, "subscriptions/listen", params).await.refused(400, -32021).await;
}

#[tokio::test]
async fn m038_failures_of_tools_are_completed_and_approvals_keep_a_task_working() {
    let stage = soon().await;
    let client = stage.client().able(json!({"elicitation": {}})).speaking(OF_11).await;
    let task = begin(&client, "wharf__fail", json!({}), json!({})).await;
    let over = until(&client, id_of(&task), "completed").await;
    assert!(over["statusMessage"].as_str().expect("text").contains("tool.failed"), "{over}");
    let result = of_task(&client, "tasks/result", id_of(&task)).await.result().await;
    assert_eq!(result["isError"], true);

    let task = begin(&client, "wharf__approve-me", json!({}), json!({})).await;
    let waits = eventually(async || {
        let task = get(&client, id_of(&task)).await;
        task.get("statusMessage").is_some().then_some(task)
    })
    .await;
    assert_eq!(waits["status"], "working");
    assert!(waits["statusMessage"].as_str().expect("text").contains("approval"), "{waits}");
    let asks = stage.handle.asks().inbox(None, 10).await.expect("an inbox");
    let ask = &asks[0].ask.spec.ask_id;
    let deny = Resolution::Deny { reason: "no".to_owned() };
    stage.handle.asks().resolve(&Caller::owner(), ask, deny).await.expect("denied");
    until(&client, id_of(&task), "completed").await;
    let result = of_task(&client, "tasks/result", id_of(&task)).await.result().await;
    assert_eq!(result["isError"], true);
}
