//! The console with the real program: opened, kept over a restart, ended.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::{Api, Core, LONG, TestHome, mode, wait_for};

/// A browser at the console.
struct Browser {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    cookie: String,
    key: String,
}

impl Browser {
    fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let (cookie, key) = (String::new(), String::new());
        Self { runtime: runtime.expect("a runtime"), client, cookie, key }
    }

    /// Status, body and the cookie that is set.
    fn send(
        &self,
        core: &Core,
        (method, path): (&str, &str),
        body: Option<&Value>,
    ) -> (u16, String, String) {
        let (method, url) = (method.parse().expect("a method"), core.url());
        let mut request = self.client.request(method, format!("{url}{path}"));
        request = request.header("origin", &url).header("sec-fetch-site", "same-origin");
        if !self.key.is_empty() {
            request = request.header("cookie", &self.cookie).header("wharf-session", &self.key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            let cookie = answer.headers().get("set-cookie");
            let cookie = cookie.map(|it| it.to_str().expect("text").to_owned());
            let status = answer.status().as_u16();
            (status, answer.text().await.expect("text"), cookie.unwrap_or_default())
        })
    }

    fn sign_in(&mut self, core: &Core, body: &Value) -> u16 {
        let (status, text, cookie) = self.send(core, ("POST", "/v1/console/session"), Some(body));
        if status == 201 {
            let body: Value = serde_json::from_str(&text).expect("JSON");
            self.key = body["key"].as_str().expect("a key").to_owned();
            self.cookie = cookie.split(';').next().expect("a pair").to_owned();
        }
        status
    }

    fn get(&self, core: &Core, path: &str) -> (u16, Value) {
        let (status, text, _) = self.send(core, ("GET", path), None);
        (status, serde_json::from_str(&text).unwrap_or_default())
    }
}

/// The code of the link that `wharf console --print` prints.
fn printed(home: &TestHome, core: &Core, more: &[&str]) -> String {
    let mut arguments = vec!["console", "--print"];
    arguments.extend(more);
    let printed = home.run(&arguments).code(0);
    let address = printed.stdout.trim().to_owned();
    let prefix = format!("{}/#link=", core.url());
    address.strip_prefix(&prefix).unwrap_or_else(|| panic!("{address}")).to_owned()
}

