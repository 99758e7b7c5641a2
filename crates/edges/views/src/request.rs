//! Requests that every API takes, as the engine understands them: each check and each message once.
//! Fields are named as in REST.

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::RunContext;
use wharf_domain::{Ask, Audience, Resolution, Rule, Scope, When, WorldPatch};
use wharf_domain::{schedule, trigger};
use wharf_engine::{NewRun, RunSeats};
use wharf_vocab::limits::RETENTION_DAYS_MAX;
use wharf_vocab::{
    AllowScope, AskId, Code, Decision, Digest, Fault, IdError, Mode, NoAnswer, Object, RunId,
};
use wharf_wire::rest_v1 as wire;

/// The world of a request that names none.
pub const DEFAULT_WORLD: &str = "default";
/// Longest path that a request names on the caller's or the core's machine.
const FOLDER_BYTES_MAX: usize = 4_096;
/// Most paths that a request says it is about.
const RESOURCE_PATHS_MAX: usize = 100;
/// Longest id of the caller's own for what a run is part of.
const CORRELATION_ID_BYTES_MAX: usize = 255;
/// Most rules about approvals that a world has.
const RULES_MAX: usize = 100;

/// The id that a request names in this field.
pub fn id<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error| {
        Fault::invalid(field, format!("The field `{field}` does not fit; {error}."))
    })
}

/// The ask that a request names in this field.
pub fn ask_id(field: &str, text: &str) -> Result<AskId, Fault> {
    match AskId::new(text) {
        // It is an id, as runs have them, and no ask was ever called so.
        Err(_) if RunId::new(text).is_ok() => {
            Err(Fault::new(Code::AskNotFound, "There is no such ask."))
        }
        _ => id(field, text),
    }
}

/// A request for a run.
pub fn new_run(request: wire::CreateRun) -> Result<NewRun, Fault> {
    let inputs = object(request.inputs).ok_or_else(|| {
        let message = "The inputs do not fit the tool at /inputs: they must be a JSON object.";
        Fault::new(Code::ToolInvalidInput, message).with("path", "/inputs")
    })?;
    let outputs = object(request.outputs)
        .ok_or_else(|| Fault::invalid("outputs", "The field `outputs` must be a JSON object."))?;
    let world = request.world.map_or_else(|| id("world", DEFAULT_WORLD), Ok)?;
    let own = [schedule::RUN_PREFIX, trigger::RUN_PREFIX];
    let taken = |id: &RunId| own.iter().any(|prefix| id.starts_with(prefix));
    if request.run_id.as_ref().is_some_and(taken) {
        let message = "Ids of runs that begin with sc- or hk- are the core's own.";
        return Err(Fault::invalid("run_id", message));
    }
    Ok(NewRun {
        mode: request.mode.unwrap_or(Mode::Real),
        run_id: request.run_id,
        continues: request.continues,
        idempotency_key: request.idempotency_key,
        timeout_ms: request.timeout_ms,
        correlation_id: correlation_id(request.correlation_id)?,
        budget_micro: request.budget_micro,
        durability: request.durability,
        outputs,
        seats: seats(request.operator)?,
        context: context(request.context)?,
        ..NewRun::new(request.tool, inputs, world)
    })
}

/// An object; nothing at all counts as an empty one.
pub(crate) fn object(value: Value) -> Option<Object> {
    match value {
        Value::Object(object) => Some(object),
        Value::Null => Some(Object::new()),
        _ => None,
    }
}

fn correlation_id(text: Option<String>) -> Result<Option<String>, Fault> {
    let fits = |text: &String| {
        text.len() <= CORRELATION_ID_BYTES_MAX && !text.chars().any(char::is_control)
    };
    if text.as_ref().is_none_or(fits) {
        return Ok(text);
    }
    let message = "A correlation_id has 255 bytes at most and no control characters.";
    Err(Fault::invalid("correlation_id", message))
}

fn seats(operator: Option<wire::RunOperator>) -> Result<RunSeats, Fault> {
    let wire::RunOperator { gate, senior, deadline_ms } = operator.unwrap_or_default();
    if deadline_ms == Some(0) {
        let message = "The field `operator.deadline_ms` must be more than 0.";
        return Err(Fault::invalid("operator.deadline_ms", message));
    }
    Ok(RunSeats { gate, senior, deadline_ms })
}

/// Where a caller works. Its paths are absolute, because only the caller knows where others lead.
fn context(context: Option<wire::RunContext>) -> Result<RunContext, Fault> {
    let context = context.unwrap_or_default();
    if !context.project_root.iter().all(|path| is_absolute(path)) {
        let message = "The field `context.project_root` must be an absolute path.";
        return Err(Fault::invalid("context.project_root", message));
    }
    let paths = &context.resource_paths;
    if paths.len() > RESOURCE_PATHS_MAX || !paths.iter().all(|path| is_absolute(path)) {
        let message = "The field `context.resource_paths` must be up to 100 absolute paths.";
        return Err(Fault::invalid("context.resource_paths", message));
    }
    Ok(RunContext {
        project_root: context.project_root,
        resource_paths: context.resource_paths,
        ui: (!context.ui.is_empty()).then_some(context.ui),
    })
}

