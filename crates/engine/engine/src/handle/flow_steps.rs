//! What the engine does for flows outside their shard: evaluating expressions, and making or
//! finding the runs of their calls. Each answer is an input; nothing here changes anything by
//! itself but the creation of a run, which is known by the step's computed id.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::flow::{EvaluationBudget, NameScope};
use wharf_domain::run::flow::{
    ChildEnd, Evaluable, Evaluation, FlowInput, FlowScope, FlowWork, StepCall, StepRef,
};
use wharf_domain::scope::is_uri;
use wharf_domain::{Audience, Caller, CallerKind, CallerRef, Run};
use wharf_vocab::limits::PROVIDER_WAIT_MS;
use wharf_vocab::{Backoff, Code, DateTime, Executed, Fault, Object, RunKey};

use super::FlowCalls;
use super::flow_results::StepOutputs;
use super::request::{NewRun, RunSeats, StepTerms};
use crate::shard::Effect;

/// How long the engine waits before it asks once more for what cannot be had now.
pub(super) const AGAIN_MIN: Duration = Duration::from_millis(50);
pub(super) const AGAIN_MAX: Duration = Duration::from_secs(5);

impl FlowCalls<'_> {
    /// Does something for a flow and says what came of it; nothing if that is not to be known now.
    pub(crate) async fn work(self, run: &Arc<Run>, work: FlowWork) -> Option<FlowInput> {
        match work {
            FlowWork::Evaluate(wanted) => self.evaluate(run, *wanted).await,
            FlowWork::Begin(call) => self.begin(run, *call).await,
            FlowWork::Restart(wanted) => self.restart(run, *wanted).await,
            // A step is told to stop by its shard.
            FlowWork::Cancel(_) => None,
        }
    }

    async fn evaluate(self, run: &Arc<Run>, wanted: Evaluation) -> Option<FlowInput> {
        let Evaluation { path, turn, what, scope } = wanted;
        let is_output = matches!(what, Evaluable::Output(_));
        let mut result = match self.results(run, &scope, what.references().fields("steps")).await? {
            Ok(results) => {
                let flow = Arc::clone(run);
                let evaluate = move || evaluate(&Seen::of(&flow, &scope, results), &what, &scope);
                // Whoever evaluates it can only be gone when the engine ends.
                tokio::task::spawn_blocking(evaluate).await.ok()?
            }
            Err(fault) => Err(fault),
        };
        if is_output && let Ok(value) = &result {
            result = self.fits(run, value).await.map(|()| value.clone());
        }
        Some(FlowInput::Evaluated { path, turn, result })
    }

    /// Whether an output fits the flow's schema.
    async fn fits(self, run: &Run, output: &Value) -> Result<(), Fault> {
        let Value::Object(output) = output else { return Ok(()) };
        self.0.inner.catalog.check_outputs(&run.spec.tool, output, Default::default()).await
    }

    async fn begin(self, run: &Arc<Run>, call: StepCall) -> Option<FlowInput> {
        let key = RunKey { world: run.key.world.clone(), run: call.child.clone() };
        if call.look_up || call.canceling {
            match self.find(run, &call, &key).await {
                Found::There(input) => return input,
                Found::Stranger => return Some(refused(&call, stranger(&key))),
                Found::Nothing if call.canceling => {
                    let fault = Fault::new(Code::ToolCanceled, "The step was called off.");
                    return Some(refused(&call, fault));
                }
                Found::Nothing => {}
            }
        }
        let filled = match self.results(run, &call.scope, call.references().fields("steps")).await?
        {
            Ok(results) => {
                let seen = Seen::of(run, &call.scope, results);
                let (scope, def) = (call.scope.clone(), Arc::clone(&call.call));
                tokio::task::spawn_blocking(move || fill(&seen, &def, &scope)).await.ok()?
            }
            Err(fault) => Err(fault),
        };
        let request =
            filled.and_then(|(inputs, outputs)| self.request(run, &call, inputs, outputs));
        match request {
            Ok(request) => self.make(run, &call, request).await,
            Err(fault) => Some(refused(&call, fault)),
        }
    }

    /// What has become of the run of a call.
    async fn find(self, flow: &Run, call: &StepCall, key: &RunKey) -> Found {
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        let found = loop {
            match self.0.runs().get(key).await {
                Ok(found) => break found,
                Err(fault) if fault.is(Code::RunNotFound) => return Found::Nothing,
                Err(_) if self.0.is_stopping() => return Found::There(None),
                Err(_) => tokio::time::sleep(pauses.pause()).await,
            }
        };
        let step = found.spec.step.as_ref();
        let same = step.is_some_and(|it| it.path == call.path && it.number == call.number);
        if !same || found.spec.parent.as_ref() != Some(&flow.key) {
            return Found::Stranger;
        }
        if let Some(ended) = ChildEnd::of(&found) {
            return Found::There(Some(FlowInput::Ended(Box::new(ended))));
        }
        if call.canceling
            && let Effect::Send { to, input } = Effect::cancel_child(key)
        {
            // The engine has ended; the flow asks once more when it is back.
            let _ = self.0.tell(to, *input).await;
        }
        Found::There(None)
    }

    /// What a call asks for.
    fn request(
        self,
        flow: &Run,
        call: &StepCall,
        inputs: Object,
        outputs: Object,
    ) -> Result<NewRun, Fault> {
        let (spec, def) = (&flow.spec, &call.call);
        if let Some(pinned) = spec.flow.as_ref().and_then(|flow| flow.pins.get(&def.tool))
            && self.0.inner.catalog.tool(&def.tool).is_some_and(|tool| tool.hash != *pinned)
        {
            let message =
                format!("The tool {} is not the one that the flow was pinned to.", def.tool);
            return Err(Fault::new(Code::FlowToolChanged, message));
        }
        let secret = |value: &Value| {
            value.as_str().is_some_and(|text| {
                is_uri(text) && wharf_domain::scope::without_secrets(text) != text
            })
        };
        if inputs.values().chain(outputs.values()).any(secret) {
            let message = "An address with a secret part is not kept; use a file of the world.";
            return Err(Fault::new(Code::FlowAddressNotDurable, message));
        }
        let seats = match &def.gate {
            Some(Audience::Seat(seat)) => {
                RunSeats { gate: Some(seat.clone()), ..RunSeats::default() }
            }
            _ => RunSeats { senior: spec.senior.clone(), ..RunSeats::default() },
        };
        Ok(NewRun {
            outputs,
            mode: spec.mode,
            run_id: Some(call.child.clone()),
            continues: call.continues.clone(),
            idempotency_key: Some(call.key.clone()),
            timeout_ms: def.timeout_ms,
            budget_micro: def.budget_micro,
            parent: Some(flow.key.clone()),
            seats,
            step: StepTerms {
                of: Some(StepRef { path: call.path.clone(), number: call.number, code: None }),
                person_gate: matches!(def.gate, Some(Audience::Person)),
                ..StepTerms::default()
            },
            ..NewRun::new(def.tool.clone(), inputs, flow.key.world.clone())
        })
    }

    /// Makes the run of a call. What cannot be taken now is asked for again until it can.
    async fn make(self, flow: &Run, call: &StepCall, request: NewRun) -> Option<FlowInput> {
        let key = RunKey { world: flow.key.world.clone(), run: call.child.clone() };
        let caller = caller_of(&flow.spec.caller);
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        loop {
            let fault = match Box::pin(self.0.runs().create(&caller, request.clone())).await {
                Ok(accepted) => {
                    return Some(match ChildEnd::of(&accepted.run) {
                        Some(ended) => FlowInput::Ended(Box::new(ended)),
                        None => FlowInput::Made { child: call.child.clone() },
                    });
                }
                Err(fault) => fault,
            };
            if fault.is(Code::RunConflict) {
                return match self.find(flow, call, &key).await {
                    Found::There(input) => input,
                    Found::Stranger | Found::Nothing => Some(refused(call, stranger(&key))),
                };
            }
            // The flow does not wait for it, or looks for it after a while.
            if fault.is(Code::FlowOver) {
                return None;
            }
            if !self.is_passing(&fault) {
                return Some(refused(call, fault));
            }
            if self.0.is_stopping() {
                return None;
            }
            tokio::time::sleep(pauses.pause()).await;
        }
    }

    /// Whether a refusal says nothing of the call itself. While a core is young, providers may
    /// still be on their way.
    pub(super) fn is_passing(self, fault: &Fault) -> bool {
        let young = self.0.now().ms_since(self.0.inner.started_at) < PROVIDER_WAIT_MS;
        let passing = [Code::CoreBusy, Code::CoreStopping, Code::StoreUnavailable, Code::StoreFull];
        passing.iter().any(|code| fault.is(*code)) || (young && fault.is(Code::ToolNotFound))
    }
}

