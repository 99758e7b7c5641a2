//! `cargo xtask test`: builds all tests and runs them.
//!
//! - The tests are built by clippy's compiler, so that what is linted is what is run and nothing is
//!   compiled twice: not our crates, and not what they depend on, which `cargo clippy` only checks.
//! - Tests wait more than they work, so twice as many run at once as there are cores. Cargo runs one
//!   program of tests after another, and the last tests of each have the machine to themselves; so
//!   those beside the code, those of whole crates and those in documents run side by side.
//! - The end-to-end tests come last and alone: they start whole cores, and a machine that is busy
//!   with other tests is one that they find faults of their own in.
//! - A run in which nothing ends any more is ended, and what stood still is named.
//! - Tests start programs and press Ctrl-C on them. What is started in the background ignores that,
//!   and so would every program below it: tests are started with the default.

mod processes;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};

use crate::repo::Repo;

/// As `cargo clippy -- -D warnings` hands it on.
const LINT_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The one target that runs after the others, and everything else as cargo can name it: it knows
/// patterns, but no way to leave one out.
const LAST: &[&str] = &["--test", "e2e"];
/// Those of the last that show what a store must keep: they run on the other one as well.
const ONCE_MORE: &[&str] =
    &["schedules::", "notifications::", "flows::", "purge::", "withheld::", "costs::", "worlds::"];
/// Where the PostgreSQL is that tests start.
const POSTGRES: &str = "/usr/lib/postgresql";
const BESIDE_CODE: &[&str] = &["--lib", "--bins"];
const OF_CRATES: &[&str] = &["--test", "[!e]*", "--test", "e[!2]*"];

/// Runs everything, and says whether all of it is good.
pub(crate) fn run(repo: &Repo, out: &mut dyn Write) -> Result<bool> {
    let begin = Instant::now();
    let step = |out: &mut dyn Write, what: &str| {
        writeln!(out, "==> {what} (after {} s)", begin.elapsed().as_secs())
    };
    step(out, "lints, and the tests are built")?;
    for what in [&[], &[BESIDE_CODE, OF_CRATES].concat()[..]] {
        let built = cargo(repo, what).arg("--no-run").status().context("failed to start cargo")?;
        if !built.success() {
            return Ok(false);
        }
    }
    step(out, "tests")?;
    let others = side_by_side(repo, out)?;
    step(out, "end-to-end tests")?;
    let last = watch::run(&mut tests(repo, LAST), out)?;
    let once_more = match Path::new(POSTGRES).exists() {
        true => {
            step(out, "some of them once more, on PostgreSQL and S3")?;
            watch::run(tests(repo, LAST).args(ONCE_MORE).env("WHARF_TESTS_STORE", "postgres"), out)?
        }
        // The tests before have said that they were left out.
        false => true,
    };
    step(out, "all tests have run")?;
    Ok(others && last && once_more)
}

/// Runs all but the end-to-end tests. What those of whole crates say is told as it comes, what the
/// others say when they are done.
fn side_by_side(repo: &Repo, out: &mut dyn Write) -> Result<bool> {
    let run = |what: &[&str], out: &mut dyn Write| {
        watch::run(tests(repo, what).env("RUST_TEST_THREADS", threads()), out)
    };
    std::thread::scope(|scope| {
        let aside = [BESIDE_CODE, &["--doc"]].map(|what| {
            scope.spawn(move || {
                let mut told = Vec::new();
                run(what, &mut told).map(|good| (good, told))
            })
        });
        let mut all_good = run(OF_CRATES, out)?;
        for other in aside {
            let done = other.join().map_err(|_| anyhow!("a run of tests was given up"))?;
            let (good, told) = done?;
            out.write_all(&told)?;
            all_good &= good;
        }
        Ok(all_good)
    })
}

/// How many tests run at once, as text; whoever starts this may say it.
fn threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| (2 * cores).to_string())
}

/// Runs tests that say of each how it ended, a line for each.
fn tests(repo: &Repo, what: &[&str]) -> Command {
    let mut command = cargo(repo, what);
    command.args(["--", "--format=pretty"]);
    command
}

fn cargo(repo: &Repo, what: &[&str]) -> Command {
    let mut command = heeding_keys(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--quiet", "--locked", "--no-fail-fast", "--workspace"]).args(what);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", LINT_ARGS);
    // Where nothing will be built a second time, keeping notes for that only costs.
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    // What `cargo xtask` says of this program would be taken for its own by a build script of another
    // that looks at it, and everything above that one would be built again by the next plain build.
    let of_this_program = |name: &str| {
        name.starts_with("CARGO_PKG_")
            || matches!(name, "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH")
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_this_program) {
            command.env_remove(name);
        }
    }
    command.current_dir(repo.path(""));
    command
}

/// A program that heeds the signals which keys of a terminal send, also where this one does not.
fn heeding_keys(program: OsString) -> Command {
    if keys_are_ignored() {
        let mut env = Command::new("env");
        env.arg("--default-signal=INT,QUIT");
        // Not every system's `env` can do that; the end-to-end tests see to it themselves as well.
        if env.arg("true").status().is_ok_and(|status| status.success()) {
            let mut command = Command::new("env");
            command.arg("--default-signal=INT,QUIT").arg(program);
            return command;
        }
    }
    Command::new(program)
}

/// Whether interrupt or quit is ignored here, as shells have it for what runs in the background.
fn keys_are_ignored() -> bool {
    const INT_AND_QUIT: u64 = (1 << 1) | (1 << 2);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set & INT_AND_QUIT != 0)
}