/// Whether a text is an absolute path that can be shown.
#[must_use]
pub fn is_absolute(path: &str) -> bool {
    path.len() <= FOLDER_BYTES_MAX
        && !path.chars().any(char::is_control)
        && Path::new(path).is_absolute()
}

/// How a question is to end.
pub fn answer(request: wire::AnswerQuestion) -> Result<Resolution, Fault> {
    match (request.value, request.status) {
        (Some(value), None) => Ok(Resolution::Answered { value }),
        (None, Some(NoAnswer::Declined)) => Ok(Resolution::Declined),
        (None, Some(NoAnswer::Cancelled)) => Ok(Resolution::Cancelled),
        (None, Some(NoAnswer::OffScript)) => {
            Ok(Resolution::OffScript { text: request.text.unwrap_or_default() })
        }
        (None, None) | (Some(_), Some(_)) => {
            Err(Fault::invalid("value", "Send either `value` or `status`, and not both."))
        }
    }
}

/// How an approval is to end.
pub fn decision(request: wire::DecideApproval) -> Result<Resolution, Fault> {
    match (request.decision, request.scope) {
        (Decision::Allow, None | Some(AllowScope::Run)) => Ok(Resolution::ALLOW),
        (Decision::Allow, Some(AllowScope::Parent)) => {
            Ok(Resolution::Allow { scope: Scope::Parent })
        }
        (Decision::Deny, Some(_)) => {
            Err(Fault::invalid("scope", "Only an allowance has a `scope`."))
        }
        (Decision::Deny, None) => {
            Ok(Resolution::Deny { reason: request.reason.unwrap_or_default() })
        }
    }
}

/// Whether a decision is about what its sender looked at.
pub fn same_as_shown(ask: &Ask, request: &wire::DecideApproval) -> Result<(), Fault> {
    let differs = |shown: &Option<String>, now: &Option<Digest>| {
        shown.as_ref().is_some_and(|shown| now.as_ref().is_none_or(|now| now.as_str() != shown))
    };
    let spec = &ask.spec;
    let field = match () {
        () if differs(&request.args_digest, &spec.args_digest) => "args_digest",
        () if differs(&request.tool_hash, &spec.tool_hash) => "tool_hash",
        () => return Ok(()),
    };
    let message = "The approval is for something else than what was shown; look at it again.";
    Err(Fault::new(Code::AskChanged, message).with("field", field))
}

/// The settings of a world that a request names.
pub fn world_patch(set: wire::SetWorld) -> Result<WorldPatch, Fault> {
    let kept = |field: &'static str, given: Option<Option<u32>>| {
        given.map(|given| given.map(|number| days(field, number)).transpose()).transpose()
    };
    Ok(WorldPatch {
        limit_micro: set.limit_micro,
        default_hold_micro: set.default_hold_micro,
        publish: set.publish,
        retention_days: kept("retention_days", set.retention_days)?,
        run_retention_days: kept("run_retention_days", set.run_retention_days)?,
        policy: set.policy.map(|rules| policy(&rules)).transpose()?,
        unknown_cost: set.unknown_cost,
        retain: set.retain,
    })
}

fn days(field: &str, days: u32) -> Result<u32, Fault> {
    if (1..=RETENTION_DAYS_MAX).contains(&days) {
        return Ok(days);
    }
    let message = format!("The field `{field}` must be a number from 1 to {RETENTION_DAYS_MAX}.");
    Err(Fault::invalid(field, message))
}

fn policy(rules: &[wire::PolicyRule]) -> Result<Vec<Rule>, Fault> {
    if rules.len() > RULES_MAX {
        let message = format!("The field `policy` may have {RULES_MAX} rules at most.");
        return Err(Fault::invalid("policy", message));
    }
    rules.iter().enumerate().map(|(number, rule)| policy_rule(number, rule)).collect()
}

fn policy_rule(number: usize, rule: &wire::PolicyRule) -> Result<Rule, Fault> {
    let wrong = |field: &str, wanted: &str| {
        let field = format!("policy[{number}].{field}");
        let message = format!("The field `{field}` must be {wanted}.");
        Fault::invalid(&field, message)
    };
    let tool = ToolPattern::parse(&rule.tool)
        .map_err(|_| wrong("tool", "a pattern of tools such as acme/mail, acme/* or *"))?;
    let when = When::parse(&rule.when).map_err(|_| {
        wrong("when", "always, first-use, destructive or cost>N with N in micro-dollars")
    })?;
    let audience = Audience::try_from(rule.audience.clone())
        .map_err(|_| wrong("audience", "person, any, or seat: and the name of a seat"))?;
    let patience_ms = Rule::patience_of(rule.patience_ms)
        .map_err(|error| wrong("patience_ms", &error.to_string()))?;
    Ok(Rule { tool, when, approve: rule.approve, audience, patience_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wharf_vocab::{SeatId, WorldId};

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
