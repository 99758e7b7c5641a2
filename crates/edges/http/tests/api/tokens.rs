//! Tokens: made, listed, narrowed, revoked, and what they are worth after keys were rotated.

use serde_json::{Value, json};
use wharf_domain::grant::{Narrowing, token};
use wharf_vocab::{GrantId, Verb};

use crate::support::{Edge, eventually};

fn text(token: &Value) -> String {
    token["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn a_token_is_shown_once_and_listed_without_its_text() {
    let edge = Edge::start().await;
    let request = json!({"label": "ci", "verbs": ["read", "run"], "worlds": ["default"],
        "tools": ["wharf/*"], "ttl_ms": 60_000, "budget_micro": 5});
    let answer = edge.post("/v1/tokens", request).await;
    assert_eq!((answer.status, answer.header("cache-control")), (201, Some("no-store")));
    let made = answer.json();
    let secret = text(&made);
    assert_eq!((&made["state"], &made["created_by"]), (&json!("active"), &json!("owner")));

    let listed = edge.get("/v1/tokens").await;
    assert!(!listed.text().contains(&secret));
    let listed = listed.json()["items"][0].clone();
    let mut expect = made.clone();
    expect.as_object_mut().expect("an object").remove("token");
    assert_eq!(listed, expect);
    assert_eq!(listed["tools"], json!(["wharf/*"]));

    let answer = edge.call_as(&secret, "GET", "/v1/runs").send().await;
    assert_eq!(answer.status, 200);
    let audit = edge.get("/v1/audit?limit=200").await.text();
    assert!(audit.contains("grant.made") && !audit.contains(&secret), "{audit}");
}

#[tokio::test]
async fn tokens_are_listed_on_pages_of_any_size() {
    let edge = Edge::start().await;
    let mut expect = Vec::new();
    for _ in 0..5 {
        let made = edge.token(json!({"verbs": ["read"]})).await;
        expect.push(made["token_id"].as_str().expect("an id").to_owned());
    }
    expect.sort();
    for limit in [1, 2, 5, 200] {
        let found = edge.pages("/v1/tokens", limit).await;
        let ids: Vec<_> = found.iter().map(|item| item["token_id"].clone()).collect();
        assert_eq!(ids, expect, "{limit}");
    }
}

#[tokio::test]
async fn a_token_never_gives_more_than_the_one_it_is_made_with() {
    let edge = Edge::start().await;
    let request = json!({"verbs": ["admin", "read"], "worlds": ["default"], "ttl_ms": 60_000});
    let admin = text(&edge.token(request).await);
    let make = async |request: Value| {
        edge.call_as(&admin, "POST", "/v1/tokens").json(&request).send().await
    };
    for more in [
        json!({"verbs": ["run"], "worlds": ["default"], "ttl_ms": 1_000}),
        json!({"verbs": ["read"], "ttl_ms": 1_000}),
        json!({"verbs": ["read"], "worlds": ["other"], "ttl_ms": 1_000}),
        json!({"verbs": ["read"], "worlds": ["default"]}),
        json!({"verbs": ["read"], "worlds": ["default"], "ttl_ms": 120_000}),
        json!({"verbs": ["read"], "worlds": ["default"], "ttl_ms": 1_000, "person": true}),
    ] {
        make(more).await.refused(403, "permission.denied");
    }
    let less = json!({"verbs": ["read"], "worlds": ["default"], "ttl_ms": 1_000});
    assert_eq!(make(less).await.status, 201);
    // It sees, and revokes, what reaches no further than itself.
    let wide = edge.token(json!({"verbs": ["read"]})).await;
    let listed = edge.call_as(&admin, "GET", "/v1/tokens").send().await.json();
    let listed = listed["items"].as_array().expect("a list").clone();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|item| item["worlds"] == json!(["default"])), "{listed:?}");
    let id = wide["token_id"].as_str().expect("an id");
    let revoke = edge.call_as(&admin, "DELETE", &format!("/v1/tokens/{id}")).send().await;
    revoke.refused(403, "permission.denied");
    let nobody = edge.call_as(&admin, "DELETE", "/v1/tokens/g-none").send().await;
    assert_eq!(nobody.json(), revoke.json(), "it is not told what there is");
}

#[tokio::test]
async fn a_budget_needs_one_world_that_exists() {
    let edge = Edge::start().await;
    for (request, status, code) in [
        (json!({"verbs": ["run"], "budget_micro": 1}), 400, "request.invalid"),
        (
            json!({"verbs": ["run"], "budget_micro": 1, "worlds": ["a", "b"]}),
            400,
            "request.invalid",
        ),
        (json!({"verbs": ["run"], "budget_micro": 1, "worlds": ["a"]}), 404, "world.not_found"),
        (json!({"verbs": []}), 400, "request.invalid"),
        (json!({"verbs": ["fly"]}), 400, "request.invalid"),
    ] {
        edge.post("/v1/tokens", request).await.refused(status, code);
    }
}

#[tokio::test]
async fn a_revoked_token_and_those_narrowed_from_it_are_worth_nothing() {
    let edge = Edge::start().await;
    let made = edge.token(json!({"verbs": ["read", "run"]})).await;
    let narrowing = Narrowing { verbs: Some([Verb::Read].into()), ..Narrowing::default() };
    let id = GrantId::new("laptop").expect("valid");
    let narrowed = token::narrow(&text(&made), &id, &narrowing).expect("narrowed");
    let narrowed = narrowed.expose();
    let status = async |token: &str| edge.call_as(token, "GET", "/v1/runs").send().await.status;
    assert_eq!(status(narrowed).await, 200);
    let run = json!({"tool": "wharf/echo"});
    let refused = edge.call_as(narrowed, "POST", "/v1/runs").json(&run).send().await;
    assert_eq!(refused.refused(403, "permission.denied")["details"]["verb"], "run");

    let path = format!("/v1/tokens/{}", made["token_id"].as_str().expect("an id"));
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204);
    for token in [text(&made), narrowed.to_owned()] {
        let answer = edge.call_as(&token, "GET", "/v1/runs").send().await;
        answer.refused(401, "auth.invalid");
    }
    assert_eq!(edge.get("/v1/tokens").await.json()["items"][0]["state"], "revoked");
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204, "once more changes nothing");
    edge.call("DELETE", "/v1/tokens/g-none").send().await.refused(404, "grant.not_found");
}

#[tokio::test]
async fn rotated_keys_keep_old_tokens_until_they_are_dropped() {
    let edge = Edge::start().await;
    let old = text(&edge.token(json!({"verbs": ["read"]})).await);
    let keys = edge.call("POST", "/v1/tokens/rotate").send().await.json();
    assert_eq!(keys, json!({"current": "k2", "keys": ["k1", "k2"]}));
    let new = text(&edge.token(json!({"verbs": ["read"]})).await);
    let status = async |token: &str| edge.call_as(token, "GET", "/v1/runs").send().await.status;
    assert_eq!((status(&old).await, status(&new).await), (200, 200));
    let keys = edge.post("/v1/tokens/rotate", json!({"drop_old": true})).await.json();
    assert_eq!(keys["keys"], json!([keys["current"]]));
    assert_eq!((status(&old).await, status(&new).await), (401, 401));
    assert_eq!(edge.get("/v1/tokens").await.status, 200, "the owner's token is no grant");
    let audited = async || edge.get("/v1/audit?limit=200").await.text();
    eventually(async || (audited().await.matches("grant.keys_rotated").count() == 2).then_some(()))
        .await;
}
