//! Signing browsers in at the console, and everything that must not work.

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::mounts;
use crate::support::client::{Answer, Call};
use crate::support::{Edge, TOKEN};

/// A browser that is signed in.
#[derive(Debug, Clone)]
struct Browser {
    cookie: String,
    key: String,
    id: String,
}

impl Browser {
    fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 201, "{}", answer.text());
        let set = answer.header("set-cookie").expect("a cookie");
        for said in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(set.split("; ").any(|part| part == said), "{set}");
        }
        assert!(set.starts_with("wharf-00000000=") && !set.contains("Domain"), "{set}");
        let body = answer.json();
        let text = |name: &str| body[name].as_str().expect("text").to_owned();
        let cookie = set.split(';').next().expect("a pair").to_owned();
        Self { cookie, key: text("key"), id: text("session_id") }
    }

    /// A call as the console's page makes it.
    fn call(&self, edge: &Edge, method: &str, path: &str) -> Call {
        page(edge, method, path).header("cookie", &self.cookie).header("wharf-session", &self.key)
    }

    async fn status(&self, edge: &Edge) -> u16 {
        self.call(edge, "GET", "/v1/runs").send().await.status
    }
}

fn own_origin(edge: &Edge) -> String {
    format!("http://{}", edge.server.addr())
}

/// A call of a page of the core without anything that lets it in.
fn page(edge: &Edge, method: &str, path: &str) -> Call {
    Call::new(edge.server.addr(), method, path)
        .header("origin", &own_origin(edge))
        .header("sec-fetch-site", "same-origin")
}

async fn link(edge: &Edge, token: &str) -> String {
    let answer = edge.call_as(token, "POST", "/v1/console/links").send().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let link = answer.json();
    let code = link["code"].as_str().expect("a code").to_owned();
    assert_eq!(link["url"], format!("{}/#link={code}", own_origin(edge)));
    code
}

async fn exchange(edge: &Edge, body: Value) -> Answer {
    page(edge, "POST", "/v1/console/session").json(&body).send().await
}

async fn signed_in(edge: &Edge, token: &str) -> Browser {
    let code = link(edge, token).await;
    Browser::of(&exchange(edge, json!({"link": code})).await)
}

