//! What the console shows of asks, tools, providers, files, money, the audit and a search.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_http::{AuditVerdict, Auditor};
use wharf_ports::launcher::LogSource;

use crate::support::agents::ScriptedAgents;
use crate::support::{Edge, eventually};

impl Edge {
    async fn approval(&self, text: &str) -> Value {
        let run = json!({"tool": "wharf/echo", "world": "gated", "inputs": {"text": text}});
        let answer = self.post("/v1/runs", run).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let run = answer.json()["run_id"].clone();
        eventually(async || {
            let page = self.get("/v1/inbox").await.json();
            page["items"].as_array()?.iter().find(|ask| ask["run_id"] == run).cloned()
        })
        .await
    }

    async fn gated(&self) {
        let rule = json!([{"tool": "wharf/echo", "approve": true, "audience": "any"}]);
        let made = self.post("/v1/worlds", json!({"world": "gated", "policy": rule})).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[tokio::test]
async fn c013_an_ask_is_shown_with_all_that_helps_to_decide_it() {
    let edge = Edge::start().await;
    edge.gated().await;
    let first = edge.approval("one").await;
    let decide = format!("/v1/approvals/{}/decide", text(&first, "ask_id"));
    let given = json!({"decision": "allow", "args_digest": first["args_digest"],
        "tool_hash": first["tool_hash"]});
    assert_eq!(edge.post(&decide, given).await.status, 204);
    eventually(async || {
        let page = edge.get("/v1/runs?world=gated&status=succeeded").await.json();
        (page["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let second = edge.approval("two").await;
    let path = format!("/v1/asks/{}", text(&second, "ask_id"));
    let shown = edge.get(&path).await.json();
    assert_eq!(shown["ask"], second);
    assert_eq!(shown["inputs"], json!({"text": "two"}));
    assert_eq!(shown["definition"]["hash"], second["tool_hash"]);
    assert_eq!(shown["same_definition"], true);
    assert_eq!(shown["chain"][0]["run_id"], second["run_id"]);
    assert_eq!(shown["previous"][0]["ask_id"], first["ask_id"]);
    assert_eq!(shown["previous"][0]["decision"], "allow");
    assert_eq!(shown["previous"][0]["decided_by"], "grant:owner");
    assert!(shown["previous"][0]["decided_at"].is_string(), "{shown}");
    assert_eq!(shown["similar_run"]["inputs"], json!({"text": "one"}));
    let decided = edge.get("/v1/asks?state=decided").await.json();
    assert_eq!(decided["items"][0]["ask_id"], first["ask_id"]);
    assert_eq!(decided["items"].as_array().map(Vec::len), Some(1));
    let open = edge.get("/v1/asks").await.json();
    assert_eq!(open["items"], json!([second]));
    edge.get("/v1/asks?state=odd").await.refused(400, "request.invalid");
    edge.get("/v1/asks/c4nary").await.refused(404, "ask.not_found");
    let narrow = json!({"verbs": ["read"], "worlds": ["default"]});
    let token = edge.token(narrow).await["token"].as_str().expect("text").to_owned();
    edge.call_as(&token, "GET", &path).send().await.refused(403, "permission.denied");
    let none = edge.call_as(&token, "GET", "/v1/asks?state=decided").send().await.json();
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn c013_a_decision_about_something_else_decides_nothing() {
    let edge = Edge::start().await;
    edge.gated().await;
    let ask = edge.approval("one").await;
    let decide = format!("/v1/approvals/{}/decide", text(&ask, "ask_id"));
    for (field, other) in [("args_digest", "00"), ("tool_hash", "11")] {
        let body = json!({"decision": "allow", field: other});
        let error = edge.post(&decide, body).await.refused(409, "ask.changed");
        assert_eq!(error["details"]["field"], field);
    }
    assert_eq!(edge.get("/v1/inbox").await.json()["items"], json!([ask]), "it is still open");
    let deny = json!({"decision": "deny", "reason": "no", "args_digest": ask["args_digest"]});
    assert_eq!(edge.post(&decide, deny).await.status, 204);
    let late = edge.post(&decide, json!({"decision": "allow"})).await;
    let error = late.refused(409, "ask.decided");
    assert_eq!(error["details"]["decision"], "deny");
    assert_eq!(error["details"]["decided_by"], "grant:owner");
    let shown = edge.get(&format!("/v1/asks/{}", text(&ask, "ask_id"))).await.json();
    assert_eq!(shown["ask"]["reason"], "no");
}

#[tokio::test]
async fn c013_a_dry_answer_names_all_that_is_wrong_and_answers_nothing() {
    let edge = Edge::start().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"},
        "s": {"type": "string"}}, "required": ["n", "s"]});
    let run = edge.begin("wharf/ask", json!({"question": "?", "schema": schema})).await;
    let ask = edge.until(&run, "waiting").await["ask"].clone();
    let path = format!("/v1/questions/{}/answer?dry=true", text(&ask, "ask_id"));
    let wrong = edge.post(&path, json!({"value": {"n": "c4nary", "s": 1}})).await;
    let error = wrong.refused(422, "ask.answer_invalid");
    let errors = error["details"]["errors"].as_array().expect("errors");
    let mut places: Vec<&str> = errors.iter().map(|it| text(it, "path")).collect();
    places.sort_unstable();
    assert_eq!(places, ["/n", "/s"], "{error}");
    assert!(!error.to_string().contains("c4nary"));
    let good = edge.post(&path, json!({"value": {"n": 1, "s": "x"}})).await;
    assert_eq!(good.status, 204);
    assert_eq!(edge.get(&format!("/v1/runs/{run}")).await.json()["status"], "waiting");
}

#[tokio::test]
async fn c014_tools_are_narrowed_by_text_provider_and_state() {
    let edge = Edge::start().await;
    let ids = async |query: &str| {
        let page = edge.get(&format!("/v1/tools?{query}")).await.json();
        let items = page["items"].as_array().expect("items").clone();
        items.iter().map(|item| text(item, "tool_id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("q=ECHO&limit=1").await, ["wharf/echo"]);
    assert_eq!(ids("provider=nobody").await, [""; 0]);
    assert!(ids("provider=wharf&state=available&limit=200").await.len() > 3);
    assert_eq!(ids("state=quarantined").await, [""; 0]);
    edge.get("/v1/tools?state=odd").await.refused(400, "request.invalid");
    let tool = edge.get("/v1/tools/wharf/echo").await.json();
    assert!(tool["definition_hash"].is_string() && tool["free"] == true, "{tool}");
}

#[tokio::test]
async fn c015_providers_of_every_kind_have_one_shape() {
    let agents = ScriptedAgents::new();
    let control = Arc::clone(&agents);
    let edge = Edge::start_with(|options| options.agents = Some(control)).await;
    let added = edge.post("/v1/agents", json!({"folder": "/agents/dev.example.hello"})).await;
    assert_eq!(added.status, 201, "{added:?}");
    let all = edge.get("/v1/providers").await.json();
    let items = all["items"].as_array().expect("items");
    let kinds: Vec<_> =
        items.iter().map(|it| (text(it, "provider_id"), text(it, "kind"))).collect();
    assert_eq!(kinds, [("dev.example.hello", "agent"), ("wharf", "builtin")]);
    let one = edge.get("/v1/providers/dev.example.hello").await.json();
    assert_eq!((&one["state"], &one["enabled"]), (&json!("added"), &json!(false)), "{one}");
    let core = edge.get("/v1/providers/wharf").await.json();
    assert_eq!(core["state"], "running");
    assert!(core["tools"].as_array().is_some_and(|tools| tools.contains(&json!("wharf/echo"))));
    let agents_only = edge.get("/v1/providers?kind=agent&state=added&q=HELLO").await.json();
    assert_eq!(agents_only["items"].as_array().map(Vec::len), Some(1));
    edge.get("/v1/providers?kind=odd").await.refused(400, "request.invalid");
    edge.get("/v1/providers/nobody").await.refused(404, "agent.not_found");
    for (n, line) in ["alpha", "beta", "alphabet"].into_iter().enumerate() {
        let source = if n == 1 { LogSource::Stderr } else { LogSource::Stdout };
        agents.say("dev.example.hello", source, line);
    }
    let logs = "/v1/providers/dev.example.hello/logs";
    let found = edge.get(&format!("{logs}?q=ALPHA&lines=1")).await.json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["items"][0]["text"], "alphabet");
    let before = edge.get(&format!("{logs}?before=2001-01-01T00:00:00Z")).await.json();
    assert_eq!(before["items"], json!([]));
    let reader =
        edge.token(json!({"verbs": ["read"]})).await["token"].as_str().expect("t").to_owned();
    edge.call_as(&reader, "GET", logs).send().await.refused(403, "permission.denied");
    let seen = edge.call_as(&reader, "GET", "/v1/providers/dev.example.hello").send().await.json();
    assert_eq!(seen.get("launch_id"), None, "only administrators see it");
}

#[tokio::test]
async fn c015_a_provider_is_drained_and_what_it_used_is_shown() {
    let agents = ScriptedAgents::new();
    let control = Arc::clone(&agents);
    let edge = Edge::start_with(|options| options.agents = Some(control)).await;
    edge.post("/v1/agents", json!({"folder": "/agents/dev.example.hello"})).await;
    edge.post("/v1/agents/dev.example.hello/approve", json!({"all": true})).await;
    edge.call("POST", "/v1/agents/dev.example.hello/start").send().await;
    let path = "/v1/providers/dev.example.hello";
    let used = edge.get(&format!("{path}/usage?range=24h")).await.json();
    let points = json!([
        {"at": "2025-11-15T00:00:00.000Z", "memory_bytes": 10, "cpu_ms": 0, "processes": 1},
        {"at": "2025-11-15T00:01:00.000Z", "memory_bytes": 11, "cpu_ms": 1, "processes": 1},
    ]);
    assert_eq!(used, json!({"range": "24h", "step_ms": 60_000, "points": points}));
    edge.get(&format!("{path}/usage?range=2h")).await.refused(400, "request.invalid");
    let drained = edge.call("POST", &format!("{path}/drain")).send().await;
    assert_eq!(drained.status, 202, "{drained:?}");
    let drained = drained.json();
    let (state, enabled) = (&drained["state"], &drained["enabled"]);
    assert_eq!((state, enabled), (&json!("draining"), &json!(false)), "{drained}");
    // The core's own tools are no process, and nobody is nobody.
    assert_eq!(edge.get("/v1/providers/wharf/usage").await.json()["points"], json!([]));
    let own = edge.call("POST", "/v1/providers/wharf/drain").send().await;
    own.refused(400, "request.invalid");
    edge.get("/v1/providers/nobody/usage").await.refused(404, "agent.not_found");
    let nobody = edge.call("POST", "/v1/providers/nobody/drain").send().await;
    nobody.refused(404, "agent.not_found");
}

#[tokio::test]
async fn c016_folders_are_listed_without_what_lies_in_them() {
    let edge = Edge::start().await;
    for path in ["a.txt", "b/1.txt", "b/2.txt", "b/c/3.txt", "b.txt", "d/e/f.txt", "z.txt"] {
        let path = format!("/v1/worlds/default/files/{path}");
        assert_eq!(edge.call("PUT", &path).bytes(b"x".to_vec()).send().await.status, 201);
    }
    let list = async |query: &str| {
        let (mut files, mut folders, mut cursor) = (Vec::new(), Vec::new(), String::new());
        loop {
            let path = format!("/v1/worlds/default/artifacts?delimiter=/&{query}{cursor}");
            let answer = edge.get(&path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let page = answer.json();
            let paths = |key: &str| -> Vec<String> {
                let all = page[key].as_array().expect("a list").iter();
                all.map(|it| text(it, "path").to_owned()).collect()
            };
            files.extend(paths("items"));
            folders.extend(paths("folders"));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (files, folders),
            }
            assert!(files.len() + folders.len() < 20, "it does not end");
        }
    };
    let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for limit in [1, 2, 50] {
        let top = list(&format!("prefix=/&limit={limit}")).await;
        assert_eq!(top, (owned(&["/a.txt", "/b.txt", "/z.txt"]), owned(&["/b/", "/d/"])));
        let below = list(&format!("prefix=/b/&limit={limit}")).await;
        assert_eq!(below, (owned(&["/b/1.txt", "/b/2.txt"]), owned(&["/b/c/"])));
        let all = list(&format!("limit={limit}")).await;
        assert_eq!(all, top);
    }
    let sizes = edge.get("/v1/worlds/default/artifacts?delimiter=/").await.json();
    let expect = json!([
        {"path": "/b/", "files": 3, "bytes": 3, "more": false},
        {"path": "/d/", "files": 1, "bytes": 1, "more": false},
    ]);
    assert_eq!(sizes["folders"], expect);
    let plain = edge.get("/v1/worlds/default/artifacts").await.json();
    assert_eq!(plain.get("folders"), None);
    edge.get("/v1/worlds/default/artifacts?delimiter=x").await.refused(400, "request.invalid");
}

#[tokio::test]
async fn c016_tokens_of_one_world_are_listed() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    let lab = edge.token(json!({"verbs": ["read"], "worlds": ["lab"]})).await;
    let other = edge.token(json!({"verbs": ["read"], "worlds": ["default"]})).await;
    let page = edge.get("/v1/tokens?world=lab").await.json();
    let ids: Vec<_> =
        page["items"].as_array().expect("items").iter().map(|it| &it["token_id"]).collect();
    assert!(ids.contains(&&lab["token_id"]) && !ids.contains(&&other["token_id"]), "{page}");
}

#[tokio::test]
async fn c017_money_is_shown_by_hour_and_caller_and_as_a_tree_of_accounts() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab", "limit_micro": 1000})).await;
    let token = json!({"verbs": ["run", "read"], "worlds": ["lab"], "budget_micro": 100});
    let token = edge.token(token).await;
    let body = json!({"tool": "wharf/sleep", "world": "lab", "inputs": {"ms": 1, "cost_micro": 7}});
    let secret = text(&token, "token").to_owned();
    let ran = edge.call_as(&secret, "POST", "/v1/runs?wait=20s").json(&body).send().await;
    assert_eq!(ran.status, 200, "{ran:?}");
    let by = async |by: &str| edge.get(&format!("/v1/costs?by={by}&world=lab")).await.json();
    let hours = by("hour").await;
    assert_eq!(hours["items"][0]["cost_micro"], 7);
    assert_eq!(text(&hours["items"][0], "key").len(), "2026-11-18T02:00Z".len(), "{hours}");
    assert_eq!(by("caller").await["items"][0]["key"], token["token_id"]);
    let accounts = edge.get("/v1/accounts?world=lab").await.json();
    let items = accounts["items"].as_array().expect("items");
    assert_eq!(items.len(), 2, "{accounts}");
    assert_eq!(
        (&items[0]["account"], &items[0]["limit_micro"]),
        (&json!("world:lab"), &json!(1000))
    );
    assert_eq!((&items[1]["parent"], &items[1]["spent_micro"]), (&json!("world:lab"), &json!(7)));
    let seen = edge.call_as(&secret, "GET", "/v1/accounts").send().await.json();
    assert!(seen["items"].as_array().expect("items").iter().all(|it| it["world"] == "lab"));
    let over = edge.get("/v1/runs?over_hold=true&world=lab").await.json();
    assert_eq!(over["items"].as_array().map(Vec::len), Some(1), "nothing was held for it: {over}");
}

/// What is left lasts as long as it would at the pace of late, once ten runs have cost something:
/// runs that were free say nothing about it.
#[tokio::test]
async fn c017_accounts_say_how_long_they_last_once_ten_runs_have_cost_something() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab", "limit_micro": 1000})).await;
    let token = json!({"verbs": ["run", "read"], "worlds": ["lab"], "budget_micro": 100});
    let secret = text(&edge.token(token).await, "token").to_owned();
    let narrow = json!({"verbs": ["read"], "worlds": ["lab"], "tools": ["wharf/echo"]});
    let narrow = text(&edge.token(narrow).await, "token").to_owned();
    let spend = async |cost: u64| {
        let inputs = json!({"ms": 0, "cost_micro": cost});
        let body = json!({"tool": "wharf/sleep", "world": "lab", "inputs": inputs});
        let ran = edge.call_as(&secret, "POST", "/v1/runs?wait=20s").json(&body).send().await;
        assert_eq!(ran.status, 200, "{ran:?}");
    };
    let lasts = async |token: &str| -> Vec<Value> {
        let accounts = edge.call_as(token, "GET", "/v1/accounts?world=lab").send().await.json();
        let items = accounts["items"].as_array().expect("items").clone();
        items.iter().map(|it| it["lasts"].clone()).collect()
    };
    for n in 0..12 {
        spend(if n < 9 { 7 } else { 0 }).await;
    }
    assert_eq!(lasts(&secret).await, [Value::Null, Value::Null], "nine have cost something");
    spend(7).await;
    let day = 86_400_000_u64;
    // Of the world 930 are left, of the token 30; the day was 70, the week 10 a day.
    let expect = [(930 * day / 70, 93 * day), (30 * day / 70, 3 * day)];
    let expect = expect.map(|(min, max)| json!({"min_ms": min, "max_ms": max}));
    assert_eq!(lasts(&secret).await, expect);
    assert_eq!(lasts(&narrow).await, [Value::Null, Value::Null], "it may not know of other tools");
}

#[tokio::test]
async fn c019_the_audit_is_searched_both_ways_and_verified() {
    let verdict = AuditVerdict { ok: true, records: 3, chains: 1, findings: Vec::new() };
    let auditor = Auditor(Arc::new(move || Ok(verdict.clone())));
    let edge = Edge::start_with(|options| options.auditor = Some(auditor)).await;
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    edge.run("wharf/echo", json!({"text": "x"})).await;
    let events = async |query: &str| {
        let items = edge.pages(&format!("/v1/audit?{query}"), 2).await;
        items.iter().map(|it| text(it, "event").to_owned()).collect::<Vec<_>>()
    };
    let all = events("").await;
    let mut back = events("order=desc").await;
    back.reverse();
    assert_eq!(all, back);
    assert!(all.len() > 2);
    assert_eq!(events("subject=world:lab").await, ["world.created"]);
    let worlds = events("event=world.*").await;
    assert!(worlds.iter().all(|event| event.starts_with("world.")) && worlds.len() == 2);
    assert_eq!(events("actor=nobody").await, [""; 0]);
    assert_eq!(events("until=2001-01-01T00:00:00Z").await, [""; 0]);
    assert_eq!(
        events("since=1h&actor=grant:own*").await.len(),
        events("actor=grant:owner").await.len()
    );
    edge.get("/v1/audit?order=odd").await.refused(400, "request.invalid");
    let checked = edge.post("/v1/audit/verify", json!({})).await;
    assert_eq!(checked.json(), json!({"ok": true, "records": 3, "chains": 1, "findings": []}));
    let reader =
        edge.token(json!({"verbs": ["read"]})).await["token"].as_str().expect("t").to_owned();
    let refused = edge.call_as(&reader, "POST", "/v1/audit/verify").send().await;
    refused.refused(403, "permission.denied");
}

#[tokio::test]
async fn c020_a_search_finds_runs_tools_providers_and_worlds_within_reach() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "echo-lab"})).await;
    for (world, id) in [("default", "echo-1"), ("echo-lab", "echo-2")] {
        let run = json!({"tool": "wharf/echo", "world": world, "run_id": id});
        assert_eq!(edge.post("/v1/runs?wait=20s", run).await.status, 200);
    }
    let found = edge.get("/v1/search?q=echo").await.json();
    let runs = |found: &Value| {
        let all = found["runs"].as_array().expect("runs").iter();
        all.map(|run| text(run, "run_id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&found), ["echo-2", "echo-1"]);
    assert_eq!(found["tools"][0]["tool_id"], "wharf/echo");
    assert_eq!(found["worlds"], json!([{"world": "echo-lab"}]));
    let core = edge.get("/v1/search?q=WHARF").await.json();
    assert_eq!(core["providers"][0], json!({"provider_id": "wharf", "kind": "builtin"}));
    edge.get("/v1/search").await.refused(400, "request.invalid");
    let narrow = json!({"verbs": ["read"], "worlds": ["default"]});
    let token = edge.token(narrow).await["token"].as_str().expect("text").to_owned();
    let seen = edge.call_as(&token, "GET", "/v1/search?q=echo").send().await.json();
    assert_eq!((runs(&seen), &seen["worlds"]), (vec!["echo-1".to_owned()], &json!([])));
}

#[tokio::test]
async fn c020_a_search_finds_flows_schedules_and_triggers_by_name() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    let steps = json!([{"id": "say", "call": {"tool": "wharf/echo", "inputs": {"text": "x"}}}]);
    let document =
        json!({"name": "report", "description": "Says x.", "steps": steps, "output": {}});
    let made = edge.post("/v1/flows", json!({"document": document})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let when = json!({"name": "report-nightly", "every_ms": 3_600_000, "tool": "wharf/echo",
        "world": "lab"});
    let made = edge.post("/v1/schedules", when).await;
    assert_eq!(made.status, 201, "{made:?}");
    let found = edge.get("/v1/search?q=REPORT").await.json();
    assert_eq!(found["flows"], json!([{"name": "report", "tool_id": "flow/report@1"}]));
    let nightly = json!({"name": "report-nightly", "tool_id": "wharf/echo"});
    assert_eq!((&found["schedules"], &found["triggers"]), (&json!([nightly]), &json!([])));
    let narrow = json!({"verbs": ["read"], "worlds": ["default"]});
    let token = edge.token(narrow).await["token"].as_str().expect("text").to_owned();
    let seen = edge.call_as(&token, "GET", "/v1/search?q=report").send().await.json();
    assert_eq!(seen["schedules"], json!([]), "it is of another world");
}
