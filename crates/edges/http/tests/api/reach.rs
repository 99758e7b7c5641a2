//! How far a token reaches: to the tools it is for, and no longer than it is good.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::grant::{Narrowing, token};
use wharf_vocab::GrantId;

use crate::support::agents::ScriptedAgents;
use crate::support::client::EventReader;
use crate::support::{Edge, eventually};

const ENDED: &str = "the token is not good any more";
const HELLO: &str = "dev.example.hello";

async fn made(edge: &Edge, request: Value) -> (String, String) {
    made_by(edge, crate::support::TOKEN, request).await
}

/// Makes a token with another; gives its id and text.
async fn made_by(edge: &Edge, maker: &str, request: Value) -> (String, String) {
    let answer = edge.call_as(maker, "POST", "/v1/tokens").json(&request).send().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let made = answer.json();
    let text = |name: &str| made[name].as_str().expect("text").to_owned();
    (text("token_id"), text("token"))
}

fn narrowed(text: &str) -> String {
    let id = GrantId::new("n1").expect("valid");
    let narrow = token::narrow(text, &id, &Narrowing::default()).expect("narrowed");
    narrow.expose().to_owned()
}

async fn revoke(edge: &Edge, id: &str) {
    assert_eq!(edge.call("DELETE", &format!("/v1/tokens/{id}")).send().await.status, 204);
}

/// An edge with an agent, whose streams show soon that they are alive.
async fn quick() -> Edge {
    let agents = ScriptedAgents::new();
    let scripted = Arc::clone(&agents);
    let edge = Edge::start_with(|options| {
        options.agents = Some(scripted);
        options.limits.keep_alive = Duration::from_millis(20);
    })
    .await;
    let folder = json!({"folder": format!("/agents/{HELLO}")});
    assert_eq!(edge.post("/v1/agents", folder).await.status, 201);
    edge
}

/// A stream of a run that goes on, and one of a log that does.
async fn streams(edge: &Edge, run: &str, token: &str) -> [EventReader; 2] {
    let events = format!("/v1/runs/{run}/events");
    let logs = format!("/v1/agents/{HELLO}/logs?follow=true");
    [
        edge.call_as(token, "GET", &events).open_events().await,
        edge.call_as(token, "GET", &logs).open_events().await,
    ]
}

/// The stream shows that it is alive.
async fn goes_on(stream: &mut EventReader) {
    loop {
        let message = stream.next().await.expect("it goes on");
        assert_ne!(message.comment.as_deref(), Some(ENDED));
        if message.comment.is_some() {
            return;
        }
    }
}

/// The stream says that it ends, and ends.
async fn ends(mut stream: EventReader) {
    let mut last = None;
    while let Some(message) = stream.next().await {
        last = message.comment;
    }
    assert_eq!(last.as_deref(), Some(ENDED));
}

#[tokio::test]
async fn r084_streams_end_when_a_token_they_come_from_is_revoked() {
    let edge = quick().await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let admin = json!({"verbs": ["read", "operate", "admin"]});
    let person = json!({"verbs": ["read", "operate", "admin"], "person": true});
    let reader = json!({"verbs": ["read", "operate"]});

    let (id, own) = made(&edge, admin.clone()).await;
    let (_, of_own) = made_by(&edge, &own, reader.clone()).await;
    let (_, of_narrowed) = made_by(&edge, &narrowed(&own), reader.clone()).await;
    let (person_id, person) = made(&edge, person).await;
    let (_, of_narrowed_person) = made_by(&edge, &narrowed(&person), reader.clone()).await;
    let (_, other) = made(&edge, admin).await;

    let cases = [
        (&id, vec![own.clone(), narrowed(&own), of_own.clone(), narrowed(&of_own), of_narrowed]),
        (&person_id, vec![person.clone(), narrowed(&person), of_narrowed_person]),
    ];
    let mut others = streams(&edge, &run, &other).await;
    for (id, tokens) in cases {
        let mut open = Vec::new();
        for token in &tokens {
            open.extend(streams(&edge, &run, token).await);
        }
        for stream in &mut open {
            goes_on(stream).await;
        }
        revoke(&edge, id).await;
        for stream in open {
            ends(stream).await;
        }
    }
    for stream in &mut others {
        goes_on(stream).await;
    }
}

#[tokio::test]
async fn r084_streams_end_when_their_token_expires() {
    let edge = quick().await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let request = json!({"verbs": ["read", "operate", "admin"], "ttl_ms": 1_500});
    let (_, own) = made(&edge, request).await;
    let mut open = Vec::new();
    for token in [&own, &narrowed(&own)] {
        open.extend(streams(&edge, &run, token).await);
    }
    for stream in open {
        ends(stream).await;
    }
    let again = edge.call_as(&own, "GET", &format!("/v1/runs/{run}")).send().await;
    again.refused(401, "auth.invalid");
    let narrow = Narrowing { until: Some(edge.handle.now().plus_ms(700)), ..Narrowing::default() };
    let (_, long) = made(&edge, json!({"verbs": ["read", "operate"]})).await;
    let id = GrantId::new("short").expect("valid");
    let short = token::narrow(&long, &id, &narrow).expect("narrowed");
    let mut long = streams(&edge, &run, &long).await;
    for stream in streams(&edge, &run, short.expose()).await {
        ends(stream).await;
    }
    for stream in &mut long {
        goes_on(stream).await;
    }
}

