//! Logins at a real issuer, and at one that lies.

mod lies;
mod stage;

use std::sync::atomic::Ordering;

use serde_json::json;
use wharf_ports::logins::{LoginAnswer, LoginEnd, LoginWay};
use wharf_vocab::{Code, ProviderId};

use super::web::DOCUMENT_BYTES_MAX;
use stage::{Core, Script, Stage, basic, by_hand, call, follow, grant, id};

#[tokio::test]
async fn m071_a_login_brings_a_token_that_goes_with_requests() {
    let stage = Stage::new(Script::default()).await;
    let (core, details) = (Core::new(), stage.details());
    let fault = core.call(&details, "tools/list").await.expect_err("nobody logged in");
    assert!(fault.is(Code::McpLoginRequired), "{fault}");
    assert!(fault.message.contains("wharf mcp login tracker"), "{fault}");
    core.log_in(&details).await.expect("logs in");
    assert_eq!(core.call(&details, "tools/list").await, Ok(200));
    {
        let seen = stage.seen.lock();
        let page = &seen.pages[0];
        let resource = format!("{}/mcp", stage.server);
        assert_eq!((page["resource"].as_str(), page["tenant"].as_str()), (resource.as_str(), "1"));
        assert_eq!(page["code_challenge_method"], "S256");
        assert!(!page.contains_key("scope"));
        let (headers, form) = &seen.forms[0];
        assert_eq!(form["resource"], resource);
        assert_eq!(form["client_id"], "client-1");
        assert!(!headers.contains_key("authorization") && !form.contains_key("client_secret"));
        let wish = &seen.registrations[0];
        assert_eq!(wish["application_type"], "native");
        assert_eq!(wish["redirect_uris"], json!([stage::WAY_BACK]));
        assert_eq!(wish["grant_types"], json!(["authorization_code", "refresh_token"]));
    }
    // What was kept is good for the core after a restart, and the core is not registered again.
    let again = core.again();
    assert_eq!(again.call(&details, "tools/list").await, Ok(200));
    again.log_in(&details).await.expect("logs in");
    assert_eq!(stage.seen.lock().registrations.len(), 1);
    let known = core.known.lock().join(" ");
    assert!(known.contains("access-c4nary") && known.contains("refresh-c4nary"), "{known}");
    // It is forgotten whole.
    assert_eq!(again.desk.forget(&id()).await.expect("forgotten").len(), 1);
    assert_eq!(again.vault.names(), Vec::<String>::new());
    assert!(again.call(&details, "tools/list").await.is_err());
}

#[tokio::test]
async fn m071_documents_are_found_wherever_they_may_be() {
    let root = "/.well-known/oauth-protected-resource";
    for (resource_at, unnamed, issuer_at, tenant) in [
        (None, true, Some("/.well-known/openid-configuration"), ""),
        (Some(root), true, Some("/.well-known/oauth-authorization-server/t1"), "/t1"),
        (Some("/elsewhere.json"), false, Some("/t1/.well-known/openid-configuration"), "/t1"),
        (None, true, Some("/.well-known/openid-configuration/t1"), "/t1"),
    ] {
        let script = Script { resource_at, unnamed, issuer_at, tenant, ..Script::default() };
        let stage = Stage::new(script).await;
        let (core, details) = (Core::new(), stage.details());
        core.log_in(&details).await.expect("logs in");
        assert_eq!(core.call(&details, "a").await, Ok(200));
        let seen = stage.seen.lock();
        let at_root = seen.paths.iter().any(|path| path == root);
        assert_eq!(at_root, resource_at == Some(root), "{:?}", seen.paths);
        // The resource is sent as it is written, without a slash that nobody wrote.
        let resource = if at_root { stage.server.clone() } else { format!("{}/mcp", stage.server) };
        assert_eq!(seen.pages[0]["resource"], resource);
    }
}

