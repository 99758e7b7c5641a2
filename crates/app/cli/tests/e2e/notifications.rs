//! `docs/triggers.md`, command by command, and receivers that are slow, down or hostile.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents::has_python;
use crate::page;
use crate::support::{Api, TestHome, wait_for};

#[test]
fn f036_the_page_about_notifications_tells_the_truth() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "triggers.md");
    assert!(ran >= 6 && checked >= 10, "{ran} blocks were run, {checked} lines were looked for");
}

/// A receiver that keeps what it is sent and answers with what it is told to.
struct Receiver {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<String>>,
}

impl Receiver {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(answer.to_owned()));
        let (kept, given) = (Arc::clone(&seen), Arc::clone(&answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, given) = (Arc::clone(&kept), Arc::clone(&given));
                std::thread::spawn(move || serve(stream, &kept, &given));
            }
        });
        Self { url, seen, answer }
    }

    fn answers(&self, answer: &str) {
        answer.clone_into(&mut self.answer.lock().expect("no panic"));
    }

    /// Heads and bodies of all requests so far.
    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &Mutex<String>) {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let Ok(read @ 1..) = stream.read(&mut piece) else { return };
        text.extend_from_slice(&piece[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
        });
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        seen.lock().expect("no panic").push(whole);
        let answer = answer.lock().expect("no panic").clone();
        // Whoever asked may have left.
        let _ = stream.write_all(answer.as_bytes());
        return;
    }
}

const GOOD: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
const BAD: &str = "HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn add(api: &Api, name: &str, url: &str, on: &[&str]) -> Value {
    let body = json!({"name": name, "url": url, "on": on, "allow_private": true});
    let (status, made) = api.ask("POST", "/v1/receivers", &body);
    assert_eq!(status, 201, "{made}");
    made
}

fn id_of(request: &str) -> String {
    let line = request.lines().find_map(|line| line.strip_prefix("webhook-id: "));
    line.expect("an id").to_owned()
}

fn body_of(request: &str) -> Value {
    let body = request.split_once("\r\n\r\n").expect("a body").1;
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn f036_what_is_owed_outlives_kill_9_and_is_told_under_one_id() {
    let home = TestHome::new();
    let core = home.up();
    let receiver = Receiver::start(BAD);
    add(&Api::of(&core), "desk", &receiver.url, &["run"]);
    home.run(&["run", "wharf/echo", "text=c4nary"]).code(0);
    wait_for("the first try", || receiver.seen().first().cloned());
    core.kill();
    receiver.answers(GOOD);
    let core = home.up();
    let api = Api::of(&core);
    let taken = wait_for("it to be taken", || {
        let told = api.get("/v1/receivers/desk/history")["items"].clone();
        told.get(0).cloned()
    });
    assert_eq!((&taken["state"], &taken["status"]), (&json!("sent"), &json!(204)), "{taken}");
    let seen = receiver.seen();
    assert!(seen.len() >= 2);
    assert!(seen.iter().all(|it| id_of(it) == id_of(&seen[0])), "{seen:#?}");
    let body = body_of(&seen[0]);
    assert_eq!((&body["event"], &body["status"]), (&json!("run.ended"), &json!("succeeded")));
    assert!(!seen.concat().contains("c4nary"), "no input leaves by it");
}

#[test]
fn f036_addresses_are_kept_as_secrets_and_shown_nowhere() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let receiver = Receiver::start(GOOD);
    let url = format!("{}c4nary", receiver.url);
    let made = add(&api, "desk", &url, &["ask"]);
    assert!(made["signing_key"].as_str().expect("a key").starts_with("whsec_"), "{made}");
    let shown = api.get("/v1/receivers/desk");
    assert!(shown["signing_key"].is_null() && !made.to_string().contains("c4nary"), "{shown}");
    let audit = home.run(&["audit", "--json"]).code(0);
    assert!(!audit.stdout.contains("c4nary"));
    assert!(!home.run(&["notify", "show", "desk", "--json"]).code(0).stdout.contains("c4nary"));
    let (status, gone) = api.ask("DELETE", "/v1/receivers/desk", &Value::Null);
    assert_eq!(status, 204, "{gone}");
    let secrets = home.run(&["secret", "list", "--json"]).code(0);
    assert!(!secrets.stdout.contains("notify.desk"), "{}", secrets.stdout);
}

