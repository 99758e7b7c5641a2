//! What a core hands to a server that it launches, over the descriptor that the server inherits.
//!
//! It comes as one message of JSON, together with the socket that the server listens on. Nothing of
//! it stands in an argument, in the environment or in a file, so that no process of the server's
//! own making learns it by inheritance.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ToolName;

/// What a core hands to a server that it launches.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// What the core shows with every connection for a run, as a bearer token. It is for this
    /// launch alone.
    pub secret: String,
    /// The tool that is served.
    pub tool: ToolName,
}

impl Handover {
    /// Longest message.
    pub const BYTES_MAX: usize = 4 * 1024;
}

// A secret must not reach a log by way of a debug print.
impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").field("tool", &self.tool).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_and_not_shown() {
        let tool = ToolName { reference: "a/b@1".into(), digest: None };
        let handover = Handover { secret: "canary".into(), tool };
        let text = serde_json::to_string(&handover).expect("writes");
        assert_eq!(text, r#"{"secret":"canary","tool":{"ref":"a/b@1"}}"#);
        assert_eq!(serde_json::from_str::<Handover>(&text).expect("reads"), handover);
        assert!(!format!("{handover:?}").contains("canary"));
    }
}