#[test]
fn c008_a_session_outlives_the_core_and_ends_with_its_token() {
    let home = TestHome::new();
    let core = home.up();
    let code = printed(&home, &core, &[]);
    let mut browser = Browser::new();
    assert_eq!(browser.sign_in(&core, &json!({"link": code})), 201);
    assert_eq!(browser.sign_in(&core, &json!({"link": code})), 401, "once");
    let (status, who) = browser.get(&core, "/v1/console/session");
    assert_eq!((status, &who["grant"], &who["person"]), (200, &json!("owner"), &json!(true)));
    let home_id = who["home_id"].as_str().expect("an id").to_owned();
    assert!(browser.cookie.starts_with(&format!("wharf-{}=", &home_id[..8])), "{}", browser.cookie);

    let token = home.run(&["token", "create", "--verb", "read", "--world", "default"]).code(0);
    let token = token.stdout.trim().to_owned();
    let mut narrow = Browser::new();
    let narrow_code = printed(&home, &core, &["--token", &token, "--url", &core.url()]);
    assert_eq!(narrow.sign_in(&core, &json!({"link": narrow_code})), 201);
    let unused = printed(&home, &core, &[]);
    core.kill();

    let core = home.up();
    assert_eq!(browser.get(&core, "/v1/runs").0, 200, "kill -9 signs nobody out");
    let (_, again) = browser.get(&core, "/v1/console/session");
    assert_eq!((&again["session_id"], &again["home_id"]), (&who["session_id"], &json!(home_id)));
    assert_eq!(narrow.get(&core, "/v1/runs").0, 200);
    assert_eq!(narrow.get(&core, "/v1/tokens").0, 403, "no more rights than its token");
    let mut late = Browser::new();
    assert_eq!(late.sign_in(&core, &json!({"link": unused})), 401, "links are not kept");
    assert_eq!(late.sign_in(&core, &json!({"token": token})), 201);

    let listed = home.run(&["token", "list", "--json"]).code(0).json();
    let listed = listed.as_array().expect("a list").clone();
    let id = |kind: &str| {
        let found = listed.iter().find(|item| item["kind"] == kind).expect("one");
        found["token_id"].as_str().expect("an id").to_owned()
    };
    home.run(&["token", "revoke", &id("token")]).code(0);
    assert_eq!(narrow.get(&core, "/v1/runs").0, 401);
    assert_eq!(late.get(&core, "/v1/runs").0, 401);
    assert_eq!(browser.send(&core, ("DELETE", "/v1/console/session"), None).0, 204);
    core.kill();
    let core = home.up();
    assert_eq!(browser.get(&core, "/v1/runs").0, 401, "who signed out stays out");
    assert_eq!(narrow.get(&core, "/v1/runs").0, 401);
    let everything = home.log() + &home.run(&["audit", "export"]).code(0).stdout;
    let half = browser.cookie.rsplit('.').next().expect("a half");
    for secret in [browser.key.as_str(), &narrow.key, &code, half] {
        assert!(!everything.contains(secret), "a half is written down");
    }
    for file in std::fs::read_dir(home.path()).expect("a home") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let kept = |secret: &str| bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
        assert!(!kept(&browser.key) && !kept(half), "{} holds a half", path.display());
    }

    // Another owner's token is another owner.
    assert_eq!(browser.sign_in(&core, &json!({"token": core.token()})), 201);
    core.stop().code(0);
    std::fs::remove_file(home.path().join("run/owner.token")).expect("removed");
    let core = home.up();
    assert_eq!(browser.get(&core, "/v1/runs").0, 401, "it ends with the owner's token");
    core.stop().code(0);
}

#[test]
fn c006_the_browser_is_given_a_private_file_and_no_process_list_shows_the_link() {
    let home = TestHome::new();
    let core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    let (seen, script) = (folder.path().join("seen"), folder.path().join("browser"));
    // What a browser is started with, and what it finds there.
    let text = format!(
        "#!/bin/sh\necho \"$1\" > {0}.tmp\ncat \"${{1#file://}}\" >> {0}.tmp\nmv {0}.tmp {0}\n",
        seen.display()
    );
    std::fs::write(&script, text).expect("written");
    let mut permissions = std::fs::metadata(&script).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&script, permissions).expect("set");
    let mut command = home.wharf(&["console"]);
    command.env("BROWSER", &script);
    let running = crate::support::Running::of(command.spawn().expect("starts"), "wharf console");
    let text = wait_for("the browser", || std::fs::read_to_string(&seen).ok());
    let (address, page) = text.split_once('\n').expect("an address and a page");
    let file = std::path::PathBuf::from(address.strip_prefix("file://").expect("a file"));
    assert!(file.starts_with(home.path().join("run")), "{address}");
    assert_eq!(mode(&file), 0o600);
    let link = page.split("#link=").nth(1).and_then(|rest| rest.split('"').next());
    let link = link.expect("a link").to_owned();
    assert!(!address.contains(&link));
    assert_eq!(Browser::new().sign_in(&core, &json!({"link": link})), 201);
    running.signal(rustix::process::Signal::INT);
    running.wait();
    assert!(!file.exists(), "the file is gone");
    core.stop().code(0);
}