/// What has become of the run of a call.
enum Found {
    /// It is there; what is to be said of it now, if anything.
    There(Option<FlowInput>),
    /// Another run has its id.
    Stranger,
    Nothing,
}

fn refused(call: &StepCall, fault: Fault) -> FlowInput {
    let fault = fault.executed(Executed::No);
    FlowInput::Refused { path: call.path.clone(), number: call.number, fault }
}

fn stranger(key: &RunKey) -> Fault {
    Fault::new(Code::RunConflict, format!("The run {key} is not the one of this step."))
}

/// Whoever started a flow, as the caller of its steps.
pub(super) fn caller_of(by: &CallerRef) -> Caller {
    Caller {
        grant: by.grant.clone(),
        links: by.links(),
        root: by.root.clone(),
        person: by.person,
        kind: CallerKind::Client,
        account: None,
        rights: by.rights(),
        stands_in: None,
        console: None,
    }
}

fn evaluate(seen: &Seen, what: &Evaluable, scope: &FlowScope) -> Result<Value, Fault> {
    what.evaluate(&seen.scope(scope))
}

/// The inputs and outputs of a call.
fn fill(
    seen: &Seen,
    call: &wharf_domain::flow::Call,
    scope: &FlowScope,
) -> Result<(Object, Object), Fault> {
    let (scope, mut budget) = (seen.scope(scope), EvaluationBudget::default());
    let mut object = |template| match budget.fill(template, &scope)? {
        Value::Object(object) => Ok(object),
        _ => {
            let message = "The inputs and outputs of a call must be objects.";
            Err(Fault::new(Code::FlowExpression, message))
        }
    };
    let inputs = object(&call.inputs)?;
    let outputs = call.outputs.as_ref().map(object).transpose()?;
    Ok((inputs, outputs.unwrap_or_default()))
}

