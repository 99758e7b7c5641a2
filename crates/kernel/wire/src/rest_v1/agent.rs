//! Agents: what is shown of them, what can be asked for, and the lines of their logs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent and how it fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The agent's id.
    pub agent_id: String,
    /// `added`, `approved`, `starting`, `running`, `unhealthy`, `backing_off`, `stopped`,
    /// `crashed` or `drifted`.
    pub state: String,
    /// Why it is in that state, when there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The start of its process that is current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_id: Option<String>,
    /// When it last said that it is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<String>,
    /// How it is fenced in: `none`, `basic`, `standard` or `strict`.
    pub sandbox: String,
    /// The ids of the tools it has offered; they keep their place while it is away.
    pub tools: Vec<String>,
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// The folder its manifest lies in.
    pub folder: String,
    /// What is started: the program and its arguments.
    pub command: Vec<String>,
    /// When it was added.
    pub added_at: String,
    /// What its manifest asks for.
    pub permissions_requested: Vec<String>,
    /// What of it was approved; absent until the manifest it has now is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions_approved: Option<Vec<String>>,
}

/// `POST /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddAgent {
    /// The folder with the agent's manifest: an absolute path on the core's machine.
    pub folder: String,
}

/// `POST /v1/agents/{id}/approve`: some of the permissions its manifest asks for, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveAgent {
    /// These permissions and no others; an empty list approves the agent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// Everything the manifest asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// A line of an agent's log; also the data of the event `log` that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLogLine {
    /// When it was read.
    pub at: String,
    /// Who wrote it: `stdout` or `stderr` of the agent, or the `launcher`.
    pub source: String,
    /// What it says, without the line's end.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use std::fmt::Debug;

    #[track_caller]
    fn survives<T: Serialize + DeserializeOwned + Debug + PartialEq>(line: &str) {
        let message: T = serde_json::from_str(line).expect("readable");
        assert_eq!(serde_json::to_string(&message).expect("writes"), line);
    }

    #[test]
    fn every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/agents.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "Agent" => survives::<Agent>(data),
                "AddAgent" => survives::<AddAgent>(data),
                "ApproveAgent" => survives::<ApproveAgent>(data),
                "AgentLogLine" => survives::<AgentLogLine>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 4, "each message has an example");
    }

    #[test]
    fn a_misspelt_request_is_noticed_and_an_answer_may_grow() {
        assert!(serde_json::from_str::<AddAgent>(r#"{"folder":"/a","dir":"/b"}"#).is_err());
        assert!(serde_json::from_str::<ApproveAgent>(r#"{"permission":["a:b"]}"#).is_err());
        let line = r#"{"at":"t","source":"stdout","text":"x","launch_id":"l1"}"#;
        assert!(serde_json::from_str::<AgentLogLine>(line).is_ok());
    }
}
