//! What made a trigger start a run, and what expressions see of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{B3, Fault, Micro, Object, RunId, RunStatus, Timestamp, ToolId};

use super::{TriggerOn, TriggerSpec};
use crate::flow::{self, NameScope};
use crate::scope::WorldPath;
use crate::trace::TraceHeaders;
use crate::{Artifact, Outcome, Run};

/// Headers that prove who calls, or belong to somebody: expressions do not see them.
const PRIVATE_HEADERS: [&str; 8] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "stripe-signature",
    "webhook-signature",
    "x-hub-signature",
    "x-hub-signature-256",
    "x-api-key",
];

/// A call of a hook, after it was proved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookCall {
    /// The body as it came.
    pub body: Vec<u8>,
    /// Its headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The parameters of the address.
    pub query: BTreeMap<String, String>,
    /// The trace that it belongs to.
    pub trace: TraceHeaders,
}

/// What made a trigger start a run, of what happens inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A file was written.
    File(WrittenFile),
    /// A run has ended.
    Run(EndedRun),
}

/// A version of a file.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Where it is.
    pub path: WorldPath,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash, if it is known.
    pub b3: Option<B3>,
    /// What kind of data it is.
    pub media_type: String,
    /// The run that wrote it; none if somebody put it there.
    pub run: Option<RunId>,
    /// When it was written.
    pub at: Timestamp,
}

/// A run that has ended.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// The run.
    pub id: RunId,
    /// Its tool.
    pub tool: ToolId,
    /// How it ended.
    pub status: RunStatus,
    /// The code of its error.
    pub code: Option<String>,
    /// What it has cost.
    pub cost_micro: Micro,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// The id of what it is part of.
    pub correlation_id: Option<String>,
}

impl WrittenFile {
    /// The version of a file that was recorded.
    pub fn of(artifact: &Artifact, at: Timestamp) -> Self {
        Self {
            path: artifact.path.clone(),
            bytes: artifact.bytes,
            b3: artifact.b3.clone(),
            media_type: artifact.media_type.clone(),
            run: artifact.run.clone(),
            at,
        }
    }
}

impl EndedRun {
    /// A run that is over.
    pub fn of(run: &Run) -> Self {
        let error = run.outcome.as_ref().and_then(Outcome::error);
        Self {
            id: run.key.run.clone(),
            tool: run.spec.tool.clone(),
            status: run.status(),
            code: error.map(|fault| fault.code.as_str().to_owned()),
            cost_micro: run.cost_micro,
            parent: run.spec.parent.as_ref().map(|parent| parent.run.clone()),
            correlation_id: run.spec.correlation_id.clone(),
        }
    }
}

impl Cause {
    /// What tells it from every other of its kind.
    pub fn id(&self) -> String {
        match self {
            Self::File(file) => {
                let b3 = file.b3.as_ref().map_or("", |b3| b3.as_str());
                let writer = match &file.run {
                    Some(run) => run.to_string(),
                    None => file.at.0.to_string(),
                };
                format!("file\n{}\n{b3}\n{writer}", file.path)
            }
            Self::Run(run) => format!("run\n{}", run.id),
        }
    }

    /// What it is about, as people read it.
    pub fn about(&self) -> String {
        match self {
            Self::File(file) => file.path.to_string(),
            Self::Run(run) => run.id.to_string(),
        }
    }

    /// What expressions see of it; of a run also what it gave, where that may be seen.
    pub fn seen(&self, values: Option<(&Object, &Object)>) -> (&'static str, Value) {
        match self {
            Self::File(file) => {
                let value = json!({
                    "path": file.path.to_string(),
                    "bytes": file.bytes,
                    "b3": file.b3.as_ref().map(|b3| b3.as_str()),
                    "media_type": file.media_type,
                    "run": file.run.as_ref().map(|run| run.as_str()),
                });
                ("file", value)
            }
            Self::Run(run) => {
                let mut value = json!({
                    "id": run.id.as_str(),
                    "tool": run.tool.as_str(),
                    "status": run.status.as_str(),
                    "code": run.code,
                    "cost_micro": run.cost_micro,
                    "parent": run.parent.as_ref().map(|run| run.as_str()),
                    "correlation_id": run.correlation_id,
                });
                if let Some((inputs, outputs)) = values {
                    value["inputs"] = Value::Object(inputs.clone());
                    value["outputs"] = Value::Object(outputs.clone());
                }
                ("run", value)
            }
        }
    }
}

impl TriggerSpec {
    /// The inputs of the run that a call starts; takes a while.
    pub fn inputs_of_call(&self, call: &HookCall) -> Result<Object, Fault> {
        let mut inputs = self.inputs.clone();
        if flow::has_expressions(&inputs) {
            let visible = |name: &&String| !PRIVATE_HEADERS.contains(&name.as_str());
            let headers: Object = call
                .headers
                .iter()
                .filter(|(name, _)| visible(name))
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect();
            let query: Object =
                call.query.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
            let mut scope = NameScope::default();
            scope.set(&["body"], Cow::Owned(body_of(&call.body)));
            scope.set(&["headers"], Cow::Owned(Value::Object(headers)));
            scope.set(&["query"], Cow::Owned(Value::Object(query)));
            inputs = flow::fill_given(&inputs, &scope)?;
        }
        for (input, header) in &self.headers {
            if let Some(value) = call.headers.get(header) {
                inputs.insert(input.clone(), value.as_str().into());
            }
        }
        for (input, parameter) in &self.query {
            if let Some(value) = call.query.get(parameter).filter(|value| !value.is_empty()) {
                inputs.insert(input.clone(), value.as_str().into());
            }
        }
        if let Some(input) = &self.body {
            inputs.insert(input.clone(), wharf_vocab::json::read(&call.body)?);
        }
        Ok(inputs)
    }

    /// The inputs of the run that something starts which happened inside; none if its condition
    /// does not hold. Takes a while.
    pub fn inputs_of_cause(
        &self,
        cause: &Cause,
        values: Option<(&Object, &Object)>,
    ) -> Result<Option<Object>, Fault> {
        let (name, seen) = cause.seen(values);
        let scope = NameScope::default().with(name, &seen);
        if let TriggerOn::Run(condition) = &self.on
            && !flow::holds(&condition.when, &scope)?
        {
            return Ok(None);
        }
        flow::fill_given(&self.inputs, &scope).map(Some)
    }
}

/// A body as expressions see it: what it says as JSON, else its text; nothing if it is neither.
fn body_of(bytes: &[u8]) -> Value {
    if bytes.trim_ascii().is_empty() {
        return Value::Null;
    }
    match wharf_vocab::json::read(bytes) {
        Ok(value) => value,
        Err(_) => String::from_utf8(bytes.to_vec()).map_or(Value::Null, Value::String),
    }
}
