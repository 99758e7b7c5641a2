//! Asks: what runs wait for.

use async_graphql::SimpleObject;
use serde_json::Value;
use wharf_domain::scope::ReadObject;

use super::AskKind;
use crate::scalars::{DateTime, Int64};

/// A file that an approval is for.
#[derive(Debug, SimpleObject)]
pub(crate) struct AskFile {
    /// The input that it is.
    name: String,
    /// Its path in the world.
    path: String,
    /// How many bytes it has.
    bytes: Int64,
    /// Their BLAKE3 hash, if it is known.
    b3: Option<String>,
    /// What kind of data it is.
    media_type: String,
}

impl From<(&String, &ReadObject)> for AskFile {
    fn from((name, file): (&String, &ReadObject)) -> Self {
        Self {
            name: name.clone(),
            path: file.path.to_string(),
            bytes: Int64(file.bytes),
            b3: file.b3.as_ref().map(ToString::to_string),
            media_type: file.media_type.clone(),
        }
    }
}

/// Something a run waits for.
#[derive(Debug, SimpleObject)]
pub(crate) struct Ask {
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
    /// The files an approval is for: these and no others are read.
    files: Vec<AskFile>,
    /// The grant whose run it is.
    caller: String,
    /// Who may decide: `person`, `seat:S-…` or `any`.
    audience: String,
    /// When it expires.
    deadline: DateTime,
    /// When it was raised.
    created_at: DateTime,
}

impl From<&wharf_domain::Ask> for Ask {
    fn from(ask: &wharf_domain::Ask) -> Self {
        let spec = &ask.spec;
        Self {
            ask_id: spec.ask_id.to_string(),
            kind: spec.kind.into(),
            run_id: spec.run.run.to_string(),
            tool: spec.tool.to_string(),
            world: spec.run.world.to_string(),
            title: spec.title.clone(),
            detail: spec.detail.clone(),
            schema: spec.schema.clone(),
            files: spec.files.iter().map(AskFile::from).collect(),
            caller: spec.caller.grant.to_string(),
            audience: spec.audience.to_string(),
            deadline: DateTime(spec.deadline),
            created_at: DateTime(ask.created_at),
        }
    }
}
