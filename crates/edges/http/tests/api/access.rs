//! Who may do what: every route with every kind of token that is not enough, and with the one
//! that is.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_http::HttpLimits;
use wharf_vocab::Verb;

use crate::agents::edge_with;
use crate::operations::Reach::{Any, Everywhere, Hidden, World};
use crate::operations::operations;
use crate::support::agents::ScriptedAgents;
use crate::support::client::Answer;
use crate::support::{Edge, eventually};

async fn send(edge: &Edge, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let call = edge.call_as(token, method, path);
    if body.is_null() { call.send().await } else { call.json(body).send().await }
}

async fn token(edge: &Edge, request: Value) -> String {
    edge.token(request).await["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn every_operation_is_in_the_table_of_this_test() {
    let edge = Edge::start().await;
    let document = edge.get("/openapi.json").await.json();
    let mut served = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            served.insert((method.to_uppercase(), path.clone()));
        }
    }
    for open in ["/healthz", "/v1/healthz", "/readyz"] {
        assert!(served.remove(&("GET".to_owned(), open.to_owned())));
    }
    // A browser signs in with what is in the request, and an address of a file is enough to read it.
    // Whoever calls a hook proves that it may in the trigger's own way.
    for (method, path) in [
        ("POST", "/v1/console/session"),
        ("GET", "/v1/worlds/{world}/tickets/{ticket}"),
        ("POST", "/v1/hooks/{hook}"),
    ] {
        assert!(served.remove(&(method.to_owned(), path.to_owned())), "{path}");
    }
    // Any token is good for them.
    for (method, path) in [
        ("POST", "/v1/tickets"),
        ("POST", "/v1/console/links"),
        ("GET", "/v1/console/session"),
        ("DELETE", "/v1/console/session"),
    ] {
        assert!(served.remove(&(method.to_owned(), path.to_owned())), "{path}");
    }
    let tested: BTreeSet<_> = operations()
        .into_iter()
        .map(|(method, route, ..)| (method.to_owned(), route.to_owned()))
        .collect();
    assert_eq!(tested, served);
}

#[tokio::test]
async fn every_operation_refuses_tokens_that_are_not_good() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let all = json!(Verb::ALL.iter().map(|verb| verb.as_str()).collect::<Vec<_>>());
    let expired = edge.token(json!({"verbs": all, "ttl_ms": 1})).await;
    let revoked = edge.token(json!({"verbs": all})).await;
    let id = revoked["token_id"].as_str().expect("an id");
    assert_eq!(edge.call("DELETE", &format!("/v1/tokens/{id}")).send().await.status, 204);
    eventually(async || {
        let listed = edge.get("/v1/tokens").await.json();
        (listed["items"][0]["state"] == "expired").then_some(())
    })
    .await;
    let good = token(&edge, json!({"verbs": all})).await;
    let bad = [
        "x".to_owned(),
        "whf1.k1.e30.AAAA".to_owned(),
        format!("{good}x"),
        good[..good.len() - 1].to_owned(),
        expired["token"].as_str().expect("a token").to_owned(),
        revoked["token"].as_str().expect("a token").to_owned(),
    ];
    let mut said = BTreeSet::new();
    for (method, _, path, _, _, body) in operations() {
        let none = edge.call(method, path).header("authorization", "").send().await;
        none.refused(401, "auth.required");
        for token in &bad {
            let answer = send(&edge, token, method, path, &body).await;
            answer.refused(401, "auth.invalid");
            said.insert(answer.text());
        }
    }
    assert_eq!(said.len(), 1, "nobody is told why a token is not good: {said:?}");
}

