//! GraphQL with the real program and the Python library `gql`.

use std::path::Path;

use serde_json::json;

use crate::children::{Finish as _, command};
use crate::support::{Api, TestHome};

#[test]
fn t045_a_client_library_makes_a_run_with_files_and_follows_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../../target/tools/python/bin/python");
    if !python.exists() {
        return wharf_skips::skip("the Python client is missing: run scripts/setup.sh check");
    }
    let home = TestHome::new();
    let core = home.up();
    home.run_with(b"hello", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let made = home.run(&["token", "create", "--verb", "read", "--ttl", "1h"]).code(0);
    let reader = made.stdout.trim();
    let done = command(python)
        .arg(here.join("tests/e2e/graphql_client.py"))
        .args([&format!("{}/graphql", core.url()), &core.token(), reader])
        .finish();
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("all good"), "{said}{errors}{}", home.log());
    let written = home.run(&["worlds", "get", "default", "/out.txt", "-"]).code(0);
    assert!(written.stdout.contains("hello"), "{written:#?}");
    let shown = home.run(&["runs", "show", "copy", "--json"]).code(0).json();
    assert_eq!(shown["status"], "succeeded", "{shown}");
}

#[test]
fn t045_tool_servers_are_no_agents() {
    let home = TestHome::new();
    let core = home.up();
    let folder = crate::tool_servers::manifest("ns/far@1", "url = \"ws://127.0.0.1:9/run\"");
    crate::tool_servers::add(&home, folder.path());
    let api = Api::of(&core);
    let query = "{ agents { edges { node { agentId } } } tool(id: \"ns/far@1\") { name } }";
    let (status, answer) = api.ask("POST", "/graphql", &json!({"query": query}));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"]["agents"]["edges"], json!([]), "{answer}");
    assert!(answer["data"]["tool"]["name"].is_string(), "it is there all the same: {answer}");
    assert_eq!(api.get("/v1/agents")["items"], json!([]), "as in REST");
}
