//! Values that durable code keeps, so that a repeated attempt gets them again; needs the
//! capability `steps`. The steps that are calls are asked for with `agent.tool.invoke`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::StepName;

use crate::agent_v1::{CallId, ErrorObject};

/// `agent.step.local`: ask for the value that is kept under a name, and keep this one if there is
/// none.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepLocal {
    /// The call whose code it is.
    pub call_id: CallId,
    /// The name.
    pub step: StepName,
    /// What the code gave; `null` is a value too. Without it the agent only asks.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
}

/// `core.step.kept`: the single answer to it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepKept {
    /// The call.
    pub call_id: CallId,
    /// The name.
    pub step: StepName,
    /// The value that counts; nothing is kept under the name yet when this and `error` are absent.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
    /// Why nothing can be kept.
    pub error: Option<ErrorObject>,
}
