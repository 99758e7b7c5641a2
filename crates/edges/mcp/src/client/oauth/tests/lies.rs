//! Servers and issuers that lie, and what must not be seen of a login.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use wharf_vocab::Code;

use super::super::web::DOCUMENT_BYTES_MAX;
use super::stage::{Core, Script, Stage, follow};

/// Tries to log in at a server that does as the script says; the words it failed with.
async fn fails(script: Script) -> (String, Stage) {
    // Only where somebody is silent does it matter how long that is waited for.
    let patience = if script.silent.is_some() { 300 } else { 60_000 };
    let stage = Stage::new(script).await;
    let core = Core::with(Arc::default(), Duration::from_millis(patience));
    let details = stage.details();
    // The server has been tried before, as it is in life.
    let _ = core.call(&details, "a").await;
    let fault = match core.begin(&details).await {
        Err(fault) => fault,
        Ok(begun) => core.end(follow(&begun).await).await.expect_err("a lie"),
    };
    assert!(fault.is(Code::McpLoginFailed), "{fault}");
    assert!(core.vault.names().is_empty(), "{fault}");
    assert!(!fault.to_string().contains("c4nary"), "{fault}");
    (fault.message, stage)
}

fn issuer(said: Value) -> Script {
    Script { issuer: said, ..Script::default() }
}

fn instead(path: &'static str, status: u16, body: String) -> Script {
    Script { instead: Some((path, status, Vec::new(), body)), ..Script::default() }
}

#[tokio::test]
async fn m071_lies_about_who_it_is_end_a_login() {
    let server = |said: Value| Script { resource: said, ..Script::default() };
    let back = |iss: &str| Script { iss: Some(iss.to_owned()), ..Script::default() };
    for (script, why) in [
        (issuer(json!({ "issuer": "https://evil.example" })), "another issuer"),
        (server(json!({ "resource": "https://evil.example/mcp" })), "another resource"),
        (server(json!({ "authorization_servers": [] })), "names nobody"),
        (back("https://evil.example"), "another issuer"),
        (back(""), "does not say which issuer"),
        (issuer(json!({ "code_challenge_methods_supported": null })), "PKCE"),
        (issuer(json!({ "code_challenge_methods_supported": ["plain"] })), "PKCE"),
        (issuer(json!({ "token_endpoint": null })), "no tokens"),
    ] {
        let (said, stage) = fails(script).await;
        assert!(said.contains(why), "{said}");
        assert_eq!(stage.asked("grant_type", "authorization_code"), 0, "{said}");
    }
    // A slash more is another issuer, and one that was not announced is compared all the same.
    let stage = Stage::new(Script::default()).await;
    let slash = format!("{}/", stage.issuer_name());
    stage.change(|script| script.iss = Some(slash.clone()));
    let core = Core::new();
    for announced in [true, false] {
        stage.change(|script| {
            script.issuer = json!({ "authorization_response_iss_parameter_supported": announced });
        });
        let begun = core.begin(&stage.details()).await.expect("begins");
        let ended = core.end(follow(&begun).await).await;
        assert!(ended.expect_err("another").message.contains("another issuer"));
    }
    stage.change(|script| script.iss = Some(String::new()));
    core.log_in(&stage.details()).await.expect("nobody announced it, nobody says it");
}

#[tokio::test]
async fn m076_nothing_is_asked_where_nothing_may_be_reached() {
    let named = |place: &str| Script { named: Some(place.to_owned()), ..Script::default() };
    for place in [
        "http://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/x",
        "http://evil.example/x",
        "file:///etc/passwd",
        "/relative",
    ] {
        for script in [
            named(place),
            Script { resource: json!({ "authorization_servers": [place] }), ..Script::default() },
            issuer(json!({ "token_endpoint": place })),
            issuer(json!({ "authorization_endpoint": place })),
            issuer(json!({ "registration_endpoint": place })),
        ] {
            let (said, _) = fails(script).await;
            assert!(said.contains("cannot be used"), "{place}: {said}");
        }
    }
}

#[tokio::test]
async fn m071_answers_that_cannot_be_used_end_a_login() {
    let token = |said: Value| Script { token: said, ..Script::default() };
    let document = "/.well-known/oauth-authorization-server";
    let huge = format!("{{\"issuer\":\"{}\"}}", "x".repeat(DOCUMENT_BYTES_MAX));
    let silent = |path| Script { silent: Some(path), ..Script::default() };
    for (script, why) in [
        (token(json!({ "token_type": "mac" })), "kind"),
        (token(json!({ "access_token": "a\r\nb: c" })), "cannot be used"),
        (token(json!({ "access_token": "" })), "cannot be used"),
        (token(json!({ "access_token": 5 })), "cannot be read"),
        (token(json!({ "access_token": "x".repeat(20_000) })), "cannot be used"),
        (instead("/token", 400, r#"{"error":"invalid_grant"}"#.into()), "invalid_grant"),
        (instead("/token", 500, r#"{"error":"c4nary"}"#.into()), "500"),
        (instead("/token", 200, "<html>c4nary</html>".into()), "cannot be read"),
        (instead("/register", 400, "c4nary".into()), "400"),
        (instead("/register", 200, "{}".into()), "cannot be read"),
        (instead(document, 200, huge), "too large"),
        (instead(document, 200, "c4nary".into()), "cannot be read"),
        (instead(document, 503, String::new()), "503"),
        (silent(document), "too long"),
        (silent("/token"), "too long"),
        (silent("/register"), "too long"),
    ] {
        let (said, _) = fails(script).await;
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn m070_a_redirect_takes_no_secret_elsewhere() {
    let thief = Stage::new(Script::default()).await;
    let document = "/.well-known/oauth-authorization-server";
    for (path, status) in [("/token", 307), ("/token", 302), ("/register", 308), (document, 307)] {
        let place = vec![("location", format!("{}{path}", thief.issuer))];
        let script =
            Script { instead: Some((path, status, place, String::new())), ..Script::default() };
        fails(script).await;
    }
    assert_eq!(thief.seen.lock().paths, Vec::<String>::new());
}

/// What is written to the log.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn m075_no_secret_of_a_login_is_in_the_log() {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let subscriber = tracing::Dispatch::new(subscriber);
    // While there is one subscriber only, whoever comes to a place first decides for all threads
    // whether something is logged there, and other tests log nothing.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logging = tracing::dispatcher::set_default(&subscriber);
    let stage = Stage::new(Script::default()).await;
    stage.change(|script| {
        script.issuer = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
        script.registration = json!({ "client_secret": "client-c4nary" });
    });
    let (core, details) = (Core::new(), stage.details());
    core.log_in(&details).await.expect("logs in");
    assert_eq!(core.call(&details, "a").await, Ok(200));
    stage.revoke();
    let fault = core.call(&details, "a").await.expect_err("refused");
    assert!(!format!("{fault:?}").contains("c4nary"));
    assert!(!format!("{:?}", core.open(&details)).contains("c4nary"));
    let text = String::from_utf8_lossy(&written.0.lock()).into_owned();
    assert!(!text.is_empty() && !text.contains("c4nary"), "{text}");
}
