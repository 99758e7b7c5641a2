//! The API document of the real program, read and tried by tools that others made.

use std::path::{Path, PathBuf};

use crate::children::{BUILD, Finish as _, command};
use crate::support::{Api, Core, TestHome};

/// Where `scripts/setup.sh check` puts what tests use.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools")
}

fn settings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/openapi")
}

/// The document of a core, in a file.
fn document(home: &TestHome, core: &Core) -> PathBuf {
    let file = home.path().join("openapi.json");
    let (status, text) = Api::of(core).bytes("/openapi.json");
    assert_eq!(status, 200);
    std::fs::write(&file, text).expect("written");
    file
}

#[test]
fn a_linter_finds_nothing_in_the_document() {
    let redocly = tools().join("openapi/node_modules/.bin/redocly");
    if !redocly.exists() {
        return wharf_skips::skip("redocly is missing: run scripts/setup.sh check");
    }
    let home = TestHome::new();
    let core = home.up();
    let document = document(&home, &core);
    let done = command(redocly)
        .args(["lint", "--format", "json", "--config"])
        .arg(settings().join("redocly.yaml"))
        .arg(document)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .finish_within(BUILD);
    let said = String::from_utf8_lossy(&done.stdout);
    let report = said.find('{').and_then(|begin| serde_json::from_str(&said[begin..]).ok());
    let report: serde_json::Value = report.unwrap_or_else(|| panic!("no report: {said}"));
    let totals = &report["totals"];
    assert_eq!((&totals["errors"], &totals["warnings"]), (&0.into(), &0.into()), "{report:#}");
    assert!(done.status.success(), "{said}");
}

#[test]
fn a_tester_of_apis_finds_that_the_core_keeps_to_its_document() {
    let schemathesis = tools().join("python/bin/schemathesis");
    if !schemathesis.exists() {
        return wharf_skips::skip("schemathesis is missing: run scripts/setup.sh check");
    }
    let home = TestHome::new();
    let core = home.up();
    let document = document(&home, &core);
    let done = command(schemathesis)
        .arg("--config-file")
        .arg(settings().join("schemathesis.toml"))
        .arg("run")
        .arg(document)
        .args([
            "--url",
            &core.url(),
            "--header",
            &format!("Authorization: Bearer {}", core.token()),
        ])
        // Few examples, the same each time: what is tried here is the document.
        .args(["--phases", "coverage", "--max-examples", "1", "--seed", "1"])
        .args(["--continue-on-failure", "--no-color", "--workers", "1"])
        .current_dir(home.path())
        .finish_within(BUILD);
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}{errors}{}", home.log());
    assert!(said.contains("Tested:") || said.contains("generated"), "{said}");
}
