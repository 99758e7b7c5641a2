//! The inbox, answers and decisions.

use serde_json::{Value, json};

use crate::support::{Edge, eventually};

impl Edge {
    async fn ask_of(&self, run: &str) -> Value {
        eventually(async || {
            let page = self.get("/v1/inbox").await.json();
            page["items"].as_array()?.iter().find(|ask| ask["run_id"] == run).cloned()
        })
        .await
    }
}

fn id(ask: &Value) -> &str {
    ask["ask_id"].as_str().expect("an id")
}

#[tokio::test]
async fn a_question_is_answered_once_with_what_fits() {
    let edge = Edge::start().await;
    let inputs = json!({"question": "How many?", "schema": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
    let run = edge.begin("wharf/ask", inputs.clone()).await;
    let ask = edge.ask_of(&run).await;
    assert_eq!((&ask["kind"], &ask["title"]), (&json!("question"), &json!("How many?")));
    assert_eq!((&ask["schema"], &ask["audience"]), (&inputs["schema"], &json!("any")));
    assert_eq!((&ask["tool"], &ask["world"]), (&json!("wharf/ask"), &json!("default")));
    let shown = edge.until(&run, "waiting").await;
    assert_eq!(shown["ask"], ask);

    let path = format!("/v1/questions/{}/answer", id(&ask));
    let wrong = edge.post(&path, json!({"value": {"n": "c4nary"}})).await;
    let error = wrong.refused(422, "ask.answer_invalid");
    assert_eq!(error["details"]["path"], "/n");
    assert!(!error.to_string().contains("c4nary"));
    edge.post(&path, json!({})).await.refused(400, "request.invalid");
    edge.post(&path, json!({"value": 1, "status": "declined"}))
        .await
        .refused(400, "request.invalid");
    edge.post(&path, json!({"status": "maybe"})).await.refused(400, "request.invalid");
    let decide = format!("/v1/approvals/{}/decide", id(&ask));
    edge.post(&decide, json!({"decision": "allow"})).await.refused(422, "ask.answer_invalid");

    let answer = edge.post(&path, json!({"value": {"n": 3}})).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    edge.post(&path, json!({"value": {"n": 4}})).await.refused(409, "ask.decided");
    let run = edge.until(&run, "succeeded").await;
    assert_eq!(run["outputs"], json!({"status": "answered", "answer": {"n": 3}}));
    assert_eq!(run.get("ask"), None);
    assert_eq!(edge.get("/v1/inbox").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_question_can_end_without_an_answer() {
    let edge = Edge::start().await;
    for (body, outputs) in [
        (json!({"status": "declined"}), json!({"status": "declined"})),
        (json!({"status": "cancelled"}), json!({"status": "cancelled"})),
        (
            json!({"status": "off_script", "text": "why?"}),
            json!({"status": "off_script", "answer": "why?"}),
        ),
    ] {
        let run = edge.begin("wharf/ask", json!({})).await;
        let ask = edge.ask_of(&run).await;
        let path = format!("/v1/questions/{}/answer", id(&ask));
        assert_eq!(edge.post(&path, body).await.status, 204);
        assert_eq!(edge.until(&run, "succeeded").await["outputs"], outputs);
    }
}

#[tokio::test]
async fn an_approval_shows_the_files_that_the_run_is_bound_to() {
    let edge = Edge::start().await;
    edge.put("/order.txt", b"pay 1 to alice").await;
    let run = edge.begin("wharf/approve-me", json!({"purpose.world": "/order.txt"})).await;
    edge.put("/order.txt", b"pay 1000000 to mallory").await;
    let ask = edge.ask_of(&run).await;
    let expect = json!([{"name": "purpose", "path": "/order.txt", "bytes": 14,
        "b3": crate::files::b3(b"pay 1 to alice"), "media_type": "text/plain; charset=utf-8"}]);
    assert_eq!(ask["files"], expect);
    let plain = edge.begin("wharf/approve-me", json!({})).await;
    assert_eq!(edge.ask_of(&plain).await.get("files"), None);
}

#[tokio::test]
async fn an_approval_lets_the_run_go_on_or_ends_it() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/approve-me", json!({"purpose": "test"})).await;
    let ask = edge.ask_of(&run).await;
    assert_eq!((&ask["kind"], &ask["audience"]), (&json!("approval"), &json!("person")));
    assert_eq!(ask["args_digest"].as_str().map(str::len), Some(64));
    let path = format!("/v1/approvals/{}/decide", id(&ask));
    edge.post(&path, json!({"decision": "maybe"})).await.refused(400, "request.invalid");
    assert_eq!(edge.post(&path, json!({"decision": "allow"})).await.status, 204);
    edge.post(&path, json!({"decision": "deny"})).await.refused(409, "ask.decided");
    assert_eq!(edge.until(&run, "succeeded").await["outputs"]["approved"], true);

    let run = edge.begin("wharf/approve-me", json!({})).await;
    let ask = edge.ask_of(&run).await;
    let path = format!("/v1/approvals/{}/decide", id(&ask));
    let deny = json!({"decision": "deny", "reason": "Not today."});
    assert_eq!(edge.post(&path, deny).await.status, 204);
    let run = edge.until(&run, "refused").await;
    assert_eq!(run["error"]["code"], "ask.denied");
    edge.post("/v1/approvals/00nothing/decide", json!({"decision": "allow"}))
        .await
        .refused(404, "ask.not_found");
}

#[tokio::test]
async fn the_inbox_has_pages_and_filters() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    let mut runs = Vec::new();
    for (tool, world, durability) in [
        ("wharf/ask", "default", "journal"),
        ("wharf/approve-me", "lab", "journal"),
        ("wharf/ask", "lab", "memory"),
        ("wharf/ask", "default", "memory"),
    ] {
        let body = json!({"tool": tool, "world": world, "durability": durability});
        let answer = edge.post("/v1/runs", body).await;
        let run = answer.json()["run_id"].as_str().expect("an id").to_owned();
        edge.ask_of(&run).await;
        runs.push(run);
    }
    let list = async |query: &str, limit: usize| {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/inbox?limit={limit}{query}{cursor}");
            let page = edge.get(&path).await.json();
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= limit);
            for item in items {
                let at = runs.iter().position(|run| item["run_id"] == *run).expect("known");
                found.push(at);
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => {
                    // Two asks in memory of one millisecond have no order.
                    let memory = found.iter().take_while(|at| **at >= 2).count();
                    found[..memory].sort_unstable();
                    return found;
                }
            }
        }
    };
    for limit in [1, 2, 3, 200] {
        assert_eq!(list("", limit).await, [2, 3, 0, 1], "{limit}");
        assert_eq!(list("&kind=question", limit).await, [2, 3, 0], "{limit}");
        assert_eq!(list("&kind=approval", limit).await, [1], "{limit}");
        assert_eq!(list("&world=lab", limit).await, [2, 1], "{limit}");
    }
}
