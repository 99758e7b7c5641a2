//! What the console reads, by GraphQL: the same as by REST.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wharf_vocab::limits::PAGE_ITEMS_MAX;

use crate::same::assert_same;
use crate::support::{OWNER, Stage, eventually};

#[tokio::test]
async fn c044_many_runs_are_the_same_in_rest_and_graphql() {
    let stage = Stage::start().await;
    for n in 0..3 {
        stage.finished("wharf/echo", json!({"text": n.to_string()})).await;
    }
    for (path, field, query) in [
        (
            "/v1/runs/count?tool=wharf/echo",
            "runCount",
            "{ runCount(filter: {tool: \"wharf/echo\"}) { count exact } }",
        ),
        (
            "/v1/accounts",
            "accounts",
            "{ accounts { account parent world limitMicro spentMicro heldMicro overMicro lasts { minMs maxMs } } }",
        ),
        (
            "/v1/search?q=echo",
            "search",
            "{ search(q: \"echo\") { runs { runId } tools { toolId description state } \
             providers { providerId kind } worlds { world } } }",
        ),
        (
            "/v1/tools?q=echo&provider=wharf",
            "tools",
            "{ tools(q: \"echo\", provider: \"wharf\") { edges { node { toolId definitionHash } } } }",
        ),
    ] {
        let rest = stage.call(OWNER, "GET", path, None).await.body;
        let graphql = stage.ask(query).await.data()[field].clone();
        match (rest.get("items"), graphql.get("edges")) {
            (Some(items), Some(edges)) => {
                let nodes = edges.as_array().expect("edges").iter().map(|it| it["node"].clone());
                assert_same(items, &nodes.collect());
            }
            (Some(items), None) => assert_same(items, &graphql),
            _ => assert_same(&rest, &graphql),
        }
    }
    let query = "{ runs(filter: {status: [succeeded, failed], caller: \"owner\", \
                 idPrefix: \"0\", error: null, errorText: null}) { edges { node { runId caller overHold phase } } } }";
    let runs = stage.ask(query).await.data()["runs"]["edges"].clone();
    assert_eq!(runs.as_array().map(Vec::len), Some(3), "{runs}");
    assert_eq!(runs[0]["node"]["caller"], "owner");
}

#[tokio::test]
async fn c044_runs_are_canceled_together_and_run_again() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    for id in ["a", "b"] {
        let input = json!({"tool": "wharf/sleep", "inputs": {"ms": 60_000}, "runId": id});
        stage.ask_as(OWNER, make, json!({"input": input})).await.data();
    }
    let cancel = "mutation ($input: CancelRunsInput!) { cancelRuns(input: $input) \
                  { dry matched canceled refused more } }";
    let until = "2999-01-01T00:00:00Z";
    let dry = json!({"input": {"tool": "wharf/sleep", "until": until, "dry": true}});
    let counted = stage.ask_as(OWNER, cancel, dry).await.data()["cancelRuns"].clone();
    assert_eq!((&counted["matched"], &counted["canceled"]), (&json!("2"), &json!("0")));
    let all = json!({"input": {"tool": "wharf/sleep", "until": until}});
    let done = stage.ask_as(OWNER, cancel, all).await.data()["cancelRuns"].clone();
    assert_eq!(done["canceled"], "2");
    eventually(async || {
        let query = "{ runCount(filter: {status: [canceled]}) { count } }";
        (stage.ask(query).await.data()["runCount"]["count"] == "2").then_some(())
    })
    .await;
    let again = "mutation { runAgain(id: \"a\", changes: {inputs: {ms: 1}, runId: \"c\"}) \
                 { runId inputs attempts { attempt } } }";
    let run = stage.ask(again).await.data()["runAgain"].clone();
    assert_eq!((&run["runId"], &run["inputs"]), (&json!("c"), &json!({"ms": 1})), "{run}");
}