#[test]
fn f036_of_receivers_made_at_once_under_one_name_one_is_there_with_its_own_address() {
    let home = TestHome::new();
    let core = home.up();
    let receivers: Vec<Receiver> = (0..6).map(|_| Receiver::start(GOOD)).collect();
    let made: Vec<u16> = std::thread::scope(|scope| {
        let make = |receiver: &Receiver| {
            let body = json!({"name": "desk", "url": receiver.url, "on": ["ask"],
                "allow_private": true});
            Api::of(&core).ask("POST", "/v1/receivers", &body).0
        };
        let makers: Vec<_> = receivers.iter().map(|it| scope.spawn(move || make(it))).collect();
        makers.into_iter().map(|maker| maker.join().expect("no panic")).collect()
    });
    let winners: Vec<usize> = (0..made.len()).filter(|at| made[*at] == 201).collect();
    assert_eq!(winners.len(), 1, "{made:?}");
    let (status, tested) = Api::of(&core).ask("POST", "/v1/receivers/desk/test", &json!({}));
    assert!((200..300).contains(&status), "{status} {tested}");
    wait_for("whoever was made to be told", || receivers[winners[0]].seen().first().cloned());
}

#[test]
fn f036_a_receiver_whose_key_cannot_be_kept_leaves_no_address_behind() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    // Where the key is to be put there is a folder, so that only the address can be written down.
    let in_the_way = home.path().join("secrets/notify.desk.key.0.secret");
    std::fs::create_dir(&in_the_way).expect("makes a folder");
    let body = json!({"name": "desk", "url": "http://127.0.0.1:1/", "on": ["ask"],
        "allow_private": true});
    let (status, refused) = api.ask("POST", "/v1/receivers", &body);
    assert!(status >= 500, "{status} {refused}");
    std::fs::remove_dir(&in_the_way).expect("it is empty");
    let secrets = home.run(&["secret", "list", "--json"]).code(0);
    assert!(!secrets.stdout.contains("notify.desk"), "{}", secrets.stdout);
    add(&api, "desk", "http://127.0.0.1:1/", &["ask"]);
}

#[test]
fn f037_a_receiver_that_is_slow_or_down_delays_nobody() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    // One takes connections and says nothing, one is not there, one sends elsewhere.
    let silent = TcpListener::bind("127.0.0.1:0").expect("binds");
    let silent = format!("http://{}/", silent.local_addr().expect("bound"));
    let elsewhere = Receiver::start(GOOD);
    let redirect =
        format!("HTTP/1.1 307 No\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url);
    let sends_on = Receiver::start(&redirect);
    let good = Receiver::start(GOOD);
    add(&api, "silent", &silent, &["run"]);
    add(&api, "down", "http://127.0.0.1:1/", &["run"]);
    add(&api, "sends-on", &sends_on.url, &["run"]);
    add(&api, "good", &good.url, &["run"]);
    let begun = Instant::now();
    for _ in 0..20 {
        home.run(&["run", "wharf/echo", "text=x"]).code(0);
    }
    wait_for("the good one to have all", || (good.seen().len() >= 20).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(60));
    wait_for("a redirect", || sends_on.seen().first().cloned());
    assert!(elsewhere.seen().is_empty(), "redirects are not followed");
    for name in ["silent", "down", "sends-on"] {
        assert_eq!(api.get(&format!("/v1/receivers/{name}"))["sent"], 0, "{name}");
    }
    let mut ids: Vec<_> = good.seen().iter().map(|it| id_of(it)).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

#[test]
fn f037_an_address_inside_is_refused_unless_it_is_allowed() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    for url in
        ["https://127.0.0.1/c4nary", "http://h.example/c4nary", "https://169.254.169.254/c4nary"]
    {
        let body = json!({"name": "in", "url": url, "on": ["ask"]});
        let (status, refused) = api.ask("POST", "/v1/receivers", &body);
        assert_eq!((status, &refused["error"]["code"]), (422, &json!("receiver.address")), "{url}");
        assert!(!refused.to_string().contains("c4nary"), "{refused}");
    }
    // A name that leads inside is known only when it is resolved.
    let inside = Receiver::start(GOOD);
    let port = inside.url.rsplit(':').next().expect("a port").trim_end_matches('/').to_owned();
    let url = format!("https://localhost:{port}/");
    let (status, _) =
        api.ask("POST", "/v1/receivers", &json!({"name": "in", "url": url, "on": ["run"]}));
    assert_eq!(status, 201);
    home.run(&["notify", "test", "in"]).code(0);
    std::thread::sleep(Duration::from_millis(500));
    assert!(inside.seen().is_empty());
}