#[tokio::test]
async fn every_operation_needs_its_verb_and_no_other() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let mut tokens = Vec::new();
    for verb in Verb::ALL {
        tokens.push((*verb, token(&edge, json!({"verbs": [verb.as_str()]})).await));
    }
    for (method, _, path, needed, _, body) in operations() {
        for (verb, token) in tokens.iter().filter(|(verb, _)| *verb != needed) {
            let answer = send(&edge, token, method, path, &body).await;
            let error = answer.refused(403, "permission.denied");
            let named = &error["details"]["verb"];
            assert_eq!(named, needed.as_str(), "{method} {path} with {verb}");
        }
        let (_, token) = tokens.iter().find(|(verb, _)| *verb == needed).expect("made");
        let answer = send(&edge, token, method, path, &body).await;
        let refused = matches!(answer.status, 401 | 403);
        assert!(!refused, "{method} {path} with {needed}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_token_for_another_world_gets_nowhere() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    assert_eq!(edge.post("/v1/worlds", json!({"world": "other"})).await.status, 201);
    for (method, _, path, verb, reach, body) in operations() {
        let request = json!({"verbs": [verb.as_str()], "worlds": ["other"]});
        let token = token(&edge, request).await;
        let answer = send(&edge, &token, method, path, &body).await;
        if reach == Any {
            assert!(!matches!(answer.status, 401 | 403), "{method} {path}: {}", answer.text());
            continue;
        }
        let error = answer.refused(403, "permission.denied");
        let world = &error["details"]["world"];
        match reach {
            World => assert!(world == "default" || world == "new", "{method} {path}: {error}"),
            Everywhere => assert_eq!(world, "*", "{method} {path}: {error}"),
            Hidden | Any => {}
        }
    }
}

#[tokio::test]
async fn refusals_for_want_of_rights_are_audited_with_who_and_what() {
    let edge = Edge::start().await;
    let made = edge.token(json!({"verbs": ["read"], "worlds": ["default"]})).await;
    let token = made["token"].as_str().expect("a token").to_owned();
    let grant = format!("grant:{}", made["token_id"].as_str().expect("an id"));
    send(&edge, &token, "GET", "/v1/audit", &Value::Null).await.refused(403, "permission.denied");
    let path = "/v1/runs/r1?world=secret-world";
    send(&edge, &token, "GET", path, &Value::Null).await.refused(403, "permission.denied");
    let records = eventually(async || {
        let page = edge.get("/v1/audit?limit=200").await.json();
        let denied = |record: &&Value| record["event"] == "security.denied";
        let found: Vec<_> = page["items"].as_array()?.iter().filter(denied).cloned().collect();
        (found.len() == 2).then_some(found)
    })
    .await;
    assert!(records.iter().all(|record| record["actor"] == grant), "{records:?}");
    assert_eq!(records[0]["subject"], "route:/v1/audit");
    assert_eq!(records[0]["facts"]["verb"], "admin");
    assert_eq!(records[1]["facts"]["world"], "secret-world");
    assert_eq!(records[1]["facts"]["error_code"], "permission.denied");
}

#[tokio::test]
async fn a_token_learns_nothing_of_other_worlds() {
    let edge = Edge::start().await;
    for world in ["a", "b", "c"] {
        edge.post("/v1/worlds", json!({"world": world})).await;
        for number in 0..3 {
            let body =
                json!({"tool": "wharf/echo", "world": world, "run_id": format!("{world}{number}")});
            assert_eq!(edge.post("/v1/runs?wait=20s", body).await.status, 200);
        }
        let body = json!({"tool": "wharf/ask", "world": world, "inputs": {"question": "?"}});
        assert_eq!(edge.post("/v1/runs", body).await.status, 202);
    }
    eventually(async || {
        let page = edge.get("/v1/inbox").await.json();
        (page["items"].as_array()?.len() == 3).then_some(())
    })
    .await;
    let verbs = json!(["read", "answer", "run"]);
    let one = token(&edge, json!({"verbs": verbs, "worlds": ["b"]})).await;
    let two = token(&edge, json!({"verbs": verbs, "worlds": ["a", "c"]})).await;
    for (token, worlds) in [(&one, vec!["b"]), (&two, vec!["a", "c"])] {
        for path in ["/v1/runs?limit=1", "/v1/runs?limit=2", "/v1/inbox?limit=1", "/v1/worlds"] {
            let mut seen = Vec::new();
            let mut cursor = String::new();
            loop {
                let query = if path.contains('?') { "&" } else { "?" };
                let path = format!("{path}{query}cursor={cursor}");
                let page = send(&edge, token, "GET", &path, &Value::Null).await.json();
                seen.extend(page["items"].as_array().expect("items").clone());
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = next.to_owned(),
                    None => break,
                }
            }
            let of: BTreeSet<_> =
                seen.iter().map(|item| item["world"].as_str().expect("a world")).collect();
            assert_eq!(of, worlds.iter().copied().collect(), "{path}");
            if path.contains("runs") {
                assert_eq!(seen.len(), 4 * worlds.len(), "{path}");
            }
        }
    }
    // Whether a run or an ask exists elsewhere is not to be found out.
    for rest in ["", "/events"] {
        let look = async |run: &str| {
            let path = format!("/v1/runs/{run}{rest}?world=a");
            send(&edge, &one, "GET", &path, &Value::Null).await
        };
        let (there, not) = (look("a0").await, look("x").await);
        there.refused(403, "permission.denied");
        assert_eq!(there.text(), not.text());
    }
    let inbox = edge.get("/v1/inbox?world=a").await.json();
    let ask = inbox["items"][0]["ask_id"].as_str().expect("an ask").to_owned();
    let answer = |id: String| {
        let (edge, one) = (&edge, &one);
        async move {
            let path = format!("/v1/questions/{id}/answer");
            let answer = send(edge, one, "POST", &path, &json!({"value": "x"})).await;
            answer.refused(403, "permission.denied")["message"].clone()
        }
    };
    assert_eq!(answer(ask.clone()).await, answer(format!("{ask}0")).await);
    // In its own world it is answered, though not by whoever started the run.
    let own = edge.get("/v1/inbox?world=b").await.json();
    let path = format!("/v1/questions/{}/answer", own["items"][0]["ask_id"].as_str().expect("id"));
    let answer = send(&edge, &one, "POST", &path, &json!({"value": "x"})).await;
    assert_eq!(answer.status, 204, "{}", answer.text());
}

