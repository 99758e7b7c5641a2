//! The API by a client that others made: the Python library `gql`.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::support::{OWNER, Stage};

#[tokio::test]
async fn t045_a_real_client_library_asks_pages_and_follows() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../../target/tools/python/bin/python");
    if !python.exists() {
        return wharf_skips::skip("the Python client is missing: run scripts/setup.sh check");
    }
    let stage = Stage::start().await;
    let script = Command::new(python)
        .arg(here.join("tests/api/client.py"))
        .args([&format!("http://{}/graphql", stage.addr()), OWNER])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = script.await.expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("all good"), "{said}{errors}");
}
