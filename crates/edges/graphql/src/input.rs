//! What peers send. A request is written as REST's message of the same name and read by the same
//! code, so that both refuse the same in the same words; only the fields are spelled differently.

use async_graphql::{InputObject, MaybeUndefined};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_domain::scope::WorldPath;
use wharf_domain::{Resolution, WorldPatch};
use wharf_engine::NewRun;
use wharf_vocab::limits::PATH_BYTES_MAX;
use wharf_vocab::{AskId, Code, Fault, NoAnswer, RunKey, ToolId, WorldId, json};
use wharf_wire::rest_v1 as wire;

use crate::error::{in_camel_case, internal};
use crate::scalars::Int64;
use crate::types::{Durability, Mode, Publish, Retain, UnknownCost};

/// A request for a run.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct CreateRunInput {
    /// The tool, as `provider/name`.
    tool: String,
    /// Its inputs: an object. References to files are written as in REST.
    inputs: Option<Value>,
    /// Where outputs go: an object.
    outputs: Option<Value>,
    /// The world; `default` when absent.
    world: Option<String>,
    /// Whether to act or to pretend; `real` when absent.
    mode: Option<Mode>,
    /// The caller's own id for the run.
    run_id: Option<String>,
    /// The run whose local files it may read.
    continues: Option<String>,
    /// The caller's own key for the request; the same request under the same key gives the same run.
    idempotency_key: Option<String>,
    /// How long one attempt may run, in milliseconds.
    timeout_ms: Option<Int64>,
    /// The caller's own id for what the run is part of.
    correlation_id: Option<String>,
    /// The most the run and its children may cost, in micro-dollars.
    budget_micro: Option<Int64>,
    /// Whether it is written down; the tool's default when absent.
    durability: Option<Durability>,
    /// Where the caller works; it permits nothing.
    context: Option<RunContextInput>,
    /// Seats of operators that have a say in the run.
    operator: Option<RunOperatorInput>,
}

/// What surrounds a call. It tells a provider where its caller works, and permits nothing.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct RunContextInput {
    /// The folder of the project that the caller works on, an absolute path.
    project_root: Option<String>,
    /// Further files and folders the call is about, up to 100 absolute paths.
    resource_paths: Option<Vec<String>>,
    /// How the caller shows things: an object.
    ui: Option<Value>,
}

/// Seats of operators that have a say in a run.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct RunOperatorInput {
    /// The seat that must allow the run, unless a rule asks someone else anyway.
    gate: Option<String>,
    /// The seat that is asked when a worker fails.
    senior: Option<String>,
    /// How long to wait for the gating seat before others may decide; 5 minutes when absent.
    deadline_ms: Option<Int64>,
}

impl CreateRunInput {
    /// What the engine is asked for.
    pub(crate) fn read(&self) -> Result<NewRun, Fault> {
        wharf_views::new_run(message(self)?).map_err(in_camel_case)
    }
}

/// What can be set on a world. What is absent stays as it is, or as it is by default.
#[skip_serializing_none]
#[derive(Debug, Default, InputObject, Serialize)]
pub(crate) struct WorldSettingsInput {
    /// The most its runs may cost, in micro-dollars; null for no limit.
    #[serde(skip_serializing_if = "MaybeUndefined::is_undefined")]
    limit_micro: MaybeUndefined<Int64>,
    /// The least that is set aside for an attempt in micro-dollars, unless its tool is free.
    default_hold_micro: Option<Int64>,
    /// When the outputs of its runs become visible.
    publish: Option<Publish>,
    /// Days after which an unused file is removed; null for never.
    #[serde(skip_serializing_if = "MaybeUndefined::is_undefined")]
    retention_days: MaybeUndefined<u32>,
    /// Days after which a run that has ended is removed; null for never.
    #[serde(skip_serializing_if = "MaybeUndefined::is_undefined")]
    run_retention_days: MaybeUndefined<u32>,
    /// All rules about approvals, replacing those there are.
    policy: Option<Vec<PolicyRuleInput>>,
    /// What is booked when the cost of an attempt is unknown.
    unknown_cost: Option<UnknownCost>,
    /// What is kept of the values of its runs once they have ended.
    retain: Option<Retain>,
}

/// A rule about approvals.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct PolicyRuleInput {
    /// The tools it applies to, such as `acme/*`.
    tool: String,
    /// `always`, `first-use`, `destructive` or `cost>N` with N in micro-dollars.
    #[graphql(default = "always")]
    when: String,
    /// Whether an approval is needed then.
    #[graphql(default = true)]
    approve: bool,
    /// Who may give it: `person`, `any` or a seat.
    #[graphql(default = "person")]
    audience: String,
    /// How long a seat is waited for before a person is asked; five minutes when absent.
    patience_ms: Option<Int64>,
}

impl WorldSettingsInput {
    /// What is named; null removes a limit.
    pub(crate) fn read(&self) -> Result<WorldPatch, Fault> {
        wharf_views::world_patch(message(self)?).map_err(in_camel_case)
    }
}

/// An input as REST's message.
pub(crate) fn message<T: DeserializeOwned>(input: &impl Serialize) -> Result<T, Fault> {
    let value = serde_json::to_value(input).map_err(|_| internal())?;
    json::fit(value, "The input").map_err(in_camel_case)
}

/// The run that is named by its id and a world.
pub(crate) fn run_key(id: &str, world_id: Option<&str>) -> Result<RunKey, Fault> {
    let world = world(world_id.unwrap_or(wharf_views::DEFAULT_WORLD))?;
    Ok(RunKey { world, run: wharf_views::id("id", id)? })
}

/// How a question is to end.
pub(crate) fn answer(
    value: Option<Value>,
    status: Option<&str>,
    text: Option<String>,
) -> Result<Resolution, Fault> {
    let named = |word: &str| {
        NoAnswer::parse(word).ok_or_else(|| {
            let message = "`status` must be `declined`, `cancelled` or `off_script`.";
            Fault::invalid("status", message)
        })
    };
    let status = status.map(named).transpose()?;
    wharf_views::answer(wire::AnswerQuestion { value, status, text })
}

/// An ask's id.
pub(crate) fn ask(text: &str) -> Result<AskId, Fault> {
    wharf_views::ask_id("id", text)
}

/// A tool's id.
pub(crate) fn tool(text: &str) -> Result<ToolId, Fault> {
    wharf_views::id("tool", text)
}

/// A world's id.
pub(crate) fn world(text: &str) -> Result<WorldId, Fault> {
    wharf_views::id("world", text)
}

/// A file of a world, local ones of runs included.
pub(crate) fn path(text: &str) -> Result<WorldPath, Fault> {
    WorldPath::parse_any(text).map_err(|error| {
        let message = format!("The path cannot be used: {error}.");
        Fault::new(Code::ScopePathInvalid, message).with("field", "path")
    })
}

/// What paths of files begin with.
pub(crate) fn prefix(text: String) -> Result<String, Fault> {
    if text.starts_with('/') && text.len() <= PATH_BYTES_MAX {
        return Ok(text);
    }
    let message = format!(
        "The argument `prefix` must begin with / and may have {PATH_BYTES_MAX} bytes at most."
    );
    Err(Fault::invalid("prefix", message))
}
