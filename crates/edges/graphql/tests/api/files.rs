//! Files of worlds: what runs read and write, where it is seen and what it is traced to.

use serde_json::{Value, json};

use crate::support::{OWNER, Stage, eventually};

/// What `{ … }` of an artifact the tests ask for.
const FILE: &str = "world path uri bytes b3 mediaType runId key direction at goneAt";

impl Stage {
    /// Puts a file into a world, by REST.
    async fn put(&self, world: &str, path: &str, content: &[u8]) {
        let line = format!("PUT /v1/worlds/{world}/files{path}");
        let put = self.send(OWNER, &line, "application/octet-stream", content).await;
        assert_eq!(put.status, 201, "{}", put.body);
    }

    /// Makes a run to its end, and gives what is asked for of it.
    async fn ran(&self, input: Value, wanted: &str) -> Value {
        let (world, id) = (input["world"].clone(), input["runId"].clone());
        let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
        self.ask_as(OWNER, make, json!({"input": input})).await.data();
        let look = format!(
            "query ($id: String!, $world: String) {{
                run(id: $id, world: $world) {{ endedAt {wanted} }} }}"
        );
        eventually(async || {
            let shown = self.ask_as(OWNER, &look, json!({"id": id, "world": world})).await;
            let mut run = shown.data()["run"].clone();
            let ended = run.as_object_mut()?.remove("endedAt")?;
            (!ended.is_null()).then_some(run)
        })
        .await
    }

    async fn paths(&self, arguments: &str) -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), Value::Null);
        loop {
            let query = format!(
                "query ($after: String) {{ artifacts(after: $after{arguments}) {{
                    edges {{ node {{ path }} }} pageInfo {{ hasNextPage endCursor }} }} }}"
            );
            let page = self.ask_as(OWNER, &query, json!({"after": after})).await;
            let page = &page.data()["artifacts"];
            let edges = page["edges"].as_array().expect("edges");
            seen.extend(edges.iter().filter_map(|it| it["node"]["path"].as_str().map(Into::into)));
            if page["pageInfo"]["hasNextPage"] != true {
                return seen;
            }
            after = page["pageInfo"]["endCursor"].clone();
        }
    }
}

#[tokio::test]
async fn t045_files_of_a_world_are_listed_on_pages_of_any_size() {
    let stage = Stage::start().await;
    for path in ["/b/2", "/a", "/b/1", "/c", "/b"] {
        stage.put("default", path, b"x").await;
    }
    stage.put("lab", "/b/elsewhere", b"x").await;
    for (arguments, expect) in [
        ("", &["/a", "/b", "/b/1", "/b/2", "/c"][..]),
        (", prefix: \"/b\"", &["/b", "/b/1", "/b/2"]),
        (", prefix: \"/b/\", world: \"default\"", &["/b/1", "/b/2"]),
        (", world: \"lab\"", &["/b/elsewhere"]),
        (", prefix: \"/z\"", &[]),
    ] {
        for first in [1, 2, 200] {
            let arguments = format!("{arguments}, first: {first}");
            assert_eq!(stage.paths(&arguments).await, expect, "{arguments}");
        }
    }
    let tools = stage.ask("{ tools(first: 1) { edges { cursor } } }").await;
    let foreign = json!({"after": tools.data()["tools"]["edges"][0]["cursor"]});
    let query = "query ($after: String) { artifacts(after: $after) { edges { cursor } } }";
    let refused = stage.ask_as(OWNER, query, foreign).await;
    assert_eq!(refused.code(), Some("request.cursor_invalid"), "a cursor of another list");
    let run = json!({"tool": "wharf/echo", "runId": "r", "inputs": {"a": "x"},
        "outputs": {"a.local": "/a"}});
    stage.ran(run, "status").await;
    assert_eq!(stage.paths(", prefix: \"/a\"").await, ["/a"]);
    assert_eq!(stage.paths(", local: true, first: 2").await.len(), 6, "and the one of the run");
    assert_eq!(stage.paths(", prefix: \"/@r/\"").await, ["/@r/a"], "it is asked for by name");
    let wrong = stage.ask("{ artifacts(prefix: \"b\") { edges { cursor } } }").await;
    assert_eq!(wrong.code(), Some("request.invalid"));
}

