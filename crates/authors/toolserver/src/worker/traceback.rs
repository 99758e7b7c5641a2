//! Tracebacks of handlers in the server's log: as the lines they have.

/// Writes a traceback to the log; nothing if there is none.
pub(super) fn log(story: &str) {
    let story = story.trim_end();
    if !story.is_empty() {
        tracing::error!(target: super::TRACEBACK, "{story}");
    }
}
