//! Addresses of single files.

use serde_json::{Value, json};

use crate::support::Edge;
use crate::support::client::{Answer, Call};

async fn ticket(edge: &Edge, path: &str) -> Value {
    let answer = edge.post("/v1/worlds/default/tickets", json!({"path": path})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

async fn at(edge: &Edge, url: &str, headers: &[(&str, &str)]) -> Answer {
    let mut call = Call::new(edge.server.addr(), "GET", url);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call.send().await
}

#[tokio::test]
async fn c004_a_picture_is_shown_by_its_address_in_parts_too() {
    let edge = Edge::start().await;
    edge.put("/out/a.png", b"0123456789").await;
    let made = ticket(&edge, "/out/a.png").await;
    assert_eq!((&made["media_type"], &made["bytes"]), (&json!("image/png"), &json!(10)));
    let url = made["url"].as_str().expect("an address");
    let own = [("sec-fetch-site", "same-origin")];
    for _ in 0..2 {
        let shown = at(&edge, url, &own).await;
        assert_eq!((shown.status, shown.body.as_slice()), (200, b"0123456789".as_slice()));
        assert_eq!(shown.header("content-type"), Some("image/png"));
        assert_eq!(shown.header("content-disposition"), Some("inline"));
        assert_eq!(shown.header("x-content-type-options"), Some("nosniff"));
        let policy = "sandbox; default-src 'none'; frame-ancestors 'none'";
        assert_eq!(shown.header("content-security-policy"), Some(policy));
        assert_eq!(shown.header("cross-origin-resource-policy"), Some("same-origin"));
    }
    let part = at(&edge, url, &[("range", "bytes=2-4")]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, b"234".as_slice()));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let saved = at(&edge, &format!("{url}?download=b%22%0a.png"), &[]).await;
    assert_eq!(saved.header("content-disposition"), Some("attachment; filename=\"b__.png\""));
    for site in ["cross-site", "same-site"] {
        let other = at(&edge, url, &[("sec-fetch-site", site)]).await;
        other.refused(403, "request.origin_forbidden");
    }
}

#[tokio::test]
async fn c004_what_could_act_is_only_ever_saved() {
    let edge = Edge::start().await;
    for path in ["/x.html", "/x.svg", "/x.txt", "/x.pdf", "/x"] {
        edge.put(path, b"<script>alert(1)</script>").await;
        let made = ticket(&edge, path).await;
        let answer = at(&edge, made["url"].as_str().expect("an address"), &[]).await;
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"), "{path}");
        assert_eq!(answer.header("content-disposition"), Some("attachment"), "{path}");
    }
}

#[tokio::test]
async fn c004_an_address_is_of_one_version_and_ends_with_its_token() {
    let edge = Edge::start().await;
    edge.put("/a.png", b"one").await;
    let made = ticket(&edge, "/a.png").await;
    let url = made["url"].as_str().expect("an address").to_owned();
    assert_eq!(at(&edge, &url, &[]).await.status, 200);
    edge.put("/a.png", b"two").await;
    at(&edge, &url, &[]).await.refused(409, "artifact.changed");
    let token = edge.token(json!({"verbs": ["read"], "worlds": ["default"]})).await;
    let text = token["token"].as_str().expect("a token");
    let call = edge.call_as(text, "POST", "/v1/worlds/default/tickets");
    let made = call.json(&json!({"path": "/a.png"})).send().await;
    assert_eq!(made.status, 201);
    let url = made.json()["url"].as_str().expect("an address").to_owned();
    assert_eq!(at(&edge, &url, &[]).await.body, b"two");
    let elsewhere = url.replace("/default/", "/other/");
    at(&edge, &elsewhere, &[]).await.refused(401, "auth.invalid");
    let guessed = format!("{}0", &url[..url.len() - 1]);
    if guessed != url {
        at(&edge, &guessed, &[]).await.refused(401, "auth.invalid");
    }
    let path = format!("/v1/tokens/{}", token["token_id"].as_str().expect("an id"));
    edge.call("DELETE", &path).send().await;
    at(&edge, &url, &[]).await.refused(401, "auth.invalid");
    let other = edge.token(json!({"verbs": ["read"], "worlds": ["other"]})).await;
    let text = other["token"].as_str().expect("a token");
    let call = edge.call_as(text, "POST", "/v1/worlds/default/tickets");
    let refused = call.json(&json!({"path": "/a.png"})).send().await;
    refused.refused(403, "permission.denied");
    let missing = edge.post("/v1/worlds/default/tickets", json!({"path": "/none"})).await;
    missing.refused(404, "artifact.not_found");
    let wrong = edge.post("/v1/worlds/default/tickets", json!({"path": "/../x"})).await;
    wrong.refused(422, "scope.path_invalid");
}
