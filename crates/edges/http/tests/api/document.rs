//! The API document and the metrics.

use serde_json::{Value, json};

use crate::support::Edge;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "PATCH"];

#[tokio::test]
async fn the_document_names_exactly_the_methods_that_are_taken() {
    let edge = Edge::start().await;
    let document = edge.get("/openapi.json").await.json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() >= 24, "{}", paths.len());
    for (path, methods) in paths {
        let real = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let real = real.collect::<Vec<_>>().join("/");
        for method in METHODS {
            if (method, path.as_str()) == ("GET", "/v1/changes") {
                // It does not end.
                edge.call(method, &real).open_events().await;
                assert!(methods.get("get").is_some());
                continue;
            }
            let answer = edge.call(method, &real).send().await;
            let documented = methods.get(method.to_ascii_lowercase()).is_some();
            assert_eq!(answer.status != 405, documented, "{method} {path}: {}", answer.status);
            if answer.status == 404 {
                assert_ne!(answer.code(), "request.route_unknown", "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn the_document_is_whole() {
    let edge = Edge::start().await;
    let document = edge.get("/openapi.json").await.json();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("a reference into the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let mut names = std::collections::BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            assert!(operation["responses"].is_object(), "{method} {path}");
            let name = operation["operationId"].as_str().expect("an id");
            assert!(names.insert(name), "{name} stands for two operations");
            for name in path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let name = name.trim_end_matches('}');
                let known = operation["parameters"].as_array().is_some_and(|all| {
                    all.iter().any(|one| one["name"] == name && one["in"] == "path")
                });
                assert!(known, "{method} {path} does not describe {name}");
            }
        }
    }
    assert_eq!(document["security"], json!([{"token": []}]));
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    for schema in [
        "CreateRun",
        "Run",
        "Ask",
        "Tool",
        "Agent",
        "AgentLogLine",
        "World",
        "ErrorBody",
        "FinishedEvent",
    ] {
        assert!(document["components"]["schemas"][schema].is_object(), "{schema} is missing");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str() {
                    Some(text) if key == "$ref" => references.push(text.to_owned()),
                    _ => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test]
async fn every_metric_says_what_it_means() {
    let edge = Edge::start().await;
    edge.run("wharf/echo", json!({})).await;
    let text = edge.get("/metrics").await.text();
    let named = |kind: &str| -> std::collections::BTreeSet<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(kind));
        lines.filter_map(|line| line.split(' ').next()).collect()
    };
    let (types, helps) = (named("# TYPE "), named("# HELP "));
    assert!(types.len() > 5, "{text}");
    assert_eq!(types.difference(&helps).collect::<Vec<_>>(), [&""; 0]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let unknown: Vec<_> = types
        .iter()
        .filter(|name| {
            !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}{{"))
        })
        .collect();
    assert_eq!(unknown, [&""; 0], "every metric that is served stands in the table");
    let quantiles: Vec<_> = text.lines().filter(|line| line.contains("quantile=")).collect();
    assert_eq!(quantiles, [""; 0], "histograms have steps");
}

#[tokio::test]
async fn a_token_for_metrics_reads_metrics_and_nothing_else() {
    let edge = Edge::start().await;
    let made = edge.post("/v1/tokens", json!({"verbs": ["metrics"]})).await.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let get = async |path: &str| edge.call_as(&token, "GET", path).send().await;
    assert_eq!(get("/metrics").await.status, 200);
    for path in ["/v1/runs", "/v1/tools", "/v1/worlds", "/openapi.json", "/v1/costs", "/v1/inbox"] {
        get(path).await.refused(403, "permission.denied");
    }
    let narrow = json!({"verbs": ["metrics"], "worlds": ["default"]});
    let made = edge.post("/v1/tokens", narrow).await.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let answer = edge.call_as(&token, "GET", "/metrics").send().await;
    answer.refused(403, "permission.denied");
}

#[tokio::test]
async fn requests_are_counted_by_route_and_nothing_else() {
    let edge = Edge::start().await;
    let run = edge.run("wharf/echo", json!({})).await.json();
    let run = run["run_id"].as_str().expect("an id").to_owned();
    edge.get(&format!("/v1/runs/{run}")).await;
    edge.get("/v1/runs/no-such-run-c4nary").await;
    edge.get("/c4nary").await;
    edge.call("C4NARY", "/v1/runs").send().await;
    let text = edge.get("/metrics").await.text();
    for line in [
        r#"wharf_http_requests_total{method="GET",route="/v1/runs/{run_id}",status="200"}"#,
        r#"wharf_http_requests_total{method="GET",route="/v1/runs/{run_id}",status="404"}"#,
        r#"wharf_http_requests_total{method="GET",route="unmatched",status="404"}"#,
        r#"wharf_http_requests_total{method="other",route="/v1/runs",status="405"}"#,
        r#"wharf_http_request_seconds_bucket{route="/v1/runs",le="0.001"}"#,
        "wharf_http_connections",
        "wharf_runs_open",
        "wharf_runs_created_total",
        r#"wharf_runs_ended_total{tool="wharf/echo",world="default",status="succeeded"}"#,
        r#"wharf_run_seconds_bucket{tool="wharf/echo",le="0.005"}"#,
        r#"wharf_run_cost_micro_total{tool="wharf/echo",world="default"}"#,
        r#"wharf_world_spent_micro{world="default"}"#,
        r#"wharf_provider_state{provider="wharf",kind="builtin",state="running"} 1"#,
        "wharf_asks_open 0",
        "wharf_build_info",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains(&run) && !text.to_ascii_lowercase().contains("c4nary"), "{text}");
}
