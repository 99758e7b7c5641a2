//! Reads steps: one function for each kind.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_vocab::limits::{
    FLOW_CONCURRENCY_DEFAULT, FLOW_CONCURRENCY_MAX, FLOW_DEADLINE_MAX_MS, FLOW_DEPTH_MAX,
    FLOW_RUN_STEPS_MAX, FLOW_STEPS_MAX, FLOW_TRIES_MAX, TIMEOUT_MAX_MS,
};
use wharf_vocab::{FaultCode, Object, ToolId};

use super::DocumentReader;
use super::fields::Fields;
use crate::Audience;
use crate::flow::write::{BACKOFF_MS, ITEM};
use crate::flow::{
    ApproveStep, AskStep, Branch, Call, Case, Catch, Each, FailStep, Loop, OnError, OnTimeout,
    Parallel, ParallelMode, RetryRule, SignalStep, Sleep, Step, StepKind, Template, Try,
};

/// The kinds of steps.
const KINDS: [&str; 15] = [
    "call", "seq", "parallel", "each", "branch", "loop", "try", "sleep", "ask", "approve",
    "signal", "set", "return", "fail", "restart",
];
/// Words for what becomes of the others when one fails.
const ON_ERROR: [(&str, OnError); 2] =
    [("fail_fast", OnError::FailFast), ("collect", OnError::Collect)];
/// Longest name of a signal.
const SIGNAL_NAME_BYTES_MAX: usize = 64;

impl DocumentReader {
    /// Steps that are done one after another.
    pub(super) fn steps(&mut self, value: &Value, place: &str, depth: usize) -> Option<Vec<Step>> {
        let Value::Array(items) = value else {
            return self.wrong(place, "This is a list of steps.");
        };
        if items.is_empty() {
            return self.wrong(place, "There is at least one step.");
        }
        let mut steps = Vec::with_capacity(items.len().min(FLOW_STEPS_MAX));
        let mut whole = true;
        for (at, item) in items.iter().enumerate() {
            match self.step(item, &format!("{place}[{at}]"), depth) {
                Some(step) => steps.push(step),
                None => whole = false,
            }
            if self.steps > FLOW_STEPS_MAX {
                return None;
            }
        }
        whole.then_some(steps)
    }

    /// One step: an object with its name and one kind.
    pub(super) fn step(&mut self, value: &Value, place: &str, depth: usize) -> Option<Step> {
        self.steps += 1;
        if self.steps > FLOW_STEPS_MAX {
            return self.wrong(place, format!("There are at most {FLOW_STEPS_MAX} steps."));
        }
        if depth > FLOW_DEPTH_MAX {
            return self.wrong(place, format!("Steps are nested at most {FLOW_DEPTH_MAX} deep."));
        }
        let mut fields = Fields::open(self, value, place)?;
        let id = fields.needed(self, "id").and_then(|(value, place)| self.new_id(value, &place));
        let Value::Object(object) = value else { return None };
        let (kind, body) = self.kind(object, place)?;
        let known = fields.maybe(kind);
        fields.close(self);
        // `null` counts as absent everywhere but as a step's own value.
        let body = known.map_or(body, |(body, _)| body);
        let kind = self.body(kind, body, place, depth)?;
        Some(Step { id: id?, kind })
    }