fn text(token: &Value) -> String {
    token["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn c006_a_link_signs_one_browser_in_once() {
    let edge = Edge::start().await;
    let code = link(&edge, TOKEN).await;
    let answer = exchange(&edge, json!({"link": code})).await;
    let browser = Browser::of(&answer);
    let shown = answer.json();
    assert_eq!((&shown["grant"], &shown["person"]), (&json!("owner"), &json!(true)));
    assert_eq!(browser.status(&edge).await, 200);
    exchange(&edge, json!({"link": code})).await.refused(401, "auth.invalid");
    // The page learns who it is, and never sees its key again.
    let told = browser.call(&edge, "GET", "/v1/console/session").send().await;
    assert_eq!(told.status, 200);
    let told = told.json();
    assert_eq!(told["session_id"], json!(browser.id));
    assert!(told.get("key").is_none() && told.get("worlds").is_none(), "{told}");
    assert_eq!(told["home_id"], "00000000");
    assert!(told["expires_at"].as_str() < told["ends_at"].as_str(), "{told}");
}

#[tokio::test]
async fn c006_a_pasted_token_signs_in_and_nothing_else_does() {
    let edge = Edge::start().await;
    let browser = Browser::of(&exchange(&edge, json!({"token": format!(" {TOKEN}\n")})).await);
    assert_eq!(browser.status(&edge).await, 200);
    for wrong in [json!({"token": "x"}), json!({"token": ""}), json!({"link": TOKEN})] {
        exchange(&edge, wrong).await.refused(401, "auth.invalid");
    }
    let code = link(&edge, TOKEN).await;
    for unclear in [json!({}), json!({"link": code, "token": TOKEN}), json!({"links": "x"})] {
        exchange(&edge, unclear).await.refused(400, "request.invalid");
    }
}

#[tokio::test]
async fn c006_the_exchange_demands_the_cores_own_origin() {
    let listed = "http://localhost:5173";
    let edge = Edge::start_with(|options| options.origins = vec![listed.to_owned()]).await;
    let own = own_origin(&edge);
    let other_name = own.replace("127.0.0.1", "localhost");
    let other_port = "http://127.0.0.1:1".to_owned();
    for (origin, site) in [
        ("", "same-origin"),
        ("null", "same-origin"),
        ("null", "cross-site"),
        (listed, "same-site"),
        (listed, "same-origin"),
        (other_name.as_str(), "same-origin"),
        (other_port.as_str(), "same-site"),
        ("http://evil.example", "cross-site"),
        (own.as_str(), "cross-site"),
        (own.as_str(), "same-site"),
        (own.as_str(), "none"),
    ] {
        let code = link(&edge, TOKEN).await;
        let answer = page(&edge, "POST", "/v1/console/session")
            .header("origin", origin)
            .header("sec-fetch-site", site)
            .json(&json!({"link": code}))
            .send()
            .await;
        answer.refused(403, "request.origin_forbidden");
        assert!(answer.header("set-cookie").is_none());
        assert_ne!(answer.header("access-control-allow-origin"), Some(origin), "{origin}");
        // What a stranger's page could not use is still good for the one it was made for.
        let used = exchange(&edge, json!({"link": code})).await;
        assert_eq!(used.status, 201, "{origin} {site}");
    }
    // A name that was pointed at this machine.
    let rebound = page(&edge, "POST", "/v1/console/session")
        .header("host", "evil.example")
        .header("origin", "http://evil.example")
        .json(&json!({"token": TOKEN}));
    rebound.send().await.refused(421, "request.host_unknown");
    // Browsers of old send no metadata; the origin is enough.
    let old = page(&edge, "POST", "/v1/console/session")
        .header("sec-fetch-site", "")
        .json(&json!({"token": TOKEN}));
    assert_eq!(old.send().await.status, 201);
}

#[tokio::test]
async fn c006_ten_failures_a_minute_then_nobody_is_looked_at() {
    let edge = Edge::start().await;
    let code = link(&edge, TOKEN).await;
    for _ in 0..10 {
        exchange(&edge, json!({"link": "guess"})).await.refused(401, "auth.invalid");
    }
    let answer = exchange(&edge, json!({"link": code})).await;
    let error = answer.refused(429, "auth.rate_limited");
    assert!(error["details"]["retry_after_ms"].as_u64().is_some_and(|ms| ms <= 60_000), "{error}");
    let wait: u64 = answer.header("retry-after").expect("a time").parse().expect("seconds");
    assert!((1..=60).contains(&wait));
    exchange(&edge, json!({"token": TOKEN})).await.refused(429, "auth.rate_limited");
    // Whoever has a token is not kept out by others' failures.
    assert_eq!(edge.get("/v1/runs").await.status, 200);
}

/// Behind a proxy one who guesses does not keep the others out, and cannot pass for somebody else by
/// what they send themselves.
#[tokio::test]
async fn c006_behind_a_proxy_failures_are_those_of_whom_it_names() {
    for behind_proxy in [false, true] {
        let edge = Edge::start_with(|options| options.behind_proxy = behind_proxy).await;
        let tries = async |named: &str, token: &str| {
            let call = page(&edge, "POST", "/v1/console/session").header("x-forwarded-for", named);
            call.json(&json!({"token": token})).send().await.status
        };
        for n in 0..10 {
            assert_eq!(tries(&format!("198.51.100.{n}, 203.0.113.7"), "guess").await, 401);
        }
        assert_eq!(tries("198.51.100.99, 203.0.113.7", TOKEN).await, 429, "it is the same one");
        assert_eq!(tries("203.0.113.7:4711", TOKEN).await, 429, "whatever the port");
        let other = if behind_proxy { 201 } else { 429 };
        assert_eq!(tries("198.51.100.1", TOKEN).await, other, "{behind_proxy}");
        assert_eq!(tries("", TOKEN).await, other, "nobody is named: {behind_proxy}");
    }
}

#[tokio::test]
async fn c007_half_of_a_session_is_worth_nothing() {
    let edge = Edge::start().await;
    let (one, two) = (signed_in(&edge, TOKEN).await, signed_in(&edge, TOKEN).await);
    let check = async |cookie: &str, key: &str| {
        let call = page(&edge, "GET", "/v1/runs").header("cookie", cookie);
        call.header("wharf-session", key).send().await.status
    };
    assert_eq!(check(&one.cookie, &one.key).await, 200);
    for (cookie, key) in [
        (one.cookie.as_str(), ""),
        ("", one.key.as_str()),
        (&one.cookie, &two.key),
        (&two.cookie, &one.key),
        (&one.cookie, "x"),
        (&one.cookie[..one.cookie.len() - 1], &one.key),
        (&one.cookie.replace("wharf-00000000", "wharf-11111111"), &one.key),
        (&format!("wharf-00000000={}", one.id), &one.key),
        ("wharf-00000000=.", "."),
    ] {
        assert_eq!(check(cookie, key).await, 401, "{cookie} {key}");
    }
    // A half in the place of a token is none.
    for half in [&one.key, &one.cookie] {
        assert_eq!(edge.call_as(half, "GET", "/v1/runs").send().await.status, 401);
    }
    // A token that is sent wins, also when it is a bad one.
    let bad = one.call(&edge, "GET", "/v1/runs").header("authorization", "Bearer x");
    bad.send().await.refused(401, "auth.invalid");
}

#[tokio::test]
async fn c007_cookies_of_others_are_ignored_and_too_many_are_explained() {
    let edge = Edge::start().await;
    let browser = signed_in(&edge, TOKEN).await;
    let full = |bytes: usize| {
        let others = format!("a=b; wharf-00000000=tossed; {}", browser.cookie);
        let rest = "x".repeat(bytes - others.len() - 4);
        format!("{others}; c={rest}")
    };
    let call = |cookie: &str, path: &str| browser.call(&edge, "GET", path).header("cookie", cookie);
    assert_eq!(call(&full(16 * 1024 - 1), "/v1/runs").send().await.status, 200);
    let large = full(16 * 1024 + 8);
    call(&large, "/v1/runs").send().await.refused(431, "request.too_large");
    let page = call(&large, "/").header("accept", "text/html").send().await;
    assert_eq!((page.status, page.header("content-type")), (431, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("cookies") && !page.text().contains(&browser.key));
}

#[tokio::test]
async fn c007_a_websocket_offers_the_key_and_never_gets_it_back() {
    let edge = Edge::start_with(|options| options.mounts = vec![mounts::mount()]).await;
    let browser = signed_in(&edge, TOKEN).await;
    let open = async |cookie: &str, offer: String, origin: &str| {
        let address = format!("ws://{}/other", edge.server.addr());
        let mut request = address.into_client_request().expect("a request");
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", offer.parse().expect("a header"));
        headers.insert("origin", origin.parse().expect("a header"));
        if !cookie.is_empty() {
            headers.insert("cookie", cookie.parse().expect("a header"));
        }
        let stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
        tokio_tungstenite::client_async(request, stream).await
    };
    let own = own_origin(&edge);
    let offer = format!("wharf.v1, wharf.session.{}", browser.key);
    let (mut socket, answer) = open(&browser.cookie, offer.clone(), &own).await.expect("let in");
    assert_eq!(answer.headers()["sec-websocket-protocol"], "wharf.v1");
    let hello = futures::StreamExt::next(&mut socket).await.expect("a message").expect("whole");
    assert_eq!(hello.to_text().expect("text"), "owner offered wharf.v1");
    for (cookie, offer, origin) in [
        ("", offer.clone(), own.as_str()),
        (&browser.cookie, "wharf.v1, wharf.session.x".to_owned(), &own),
        (&browser.cookie, "wharf.v1".to_owned(), &own),
        (&browser.cookie, format!("wharf.v1, wharf.bearer.{}", browser.key), &own),
        (&browser.cookie, offer.clone(), "http://127.0.0.1:1"),
        (&browser.cookie, offer.clone(), "null"),
    ] {
        assert!(open(cookie, offer.clone(), origin).await.is_err(), "{offer} {origin}");
    }
}

#[tokio::test]
async fn c008_a_session_has_exactly_the_rights_of_its_token_and_ends_with_it() {
    let edge = Edge::start().await;
    let request = json!({"verbs": ["read"], "worlds": ["default"], "tools": ["wharf/*"],
        "ttl_ms": 3_600_000, "label": "phone"});
    let token = edge.token(request).await;
    let browser = signed_in(&edge, &text(&token)).await;
    let told = browser.call(&edge, "GET", "/v1/console/session").send().await.json();
    assert_eq!(told["grant"], token["token_id"]);
    assert_eq!((&told["person"], &told["label"]), (&json!(false), &json!("phone")));
    assert_eq!(told["verbs"], json!(["read"]));
    assert_eq!(told["worlds"], json!(["default"]));
    assert_eq!(told["tools"], json!(["wharf/*"]));
    assert_eq!(told["expires_at"], token["expires_at"], "it ends when the token does");
    assert_eq!(browser.status(&edge).await, 200);
    let run = json!({"tool": "wharf/echo", "inputs": {}});
    let refused = browser.call(&edge, "POST", "/v1/runs").json(&run).send().await;
    refused.refused(403, "permission.denied");
    browser.call(&edge, "GET", "/v1/tokens").send().await.refused(403, "permission.denied");
    let path = format!("/v1/tokens/{}", token["token_id"].as_str().expect("an id"));
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204);
    assert_eq!(browser.status(&edge).await, 401);
    // A link that was made before is worth nothing either.
    let other = text(&edge.token(json!({"verbs": ["read"]})).await);
    let code = link(&edge, &other).await;
    let listed = edge.get("/v1/tokens").await.json();
    let id = listed["items"].as_array().expect("a list").last().expect("one")["token_id"].clone();
    let path = format!("/v1/tokens/{}", id.as_str().expect("an id"));
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204);
    exchange(&edge, json!({"link": code})).await.refused(401, "auth.invalid");
}

