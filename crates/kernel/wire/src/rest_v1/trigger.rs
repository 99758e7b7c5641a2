//! Triggers: runs that somebody outside starts by calling a hook.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, FiringState, GrantId, HookProof, Object, RunId, SecretName, ToolId, TriggerId,
    TriggerState, WorldId,
};

use super::ErrorInfo;

/// `POST /v1/triggers`.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTrigger {
    /// The trigger's name.
    pub name: TriggerId,
    /// The tool to run.
    pub tool: ToolId,
    /// Runs start when a file of the world is written whose path fits this pattern, such as
    /// `/inbox/**`, in the place of a hook.
    pub on_file: Option<String>,
    /// Runs start when a run of the world ends of which this expression over `run` holds, in the
    /// place of a hook.
    pub on_run: Option<String>,
    /// How callers of its hook prove that they may; `standard` when absent.
    pub proof: Option<HookProof>,
    /// The secret that the proof is made with, as the sender gave it; one is made when absent.
    #[schema(min_length = 1)]
    pub secret: Option<String>,
    /// The world of its runs; `default` when absent.
    pub world: Option<WorldId>,
    /// Inputs, an object. In texts `${…}` stands for an expression over `body`, `headers` and
    /// `query`, over `file`, or over `run`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub inputs: Value,
    /// The input that the body becomes, which is read as JSON.
    pub body: Option<String>,
    /// Inputs that headers become, each with the header's name.
    pub headers: Option<BTreeMap<String, String>>,
    /// Inputs that parameters of the address become, each with the parameter's name.
    pub query: Option<BTreeMap<String, String>>,
    /// The most one run may cost.
    pub budget_micro: Option<u64>,
    /// Further tools that its runs may call, as patterns such as `llm/*`.
    pub allow: Option<Vec<String>>,
}

/// Shows everything but the secret.
impl std::fmt::Debug for CreateTrigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateTrigger").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A trigger.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trigger {
    /// Its name.
    pub name: TriggerId,
    /// Where it stands.
    pub state: TriggerState,
    /// Why it is paused: `asked`, `rights_ended`, or that it started `too_fast` or owed `too_much`.
    pub pause_cause: Option<String>,
    /// The path that is called, such as `/v1/hooks/…`, if it has a hook.
    pub path: Option<String>,
    /// How callers of its hook prove that they may.
    pub proof: Option<HookProof>,
    /// The name of the secret that the proof is made with.
    pub secret_name: Option<SecretName>,
    /// The pattern of the files that it starts runs on.
    pub on_file: Option<String>,
    /// The condition on the runs that it starts runs on.
    pub on_run: Option<String>,
    /// The secret, if the core made it; only in the response that creates the trigger.
    pub secret: Option<String>,
    /// The tool it runs.
    pub tool: ToolId,
    /// The world of its runs.
    pub world: WorldId,
    /// Inputs, with expressions as they were given.
    pub inputs: Object,
    /// The input that the body becomes.
    pub body: Option<String>,
    /// Inputs that headers become.
    pub headers: BTreeMap<String, String>,
    /// Inputs that parameters of the address become.
    pub query: BTreeMap<String, String>,
    /// The most one run may cost.
    pub budget_micro: Option<u64>,
    /// Further tools that its runs may call.
    pub allow: Vec<String>,
    /// How often it was to start a run.
    pub fired: u64,
    /// What came of the last time.
    pub last: Option<TriggerFiring>,
    /// When it was created.
    pub created_at: DateTime,
    /// The token it was created with.
    pub created_by: GrantId,
    /// When the rights of its runs end; absent if they do not.
    pub expires_at: Option<DateTime>,
}

/// Shows everything but the secret.
impl std::fmt::Debug for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trigger").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What came of something that was to start a run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TriggerFiring {
    /// When.
    pub at: DateTime,
    /// What that was: the id of a delivery, the path of a file, the id of a run.
    pub about: String,
    /// `started` or `refused`.
    pub state: FiringState,
    /// The run that was started.
    pub run_id: Option<RunId>,
    /// Why its run was refused.
    pub error: Option<ErrorInfo>,
}

/// `POST /v1/triggers/{trigger}/test`: a call of its hook that needs no proof.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestTrigger {
    /// The body of the call.
    pub body: Option<Value>,
    /// Its headers.
    pub headers: Option<BTreeMap<String, String>>,
    /// The parameters of its address.
    pub query: Option<BTreeMap<String, String>>,
    /// Whether only to say what the inputs would be; nothing is started then.
    pub dry_run: Option<bool>,
}

/// What a call of a trigger would give its run, and the run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestedTrigger {
    /// The inputs.
    pub inputs: Object,
    /// The run, if one was started.
    pub run_id: Option<RunId>,
}

/// What a call of a hook started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookAccepted {
    /// The run; the same for the same delivery.
    pub run_id: RunId,
}
