//! Every field with every token that may not: refused as REST refuses it.

use serde_json::{Value, json};

use crate::support::{Answer, OWNER, Stage};

/// A field, and what it stands for in REST. `{n}` is another number each time, `{seat}` a seat.
struct Field {
    operation: &'static str,
    rest: (&'static str, &'static str, &'static str),
}

const FIELDS: &[Field] = &[
    field("query { runs { edges { cursor } } }", "GET", "/v1/runs", ""),
    field(
        "query { runs(world: \"default\") { edges { cursor } } }",
        "GET",
        "/v1/runs?world=default",
        "",
    ),
    field("query { run(id: \"echo\") { runId } }", "GET", "/v1/runs/echo", ""),
    field("query { run(id: \"none\") { runId } }", "GET", "/v1/runs/none", ""),
    field("query { tools { edges { cursor } } }", "GET", "/v1/tools", ""),
    field("query { tool(id: \"wharf/echo\") { name } }", "GET", "/v1/tools/wharf/echo", ""),
    field("query { worlds { edges { cursor } } }", "GET", "/v1/worlds", ""),
    field("query { world(id: \"default\") { world } }", "GET", "/v1/worlds/default", ""),
    field(
        "query { world(id: \"default\") { usage { bytes } } }",
        "GET",
        "/v1/worlds/default/usage",
        "",
    ),
    field("query { artifacts { edges { cursor } } }", "GET", "/v1/worlds/default/artifacts", ""),
    field("query { trace(path: \"/a\") { cut } }", "GET", "/v1/worlds/default/trace?path=/a", ""),
    field(
        "query { artifacts(delimiter: \"/\") { folders { path } } }",
        "GET",
        "/v1/worlds/default/artifacts?delimiter=/",
        "",
    ),
    field("query { runTrace(id: \"echo\") { seq } }", "GET", "/v1/runs/echo/trace", ""),
    field("query { runTrace(id: \"none\") { seq } }", "GET", "/v1/runs/none/trace", ""),
    field("query { providers { edges { cursor } } }", "GET", "/v1/providers", ""),
    field("query { provider(id: \"wharf\") { name } }", "GET", "/v1/providers/wharf", ""),
    field("query { provider(id: \"none\") { name } }", "GET", "/v1/providers/none", ""),
    field(
        "query { providerLaunches(id: \"none\") { pid } }",
        "GET",
        "/v1/providers/none/launches",
        "",
    ),
    field(
        "query { providerUsage(id: \"wharf\") { stepMs } }",
        "GET",
        "/v1/providers/wharf/usage",
        "",
    ),
    field(
        "mutation { drainProvider(id: \"wharf\") { name } }",
        "POST",
        "/v1/providers/wharf/drain",
        "",
    ),
    field("query { operators { sid } }", "GET", "/v1/operators", ""),
    field("query { operator(sid: \"{seat}\") { sid } }", "GET", "/v1/operators/{seat}", ""),
    field("query { doctor { status } }", "GET", "/v1/doctor", ""),
    field("query { purges { purgeId } }", "GET", "/v1/purges", ""),
    field("query { costs { total { runs } } }", "GET", "/v1/costs", ""),
    field("query { costs(by: day) { total { runs } } }", "GET", "/v1/costs?by=day", ""),
    field(
        "query { costs(world: \"default\") { total { runs } } }",
        "GET",
        "/v1/costs?world=default",
        "",
    ),
    field("query { runCount { count } }", "GET", "/v1/runs/count", ""),
    field(
        "query { runStats(since: \"2026-01-01T00:00:00Z\", until: \"2026-01-02T00:00:00Z\", \
         stepMs: 3600000) { stepMs } }",
        "GET",
        "/v1/stats/runs",
        "",
    ),
    field("query { runTree(id: \"echo\") { nextCursor } }", "GET", "/v1/runs/echo/tree", ""),
    field("query { runLineage(id: \"echo\") { cut } }", "GET", "/v1/runs/echo/lineage", ""),
    field("query { ask(id: \"a1\") { sameDefinition } }", "GET", "/v1/asks/a1", ""),
    field("query { decidedAsks { edges { cursor } } }", "GET", "/v1/asks?state=decided", ""),
    field("query { accounts { account } }", "GET", "/v1/accounts", ""),
    field("query { search(q: \"echo\") { worlds { world } } }", "GET", "/v1/search?q=echo", ""),
    field("query { flows { edges { cursor } } }", "GET", "/v1/flows", ""),
    field("query { flow(name: \"none\") { name } }", "GET", "/v1/flows/none", ""),
    field("query { runSteps(id: \"echo\") { path } }", "GET", "/v1/runs/echo/steps", ""),
    field(
        "query { checkFlow(document: {name: \"x\"}) { ok } }",
        "POST",
        "/v1/flows/check",
        "{\"document\": {\"name\": \"x\"}}",
    ),
    field(
        "mutation { addFlow(document: {name: \"x\"}) { name } }",
        "POST",
        "/v1/flows",
        "{\"document\": {\"name\": \"x\"}}",
    ),
    field(
        "mutation { removeFlow(name: \"none\", version: 1) }",
        "DELETE",
        "/v1/flows/none/versions/1",
        "",
    ),
    field(
        "mutation { signalRun(id: \"echo\", name: \"go\") { runId } }",
        "POST",
        "/v1/runs/echo/signals/go",
        "{}",
    ),
    field(
        "mutation { rerunFlow(id: \"echo\", input: {from: \"a\"}) { runId } }",
        "POST",
        "/v1/runs/echo/rerun",
        "{\"from\": \"a\"}",
    ),
    field("query { schedules { edges { cursor } } }", "GET", "/v1/schedules", ""),
    field("query { schedule(name: \"none\") { name } }", "GET", "/v1/schedules/none", ""),
    field(
        "query { scheduleHistory(name: \"none\") { n } }",
        "GET",
        "/v1/schedules/none/history",
        "",
    ),
    field(
        "mutation { createSchedule(input: {name: \"s{n}\", everyMs: 60000, tool: \"wharf/echo\"}) { name } }",
        "POST",
        "/v1/schedules",
        "{\"name\": \"s{n}\", \"every_ms\": 60000, \"tool\": \"wharf/echo\"}",
    ),
    field(
        "mutation { pauseSchedule(name: \"none\") { name } }",
        "POST",
        "/v1/schedules/none/pause",
        "",
    ),
    field(
        "mutation { resumeSchedule(name: \"none\") { name } }",
        "POST",
        "/v1/schedules/none/resume",
        "",
    ),
    field(
        "mutation { triggerSchedule(name: \"none\") { name } }",
        "POST",
        "/v1/schedules/none/trigger",
        "",
    ),
    field("mutation { removeSchedule(name: \"none\") }", "DELETE", "/v1/schedules/none", ""),
    field("query { triggers { edges { cursor } } }", "GET", "/v1/triggers", ""),
    field("query { trigger(name: \"none\") { name } }", "GET", "/v1/triggers/none", ""),
    field(
        "mutation { pauseTrigger(name: \"none\") { name } }",
        "POST",
        "/v1/triggers/none/pause",
        "",
    ),
    field(
        "mutation { resumeTrigger(name: \"none\") { name } }",
        "POST",
        "/v1/triggers/none/resume",
        "",
    ),
    field(
        "mutation { createTrigger(input: {name: \"t{n}\", tool: \"wharf/echo\"}) { trigger { name } } }",
        "POST",
        "/v1/triggers",
        "{\"name\": \"t{n}\", \"tool\": \"wharf/echo\"}",
    ),
    field("mutation { removeTrigger(name: \"none\") }", "DELETE", "/v1/triggers/none", ""),
    field(
        "mutation { testTrigger(name: \"none\") { runId } }",
        "POST",
        "/v1/triggers/none/test",
        "",
    ),
    field(
        "query { triggerHistory(name: \"none\") { about } }",
        "GET",
        "/v1/triggers/none/history",
        "",
    ),
    field(
        "mutation { createReceiver(input: {name: \"r{n}\", url: \"https://127.0.0.1/x\", on: [\"ask\"], allowPrivate: true}) { receiver { name } } }",
        "POST",
        "/v1/receivers",
        "{\"name\": \"r{n}\", \"url\": \"https://127.0.0.1/x\", \"on\": [\"ask\"], \"allow_private\": true}",
    ),
    field("mutation { removeReceiver(name: \"none\") }", "DELETE", "/v1/receivers/none", ""),
    field("query { receivers { edges { cursor } } }", "GET", "/v1/receivers", ""),
    field("query { receiver(name: \"none\") { name } }", "GET", "/v1/receivers/none", ""),
    field(
        "query { receiverHistory(name: \"none\") { event } }",
        "GET",
        "/v1/receivers/none/history",
        "",
    ),
    field(
        "mutation { pauseReceiver(name: \"none\") { name } }",
        "POST",
        "/v1/receivers/none/pause",
        "",
    ),
    field(
        "mutation { resumeReceiver(name: \"none\") { name } }",
        "POST",
        "/v1/receivers/none/resume",
        "",
    ),
    field("mutation { testReceiver(name: \"none\") }", "POST", "/v1/receivers/none/test", ""),
    field("query { agents { edges { cursor } } }", "GET", "/v1/agents", ""),
    field("query { mcpServers { edges { cursor } } }", "GET", "/v1/mcp", ""),
    field("query { mcpServer(id: \"x\") { serverId } }", "GET", "/v1/mcp/x", ""),
    field("query { inbox { edges { cursor } } }", "GET", "/v1/inbox", ""),
    field(
        "query { inbox(world: \"default\") { edges { cursor } } }",
        "GET",
        "/v1/inbox?world=default",
        "",
    ),
    field(
        "mutation { createRun(input: {tool: \"wharf/echo\"}) { runId } }",
        "POST",
        "/v1/runs",
        "{\"tool\": \"wharf/echo\"}",
    ),
    field("mutation { cancelRun(id: \"echo\") { runId } }", "POST", "/v1/runs/echo/cancel", ""),
    field(
        "mutation { cancelRuns(input: {until: \"2001-01-01T00:00:00Z\"}) { matched } }",
        "POST",
        "/v1/runs/cancel",
        "{\"until\": \"2001-01-01T00:00:00Z\"}",
    ),
    field(
        "mutation { purgeRuns(input: {until: \"2001-01-01T00:00:00Z\"}) { matched } }",
        "POST",
        "/v1/runs/purge",
        "{\"until\": \"2001-01-01T00:00:00Z\"}",
    ),
    field(
        "mutation { orderPurge(input: {until: \"2001-01-01T00:00:00Z\"}) { purgeId } }",
        "POST",
        "/v1/purges",
        "{\"until\": \"2001-01-01T00:00:00Z\"}",
    ),
    field(
        "mutation { cancelPurge(id: \"none\") { purgeId } }",
        "POST",
        "/v1/purges/none/cancel",
        "",
    ),
    field("mutation { runAgain(id: \"none\") { runId } }", "POST", "/v1/runs/none/again", ""),
    field(
        "mutation { answerQuestion(id: \"00none\", value: 1) { runId } }",
        "POST",
        "/v1/questions/00none/answer",
        "{\"value\": 1}",
    ),
    field(
        "mutation { decideApproval(id: \"00none\", allow: true) { runId } }",
        "POST",
        "/v1/approvals/00none/decide",
        "{\"decision\": \"allow\"}",
    ),
    field(
        "mutation { createWorld(id: \"w{n}\") { world } }",
        "POST",
        "/v1/worlds",
        "{\"world\": \"w{n}\"}",
    ),
    field(
        "mutation { setWorld(id: \"default\", settings: {}) { world } }",
        "PATCH",
        "/v1/worlds/default",
        "{}",
    ),
    field(
        "mutation { correctWorld(id: \"default\", byMicro: \"1\", reason: \"why\") { world } }",
        "POST",
        "/v1/worlds/default/corrections",
        "{\"by_micro\": 1, \"reason\": \"why\"}",
    ),
    field("mutation { removeWorld(id: \"nowhere\") }", "DELETE", "/v1/worlds/nowhere", ""),
    field("query { system { version } }", "GET", "/v1/system", ""),
    field("query { systemSeries { range } }", "GET", "/v1/system/series", ""),
    field("subscription { changes(world: \"!\") { reset } }", "GET", "/v1/changes?world=!", ""),
    field("subscription { runExport }", "GET", "/v1/runs/export", ""),
    field(
        "subscription { runExport(filter: {world: \"!\"}) }",
        "GET",
        "/v1/runs/export?world=!",
        "",
    ),
    field("subscription { runEvents(id: \"echo\") { seq } }", "GET", "/v1/runs/echo/events", ""),
    field("subscription { runEvents(id: \"none\") { seq } }", "GET", "/v1/runs/none/events", ""),
];

const fn field(
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    body: &'static str,
) -> Field {
    Field { operation, rest: (method, path, body) }
}

fn numbered(text: &str, number: &mut u32) -> String {
    *number += 1;
    text.replace("{n}", &number.to_string())
}

/// What GraphQL says; subscriptions are asked on a socket.
async fn graphql(stage: &Stage, token: &str, operation: &str) -> Option<String> {
    let code = |answer: &Answer| answer.code().map(str::to_owned);
    if !operation.starts_with("subscription") {
        return code(&stage.ask_as(token, operation, json!({})).await);
    }
    let mut socket = match stage.connect(token, "graphql-transport-ws").await {
        Ok(socket) => socket,
        Err(401) => return Some("auth.invalid".to_owned()),
        Err(status) => panic!("refused with {status}"),
    };
    socket.say(json!({"type": "connection_init"})).await;
    assert_eq!(socket.hear().await["type"], "connection_ack");
    socket.subscribe("1", operation).await;
    let first = socket.hear().await;
    code(&Answer { status: 200, head: String::new(), body: first["payload"].clone() })
}

async fn rest(
    stage: &Stage,
    token: &str,
    (method, path, body): (&str, &str, &str),
) -> Option<String> {
    let body: Option<Value> = (!body.is_empty()).then(|| serde_json::from_str(body).expect("JSON"));
    stage.call(token, method, path, body.as_ref()).await.code().map(str::to_owned)
}

#[tokio::test]
async fn t045_every_field_refuses_what_rest_refuses_with_the_same_code() {
    let stage = Stage::start().await;
    let input = json!({"input": {"tool": "wharf/echo", "runId": "echo"}});
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    stage.ask_as(OWNER, make, input).await.data();

    let seat = json!({"desc": "looks on"});
    let seat = stage.call(OWNER, "POST", "/v1/operators", Some(&seat)).await.body;
    let seat = seat["sid"].as_str().expect("a seat").to_owned();
    let every = json!(["run", "read", "answer", "approve", "operate", "serve", "admin"]);
    let (revoked_id, revoked) = stage.token(json!({"verbs": every})).await;
    stage.revoke(&revoked_id).await;
    let mut tokens = vec![
        ("everything", stage.token(json!({"verbs": every})).await.1),
        ("another world", stage.token(json!({"verbs": every, "worlds": ["lab"]})).await.1),
        ("another tool", stage.token(json!({"verbs": every, "tools": ["wharf/ask"]})).await.1),
        ("revoked", revoked),
        ("made up", "nonsense".to_owned()),
    ];
    for verb in ["run", "read", "answer", "approve", "operate", "serve", "admin"] {
        tokens.push((verb, stage.token(json!({"verbs": [verb]})).await.1));
    }

    let (mut number, mut refused) = (0, 0);
    for (name, token) in &tokens {
        for field in FIELDS {
            let operation = numbered(field.operation, &mut number).replace("{seat}", &seat);
            let (method, path, body) = field.rest;
            let (path, body) = (numbered(path, &mut number), numbered(body, &mut number));
            let path = path.replace("{seat}", &seat);
            let said = graphql(&stage, token, &operation).await;
            let expect = rest(&stage, token, (method, &path, &body)).await;
            assert_eq!(said, expect, "{operation} with a token for {name}");
            refused += usize::from(matches!(
                said.as_deref(),
                Some("permission.denied" | "auth.invalid" | "auth.required")
            ));
        }
    }
    // Both could agree that everything is allowed; then this would prove nothing.
    assert!(refused > 140, "{refused} of {} were refused", tokens.len() * FIELDS.len());
}

#[tokio::test]
async fn t045_every_field_of_the_schema_stands_in_the_table() {
    let stage = Stage::start().await;
    let query = "{ __schema { queryType { fields { name } } mutationType { fields { name } }
        subscriptionType { fields { name } } } }";
    let answer = stage.ask(query).await;
    for kind in ["queryType", "mutationType", "subscriptionType"] {
        for field in answer.data()["__schema"][kind]["fields"].as_array().expect("fields") {
            let name = field["name"].as_str().expect("a name");
            let tried = |known: &Field| {
                let after = known.operation.split("{ ").nth(1).unwrap_or_default();
                after.split(['(', ' ']).next() == Some(name)
            };
            assert!(
                FIELDS.iter().any(tried),
                "{name} is not tried with tokens that may not use it"
            );
        }
    }
}