#[tokio::test]
async fn c008_a_session_ends_when_the_key_of_its_token_is_dropped() {
    let edge = Edge::start().await;
    let made = signed_in(&edge, &text(&edge.token(json!({"verbs": ["read"]})).await)).await;
    let owner = signed_in(&edge, TOKEN).await;
    let rotated = edge.post("/v1/tokens/rotate", json!({})).await;
    assert_eq!(rotated.status, 200);
    assert_eq!(made.status(&edge).await, 200, "the old key still counts");
    edge.post("/v1/tokens/rotate", json!({"drop_old": true})).await;
    assert_eq!(made.status(&edge).await, 401);
    assert_eq!(owner.status(&edge).await, 200, "the owner's token has another key");
}

#[tokio::test]
async fn c008_sessions_stand_among_tokens_and_can_be_revoked_there() {
    let edge = Edge::start().await;
    let token = edge.token(json!({"verbs": ["read"]})).await;
    assert_eq!(token["kind"], "token");
    let browser = signed_in(&edge, TOKEN).await;
    let sessions = async || {
        let listed = edge.get("/v1/tokens").await.json();
        let items = listed["items"].as_array().expect("a list").clone();
        items.into_iter().filter(|item| item["kind"] == "console").collect::<Vec<_>>()
    };
    let listed = sessions().await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["token_id"], json!(browser.id));
    assert_eq!((&listed[0]["person"], &listed[0]["created_by"]), (&json!(true), &json!("owner")));
    let shown = edge.get("/v1/tokens").await.text() + &edge.get("/v1/audit").await.text();
    let secret = browser.cookie.split('.').nth(1).expect("a half");
    assert!(!shown.contains(&browser.key) && !shown.contains(secret));
    assert!(shown.contains("console.signed_in"), "{shown}");
    let path = format!("/v1/tokens/{}", browser.id);
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204);
    assert_eq!(browser.status(&edge).await, 401);
    assert!(sessions().await.is_empty());
}

