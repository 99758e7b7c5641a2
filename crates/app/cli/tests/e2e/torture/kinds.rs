//! The kinds of runs, and what must come of each.

use serde_json::{Value, json};

use super::place::{ACTS, AGENT, COPIES};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Echo,
    Count,
    Sleep,
    Fails,
    Costs,
    Memory,
    Keyed,
    Asks,
    Approved,
    Denied,
    Canceled,
    Agent,
    Child,
    Acts,
    Files,
}

pub(super) const KINDS: [Kind; 15] = [
    Kind::Echo,
    Kind::Count,
    Kind::Sleep,
    Kind::Fails,
    Kind::Costs,
    Kind::Memory,
    Kind::Keyed,
    Kind::Asks,
    Kind::Approved,
    Kind::Denied,
    Kind::Canceled,
    Kind::Agent,
    Kind::Child,
    Kind::Acts,
    Kind::Files,
];

impl Kind {
    /// The world of such runs.
    pub(super) fn world(self) -> &'static str {
        if self == Self::Costs { "money" } else { "default" }
    }

    /// A request for such a run.
    pub(super) fn request(self, id: &str, n: u64) -> Value {
        let (tool, inputs) = match self {
            Self::Echo | Self::Memory | Self::Keyed => ("wharf/echo", json!({"n": n})),
            Self::Count => ("wharf/count", json!({"n": 5, "delay_ms": 10})),
            Self::Sleep => ("wharf/sleep", json!({"ms": n % 150})),
            Self::Fails => ("wharf/fail", json!({})),
            Self::Costs => ("wharf/sleep", json!({"ms": 5, "cost_micro": cost(n)})),
            Self::Asks => ("wharf/ask", json!({"question": "Which color?"})),
            Self::Approved | Self::Denied => ("wharf/approve-me", json!({"purpose": id})),
            Self::Canceled => ("wharf/sleep", json!({"ms": 600_000})),
            Self::Agent => (AGENT.hello, json!({"name": id})),
            Self::Child => (AGENT.relay, json!({"tool_id": "wharf/echo", "input": {"n": n}})),
            Self::Acts => (ACTS, json!({"id": id})),
            Self::Files => (COPIES, json!({"file.world": format!("/in-{}.txt", n % 4)})),
        };
        let mut request =
            json!({"tool": tool, "inputs": inputs, "world": self.world(), "run_id": id});
        match self {
            Self::Memory => request["durability"] = "memory".into(),
            Self::Keyed => request["idempotency_key"] = id.into(),
            Self::Files => request["outputs"] = json!({"copy.world": format!("/out/{id}.txt")}),
            Self::Canceled => request["timeout_ms"] = 3_000_000.into(),
            _ => {}
        }
        if self == Self::Keyed {
            request.as_object_mut().expect("an object").remove("run_id");
        }
        request
    }

    /// Whether another program works on it, which dies with the core: then it may have failed for
    /// that, and must say whether it may have been executed.
    pub(super) fn may_be_lost(self) -> bool {
        matches!(self, Self::Agent | Self::Child | Self::Acts | Self::Files)
    }

    /// How it must end if nothing was lost.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Fails => "failed",
            Self::Denied => "refused",
            Self::Canceled => "canceled",
            _ => "succeeded",
        }
    }
}

/// What a run that costs something costs.
pub(super) fn cost(n: u64) -> u64 {
    n % 50 + 1
}
