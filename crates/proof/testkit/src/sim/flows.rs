//! Flows in the simulated world: a few documents, and what the engine does outside for them.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::flow::{Document, NameScope};
use wharf_domain::run::RunInput;
use wharf_domain::run::flow::{
    ChildEnd, FlowInput, FlowSpec, FlowWork, NewSignal, StepCall, StepRef,
};
use wharf_domain::{Actor, Caller, CallerKind, Run};
use wharf_engine::shard::{Create, Effect, Input, Reply};
use wharf_vocab::{Code, Durability, Fault, RunKey, ShardId, ToolId};

use super::Sim;
use super::callers::Call;
use super::event::{Event, Parcel};
use super::exercised::Thing;
use super::stage::{self, Parent, Request};

/// How many documents there are.
pub(super) const COUNT: usize = 5;
/// What is said by those who end flows at once.
pub(super) const FORCED: &str = "It is to end now.";

/// The document of a flow.
fn document(which: usize) -> Value {
    let call = |id: &str, tool: &str| json!({"id": id, "call": {"tool": format!("{tool}/work"), "inputs": {"n": 1}}});
    let undone = |id: &str, tool: &str| {
        json!({"id": id, "call": {"tool": format!("{tool}/work"), "inputs": {"n": 1},
            "compensate": {"tool": "pure/work", "inputs": {"n": 2}}}})
    };
    let steps = match which {
        0 => json!([call("a", "pure"), {"id": "nap", "sleep": {"for": "1s"}}, call("b", "plain"),
            {"id": "q", "ask": {"question": "Go on?", "on_timeout": {"answer": "yes"}}},
            call("c", "keyed")]),
        1 => json!([{"id": "e", "each": {"over": "[1, 2, 3, 4, 5]", "as": "it", "concurrency": 3,
            "on_error": "collect", "step": call("one", "paid")}}, call("last", "gated")]),
        2 => json!([{"id": "t", "try": {"step": {"id": "p", "parallel": {"branches": [
                undone("x", "plain"), undone("y", "remote"),
                {"id": "s", "signal": {"name": "go", "deadline": "3s"}}]}},
            "catch": [{"step": call("caught", "pure")}],
            "finally": call("at_last", "keyed")}}]),
        3 => json!([{"id": "p", "parallel": {"mode": "any", "branches": [
                undone("x", "plain"), call("y", "remote"),
                {"id": "s", "seq": [{"id": "g", "signal": {"name": "go", "deadline": "20s"}}, call("z", "pure")]}]}},
            {"id": "w", "signal": {"name": "go", "deadline": "5s"}}]),
        _ => json!([undone("x", "pure"), {"id": "l", "loop": {"while": "index < 2", "max": 3,
                "step": {"id": "r", "call": {"tool": "plain/work", "inputs": {},
                    "retry": {"max": 3, "backoff": "1s"}}}}},
            {"id": "ok", "approve": {"title": "Go on?"}}]),
    };
    json!({ "name": format!("sim{which}"), "description": "A flow.", "steps": steps,
        "output": {"n": 1}, "on_cancel": call("closing", "pure") })
}

pub(super) fn spec(which: usize) -> Arc<FlowSpec> {
    let document = Document::read(&document(which)).expect("a document");
    Arc::new(FlowSpec {
        version: 1,
        document: Arc::new(document),
        pins: Arc::default(),
        restarts: None,
        cites: None,
    })
}

pub(super) fn tool(which: usize) -> ToolId {
    ToolId::new(format!("flow/sim{which}@1")).expect("a valid id")
}

impl Sim {
    /// Sends an input from one shard to another. What a flow and its steps tell each other may get
    /// lost, or come twice and late.
    pub(super) fn send_or_lose(&mut self, node: usize, to: ShardId, input: Input) {
        let word = matches!(&input, Input::Run { input: RunInput::Flow(_), .. });
        #[cfg(test)]
        if word && self.deaf {
            return;
        }
        if word && !self.healing && self.chance.percent(30) {
            self.seen.note(Thing::StepLost);
            if self.chance.percent(50) {
                return;
            }
            let (life, late) = (self.nodes[node].life, self.chance.between(0, 40_000));
            let parcel = Parcel::Input { shard: to, input: Box::new(input.clone()), call: None };
            self.agenda.after(late, Event::ToNode { node, life, parcel });
        }
        self.send(node, to, input);
    }

    /// Does what a flow wants, as the engine does beside its shell.
    pub(super) fn work_for_flow(&mut self, node: usize, flow: &Arc<Run>, work: FlowWork) {
        match work {
            FlowWork::Evaluate(wanted) => {
                let (path, turn) = (wanted.path, wanted.turn);
                let index = json!(wanted.scope.index.unwrap_or(0));
                let scope = NameScope::default().with("index", &index);
                let result = wanted.what.evaluate(&scope);
                self.tell_flow(node, &flow.key, FlowInput::Evaluated { path, turn, result });
            }
            FlowWork::Begin(call) => self.begin_step(node, flow, &call),
            FlowWork::Cancel(_) | FlowWork::Restart(_) => {}
        }
    }

