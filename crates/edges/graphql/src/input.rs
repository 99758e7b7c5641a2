//! Turns what peers send into what the engine understands. Every id is checked here.

use std::path::Path;

use async_graphql::{InputObject, MaybeUndefined};
use serde_json::Value;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::RunContext;
use wharf_domain::scope::WorldPath;
use wharf_domain::{Audience, Resolution, Rule, When, WorldPatch};
use wharf_engine::NewRun;
use wharf_vocab::limits::PATH_BYTES_MAX;
use wharf_vocab::{AskId, Code, Fault, IdError, Object, RunId, RunKey, ToolId, WorldId};

use crate::error::invalid;
use crate::scalars::Int64;
use crate::types::{Durability, Mode, Publish, UnknownCost};

/// The world of a request that names none.
const DEFAULT_WORLD: &str = "default";
/// Most rules about approvals that a world has.
const RULES_MAX: usize = 100;
/// Most days that a world keeps what nobody uses: about a hundred years.
const RETENTION_DAYS_MAX: u32 = 36_500;
/// Most paths that a request tells of.
const RESOURCE_PATHS_MAX: usize = 100;
/// Longest path that a request tells of.
const CONTEXT_PATH_BYTES_MAX: usize = 4_096;

/// A request for a run.
#[derive(Debug, InputObject)]
pub(crate) struct CreateRunInput {
    /// The tool, as `provider/name`.
    tool: String,
    /// What it is given: an object. References to files are written as in REST.
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
    /// Where the caller stands; it permits nothing.
    context: Option<RunContextInput>,
}

/// What surrounds a call. It tells a provider where its caller stands, and permits nothing.
#[derive(Debug, Default, InputObject)]
pub(crate) struct RunContextInput {
    /// The folder of the project that the caller works on, an absolute path.
    project_root: Option<String>,
    /// Further files and folders the call is about, up to 100 absolute paths.
    resource_paths: Option<Vec<String>>,
    /// How the caller shows things: an object.
    ui: Option<Value>,
}

impl CreateRunInput {
    /// The world the run is asked for.
    pub(crate) fn world(&self) -> Result<WorldId, Fault> {
        world_or_default(self.world.as_deref())
    }

    /// What the engine is asked for.
    pub(crate) fn read(self) -> Result<NewRun, Fault> {
        let world = self.world()?;
        let inputs = object(self.inputs).ok_or_else(|| {
            let message = "The inputs do not fit the tool at /inputs: they must be a JSON object.";
            Fault::new(Code::ToolInvalidInput, message).with("path", "/inputs")
        })?;
        let outputs = object(self.outputs)
            .ok_or_else(|| invalid("outputs", "The field `outputs` must be a JSON object."))?;
        Ok(NewRun {
            tool: tool(&self.tool)?,
            inputs,
            outputs,
            world,
            mode: self.mode.unwrap_or(Mode::Real).into(),
            run_id: self.run_id.as_deref().map(|text| run_id("runId", text)).transpose()?,
            continues: self
                .continues
                .as_deref()
                .map(|text| run_id("continues", text))
                .transpose()?,
            idempotency_key: self.idempotency_key,
            timeout_ms: self.timeout_ms.map(|ms| ms.0),
            correlation_id: correlation_id(self.correlation_id)?,
            traceparent: None,
            budget_micro: self.budget_micro.map(|micro| micro.0),
            durability: self.durability.map(Into::into),
            parent: None,
            handed_on: std::collections::BTreeMap::new(),
            seats: wharf_engine::RunSeats::default(),
            context: self.context.unwrap_or_default().read()?,
        })
    }
}

impl RunContextInput {
    /// Its paths are absolute, because only the caller knows where others lead.
    fn read(self) -> Result<RunContext, Fault> {
        let fits = |path: &String| {
            let plain = path.len() <= CONTEXT_PATH_BYTES_MAX && !path.chars().any(char::is_control);
            plain && Path::new(path).is_absolute()
        };
        if !self.project_root.iter().all(fits) {
            let message = "The field `context.projectRoot` must be an absolute path.";
            return Err(invalid("context.projectRoot", message));
        }
        let resource_paths = self.resource_paths.unwrap_or_default();
        if resource_paths.len() > RESOURCE_PATHS_MAX || !resource_paths.iter().all(fits) {
            let message = "The field `context.resourcePaths` must be up to 100 absolute paths.";
            return Err(invalid("context.resourcePaths", message));
        }
        let ui = object(self.ui).ok_or_else(|| {
            invalid("context.ui", "The field `context.ui` must be a JSON object.")
        })?;
        let ui = (!ui.is_empty()).then_some(ui);
        Ok(RunContext { project_root: self.project_root, resource_paths, ui })
    }
}

/// What can be set on a world. What is absent stays as it is, or as it is by default.
#[derive(Debug, Default, InputObject)]
pub(crate) struct WorldSettingsInput {
    /// The most its runs may cost, in micro-dollars; null for no limit.
    limit_micro: MaybeUndefined<Int64>,
    /// The least that is set aside for an attempt in micro-dollars, unless its tool is free.
    default_hold_micro: Option<Int64>,
    /// When outputs of its runs can be seen.
    publish: Option<Publish>,
    /// Days after which a file that nobody has used goes; null for never.
    retention_days: MaybeUndefined<u32>,
    /// All rules about approvals, in the place of those there are.
    policy: Option<Vec<PolicyRuleInput>>,
    /// What is booked when nobody knows what an attempt cost.
    unknown_cost: Option<UnknownCost>,
}

