//! The one way in which a test says that it was not made, because this machine lacks something.
//!
//! A test that returns early looks like one that passed. So each says it here: the notice goes to
//! standard error and, where `make test` has named a file for it, into that file. At its end
//! `make test` counts and shows what was left out, and where `CI` is `true` it fails.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The variable that names the file.
pub const FILE: &str = "WHARF_SKIPPED_TESTS";

/// Says that the test that is running is not made, or only in part, and why.
///
/// ```
/// fn the_page_works() {
///     if wharf_skips::lacks("chromium") {
///         return;
///     }
/// }
/// # the_page_works();
/// ```
///
/// # Panics
///
/// If the file that was named cannot be written: what is not counted would count as passed.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|it| it.file_stem()).map(|it| it.to_string_lossy());
    // The digits behind the name are cargo's.
    let program = program.as_deref().map_or("", |it| it.rsplit_once('-').map_or(it, |(it, _)| it));
    let line = format!("{program} {test}: {}\n", why.replace(['\n', '\r'], " "));
    // Nothing is left to do if even standard error is gone.
    let _ = std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes());
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write, so that lines of several tests do not mix.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "a skipped test cannot be counted in {}: {written:?}", path.display());
}

/// Whether a program cannot be started here; then the test that is running says so and goes.
#[must_use]
pub fn lacks(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let missing = !command.status().is_ok_and(|status| status.success());
    if missing {
        skip(&format!("{program} is not installed"));
    }
    missing
}
