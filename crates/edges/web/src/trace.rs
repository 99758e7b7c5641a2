//! The trace that a request belongs to, as W3C Trace Context writes it in headers.
//!
//! Nothing is checked here: whoever takes it up leaves out what cannot be used.

use axum::http::HeaderMap;

/// The place in a trace.
pub const TRACEPARENT: &str = "traceparent";
/// What tracing systems add for each other.
pub const TRACESTATE: &str = "tracestate";

/// The most parts of a `tracestate` that are put together.
const STATES_MAX: usize = 32;

/// What a request says of its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentTrace {
    /// The place in the trace; absent where the request does not say, or says two.
    pub traceparent: Option<String>,
    /// What tracing systems on the way have added.
    pub tracestate: Option<String>,
}

impl SentTrace {
    /// What the headers of a request say.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let traceparent = match (parents.next(), parents.next()) {
            (Some(parent), None) => parent.to_str().ok().map(str::to_owned),
            _ => None,
        };
        let states = headers.get_all(TRACESTATE).iter().take(STATES_MAX);
        let states: Vec<&str> = states.filter_map(|state| state.to_str().ok()).collect();
        let tracestate = (!states.is_empty()).then(|| states.join(","));
        Self { traceparent, tracestate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parent_counts_and_states_are_put_together() {
        let sent = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().expect("a value"));
            }
            SentTrace::of(&headers)
        };
        assert_eq!(sent(&[]), SentTrace::default());
        let one =
            sent(&[("traceparent", "00-a-b-01"), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        assert_eq!(one.traceparent.as_deref(), Some("00-a-b-01"));
        assert_eq!(one.tracestate.as_deref(), Some("a=1,b=2"));
        assert_eq!(sent(&[("traceparent", "a"), ("traceparent", "b")]).traceparent, None);
    }
}
