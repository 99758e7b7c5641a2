//! Flows without an engine: the rules alone, driven by inputs, with what they want outside done at
//! once. What the journal tells in the end is what was live.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::flow::{Document, EvaluationBudget, NameScope};
use wharf_domain::run::flow::{
    ChildEnd, Evaluable, Evaluation, FlowInput, FlowRunEntry, FlowSpec, FlowWork, NewSignal,
    StepCall, StepEnd,
};
use wharf_domain::run::{Cx, Phase, RunInput};
use wharf_domain::{Actor, AuditRecord, Availability, Outcome, Resolution, Run, RunEntry};
use wharf_vocab::{Code, Executed, Fault, Object, RunId, RunStatus, Timestamp};

use crate::stage::{Counter, Plan, SHARD, person, run_key};

/// Five minutes, the time that what is done at last has.
const CLOSING_MS: u64 = 300_000;

/// A flow, and what it wants done.
pub(crate) struct Flow {
    pub(crate) run: Run,
    pub(crate) now: Timestamp,
    pub(crate) journal: Vec<(Timestamp, RunEntry)>,
    pub(crate) audit: Vec<AuditRecord>,
    pub(crate) wanted: VecDeque<FlowWork>,
    /// Runs that were called off.
    pub(crate) called_off: Vec<RunId>,
    /// Calls that were begun, by their places.
    pub(crate) begun: Vec<StepCall>,
    fresh: Counter,
}

impl Flow {
    pub(crate) fn begin(steps: &Value) -> Self {
        Self::of(&json!({ "name": "f", "description": "A flow.", "steps": steps, "output": {} }))
    }

    pub(crate) fn of(document: &Value) -> Self {
        let document = Arc::new(Document::read(document).expect("a document"));
        let spec =
            FlowSpec { version: 1, document, pins: Arc::default(), restarts: None, cites: None };
        let mut plan = Plan::of(|it| it.flow = Some(Arc::new(spec)));
        plan.spec.tool = "flow/f@1".parse().expect("a tool");
        let mut fresh = Counter { count: 0, chance: 1 };
        let now = Timestamp(1_000_000);
        let mut cx = cx(now, &mut fresh);
        let decision = Run::create(&mut cx, run_key(), Arc::new(plan.spec));
        let mut flow = Self {
            run: decision.next.clone(),
            now,
            journal: Vec::new(),
            audit: Vec::new(),
            wanted: VecDeque::new(),
            called_off: Vec::new(),
            begun: Vec::new(),
            fresh,
        };
        flow.take(decision);
        flow
    }

    pub(crate) fn take(&mut self, decision: wharf_domain::run::Decision) {
        self.run = decision.next;
        self.journal.extend(decision.entries.into_iter().map(|entry| (self.now, entry)));
        self.audit.extend(decision.audit);
        for effect in decision.effects {
            if let wharf_domain::run::RunEffect::Flow(work) = effect {
                self.wanted.push_back(work);
            }
        }
    }

    pub(crate) fn offer(&mut self, input: &RunInput) -> Result<(), Fault> {
        let mut cx = cx(self.now, &mut self.fresh);
        let decision = self.run.decide(&mut cx, input)?;
        self.take(decision);
        Ok(())
    }

    pub(crate) fn tell(&mut self, input: FlowInput) {
        self.offer(&RunInput::Flow(input)).expect("words to a flow are never refused");
    }

    /// Does what is wanted outside until nothing is; `answer` says how calls end, if they do.
    pub(crate) fn settle(&mut self, mut answer: impl FnMut(&StepCall) -> Option<StepEnd>) {
        while let Some(work) = self.wanted.pop_front() {
            match work {
                FlowWork::Evaluate(wanted) => {
                    let result = evaluate(&wanted);
                    let (path, turn) = (wanted.path, wanted.turn);
                    self.tell(FlowInput::Evaluated { path, turn, result });
                }
                FlowWork::Begin(call) => {
                    self.begun.push((*call).clone());
                    if let Some(end) = answer(&call) {
                        self.tell(ended(&call, end));
                    }
                }
                FlowWork::Cancel(child) => self.called_off.push(child),
                FlowWork::Restart(wanted) => self.tell(FlowInput::Restarted { run: wanted.run }),
            }
        }
    }

