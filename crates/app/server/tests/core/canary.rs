//! Neither payloads nor tokens leave a whole core by its logs, its metrics or its audit.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Place, ask, get, run};

const CANARY: &str = "c4n4ry-77aa";

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

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

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_payloads_stay_in_the_journal() {
    let logs = Captured::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(logs.clone())
        .init();
    let place = Place::new();
    let core = place.start().await;
    let token = core.owner_token().to_owned();
    let kept = run(&core, "wharf/echo", json!({"secret": CANARY})).await;
    assert_eq!(kept["outputs"]["secret"], CANARY);
    run(&core, "wharf/fail", json!({"message": CANARY})).await;
    let wrong = json!({"tool": "wharf/count", "inputs": {"n": CANARY}});
    assert_eq!(ask(&core, "POST", "/v1/runs", &wrong).await.0, 422);
    let key = json!({"tool": "wharf/echo", "idempotency_key": CANARY});
    assert_eq!(ask(&core, "POST", "/v1/runs?wait=20s", &key).await.0, 200);

    let audit = get(&core, "/v1/audit?limit=200").await.to_string();
    let (_, metrics) = ask(&core, "GET", "/metrics", &Value::Null).await;
    core.stop().await.expect("stops");
    place.start().await.stop().await.expect("stops");
    let logs = String::from_utf8_lossy(&logs.0.lock().expect("not poisoned")).into_owned();
    assert!(logs.contains("answered"), "the log says something");
    for (name, text) in [("log", logs), ("metrics", metrics), ("audit", audit)] {
        for secret in [CANARY, &token] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} stands in the {name}");
        }
    }
    // What lies beside the database holds no payload either, and the token only where it belongs.
    for entry in std::fs::read_dir(place.path().join("run")).expect("there").flatten() {
        if !entry.file_type().expect("known").is_file() {
            continue;
        }
        let content = std::fs::read(entry.path()).expect("readable");
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains(CANARY), "{:?}", entry.path());
        assert_eq!(content.contains(&token), entry.file_name() == "owner.token");
    }
}