#[tokio::test]
async fn c008_signing_out_ends_the_session_and_what_it_has_open() {
    let edge = Edge::start().await;
    let (browser, other) = (signed_in(&edge, TOKEN).await, signed_in(&edge, TOKEN).await);
    let mut events = browser.call(&edge, "GET", "/v1/changes").open_events().await;
    let first = events.next().await.expect("an event");
    assert_eq!(first.data, json!({"reset": true, "items": []}));
    let answer = browser.call(&edge, "DELETE", "/v1/console/session").send().await;
    assert_eq!(answer.status, 204);
    let unset: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert!(unset.iter().all(|(_, value)| value.contains("Max-Age=0")), "{unset:?}");
    assert!(unset[0].1.starts_with("wharf-00000000=;"), "{unset:?}");
    assert_eq!(browser.status(&edge).await, 401);
    assert_eq!(other.status(&edge).await, 200, "another browser stays");
    // A run makes the stream look at its reader's rights.
    edge.begin("wharf/count", json!({"n": 1})).await;
    let rest = events.rest().await;
    assert!(rest.iter().all(|message| message.data["items"].as_array().is_none_or(Vec::is_empty)));
    let again = browser.call(&edge, "DELETE", "/v1/console/session").send().await;
    again.refused(401, "auth.invalid");
    // A token is not signed out.
    let token = edge.call("DELETE", "/v1/console/session").send().await;
    token.refused(400, "request.invalid");
    let audit = edge.get("/v1/audit").await.text();
    assert!(audit.contains("console.signed_out"), "{audit}");
}

