//! Turns what peers send into what the engine understands. Every id is checked here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use wharf_domain::run::RunContext;
use wharf_domain::{Resolution, WorldSettings};
use wharf_engine::NewRun;
use wharf_vocab::{
    AgentId, AskId, Code, Fault, IdError, Mode, Object, RunId, RunKey, ToolId, WorldId,
};
use wharf_wire::rest_v1::{
    AddAgent, AnswerQuestion, ApproveAgent, CreateRun, CreateWorld, DecideApproval, SetBudget,
};

use crate::answer::invalid;
use crate::params::{DEFAULT_WORLD, Params};

/// Longest path of a folder.
const FOLDER_BYTES_MAX: usize = 4096;
/// Most permissions a manifest can ask for.
const PERMISSIONS_MAX: usize = 500;
/// Longest permission.
const PERMISSION_BYTES_MAX: usize = 300;

/// A request for a run.
pub(crate) fn new_run(request: CreateRun) -> Result<NewRun, Fault> {
    let inputs = object(request.inputs).ok_or_else(|| {
        let message = "The inputs do not fit the tool at /inputs: they must be a JSON object.";
        Fault::new(Code::ToolInvalidInput, message).with("path", "/inputs")
    })?;
    let outputs = object(request.outputs)
        .ok_or_else(|| invalid("outputs", "The field `outputs` must be a JSON object."))?;
    let world = request.world.as_deref().unwrap_or(DEFAULT_WORLD);
    Ok(NewRun {
        tool: field("tool", ToolId::new(&request.tool))?,
        inputs,
        outputs,
        world: field("world", WorldId::new(world))?,
        mode: request.mode.unwrap_or(Mode::Real),
        run_id: optional("run_id", request.run_id.as_deref())?,
        continues: optional("continues", request.continues.as_deref())?,
        idempotency_key: request.idempotency_key,
        timeout_ms: request.timeout_ms,
        correlation_id: correlation_id(request.correlation_id)?,
        budget_micro: request.budget_micro,
        durability: request.durability,
        parent: None,
        context: RunContext::default(),
    })
}

/// The run that a path and its `?world=` name.
pub(crate) fn run_key(run: &str, params: &Params) -> Result<RunKey, Fault> {
    let world = match params.world()? {
        Some(world) => world,
        None => field("world", WorldId::new(DEFAULT_WORLD))?,
    };
    Ok(RunKey { world, run: field("run_id", RunId::new(run))? })
}

/// The ask that a path names.
pub(crate) fn ask_id(text: &str) -> Result<AskId, Fault> {
    field("ask_id", AskId::new(text))
}

/// The tool that a path names.
pub(crate) fn tool_id(provider: &str, name: &str) -> Result<ToolId, Fault> {
    field("tool", ToolId::new(format!("{provider}/{name}")))
}

/// The agent that a path names.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, Fault> {
    field("agent_id", AgentId::new(text))
}

/// The folder of a new agent. Where a relative path leads only its sender knows.
pub(crate) fn folder(request: AddAgent) -> Result<PathBuf, Fault> {
    let folder = request.folder;
    let fits = folder.len() <= FOLDER_BYTES_MAX && !folder.chars().any(char::is_control);
    let folder = PathBuf::from(folder);
    if fits && folder.is_absolute() {
        return Ok(folder);
    }
    let message = "The field `folder` must be an absolute path without control characters.";
    Err(invalid("folder", message))
}

/// The permissions that are approved; none stands for all the agent asks for.
pub(crate) fn approval(request: ApproveAgent) -> Result<Option<Vec<String>>, Fault> {
    let mut permissions = match (request.permissions, request.all.unwrap_or(false)) {
        (None, true) => return Ok(None),
        (Some(permissions), false) => permissions,
        (None, false) | (Some(_), true) => {
            let message = "Send either `permissions` or `all: true`, and not both.";
            return Err(invalid("permissions", message));
        }
    };
    let fits = |text: &String| text.len() <= PERMISSION_BYTES_MAX;
    if permissions.len() > PERMISSIONS_MAX || !permissions.iter().all(fits) {
        let message = format!(
            "A manifest has {PERMISSIONS_MAX} permissions of {PERMISSION_BYTES_MAX} bytes at most."
        );
        return Err(invalid("permissions", message));
    }
    let mut seen = BTreeSet::new();
    permissions.retain(|permission| seen.insert(permission.clone()));
    Ok(Some(permissions))
}

