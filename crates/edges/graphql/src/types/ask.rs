//! Asks: what runs wait for.

use serde_json::Value;

use super::mcp::AgentPermission;
use super::run::KeptValues;
use super::view::view;
use super::{AskKind, RunStatus};
use crate::scalars::{DateTime, Int64};

view! {
    /// A file that an approval is for.
    AskFile of AskFile {
        /// The input that it is.
        name: String,
        /// Its path in the world.
        path: String,
        /// Its size in bytes.
        bytes: Int64,
        /// Its BLAKE3 hash, if it is known.
        b3: Option<String>,
        /// Its media type.
        media_type: String,
    }
}

view! {
    /// Something a run waits for.
    Ask of Ask {
        /// Its id.
        ask_id: String,
        /// What is asked for.
        kind: AskKind,
        /// The run that waits.
        run_id: String,
        /// The tool of that run.
        tool: String,
        /// The world of that run.
        world: String,
        /// What is asked, in one line.
        title: String,
        /// What the decision is about.
        detail: Option<Value>,
        /// JSON Schema of the answer.
        schema: Option<Value>,
        /// Digest of the arguments an approval is for.
        args_digest: Option<String>,
        /// Hash of the tool definition an approval is for.
        tool_hash: Option<String>,
        /// The files an approval is for; only these are read.
        files: Vec<AskFile>,
        /// The token whose run it is.
        caller: String,
        /// Who may decide: `person`, `seat:S-…` or `any`.
        audience: String,
        /// When it expires.
        deadline: DateTime,
        /// When it was raised.
        created_at: DateTime,
        /// How it was decided, once it was.
        decision: Option<String>,
        /// Who decided it: a token, or the core.
        decided_by: Option<String>,
        /// When it was decided.
        decided_at: Option<DateTime>,
        /// Why it was denied, or what was said instead of an answer.
        reason: Option<String>,
    }
}

view! {
    /// An ask with all that helps to decide it.
    AskDetail of AskDetail {
        /// The ask.
        ask: Ask,
        /// The inputs of the run that waits.
        inputs: Value,
        /// Present when no more than hashes of the run's values are kept once it has ended.
        kept: Option<KeptValues>,
        /// The tool's definition now, if the tool is known.
        definition: Option<ToolDefinition>,
        /// Whether the definition is the one the ask is for.
        same_definition: bool,
        /// What the tool's provider is permitted.
        permissions: Vec<AgentPermission>,
        /// The runs that led to it, the first one first.
        chain: Vec<AskLink>,
        /// The latest decisions about approvals of the same tool, newest first.
        previous: Vec<Ask>,
        /// The latest earlier run of the same tool in the same world that succeeded.
        similar_run: Option<SimilarRun>,
    }
}

view! {
    /// A run that led to an ask.
    AskLink of AskLink {
        /// The run.
        run_id: String,
        /// Its world.
        world: String,
        /// Its tool.
        tool: String,
        /// Where it stands.
        status: RunStatus,
        /// The token that started it.
        caller: Option<String>,
    }
}

view! {
    /// An earlier run to compare with.
    SimilarRun of SimilarRun {
        /// The run.
        run_id: String,
        /// Its world.
        world: String,
        /// Where it stands.
        status: RunStatus,
        /// When it was accepted.
        created_at: DateTime,
        /// Its inputs.
        inputs: Value,
    }
}

view! {
    /// A tool's definition: everything an approval covers.
    ToolDefinition of ToolDefinition {
        /// Hash of the whole definition.
        hash: String,
        /// What it does.
        description: String,
        /// JSON Schema of the inputs.
        input_schema: Value,
        /// JSON Schema of the outputs.
        output_schema: Option<Value>,
        /// Whether it acts on the world; null when it does not say.
        side_effects: Option<bool>,
        /// Whether each run needs an approval.
        requires_directive: bool,
        /// Whether it supports mock runs.
        mock: bool,
        /// Whether its provider honours idempotency keys.
        idempotency: bool,
        /// Longest running time of an attempt in milliseconds.
        timeout_ms: Option<Int64>,
        /// The most an attempt costs in micro-dollars, according to its author.
        max_cost_micro: Option<Int64>,
        /// Whether it is declared free.
        free: bool,
        /// What else its MCP server says of it, if it comes from one.
        mcp: Option<Value>,
    }
}
