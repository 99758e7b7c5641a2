//! A core whose files lie in a real S3 server, also while that is away.

use std::time::Instant;

use serde_json::{Value, json};
use wharf_testkit::seaweed::{BUCKET, KEY_ID, SECRET, Seaweed};

use super::{AGENT, TOOL, files, signed, start_agent};
use crate::agents::has_python;
use crate::support::{Api, Core, LONG, TestHome, client};

/// A home that keeps its files in the server, and has these settings besides.
pub(crate) fn home_on(server: &Seaweed, settings: &str) -> TestHome {
    let home = TestHome::new();
    home.configure(&format!(
        "{settings}[artifacts]\nkind = \"s3\"\nendpoint = \"{}\"\nbucket = \"{BUCKET}\"\n\
         key_id = \"{KEY_ID}\"\nsecret_file = \"s3.secret\"\n",
        server.endpoint
    ));
    std::fs::write(home.path().join("s3.secret"), SECRET).expect("written");
    home
}

/// A run of the agent with a file in and two out.
fn request(id: &str, world: &str) -> Value {
    json!({
        "tool": TOOL, "world": world, "run_id": id,
        "inputs": {"then": "write", "text": format!("{id}: "), "file.world": "/in.txt"},
        "outputs": {"a.world": format!("/{id}.txt"), "b.local": "/b.txt"},
    })
}

/// Runs the agent and looks at everything that should be there then.
pub(crate) fn run_and_check(api: &Api, id: &str, world: &str) {
    api.start(&request(id, world));
    let run = api.end_of(world, id);
    assert_eq!(run["status"], "succeeded", "{run}");
    let (path, text) = (format!("/{id}.txt"), format!("{id}: from a file"));
    assert_eq!(run["outputs"]["a"], format!("world://{world}{path}"));
    assert_eq!(run["outputs"]["b"], format!("world://{world}/@{id}/b.txt"));
    for path in [&path, &format!("/@{id}/b.txt")] {
        let (status, body) = api.bytes(&format!("/v1/worlds/{world}/files{path}"));
        assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (200, text.as_str()));
    }
    let trace = api.get(&format!("/v1/worlds/{world}/trace?path={path}"));
    let written = &trace["written"][0];
    assert_eq!((&written["run_id"], &written["key"]), (&json!(id), &json!("a")), "{trace}");
    assert_eq!(written["b3"], blake3::hash(text.as_bytes()).to_hex().as_str(), "{trace}");
    assert_eq!(trace["made_from"][0]["files"][0]["path"], "/in.txt", "{trace}");
    let events = api.bytes(&format!("/v1/runs/{id}/events?world={world}")).1;
    let told = format!("{run}{trace}{}", String::from_utf8_lossy(&events));
    assert!(told.contains("finished") && !told.contains("X-Amz-"), "{told}");
    let read = api.get(&format!("/v1/worlds/{world}/trace?path=/in.txt"));
    assert!(read["went_into"].to_string().contains(&path), "{read}");
}

/// What becomes of runs that are started at the same moment, and of a file that is put then.
fn while_away(core: &Core) -> Vec<(u16, Value)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (client, url) = (client(core), core.url());
    let run = |body: &Value| client.post(format!("{url}/v1/runs?wait=1m")).json(body);
    let mut out = request("away-out", "default");
    out["inputs"] = json!({"then": "write", "text": "x"});
    let asks = [
        run(&json!({"tool": "wharf/echo", "inputs": {"a": 1}})),
        run(&request("away-in", "default")),
        run(&out),
        client.put(format!("{url}/v1/worlds/default/files/put.txt")).body("x"),
        client.get(format!("{url}/v1/worlds/default/files/in.txt")),
    ];
    let asks = asks.map(|ask| async {
        let answer = ask.send().await.expect("the core answers");
        let status = answer.status().as_u16();
        (status, answer.json().await.expect("JSON"))
    });
    runtime.expect("a runtime").block_on(futures::future::join_all(asks))
}

