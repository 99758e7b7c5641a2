//! What the core says of itself.

use std::sync::Arc;

use serde_json::json;
use wharf_http::{CoreStatus, Vitals};

use crate::support::Edge;

#[tokio::test]
async fn c019_the_core_says_what_it_is_and_has() {
    let watched = Edge::start().await;
    let vitals = Arc::new(|| Vitals { memory_bytes: Some(7), ..Vitals::default() });
    let handle = watched.handle.clone();
    let status = CoreStatus::begin(handle, "h0me".to_owned(), Some("n-1".to_owned()), vitals);
    let edge = Edge::start_with(|options| options.status = Some(status)).await;
    let shown = edge.get("/v1/system").await.json();
    assert_eq!((&shown["home_id"], &shown["node"]), (&json!("h0me"), &json!("n-1")));
    assert_eq!((&shown["memory_bytes"], &shown["runs_open"]), (&json!(7), &json!(0)));
    assert!(shown.get("database_bytes").is_none(), "{shown}");
    assert_eq!(shown["queues"][0]["name"], "inputs");
    let series = edge.get("/v1/system/series?range=24h").await.json();
    assert_eq!((&series["range"], &series["step_ms"]), (&json!("24h"), &json!(60_000)));
    let series = edge.get("/v1/system/series").await.json();
    assert_eq!((&series["range"], &series["step_ms"]), (&json!("1h"), &json!(10_000)));
    edge.get("/v1/system/series?range=2h").await.refused(400, "request.invalid");
    let narrow = edge.token(json!({"verbs": ["read"], "worlds": ["default"]})).await;
    let narrow = narrow["token"].as_str().expect("a token");
    for path in ["/v1/system", "/v1/system/series"] {
        edge.call_as(narrow, "GET", path).send().await.refused(403, "permission.denied");
    }
}
