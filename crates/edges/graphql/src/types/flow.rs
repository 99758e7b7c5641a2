//! Flows and what is found in their documents.

use serde_json::Value;

use super::run::ErrorInfo;
use super::view::view;
use crate::scalars::{DateTime, Int64};

view! {
    /// A version of a flow.
    Flow of Flow {
        /// The flow's name.
        name: String,
        /// The version shown; lists show the newest.
        version: u32,
        /// The tool that it is, `flow/NAME@VERSION`.
        tool_id: String,
        /// All versions there are.
        versions: Vec<u32>,
        /// What it does, for people and models.
        description: String,
        /// Hash of the document.
        hash: String,
        /// When this version was added.
        added_at: DateTime,
        /// The token that added it.
        added_by: String,
        /// The definitions its tools had, if it runs only with these.
        pins: Value,
        /// The document. Lists leave it out.
        document: Option<Value>,
        /// The steps as the source of a Mermaid flowchart. Lists leave it out.
        graph: Option<String>,
        /// What may be wrong with it, when it was added just now.
        findings: Vec<FlowFinding>,
    }
}

view! {
    /// Something that was found in a document.
    FlowFinding of FlowFinding {
        /// The place in the document, such as `steps[3].inputs.text`; empty for all of it.
        place: String,
        /// `error` if the document is not taken because of it, else `warning`.
        level: String,
        /// What is wrong, in a sentence.
        text: String,
    }
}

view! {
    /// How far a run of a flow is.
    RunFlow of RunFlow {
        /// The version of the flow.
        version: u32,
        /// What its calls that are over have cost together; the run's own cost is 0.
        cost_micro: Int64,
        /// How many steps count towards what a run may do.
        steps: u32,
        /// What its variable `status` says while it goes on.
        status: Option<Value>,
        /// The run whose results it took over, if it began with a later step.
        cites: Option<String>,
        /// The run of the flow that began anew with this one.
        restarts: Option<String>,
        /// The run that goes on from this one, if it began anew.
        restarted_as: Option<String>,
    }
}

view! {
    /// A step of a run of a flow that has begun.
    RunStep of RunStep {
        /// Its place in the flow, with the numbers of items and rounds, such as `all[3]/one`.
        path: String,
        /// `running`, `waiting`, `retrying`, `succeeded`, `failed`, `refused` or `canceled`.
        status: String,
        /// Which try it is, from 1.
        #[graphql(name = "try")]
        attempt: u32,
        /// The tool, if it is a call.
        tool: Option<String>,
        /// The run that does it, if it is a call and one was made.
        run_id: Option<String>,
        /// Since when.
        started_at: DateTime,
        /// Until when.
        ended_at: Option<DateTime>,
        /// What it cost.
        cost_micro: Int64,
        /// Why it did not succeed.
        error: Option<ErrorInfo>,
        /// Until when it waits at most, where that is known.
        until: Option<DateTime>,
    }
}

view! {
    /// What a check found.
    FlowCheck of FlowCheck {
        /// Whether the document would be taken.
        ok: bool,
        /// What was found.
        findings: Vec<FlowFinding>,
        /// The steps as the source of a Mermaid flowchart, if the document could be read.
        graph: Option<String>,
    }
}