#[tokio::test]
async fn a_token_for_some_tools_runs_no_others() {
    let edge = Edge::start().await;
    let request = json!({"verbs": ["run", "read"], "tools": ["wharf/e*"]});
    let token = token(&edge, request).await;
    let run = async |tool: &str| {
        send(&edge, &token, "POST", "/v1/runs?wait=20s", &json!({"tool": tool})).await
    };
    assert_eq!(run("wharf/echo").await.status, 200);
    let error = run("wharf/count").await.refused(403, "permission.denied");
    assert_eq!(error["details"]["permission"], "tool:invoke:wharf/count");
    run("wharf/none").await.refused(403, "permission.denied");
    let tools = send(&edge, &token, "GET", "/v1/tools", &Value::Null).await.json();
    assert!(tools.to_string().contains("wharf/count"), "they are shown all the same");
}

#[tokio::test]
async fn a_stream_ends_when_its_readers_token_is_revoked() {
    let limits = HttpLimits { keep_alive: Duration::from_millis(20), ..HttpLimits::default() };
    let edge = Edge::start_limited(limits).await;
    let made = edge.token(json!({"verbs": ["read"]})).await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let path = format!("/v1/runs/{run}/events");
    let token = made["token"].as_str().expect("a token");
    let mut events = edge.call_as(token, "GET", &path).open_events().await;
    let mut owners = edge.events(&run, "").await;
    while events.next().await.expect("an event").event != "started" {}
    let id = made["token_id"].as_str().expect("an id");
    assert_eq!(edge.call("DELETE", &format!("/v1/tokens/{id}")).send().await.status, 204);
    let mut last = None;
    while let Some(message) = events.next().await {
        last = message.comment;
    }
    assert_eq!(last.as_deref(), Some("the token is not good any more"));
    edge.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    loop {
        let message = owners.next().await.expect("the owner reads on");
        if message.event == "finished" {
            break;
        }
    }
}
