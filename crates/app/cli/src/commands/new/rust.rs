//! Projects in Rust. They use the SDK of a clone of Wharf, or the published one.

use std::path::{Path, PathBuf};

use super::project::Language;
use crate::commands::{CliError, Result};
use crate::inputs;

/// Where a clone has the SDK.
const SDK: &str = "crates/authors/sdk";

pub(super) const RUST: Language = Language {
    word: "rust",
    prepare: &["cargo test", "cargo build"],
    start: "cargo run",
    agent: templates!("rust/agent":
        "README.md", "Cargo.toml.txt", "src/lib.rs", "src/main.rs", "opensentience.agent.json"),
    tool: templates!("rust/tool":
        "README.md", "Cargo.toml.txt", "src/lib.rs", "src/main.rs", "wharf.tool.toml"),
    operative: templates!("rust/operative":
        "README.md", "Cargo.toml.txt", "src/lib.rs", "src/find.rs", "src/main.rs"),
    shared: templates!("rust": "gitignore"),
    library: Vec::new,
};

/// How a manifest names the SDK: the one of the clone that was given, else of the clone that this
/// program lies in, else the published one of its version.
pub(super) fn dependency(given: Option<&Path>) -> Result<String> {
    let clone = match given {
        Some(given) => Some(sdk_of(given).ok_or_else(|| {
            CliError::usage(format!("{} is not a clone of Wharf: it has no {SDK}", given.display()))
        })?),
        None => std::env::current_exe().ok().and_then(|program| around(&program)),
    };
    match clone {
        Some(path) => {
            let text = inputs::canonical_path(&path)?;
            Ok(format!("path = {}", quoted(&text)))
        }
        None => Ok(format!("version = {}", quoted(env!("CARGO_PKG_VERSION")))),
    }
}

/// What the manifest says of workspaces: a project inside the folder of another package has to say
/// that it stands alone.
pub(super) fn workspace(folder: &Path) -> &'static str {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let inside = folder.ancestors().skip(1).any(|above| above.join("Cargo.toml").is_file());
    if inside { "\n[workspace]\n" } else { "" }
}

/// The SDK of the clone that a path lies in.
fn around(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find_map(sdk_of)
}

fn sdk_of(clone: &Path) -> Option<PathBuf> {
    let folder = clone.join(SDK);
    folder.join("Cargo.toml").is_file().then_some(folder)
}

/// Text as TOML quotes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k034_the_sdk_is_that_of_the_clone() {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let clone = clone.canonicalize().expect("there");
        let wanted = format!("path = \"{}\"", clone.join(SDK).display());
        assert_eq!(dependency(Some(&clone)), Ok(wanted.clone()));
        assert_eq!(dependency(None), Ok(wanted), "tests lie in the clone, too");
        let dir = tempfile::tempdir().expect("a folder");
        let failure = dependency(Some(dir.path())).expect_err("refused");
        assert!(failure.message().contains("not a clone of Wharf"), "{}", failure.message());
        assert_eq!(around(&dir.path().join("bin/wharf")), None);
    }

    #[test]
    fn k034_a_project_inside_another_one_stands_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(workspace(&dir.path().join("x")), "");
        std::fs::write(dir.path().join("Cargo.toml"), "").expect("written");
        assert_eq!(workspace(&dir.path().join("a/x")), "\n[workspace]\n");
    }

    #[test]
    fn k034_paths_are_quoted() {
        assert_eq!(quoted("/a b/\"c\"\\\n"), "\"/a b/\\\"c\\\"\\\\\\u000a\"");
    }
}
