//! What a trigger starts, on what, and for whom.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Fault, HookProof, Micro, Object, SecretName, ToolId, WorldId};

use crate::flow;
use crate::permission::{PathGlob, ToolPattern};

/// Most that the inputs of a trigger take as JSON.
const INPUTS_BYTES_MAX: usize = 64 * 1024;
/// Most headers that become inputs.
const HEADERS_MAX: usize = 32;

/// What a trigger starts, on what, and for whom.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerSpec {
    /// What it starts runs on.
    pub on: TriggerOn,
    /// The tool.
    pub tool: ToolId,
    /// The world of its runs, and of the files and runs it looks at.
    pub world: WorldId,
    /// Inputs, in which expressions over what came may stand.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub inputs: Object,
    /// The input that the body becomes.
    pub body: Option<String>,
    /// Headers that become inputs: the input, and the header's name in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Parameters of the address that become inputs: the input, and the parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<(String, String)>,
    /// The most one run may cost.
    pub budget_micro: Option<Micro>,
    /// The tools that its runs may call besides their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<ToolPattern>,
}

/// What a trigger starts runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerOn {
    /// Somebody outside calls its hook.
    Hook(Hook),
    /// A file of its world is written whose path fits.
    File(FilePattern),
    /// A run of its world ends of which a condition holds.
    Run(RunCondition),
}

/// An address that is called from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// What stands in the address.
    pub id: String,
    /// How a caller proves that it may.
    pub proof: HookProof,
    /// The secret that the proof is made with.
    pub secret: SecretName,
}

/// Files that start runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePattern {
    /// A pattern of paths such as `/inbox/**`.
    pub paths: String,
}

/// Ends of runs that start runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCondition {
    /// An expression over `run`.
    pub when: String,
}

impl TriggerOn {
    /// What it is, in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Hook(_) => "hook",
            Self::File(_) => "file",
            Self::Run(_) => "run",
        }
    }

    /// What expressions in inputs can see.
    fn seen(&self) -> &'static [&'static str] {
        match self {
            Self::Hook(_) => &["body", "headers", "query"],
            Self::File(_) => &["file"],
            Self::Run(_) => &["run"],
        }
    }
}

impl TriggerSpec {
    /// The hook, if it is called from outside.
    pub fn hook(&self) -> Option<&Hook> {
        match &self.on {
            TriggerOn::Hook(hook) => Some(hook),
            TriggerOn::File(_) | TriggerOn::Run(_) => None,
        }
    }

    /// Checks the expressions in it; takes a while, so not where runs wait for it.
    pub fn check_expressions(&self) -> Result<(), Fault> {
        self.check()?;
        if let TriggerOn::Run(RunCondition { when }) = &self.on {
            flow::check_condition(when, "on_run", &["run"])?;
        }
        flow::check_given(&self.inputs, "inputs", self.on.seen())
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        let bytes = serde_json::to_vec(&self.inputs).map_or(usize::MAX, |text| text.len());
        if bytes > INPUTS_BYTES_MAX {
            let message = format!("The inputs of a trigger have {INPUTS_BYTES_MAX} bytes at most.");
            return Err(Fault::invalid("inputs", message));
        }
        if self.headers.len() > HEADERS_MAX || self.query.len() > HEADERS_MAX {
            let message = format!("At most {HEADERS_MAX} headers and parameters become inputs.");
            return Err(Fault::invalid("headers", message));
        }
        if self.allow.len() > crate::schedule::ALLOW_MAX {
            return Err(Fault::invalid("allow", "The field `allow` has too many patterns."));
        }
        let named = self.body.is_some() || !self.headers.is_empty() || !self.query.is_empty();
        if named && self.hook().is_none() {
            let message = "Only what calls a hook has a body, headers and parameters.";
            return Err(Fault::invalid("body", message));
        }
        if let TriggerOn::File(FilePattern { paths }) = &self.on {
            let wrong = match PathGlob::parse(paths) {
                Ok(_) if paths.starts_with('/') => return Ok(()),
                Ok(_) => "does not begin with /".to_owned(),
                Err(error) => error.to_string(),
            };
            let message = format!(
                "The field `on_file` must be a pattern such as /inbox/**; this one {wrong}."
            );
            return Err(Fault::invalid("on_file", message));
        }
        Ok(())
    }
}