#[tokio::test]
async fn a_token_for_some_tools_sees_runs_and_asks_of_those_only() {
    let edge = Edge::start().await;
    let run = async |tool: &str, id: String, inputs: Value| {
        let body = json!({"tool": tool, "run_id": id, "inputs": inputs});
        assert!(matches!(edge.post("/v1/runs", body).await.status, 200 | 202));
    };
    for number in 0..4 {
        run("wharf/echo", format!("echo{number}"), json!({})).await;
        run("wharf/count", format!("count{number}"), json!({"n": 1})).await;
        run("wharf/ask", format!("ask{number}"), json!({"question": "?"})).await;
    }
    eventually(async || {
        let page = edge.get("/v1/inbox").await.json();
        (page["items"].as_array()?.len() == 4).then_some(())
    })
    .await;
    let verbs = json!(["read", "run", "answer", "admin"]);
    let (_, echo) = made(&edge, json!({"verbs": verbs, "tools": ["wharf/e*"]})).await;
    let (_, two) = made(&edge, json!({"verbs": verbs, "tools": ["wharf/ask", "wharf/echo"]})).await;

    for (token, path, tools, count) in [
        (&echo, "/v1/runs?limit=1", vec!["wharf/echo"], 4),
        (&echo, "/v1/runs?limit=3", vec!["wharf/echo"], 4),
        (&echo, "/v1/runs?tool=wharf/count&limit=3", vec![], 0),
        (&two, "/v1/runs?limit=2", vec!["wharf/ask", "wharf/echo"], 8),
        (&echo, "/v1/inbox?limit=1", vec![], 0),
        (&two, "/v1/inbox?limit=1", vec!["wharf/ask"], 4),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{path}&cursor={cursor}");
            let page = edge.call_as(token, "GET", &path).send().await.json();
            seen.extend(page["items"].as_array().expect("items").clone());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        let of: BTreeSet<_> = seen.iter().map(|it| it["tool"].as_str().expect("a tool")).collect();
        assert_eq!((of, seen.len()), (tools.into_iter().collect(), count), "{path}");
    }

    let call = async |method: &str, path: &str| edge.call_as(&echo, method, path).send().await;
    assert_eq!(call("GET", "/v1/runs/echo0").await.status, 200);
    for (method, path) in [
        ("GET", "/v1/runs/count0"),
        ("GET", "/v1/runs/count0/events"),
        ("POST", "/v1/runs/count0/cancel"),
        ("DELETE", "/v1/runs/count0"),
    ] {
        let error = call(method, path).await.refused(403, "permission.denied");
        assert_eq!(error["details"]["permission"], "tool:invoke:wharf/count", "{method} {path}");
    }
    let stream = edge.call_as(&echo, "GET", "/v1/runs/echo0/events").open_events().await;
    assert_eq!(stream.rest().await.last().expect("events").event, "finished");
    let asks = edge.get("/v1/inbox").await.json();
    let path = format!("/v1/questions/{}/answer", asks["items"][0]["ask_id"].as_str().expect("id"));
    let answer = edge.call_as(&echo, "POST", &path).json(&json!({"value": "x"})).send().await;
    answer.refused(403, "permission.denied");
    let tools = call("GET", "/v1/tools").await.json();
    assert!(tools.to_string().contains("wharf/count"), "the catalog is open");
}

#[tokio::test]
async fn a_token_for_some_tools_learns_what_those_have_cost_and_no_more() {
    let edge = Edge::start().await;
    for tool in ["wharf/echo", "wharf/sleep"] {
        let inputs = if tool == "wharf/sleep" { json!({"ms": 1}) } else { json!({}) };
        let body = json!({"tool": tool, "inputs": inputs});
        assert_eq!(edge.post("/v1/runs?wait=30s", body).await.status, 200);
    }
    let (_, echo) = made(&edge, json!({"verbs": ["read"], "tools": ["wharf/echo"]})).await;
    let seen = edge.call_as(&echo, "GET", "/v1/costs?by=tool").send().await.json();
    let keys: Vec<_> =
        seen["items"].as_array().expect("rows").iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, ["wharf/echo"]);
    for by in ["world", "agent", "day"] {
        let path = format!("/v1/costs?by={by}");
        assert_eq!(edge.call_as(&echo, "GET", &path).send().await.status, 403, "{by}");
    }
}
