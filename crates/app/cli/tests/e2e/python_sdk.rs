//! The Python package and the tools written with it: their own tests, against this program.

use std::path::{Path, PathBuf};

use crate::agents::has_python;
use crate::children::{Finish as _, command};

/// Runs a part of a folder's tests and insists that there are some, and that none is left out.
#[track_caller]
fn passes(folder: &str, module: &str) {
    if has_python() {
        passes_by(Path::new("python3"), folder, module);
    }
}

/// The same, by another interpreter.
#[track_caller]
fn passes_by(python: &Path, folder: &str, module: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..").join(folder);
    let mut command = command(python);
    // Compiled files would be new files in folders whose files are pinned.
    command.args(["-B", "-m", "unittest", module]).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WHARF_") {
            command.env_remove(name);
        }
    }
    command.env("WHARF_BIN", env!("CARGO_BIN_EXE_wharf"));
    let output = command.finish();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{module}: {said}");
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")).expect("a count");
    assert!(!ran.starts_with("0 ") && !said.contains("skipped"), "{module}: {said}");
}

#[test]
fn k033_python_tools_take_and_give_what_their_functions_say() {
    let modules = ["schema", "docstring", "cost", "tool", "running", "manifest", "describe"];
    for module in modules.iter().chain(&["trial", "guide"]) {
        passes("sdks/python", &format!("tests.test_{module}"));
    }
}

#[test]
fn k005_python_tools_take_models_of_pydantic() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    // The peers of MCP have it installed; nothing else of this repository needs it.
    let python = root.join("target/mcp-peers/py/bin/python");
    if !python.exists() {
        return wharf_skips::skip("the peers of MCP are not installed (scripts/setup.sh check)");
    }
    passes_by(&python, "sdks/python", "tests.test_pydantic");
}

#[test]
fn k033_python_programs_offer_tools_and_call_them_over_a_connection() {
    for module in ["wire", "operative", "principal"] {
        passes("sdks/python", &format!("tests.test_{module}"));
    }
}

#[test]
fn k033_python_operatives_and_principals_meet_a_real_core() {
    passes("sdks/python", "tests.test_peers");
}

#[test]
fn k033_the_python_client_meets_a_real_core() {
    passes("sdks/python", "tests.test_client");
}

#[test]
fn k033_agents_in_python_keep_the_protocol_and_work_fenced_in() {
    passes("sdks/python", "tests.test_agent");
}

#[test]
fn k033_pip_installs_the_python_package() {
    passes("sdks/python", "tests.test_package");
}

#[test]
fn t046_the_example_tools_pass_their_own_tests() {
    passes("sdks/python", "tests.test_examples");
    passes("examples/tools/llm/litellm/1", "tests.test_litellm");
}
