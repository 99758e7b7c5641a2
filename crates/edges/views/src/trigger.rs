//! Triggers: how they are shown, and how requests for them are read.

use std::collections::BTreeMap;

use wharf_domain::permission::ToolPattern;
use wharf_domain::schedule::SettledHow;
use wharf_domain::trigger::{
    FilePattern, Hook, HookCall, RunCondition, TriggerFired, TriggerOn, TriggerSpec,
};
use wharf_domain::{Caller, Trigger};
use wharf_vocab::{
    DateTime, Fault, FiringState, HookProof, SecretName, Timestamp, TriggerId, WorldId,
};
use wharf_wire::rest_v1 as wire;

use crate::request::{DEFAULT_WORLD, id, object};

/// Where hooks are.
pub const HOOKS: &str = "/v1/hooks/";

/// A trigger as it stands; never its secret.
#[must_use]
pub fn trigger(trigger: &Trigger) -> wire::Trigger {
    let spec = &trigger.spec;
    let hook = spec.hook();
    let pairs = |pairs: &[(String, String)]| pairs.iter().cloned().collect();
    wire::Trigger {
        name: trigger.id.clone(),
        state: trigger.state(),
        pause_cause: trigger.paused.as_ref().map(|pause| pause.cause.as_str().to_owned()),
        path: hook.map(|hook| format!("{HOOKS}{}", hook.id)),
        proof: hook.map(|hook| hook.proof),
        secret_name: hook.map(|hook| hook.secret.clone()),
        on_file: match &spec.on {
            TriggerOn::File(files) => Some(files.paths.clone()),
            _ => None,
        },
        on_run: match &spec.on {
            TriggerOn::Run(condition) => Some(condition.when.clone()),
            _ => None,
        },
        secret: None,
        tool: spec.tool.clone(),
        world: spec.world.clone(),
        inputs: spec.inputs.clone(),
        body: spec.body.clone(),
        headers: pairs(&spec.headers),
        query: pairs(&spec.query),
        budget_micro: spec.budget_micro,
        allow: spec.allow.iter().map(ToString::to_string).collect(),
        fired: trigger.fired,
        last: trigger.last.as_ref().map(|(at, fired)| trigger_firing(*at, fired)),
        created_at: DateTime(trigger.made_at),
        created_by: trigger.by.grant.clone(),
        expires_at: Caller::trigger(trigger).rights.until.map(DateTime),
    }
}

/// What came of something that was to start a run.
#[must_use]
pub fn trigger_firing(at: Timestamp, fired: &TriggerFired) -> wire::TriggerFiring {
    let (state, run_id, error) = match &fired.how {
        SettledHow::Started(run) => (FiringState::Started, Some(run.clone()), None),
        SettledHow::Refused(fault) => {
            (FiringState::Refused, None, Some(wire::ErrorInfo::from(fault)))
        }
    };
    wire::TriggerFiring { at: DateTime(at), about: fired.about.clone(), state, run_id, error }
}

/// The call that a test of a hook stands for.
#[must_use]
pub(crate) fn test_call(request: &wire::TestTrigger) -> HookCall {
    let lower = |(name, value): (&String, &String)| (name.to_ascii_lowercase(), value.clone());
    HookCall {
        body: request.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default(),
        headers: request.headers.iter().flatten().map(lower).collect(),
        query: request.query.clone().unwrap_or_default(),
        ..HookCall::default()
    }
}

/// The world that a request for a trigger is about.
pub fn world_of(request: &wire::CreateTrigger) -> Result<WorldId, Fault> {
    request.world.clone().map_or_else(|| id("world", DEFAULT_WORLD), Ok)
}

/// What a trigger starts runs on, by a request; `hook` is for one that is called.
fn on(request: &wire::CreateTrigger, hook: String) -> Result<TriggerOn, Fault> {
    let fault = |message: &str| Err(Fault::invalid("on_file", message));
    match (&request.on_file, &request.on_run) {
        (None, None) => {
            let secret = SecretName::new(format!("trigger.{}.secret", request.name));
            let secret = secret.map_err(|_| {
                Fault::invalid("name", "The field `name` does not fit; it is too long.")
            })?;
            let proof = request.proof.unwrap_or(HookProof::Standard);
            Ok(TriggerOn::Hook(Hook { id: hook, proof, secret }))
        }
        (Some(_), Some(_)) => fault("A trigger starts on files or on runs; send one of both."),
        _ if request.proof.is_some() || request.secret.is_some() => {
            fault("Only a hook has a proof and a secret; this trigger has none.")
        }
        (Some(paths), None) => Ok(TriggerOn::File(FilePattern { paths: paths.clone() })),
        (None, Some(when)) => Ok(TriggerOn::Run(RunCondition { when: when.clone() })),
    }
}

/// A request for a trigger, with this hook if it is called.
pub fn new_trigger(
    request: wire::CreateTrigger,
    hook: String,
) -> Result<(TriggerId, TriggerSpec), Fault> {
    let pattern = |text: &String| {
        ToolPattern::parse(text).map_err(|_| {
            let message = "The field `allow` must be patterns of tools such as llm/* or acme/mail.";
            Fault::invalid("allow", message)
        })
    };
    let lower = |map: Option<BTreeMap<String, String>>| {
        map.unwrap_or_default().into_iter().map(|(input, name)| (input, name.to_ascii_lowercase()))
    };
    let (on, world) = (on(&request, hook)?, world_of(&request)?);
    let inputs = object(request.inputs)
        .ok_or_else(|| Fault::invalid("inputs", "The field `inputs` must be a JSON object."))?;
    let spec = TriggerSpec {
        on,
        tool: request.tool,
        world,
        inputs,
        body: request.body,
        headers: lower(request.headers).collect(),
        query: request.query.unwrap_or_default().into_iter().collect(),
        budget_micro: request.budget_micro,
        allow: request.allow.unwrap_or_default().iter().map(pattern).collect::<Result<_, _>>()?,
    };
    Ok((request.name, spec))
}
