//! Runs that write one path at the same time.

use serde_json::{Value, json};

use super::files;
use crate::support::{Api, Core, TestHome, client, wait_for};

const ROUNDS: usize = 12;
const WRITERS: usize = 4;

/// Starts runs at the same moment that write one file each under the same path.
fn start_together(core: &Core, world: &str, path: &str) -> Vec<(String, String)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (client, url) = (client(core), format!("{}/v1/runs?wait=30s", core.url()));
    let runs = (0..WRITERS).map(|writer| {
        let id = format!("{}by{writer}", path.trim_start_matches('/'));
        // Different lengths, and long enough that two of them could be mixed up.
        let text = format!("{id} ").repeat(10_000 + writer);
        let body = json!({
            "tool": "wharf/echo", "world": world, "run_id": id,
            "inputs": {"text": text}, "outputs": {"text.world": path},
        });
        let sent = client.post(&url).json(&body).send();
        async move {
            let run: Value = sent.await.expect("an answer").json().await.expect("JSON");
            assert_eq!(run["status"], "succeeded", "{run}");
            (id, text)
        }
    });
    runtime.expect("a runtime").block_on(futures::future::join_all(runs))
}

/// After several have written one path the file is one of those written, whole; the trace knows
/// all of them with what each wrote, and what the index says of the file is true of its bytes.
fn race(core: &Core, world: &str, path: &str) {
    let wrote = start_together(core, world, path);
    let api = Api::of(core);
    let read = || api.bytes(&format!("/v1/worlds/{world}/files{path}"));
    let (status, body) = read();
    let text = String::from_utf8(body).expect("text");
    let there = wrote.iter().find(|(_, written)| *written == text);
    let (there, _) = there.unwrap_or_else(|| panic!("{path}: {status}, {} bytes", text.len()));
    let about = |id: Option<&str>, text: &str| {
        let b3 = blake3::hash(text.as_bytes()).to_hex().to_string();
        json!([id, text.len(), b3])
    };
    let row = |row: &Value| json!([row["run_id"], row["bytes"], row["b3"]]);
    // Who came last to the store need not come last to the index. Whoever reads the file then
    // sets that right, and may do so before the writer is on record.
    let mended = about(None, &text);
    let listed = wait_for("the index to say what is there", || {
        assert_eq!(read().1, text.as_bytes(), "nobody writes any more");
        let listed = api.get(&format!("/v1/worlds/{world}/artifacts?prefix={path}"));
        let rows: Vec<_> = listed["items"].as_array().expect("a list").iter().map(row).collect();
        assert_eq!(rows.len(), 1, "{listed}");
        [about(Some(there), &text), mended.clone()].contains(&rows[0]).then(|| rows[0].clone())
    });
    let trace = api.get(&format!("/v1/worlds/{world}/trace?path={path}"));
    let mut known: Vec<_> = trace["written"].as_array().expect("a list").iter().map(row).collect();
    assert!(wrote.iter().all(|(id, text)| known.contains(&about(Some(id), text))), "{trace}");
    // A record that was set right stands there once more.
    known.retain(|row| *row != mended);
    known.sort_by_key(Value::to_string);
    known.dedup();
    assert_eq!(known.len(), WRITERS, "{listed}: {trace}");
}

#[test]
fn t040_runs_that_write_one_path_leave_one_of_their_files() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "staged", "--publish", "staged"]).code(0);
    for world in ["default", "staged"] {
        for round in 0..ROUNDS {
            race(&core, world, &format!("/one{round}"));
        }
        assert_eq!(files(&Api::of(&core), world, "/").len(), ROUNDS);
    }
}