#[tokio::test]
async fn runs_that_are_over_are_removed_together() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    for id in ["a", "b"] {
        let input = json!({"tool": "wharf/echo", "runId": id});
        stage.ask_as(OWNER, make, json!({"input": input})).await.data();
    }
    let over = "{ runCount(filter: {tool: \"wharf/echo\", status: [succeeded]}) { count } }";
    let count = async || stage.ask(over).await.data()["runCount"]["count"].clone();
    let before = count().await;
    eventually(async || (count().await != "0").then_some(())).await;
    let purge = "mutation ($input: PurgeRunsInput!) { purgeRuns(input: $input) \
                 { dry matched purged kept more } }";
    let until = "2999-01-01T00:00:00Z";
    let dry = json!({"input": {"tool": "wharf/echo", "until": until, "dry": true}});
    let counted = stage.ask_as(OWNER, purge, dry).await.data()["purgeRuns"].clone();
    assert_eq!((&counted["dry"], &counted["purged"]), (&json!(true), &json!("0")), "{before}");
    eventually(async || {
        let all = json!({"input": {"tool": "wharf/echo", "until": until}});
        let done = stage.ask_as(OWNER, purge, all).await.data()["purgeRuns"].clone();
        let gone = stage.ask("{ runCount(filter: {tool: \"wharf/echo\"}) { count } }").await;
        (done["kept"] == "0" && gone.data()["runCount"]["count"] == "0").then_some(())
    })
    .await;
}

#[tokio::test]
async fn c044_an_ask_is_shown_and_decided_as_it_was_looked_at() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    let input = json!({"tool": "wharf/approve-me", "runId": "gate"});
    stage.ask_as(OWNER, make, json!({"input": input})).await.data();
    let ask: Value = eventually(async || {
        let query = "{ inbox { edges { node { askId argsDigest toolHash } } } }";
        let node = stage.ask(query).await.data()["inbox"]["edges"][0]["node"].clone();
        node.is_object().then_some(node)
    })
    .await;
    let id = ask["askId"].as_str().expect("an id");
    let show = format!(
        "{{ ask(id: \"{id}\") {{ ask {{ askId }} sameDefinition definition {{ hash }} inputs \
         chain {{ runId }} previous {{ askId }} permissions {{ permission }} }} }}"
    );
    let shown = stage.ask(&show).await.data()["ask"].clone();
    assert_eq!((&shown["ask"]["askId"], &shown["sameDefinition"]), (&json!(id), &json!(true)));
    assert_eq!(shown["definition"]["hash"], ask["toolHash"]);
    assert_eq!(shown["chain"], json!([{"runId": "gate"}]));
    let decide = |digest: &str| {
        format!(
            "mutation {{ decideApproval(id: \"{id}\", allow: true, argsDigest: \"{digest}\") {{ runId }} }}"
        )
    };
    let other = stage.ask(&decide("00")).await;
    assert_eq!(other.code(), Some("ask.changed"));
    let digest = ask["argsDigest"].as_str().expect("a digest").to_owned();
    assert_eq!(stage.ask(&decide(&digest)).await.data()["decideApproval"]["runId"], "gate");
    let decided = "{ decidedAsks { edges { node { askId decision decidedBy } } } }";
    let decided = stage.ask(decided).await.data()["decidedAsks"]["edges"][0]["node"].clone();
    assert_eq!((&decided["askId"], &decided["decision"]), (&json!(id), &json!("allow")));
}