#[tokio::test]
async fn c008_a_session_makes_no_link_and_no_other_session_lasts_longer() {
    let edge = Edge::start().await;
    let browser = signed_in(&edge, TOKEN).await;
    let refused = browser.call(&edge, "POST", "/v1/console/links").send().await;
    refused.refused(403, "permission.denied");
    let nobody = page(&edge, "POST", "/v1/console/links").send().await;
    nobody.refused(401, "auth.required");
    // Of many sessions of one token the oldest ends.
    let mut browsers = vec![browser];
    for _ in 0..16 {
        browsers.push(signed_in(&edge, TOKEN).await);
    }
    assert_eq!(browsers[0].status(&edge).await, 401);
    assert_eq!(browsers[1].status(&edge).await, 200);
    assert_eq!(browsers[16].status(&edge).await, 200);
}

#[tokio::test]
async fn c009_session_credentials_count_for_the_cores_own_pages_only() {
    let listed = "http://localhost:5173";
    let edge = Edge::start_with(|options| options.origins = vec![listed.to_owned()]).await;
    let browser = signed_in(&edge, TOKEN).await;
    let own = own_origin(&edge);
    let send = async |origin: &str, site: &str, path: &str| {
        let call = browser.call(&edge, "GET", path).header("origin", origin);
        call.header("sec-fetch-site", site).send().await
    };
    for (origin, site) in [("", ""), ("", "same-origin"), (own.as_str(), ""), (&own, "same-origin")]
    {
        assert_eq!(send(origin, site, "/v1/runs").await.status, 200, "{origin} {site}");
    }
    for (origin, site, status) in [
        (listed, "same-site", 401),
        (listed, "", 401),
        ("", "same-site", 401),
        ("", "cross-site", 401),
        ("", "none", 401),
        (own.as_str(), "cross-site", 401),
        ("null", "", 403),
        ("null", "same-origin", 403),
        ("http://127.0.0.1:1", "same-site", 403),
        ("https://127.0.0.1", "same-origin", 403),
    ] {
        let answer = send(origin, site, "/v1/runs").await;
        assert_eq!(answer.status, status, "{origin} {site}");
        // A page that was let in by name may read streams with a token, not with a session.
        let stream = send(origin, site, "/v1/changes").await;
        assert_eq!(stream.status, status, "{origin} {site}");
        assert_ne!(stream.header("access-control-allow-credentials"), Some("true"));
    }
    let asked = Call::new(edge.server.addr(), "OPTIONS", "/v1/changes")
        .header("origin", listed)
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "wharf-session")
        .send()
        .await;
    let allowed = asked.header("access-control-allow-headers").unwrap_or_default();
    assert!(!allowed.contains("wharf-session"), "{allowed}");
    let framed = browser.call(&edge, "GET", "/v1/runs").header("host", "evil.example");
    framed.send().await.refused(421, "request.host_unknown");
}