#[tokio::test]
async fn t045_refusals_are_written_down_without_what_was_asked() {
    let stage = Stage::start().await;
    let (id, token) = stage.token(json!({"verbs": ["read"], "worlds": ["lab"]})).await;
    let answer = stage.ask_as(&token, "{ run(id: \"c4nary\") { runId } }", json!({})).await;
    assert_eq!(answer.code(), Some("permission.denied"));
    assert_eq!(answer.body["errors"][0]["extensions"]["details"]["world"], "default");
    let found = crate::support::eventually(async || {
        let audit = stage.handle.audit().list(0, 1000).await.expect("the audit");
        audit.into_iter().find(|sealed| sealed.record.subject == "route:/graphql")
    })
    .await;
    assert_eq!(found.record.event, "security.denied");
    assert_eq!(found.record.actor, format!("grant:{id}"));
    assert_eq!(found.record.facts["world"], "default");
    assert!(!format!("{found:?}").contains("c4nary"));
}

#[tokio::test]
async fn t045_a_socket_whose_token_is_revoked_does_nothing_more() {
    let stage = Stage::start().await;
    let run = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let (id, token) = stage.token(json!({"verbs": ["read"]})).await;
    let mut socket = stage.socket(&token).await;
    socket.subscribe("1", &format!("subscription {{ runEvents(id: \"{run}\") {{ type }} }}")).await;
    assert_eq!(socket.hear().await["payload"]["data"]["runEvents"]["type"], "queued");
    assert_eq!(socket.hear().await["payload"]["data"]["runEvents"]["type"], "started");
    stage.revoke(&id).await;
    let mut told = Vec::new();
    let code = loop {
        match socket.next().await {
            Ok(message) => told.push(message),
            Err(frame) => break frame.map(|frame| u16::from(frame.code)),
        }
    };
    assert_eq!(code, Some(4401), "{told:?}");
    for message in told {
        let error = &message["payload"]["errors"][0]["extensions"]["code"];
        assert!(message["type"] == "complete" || error == "auth.invalid", "{message}");
    }
}
