//! The TypeScript package: its own tests, against this program, in Node and in a browser.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::children::{self, Finish as _};
use crate::support::TestHome;

/// Where a browser may be; the tests of the package look there too.
const BROWSERS: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// The package, built; nothing when there is no Node to build it with.
pub(crate) fn built() -> Option<PathBuf> {
    if wharf_skips::lacks("node") || wharf_skips::lacks("npm") {
        return None;
    }
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../sdks/typescript");
    // Tests may run in several processes; only one of them installs and builds at a time.
    let lock = File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript.lock"));
    let lock = lock.expect("a file to lock");
    lock.lock().expect("a lock");
    let (wanted, installed) = ("package-lock.json", "node_modules/.installed-lock.json");
    let read = |name| std::fs::read(package.join(name)).ok();
    if read(wanted) != read(installed) {
        ran(children::command("npm").args(["ci", "--no-audit", "--no-fund"]), &package);
        std::fs::copy(package.join(wanted), package.join(installed)).expect("copies");
    }
    ran(children::command("npm").args(["run", "build"]), &package);
    Some(package)
}

/// Runs a command to its end and gives what it printed.
#[track_caller]
fn ran(command: &mut Command, folder: &Path) -> String {
    let output = command.current_dir(folder).finish_within(children::BUILD);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}\n{wrong}");
    said
}

/// Runs a part of the package's tests beside a core of its own, and insists that there are some
/// and that none is left out.
#[track_caller]
fn passes(part: &str) {
    let Some(package) = built() else { return };
    let home = TestHome::new();
    // Pages of the tests come from servers on other ports of this machine.
    home.configure("[http]\nhosts = [\"127.0.0.1\"]\n");
    let core = home.up();
    let mut command = children::command("node");
    command.args(["--expose-gc", "--test", "--test-reporter=tap"]).args(files(&package, part));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WHARF_") {
            command.env_remove(name);
        }
    }
    command.env("WHARF_BIN", env!("CARGO_BIN_EXE_wharf"));
    command.env("WHARF_URL", core.url()).env("WHARF_TOKEN", core.token());
    let said = ran(&mut command, &package);
    let count = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    assert!(count("# pass ").is_some_and(|passed| passed != "0"), "{said}");
    assert_eq!(count("# skipped "), Some("0"), "{said}");
}

/// The files with the tests of a part; versions of Node differ in what they make of a folder.
fn files(package: &Path, part: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(package.join(part)).expect("built");
    let paths = found.map(|entry| entry.expect("listed").path());
    paths.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect()
}

#[test]
fn k033_typescript_tools_layers_agents_and_transports() {
    passes("dist/test/unit");
}

#[test]
fn k033_typescript_meets_a_real_core() {
    passes("dist/test/core");
}

#[test]
fn k033_typescript_offers_tools_from_a_page() {
    if !BROWSERS.iter().any(|path| Path::new(path).exists()) {
        return wharf_skips::skip("chromium is not installed");
    }
    passes("dist/test/browser");
}
