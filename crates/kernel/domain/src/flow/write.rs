//! Writes a document as the JSON that it is read from. What goes without saying is left out, so
//! that documents that say the same are written the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wharf_vocab::Object;
use wharf_vocab::limits::FLOW_CONCURRENCY_DEFAULT;

use super::{
    AskStep, Branch, Call, Catch, CodePattern, Document, Each, Expression, FlowLimits, Loop,
    OnError, OnTimeout, Parallel, ParallelMode, RetryRule, Sleep, Step, StepKind, Template, Try,
};
use crate::Audience;

/// What an item is called when a step does not say.
pub(super) const ITEM: &str = "item";
/// The pause before a second try when a call does not say.
pub(super) const BACKOFF_MS: u64 = 1_000;

/// An object that is written field by field.
#[derive(Default)]
struct Fields(Object);

impl Fields {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A length of time, if there is one.
    fn time(self, name: &str, ms: Option<u64>) -> Self {
        self.maybe(name, ms.map(duration))
    }

    fn audience(self, name: &str, audience: Option<&Audience>) -> Self {
        self.maybe(name, audience.map(Audience::to_string))
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Value {
        Value::Object(fields.0)
    }
}

pub(super) fn document(document: &Document) -> Object {
    let vars = (!document.vars.is_empty()).then(|| {
        let var = |(name, value): (&String, &Template)| (name.clone(), value.to_value());
        document.vars.iter().map(var).collect::<Object>()
    });
    let limits = (document.limits != FlowLimits::default()).then(|| limits(&document.limits));
    let fields = Fields::default()
        .with("name", document.name.as_str())
        .with("description", document.description.as_str())
        .maybe("input_schema", document.input_schema.clone())
        .maybe("output_schema", document.output_schema.clone())
        .maybe("vars", vars)
        .with("steps", document.steps.iter().map(step).collect::<Vec<_>>())
        .with("output", document.output.to_value())
        .maybe("on_cancel", document.on_cancel.as_deref().map(step))
        .maybe("limits", limits);
    fields.0
}

fn limits(limits: &FlowLimits) -> Value {
    let fields = Fields::default()
        .time("deadline", limits.deadline_ms)
        .maybe("budget_micro", limits.budget_micro)
        .time("on_cancel", limits.on_cancel_ms);
    fields.into()
}

fn step(step: &Step) -> Value {
    let body = body(&step.kind);
    Fields::default().with("id", step.id.as_str()).with(step.kind.as_str(), body).into()
}

fn body(kind: &StepKind) -> Value {
    match kind {
        StepKind::Call(of) => call(of),
        StepKind::Seq(steps) => steps.iter().map(step).collect(),
        StepKind::Parallel(of) => parallel(of),
        StepKind::Each(of) => each(of),
        StepKind::Branch(of) => branch(of),
        StepKind::Loop(of) => again(of),
        StepKind::Try(of) => attempt(of),
        StepKind::Sleep(Sleep::For(time)) => json!({"for": time.to_value()}),
        StepKind::Sleep(Sleep::Until(time)) => json!({"until": time.to_value()}),
        StepKind::Ask(of) => ask(of),
        StepKind::Approve(of) => Fields::default()
            .with("title", of.title.to_value())
            .audience("audience", of.audience.as_ref())
            .time("deadline", of.deadline_ms)
            .into(),
        StepKind::Signal(of) => Fields::default()
            .with("name", &*of.name)
            .maybe("schema", of.schema.clone())
            .time("deadline", of.deadline_ms)
            .into(),
        StepKind::Set(values) => set(values),
        StepKind::Return(value) => value.to_value(),
        StepKind::Fail(of) => {
            json!({"code": of.code.as_str(), "message": of.message.to_value()})
        }
        StepKind::Restart(inputs) => json!({"inputs": inputs.to_value()}),
    }
}

fn call(call: &Call) -> Value {
    let fields = Fields::default()
        .with("tool", call.tool.as_str())
        .with("inputs", call.inputs.to_value())
        .maybe("outputs", call.outputs.as_ref().map(Template::to_value))
        .time("timeout", call.timeout_ms)
        .maybe("retry", call.retry.as_ref().map(retry))
        .maybe("budget_micro", call.budget_micro)
        .audience("gate", call.gate.as_ref())
        .maybe("continues", call.continues.as_ref().map(|step| step.as_str()))
        .maybe("compensate", call.compensate.as_deref().map(self::call));
    fields.into()
}

fn retry(retry: &RetryRule) -> Value {
    let backoff = (retry.backoff_ms != BACKOFF_MS).then_some(retry.backoff_ms);
    Fields::default()
        .with("max", retry.max)
        .time("backoff", backoff)
        .maybe("on", codes(&retry.on))
        .maybe("unsafe", retry.is_unsafe.then_some(true))
        .into()
}

fn codes(codes: &[CodePattern]) -> Option<Value> {
    let list = || codes.iter().map(|code| Value::from(code.as_str())).collect();
    (!codes.is_empty()).then(list)
}

fn parallel(parallel: &Parallel) -> Value {
    Fields::default()
        .with("branches", parallel.branches.iter().map(step).collect::<Vec<_>>())
        .maybe("mode", (parallel.mode == ParallelMode::Any).then_some("any"))
        .maybe("on_error", on_error(parallel.on_error))
        .into()
}

fn on_error(on_error: OnError) -> Option<&'static str> {
    (on_error == OnError::Collect).then_some("collect")
}