#[tokio::test]
async fn c005_the_usual_feed_and_any_other_tell_the_same() {
    const USUAL: &str = "subscription { changes { reset items { kind world id seq status } } }";
    let stage = Stage::start().await;
    let (id, narrow) = stage.token(json!({"verbs": ["read"], "worlds": ["elsewhere"]})).await;
    let open = async |token: &str, query: &str| {
        let mut socket = stage.connect(token, "graphql-transport-ws").await.expect("opens");
        socket.say(json!({"type": "connection_init"})).await;
        assert_eq!(socket.hear().await["type"], "connection_ack");
        socket.subscribe("feed \"1\"", query).await;
        let first = socket.hear().await;
        assert_eq!((&first["type"], &first["id"]), (&json!("next"), &json!("feed \"1\"")));
        assert_eq!(first["payload"]["data"]["changes"], json!({"reset": true, "items": []}));
        socket
    };
    let other = USUAL.replace("changes {", "changes(kinds: []) {");
    let mut feeds = [
        open(OWNER, USUAL).await,
        open(OWNER, &USUAL.replace(' ', "\n  ")).await,
        open(OWNER, &other).await,
    ];
    let mut stranger = open(&narrow, USUAL).await;
    let run = stage.finished("wharf/echo", json!({})).await;
    let mut seen = Vec::new();
    for feed in &mut feeds {
        // The end of the run may come in a later frame than its beginning.
        let told = loop {
            let frame = feed.hear().await["payload"]["data"]["changes"].clone();
            let items = frame["items"].as_array().expect("items").clone();
            let ended = |item: &Value| item["id"] == run.as_str() && item["status"] == "succeeded";
            if let Some(item) = items.into_iter().find(ended) {
                break item;
            }
        };
        seen.push(told);
    }
    assert!(seen.iter().all(|item| *item == seen[0]), "{seen:?}");
    let item = &seen[0];
    assert_eq!((&item["kind"], &item["world"]), (&json!("run"), &json!("default")), "{item}");
    assert!(item["seq"].is_string(), "{item}");
    // Whoever may not know of it hears nothing, and nothing at all once the token is gone.
    stage.revoke(&id).await;
    assert_eq!(stranger.closed().await, 4401);
}

#[tokio::test]
async fn c044_an_export_comes_in_pieces_and_says_what_that_of_rest_says() {
    let stage = Stage::start().await;
    let mut ids = Vec::new();
    // More than one piece has room for.
    for _ in 0..PAGE_ITEMS_MAX + 5 {
        ids.push(stage.begin("wharf/echo", json!({})).await);
    }
    eventually(async || {
        let open = "{ runCount(filter: {status: [queued, running]}) { count } }";
        (stage.ask(open).await.data()["runCount"]["count"] == "0").then_some(())
    })
    .await;
    let mut socket = stage.socket(OWNER).await;
    let mut pieces = async |id: &str, arguments: &str| {
        socket.subscribe(id, &format!("subscription {{ runExport{arguments} }}")).await;
        let mut pieces = Vec::new();
        loop {
            let told = socket.hear().await;
            if told["type"] == "complete" {
                return pieces;
            }
            let piece = told["payload"]["data"]["runExport"].as_str();
            pieces.push(piece.unwrap_or_else(|| panic!("{told}")).to_owned());
        }
    };
    let all = pieces("1", "").await;
    assert!(all.len() > 1, "{} pieces", all.len());
    let all = all.concat();
    let run = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let told = all.lines().map(|line| run(line)["run_id"].as_str().expect("an id").to_owned());
    let told: Vec<String> = told.collect();
    let path = format!("/v1/runs?id_prefix={}", told[0]);
    let listed = stage.call(OWNER, "GET", &path, None).await.body["items"][0].clone();
    assert_eq!(run(all.lines().next().expect("a line")), listed);
    let each = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!((told.len(), each(&told)), (ids.len(), each(&ids)), "each once");

    let first = format!("(format: csv, filter: {{idPrefix: \"{}\"}})", ids[0]);
    let csv = pieces("2", &first).await.concat();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("run_id,world,tool,status,"), "{csv}");
    assert!(lines.len() == 2 && lines[1].starts_with(&ids[0]), "{csv}");
}

