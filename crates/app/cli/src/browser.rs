//! Showing something in the browser of whoever types.

use std::process::Stdio;

/// Shows an address in a browser, if there is one; says whether one was started.
pub(crate) fn open(address: &str) -> bool {
    let set = std::env::var("BROWSER").ok().filter(|set| !set.trim().is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let set = set.unwrap_or_else(|| usual.to_owned());
    let mut words = set.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut command = std::process::Command::new(program);
    command.args(words).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
