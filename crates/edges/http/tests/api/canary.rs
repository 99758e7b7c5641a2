//! Nothing that is secret or a payload leaves the journal: not in logs, metrics or audit.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::client::Call;
use crate::support::{Edge, TOKEN, bearer, eventually};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("not poisoned")).into_owned()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

const CANARY: &str = "c4n4ry-5f1e";

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_payloads_stay_where_they_belong() {
    let logs = Captured::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(logs.clone())
        .init();
    let edge = Edge::start().await;

    // Inputs, outputs, progress, errors of tools.
    let run = edge.run("wharf/echo", json!({"secret": CANARY, CANARY: 1})).await;
    assert!(run.text().contains(CANARY), "the journal keeps it");
    edge.run("wharf/fail", json!({"message": CANARY})).await;
    edge.run("wharf/count", json!({"n": CANARY})).await;
    edge.run("wharf/approve-me", json!({"wrong": CANARY})).await;

    // Questions, answers, reasons.
    let asking = edge.begin("wharf/ask", json!({"question": CANARY})).await;
    let ask = eventually(async || {
        let page = edge.get("/v1/inbox").await.json();
        page["items"][0]["ask_id"].as_str().map(str::to_owned)
    })
    .await;
    let path = format!("/v1/questions/{ask}/answer");
    assert_eq!(edge.post(&path, json!({"value": [CANARY]})).await.status, 422);
    assert_eq!(edge.post(&path, json!({"value": CANARY})).await.status, 204);
    edge.until(&asking, "succeeded").await;
    let sleeping = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    edge.post(&format!("/v1/runs/{sleeping}/cancel"), json!({"reason": CANARY})).await;
    edge.until(&sleeping, "canceled").await;

    // Tokens, right and wrong, and requests that make no sense.
    let call = |path: &str| Call::new(edge.server.addr(), "GET", path);
    call("/v1/runs").header("authorization", &format!("Bearer {CANARY}")).send().await;
    call(&format!("/{CANARY}")).header("authorization", &bearer()).send().await;
    call(&format!("/v1/runs?cursor={CANARY}")).header("authorization", &bearer()).send().await;
    call("/v1/runs").header("host", CANARY).send().await;
    call("/v1/runs").header("origin", &format!("http://{CANARY}")).send().await;
    let body = format!("{{\"tool\": \"wharf/echo\", {CANARY}").into_bytes();
    edge.call("POST", "/v1/runs").bytes(body).send().await;
    let body = format!("{{\"tool\": \"wharf/echo\", \"mode\": \"{CANARY}\"}}").into_bytes();
    edge.call("POST", "/v1/runs").bytes(body).send().await;

    // Tickets, right and wrong, wherever they stand in an address.
    let made = edge.post("/v1/tickets", json!({})).await.json();
    let ticket = made["ticket"].as_str().expect("a ticket").to_owned();
    let events = format!("/v1/runs/{asking}/events?ticket={ticket}");
    assert_eq!(call(&events).send().await.status, 200);
    assert_eq!(call(&events).send().await.status, 401);
    call(&format!("/v1/runs?ticket={ticket}")).header("authorization", &bearer()).send().await;
    call(&format!("/{CANARY}?ticket={ticket}")).send().await;

    let metrics = edge.get("/metrics").await.text();
    let audit = edge.get("/v1/audit?limit=200").await;
    assert!(audit.json()["items"].as_array().is_some_and(|items| items.len() > 10));
    let logs = logs.text();
    assert!(logs.contains("answered"), "the log says something");
    for (name, text) in [("log", logs), ("metrics", metrics), ("audit", audit.text())] {
        for secret in [CANARY, TOKEN, &ticket] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} stands in the {name}");
        }
    }
}
