//! `cargo xtask test`: builds all tests and runs them.
//!
//! - The tests are built by clippy's compiler, so that what is linted is what is run and nothing is
//!   compiled twice: not our crates, and not what they depend on, which `cargo clippy` only checks.
//! - Tests wait more than they work, so twice as many run at once as there are cores.
//! - The end-to-end tests come last and alone: they start whole cores, and a machine that is busy
//!   with other tests is one that they find faults of their own in.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::repo::Repo;

/// As `cargo clippy -- -D warnings` hands it on.
const LINT_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The one target that runs after the others, and everything else as cargo can name it: it knows
/// patterns, but no way to leave one out.
const LAST: &[&str] = &["--test", "e2e"];
const OTHERS: &[&str] = &["--lib", "--bins", "--test", "[!e]*", "--test", "e[!2]*"];

/// Runs everything, and says whether all of it is good.
pub(crate) fn run(repo: &Repo, out: &mut dyn Write) -> Result<bool> {
    let begin = Instant::now();
    let step = |out: &mut dyn Write, what: &str| {
        writeln!(out, "==> {what} (after {} s)", begin.elapsed().as_secs())
    };
    step(out, "lints, and the tests are built")?;
    for what in [&[], OTHERS] {
        let built = cargo(repo, what).arg("--no-run").status().context("failed to start cargo")?;
        if !built.success() {
            return Ok(false);
        }
    }
    step(out, "tests")?;
    let others = cargo(repo, OTHERS)
        .env("RUST_TEST_THREADS", threads())
        .status()
        .context("failed to start cargo")?;
    let examples = cargo(repo, &["--doc"]).status().context("failed to start cargo")?;
    step(out, "end-to-end tests")?;
    let last = cargo(repo, LAST).status().context("failed to start cargo")?;
    step(out, "all tests have run")?;
    Ok(others.success() && examples.success() && last.success())
}

/// How many tests run at once, as text; whoever starts this may say it.
fn threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| (2 * cores).to_string())
}

fn cargo(repo: &Repo, what: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--quiet", "--locked", "--no-fail-fast", "--workspace"]).args(what);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", LINT_ARGS);
    // Where nothing will be built a second time, keeping notes for that only costs.
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command.current_dir(repo.path(""));
    command
}