#[tokio::test]
async fn c009_a_ticket_of_a_session_ends_with_it() {
    let edge = Edge::start().await;
    let browser = signed_in(&edge, TOKEN).await;
    let made = browser.call(&edge, "POST", "/v1/tickets").json(&json!({})).send().await;
    assert_eq!(made.status, 201, "{}", made.text());
    let ticket = made.json()["ticket"].as_str().expect("a ticket").to_owned();
    browser.call(&edge, "DELETE", "/v1/console/session").send().await;
    let path = format!("/v1/changes?ticket={ticket}");
    let answer = page(&edge, "GET", &path).send().await;
    answer.refused(401, "auth.invalid");
}

#[tokio::test]
async fn c005_changes_are_told_thinly_and_only_to_those_who_may_know() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "other"})).await;
    let request = json!({"verbs": ["read"], "worlds": ["other"]});
    let narrow = text(&edge.token(request).await);
    let mut all = edge.call("GET", "/v1/changes?kinds=run,world").open_events().await;
    let mut some = edge.call_as(&narrow, "GET", "/v1/changes").open_events().await;
    for events in [&mut all, &mut some] {
        let first = events.next().await.expect("an event");
        assert_eq!((first.event.as_str(), &first.data["reset"]), ("changes", &json!(true)));
    }
    let run = edge.begin("wharf/count", json!({"n": 1})).await;
    edge.until(&run, "succeeded").await;
    let mut last = Value::Null;
    let mut seq = 0;
    while last["status"] != "succeeded" {
        let event = all.next().await.expect("an event");
        for item in event.data["items"].as_array().expect("items") {
            assert_eq!((&item["kind"], &item["world"]), (&json!("run"), &json!("default")));
            assert_eq!(item["id"], json!(run));
            assert!(item["seq"].as_u64() > Some(seq), "numbers grow: {item}");
            seq = item["seq"].as_u64().expect("a number");
            last = item.clone();
        }
    }
    // What is told to a narrow token first is of its own world.
    edge.post("/v1/worlds", json!({"world": "third"})).await;
    let answer = edge.call("PATCH", "/v1/worlds/other").json(&json!({"retention_days": 3}));
    assert_eq!(answer.send().await.status, 200);
    let event = some.next().await.expect("an event");
    let items = event.data["items"].as_array().expect("items").clone();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!((&items[0]["kind"], &items[0]["id"]), (&json!("world"), &json!("other")));
    for wrong in ["/v1/changes?kinds=runs", "/v1/changes?kinds=run,,ask"] {
        edge.get(wrong).await.refused(400, "request.invalid");
    }
    let refused = edge.call_as(&narrow, "GET", "/v1/changes?world=default").send().await;
    refused.refused(403, "permission.denied");
}