#[tokio::test]
async fn c044_folders_and_their_sizes_are_the_same_in_rest_and_graphql() {
    let stage = Stage::start().await;
    for path in ["/a.txt", "/b/1", "/b/2", "/b/c/3", "/d/e/f", "/z"] {
        let line = format!("PUT /v1/worlds/default/files{path}");
        let put = stage.send(OWNER, &line, "application/octet-stream", b"1234").await;
        assert_eq!(put.status, 201, "{}", put.body);
    }
    let page = async |after: &Value, first: u32| {
        let query = format!(
            "query ($after: String) {{ artifacts(delimiter: \"/\", first: {first}, after: $after) {{
                edges {{ node {{ path bytes }} }} folders {{ path files bytes more }}
                pageInfo {{ hasNextPage endCursor }} }} }}"
        );
        let page = stage.ask_as(OWNER, &query, json!({"after": after})).await;
        page.data()["artifacts"].clone()
    };
    let rest = stage.call(OWNER, "GET", "/v1/worlds/default/artifacts?delimiter=/", None).await;
    let whole = page(&Value::Null, 50).await;
    assert_same(&rest.body["folders"], &whole["folders"]);
    let expect = json!([
        {"path": "/b/", "files": "3", "bytes": "12", "more": false},
        {"path": "/d/", "files": "1", "bytes": "4", "more": false},
    ]);
    assert_eq!(whole["folders"], expect);
    let nodes = whole["edges"].as_array().expect("edges").iter().map(|it| it["node"].clone());
    assert_same(&rest.body["items"], &nodes.collect());
    let (mut after, mut seen) = (Value::Null, Vec::new());
    loop {
        let one = page(&after, 1).await;
        let edges = one["edges"].as_array().expect("edges").iter().map(|it| &it["node"]["path"]);
        let folders = one["folders"].as_array().expect("folders").iter().map(|it| &it["path"]);
        seen.extend(edges.chain(folders).cloned());
        if one["pageInfo"]["hasNextPage"] != true {
            break;
        }
        after = one["pageInfo"]["endCursor"].clone();
        assert!(seen.len() < 9, "it does not end: {seen:?}");
    }
    assert_eq!(json!(seen), json!(["/a.txt", "/b/", "/d/", "/z"]));
    let plain = stage.ask("{ artifacts { folders { path } } }").await;
    assert_eq!(plain.data()["artifacts"]["folders"], Value::Null);
    let wrong = stage.ask("{ artifacts(delimiter: \"x\") { folders { path } } }").await;
    assert_eq!(wrong.code(), Some("request.invalid"));
}

#[tokio::test]
async fn c044_a_window_of_a_runs_events_is_the_same_in_rest_and_graphql() {
    let stage = Stage::start().await;
    let run = stage.finished("wharf/count", json!({"n": 5, "delay_ms": 0})).await;
    for (arguments, query) in [
        ("", ""),
        (", latest: 2", "?latest=2"),
        (", before: \"4\"", "?before=4"),
        (", types: [text, finished]", "?types=text,finished"),
        (", types: [text], latest: 2, before: \"6\"", "?types=text&latest=2&before=6"),
    ] {
        let path = format!("/v1/runs/{run}/trace{query}");
        let rest = stage.call(OWNER, "GET", &path, None).await.body["items"].clone();
        let rest = rest.as_array().expect("events");
        assert!(!rest.is_empty(), "{query}");
        let ask = format!(
            "{{ runTrace(id: \"{run}\"{arguments}) {{ seq type data run {{ status }} }} }}"
        );
        let events = stage.ask(&ask).await.data()["runTrace"].clone();
        let events = events.as_array().expect("events");
        assert_eq!(events.len(), rest.len(), "{query}");
        for (event, rest) in events.iter().zip(rest) {
            assert_eq!(event["seq"], rest["seq"].to_string(), "{query}");
            assert_eq!(event["type"], rest["event"], "{query}");
            match rest["event"].as_str() {
                Some("finished") => assert_eq!(event["run"]["status"], "succeeded"),
                _ => {
                    let mut rest = rest.clone();
                    rest.as_object_mut().expect("an object").remove("event");
                    assert_eq!(event["data"], rest, "{query}");
                }
            }
        }
    }
}