    pub(crate) fn settle_well(&mut self) {
        self.settle(|_| Some(well()));
    }

    pub(crate) fn cancel(&mut self) {
        self.offer(&RunInput::Cancel { by: Actor::CORE, reason: "Enough.".to_owned() })
            .expect("taken");
    }

    /// Lets time pass until the flow wants to be looked at.
    pub(crate) fn wake(&mut self) {
        self.now = self.run.next_deadline().expect("it waits for a moment");
        self.offer(&RunInput::Tick).expect("taken");
    }

    pub(crate) fn answer(&mut self) {
        let ask_id = self.run.open_asks().next().expect("open").ask.spec.ask_id.clone();
        let resolution = match self.run.open_asks().next().expect("open").ask.spec.kind {
            wharf_vocab::AskKind::Approval => Resolution::ALLOW,
            wharf_vocab::AskKind::Question => Resolution::Answered { value: json!("yes") },
        };
        let input = RunInput::ResolveAsk { ask_id, resolution, by: person("p") };
        self.offer(&input).expect("taken");
    }

    pub(crate) fn signal(&mut self, name: &str, key: Option<String>) -> Result<(), Fault> {
        let (name, value, by) = (name.to_owned(), json!(1), Actor::CORE);
        self.offer(&RunInput::Signal(NewSignal { name, value, key, by }))
    }

    pub(crate) fn error(&self) -> &Fault {
        let outcome = self.run.outcome.as_ref();
        outcome.and_then(Outcome::error).unwrap_or_else(|| panic!("{:?}", outcome))
    }

    /// The places of the calls that were begun.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.begun.iter().map(|call| call.path.as_str()).collect()
    }

    /// What the journal tells is what was live.
    pub(crate) fn is_replayed(&self) {
        assert_eq!(replayed(&self.journal), self.run);
        self.goes_on_from_folds();
    }

    /// Wherever it is folded, whoever reads no more of its steps goes on as whoever reads all.
    fn goes_on_from_folds(&self) {
        let times = if self.journal.len() > 1_000 { 2 } else { 40 };
        for at in (1..self.journal.len()).step_by(self.journal.len().div_ceil(times)) {
            let (before, after) = self.journal.split_at(at);
            let then = replayed(before);
            let Some(flow) = then.flow.as_ref().filter(|it| it.has_begun() && !then.is_over())
            else {
                continue;
            };
            let fold = flow.fold(then.started_at.expect("its steps have begun"));
            let text = serde_json::to_string(&fold).expect("serializes");
            let fold = FlowRunEntry::Folded(serde_json::from_str(&text).expect("reads"));
            let fold = (before[at - 1].0, RunEntry::Flow(Box::new(fold)));
            let needed = before.iter().filter(|(_, entry)| !matches!(entry, RunEntry::Flow(_)));
            let with = |before: Vec<_>| [&before[..], std::slice::from_ref(&fold), after].concat();
            let (folded, whole) = (with(needed.cloned().collect()), with(before.to_vec()));
            assert_eq!(replayed(&folded), replayed(&whole), "folded after {at} entries: {text}");
        }
    }
}

/// What a journal tells.
pub(crate) fn replayed(journal: &[(Timestamp, RunEntry)]) -> Run {
    Run::replay(journal.iter().map(|(at, entry)| (*at, entry))).expect("a run")
}

fn cx(now: Timestamp, fresh: &mut Counter) -> Cx<'_> {
    let provider = &Availability::Up;
    Cx { now, shard: SHARD, provider, full: false, place: None, refused: None, fresh }
}

pub(crate) fn well() -> StepEnd {
    StepEnd::Succeeded { outputs: Object::new() }
}

pub(crate) fn badly(code: Code) -> StepEnd {
    StepEnd::Failed { error: Fault::new(code, "It did not work.") }
}