#[tokio::test]
async fn m071_a_token_is_renewed_once_for_all_who_wait() {
    let stage = Stage::new(Script::default()).await;
    let (core, details) = (Core::new(), stage.details());
    core.log_in(&details).await.expect("logs in");
    let http = core.open(&details);
    let all = || futures::future::join_all((0..16).map(|_| call(&http, "a")));
    // By the clock.
    core.now.fetch_add(3_600_000, Ordering::SeqCst);
    assert!(all().await.into_iter().all(|answer| answer == Ok(200)));
    assert_eq!(stage.asked("grant_type", "refresh_token"), 1);
    // A server that takes none of it any more so soon wants a person.
    stage.expire();
    let fault = call(&http, "a").await.expect_err("refused");
    assert!(fault.is(Code::McpLoginRequired), "{fault}");
    assert_eq!(stage.asked("grant_type", "refresh_token"), 1);
    // By refusal.
    core.log_in(&details).await.expect("logs in");
    stage.expire();
    assert!(all().await.into_iter().all(|answer| answer == Ok(200)));
    assert_eq!(stage.asked("grant_type", "refresh_token"), 2);
    // What was renewed is kept.
    assert_eq!(core.again().call(&details, "a").await, Ok(200));
    // Withdrawn there: it is tried once, then a person is asked.
    core.log_in(&details).await.expect("logs in");
    stage.revoke();
    for _ in 0..3 {
        let fault = call(&http, "a").await.expect_err("refused");
        assert!(fault.is(Code::McpLoginRequired), "{fault}");
    }
    assert_eq!(stage.asked("grant_type", "refresh_token"), 3);
}

#[tokio::test]
async fn m071_scopes_follow_the_challenge_and_add_up() {
    let scopes = [("tools/list", "basic"), ("tools/call", "write")].into();
    let script = Script { scopes, ..Script::default() };
    let stage = Stage::new(script).await;
    stage.change(|script| {
        script.resource = json!({ "scopes_supported": ["other"] });
        script.issuer = json!({ "scopes_supported": ["basic", "offline_access"] });
    });
    let (core, details) = (Core::new(), stage.details());
    core.call(&details, "tools/list").await.expect_err("nobody logged in");
    core.log_in(&details).await.expect("logs in");
    assert_eq!(core.call(&details, "tools/list").await, Ok(200));
    let fault = core.call(&details, "tools/call").await.expect_err("not enough");
    assert!(fault.is(Code::McpLoginRequired), "{fault}");
    core.log_in(&details).await.expect("logs in");
    assert_eq!(core.call(&details, "tools/call").await, Ok(200));
    assert_eq!(core.call(&details, "tools/list").await, Ok(200));
    {
        let seen = stage.seen.lock();
        let asked: Vec<&str> = seen.pages.iter().map(|page| page["scope"].as_str()).collect();
        assert_eq!(asked, ["basic offline_access", "basic offline_access write"]);
        assert_eq!(seen.pages[0]["prompt"], "consent");
    }
    // Without a challenge: what the owner set, else what the server offers.
    let mut set = details.clone();
    set.oauth = Some(wharf_domain::provider::McpLogin {
        scopes: vec!["mine".to_owned()],
        ..Default::default()
    });
    for (details, scope) in [(&set, "mine offline_access"), (&details, "other offline_access")] {
        Core::new().log_in(details).await.expect("logs in");
        let page = stage.seen.lock().pages.last().cloned().expect("a page");
        assert_eq!(page["scope"], scope);
    }
}

#[tokio::test]
async fn m071_a_server_that_never_has_enough_is_left_alone() {
    let scopes = [("a", "more")].into();
    let stage = Stage::new(Script { scopes, never_enough: true, ..Script::default() }).await;
    let (core, details) = (Core::new(), stage.details());
    let mut logins = 0;
    let end = loop {
        match core.call(&details, "a").await {
            Err(fault) if fault.is(Code::McpLoginRequired) && logins < 10 => {
                logins += 1;
                core.log_in(&details).await.expect("logs in");
            }
            end => break end,
        }
    };
    assert_eq!((end, logins), (Ok(403), 3));
    // Nobody is led there once more, unless they begin anew.
    let fault = core.begin(&details).await.expect_err("it was tried");
    assert!(fault.is(Code::McpLoginFailed), "{fault}");
    core.desk.forget(&id()).await.expect("forgotten");
    core.log_in(&details).await.expect("logs in");
}

