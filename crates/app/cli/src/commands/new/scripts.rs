//! Projects in Python and TypeScript. They bring the library along, so that nothing has to be
//! installed but TypeScript's compiler and the types of Node, which come from npm.

use wharf_toolserver::worker::PYTHON_SOURCES;

use super::project::Language;

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

pub(super) const TYPESCRIPT: Language = Language {
    word: "typescript",
    prepare: &["npm install", "npm test"],
    start: "node dist/src/main.js",
    agent: templates!("typescript/agent":
        "README.md", "src/tools.ts", "src/main.ts", "test/tools.test.ts",
        "opensentience.agent.json"),
    tool: templates!("typescript/tool":
        "README.md", "src/tool.ts", "src/main.ts", "test/tool.test.ts", "wharf.tool.toml"),
    operative: templates!("typescript/operative":
        "README.md", "src/tools.ts", "src/core.ts", "src/main.ts", "test/tools.test.ts"),
    shared: templates!("typescript": "package.json", "tsconfig.json", "gitignore"),
    library: || {
        SOURCES.iter().map(|(path, text)| (format!("vendor/wharf-sdk/{path}"), *text)).collect()
    },
};

pub(super) const PYTHON: Language = Language {
    word: "python",
    prepare: &["python3 -m unittest"],
    start: "python3 operative.py",
    agent: templates!("python/agent":
        "README.md", "agent.py", "test_agent.py", "opensentience.agent.json"),
    tool: templates!("python/tool":
        "README.md", "handler.py", "test_handler.py", "wharf.tool.toml"),
    operative: templates!("python/operative":
        "README.md", "operative.py", "test_operative.py"),
    shared: templates!("python": "gitignore"),
    library: || {
        // Whatever belongs to workers of tool servers is of no use here.
        let wanted = |path: &str| path.starts_with("wharf_sdk/") && !path.contains("/_worker/");
        let sources = PYTHON_SOURCES.iter().filter(|(path, _)| wanted(path));
        let sources = sources.map(|(path, text)| ((*path).to_owned(), *text));
        sources.chain([("wharf_sdk/py.typed".to_owned(), "")]).collect()
    },
};

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