/// What expressions can see, as values.
struct Seen {
    inputs: Value,
    vars: Value,
    run: Value,
    now: Value,
    index: Value,
    results: StepOutputs,
}

impl Seen {
    fn of(flow: &Run, scope: &FlowScope, results: StepOutputs) -> Self {
        Self {
            results,
            inputs: Value::Object(Object::clone(&flow.spec.inputs)),
            vars: Value::Object(Object::clone(&scope.vars)),
            run: json!({ "id": scope.run.run.as_str(), "world": scope.run.world.as_str() }),
            now: Value::String(DateTime::from(scope.now).to_string()),
            index: json!(scope.index.unwrap_or(0)),
        }
    }

    fn scope<'a>(&'a self, from: &'a FlowScope) -> NameScope<'a> {
        let mut scope = NameScope::default()
            .with("inputs", &self.inputs)
            .with("vars", &self.vars)
            .with("run", &self.run)
            .with("now", &self.now)
            .with("index", &self.index);
        for (name, value) in &from.names {
            scope.set(&[name], Cow::Borrowed(value));
        }
        scope.open("steps");
        for (id, step) in &from.steps {
            let error = step.error.as_ref().map_or(Value::Null, |fault| {
                let details = Value::Object(fault.details.clone());
                json!({ "code": fault.code.as_str(), "message": fault.message, "details": details })
            });
            // What no expression names is not there and need not be.
            let outputs = self.results.get(id).unwrap_or(&Value::Null);
            scope.set(&["steps", id, "outputs"], Cow::Borrowed(outputs));
            scope.set(&["steps", id, "status"], Cow::Owned(Value::from(step.status())));
            scope.set(&["steps", id, "error"], Cow::Owned(error));
            scope.set(&["steps", id, "cost_micro"], Cow::Owned(json!(step.cost_micro)));
        }
        scope
    }
}