pub(crate) fn stopped() -> StepEnd {
    StepEnd::Canceled { error: Fault::new(Code::ToolCanceled, "It was told to stop.") }
}

pub(crate) fn ended(call: &StepCall, end: StepEnd) -> FlowInput {
    let executed = match &end {
        StepEnd::Succeeded { .. } => Executed::Yes,
        _ => Executed::No,
    };
    FlowInput::Ended(Box::new(ChildEnd {
        child: call.child.clone(),
        path: call.path.clone(),
        number: call.number,
        end,
        cost_micro: 7,
        repeatable: false,
        known_for_ms: None,
        executed,
    }))
}

fn evaluate(wanted: &Evaluation) -> Result<Value, Fault> {
    let vars = Value::Object(Object::clone(&wanted.scope.vars));
    let index = json!(wanted.scope.index.unwrap_or(0));
    let mut scope = NameScope::default().with("vars", &vars).with("index", &index);
    for (name, value) in &wanted.scope.names {
        scope.set(&[name], Cow::Borrowed(value));
    }
    let mut budget = EvaluationBudget::default();
    match &wanted.what {
        Evaluable::Template(template) | Evaluable::Output(template) => {
            budget.fill(template, &scope)
        }
        Evaluable::Expression(expression) => budget.evaluate(expression, &scope),
        Evaluable::First(_) => Ok(json!(0)),
        Evaluable::Fields(fields) => {
            let mut values = Object::new();
            for (name, expression) in fields {
                values.insert(name.clone(), budget.evaluate(expression, &scope)?);
            }
            Ok(Value::Object(values))
        }
    }
}

pub(crate) fn call(id: &str) -> Value {
    json!({"id": id, "call": {"tool": "acme/work", "inputs": {}}})
}

/// A call that another one undoes.
pub(crate) fn undone(id: &str) -> Value {
    json!({"id": id, "call": {"tool": "acme/work", "inputs": {},
        "compensate": {"tool": "acme/undo", "inputs": {}}}})
}

pub(crate) fn looped(id: &str, step: &Value) -> Value {
    json!({"id": id, "loop": {"while": "true", "max": 10_000, "step": step}})
}

#[test]
fn f003_a_flow_begins_anew_once_the_next_run_is_there() {
    let steps = json!([undone("a"), {"id": "again", "restart": {"inputs": {"n": 1}}}]);
    let mut flow = Flow::begin(&steps);
    flow.settle_well();
    assert_eq!((flow.run.status(), flow.paths()), (RunStatus::Succeeded, vec!["a"]));
    flow.is_replayed();

    // Words about it that get lost are asked for again, and a refusal ends the flow.
    let mut flow = Flow::begin(&steps);
    let Some(FlowWork::Begin(call)) = flow.wanted.pop_front() else { panic!("no call") };
    flow.tell(ended(&call, well()));
    flow.wanted.clear();
    assert!(!flow.run.is_over(), "it stays open until the next one is there");
    flow.offer(&RunInput::Recovered).expect("taken");
    let Some(FlowWork::Restart(wanted)) = flow.wanted.pop_front() else { panic!("not asked") };
    assert!(wanted.look_up && !wanted.canceling, "{wanted:?}");
    let mut refused = Flow { run: flow.run.clone(), ..flow };
    let fault = Fault::new(Code::PermissionDenied, "Not any more.");
    let path = wharf_domain::run::flow::RESTART.to_owned();
    let mut canceled = Flow {
        run: refused.run.clone(),
        now: refused.now,
        journal: refused.journal.clone(),
        audit: Vec::new(),
        wanted: VecDeque::new(),
        called_off: Vec::new(),
        begun: Vec::new(),
        fresh: Counter { count: 99, chance: 1 },
    };
    refused.tell(FlowInput::Refused { path, number: 1, fault });
    assert_eq!(refused.error().code.as_str(), "permission.denied");

    // Whoever cancels in that moment cancels the next one, too.
    canceled.cancel();
    assert!(!canceled.run.is_over());
    canceled.tell(FlowInput::Restarted { run: wanted.run.clone() });
    canceled.settle_well();
    assert_eq!(canceled.run.status(), RunStatus::Canceled);
    assert_eq!(canceled.called_off, [wanted.run]);
    canceled.is_replayed();
}