    /// Somebody sends a flow a message, or ends it at once.
    pub(super) fn call_flow(&mut self, key: RunKey, by: Actor) {
        let input = match self.chance.between(0, 9) {
            0..=2 => {
                self.seen.note(Thing::Forced);
                RunInput::Flow(FlowInput::Force { by, reason: FORCED.to_owned() })
            }
            _ => {
                self.seen.note(Thing::Signal);
                let own = format!("key-{}", self.chance.between(0, 3));
                let (name, value) = ("go".to_owned(), json!(1));
                RunInput::Signal(NewSignal { name, value, key: Some(own), by })
            }
        };
        let (shard, input) = (key.shard(), Input::Run { key, input, ticket: None });
        let node = self.chance.index(self.nodes.len());
        self.call_at(node, Some(Call::Cancel), shard, input);
    }

    fn tell_flow(&mut self, node: usize, flow: &RunKey, input: FlowInput) {
        let input = RunInput::Flow(input);
        self.send(node, flow.shard(), Input::Run { key: flow.clone(), input, ticket: None });
    }

    fn begin_step(&mut self, node: usize, flow: &Arc<Run>, call: &StepCall) {
        let key = RunKey { world: flow.key.world.clone(), run: call.child.clone() };
        if call.look_up || call.canceling {
            if let Some((found, _)) = self.find(&key) {
                self.seen.note(Thing::StepFound);
                if let Some(ended) = ChildEnd::of(&found) {
                    self.tell_flow(node, &flow.key, FlowInput::Ended(Box::new(ended)));
                } else if call.canceling
                    && let Effect::Send { to, input } = Effect::cancel_child(&key)
                {
                    self.send(node, to, *input);
                }
                return;
            }
            if call.canceling {
                let fault = Fault::new(Code::ToolCanceled, "The step was called off.");
                let (path, number) = (call.path.clone(), call.number);
                return self.tell_flow(node, &flow.key, FlowInput::Refused { path, number, fault });
            }
        }
        self.make_step(flow, call, key);
    }

    fn make_step(&mut self, flow: &Arc<Run>, call: &StepCall, key: RunKey) {
        let spec = &flow.spec;
        let Some(tool) = stage::tool_of(&call.call.tool.provider()) else { return };
        let step = StepRef { path: call.path.clone(), number: call.number, code: None };
        let by = &spec.caller;
        let request = Request {
            tool,
            input: 1,
            durability: Durability::Journal,
            timeout_ms: 60_000,
            budget: None,
            idempotency_key: None,
            caller: Caller {
                grant: by.grant.clone(),
                links: by.links(),
                root: by.root.clone(),
                person: by.person,
                kind: CallerKind::Client,
                account: None,
                rights: by.rights(),
                stands_in: None,
                console: None,
            },
            parent: Some(Parent {
                key: flow.key.clone(),
                account: spec.account.clone(),
                depth: spec.depth,
            }),
            flow: None,
            step: Some((step, call.key.clone())),
        };
        let settings = stage::worlds().into_iter().find(|(id, _)| *id == key.world);
        let hold = settings.map_or(0, |(_, settings)| settings.default_hold_micro);
        let spec = request.spec(&key, hold);
        let (path, number) = (call.path.clone(), call.number);
        let waiting = Call::Step { flow: flow.key.clone(), path, number };
        let shard = key.shard();
        let create = Create { key, spec, claim: None, ticket: None };
        self.call(Some(waiting), shard, Input::Create(Box::new(create)));
    }

    /// The core answers whether it made the run of a step.
    pub(super) fn step_answered(
        &mut self,
        flow: &RunKey,
        path: String,
        number: u32,
        result: &Result<Reply, Fault>,
    ) {
        let input = match result {
            Ok(Reply::Run { run, .. }) => match ChildEnd::of(run) {
                Some(ended) => FlowInput::Ended(Box::new(ended)),
                None => FlowInput::Made { child: run.key.run.clone() },
            },
            // The flow looks for it after a while.
            Ok(_) => return,
            Err(fault)
                if fault.retryable || fault.is(Code::RunConflict) || fault.is(Code::FlowOver) =>
            {
                return;
            }
            Err(fault) => FlowInput::Refused { path, number, fault: fault.clone() },
        };
        let input = Input::Run { key: flow.clone(), input: RunInput::Flow(input), ticket: None };
        self.call(None, flow.shard(), input);
    }
}
