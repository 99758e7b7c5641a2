//! Asks: what runs wait for.

use serde_json::Value;

use super::AskKind;
use super::view::view;
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
    }
}