/// A rule about approvals.
#[derive(Debug, InputObject)]
pub(crate) struct PolicyRuleInput {
    /// The tools it speaks of, such as `acme/*`.
    tool: String,
    /// `always`, `first-use` or `cost>N` with N in micro-dollars.
    #[graphql(default = "always")]
    when: String,
    /// Whether an approval is needed then.
    approve: bool,
    /// Who may give it: `person`, `any` or a seat.
    #[graphql(default = "person")]
    audience: String,
    /// How long a seat is waited for before a person is asked; five minutes when absent.
    patience_ms: Option<Int64>,
}

impl WorldSettingsInput {
    /// What is named; null takes a limit away.
    pub(crate) fn read(self) -> Result<WorldPatch, Fault> {
        let retention = Option::<Option<u32>>::from(self.retention_days);
        Ok(WorldPatch {
            limit_micro: self.limit_micro.map_value(|limit| limit.0).into(),
            default_hold_micro: self.default_hold_micro.map(|hold| hold.0),
            publish: self.publish.map(Into::into),
            retention_days: retention.map(|given| given.map(days).transpose()).transpose()?,
            policy: self.policy.map(rules).transpose()?,
            unknown_cost: self.unknown_cost.map(Into::into),
        })
    }
}

fn days(days: u32) -> Result<u32, Fault> {
    if (1..=RETENTION_DAYS_MAX).contains(&days) {
        return Ok(days);
    }
    let message =
        format!("The field `retentionDays` must be a number from 1 to {RETENTION_DAYS_MAX}.");
    Err(invalid("retentionDays", message))
}

fn rules(policy: Vec<PolicyRuleInput>) -> Result<Vec<Rule>, Fault> {
    if policy.len() > RULES_MAX {
        let message = format!("A world may have {RULES_MAX} rules at most.");
        return Err(invalid("policy", message));
    }
    let rule = |(number, rule): (usize, PolicyRuleInput)| {
        let wrong = |name: &str, wanted: &str| {
            let field = format!("policy.{number}.{name}");
            let message = format!("The field `{field}` must be {wanted}.");
            invalid(&field, message)
        };
        Ok(Rule {
            tool: ToolPattern::parse(&rule.tool)
                .map_err(|_| wrong("tool", "a pattern of tools, such as acme/*"))?,
            when: When::parse(&rule.when)
                .map_err(|_| wrong("when", "always, first-use or cost>N"))?,
            approve: rule.approve,
            audience: Audience::try_from(rule.audience)
                .map_err(|_| wrong("audience", "person, any or a seat"))?,
            patience_ms: Rule::patience_of(rule.patience_ms.map(|Int64(ms)| ms))
                .map_err(|error| wrong("patienceMs", &error.to_string()))?,
        })
    };
    policy.into_iter().enumerate().map(rule).collect()
}

/// The run that is named by its id and a world.
pub(crate) fn run_key(id: &str, world: Option<&str>) -> Result<RunKey, Fault> {
    Ok(RunKey { world: world_or_default(world)?, run: run_id("id", id)? })
}

/// How a question is to end.
pub(crate) fn answer(
    value: Option<Value>,
    status: Option<&str>,
    text: Option<String>,
) -> Result<Resolution, Fault> {
    match (value, status) {
        (Some(value), None) => Ok(Resolution::Answered { value }),
        (None, Some("declined")) => Ok(Resolution::Declined),
        (None, Some("cancelled")) => Ok(Resolution::Cancelled),
        (None, Some("off_script")) => Ok(Resolution::OffScript { text: text.unwrap_or_default() }),
        (None, Some(_)) => {
            let message = "`status` must be `declined`, `cancelled` or `off_script`.";
            Err(invalid("status", message))
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(invalid("value", "Send either `value` or `status`, and not both."))
        }
    }
}

/// An ask's id.
pub(crate) fn ask(text: &str) -> Result<AskId, Fault> {
    match AskId::new(text) {
        // It is an id, as runs have them, and no ask was ever called so.
        Err(_) if RunId::new(text).is_ok() => {
            Err(Fault::new(Code::AskNotFound, "There is no such ask."))
        }
        id => field("id", id),
    }
}

/// A tool's id.
pub(crate) fn tool(text: &str) -> Result<ToolId, Fault> {
    field("tool", ToolId::new(text))
}

/// A world's id.
pub(crate) fn world(text: &str) -> Result<WorldId, Fault> {
    field("world", WorldId::new(text))
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
    Err(invalid("prefix", message))
}

fn world_or_default(text: Option<&str>) -> Result<WorldId, Fault> {
    world(text.unwrap_or(DEFAULT_WORLD))
}

fn run_id(name: &str, text: &str) -> Result<RunId, Fault> {
    field(name, RunId::new(text))
}

/// An object; nothing at all counts as an empty one.
fn object(value: Option<Value>) -> Option<Object> {
    match value.unwrap_or(Value::Null) {
        Value::Object(object) => Some(object),
        Value::Null => Some(Object::new()),
        _ => None,
    }
}

fn correlation_id(text: Option<String>) -> Result<Option<String>, Fault> {
    let fits = |text: &String| text.len() <= 255 && !text.chars().any(char::is_control);
    if text.as_ref().is_none_or(fits) {
        return Ok(text);
    }
    let message = "A correlationId has 255 bytes at most and no control characters.";
    Err(invalid("correlationId", message))
}

fn field<T>(name: &str, id: Result<T, IdError>) -> Result<T, Fault> {
    id.map_err(|error| invalid(name, format!("The field `{name}` does not fit; {error}.")))
}