#[test]
fn c002_the_core_serves_its_page_and_its_documents_to_everybody() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    for path in ["/", "/runs", "/runs/default/r-1", "/tools/wharf/count", "/system"] {
        let (status, page) = api.at(&format!("{}{path}", core.url()));
        let page = String::from_utf8_lossy(&page).into_owned();
        assert_eq!(status, 200, "{path}");
        assert!(page.starts_with("<!doctype html>"), "{page}");
    }
    let at = |path: &str| api.at(&format!("{}{path}", core.url()));
    assert_eq!(at("/assets/none-12345678.js").0, 404);
    assert_eq!(at("/favicon.ico").0 / 100 % 2, 0, "there or not, nobody is asked who they are");
    let (status, page) = at("/docs/errors/auth.invalid");
    assert_eq!(status, 200);
    assert!(String::from_utf8_lossy(&page).contains(">auth.invalid</h1>"));
    for path in ["/v1", "/v1/nothing", "/nothing", "/v1/runs", "/graphql"] {
        assert_eq!(at(path).0, 401, "{path}");
    }
    let log = api.get("/v1/system/logs");
    let lines = log["items"].as_array().expect("lines").clone();
    let ready = |line: &Value| {
        line["message"].as_str().is_some_and(|text| text.starts_with("the core is ready"))
    };
    assert!(lines.iter().any(ready), "{log}");
    let system = api.get("/v1/system");
    for size in ["database_bytes", "disk_free_bytes", "disk_total_bytes"] {
        assert!(system[size].as_u64().is_some_and(|bytes| bytes > 0), "{size}: {system}");
    }
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    assert!(!audit.contains("route:/\""), "a missing file is nobody's fault: {audit}");
    core.stop().code(0);
}

#[test]
fn c005_a_signed_in_socket_hears_of_changes_and_closes_when_its_browser_signs_out() {
    let home = TestHome::new();
    let core = home.up();
    let mut browser = Browser::new();
    assert_eq!(browser.sign_in(&core, &json!({"token": core.token()})), 201);
    let address = core.url().replacen("http", "ws", 1) + "/graphql";
    let mut request = address.into_client_request().expect("a request");
    let offer = format!("graphql-transport-ws, wharf.session.{}", browser.key);
    for (name, value) in
        [("sec-websocket-protocol", &offer), ("cookie", &browser.cookie), ("origin", &core.url())]
    {
        request.headers_mut().insert(name, value.parse().expect("a header"));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let opened = runtime.block_on(tokio_tungstenite::connect_async(request));
    let (mut socket, answer) = opened.expect("let in");
    assert_eq!(answer.headers()["sec-websocket-protocol"], "graphql-transport-ws");
    let query =
        "subscription { changes(kinds: [run]) { reset items { kind world id seq status } } }";
    for message in [
        json!({"type": "connection_init"}),
        json!({"type": "subscribe", "id": "1", "payload": {"query": query}}),
    ] {
        runtime.block_on(socket.send(Message::text(message.to_string()))).expect("sent");
    }
    let mut next = || loop {
        let next = runtime.block_on(async { tokio::time::timeout(LONG, socket.next()).await });
        match next.expect("waited in vain for a frame of the socket") {
            Some(Ok(Message::Text(text))) => {
                let message: Value = serde_json::from_str(&text).expect("JSON");
                if message["type"] == "next" {
                    return Ok(message["payload"]["data"]["changes"].clone());
                }
            }
            Some(Ok(Message::Close(frame))) => return Err(frame.map(|it| u16::from(it.code))),
            Some(Ok(_)) => {}
            _ => return Err(None),
        }
    };
    assert_eq!(next().expect("a frame"), json!({"reset": true, "items": []}));
    home.run(&["run", "wharf/count", "n=1"]).code(0);
    let mut status = Value::Null;
    while status != "succeeded" {
        let frame = next().expect("a frame");
        status = frame["items"].as_array().and_then(|it| it.last()).expect("one")["status"].clone();
    }
    assert_eq!(browser.send(&core, ("DELETE", "/v1/console/session"), None).0, 204);
    let code = loop {
        if let Err(code) = next() {
            break code;
        }
    };
    assert_eq!(code, Some(4401));
    core.stop().code(0);
}
