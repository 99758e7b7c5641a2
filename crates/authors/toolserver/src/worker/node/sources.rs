//! The TypeScript package, as it is unpacked and as new projects bring it along: its sources.

/// Puts each file's text beside its path.
macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../../sdks/typescript/src/", $path)))),*]
    };
}

/// Every source of the package, by its path below the package's source folder.
pub const SOURCES: &[(&str, &str)] = sources![
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
    "node/growing.ts",
    "node/index.ts",
    "node/toolserver/envelope.ts",
    "node/toolserver/error.ts",
    "node/toolserver/files.ts",
    "node/toolserver/index.ts",
    "node/toolserver/run.ts",
    "node/toolserver/runs.ts",
    "node/values.ts",
    "node/websocket.ts",
    "node/worker/channel.ts",
    "node/worker/describe.ts",
    "node/worker/files.ts",
    "node/worker/hooks.ts",
    "node/worker/load.ts",
    "node/worker/main.ts",
    "node/worker/place.ts",
    "node/worker/run.ts",
    "node/worker/trace.ts",
    "progress.ts",
    "schema.ts",
    "scope.ts",
    "serve.ts",
    "task.ts",
    "tool.ts",
    "transport.ts",
    "trial.ts",
    "wire.ts",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::super::strip::strip;
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
    fn k034_every_source_of_the_package_is_brought_along_and_has_types_that_can_be_taken_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdks/typescript/src");
        let mut found = Vec::new();
        files(&folder, &mut found);
        let found = found.iter().map(|path| path.strip_prefix(&folder).expect("below"));
        let found: BTreeSet<&str> = found.map(|path| path.to_str().expect("text")).collect();
        let embedded: BTreeSet<&str> = SOURCES.iter().map(|(path, _)| *path).collect();
        assert_eq!(embedded, found);
        for (path, text) in SOURCES {
            strip(Path::new(path), text).expect(path);
        }
    }
}