#[test]
fn t032_t035_t047_runs_with_files_in_a_real_s3_and_while_it_is_away() {
    if !has_python() {
        return;
    }
    let mut server = Seaweed::start();
    let home = home_on(&server, "");
    let core = home.up();
    let api = Api::of(&core);
    home.run(&["worlds", "create", "staged", "--publish", "staged"]).code(0);
    for world in ["default", "staged"] {
        home.run_with(b"from a file", &["worlds", "put", world, "/in.txt", "-"]).code(0);
        assert_eq!(
            home.run(&["worlds", "get", world, "/in.txt", "-"]).code(0).stdout,
            "from a file"
        );
    }
    // Through files of its own, then by addresses.
    for sandbox in ["standard", "basic"] {
        let folder = start_agent(&home, sandbox);
        run_and_check(&api, &format!("{sandbox}-direct"), "default");
        run_and_check(&api, &format!("{sandbox}-staged"), "staged");
        let mut fails = request(&format!("{sandbox}-fails"), "staged");
        fails["inputs"]["then"] = json!("fail");
        api.start(&fails);
        assert_eq!(api.end_of("staged", &format!("{sandbox}-fails"))["status"], "failed");
        assert_eq!(files(&api, "staged", &format!("/{sandbox}-fails")), [""; 0]);
        if sandbox == "basic" {
            away_and_back(&mut server, &core, &api);
        }
        home.run(&["agents", "stop", AGENT]).code(0);
        home.run(&["agents", "remove", AGENT]).code(0);
        drop(folder);
    }
    home.run(&["worlds", "gc", "staged"]).code(0);
    assert_eq!(signed(&home), [""; 0], "addresses are written nowhere while the core runs");
    core.stop().code(0);
    assert_eq!(signed(&home), [""; 0], "nor when it has stopped");
    home.run(&["audit", "verify"]).code(0);
}

fn away_and_back(server: &mut Seaweed, core: &Core, api: &Api) {
    server.stop();
    let begun = Instant::now();
    let answers = while_away(core);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    let (status, plain) = &answers[0];
    assert_eq!((*status, &plain["status"]), (200, &json!("succeeded")), "{plain}");
    for (status, answer) in &answers[1..] {
        assert_eq!(answer["error"]["code"], "storage.unavailable", "{status}: {answer}");
        assert_eq!(answer["error"]["retryable"], true, "{answer}");
    }
    server.start_again();
    run_and_check(api, "back-direct", "default");
    run_and_check(api, "back-staged", "staged");
}

/// A backup lists what lies in the S3, and a restored home finds it there again.
#[test]
fn a_restored_home_reads_its_files_from_the_s3() {
    let server = Seaweed::start();
    let home = home_on(&server, "");
    let core = home.up();
    home.run_with(b"from a file", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let shelf = tempfile::tempdir().expect("a folder");
    let dir = shelf.path().join("b").display().to_string();
    let taken = home.run(&["backup", &dir, "--json"]).code(0).json();
    assert_eq!((&taken["objects"], &taken["by_reference"]), (&json!(1), &json!(true)), "{taken}");
    let other = TestHome::new();
    other.run(&["restore", &dir]).code(0);
    let files = |home: &TestHome| {
        let told = home.run(&["doctor", "--json"]).json();
        let line = told.as_array().expect("a list").iter().find(|line| line["name"] == "files");
        line.expect("looked at").clone()
    };
    assert_eq!(files(&other)["verdict"], "ok");
    let copy = other.up();
    let read = Api::of(&copy).bytes("/v1/worlds/default/files/in.txt");
    assert_eq!(read, (200, b"from a file".to_vec()));
    copy.stop().code(0);
    // What the original removes is missing in the copy, and the doctor tells.
    home.run(&["worlds", "rm", "default", "/in.txt", "--yes"]).code(0);
    let lost = files(&other);
    assert_eq!(lost["verdict"], "fail", "{lost}");
    core.stop().code(0);
}
