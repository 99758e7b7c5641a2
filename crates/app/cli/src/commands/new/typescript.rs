//! Projects in TypeScript. They bring the library's sources along, so that only the compiler and
//! the types of Node come from npm.

use super::name::Kind;
use super::project::{Project, Words};

/// A template of this folder.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../templates/typescript/", $path))
    };
}

/// Puts each file's text beside its path.
macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../../sdks/typescript/src/", $path)))),*]
    };
}

/// Every source of the package, by its path below the package's source folder.
const SOURCES: &[(&str, &str)] = sources![
    "agent.ts",
    "builtins.ts",
    "call.ts",
    "caller.ts",
    "context.ts",
    "core.ts",
    "fault.ts",
    "index.ts",
    "json-schema.ts",
    "layers.ts",
    "links/event-parser.ts",
    "links/events.ts",
    "links/memory.ts",
    "links/websocket.ts",
    "node/accept.ts",
    "node/agent/asking.ts",
    "node/agent/connection.ts",
    "node/agent/index.ts",
    "node/agent/inputs.ts",
    "node/agent/session.ts",
    "node/frames.ts",
    "node/index.ts",
    "node/toolserver/envelope.ts",
    "node/toolserver/error.ts",
    "node/toolserver/files.ts",
    "node/toolserver/index.ts",
    "node/toolserver/run.ts",
    "node/toolserver/runs.ts",
    "node/values.ts",
    "node/websocket.ts",
    "progress.ts",
    "schema.ts",
    "scope.ts",
    "serve.ts",
    "task.ts",
    "tool.ts",
    "transport.ts",
    "wire.ts",
];

/// The project's own files, by what is made.
fn own(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Agent => &[
            ("README.md", template!("agent/README.md")),
            ("src/tools.ts", template!("agent/src/tools.ts")),
            ("src/main.ts", template!("agent/src/main.ts")),
            ("test/tools.test.ts", template!("agent/test/tools.test.ts")),
            ("opensentience.agent.json", template!("agent/opensentience.agent.json")),
        ],
        Kind::Tool => &[
            ("README.md", template!("tool/README.md")),
            ("src/tool.ts", template!("tool/src/tool.ts")),
            ("src/main.ts", template!("tool/src/main.ts")),
            ("test/tool.test.ts", template!("tool/test/tool.test.ts")),
            ("wharf.tool.toml", template!("tool/wharf.tool.toml")),
        ],
        Kind::Operative => &[
            ("README.md", template!("operative/README.md")),
            ("src/tools.ts", template!("operative/src/tools.ts")),
            ("src/core.ts", template!("operative/src/core.ts")),
            ("src/main.ts", template!("operative/src/main.ts")),
            ("test/tools.test.ts", template!("operative/test/tools.test.ts")),
        ],
    }
}

/// What is typed to build and test it.
pub(super) fn prepare(project: &mut Project) {
    project.step("npm install");
    project.step("npm test");
}

/// What is typed to start an operative.
pub(super) fn start(project: &mut Project) {
    project.staying_step("node dist/src/main.js");
}

/// Adds all files.
pub(super) fn add(project: &mut Project, kind: Kind, words: &Words) {
    for (path, text) in own(kind) {
        project.template(path, text, words);
    }
    project.template("package.json", template!("package.json"), words);
    project.copy("tsconfig.json", template!("tsconfig.json"));
    project.copy(".gitignore", template!("gitignore"));
    for (path, text) in SOURCES {
        project.copy(format!("vendor/wharf-sdk/{path}"), text);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().expect("the package's sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|end| end == "ts") {
                found.push(path);
            }
        }
    }

    #[test]
    fn k034_every_source_of_the_package_is_brought_along() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdks/typescript/src");
        let mut found = Vec::new();
        files(&folder, &mut found);
        let found = found.iter().map(|path| path.strip_prefix(&folder).expect("below"));
        let found: BTreeSet<&str> = found.map(|path| path.to_str().expect("text")).collect();
        let embedded: BTreeSet<&str> = SOURCES.iter().map(|(path, _)| *path).collect();
        assert_eq!(embedded, found);
    }
}
