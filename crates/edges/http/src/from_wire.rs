//! Turns what peers send into what the engine understands. Every id is checked here.

mod agents;
mod files;
mod trust;
mod worlds;

use serde_json::Value;
use wharf_domain::run::RunContext;
use wharf_domain::{Resolution, Scope};
use wharf_engine::{NewRun, RunSeats};
use wharf_vocab::{
    AllowScope, AskId, Code, Decision, Fault, IdError, Mode, NoAnswer, Object, ProviderId, RunId,
    RunKey, ToolId, WorldId,
};
use wharf_wire::rest_v1::{self as wire, AnswerQuestion, CreateRun, DecideApproval};

pub(crate) use agents::{approval, folder, new_tool};
pub(crate) use files::{
    B3_HEADER, begin_upload, complete_upload, new_file, part_number, path_in, path_param,
    unconditional, upload_id,
};
pub(crate) use trust::{grant_id, narrowing, new_grant, secret_name};
pub(crate) use worlds::{budget, changed, new_world};

use crate::answer::invalid;
use crate::params::{DEFAULT_WORLD, Params};

/// Most paths that a request says it is about.
const RESOURCE_PATHS_MAX: usize = 100;

/// A request for a run.
pub(crate) fn new_run(request: CreateRun) -> Result<NewRun, Fault> {
    let inputs = object(request.inputs).ok_or_else(|| {
        let message = "The inputs do not fit the tool at /inputs: they must be a JSON object.";
        Fault::new(Code::ToolInvalidInput, message).with("path", "/inputs")
    })?;
    let outputs = object(request.outputs)
        .ok_or_else(|| invalid("outputs", "The field `outputs` must be a JSON object."))?;
    let world = match request.world {
        Some(world) => world,
        None => default_world()?,
    };
    Ok(NewRun {
        tool: request.tool,
        inputs,
        outputs,
        world,
        mode: request.mode.unwrap_or(Mode::Real),
        run_id: request.run_id,
        continues: request.continues,
        idempotency_key: request.idempotency_key,
        timeout_ms: request.timeout_ms,
        correlation_id: correlation_id(request.correlation_id)?,
        traceparent: None,
        budget_micro: request.budget_micro,
        durability: request.durability,
        parent: None,
        handed_on: std::collections::BTreeMap::new(),
        seats: seats(request.operator)?,
        context: context(request.context)?,
    })
}

/// Seats that have a say in a run.
fn seats(operator: Option<wire::RunOperator>) -> Result<RunSeats, Fault> {
    let wire::RunOperator { gate, senior, deadline_ms } = operator.unwrap_or_default();
    if deadline_ms == Some(0) {
        let message = "The field `operator.deadline_ms` must be more than 0.";
        return Err(invalid("operator.deadline_ms", message));
    }
    Ok(RunSeats { gate, senior, deadline_ms })
}

/// Where a caller stands while it asks. Its paths are absolute, because only the caller knows
/// where others lead.
fn context(context: Option<wire::RunContext>) -> Result<RunContext, Fault> {
    let context = context.unwrap_or_default();
    let fits = |path: &String| agents::folder(path).is_ok();
    if !context.project_root.iter().all(fits) {
        let message = "The field `context.project_root` must be an absolute path.";
        return Err(invalid("context.project_root", message));
    }
    if context.resource_paths.len() > RESOURCE_PATHS_MAX || !context.resource_paths.iter().all(fits)
    {
        let message = "The field `context.resource_paths` must be up to 100 absolute paths.";
        return Err(invalid("context.resource_paths", message));
    }
    Ok(RunContext {
        project_root: context.project_root,
        resource_paths: context.resource_paths,
        ui: (!context.ui.is_empty()).then_some(context.ui),
    })
}

/// The run that a path and its `?world=` name.
pub(crate) fn run_key(run: &str, params: &Params) -> Result<RunKey, Fault> {
    let world = match params.world()? {
        Some(world) => world,
        None => default_world()?,
    };
    Ok(RunKey { world, run: field("run_id", RunId::new(run))? })
}