#[tokio::test]
async fn m071_a_device_logs_in_with_a_code() {
    let stage = Stage::new(Script { device_waits: 2, ..Script::default() }).await;
    let (core, details) = (Core::new(), stage.details());
    let begun = core.desk.begin(&id(), &details, grant("owner"), LoginWay::Device).await;
    let begun = begun.expect("begins");
    assert_eq!(begun.url, format!("{}/typed", stage.issuer));
    // What an issuer says steers no terminal.
    assert_eq!(begun.user_code.as_deref(), Some("ABCD-EFGH"));
    let answer = LoginAnswer { state: begun.state, ..LoginAnswer::default() };
    assert_eq!(core.end(answer).await, Ok(LoginEnd::Done));
    assert_eq!(core.call(&details, "a").await, Ok(200));
    let seen = stage.seen.lock();
    assert_eq!(seen.registrations[0]["grant_types"][0], super::device::GRANT);
    assert!(seen.registrations[0].get("redirect_uris").is_none());
    assert_eq!(seen.forms[0].1["resource"], format!("{}/mcp", stage.server));
}

#[tokio::test]
async fn m071_the_core_is_who_its_owner_says_it_is() {
    let stage = Stage::new(Script::default()).await;
    stage.change(|script| {
        script.issuer = json!({
            "registration_endpoint": null,
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        });
    });
    let core = Core::new();
    core.vault.put("theirs", "s3:cret\n");
    let mut details = stage.details();
    let fault = core.log_in(&details).await.expect_err("nobody is registered");
    assert!(fault.is(Code::McpLoginFailed) && fault.message.contains("client_id"), "{fault}");
    details.oauth = Some(by_hand("by hand", Some("theirs")));
    core.log_in(&details).await.expect("logs in");
    assert_eq!(basic(&stage.seen.lock().forms[0].0).as_deref(), Some("by+hand:s3%3Acret"));
    stage.change(|script| {
        script.issuer["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    });
    core.log_in(&details).await.expect("logs in");
    {
        let seen = stage.seen.lock();
        let (headers, form) = &seen.forms[1];
        assert_eq!((basic(headers), form["client_secret"].as_str()), (None, "s3:cret"));
    }
    // A document of the core's own, where the issuer takes one.
    stage.change(|script| script.issuer["client_id_metadata_document_supported"] = json!(true));
    let document = "https://wharf.example/client.json";
    details.oauth = Some(by_hand(document, None));
    core.log_in(&details).await.expect("logs in");
    assert_eq!(stage.seen.lock().forms[2].1["client_id"], document);
    stage.change(|script| script.issuer = json!({}));
    core.log_in(&details).await.expect("logs in");
    assert_eq!(stage.seen.lock().forms[3].1["client_id"], "client-1");
    // What logins brought is no secret that a manifest can name.
    let kept = core.vault.names().into_iter().find(|name| name.starts_with("mcp-login."));
    details.oauth = Some(by_hand("x", kept.as_deref()));
    let shown = json!(["client_secret_basic"]);
    stage.change(|script| {
        script.issuer = json!({ "token_endpoint_auth_methods_supported": shown });
    });
    assert!(core.log_in(&details).await.is_err());
}

#[tokio::test]
async fn m071_registered_secrets_go_as_the_issuer_says() {
    for (method, in_header, in_form) in [
        ("client_secret_basic", Some("client-1:own"), None),
        ("client_secret_post", None, Some("own")),
        ("none", None, None),
    ] {
        let stage = Stage::new(Script::default()).await;
        stage.change(|script| {
            script.issuer = json!({ "token_endpoint_auth_methods_supported": [method] });
            script.registration =
                json!({ "client_secret": "own", "token_endpoint_auth_method": method });
        });
        let (core, details) = (Core::new(), stage.details());
        core.log_in(&details).await.expect("logs in");
        let seen = stage.seen.lock();
        let (headers, form) = &seen.forms[0];
        assert_eq!(basic(headers).as_deref(), in_header, "{method}");
        assert_eq!(form.get("client_secret").map(String::as_str), in_form, "{method}");
    }
}

#[tokio::test]
async fn m071_another_issuer_learns_nothing_of_the_first() {
    let mut stage = Stage::new(Script::default()).await;
    let other = Stage::new(Script::default()).await;
    stage.change(|script| script.registration = json!({ "client_id": "first-c4nary" }));
    let (core, details) = (Core::new(), stage.details());
    core.log_in(&details).await.expect("logs in");
    stage.moves_to(&other).await;
    let fault = core.call(&details, "a").await.expect_err("refused");
    assert!(fault.is(Code::McpLoginRequired), "{fault}");
    core.log_in(&details).await.expect("logs in");
    {
        let seen = other.seen.lock();
        assert_eq!(seen.registrations.len(), 1);
        assert_eq!(seen.forms[0].1["client_id"], "client-1");
        let all = format!("{:?}{:?}", seen.pages, seen.forms);
        assert!(!all.contains("first-c4nary") && !all.contains("access-c4nary"), "{all}");
    }
    assert_eq!(core.vault.names().len(), 2, "one for each issuer");
    // A client that was registered by hand is shown to the issuer it was used with, or to the one
    // its owner names.
    let taken = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
    for stage in [&stage, &other] {
        stage.change(|script| script.issuer = taken.clone());
    }
    let core = Core::new();
    core.vault.put("theirs", "secret");
    let mut details = details;
    details.oauth = Some(by_hand("by-hand", Some("theirs")));
    core.log_in(&details).await.expect("logs in");
    stage.change(|script| script.resource = json!({}));
    let fault = core.log_in(&details).await.expect_err("another issuer");
    assert!(fault.is(Code::McpLoginFailed) && fault.message.contains("issuer"), "{fault}");
    if let Some(oauth) = &mut details.oauth {
        oauth.issuer = Some(stage.issuer_name());
    }
    core.log_in(&details).await.expect("the owner says so");
}

#[tokio::test]
async fn m071_a_login_is_ended_once_and_by_whoever_began_it() {
    let stage = Stage::new(Script::default()).await;
    let (core, details) = (Core::new(), stage.details());
    let begun = core.begin(&details).await.expect("begins");
    let answer = follow(&begun).await;
    let other = ProviderId::new("other").expect("valid");
    for (provider, who) in [(id(), "mallory"), (other, "owner")] {
        let ended = core.desk.end(&provider, grant(who), answer.clone()).await;
        assert!(ended.expect_err("not theirs").is(Code::McpLoginFailed));
    }
    let wrong = LoginAnswer { state: "x".repeat(43), ..answer.clone() };
    assert!(core.end(wrong).await.is_err());
    assert_eq!(core.end(answer.clone()).await, Ok(LoginEnd::Done));
    assert!(core.end(answer).await.expect_err("used").is(Code::McpLoginFailed));
    // An error of the issuer ends it, too.
    let begun = core.begin(&details).await.expect("begins");
    let declined = LoginAnswer {
        state: begun.state,
        issuer: Some(stage.issuer_name()),
        error: Some("access_denied\u{1b}[2J".to_owned()),
        code: None,
    };
    let fault = core.end(declined).await.expect_err("declined");
    assert!(fault.message.ends_with("access_denied[2J"), "{fault}");
    // Pages lead back to this machine only.
    for bad in ["https://evil.example/", "http://evil.example/", "http://127.0.0.1.evil.example/"] {
        let way = LoginWay::Redirect { redirect_uri: bad.to_owned() };
        let begun = core.desk.begin(&id(), &details, grant("owner"), way).await;
        assert!(begun.expect_err(bad).is(Code::RequestInvalid));
    }
}

#[tokio::test]
async fn m071_the_number_of_logins_under_way_is_bounded() {
    let stage = Stage::new(Script::default()).await;
    let (core, details) = (Core::new(), stage.details());
    let first = core.begin(&details).await.expect("begins");
    for _ in 0..64 {
        core.begin(&details).await.expect("begins");
    }
    let ended = core.end(follow(&first).await).await;
    assert!(ended.is_err(), "the oldest made room");
}

#[tokio::test]
async fn m070_a_login_is_good_for_one_origin() {
    let stage = Stage::new(Script::default()).await;
    let (core, details) = (Core::new(), stage.details());
    core.log_in(&details).await.expect("logs in");
    let elsewhere = Stage::new(Script::default()).await;
    let fault = core.call(&elsewhere.details(), "a").await.expect_err("not logged in there");
    assert!(fault.is(Code::McpLoginRequired));
    assert_eq!(core.call(&details, "a").await, Ok(200));
    const { assert!(DOCUMENT_BYTES_MAX <= 1024 * 1024) };
}
