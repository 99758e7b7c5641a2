//! Triggers.

use async_graphql::{InputObject, SimpleObject};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Fault;
use wharf_wire::rest_v1::{CreateTrigger, TestTrigger};

use super::run::ErrorInfo;
use super::view::view;
use crate::error::in_camel_case;
use crate::input::message;
use crate::scalars::{DateTime, Int64};

view! {
    /// A trigger: what starts when a hook is called, a file is written or another run ends.
    Trigger of Trigger {
        /// Its name.
        name: String,
        /// Where it stands: `active` or `paused`.
        state: String,
        /// Why it is paused: `asked`, `rights_ended`, or that it started `too_fast` or owed `too_much`.
        pause_cause: Option<String>,
        /// The path that is called, such as `/v1/hooks/…`, if it has a hook.
        path: Option<String>,
        /// How callers of its hook prove that they may: `github`, `stripe`, `standard` or `token`.
        proof: Option<String>,
        /// The name of the secret that the proof is made with.
        secret_name: Option<String>,
        /// The pattern of the files that it starts runs on.
        on_file: Option<String>,
        /// The condition on the runs that it starts runs on.
        on_run: Option<String>,
        /// The tool it runs.
        tool: String,
        /// The world of its runs.
        world: String,
        /// Inputs, with expressions as they were given.
        inputs: Value,
        /// The input that the body becomes.
        body: Option<String>,
        /// Inputs that headers become, each with the header's name.
        headers: Value,
        /// Inputs that parameters of the address become, each with the parameter's name.
        query: Value,
        /// The most one run may cost, in micro-dollars.
        budget_micro: Option<Int64>,
        /// Further tools that its runs may call.
        allow: Vec<String>,
        /// How often it was to start a run.
        fired: Int64,
        /// What came of the last time.
        last: Option<TriggerFiring>,
        /// When it was created.
        created_at: DateTime,
        /// The token it was created with.
        created_by: String,
        /// When the rights of its runs end; null if they do not.
        expires_at: Option<DateTime>,
    } without { secret }
}

view! {
    /// What came of something that was to start a run.
    TriggerFiring of TriggerFiring {
        /// When.
        at: DateTime,
        /// What that was: the id of a delivery, the path of a file, the id of a run.
        about: String,
        /// `started` or `refused`.
        state: String,
        /// The run that was started.
        run_id: Option<String>,
        /// Why its run was refused.
        error: Option<ErrorInfo>,
    }
}

view! {
    /// What a call of a trigger would give its run, and the run.
    TestedTrigger of TestedTrigger {
        /// The inputs.
        inputs: Value,
        /// The run, if one was started.
        run_id: Option<String>,
    }
}

/// A request for a trigger: on a hook, or on what `onFile` or `onRun` says.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct CreateTriggerInput {
    /// The trigger's name.
    name: String,
    /// The tool to run.
    tool: String,
    /// Runs start when a file of the world is written whose path fits this pattern, such as
    /// `/inbox/**`, in the place of a hook.
    on_file: Option<String>,
    /// Runs start when a run of the world ends of which this expression over `run` holds, in the
    /// place of a hook.
    on_run: Option<String>,
    /// How callers of its hook prove that they may: `github`, `stripe`, `token`, or `standard`,
    /// which is meant when absent.
    proof: Option<String>,
    /// The secret that the proof is made with, as the sender gave it; one is made when absent.
    #[graphql(secret)]
    secret: Option<String>,
    /// The world of its runs; `default` when absent.
    world: Option<String>,
    /// Inputs, an object. In texts `${…}` stands for an expression over `body`, `headers` and
    /// `query`, over `file`, or over `run`.
    inputs: Option<Value>,
    /// The input that the body becomes, which is read as JSON.
    body: Option<String>,
    /// Inputs that headers become, each with the header's name.
    headers: Option<Value>,
    /// Inputs that parameters of the address become, each with the parameter's name.
    query: Option<Value>,
    /// The most one run may cost, in micro-dollars.
    budget_micro: Option<Int64>,
    /// Further tools that its runs may call, as patterns such as `llm/*`.
    allow: Option<Vec<String>>,
}

impl CreateTriggerInput {
    /// The request as REST has it.
    pub(crate) fn read(&self) -> Result<CreateTrigger, Fault> {
        message(self).map_err(in_camel_case)
    }
}

/// A call of a trigger's hook that needs no proof.
#[skip_serializing_none]
#[derive(Debug, Default, InputObject, Serialize)]
pub(crate) struct TestTriggerInput {
    /// The body of the call.
    body: Option<Value>,
    /// Its headers, an object of texts.
    headers: Option<Value>,
    /// The parameters of its address, an object of texts.
    query: Option<Value>,
    /// Whether only to say what the inputs would be; nothing is started then.
    dry_run: Option<bool>,
}

impl TestTriggerInput {
    /// The request as REST has it.
    pub(crate) fn read(&self) -> Result<TestTrigger, Fault> {
        message(self).map_err(in_camel_case)
    }
}

/// A trigger that was made.
#[derive(Debug, SimpleObject)]
pub(crate) struct CreatedTrigger {
    /// The trigger.
    pub(crate) trigger: Trigger,
    /// The secret that callers prove with, if the core made it. It is not shown again.
    pub(crate) secret: Option<String>,
}