fn default_world() -> Result<WorldId, Fault> {
    field("world", WorldId::new(DEFAULT_WORLD))
}

/// The ask that a path names.
pub(crate) fn ask_id(text: &str) -> Result<AskId, Fault> {
    match AskId::new(text) {
        // It is an id, as runs have them, and no ask was ever called so.
        Err(_) if RunId::new(text).is_ok() => {
            Err(Fault::new(Code::AskNotFound, "There is no such ask."))
        }
        id => field("ask_id", id),
    }
}

/// The tool that a path names.
pub(crate) fn tool_id(provider: &str, name: &str) -> Result<ToolId, Fault> {
    field("tool", ToolId::new(format!("{provider}/{name}")))
}

/// The agent that a path names.
pub(crate) fn agent_id(text: &str) -> Result<ProviderId, Fault> {
    field("agent_id", ProviderId::new(text).map_err(|_| IdError { what: "an agent id" }))
}

/// The world that a path or a body names.
pub(crate) fn world_id(text: &str) -> Result<WorldId, Fault> {
    field("world", WorldId::new(text))
}

/// How a question is to end.
pub(crate) fn answer(request: AnswerQuestion) -> Result<Resolution, Fault> {
    match (request.value, request.status) {
        (Some(value), None) => Ok(Resolution::Answered { value }),
        (None, Some(NoAnswer::Declined)) => Ok(Resolution::Declined),
        (None, Some(NoAnswer::Cancelled)) => Ok(Resolution::Cancelled),
        (None, Some(NoAnswer::OffScript)) => {
            Ok(Resolution::OffScript { text: request.text.unwrap_or_default() })
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(invalid("value", "Send either `value` or `status`, and not both."))
        }
    }
}

/// How an approval is to end.
pub(crate) fn decision(request: DecideApproval) -> Result<Resolution, Fault> {
    match (request.decision, request.scope) {
        (Decision::Allow, None | Some(AllowScope::Run)) => Ok(Resolution::ALLOW),
        (Decision::Allow, Some(AllowScope::Parent)) => {
            Ok(Resolution::Allow { scope: Scope::Parent })
        }
        (Decision::Deny, Some(_)) => Err(invalid("scope", "Only an allowance has a `scope`.")),
        (Decision::Deny, None) => {
            Ok(Resolution::Deny { reason: request.reason.unwrap_or_default() })
        }
    }
}