    fn kind<'a>(&mut self, object: &'a Object, place: &str) -> Option<(&'static str, &'a Value)> {
        let mut found = KINDS.iter().filter_map(|kind| Some((*kind, object.get(*kind)?)));
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only),
            (None, _) => {
                let text = format!("A step says what it does: one of {}.", KINDS.join(", "));
                self.wrong(place, text)
            }
            (Some((one, _)), Some((other, _))) => {
                self.wrong(place, format!("A step does one thing, and not `{one}` and `{other}`."))
            }
        }
    }

    fn body(&mut self, kind: &str, body: &Value, place: &str, depth: usize) -> Option<StepKind> {
        let deeper = depth + 1;
        Some(match kind {
            "call" => StepKind::Call(Box::new(self.call(body, place)?)),
            "seq" => StepKind::Seq(self.steps(body, &format!("{place}.seq"), deeper)?),
            "parallel" => StepKind::Parallel(self.parallel(body, place, deeper)?),
            "each" => StepKind::Each(Box::new(self.each(body, place, deeper)?)),
            "branch" => StepKind::Branch(self.branch(body, place, deeper)?),
            "loop" => StepKind::Loop(Box::new(self.again(body, place, deeper)?)),
            "try" => StepKind::Try(Box::new(self.attempt(body, place, deeper)?)),
            "sleep" => StepKind::Sleep(self.sleep(body, place)?),
            "ask" => StepKind::Ask(Box::new(self.ask(body, place)?)),
            "approve" => StepKind::Approve(Box::new(self.approve(body, place)?)),
            "signal" => StepKind::Signal(Box::new(self.signal(body, place)?)),
            "set" => self.set(body, &format!("{place}.set"))?,
            "return" => StepKind::Return(self.object(body, &format!("{place}.return"))?),
            "fail" => StepKind::Fail(self.fail(body, place)?),
            _ => {
                let mut fields = Fields::open(self, body, place)?;
                let inputs = fields.needed(self, "inputs");
                let inputs = inputs.and_then(|(value, place)| self.object(value, &place));
                fields.close(self);
                StepKind::Restart(inputs?)
            }
        })
    }

    fn call(&mut self, body: &Value, place: &str) -> Option<Call> {
        let mut fields = Fields::open(self, body, place)?;
        let mut call = self.plain_call(&mut fields);
        let gate = fields.maybe("gate");
        let at = gate.as_ref().map_or_else(String::new, |(_, place)| place.clone());
        let mut gate = self.audience(gate);
        if gate == Some(Audience::Any) {
            gate = self.wrong(&at, "A gate is `person` or `seat:` and a seat.");
        }
        let continues = fields.maybe("continues");
        let continues = continues.and_then(|(value, place)| self.id(value, &place));
        let undo = fields.maybe("compensate").and_then(|(value, place)| {
            let mut fields = Fields::open(self, value, &place)?;
            let undo = self.plain_call(&mut fields);
            fields.close(self);
            undo
        });
        fields.close(self);
        if let Some(call) = &mut call {
            (call.gate, call.continues, call.compensate) = (gate, continues, undo.map(Box::new));
        }
        call
    }

    /// What every call has.
    fn plain_call(&mut self, fields: &mut Fields<'_>) -> Option<Call> {
        let tool = fields.needed(self, "tool").and_then(|(value, place)| {
            let text = self.text(value, &place)?;
            let tool = ToolId::new(&text).ok();
            tool.or_else(|| self.wrong(&place, "This is the id of a tool: `provider/name`."))
        });
        let inputs = fields.maybe("inputs");
        let inputs = match inputs {
            Some((value, place)) => self.object(value, &place),
            None => Some(Template::Literal(Value::Object(Object::new()))),
        };
        let outputs = fields.maybe("outputs");
        let outputs = outputs.and_then(|(value, place)| self.object(value, &place));
        let timeout_ms = self.time(fields.maybe("timeout"), TIMEOUT_MAX_MS);
        let retry = fields.maybe("retry").and_then(|(value, place)| self.retry(value, &place));
        let budget = fields.maybe("budget_micro");
        let budget_micro = budget.and_then(|(value, place)| self.whole(value, &place, u64::MAX));
        let (gate, continues, compensate) = (None, None, None);
        let (tool, inputs) = (tool?, inputs?);
        Some(Call {
            tool,
            inputs,
            outputs,
            timeout_ms,
            retry,
            budget_micro,
            gate,
            continues,
            compensate,
        })
    }

    fn retry(&mut self, value: &Value, place: &str) -> Option<RetryRule> {
        let mut fields = Fields::open(self, value, place)?;
        let max = fields.needed(self, "max");
        let max = max.and_then(|(value, place)| self.count(value, &place, FLOW_TRIES_MAX));
        let backoff = self.time(fields.maybe("backoff"), FLOW_DEADLINE_MAX_MS);
        let on = self.codes(fields.maybe("on"));
        let is_unsafe = fields.maybe("unsafe").and_then(|(value, place)| self.truth(value, &place));
        fields.close(self);
        let backoff_ms = backoff.unwrap_or(BACKOFF_MS);
        Some(RetryRule { max: max?, backoff_ms, on, is_unsafe: is_unsafe.unwrap_or(false) })
    }

    fn parallel(&mut self, body: &Value, place: &str, depth: usize) -> Option<Parallel> {
        let mut fields = Fields::open(self, body, place)?;
        let branches = fields.needed(self, "branches");
        let branches = branches.and_then(|(value, place)| self.steps(value, &place, depth));
        let modes = [("all", ParallelMode::All), ("any", ParallelMode::Any)];
        let mode = self.one_of(fields.maybe("mode"), &modes).unwrap_or_default();
        let on_error = self.one_of(fields.maybe("on_error"), &ON_ERROR).unwrap_or_default();
        fields.close(self);
        Some(Parallel { branches: branches?, mode, on_error })
    }

    fn each(&mut self, body: &Value, place: &str, depth: usize) -> Option<Each> {
        let mut fields = Fields::open(self, body, place)?;
        let over = fields.needed(self, "over");
        let over = over.and_then(|(value, place)| self.expression(value, &place));
        let bind = fields.maybe("as").map(|(value, place)| {
            let text = self.text(value, &place)?;
            self.item(&text, &place)
        });
        let bind = bind.unwrap_or_else(|| Some(ITEM.to_owned()));
        let step = self.one_step(&mut fields, depth);
        let concurrency = fields.maybe("concurrency");
        let concurrency =
            concurrency.and_then(|(value, at)| self.count(value, &at, FLOW_CONCURRENCY_MAX));
        let on_error = self.one_of(fields.maybe("on_error"), &ON_ERROR).unwrap_or_default();
        fields.close(self);
        let concurrency = concurrency.unwrap_or(FLOW_CONCURRENCY_DEFAULT);
        Some(Each { over: over?, bind: bind?.into(), step: step?, concurrency, on_error })
    }

    /// The field `step`.
    fn one_step(&mut self, fields: &mut Fields<'_>, depth: usize) -> Option<Step> {
        let step = fields.needed(self, "step");
        step.and_then(|(value, place)| self.step(value, &place, depth))
    }

    fn branch(&mut self, body: &Value, place: &str, depth: usize) -> Option<Branch> {
        let mut fields = Fields::open(self, body, place)?;
        let (cases, at) = fields.needed(self, "cases")?;
        let cases = match cases {
            Value::Array(items) if !items.is_empty() => items,
            _ => return self.wrong(&at, "This is a list of at least one case."),
        };
        let mut read = Vec::with_capacity(cases.len().min(FLOW_STEPS_MAX));
        for (nth, case) in cases.iter().enumerate() {
            let mut fields = Fields::open(self, case, &format!("{at}[{nth}]"))?;
            let when = fields.needed(self, "when");
            let when = when.and_then(|(value, place)| self.expression(value, &place));
            let step = self.one_step(&mut fields, depth);
            fields.close(self);
            read.extend(when.zip(step).map(|(when, step)| Case { when, step }));
        }
        let otherwise = fields.maybe("else");
        let otherwise = otherwise.and_then(|(value, place)| self.step(value, &place, depth));
        fields.close(self);
        Some(Branch { cases: read, otherwise: otherwise.map(Box::new) })
    }

    fn again(&mut self, body: &Value, place: &str, depth: usize) -> Option<Loop> {
        let mut fields = Fields::open(self, body, place)?;
        let condition = fields.needed(self, "while");
        let condition = condition.and_then(|(value, place)| self.expression(value, &place));
        let most = u32::try_from(FLOW_RUN_STEPS_MAX).unwrap_or(u32::MAX);
        let max = fields.needed(self, "max");
        let max = max.and_then(|(value, place)| self.count(value, &place, most));
        let step = self.one_step(&mut fields, depth);
        fields.close(self);
        Some(Loop { condition: condition?, max: max?, step: step? })
    }

    fn attempt(&mut self, body: &Value, place: &str, depth: usize) -> Option<Try> {
        let mut fields = Fields::open(self, body, place)?;
        let step = self.one_step(&mut fields, depth);
        let mut catches = Vec::new();
        if let Some((value, at)) = fields.maybe("catch") {
            let Value::Array(items) = value else {
                return self.wrong(&at, "This is a list of what is caught.");
            };
            for (nth, item) in items.iter().enumerate() {
                let mut fields = Fields::open(self, item, &format!("{at}[{nth}]"))?;
                let codes = self.codes(fields.maybe("codes"));
                let step = self.one_step(&mut fields, depth);
                fields.close(self);
                catches.extend(step.map(|step| Catch { codes, step }));
            }
        }
        let finally = fields.maybe("finally");
        let finally = finally.and_then(|(value, place)| self.step(value, &place, depth));
        fields.close(self);
        Some(Try { step: step?, catches, finally })
    }

    fn sleep(&mut self, body: &Value, place: &str) -> Option<Sleep> {
        let mut fields = Fields::open(self, body, place)?;
        let (length, until) = (fields.maybe("for"), fields.maybe("until"));
        fields.close(self);
        match (length, until) {
            (Some((value, place)), None) => self.template(value, &place).map(Sleep::For),
            (None, Some((value, place))) => self.template(value, &place).map(Sleep::Until),
            _ => self.wrong(place, "A sleep has either `for` or `until`."),
        }
    }

    fn ask(&mut self, body: &Value, place: &str) -> Option<AskStep> {
        let mut fields = Fields::open(self, body, place)?;
        let question = fields.needed(self, "question");
        let question = question.and_then(|(value, place)| self.wording(value, &place));
        let schema = fields.maybe("schema");
        let schema = schema.and_then(|(value, place)| self.schema(value, &place));
        let audience = self.audience(fields.maybe("audience"));
        let deadline_ms = self.time(fields.maybe("deadline"), FLOW_DEADLINE_MAX_MS);
        let on_timeout = match fields.maybe("on_timeout") {
            None => OnTimeout::Fail,
            Some((Value::String(word), _)) if word == "fail" => OnTimeout::Fail,
            Some((Value::Object(object), place)) if object.len() == 1 => {
                let answer = object.get("answer");
                let below = format!("{place}.answer");
                match answer.and_then(|value| self.template(value, &below)) {
                    Some(template) => OnTimeout::Answer(template),
                    None => return self.wrong(&place, "This is `fail` or `{\"answer\": …}`."),
                }
            }
            Some((_, place)) => return self.wrong(&place, "This is `fail` or `{\"answer\": …}`."),
        };
        fields.close(self);
        Some(AskStep { question: question?, schema, audience, deadline_ms, on_timeout })
    }

    fn approve(&mut self, body: &Value, place: &str) -> Option<ApproveStep> {
        let mut fields = Fields::open(self, body, place)?;
        let title = fields.needed(self, "title");
        let title = title.and_then(|(value, place)| self.wording(value, &place));
        let audience = self.audience(fields.maybe("audience"));
        let deadline_ms = self.time(fields.maybe("deadline"), FLOW_DEADLINE_MAX_MS);
        fields.close(self);
        Some(ApproveStep { title: title?, audience, deadline_ms })
    }

    fn signal(&mut self, body: &Value, place: &str) -> Option<SignalStep> {
        let mut fields = Fields::open(self, body, place)?;
        let name = fields.needed(self, "name").and_then(|(value, place)| {
            let name = self.text(value, &place)?;
            let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            let fits = (1..=SIGNAL_NAME_BYTES_MAX).contains(&name.len());
            if fits && name.bytes().all(is_letter) {
                return Some(name);
            }
            self.wrong(&place, "A name has up to 64 letters, digits, `.`, `-` and `_`.")
        });
        let schema = fields.maybe("schema");
        let schema = schema.and_then(|(value, place)| self.schema(value, &place));
        let deadline_ms = self.time(fields.maybe("deadline"), FLOW_DEADLINE_MAX_MS);
        fields.close(self);
        Some(SignalStep { name: name?.into(), schema, deadline_ms })
    }

    fn set(&mut self, body: &Value, place: &str) -> Option<StepKind> {
        let fields = Fields::open(self, body, place)?;
        let mut values = BTreeMap::new();
        for (name, value, place) in fields.all() {
            let name = self.word(name, &place);
            let value = self.expression(value, &place);
            values.extend(name.zip(value));
        }
        Some(StepKind::Set(values))
    }

    fn fail(&mut self, body: &Value, place: &str) -> Option<FailStep> {
        let mut fields = Fields::open(self, body, place)?;
        let code = fields.needed(self, "code").and_then(|(value, place)| {
            let code = value.as_str().and_then(FaultCode::parse);
            code.or_else(|| self.wrong(&place, "This is an error code such as `order.empty`."))
        });
        let message = fields.needed(self, "message");
        let message = message.and_then(|(value, place)| self.wording(value, &place));
        fields.close(self);
        Some(FailStep { code: code?, message: message? })
    }

    /// A text in which expressions may stand.
    fn wording(&mut self, value: &Value, place: &str) -> Option<Template> {
        self.text(value, place)?;
        self.template(value, place)
    }
}