/// The world that a path or a body names.
pub(crate) fn world_id(text: &str) -> Result<WorldId, Fault> {
    field("world", WorldId::new(text))
}

/// How a question is to end.
pub(crate) fn answer(request: AnswerQuestion) -> Result<Resolution, Fault> {
    match (request.value, request.status.as_deref()) {
        (Some(value), None) => Ok(Resolution::Answered { value }),
        (None, Some("declined")) => Ok(Resolution::Declined),
        (None, Some("cancelled")) => Ok(Resolution::Cancelled),
        (None, Some("off_script")) => {
            Ok(Resolution::OffScript { text: request.text.unwrap_or_default() })
        }
        (None, Some(_)) => {
            Err(invalid("status", "`status` must be `declined`, `cancelled` or `off_script`."))
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(invalid("value", "Send either `value` or `status`, and not both."))
        }
    }
}

/// How an approval is to end.
pub(crate) fn decision(request: DecideApproval) -> Result<Resolution, Fault> {
    match request.decision.as_str() {
        "allow" => Ok(Resolution::ALLOW),
        "deny" => Ok(Resolution::Deny { reason: request.reason.unwrap_or_default() }),
        _ => Err(invalid("decision", "`decision` must be `allow` or `deny`.")),
    }
}

/// A new world's id and settings.
pub(crate) fn new_world(request: &CreateWorld) -> Result<(WorldId, WorldSettings), Fault> {
    let settings = WorldSettings {
        limit_micro: request.limit_micro,
        default_hold_micro: request.default_hold_micro.unwrap_or(0),
    };
    Ok((world_id(&request.world)?, settings))
}

/// A world's new settings.
pub(crate) fn budget(request: &SetBudget) -> WorldSettings {
    WorldSettings {
        limit_micro: request.limit_micro,
        default_hold_micro: request.default_hold_micro.unwrap_or(0),
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

fn optional(name: &str, text: Option<&str>) -> Result<Option<RunId>, Fault> {
    text.map(|text| field(name, RunId::new(text))).transpose()
}

fn field<T>(name: &str, id: Result<T, IdError>) -> Result<T, Fault> {
    id.map_err(|error| invalid(name, format!("The field `{name}` does not fit; {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<NewRun, Fault> {
        new_run(serde_json::from_value(body).expect("a request"))
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
    fn inputs_are_an_object() {
        for inputs in [json!([1]), json!("x"), json!(1), json!(true)] {
            let fault = read(json!({"tool": "a/b", "inputs": inputs})).expect_err("refused");
            assert!(fault.is(Code::ToolInvalidInput));
            assert_eq!(fault.details["path"], "/inputs");
        }
    }

    #[test]
    fn an_answer_is_a_value_or_a_status() {
        let read = |body: Value| answer(serde_json::from_value(body).expect("a request"));
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
    fn a_folder_is_absolute_and_can_be_shown() {
        let read = |text: &str| folder(AddAgent { folder: text.to_owned() });
        assert_eq!(read("/srv/agents/hello"), Ok(PathBuf::from("/srv/agents/hello")));
        for bad in ["", "hello", "./hello", "~/hello", "/a\nb", "/a\0b"] {
            let fault = read(bad).expect_err(bad);
            assert_eq!(fault.details["field"], "folder", "{bad}");
        }
        assert!(read(&format!("/{}", "x".repeat(5_000))).is_err());
    }

    #[test]
    fn an_approval_names_permissions_or_all() {
        let read = |body: Value| approval(serde_json::from_value(body).expect("a request"));
        let some = |texts: &[&str]| Ok(Some(texts.iter().map(ToString::to_string).collect()));
        assert_eq!(read(json!({"all": true})), Ok(None));
        assert_eq!(read(json!({"permissions": []})), some(&[]));
        assert_eq!(read(json!({"permissions": ["b:c", "a:b", "b:c"]})), some(&["b:c", "a:b"]));
        assert_eq!(read(json!({"permissions": ["a:b"], "all": false})), some(&["a:b"]));
        for bad in [
            json!({}),
            json!({"all": false}),
            json!({"all": true, "permissions": []}),
            json!({"permissions": ["x".repeat(301)]}),
            json!({"permissions": vec!["a:b"; 501]}),
        ] {
            assert!(read(bad).is_err_and(|fault| fault.is(Code::RequestInvalid)));
        }
    }
}