fn each(each: &Each) -> Value {
    let concurrency = (each.concurrency != FLOW_CONCURRENCY_DEFAULT).then_some(each.concurrency);
    Fields::default()
        .with("over", each.over.as_str())
        .maybe("as", (&*each.bind != ITEM).then_some(&*each.bind))
        .with("step", step(&each.step))
        .maybe("concurrency", concurrency)
        .maybe("on_error", on_error(each.on_error))
        .into()
}

fn branch(branch: &Branch) -> Value {
    let case = |case: &super::Case| json!({"when": case.when.as_str(), "step": step(&case.step)});
    Fields::default()
        .with("cases", branch.cases.iter().map(case).collect::<Vec<_>>())
        .maybe("else", branch.otherwise.as_deref().map(step))
        .into()
}

fn again(again: &Loop) -> Value {
    json!({"while": again.condition.as_str(), "max": again.max, "step": step(&again.step)})
}

fn attempt(attempt: &Try) -> Value {
    let catch = |catch: &Catch| -> Value {
        Fields::default().maybe("codes", codes(&catch.codes)).with("step", step(&catch.step)).into()
    };
    let catches = attempt.catches.iter().map(catch).collect::<Vec<_>>();
    Fields::default()
        .with("step", step(&attempt.step))
        .maybe("catch", (!catches.is_empty()).then_some(catches))
        .maybe("finally", attempt.finally.as_ref().map(step))
        .into()
}

fn ask(ask: &AskStep) -> Value {
    let on_timeout = match &ask.on_timeout {
        OnTimeout::Fail => None,
        OnTimeout::Answer(value) => Some(json!({"answer": value.to_value()})),
    };
    Fields::default()
        .with("question", ask.question.to_value())
        .maybe("schema", ask.schema.clone())
        .audience("audience", ask.audience.as_ref())
        .time("deadline", ask.deadline_ms)
        .maybe("on_timeout", on_timeout)
        .into()
}

fn set(values: &BTreeMap<String, Expression>) -> Value {
    let value = |(name, value): (&String, &Expression)| (name.clone(), value.as_str().into());
    Value::Object(values.iter().map(value).collect())
}

/// A length of time by the largest unit that says it exactly.
fn duration(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let fits = |(_, unit): &&(&str, u64)| ms > 0 && ms.is_multiple_of(*unit);
    match units.iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}
