//! Projects in Python and TypeScript. They bring the library along, so that nothing has to be
//! installed but TypeScript's compiler and the types of Node, which come from npm.

use wharf_toolserver::worker::{PYTHON_SOURCES, TYPESCRIPT_SOURCES};

use super::project::Language;

pub(super) const TYPESCRIPT: Language = Language {
    word: "typescript",
    prepare: &["npm install", "npm test"],
    start: "node dist/src/main.js",
    agent: templates!("typescript/agent":
        "README.md", "src/tools.ts", "src/main.ts", "test/tools.test.ts",
        "opensentience.agent.json"),
    tool: templates!("typescript/tool":
        "README.md", "handler.ts", "test/handler.test.ts", "wharf.tool.toml"),
    operative: templates!("typescript/operative":
        "README.md", "src/tools.ts", "src/core.ts", "src/main.ts", "test/tools.test.ts"),
    shared: templates!("typescript": "package.json", "tsconfig.json", "gitignore"),
    library: || {
        // Whatever belongs to workers of tool servers is of no use here.
        let wanted = TYPESCRIPT_SOURCES.iter().filter(|(path, _)| !path.contains("/worker/"));
        wanted.map(|(path, text)| (format!("vendor/wharf-sdk/{path}"), *text)).collect()
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
