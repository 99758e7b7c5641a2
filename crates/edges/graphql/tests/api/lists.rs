//! Pages: every item once, from any cursor, and only what lies within reach.

use serde_json::{Value, json};

use crate::support::{OWNER, Stage, eventually};

/// Follows the pages of a list to its end.
async fn all(stage: &Stage, token: &str, list: &str, arguments: &str, node: &str) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let query = format!(
            "query ($after: String) {{ {list}(after: $after{arguments}) {{
                edges {{ cursor node {{ {node} }} }} pageInfo {{ hasNextPage endCursor }} }} }}"
        );
        let answer = stage.ask_as(token, &query, json!({"after": after})).await;
        let page = &answer.data()[list];
        let edges = page["edges"].as_array().expect("edges");
        seen.extend(edges.iter().cloned());
        let info = &page["pageInfo"];
        assert_eq!(info["endCursor"], edges.last().map_or(Value::Null, |it| it["cursor"].clone()));
        if info["hasNextPage"] != true {
            return seen;
        }
        assert!(!edges.is_empty(), "a page with more behind it is not empty");
        after = info["endCursor"].clone();
    }
}

fn names(edges: &[Value], field: &str) -> Vec<String> {
    edges.iter().map(|edge| edge["node"][field].as_str().expect("text").to_owned()).collect()
}

#[tokio::test]
async fn t045_pages_of_runs_show_each_once_and_every_cursor_goes_on_behind_its_run() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    for number in 0..7 {
        let durability = if number % 3 == 0 { "memory" } else { "journal" };
        let input =
            json!({"tool": "wharf/echo", "runId": format!("r{number}"), "durability": durability});
        stage.ask_as(OWNER, make, json!({"input": input})).await.data();
    }
    let whole = all(&stage, OWNER, "runs", ", first: 200", "runId").await;
    let ids = names(&whole, "runId");
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(sorted, ["r0", "r1", "r2", "r3", "r4", "r5", "r6"]);
    for first in 1..=7 {
        let pages = all(&stage, OWNER, "runs", &format!(", first: {first}"), "runId").await;
        assert_eq!(names(&pages, "runId"), ids, "pages of {first}");
    }
    for (place, edge) in whole.iter().enumerate() {
        let query = "query ($after: String) { runs(after: $after) { edges { node { runId } } } }";
        let rest = stage.ask_as(OWNER, query, json!({"after": edge["cursor"]})).await;
        let rest = names(rest.data()["runs"]["edges"].as_array().expect("edges"), "runId");
        assert_eq!(rest, ids[place + 1..], "behind {place}");
    }
}

#[tokio::test]
async fn t045_runs_are_filtered_by_world_tool_status_and_time() {
    let stage = Stage::start().await;
    let echo = stage.finished("wharf/echo", json!({})).await;
    let shown = stage.ask(&format!("{{ run(id: \"{echo}\") {{ createdAt }} }}")).await;
    let first = shown.data()["run"]["createdAt"].as_str().expect("a time").to_owned();
    // The next run is accepted in a later millisecond.
    let now = stage.handle.now();
    eventually(async || (stage.handle.now() > now).then_some(())).await;
    let fail = stage.finished("wharf/fail", json!({})).await;
    let shown = stage.ask(&format!("{{ run(id: \"{fail}\") {{ createdAt }} }}")).await;
    let second = shown.data()["run"]["createdAt"].as_str().expect("a time").to_owned();
    let both = vec![fail.clone(), echo.clone()];
    for (arguments, expect) in [
        (String::new(), both.clone()),
        (", world: \"default\"".to_owned(), both.clone()),
        (", world: \"lab\"".to_owned(), vec![]),
        (", tool: \"wharf/echo\"".to_owned(), vec![echo.clone()]),
        (", status: failed".to_owned(), vec![fail.clone()]),
        (", status: queued".to_owned(), vec![]),
        (format!(", since: \"{second}\""), vec![fail.clone()]),
        (format!(", until: \"{second}\""), vec![echo.clone()]),
        (format!(", since: \"{first}\", until: \"{second}\""), vec![echo.clone()]),
        (format!(", until: \"{first}\""), vec![]),
    ] {
        let seen = all(&stage, OWNER, "runs", &arguments, "runId").await;
        assert_eq!(names(&seen, "runId"), expect, "{arguments}");
    }
}

#[tokio::test]
async fn t045_lists_by_name_have_pages() {
    let stage = Stage::start().await;
    for (list, node) in [("tools", "toolId"), ("worlds", "world")] {
        let whole = names(&all(&stage, OWNER, list, ", first: 200", node).await, node);
        assert!(whole.len() >= 2 && whole.is_sorted(), "{whole:?}");
        let pages = all(&stage, OWNER, list, ", first: 1", node).await;
        assert_eq!(names(&pages, node), whole);
    }
    assert!(all(&stage, OWNER, "agents", "", "agentId").await.is_empty());
}

#[tokio::test]
async fn t045_lists_show_only_what_lies_within_reach() {
    let stage = Stage::start().await;
    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId } }";
    for world in ["default", "lab"] {
        for tool in ["wharf/echo", "wharf/ask"] {
            for number in 0..3 {
                let id = format!("{}-{world}-{number}", tool.replace('/', "-"));
                let input = json!({"tool": tool, "world": world, "runId": id});
                stage.ask_as(OWNER, make, json!({"input": input})).await.data();
            }
        }
    }
    let read = json!(["read"]);
    let (_, lab) = stage.token(json!({"verbs": read, "worlds": ["lab"]})).await;
    let (_, echo) = stage.token(json!({"verbs": read, "tools": ["wharf/echo"]})).await;
    let (_, few) =
        stage.token(json!({"verbs": read, "worlds": ["lab"], "tools": ["wharf/e*"]})).await;
    for (token, count, fits) in
        [(&lab, 6, "-lab-"), (&echo, 6, "wharf-echo-"), (&few, 3, "wharf-echo-lab-")]
    {
        for first in [1, 2, 200] {
            let seen = all(&stage, token, "runs", &format!(", first: {first}"), "runId").await;
            let ids = names(&seen, "runId");
            assert_eq!(ids.len(), count, "{ids:?}");
            assert!(ids.iter().all(|id| id.contains(fits)), "{ids:?}");
        }
    }
    let worlds = all(&stage, &lab, "worlds", "", "world").await;
    assert_eq!(names(&worlds, "world"), ["lab"]);
    assert!(all(&stage, &few, "inbox", "", "askId").await.is_empty());
}
