//! What asks for too much is refused before it costs anything.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_graphql::GraphqlLimits;

use crate::support::{OWNER, Stage, eventually};

/// The question that every client asks to learn the schema.
const INTROSPECTION: &str = "query IntrospectionQuery { __schema { queryType { name } mutationType { name }
  subscriptionType { name } types { ...FullType } directives { name locations args { ...InputValue } } } }
fragment FullType on __Type { kind name description fields(includeDeprecated: true) { name args { ...InputValue }
  type { ...TypeRef } isDeprecated } inputFields { ...InputValue } interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name } possibleTypes { ...TypeRef } }
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType {
  kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }";

#[tokio::test]
async fn t045_introspection_is_answered() {
    let stage = Stage::start().await;
    let answer = stage.ask(INTROSPECTION).await;
    let types = answer.data()["__schema"]["types"].as_array().expect("types");
    assert!(types.iter().any(|it| it["name"] == "Run"));
}

#[tokio::test]
async fn t045_what_asks_for_too_much_is_refused() {
    let stage = Stage::start().await;
    let fields =
        "runId tool world status mode durability attempt costMicro createdAt startedAt endedAt";
    let page = |alias: &str| {
        format!("{alias}: runs(first: 200) {{ edges {{ cursor node {{ {fields} }} }} }} ")
    };
    let pages = |count: usize| (0..count).map(|n| page(&format!("p{n}"))).collect::<String>();
    let aliases: String =
        (0..21).map(|n| format!("a{n}: world(id: \"lab\") {{ world }} ")).collect();
    let bomb: String =
        (0..30).map(|n| format!("fragment F{n} on Query {{ ...F{0} ...F{0} }} ", n + 1)).collect();
    assert!(stage.ask(&format!("{{ {} }}", pages(1))).await.code().is_none(), "one page is fine");
    for (query, code) in [
        (format!("{{ {} }}", pages(5)), "request.too_large"),
        (format!("{{ {aliases} }}"), "request.too_large"),
        (
            format!(
                "{{ ...F0 }} {bomb} fragment F30 on Query {{ tools {{ edges {{ cursor }} }} }}"
            ),
            "request.too_large",
        ),
        (
            format!(
                "{{ tools {{ {} }} }}",
                "edges { node { ".repeat(10) + "name" + &" } }".repeat(10)
            ),
            "request.too_deep",
        ),
        (
            format!("{{ run(id: {}1{}) {{ runId }} }}", "[".repeat(500), "]".repeat(500)),
            "request.too_deep",
        ),
        (
            format!("{{ tools {{ edges {{ cursor }} }} }} #{}", "x".repeat(70_000)),
            "request.too_large",
        ),
    ] {
        let answer = stage.ask(&query).await;
        assert_eq!((answer.status, answer.code()), (200, Some(code)), "{}", answer.body);
        assert!(answer.body["data"].is_null(), "nothing was done");
    }
}

#[tokio::test]
async fn t045_a_body_is_one_operation_as_json() {
    let stage = Stage::start().await;
    let query = json!({"query": "{ tools { edges { cursor } } }"});
    let deep =
        format!("{{\"query\": \"{{ a }}\", \"variables\": {}{}}}", "[".repeat(70), "]".repeat(70));
    let large = json!({"query": "{ a }", "variables": {"x": "x".repeat(5 * 1024 * 1024)}});
    for (kind, body, status, code) in [
        ("application/json", json!([query, query]).to_string(), 400, "request.invalid"),
        ("application/json", "{".to_owned(), 400, "request.invalid"),
        ("application/json", "7".to_owned(), 400, "request.invalid"),
        ("application/json", String::new(), 400, "request.invalid"),
        ("application/json", deep, 400, "request.too_deep"),
        ("application/json", large.to_string(), 413, "request.too_large"),
        ("text/plain", query.to_string(), 400, "request.invalid"),
        ("application/x-www-form-urlencoded", "query=x".to_owned(), 400, "request.invalid"),
        ("application/json; charset=utf-8", query.to_string(), 200, ""),
    ] {
        let answer = stage.send(OWNER, "POST /graphql", kind, body.as_bytes()).await;
        let said = answer.code().unwrap_or_default();
        assert_eq!((answer.status, said), (status, code), "{kind} {}", &body[..body.len().min(80)]);
    }
    let nobody = stage.call("", "POST", "/graphql", Some(&query)).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.body["data"], Value::Null);
}

#[tokio::test]
async fn t045_operations_beyond_the_most_at_once_wait_and_are_then_refused() {
    let limits = GraphqlLimits {
        operations_max: 1,
        query: Duration::from_millis(50),
        ..GraphqlLimits::default()
    };
    let stage = Stage::start_with(limits).await;
    let tools = "{ tool(id: \"wharf/echo\") { name } }";
    let make = "mutation { createRun(input: {tool: \"wharf/echo\", runId: \"slow\"}) { runId } }";
    stage.store.hold_commits();
    let slow = stage.ask(make);
    let other = async {
        // The mutation has the only place until what it asks for is written.
        eventually(async || (stage.store.commits_held() > 0).then_some(())).await;
        let refused = stage.ask(tools).await;
        stage.store.release_commits();
        refused
    };
    let (made, refused) = tokio::join!(slow, other);
    assert_eq!(made.data()["createRun"]["runId"], "slow");
    assert_eq!((refused.status, refused.code()), (503, Some("core.busy")), "{}", refused.body);
    eventually(async || stage.ask(tools).await.code().is_none().then_some(())).await;
}
