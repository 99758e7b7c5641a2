//! From messages to what they ask for: the tools of a seat, and tasks as runs.

use serde_json::{Value, json};
use wharf_domain::flow::Document;
use wharf_domain::{Caller, ToolDef, WorkerKind};
use wharf_engine::{NewRun, RunSeats};
use wharf_vocab::{Code, Durability, Fault, Object, RunId, SeatId, ToolId, Verb, WorldId};
use wharf_wire::operator_v1::{Blueprint, NewTask};

use crate::seats::{self, random_hex};
use crate::shared::SeatHub;

/// How long an attempt may take that a seat executes, unless something says otherwise.
const TIMEOUT_MS: u64 = 30 * 60 * 1000;

/// The tools that a manifest names: `{"tools": ["coder", {"name": …, "description": …,
/// "input_schema": …, "output_schema": …, "side_effects": …, "worker": {"variant": …, "tools":
/// […]}}]}`.
pub(crate) fn tools(seat: &SeatId, manifest: &Value) -> Result<Vec<ToolDef>, Fault> {
    let named = manifest.get("tools").or_else(|| manifest.get("agents")).and_then(Value::as_array);
    let each = named.into_iter().flatten().map(|item| {
        let name = item.as_str().or_else(|| item.get("name").and_then(Value::as_str));
        let mut def = agent(seat, name.unwrap_or_default())?;
        if let Some(text) = item.get("description").and_then(Value::as_str) {
            text.clone_into(&mut def.description);
        }
        if let Some(schema) = item.get("input_schema") {
            def.input_schema = schema.clone();
        }
        def.output_schema = item.get("output_schema").cloned();
        def.side_effects = item.get("side_effects").and_then(Value::as_bool);
        def.worker = item.get("worker").filter(|it| !it.is_null()).map(worker).transpose()?;
        Ok(def)
    });
    each.collect()
}

/// The kind of worker that a tool asks for.
fn worker(declared: &Value) -> Result<WorkerKind, Fault> {
    let kind: wharf_wire::operator_v1::WorkerKind =
        wharf_vocab::json::fit(declared.clone(), "The `worker` of a tool")?;
    Ok(WorkerKind { variant: kind.variant, tools: kind.tools })
}

/// A tool that a seat executes under this name.
fn agent(seat: &SeatId, name: &str) -> Result<ToolDef, Fault> {
    let id = ToolId::new(format!("{seat}/{name}")).map_err(|_| {
        let message = "The field `agent` cannot be the name of an agent.";
        Fault::new(Code::RequestInvalid, message).with("field", "agent")
    })?;
    let description = format!("Executed by the operator on the seat {seat}.");
    let mut def = ToolDef::new(id, description, json!({ "type": "object" }));
    def.reattach = true;
    def.mock = true;
    def.timeout_ms = Some(TIMEOUT_MS);
    Ok(def)
}