#[test]
fn f038_receivers_are_for_administrators_of_what_they_are_told_of() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let token = |arguments: &[&str]| {
        home.run(&[&["token", "create"], arguments].concat()).code(0).stdout.trim().to_owned()
    };
    let runner = Api::with_token(&core, &token(&["--verb", "run,read"]));
    let body = json!({"name": "a", "url": "https://hooks.example/x", "on": ["ask"]});
    assert_eq!(runner.ask("POST", "/v1/receivers", &body).0, 403);
    let lab = Api::with_token(&core, &token(&["--verb", "admin,read", "--world", "lab"]));
    assert_eq!(lab.ask("POST", "/v1/receivers", &body).0, 403, "not of all worlds");
    let mut of_lab = body.clone();
    of_lab["world"] = "lab".into();
    assert_eq!(lab.ask("POST", "/v1/receivers", &of_lab).0, 201);
    let owner = Api::of(&core);
    let mut all = body;
    all["name"] = "b".into();
    assert_eq!(owner.ask("POST", "/v1/receivers", &all).0, 201);
    let seen = lab.get("/v1/receivers");
    let names: Vec<_> =
        seen["items"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(lab.ask("POST", "/v1/receivers/b/test", &json!({})).0, 404);
    let query = json!({"query": "{ receivers { edges { node { name on state sent } } } }"});
    let (status, answer) = owner.ask("POST", "/graphql", &query);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"]["receivers"]["edges"][1]["node"]["name"], "b", "{answer}");
}

