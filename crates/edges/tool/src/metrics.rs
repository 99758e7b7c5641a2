//! What is counted. Labels are roles and kinds, never names or ids.

use wharf_protocol::tool::Counters;

/// A peer that is connected, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Connected(&'static str);

impl Connected {
    pub(crate) fn new(role: &'static str) -> Self {
        metrics::gauge!("wharf_tool_peers", "role" => role).increment(1.0);
        Self(role)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        metrics::gauge!("wharf_tool_peers", "role" => self.0).decrement(1.0);
    }
}

/// What a connection ignored in all.
pub(crate) fn ignored(counters: Counters) {
    for (what, many) in [
        ("unknown_id", counters.unknown_ids),
        ("duplicate_response", counters.duplicate_responses),
        ("unreadable", counters.unreadable),
        ("unknown_type", counters.unknown_types),
    ] {
        if many > 0 {
            metrics::counter!("wharf_tool_ignored_total", "what" => what).increment(many);
        }
    }
}