/// What a task executes.
#[derive(Clone, Copy)]
enum Executed<'a> {
    /// A tool by its id, or what a seat calls by this name.
    Tool(&'a str),
    /// A flow by its name.
    Flow(&'a str),
    /// A document that comes with the task.
    Document(&'a Value),
}

impl<'a> Executed<'a> {
    fn of(task: &'a NewTask) -> Result<Self, Fault> {
        let wrong = |field: &str, why: &str| {
            let message = format!("`{field}` cannot be used: {why}.");
            Fault::new(Code::RequestInvalid, message).with("field", field)
        };
        match (&task.agent, &task.blueprint) {
            (Some(agent), _) => Ok(Self::Tool(agent)),
            (None, Some(Blueprint::Name(name) | Blueprint::Id(name))) => {
                Ok(match name.contains('/') {
                    true => Self::Tool(name),
                    false => Self::Flow(name),
                })
            }
            (None, Some(Blueprint::Other(document))) if document.get("steps").is_some() => {
                Ok(Self::Document(document))
            }
            (None, Some(Blueprint::Other(_))) => {
                let why = "it is no name, no {\"kind\": \"id\", \"id\": …} and no document with \
                           steps";
                Err(wrong("blueprint", why))
            }
            (None, None) => Err(wrong("agent", "it is missing")),
        }
    }
}

/// The flow that a task names.
fn flow(shared: &SeatHub, name: &str) -> Result<ToolId, Fault> {
    let tool = ToolId::new(format!("{}/{name}", Document::NAMESPACE));
    let known = |tool: &ToolId| shared.options.handle.flows().of_tool(tool).is_some();
    tool.ok().filter(known).ok_or_else(|| {
        let message = "There is no flow with the name in `blueprint`.";
        Fault::new(Code::ToolNotFound, message).with("field", "blueprint")
    })
}

/// The run that a task is.
pub(crate) async fn task(
    shared: &SeatHub,
    caller: &Caller,
    task: &NewTask,
) -> Result<NewRun, Fault> {
    let wrong = |field: &str, why: &str| {
        let message = format!("`{field}` cannot be used: {why}.");
        Fault::new(Code::RequestInvalid, message).with("field", field)
    };
    let seat = |field: &str, text: &Option<String>| {
        let parse = |text: &String| SeatId::new(text).map_err(|_| wrong(field, "it is no seat"));
        text.as_ref().map(parse).transpose()
    };
    let world = task.world.as_deref().unwrap_or("default");
    let world = WorldId::new(world).map_err(|error| wrong("world", &error.to_string()))?;
    let executed = Executed::of(task)?;
    let tool = match seat("operator_sid", &task.operator_sid)? {
        Some(seat) => {
            let (Executed::Tool(agent) | Executed::Flow(agent)) = executed else {
                return Err(wrong("blueprint", "a seat executes what has a name"));
            };
            let def = self::agent(&seat, agent)?;
            let tool = def.tool.clone();
            // Nobody adds to what a seat executes who may not run it.
            caller.rights.check(Verb::Run, &world)?;
            caller.rights.check_tool(&tool)?;
            seats::add_tool(shared, &seat, def).await?;
            tool
        }
        None => match executed {
            Executed::Tool(agent) => {
                ToolId::new(agent).map_err(|error| wrong("agent", &error.to_string()))?
            }
            Executed::Flow(name) => flow(shared, name)?,
            Executed::Document(document) => {
                caller.rights.check(Verb::Run, &world)?;
                shared.options.handle.flows().add_inline(caller, document).await?
            }
        },
    };
    let inputs = match task.input.clone().or_else(|| task.init_ctx.clone()) {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(inputs)) => inputs,
        Some(text @ Value::String(_)) => Object::from_iter([("prompt".to_owned(), text)]),
        Some(other) => Object::from_iter([("value".to_owned(), other)]),
    };
    let run_id = match &task.run_id {
        Some(id) => RunId::new(id).map_err(|error| wrong("run_id", &error.to_string()))?,
        None => RunId::new(format!("R-{}", random_hex(16)?))
            .map_err(|_| Fault::new(Code::CoreInternal, "The run could not be named."))?,
    };
    let durability = match task.durability.as_deref() {
        None => None,
        Some(word) => {
            Some(Durability::parse(word).ok_or_else(|| wrong("durability", "it is unknown"))?)
        }
    };
    let hooks = task.operator.clone().unwrap_or_default();
    Ok(NewRun {
        run_id: Some(run_id),
        timeout_ms: task.timeout_secs.or(task.ttl_secs).map(|secs| secs.saturating_mul(1_000)),
        durability,
        seats: RunSeats {
            gate: seat("operator.spawn_hook_id", &hooks.spawn_hook_id)?,
            senior: seat("operator.senior_bridge_id", &hooks.senior_bridge_id)?,
            deadline_ms: hooks.deadline_ms,
        },
        ..NewRun::new(tool, inputs, world)
    })
}
