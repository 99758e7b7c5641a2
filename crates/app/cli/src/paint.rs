//! Colours for people, nothing for programs.

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Paints when the stream is a terminal that takes colours and nobody asked for none.
    pub(crate) fn for_stream(is_terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: is_terminal && !refused && !dumb }
    }

    /// Never paints.
    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self { on: false }
    }

    /// Whether anything is painted at all.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// Something went wrong.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31;1", text)
    }

    /// Something needs attention.
    pub(crate) fn attention(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Something went well.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Something beside the point.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Something to find quickly.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    fn with(self, style: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{style}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
