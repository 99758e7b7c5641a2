//! What the console shows of runs: filters, counts, charts, trees, canceling many, exports, and
//! running again.

use serde_json::{Value, json};
use wharf_domain::Caller;
use wharf_engine::NewRun;
use wharf_vocab::{RunKey, ToolId, WorldId};

use crate::support::{Edge, eventually};

impl Edge {
    async fn ids(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let items = answer.json()["items"].as_array().expect("items").clone();
        items.iter().map(|item| item["run_id"].as_str().expect("an id").to_owned()).collect()
    }

    async fn ended(&self, request: Value) -> Value {
        let answer = self.post("/v1/runs?wait=20s", request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    async fn child(&self, parent: &str, id: &str) {
        let key = |run: &str| RunKey {
            world: WorldId::new("default").expect("valid"),
            run: run.parse().expect("an id"),
        };
        let tool = ToolId::new("wharf/sleep").expect("valid");
        let inputs = json!({"ms": 60_000}).as_object().expect("an object").clone();
        let new = NewRun {
            parent: Some(key(parent)),
            run_id: Some(id.parse().expect("an id")),
            ..NewRun::new(tool, inputs, key(parent).world)
        };
        self.handle.runs().create(&Caller::owner(), new).await.expect("accepted");
    }

    async fn world(&self, world: &str) {
        let made = self.post("/v1/worlds", json!({"world": world})).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
}

/// A run that fails, since it takes too long.
fn too_long(id: &str) -> Value {
    json!({"tool": "wharf/sleep", "run_id": id, "inputs": {"ms": 60_000}, "timeout_ms": 20})
}

#[tokio::test]
async fn c011_runs_are_narrowed_by_caller_parent_correlation_id_and_several_statuses() {
    let edge = Edge::start().await;
    let token = edge.token(json!({"verbs": ["run", "read"]})).await;
    let grant = token["token_id"].as_str().expect("an id").to_owned();
    let body = json!({"tool": "wharf/echo", "run_id": "mine", "inputs": {"text": "x"}});
    let call = edge.call_as(token["token"].as_str().expect("text"), "POST", "/v1/runs?wait=20s");
    assert_eq!(call.json(&body).send().await.status, 200);
    edge.ended(json!({"tool": "wharf/echo", "run_id": "abc-1", "correlation_id": "batch"})).await;
    edge.ended(too_long("abc-2")).await;
    let nap = json!({"tool": "wharf/sleep", "run_id": "nap", "inputs": {"ms": 60_000}});
    assert_eq!(edge.post("/v1/runs", nap).await.status, 202);
    edge.until("nap", "running").await;
    edge.child("nap", "child").await;
    assert_eq!(edge.ids(&format!("caller={grant}")).await, ["mine"]);
    assert_eq!(edge.ids("parent=default/nap").await, ["child"]);
    assert_eq!(edge.ids("correlation_id=batch").await, ["abc-1"]);
    assert_eq!(edge.ids("id_prefix=abc").await, ["abc-2", "abc-1"]);
    assert_eq!(edge.ids("id_prefix=abc&status=failed").await, ["abc-2"]);
    assert_eq!(edge.ids("status=failed,running").await, ["child", "nap", "abc-2"]);
    assert_eq!(edge.ids("over_hold=true").await, [""; 0]);
    assert_eq!(edge.ids("error=tool.*").await, ["abc-2"]);
    assert_eq!(edge.ids("error=tool.timeout&error_text=LONGER").await, ["abc-2"]);
    assert_eq!(edge.ids("text=LONGER").await, ["abc-2"]);
    assert_eq!(edge.ids("text=tool.TIME").await, ["abc-2"]);
    assert_eq!(edge.ids("text=abc").await, ["abc-2", "abc-1"]);
    assert_eq!(edge.ids("text=wharf/ECHO&correlation_id=batch").await, ["abc-1"]);
    assert_eq!(edge.ids("error=tool").await, [""; 0]);
    assert_eq!(edge.ids("error_text=nobody%20says%20so").await, [""; 0]);
    for bad in ["status=failed,gone", "parent=nap", "caller=%20", "over_hold=1"] {
        edge.get(&format!("/v1/runs?{bad}")).await.refused(400, "request.invalid");
    }
    let shown = edge.get("/v1/runs?caller=owner&limit=1").await.json();
    assert_eq!(shown["items"][0]["caller"], "owner", "{shown}");
    let count = edge.get("/v1/runs/count?status=failed,running").await.json();
    assert_eq!(count, json!({"count": 3, "exact": true}));
}

#[tokio::test]
async fn c011_a_narrow_token_counts_and_exports_only_what_it_may_see() {
    let edge = Edge::start().await;
    edge.world("lab").await;
    for (n, world) in ["default", "lab", "lab"].into_iter().enumerate() {
        let run = json!({"tool": "wharf/echo", "world": world, "run_id": format!("r{n}")});
        edge.ended(run).await;
    }
    edge.ended(json!({"tool": "wharf/count", "world": "lab", "inputs": {"n": 1}})).await;
    let narrow = json!({"verbs": ["read"], "worlds": ["lab"], "tools": ["wharf/echo"]});
    let token = edge.token(narrow).await["token"].as_str().expect("text").to_owned();
    let get = async |path: &str| edge.call_as(&token, "GET", path).send().await;
    assert_eq!(get("/v1/runs/count").await.json()["count"], 2);
    get("/v1/runs/count?world=default").await.refused(403, "permission.denied");
    let stats = get("/v1/stats/runs?since=1h&step=1m&by=tool").await.json();
    let items = stats["items"].as_array().expect("items");
    assert!(items.iter().all(|item| item["key"] == "wharf/echo"), "{stats}");
    assert_eq!(items.iter().map(|item| item["runs"].as_u64().unwrap_or(0)).sum::<u64>(), 2);
    let lines = get("/v1/runs/export").await;
    let text = String::from_utf8(lines.body.clone()).expect("text");
    assert_eq!(text.lines().count(), 2, "{text}");
    for line in text.lines() {
        let run: Value = serde_json::from_str(line).expect("a run");
        assert_eq!((&run["world"], &run["tool"]), (&json!("lab"), &json!("wharf/echo")));
    }
    get("/v1/runs/default-run/tree?world=default").await.refused(403, "permission.denied");
    get("/v1/runs/r0/lineage?world=default").await.refused(403, "permission.denied");
    let until = json!({"until": "2999-01-01T00:00:00Z", "dry": true});
    let cancel = edge.call_as(&token, "POST", "/v1/runs/cancel").json(&until).send().await;
    cancel.refused(403, "permission.denied");
}

#[tokio::test]
async fn c010_runs_are_counted_by_time_and_key() {
    let edge = Edge::start().await;
    edge.ended(json!({"tool": "wharf/echo"})).await;
    edge.ended(json!({"tool": "wharf/echo", "durability": "memory"})).await;
    edge.ended(too_long("late")).await;
    let sum = async |by: &str| {
        let stats = edge.get(&format!("/v1/stats/runs?since=1h&step=1h&by={by}")).await.json();
        let mut sums = std::collections::BTreeMap::<String, u64>::new();
        for item in stats["items"].as_array().expect("items") {
            let key = item["key"].as_str().expect("a key").to_owned();
            *sums.entry(key).or_default() += item["runs"].as_u64().expect("a number");
        }
        sums.into_iter().collect::<Vec<_>>()
    };
    let named = |all: &[(&str, u64)]| {
        all.iter().map(|(key, runs)| ((*key).to_owned(), *runs)).collect::<Vec<_>>()
    };
    assert_eq!(sum("status").await, named(&[("failed", 1), ("succeeded", 2)]));
    assert_eq!(sum("tool").await, named(&[("wharf/echo", 2), ("wharf/sleep", 1)]));
    assert_eq!(sum("world").await, named(&[("default", 3)]));
    for bad in ["step=1ms", "since=9999d&step=1s", "by=color", "since=1h&until=2h"] {
        edge.get(&format!("/v1/stats/runs?{bad}")).await.refused(400, "request.invalid");
    }
}

#[tokio::test]
async fn c011_many_runs_are_canceled_up_to_a_moment_after_a_dry_count() {
    let edge = Edge::start().await;
    for n in 0..3 {
        let nap = json!({"tool": "wharf/sleep", "run_id": format!("n{n}"),
            "inputs": {"ms": 60_000}, "correlation_id": "batch"});
        assert_eq!(edge.post("/v1/runs", nap).await.status, 202);
    }
    let cut = edge.get("/v1/runs/n2").await.json()["created_at"].clone();
    edge.post("/v1/runs/cancel", json!({"correlation_id": "batch"}))
        .await
        .refused(400, "request.invalid");
    let over = json!({"until": cut, "status": ["failed"]});
    edge.post("/v1/runs/cancel", over).await.refused(400, "request.invalid");
    let late = "2999-01-01T00:00:00.000Z";
    let dry = json!({"correlation_id": "batch", "until": late, "dry": true});
    let counted = edge.post("/v1/runs/cancel", dry).await.json();
    assert_eq!(
        counted,
        json!({"dry": true, "until": late, "matched": 3, "canceled": 0,
        "refused": 0, "more": false})
    );
    let all = json!({"correlation_id": "batch", "until": late, "reason": "enough"});
    let done = edge.post("/v1/runs/cancel", all).await.json();
    assert_eq!((&done["matched"], &done["canceled"]), (&json!(3), &json!(3)), "{done}");
    for n in 0..3 {
        edge.until(&format!("n{n}"), "canceled").await;
    }
}

#[tokio::test]
async fn runs_that_are_over_are_removed_up_to_a_moment_after_a_dry_count() {
    let edge = Edge::start().await;
    for n in 0..3 {
        let sleep = json!({"tool": "wharf/sleep", "run_id": format!("n{n}"),
            "inputs": {"ms": 0, "cost_micro": 7}, "correlation_id": "batch"});
        edge.ended(sleep).await;
    }
    edge.ended(too_long("late")).await;
    let open = edge.begin("wharf/ask", json!({"question": "Which?"})).await;
    let spent = edge.get("/v1/costs").await.json();
    let purge = async |body: Value| edge.post("/v1/runs/purge", body).await;
    purge(json!({"tool": "wharf/sleep"})).await.refused(400, "request.invalid");
    let late = "2999-01-01T00:00:00.000Z";
    purge(json!({"until": late, "status": ["running"]})).await.refused(400, "request.invalid");
    let cut = edge.get("/v1/runs/n2").await.json()["created_at"].clone();
    let early = purge(json!({"until": "2001-01-01T00:00:00Z"})).await.json();
    assert_eq!((&early["matched"], &early["purged"]), (&json!(0), &json!(0)));
    let counted = purge(json!({"until": late, "status": ["succeeded"], "dry": true})).await.json();
    assert_eq!(
        counted,
        json!({"dry": true, "until": late, "matched": 3, "purged": 0, "kept": 0, "more": false})
    );
    let done = purge(json!({"until": cut, "correlation_id": "batch"})).await.json();
    assert!(done["purged"].as_u64().is_some_and(|purged| purged <= 2), "{done}");
    let done = purge(json!({"until": late, "correlation_id": "batch"})).await.json();
    assert_eq!((&done["dry"], &done["more"]), (&json!(false), &json!(false)), "{done}");
    edge.get("/v1/runs/n2").await.refused(404, "run.not_found");
    assert_eq!(edge.get("/v1/runs/late").await.json()["status"], "failed", "another status");
    edge.until(&open, "waiting").await;
    assert_eq!(edge.get("/v1/costs").await.json(), spent, "what was spent stays");
    let all = purge(json!({"until": late})).await.json();
    assert_eq!((&all["purged"], &all["kept"]), (&json!(1), &json!(0)), "{all}");
    edge.until(&open, "waiting").await;
}

#[tokio::test]
async fn c011_an_export_has_every_run_once_as_lines_or_csv() {
    let edge = Edge::start().await;
    for n in 0..5 {
        edge.ended(json!({"tool": "wharf/echo", "run_id": format!("r{n}"),
            "correlation_id": "=1+1"}))
            .await;
    }
    let csv = edge.get("/v1/runs/export?format=csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"runs.csv\""));
    let text = String::from_utf8(csv.body.clone()).expect("text");
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(lines[0].starts_with("run_id,world,tool,status,"), "{text}");
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[1].contains(",'=1+1,"), "a formula is text: {text}");
    let jsonl = edge.get("/v1/runs/export?format=jsonl&tool=wharf/echo").await;
    let text = String::from_utf8(jsonl.body.clone()).expect("text");
    assert_eq!(text.lines().count(), 5);
    edge.get("/v1/runs/export?format=xml").await.refused(400, "request.invalid");
}

#[tokio::test]
async fn c012_a_run_says_why_it_does_not_move_and_how_far_it_is() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/ask", json!({"question": "Which?"})).await;
    let shown = edge.until(&run, "waiting").await;
    let waiting = &shown["waiting_for"];
    assert_eq!((&waiting["kind"], &waiting["message"]), (&json!("ask"), &json!("Which?")));
    assert_eq!(waiting["ask_id"], shown["ask"]["ask_id"]);
    let listed = edge.get("/v1/runs").await.json()["items"][0].clone();
    assert_eq!(listed["waiting_for"], *waiting, "lists say it, too");
    let attempts = shown["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 1, "{shown}");
    assert!(attempts[0].get("ended_at").is_none(), "{shown}");
    let over = edge.ended(too_long("bad")).await;
    assert!(over.get("waiting_for").is_none());
    let shown = edge.get("/v1/runs/bad").await.json();
    let last = shown["attempts"].as_array().and_then(|all| all.last()).expect("an attempt").clone();
    assert_eq!(last["error"]["code"], shown["error"]["code"], "{shown}");
    assert_eq!(last["ended_at"], shown["ended_at"]);
    let count = edge.begin("wharf/count", json!({"n": 100, "delay_ms": 50})).await;
    eventually(async || {
        let items = edge.get("/v1/runs").await.json()["items"].clone();
        let item = items.as_array()?.iter().find(|item| item["run_id"] == *count)?.clone();
        assert_ne!(item["status"], "succeeded", "it has ended without a phase");
        (item["phase"] == "counting" && item["fraction"].is_number()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn c012_a_tree_has_each_run_before_its_own() {
    let edge = Edge::start().await;
    let nap = json!({"tool": "wharf/sleep", "run_id": "top", "inputs": {"ms": 60_000}});
    assert_eq!(edge.post("/v1/runs", nap).await.status, 202);
    edge.until("top", "running").await;
    for (parent, child) in [("top", "a"), ("top", "b"), ("a", "aa"), ("aa", "aaa")] {
        edge.child(parent, child).await;
        edge.until(child, "running").await;
    }
    let tree = edge.get("/v1/runs/top/tree?depth=2").await.json();
    let items: Vec<_> = tree["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|node| {
            let id = node["run"]["run_id"].as_str().expect("an id").to_owned();
            (id, node["depth"].as_u64(), node["more"].as_bool())
        })
        .collect();
    let node = |id: &str, depth, more| (id.to_owned(), Some(depth), Some(more));
    assert_eq!(items, [node("b", 1, false), node("a", 1, false), node("aa", 2, true)]);
    assert_eq!(tree["run"]["run_id"], "top");
    let first = edge.get("/v1/runs/top/tree?depth=1&limit=1").await.json();
    let cursor = first["next_cursor"].as_str().expect("more");
    let next = edge.get(&format!("/v1/runs/top/tree?depth=1&limit=1&cursor={cursor}")).await.json();
    assert_eq!(next["items"][0]["run"]["run_id"], "a");
    assert_eq!(next["next_cursor"], Value::Null);
    edge.get("/v1/runs/top/tree?depth=6").await.refused(400, "request.invalid");
    edge.get("/v1/runs/none/tree").await.refused(404, "run.not_found");
}

#[tokio::test]
async fn c012_a_run_is_run_again_from_what_was_stored() {
    let edge = Edge::start().await;
    let put =
        edge.call("PUT", "/v1/worlds/default/files/in.txt").bytes(b"hello".to_vec()).send().await;
    assert_eq!(put.status, 201, "{put:?}");
    let first = json!({"tool": "wharf/echo", "run_id": "first",
        "inputs": {"text": "hi", "file.world": "/in.txt", "odd..world": "plain"},
        "outputs": {"text.world": "/out.txt"}});
    let first = edge.ended(first).await;
    let answer = edge.post("/v1/runs/first/again?wait=20s", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let second = answer.json();
    assert_ne!(second["run_id"], first["run_id"]);
    assert_eq!(second["inputs"], first["inputs"]);
    assert_eq!(second["tool"], "wharf/echo");
    let changed = json!({"inputs": {"text": "other", "odd..world": null}, "run_id": "third"});
    let third = edge.post("/v1/runs/first/again?wait=20s", changed).await.json();
    assert_eq!((&third["run_id"], &third["inputs"]["text"]), (&json!("third"), &json!("other")));
    let url = json!({"tool": "wharf/echo", "run_id": "url",
        "inputs": {"text": "https://a.example/x?key=c4nary"}});
    edge.ended(url).await;
    let again = edge.post("/v1/runs/url/again", json!({})).await;
    let error = again.refused(422, "run.inputs_stripped");
    assert_eq!(error["details"]["fields"], json!(["text"]));
    let given = json!({"inputs": {"text": "https://a.example/x?key=c4nary"}});
    assert_eq!(edge.post("/v1/runs/url/again?wait=20s", given).await.status, 200);
    let token =
        edge.token(json!({"verbs": ["run"]})).await["token"].as_str().expect("t").to_owned();
    let blind = edge.call_as(&token, "POST", "/v1/runs/first/again").json(&json!({})).send().await;
    blind.refused(403, "permission.denied");
}

#[tokio::test]
async fn c012_lineage_names_the_runs_that_files_connect() {
    let edge = Edge::start().await;
    let make = json!({"tool": "wharf/echo", "run_id": "maker", "inputs": {"text": "hi"},
        "outputs": {"text.world": "/a.txt"}});
    edge.ended(make).await;
    let take = json!({"tool": "wharf/echo", "run_id": "taker",
        "inputs": {"text": "x", "file.world": "/a.txt"}});
    edge.ended(take).await;
    let lineage = eventually(async || {
        let lineage = edge.get("/v1/runs/maker/lineage").await.json();
        (lineage["went_into"].as_array()?.len() == 1).then_some(lineage)
    })
    .await;
    assert_eq!(lineage["wrote"][0]["path"], "/a.txt");
    assert_eq!(lineage["went_into"][0]["run_id"], "taker");
    let lineage = edge.get("/v1/runs/taker/lineage").await.json();
    assert_eq!(lineage["made_from"][0]["run_id"], "maker", "{lineage}");
    assert_eq!(lineage["cut"], false);
}

#[tokio::test]
async fn c012_events_are_listed_backwards_and_by_type() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/count", json!({"n": 5, "delay_ms": 0})).await;
    edge.until(&run, "succeeded").await;
    let list = async |query: &str| {
        let page = edge.get(&format!("/v1/runs/{run}/trace?{query}")).await.json();
        page["items"].as_array().expect("items").clone()
    };
    let texts = list("types=text,finished").await;
    let named = |item: &Value| item["event"] == "text" || item["event"] == "finished";
    assert!(texts.len() > 1 && texts.iter().all(named), "{texts:?}");
    let last = texts.last().expect("one")["seq"].as_u64().expect("a number");
    let before = list(&format!("before={last}&latest=2")).await;
    assert_eq!(before.len(), 2);
    assert!(before.iter().all(|item| item["seq"].as_u64() < Some(last)), "{before:?}");
}