#[tokio::test]
async fn t045_a_file_is_followed_from_run_to_run() {
    let stage = Stage::start().await;
    stage.put("lab", "/in.txt", b"hello").await;
    let artifacts = format!("status outputs artifacts {{ {FILE} }}");
    let made = json!({"tool": "wharf/echo", "world": "lab", "runId": "maker",
        "inputs": {"said": "hello you", "file.world": "/in.txt"},
        "outputs": {"said.world": "/out/said.txt", "file.local": "/kept.txt"}});
    let made = stage.ran(made, &artifacts).await;
    assert_eq!(made["status"], "succeeded", "{made}");
    assert_eq!(made["outputs"]["said"], "world://lab/out/said.txt", "{made}");
    let written = made["artifacts"].as_array().expect("files");
    let written = written.iter().find(|it| it["key"] == "said").expect("the output").clone();
    let read = json!({"tool": "wharf/echo", "world": "lab", "runId": "reader",
        "inputs": {"again.world": "/out/said.txt"}});
    assert_eq!(stage.ran(read, "status").await["status"], "succeeded");

    let query = format!(
        "{{ artifacts(world: \"lab\", prefix: \"/out/\") {{ edges {{ node {{ {FILE} }} }} }} }}"
    );
    let listed = stage.ask(&query).await.data()["artifacts"]["edges"][0]["node"].clone();
    assert!(listed["at"].is_string() && listed["goneAt"].is_null(), "{listed}");
    assert_eq!((&listed["runId"], &listed["key"]), (&json!("maker"), &json!("said")));
    assert_eq!((&listed["direction"], &listed["uri"]), (&json!("out"), &written["uri"]));
    for same in ["world", "path", "bytes", "b3", "mediaType"] {
        assert_eq!(listed[same], written[same], "{same}");
    }

    let query = format!(
        "{{ trace(world: \"lab\", path: \"/out/said.txt\") {{ world path cut
            written {{ {FILE} }} read {{ runId key direction }}
            madeFrom {{ runId files {{ path runId }} }} wentInto {{ runId files {{ path }} }} }} }}"
    );
    let expect = json!({"world": "lab", "path": "/out/said.txt", "cut": false,
        "written": [listed],
        "read": [{"runId": "reader", "key": "again", "direction": "in"}],
        "madeFrom": [{"runId": "maker", "files": [{"path": "/in.txt", "runId": "maker"}]}],
        "wentInto": [{"runId": "reader", "files": []}]});
    assert_eq!(stage.ask(&query).await.data()["trace"], expect);
    let addresses = stage.objects.addresses();
    assert!(addresses.iter().all(|address| !made.to_string().contains(address)));
}

#[tokio::test]
async fn t045_usage_counts_files_and_those_of_runs_apart() {
    let stage = Stage::start().await;
    let usage = "{ world(id: \"lab\") { usage { files bytes localFiles localBytes } } }".to_owned();
    let used = async || stage.ask(&usage).await.data()["world"]["usage"].clone();
    let none = json!({"files": "0", "bytes": "0", "localFiles": "0", "localBytes": "0"});
    assert_eq!(used().await, none);
    stage.put("default", "/elsewhere", b"not counted").await;
    stage.put("lab", "/in.txt", b"hello").await;
    let one = json!({"files": "1", "bytes": "5", "localFiles": "0", "localBytes": "0"});
    assert_eq!(used().await, one);
    let run = json!({"tool": "wharf/echo", "world": "lab", "runId": "keeper",
        "inputs": {"said": "hello"}, "outputs": {"said.local": "/said.txt"}});
    let run = stage.ran(run, "artifacts { bytes direction }").await;
    let bytes: u64 = run["artifacts"][0]["bytes"].as_str().expect("text").parse().expect("bytes");
    let both = json!({"files": "2", "bytes": (5 + bytes).to_string(), "localFiles": "1",
        "localBytes": bytes.to_string()});
    assert_eq!(used().await, both);
}

#[tokio::test]
async fn t045_a_receipt_is_that_of_rest_with_amounts_as_text() {
    let stage = Stage::start().await;
    let limits = "mutation { setWorld(id: \"lab\", settings: {defaultHoldMicro: 60}) { world } }";
    stage.ask(limits).await.data();
    stage.put("lab", "/in.txt", b"hello").await;
    let wanted = "receipt { costMicro wallMs cpuMs bytesIn bytesOut overHold }";
    let echo = json!({"tool": "wharf/echo", "inputs": {"said": "you", "file.world": "/in.txt"},
        "outputs": {"said.world": "/said.txt"}});
    let sleep = |cost: u64| json!({"tool": "wharf/sleep", "inputs": {"ms": 1, "cost_micro": cost}});
    for (number, (mut input, over)) in
        [(echo, false), (sleep(60), false), (sleep(61), true)].into_iter().enumerate()
    {
        let id = format!("r{number}");
        (input["world"], input["runId"]) = (json!("lab"), json!(id));
        let receipt = stage.ran(input, wanted).await["receipt"].clone();
        let rest = stage.call(OWNER, "GET", &format!("/v1/runs/{id}?world=lab"), None).await;
        let rest = &rest.body["receipt"];
        for (ours, theirs) in [
            ("costMicro", "cost_micro"),
            ("wallMs", "wall_ms"),
            ("bytesIn", "bytes_in"),
            ("bytesOut", "bytes_out"),
        ] {
            assert_eq!(receipt[ours], rest[theirs].to_string(), "{ours} of {rest}");
        }
        assert_eq!((&receipt["cpuMs"], rest.get("cpu_ms")), (&Value::Null, None));
        assert_eq!((&receipt["overHold"], &rest["over_hold"]), (&json!(over), &json!(over)));
        if number == 0 {
            assert_ne!(receipt["bytesOut"], "0", "the file counts");
        }
    }
    let id = stage.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let going = stage.ask(&format!("{{ run(id: \"{id}\") {{ receipt {{ costMicro }} }} }}")).await;
    assert_eq!(going.data()["run"], json!({"receipt": null}), "it is not over");
}
