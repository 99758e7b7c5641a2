//! Packages of other registries: the machine's own tools for them, what they say when they fail,
//! and one hash over all files that they brought.
//!
//! What installs packages decides by itself where they go and when; this is what such edges share.
//! Nothing here runs as the core does but the tools of the machine that say how they are set up.

mod registry;
mod tree;

use std::path::{Path, PathBuf};

use wharf_vocab::shown;

pub use self::registry::{NodeTools, PythonTools, find_program, prefix_of, show_node, show_python};
pub use self::tree::{TreeHash, remove_tree};

/// What is told of why an installation failed.
const WHY_CHARS_MAX: usize = 500;

/// What errors say, without what their programs say around it.
#[must_use]
pub fn telling(errors: &[String]) -> Option<String> {
    let bare = |line: &String| {
        let line = ["npm error", "npm ERR!", "ERROR:", "error:", "cause:"]
            .iter()
            .fold(&**line, |line, prefix| line.strip_prefix(prefix).map_or(line, str::trim_start));
        let is_noise = line.is_empty()
            || line.starts_with("npm warn")
            || line.starts_with("A complete log of this run")
            || line.starts_with("[notice]");
        (!is_noise).then(|| line.to_owned())
    };
    let lines: Vec<_> = errors.iter().filter_map(bare).collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    let text = shown(&last.join("; "), WHY_CHARS_MAX).to_string();
    (!text.is_empty()).then(|| text.trim_end_matches('.').to_owned())
}

/// Where the machine's own programs are looked for: as the core finds them, then as what it starts
/// does.
#[must_use]
pub fn search_path() -> Vec<PathBuf> {
    let own = std::env::var_os("PATH");
    let own = own.iter().flat_map(|paths| std::env::split_paths(paths));
    own.chain(std::env::split_paths(crate::PATH)).collect()
}

/// What belongs to the system and every program can read.
#[must_use]
pub fn is_system(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m047_what_npm_and_pip_say_is_told_without_their_noise() {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let npm = lines(&[
            "npm warn old lockfile",
            "npm error code E404",
            "npm error 404 Not Found - GET the package",
            "npm error A complete log of this run can be found in: a place",
        ]);
        assert_eq!(telling(&npm).as_deref(), Some("code E404; 404 Not Found - GET the package"));
        let pip = lines(&["ERROR: No matching distribution found for nothing==9", "[notice] new"]);
        let told = telling(&pip);
        assert_eq!(told.as_deref(), Some("No matching distribution found for nothing==9"));
        assert_eq!(telling(&[]), None);
    }
}