#[tokio::test]
async fn c044_a_seat_and_what_waits_for_it_are_the_same_in_rest_and_graphql() {
    let stage = Stage::start().await;
    let seat = json!({"desc": "looks on", "roles": ["lead"]});
    let made = stage.call(OWNER, "POST", "/v1/operators", Some(&seat)).await;
    let sid = made.body["sid"].as_str().expect("a seat").to_owned();
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    let input = json!({"tool": "wharf/echo", "runId": "gated", "operator": {"gate": sid}});
    stage.ask_as(OWNER, make, json!({"input": input})).await.data();
    let fields = "{ sid desc roles connected lastSeen pending person \
                  waiting { reqId kind askId runId world tool title taken } }";
    let query = format!("{{ operator(sid: \"{sid}\") {fields} }}");
    let graphql = eventually(async || {
        let shown = stage.ask(&query).await.data()["operator"].clone();
        (shown["waiting"] != json!([])).then_some(shown)
    })
    .await;
    assert_eq!(graphql["waiting"][0]["runId"], "gated", "{graphql}");
    assert_eq!(graphql["waiting"][0]["kind"], "approval", "{graphql}");
    let rest = stage.call(OWNER, "GET", &format!("/v1/operators/{sid}"), None).await.body;
    assert_same(&rest, &graphql);
    let rest = stage.call(OWNER, "GET", "/v1/operators", None).await.body;
    let all = stage.ask(&format!("{{ operators {fields} }}")).await.data()["operators"].clone();
    assert_eq!(all[0]["sid"], sid.as_str());
    assert_same(&rest["items"], &all);
    let (_, other) = stage.token(json!({"verbs": ["read", "operate"]})).await;
    let theirs = stage.ask_as(&other, "{ operators { sid } }", json!({})).await;
    assert_eq!(theirs.data()["operators"], json!([]), "seats of others are not shown");
    let refused = stage.ask_as(&other, &query, json!({})).await;
    assert_eq!(refused.code(), Some("permission.denied"));
}

#[tokio::test]
async fn c044_what_the_doctor_finds_is_the_same_in_rest_and_graphql() {
    let stage = Stage::start().await;
    let rest = stage.call(OWNER, "GET", "/v1/doctor", None).await.body;
    let query = "{ doctor { status version checks { name verdict text fixes { text command } } } }";
    let graphql = stage.ask(query).await.data()["doctor"].clone();
    assert_same(&rest, &graphql);
    assert_eq!(graphql["status"], "warn", "{graphql}");
    let disk = graphql["checks"].as_array().expect("checks").iter().find(|it| it["name"] == "disk");
    assert_eq!(disk.expect("the disk")["fixes"][0]["command"], "rm");
}

#[tokio::test]
async fn c012_a_run_says_with_which_limits_it_was_started() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) \
                { timeoutMs budgetMicro } }";
    let input = json!({"tool": "wharf/echo", "runId": "limited", "timeoutMs": "1500",
        "budgetMicro": "2500"});
    let made = stage.ask_as(OWNER, make, json!({"input": input})).await.data()["createRun"].clone();
    assert_eq!(made, json!({"timeoutMs": "1500", "budgetMicro": "2500"}));
    let rest = stage.call(OWNER, "GET", "/v1/runs/limited", None).await.body;
    assert_eq!((&rest["timeout_ms"], &rest["budget_micro"]), (&json!(1_500), &json!(2_500)));
    let input = json!({"tool": "wharf/echo", "runId": "usual"});
    let made = stage.ask_as(OWNER, make, json!({"input": input})).await.data()["createRun"].clone();
    assert_eq!(made["budgetMicro"], Value::Null, "{made}");
    let list = stage.call(OWNER, "GET", "/v1/runs", None).await.body;
    assert_eq!(list["items"][0].get("timeout_ms"), None, "lists leave it out");
}