#[test]
fn f012_on_cancel_what_a_try_did_is_undone_before_its_last_step() {
    let steps = json!([undone("first"), {"id": "t", "try": {"step": {"id": "s", "seq": [
        undone("a"), undone("b"), call("slow")]}, "finally": call("at_last")}}]);
    let mut flow = Flow::begin(&steps);
    flow.settle(|it| (it.path != "slow").then(well));
    flow.cancel();
    let slow = flow.begun.last().expect("begun").clone();
    flow.tell(ended(&slow, stopped()));
    flow.settle_well();
    let done = ["first", "a", "b", "slow", "b~undo", "a~undo", "at_last", "first~undo"];
    assert_eq!(flow.paths(), done);
    assert_eq!(flow.run.status(), RunStatus::Canceled);
    flow.is_replayed();
}

#[test]
fn f012_what_cannot_be_undone_is_told_and_the_others_are_undone() {
    let steps = json!([undone("a"), undone("b"), undone("c"),
        {"id": "f", "fail": {"code": "my.error", "message": "No."}}]);
    let mut flow = Flow::begin(&steps);
    flow.settle(|it| Some(if it.path == "b~undo" { badly(Code::ToolFailed) } else { well() }));
    assert_eq!(flow.paths(), ["a", "b", "c", "c~undo", "b~undo", "a~undo"]);
    assert_eq!(flow.error().code.as_str(), "flow.compensation_failed");
    assert_eq!(flow.error().details["step"], json!("b"));

    // A failure that is caught undoes nothing; one that may have acted is undone.
    let steps = json!([{"id": "t", "try": {"step": {"id": "s", "seq": [undone("a"), undone("b")]},
        "catch": [{"codes": ["other.*"], "step": call("c")}]}}]);
    for (code, acted, expected) in [
        ("other.error", Executed::No, vec!["a", "b", "c"]),
        ("my.error", Executed::No, vec!["a", "b", "a~undo"]),
        ("my.error", Executed::Maybe, vec!["a", "b", "b~undo", "a~undo"]),
    ] {
        let mut flow = Flow::begin(&steps);
        let code = wharf_vocab::FaultCode::parse(code).expect("a code");
        flow.settle(|it| {
            let error = Fault::with_code(code.clone(), "No.".to_owned(), false).executed(acted);
            Some(if it.path == "b" { StepEnd::Failed { error } } else { well() })
        });
        assert_eq!(flow.paths(), expected, "{code} {acted:?}");
        flow.is_replayed();
    }
}

#[test]
fn f011_what_is_done_at_last_has_five_minutes_or_what_the_document_says() {
    let last = json!({"id": "z", "seq": [call("clean"), {"id": "long", "sleep": {"for": "2d"}}]});
    for (limit, ms) in [(None, CLOSING_MS), (Some("1h"), 3_600_000)] {
        let mut form = json!({ "name": "f", "description": "A flow.", "output": {},
            "steps": [{"id": "nap", "sleep": {"for": "10d"}}],
            "on_cancel": {"id": "t", "try": {"step": last,
                "finally": {"id": "never", "sleep": {"for": "2d"}}}} });
        if let Some(limit) = limit {
            form["limits"] = json!({"on_cancel": limit});
        }
        let mut flow = Flow::of(&form);
        flow.cancel();
        let began = flow.now;
        flow.settle_well();
        assert_eq!((flow.run.phase(), flow.paths()), (Phase::Closing, vec!["clean"]));
        flow.wake();
        assert_eq!(flow.now.ms_since(began), ms);
        assert_eq!(flow.run.status(), RunStatus::Canceled, "nothing in it takes longer");
        flow.is_replayed();
    }
    let form = json!({ "name": "f", "description": "A flow.", "output": {}, "steps": [call("a")],
        "limits": {"on_cancel": "61m"} });
    Document::read(&form).expect_err("an hour at most");
}

