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
    "durable-trial.ts",
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
    "node/find.ts",
    "node/frames.ts",
    "node/growing.ts",
    "node/index.ts",
    "node/toolserver/envelope.ts",
    "node/toolserver/error.ts",
    "node/toolserver/files.ts",
    "node/toolserver/index.ts",
    "node/toolserver/run.ts",
    "node/toolserver/runs.ts",
    "node/toolserver/steps.ts",
    "node/trust.ts",
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
    "steps.ts",
    "task.ts",
    "tool.ts",
    "transport.ts",
    "trial.ts",
    "wire.ts",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::tests::assert_brought_along;
    use super::super::strip::strip;
    use super::*;

    #[test]
    fn k034_every_source_of_the_package_is_brought_along_and_has_types_that_can_be_taken_out() {
        assert_brought_along(SOURCES, "typescript", "ts");
        for (path, text) in SOURCES {
            strip(Path::new(path), text).expect(path);
        }
    }
}
