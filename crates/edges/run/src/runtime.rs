//! What a handler runs with, by the name of its file, and where that is on this machine.

use std::path::{Path, PathBuf};

use wharf_hosting::Errand;
use wharf_hosting::packages::{find_program, is_system, prefix_of};
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::{Code, Fault};

use crate::RunEdgeOptions;
use crate::tools::ToolServers;

/// What runs a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    Python,
    Node,
}

impl Runtime {
    /// By the end of a file's name; none for a file that no handler is.
    pub(crate) fn of(file: &str) -> Option<Self> {
        match Path::new(file).extension()?.to_str()? {
            "py" => Some(Self::Python),
            "ts" | "mts" | "cts" | "js" | "mjs" | "cjs" => Some(Self::Node),
            _ => None,
        }
    }
}

/// Lets a launch see the machine's Node; its path.
pub(crate) fn node(options: &RunEdgeOptions, spec: &mut LaunchSpec) -> Result<String, Fault> {
    let node = found(&options.search)?;
    spec.fence.read.extend(installation(&node));
    spec.starts.push(node.clone());
    Ok(node.display().to_string())
}

/// The same for a command that is run once.
pub(crate) fn node_for(servers: &ToolServers, errand: &mut Errand) -> Result<String, Fault> {
    let node = found(&servers.options.search)?;
    errand.read.extend(installation(&node));
    errand.starts.push(node.clone());
    Ok(node.display().to_string())
}

/// The Python that a handler has whose manifest asks for none.
pub(crate) fn python() -> Option<PathBuf> {
    let usual = std::env::split_paths(wharf_hosting::PATH);
    usual.map(|folder| folder.join("python3")).find(|path| path.is_file())
}

/// The one that everybody has comes first, as it does for Python.
fn found(search: &[PathBuf]) -> Result<PathBuf, Fault> {
    let usual: Vec<_> = std::env::split_paths(wharf_hosting::PATH).collect();
    let node = find_program(&usual, "node").or_else(|| find_program(search, "node"));
    node.ok_or_else(|| {
        let message = "There is no node on the core's PATH, and a handler in TypeScript or \
                       JavaScript needs Node 20.11 or later.";
        Fault::new(Code::AgentStartFailed, message)
    })
}

/// What it was installed with, if that is not where every program can read.
fn installation(node: &Path) -> Option<PathBuf> {
    (!is_system(node)).then(|| prefix_of(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_what_runs_it() {
        for (file, runtime) in [
            ("handler.py", Some(Runtime::Python)),
            ("a/b.ts", Some(Runtime::Node)),
            ("b.mjs", Some(Runtime::Node)),
            ("b.d", None),
            ("py", None),
        ] {
            assert_eq!(Runtime::of(file), runtime, "{file}");
        }
    }

    #[test]
    fn a_node_of_its_own_is_shown_with_its_installation() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(installation(&dir.path().join("bin/node")).is_some_and(|it| it == dir.path()));
        assert_eq!(installation(Path::new("/usr/bin/node")), None);
    }
}