#[test]
fn f011_last_steps_of_a_canceled_flow_have_the_same_time() {
    let steps = json!([{"id": "t", "try": {"step": {"id": "u", "seq": [undone("a"), call("slow")]},
        "finally": {"id": "never", "sleep": {"for": "2d"}}}}]);
    let mut flow = Flow::begin(&steps);
    flow.settle(|it| (it.path != "slow").then(well));
    flow.cancel();
    let (began, slow) = (flow.now, flow.begun.last().expect("begun").clone());
    flow.tell(ended(&slow, stopped()));
    flow.settle_well();
    assert!(!flow.run.is_over(), "its last step is under way");
    flow.wake();
    assert_eq!(flow.now.ms_since(began), CLOSING_MS);
    assert_eq!(flow.run.status(), RunStatus::Canceled);
    flow.is_replayed();
}

#[test]
fn f011_force_ends_a_flow_at_once() {
    let mut form = json!({ "name": "f", "description": "A flow.", "output": {},
        "steps": [undone("a"), call("slow")] });
    form["on_cancel"] = call("never");
    let mut flow = Flow::of(&form);
    flow.settle(|it| (it.path != "slow").then(well));
    flow.cancel();
    flow.settle(|_| None);
    let (by, reason) = (Actor::CORE, "Now.".to_owned());
    flow.tell(FlowInput::Force { by, reason });
    flow.settle(|_| None);
    assert_eq!((flow.run.status(), flow.error().message.as_str()), (RunStatus::Canceled, "Now."));
    assert_eq!(flow.paths(), ["a", "slow"], "nothing is undone");
    let slow = flow.begun[1].child.clone();
    assert!(flow.called_off.contains(&slow), "{:?}", flow.called_off);
    assert!(flow.audit.iter().any(|it| it.facts.get("force") == Some(&json!(true))));
    flow.is_replayed();
}

#[test]
fn f010_the_first_of_any_ends_the_others_and_results_keep_their_places() {
    let any = json!([{"id": "p", "parallel": {"mode": "any",
        "branches": [call("a"), call("b"), call("c")]}}]);
    let mut flow = Flow::begin(&any);
    flow.settle(|_| None);
    let calls = flow.begun.clone();
    flow.tell(ended(&calls[0], badly(Code::ToolFailed)));
    assert!(!flow.run.is_over(), "a failure among others is no end");
    flow.tell(ended(&calls[2], well()));
    flow.settle(|_| None);
    assert_eq!(flow.called_off, [calls[1].child.clone()]);
    assert!(!flow.run.is_over(), "it ends when no call is open");
    flow.tell(ended(&calls[1], stopped()));
    flow.settle(|_| None);
    assert_eq!(flow.run.status(), RunStatus::Succeeded);
    flow.is_replayed();

    let mut flow = Flow::begin(&any);
    flow.settle(|_| Some(badly(Code::ToolFailed)));
    assert_eq!(flow.error().code.as_str(), "tool.failed", "none of them did it");
}

#[test]
fn f010_a_flow_whose_time_is_over_waits_for_its_calls_and_undoes_what_they_did() {
    let mut form = json!({ "name": "f", "description": "A flow.", "output": {},
        "steps": [undone("a"), call("slow")] });
    form["limits"] = json!({"deadline": "1h"});
    let mut flow = Flow::of(&form);
    flow.settle(|it| (it.path != "slow").then(well));
    flow.wake();
    flow.settle(|_| None);
    let slow = flow.begun.last().expect("begun").clone();
    assert_eq!((flow.called_off.clone(), flow.run.is_over()), (vec![slow.child.clone()], false));
    flow.tell(ended(&slow, stopped()));
    flow.settle_well();
    assert_eq!(flow.paths(), ["a", "slow", "a~undo"]);
    assert_eq!(flow.error().code.as_str(), "flow.deadline");
    flow.is_replayed();
}