#[test]
fn f034_a_call_of_a_hook_is_refused_before_it_is_read() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let made = |name: &str, proof: &str| {
        let body = json!({"name": name, "tool": "wharf/echo", "proof": proof, "body": "text"});
        let (status, made) = api.ask("POST", "/v1/triggers", &body);
        assert_eq!(status, 201, "{made}");
        made
    };
    let trigger = made("mine", "token");
    let url = format!(
        "{}{}",
        core.url().trim_end_matches('/'),
        trigger["path"].as_str().expect("a path")
    );
    // No token of the core is needed, and without the trigger's own nothing is started.
    let (status, refused) = api.post_at(&url, &json!("hello"));
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("auth.invalid")), "{refused}");
    let client = crate::support::client(&core);
    let send = |secret: &str, delivery: &str, body: Vec<u8>| {
        let request = client.post(&url).header("authorization", format!("Bearer {secret}"));
        let request = request.header("webhook-id", delivery.to_owned()).body(body);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            let status = answer.status().as_u16();
            (status, answer.json::<Value>().await.unwrap_or_default())
        })
    };
    let secret = trigger["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(send("wrong", "d", b"\"x\"".to_vec()).0, 401);
    assert_eq!(send(&secret, "d", vec![b' '; 1024 * 1024 + 1]).0, 413);
    let (status, first) = send(&secret, "d", b"\"hello\"".to_vec());
    assert_eq!(status, 202, "{first}");
    let run = first["run_id"].as_str().expect("a run").to_owned();
    assert!(run.starts_with("hk-"), "{run}");
    // The same delivery is the same run, whatever it says now.
    assert_eq!(send(&secret, "d", b"\"hello\"".to_vec()), (202, first.clone()));
    assert_eq!(send(&secret, "d", b"\"other\"".to_vec()), (202, first));
    let (status, other) = send(&secret, "e", b"\"other\"".to_vec());
    assert!(status == 202 && other["run_id"] != run.as_str(), "{other}");
    assert_eq!(api.end_of("default", &run)["outputs"]["text"], "hello");
    let told = api.get("/v1/triggers/mine/history")["items"].clone();
    let abouts: Vec<_> = told.as_array().expect("a list").iter().map(|it| &it["about"]).collect();
    assert_eq!(abouts, ["e", "d"], "each delivery once: {told}");
    assert_eq!((&told[1]["run_id"], &told[1]["state"]), (&json!(run), &json!("started")));
    let (status, dry) =
        api.ask("POST", "/v1/triggers/mine/test", &json!({"body": "dry", "dry_run": true}));
    assert_eq!((status, dry), (200, json!({"inputs": {"text": "dry"}})));
    let (status, tested) = api.ask("POST", "/v1/triggers/mine/test", &json!({"body": "wet"}));
    assert_eq!((status, &tested["inputs"]["text"]), (202, &json!("wet")), "{tested}");
    let metrics = String::from_utf8(api.bytes("/metrics").1).expect("text");
    for result in ["started", "repeated", "unproved"] {
        let line = format!("wharf_trigger_calls_total{{result=\"{result}\"}}");
        assert!(metrics.contains(&line), "{metrics}");
    }
    assert_eq!(api.ask("POST", "/v1/triggers/mine/pause", &Value::Null).0, 200);
    let (status, paused) = send(&secret, "f", b"\"x\"".to_vec());
    assert_eq!((status, &paused["error"]["code"]), (409, &json!("trigger.paused")));
    assert_eq!(api.ask("DELETE", "/v1/triggers/mine", &Value::Null).0, 204);
    assert_eq!(send(&secret, "g", b"\"x\"".to_vec()).0, 404);
    let secrets = home.run(&["secret", "list", "--json"]).code(0);
    assert!(!secrets.stdout.contains("trigger.mine"), "{}", secrets.stdout);
}

#[test]
fn f038_triggers_and_receivers_are_made_and_removed_over_graphql() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let ask = |query: &str| {
        let (status, answer) = api.ask("POST", "/graphql", &json!({"query": query}));
        assert_eq!(status, 200, "{answer}");
        assert!(answer["errors"].is_null(), "{answer}");
        answer["data"].clone()
    };
    let made = ask(
        "mutation { createTrigger(input: {name: \"mine\", tool: \"wharf/echo\", proof: \
                    \"token\", inputs: {text: \"${body.a}\"}}) { secret trigger { name path state } } }",
    );
    assert!(made["createTrigger"]["secret"].as_str().is_some_and(|it| it.len() > 20), "{made}");
    let tested = ask("mutation { testTrigger(name: \"mine\", call: {body: {a: \"b\"}}) \
                      { inputs runId } }")["testTrigger"]
        .clone();
    assert_eq!(tested["inputs"]["text"], "b");
    let run = tested["runId"].as_str().expect("a run");
    let told = ask("{ triggerHistory(name: \"mine\") { runId state } }")["triggerHistory"].clone();
    assert_eq!(told, json!([{"runId": run, "state": "started"}]));
    assert_eq!(ask("mutation { removeTrigger(name: \"mine\") }")["removeTrigger"], "mine");
    let made = ask("mutation { createReceiver(input: {name: \"desk\", url: \
                    \"https://hooks.example/c4nary\", on: [\"run\"], when: \"status == 'failed'\", \
                    include: [\"outputs\"]}) { signingKey receiver { name when include } } }");
    assert!(!made.to_string().contains("c4nary"), "{made}");
    let receiver = &made["createReceiver"]["receiver"];
    assert_eq!(
        (&receiver["when"], &receiver["include"][0]),
        (&json!("status == 'failed'"), &json!("outputs"))
    );
    assert_eq!(ask("mutation { removeReceiver(name: \"desk\") }")["removeReceiver"], "desk");
    let secrets = home.run(&["secret", "list", "--json"]).code(0);
    assert_eq!(secrets.json(), json!([]), "nothing stays behind");
}