/// An object; nothing at all counts as an empty one.
fn object(value: Value) -> Option<Object> {
    match value {
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
    let message = "A correlation_id has 255 bytes at most and no control characters.";
    Err(invalid("correlation_id", message))
}

fn field<T>(name: &str, id: Result<T, IdError>) -> Result<T, Fault> {
    id.map_err(|error| invalid(name, format!("The field `{name}` does not fit; {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wharf_vocab::SeatId;

    fn read(body: Value) -> Result<NewRun, Fault> {
        new_run(wharf_vocab::json::fit(body, "The body")?)
    }

    #[test]
    fn o013_a_run_can_name_the_seats_that_have_a_say() {
        let operator = json!({"gate": "S-1", "senior": "S-2", "deadline_ms": 5});
        let new = read(json!({"tool": "a/b", "operator": operator})).expect("fits");
        assert_eq!(new.seats.gate, SeatId::new("S-1").ok());
        assert_eq!((new.seats.senior, new.seats.deadline_ms), (SeatId::new("S-2").ok(), Some(5)));
        for (wrong, field) in [
            (json!({"gate": "S 1"}), "operator.gate"),
            (json!({"senior": ""}), "operator.senior"),
            (json!({"deadline_ms": 0}), "operator.deadline_ms"),
        ] {
            let fault = read(json!({"tool": "a/b", "operator": wrong})).expect_err("refused");
            assert_eq!(fault.details.get("field"), Some(&json!(field)));
        }
    }

    #[test]
    fn a_request_needs_no_more_than_a_tool() {
        let new = read(json!({"tool": "wharf/echo"})).expect("fits");
        let default = WorldId::new("default").expect("valid");
        assert_eq!(new, NewRun::new(new.tool.clone(), Object::new(), default));
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        for (name, value) in [
            ("tool", json!("echo")),
            ("world", json!("../x")),
            ("run_id", json!("a b")),
            ("continues", json!("")),
            ("outputs", json!([])),
            ("correlation_id", json!("a\u{0}b")),
        ] {
            let mut body = json!({"tool": "wharf/echo"});
            body[name] = value;
            let fault = read(body).expect_err(name);
            assert!(fault.is(Code::RequestInvalid), "{fault}");
            assert_eq!(fault.details["field"], name);
        }
    }

    #[test]
    fn a_context_has_absolute_paths() {
        let of = |context: Value| read(json!({"tool": "a/b", "context": context}));
        let new = of(json!({"project_root": "/p", "resource_paths": ["/p/a"], "ui": {"x": 1}}));
        let context = new.expect("fits").context;
        assert_eq!(context.paths().collect::<Vec<_>>(), ["/p", "/p/a"]);
        assert!(of(json!({})).expect("fits").context.is_empty());
        for (field, bad) in [
            ("context.project_root", json!({"project_root": "p"})),
            ("context.resource_paths", json!({"resource_paths": ["/p", "../a"]})),
            ("context.resource_paths", json!({"resource_paths": vec!["/p"; 101]})),
        ] {
            assert_eq!(of(bad).expect_err(field).details["field"], field);
        }
    }

    #[test]
    fn inputs_are_an_object() {
        for inputs in [json!([1]), json!("x"), json!(1), json!(true)] {
            let fault = read(json!({"tool": "a/b", "inputs": inputs})).expect_err("refused");
            assert!(fault.is(Code::ToolInvalidInput));
            assert_eq!(fault.details["path"], "/inputs");
        }
    }

    #[test]
    fn an_answer_is_a_value_or_a_status() {
        let read = |body: Value| wharf_vocab::json::fit(body, "The body").and_then(answer);
        assert_eq!(read(json!({"value": 1})), Ok(Resolution::Answered { value: json!(1) }));
        let null = Resolution::Answered { value: Value::Null };
        assert_eq!(read(json!({"value": null})), Ok(null), "null is a value too");
        assert_eq!(read(json!({"status": "declined"})), Ok(Resolution::Declined));
        assert_eq!(read(json!({"status": "cancelled"})), Ok(Resolution::Cancelled));
        let off_script = Resolution::OffScript { text: "why?".to_owned() };
        assert_eq!(read(json!({"status": "off_script", "text": "why?"})), Ok(off_script));
        for bad in [json!({}), json!({"value": 1, "status": "declined"}), json!({"status": "x"})] {
            assert!(read(bad).is_err_and(|fault| fault.is(Code::RequestInvalid)));
        }
    }

    #[test]
    fn an_allowance_says_how_far_it_reaches() {
        let read = |body: Value| wharf_vocab::json::fit(body, "The body").and_then(decision);
        let allow = |scope| Ok(Resolution::Allow { scope });
        assert_eq!(read(json!({"decision": "allow"})), allow(Scope::Run));
        assert_eq!(read(json!({"decision": "allow", "scope": "run"})), allow(Scope::Run));
        assert_eq!(read(json!({"decision": "allow", "scope": "parent"})), allow(Scope::Parent));
        for bad in [
            json!({"decision": "allow", "scope": "world"}),
            json!({"decision": "deny", "scope": "run"}),
            json!({"decision": "maybe"}),
        ] {
            assert!(read(bad).is_err_and(|fault| fault.is(Code::RequestInvalid)));
        }
    }
}
