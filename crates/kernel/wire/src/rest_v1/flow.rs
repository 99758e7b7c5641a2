//! Flows: their documents, and what is sent to their runs.

use std::collections::BTreeMap;

use super::ErrorInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{DateTime, FlowId, GrantId, Object, RunId, ToolId};

/// A version of a flow.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Flow {
    /// The flow's name.
    pub name: FlowId,
    /// The version shown; lists show the newest.
    pub version: u32,
    /// The tool that it is, `flow/NAME@VERSION`.
    pub tool_id: ToolId,
    /// All versions there are.
    pub versions: Vec<u32>,
    /// What it does, for people and models.
    pub description: String,
    /// Hash of the document.
    pub hash: String,
    /// When this version was added.
    pub added_at: DateTime,
    /// The token that added it.
    pub added_by: GrantId,
    /// The definitions its tools had, if it runs only with these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, String>,
    /// The document. Lists leave it out.
    pub document: Option<Value>,
    /// The steps as the source of a Mermaid flowchart. Lists leave it out.
    pub graph: Option<String>,
    /// What may be wrong with it, when it was added just now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FlowFinding>,
}

/// Something that was found in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowFinding {
    /// The place in the document, such as `steps[3].inputs.text`; empty for all of it.
    pub place: String,
    /// `error` if the document is not taken because of it, else `warning`.
    pub level: String,
    /// What is wrong, in a sentence.
    pub text: String,
}

/// `POST /v1/flows`: adds a version of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddFlow {
    /// The document.
    pub document: Value,
    /// Whether it is to run only with its tools as they are defined now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
}

/// `POST /v1/flows/check`: checks a document and stores nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckFlow {
    /// The document.
    pub document: Value,
}

/// What a check found.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowCheck {
    /// Whether the document would be taken.
    pub ok: bool,
    /// What was found.
    pub findings: Vec<FlowFinding>,
    /// The steps as the source of a Mermaid flowchart, if the document could be read.
    pub graph: Option<String>,
}

/// `POST /v1/runs/{id}/signals/{name}`: sends a message to a run of a flow.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendSignal {
    /// What the message says; null when absent.
    #[serde(default)]
    pub value: Value,
    /// The sender's own key: the same key in one run is the same message.
    pub idempotency_key: Option<String>,
}

/// `POST /v1/runs/{id}/rerun`: runs a flow again from a step.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunFlow {
    /// The step at the top of the document to begin with; what those before it gave is taken over.
    pub from: String,
    /// The inputs; those of the first run when absent.
    #[schema(value_type = Option<Object>)]
    pub inputs: Option<Object>,
    /// The version of the flow; that of the first run when absent.
    pub version: Option<u32>,
    /// Whether results are taken over although their tools are defined in another way now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The caller's own id for the new run.
    pub run_id: Option<RunId>,
}

/// How far a run of a flow is.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunFlow {
    /// The version of the flow.
    pub version: u32,
    /// What its calls that are over have cost together; the run's own cost is 0.
    pub cost_micro: u64,
    /// How many steps count towards what a run may do.
    pub steps: u32,
    /// What its variable `status` says while it goes on.
    pub status: Option<Value>,
    /// The run whose results it took over, if it began with a later step.
    pub cites: Option<RunId>,
    /// The run of the flow that began anew with this one.
    pub restarts: Option<RunId>,
    /// The run that goes on from this one, if it began anew.
    pub restarted_as: Option<RunId>,
}

/// A step of a run of a flow that has begun.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStep {
    /// Its place in the flow, with the numbers of items and rounds, such as `all[3]/one`.
    pub path: String,
    /// `running`, `waiting`, `retrying`, `succeeded`, `failed`, `refused` or `canceled`.
    pub status: String,
    /// Which try it is, from 1.
    #[serde(rename = "try")]
    pub attempt: u32,
    /// The tool, if it is a call.
    pub tool: Option<ToolId>,
    /// The run that does it, if it is a call and one was made.
    pub run_id: Option<RunId>,
    /// Since when.
    pub started_at: DateTime,
    /// Until when.
    pub ended_at: Option<DateTime>,
    /// What it cost.
    pub cost_micro: u64,
    /// Why it did not succeed.
    pub error: Option<ErrorInfo>,
    /// Until when it waits at most, where that is known.
    pub until: Option<DateTime>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest_v1::tests::survives;

    #[test]
    fn f019_every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/flows.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "Flow" => survives::<Flow>(data),
                "AddFlow" => survives::<AddFlow>(data),
                "CheckFlow" => survives::<CheckFlow>(data),
                "FlowCheck" => survives::<FlowCheck>(data),
                "RerunFlow" => survives::<RerunFlow>(data),
                "RunFlow" => survives::<RunFlow>(data),
                "RunStep" => survives::<RunStep>(data),
                "SendSignal" => survives::<SendSignal>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 8, "each message has an example");
    }
}
