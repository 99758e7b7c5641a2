//! Projects in Python. They bring the library along, so that nothing has to be installed.

use wharf_toolserver::worker::PYTHON_SOURCES;

use super::name::Kind;
use super::project::{Project, Words};

/// A template of this folder.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../templates/python/", $path))
    };
}

/// The project's own files, by what is made.
fn own(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Agent => &[
            ("README.md", template!("agent/README.md")),
            ("agent.py", template!("agent/agent.py")),
            ("test_agent.py", template!("agent/test_agent.py")),
            ("opensentience.agent.json", template!("agent/opensentience.agent.json")),
        ],
        Kind::Tool => &[
            ("README.md", template!("tool/README.md")),
            ("handler.py", template!("tool/handler.py")),
            ("test_handler.py", template!("tool/test_handler.py")),
            ("wharf.tool.toml", template!("tool/wharf.tool.toml")),
        ],
        Kind::Operative => &[
            ("README.md", template!("operative/README.md")),
            ("operative.py", template!("operative/operative.py")),
            ("test_operative.py", template!("operative/test_operative.py")),
        ],
    }
}

/// What is typed to build and test it.
pub(super) fn prepare(project: &mut Project) {
    project.step("python3 -m unittest");
}

/// What is typed to start an operative.
pub(super) fn start(project: &mut Project) {
    project.staying_step("python3 operative.py");
}

/// Adds all files.
pub(super) fn add(project: &mut Project, kind: Kind, words: &Words) {
    for (path, text) in own(kind) {
        project.template(path, text, words);
    }
    project.copy(".gitignore", template!("gitignore"));
    // Whatever belongs to workers of tool servers is of no use here.
    let wanted = |path: &str| path.starts_with("wharf_sdk/") && !path.contains("/_worker/");
    for (path, text) in PYTHON_SOURCES.iter().filter(|(path, _)| wanted(path)) {
        project.copy(*path, text);
    }
    project.copy("wharf_sdk/py.typed", "");
}
