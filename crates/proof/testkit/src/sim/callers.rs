//! Callers: they ask for runs, repeat themselves, call off, decide and set budgets.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{NewAsk, RunInput};
use wharf_domain::{
    Actor, Ask, AuditRecord, Caller, Resolution, RunSpec, Scope, Subject, WorldInput, WorldSettings,
};
use wharf_engine::shard::{ClaimValue, Create, Input, RecordInput, Reply, Shard};
use wharf_ports::Claim;
use wharf_vocab::{
    AskKind, AttemptId, Code, Digest, Durability, Fault, GrantId, RunKey, ShardId, StreamId,
    WorldId,
};

use super::Sim;
use super::event::{Event, Parcel};
use super::exercised::Thing;
use super::flows;
use super::node::read_run;
use super::stage::{self, Parent, Request, TOOLS};

/// Runs that are open at once at most.
const OPEN_RUNS_MAX: usize = 32;

/// Calls that wait for an answer, and requests that were made.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: BTreeMap<u64, Call>,
    made: Vec<(RunKey, Request)>,
    last_input: u64,
    /// Every answer, for scenarios to look at.
    #[cfg(test)]
    pub(super) answers: Vec<(Call, Result<Reply, Fault>)>,
}

/// A call that waits for an answer.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Create { key: RunKey, digest: Digest, durability: Durability, claim: Option<Claim> },
    Cancel,
    Resolve { ask: Box<Ask>, by: Caller, resolution: Resolution },
    World,
    Raise { provider: usize, attempt: AttemptId },
    Step { flow: RunKey, path: String, number: u32 },
}

impl Calls {
    /// A call that waits for an answer.
    pub(super) fn waiting(&self) -> Option<&Call> {
        self.open.values().next()
    }

    pub(super) fn open(&mut self, call: Call) -> u64 {
        self.last += 1;
        self.open.insert(self.last, call);
        self.last
    }
}

impl Sim {
    /// Somebody asks for something.
    pub(super) fn some_call(&mut self) {
        match self.chance.between(0, 99) {
            0..=44 => self.call_create(),
            45..=59 => self.call_again(),
            60..=66 => self.call_cancel(),
            67..=71 => self.call_cancel_parent(),
            72..=91 => self.call_resolve(),
            92..=95 => self.call_world(),
            _ => {
                let record = AuditRecord::denied(
                    &GrantId::new("robot").expect("a valid id"),
                    Subject::route("/v1/runs"),
                );
                let shard = self.shards[self.chance.index(self.shards.len())];
                self.call(None, shard, Input::Audit(vec![record]));
            }
        }
    }

    /// Sends an input to some core.
    pub(super) fn call(&mut self, call: Option<Call>, shard: ShardId, input: Input) {
        let node = self.chance.index(self.nodes.len());
        self.call_at(node, call, shard, input);
    }

    pub(super) fn call_at(
        &mut self,
        node: usize,
        call: Option<Call>,
        shard: ShardId,
        input: Input,
    ) {
        let call = call.map(|call| self.calls.open(call));
        if self.nodes[node].up {
            self.send_to(node, Parcel::Input { shard, input: Box::new(input), call });
        } else if let Some(call) = call {
            self.call_lost(call);
        }
    }

    fn call_create(&mut self) {
        if self.check.open_runs() >= OPEN_RUNS_MAX {
            return self.next_event();
        }
        let worlds = stage::worlds();
        let world = if self.chance.percent(self.mood.poor) { 1 } else { self.chance.index(3) };
        let world = worlds[world].0.clone();
        let mut request = self.some_request(None);
        if self.chance.percent(self.mood.families) {
            request.tool = TOOLS.iter().position(|tool| tool.forks > 0).unwrap_or(0);
        }
        if self.chance.percent(self.mood.flows) {
            request.flow = Some(self.chance.index(flows::COUNT));
            request.durability = Durability::Journal;
            self.seen.note(Thing::Flow);
        }
        let key = self.names.fresh(&world);
        self.calls.made.push((key.clone(), request.clone()));
        self.create(None, &key, &request);
    }

    fn some_request(&mut self, parent: Option<Parent>) -> Request {
        let callers = stage::callers();
        let durability =
            if self.chance.percent(10) { Durability::Memory } else { Durability::Journal };
        let keyed = durability == Durability::Journal && self.chance.percent(30);
        self.calls.last_input += 1;
        let input = self.calls.last_input;
        Request {
            tool: self.chance.index(TOOLS.len()),
            input,
            durability,
            timeout_ms: [1_500, 10_000, 60_000, 300_000][self.chance.index(4)],
            budget: self.chance.percent(15).then(|| self.chance.between(30, 700)),
            idempotency_key: keyed.then(|| format!("key-{input}")),
            caller: callers[self.chance.index(callers.len())].clone(),
            parent,
            flow: None,
            step: None,
        }
    }

    /// The same request once more, or another one under a name that was used.
    fn call_again(&mut self) {
        let Some((key, request)) = self.chance.pick(&self.calls.made).cloned() else { return };
        if request.durability == Durability::Memory {
            return;
        }
        let mut again = request;
        if self.chance.percent(30) {
            self.calls.last_input += 1;
            again.input = self.calls.last_input;
        }
        let keyed = again.idempotency_key.is_some();
        let key = if keyed && self.chance.percent(60) { self.names.fresh(&key.world) } else { key };
        self.create(None, &key, &again);
    }

    pub(super) fn create(&mut self, node: Option<usize>, key: &RunKey, request: &Request) {
        let settings = stage::worlds().into_iter().find(|(id, _)| *id == key.world);
        let hold = settings.map_or(0, |(_, settings)| settings.default_hold_micro);
        let spec = request.spec(key, hold);
        let claim = spec.idempotency_key.as_ref().map(|name| Claim {
            scope: format!("idempotency:{}:{}", key.world, request.caller.grant),
            key: name.clone(),
            value: ClaimValue::of(&spec, key).to_string(),
        });
        let call = Call::Create {
            key: key.clone(),
            digest: spec.digest.clone(),
            durability: spec.durability,
            claim: claim.clone(),
        };
        let create = Create { key: key.clone(), spec, claim, ticket: None };
        let input = Input::Create(Box::new(create));
        let node = node.unwrap_or_else(|| self.chance.index(self.nodes.len()));
        self.call_at(node, Some(call), key.shard(), input);
    }

    /// An attempt starts a child run; the core looks the parent up first.
    pub(super) fn fork(&mut self, home: usize, parent: &RunKey, spec: &Arc<RunSpec>) {
        if self.check.open_runs() >= OPEN_RUNS_MAX {
            return;
        }
        if spec.durability == Durability::Journal {
            let stored = self.store.state.load(&parent.stream());
            let open = stored.and_then(|stored| read_run(&stored));
            if open.is_none_or(|run| run.is_over() || run.cancel.is_some()) {
                return;
            }
        }
        let parent =
            Parent { key: parent.clone(), account: spec.account.clone(), depth: spec.depth };
        let key = self.names.fresh(&parent.key.world);
        let mut request = self.some_request(Some(parent));
        request.caller = Caller::agent(&spec.provider(), &spec.caller, vec![ToolPattern::any()]);
        self.create(Some(home), &key, &request);
    }

    fn call_cancel(&mut self) {
        let Some((key, request)) = self.chance.pick(&self.calls.made).cloned() else { return };
        let by = Actor::from(&request.caller.grant);
        if request.flow.is_some() && self.chance.percent(60) {
            return self.call_flow(key, by);
        }
        self.cancel(key, by);
    }

    /// Calls a run off that has started others.
    fn call_cancel_parent(&mut self) {
        let parents = self.check.parents();
        if let Some(key) = self.chance.pick(&parents).cloned() {
            self.cancel(key, crate::sim::stage::owner());
        }
    }

    pub(super) fn cancel(&mut self, key: RunKey, by: Actor) {
        self.cancel_at(None, key, by);
    }

    /// Somebody calls a run off at a core, or at any.
    pub(super) fn cancel_at(&mut self, node: Option<usize>, key: RunKey, by: Actor) {
        let input = RunInput::Cancel { by, reason: "It is not needed.".to_owned() };
        let (shard, input) = (key.shard(), Input::Run { key, input, ticket: None });
        let node = node.unwrap_or_else(|| self.chance.index(self.nodes.len()));
        self.call_at(node, Some(Call::Cancel), shard, input);
    }

    /// Somebody decides an ask, permitted or not, in words that fit or not.
    fn call_resolve(&mut self) {
        let asks = self.check.asks();
        let Some(ask) = self.chance.pick(&asks).cloned() else { return };
        let callers = stage::callers();
        let by = callers[self.chance.index(callers.len())].clone();
        let resolution = match (ask.spec.kind, self.chance.between(0, 19)) {
            (_, 0) => Resolution::Cancelled,
            (AskKind::Approval, 1..=4) => Resolution::Deny { reason: "No.".to_owned() },
            (AskKind::Approval, 5..=14) => Resolution::Allow { scope: Scope::Parent },
            (AskKind::Approval, _) => Resolution::ALLOW,
            (AskKind::Question, 1..=3) => Resolution::Declined,
            (AskKind::Question, n) => Resolution::Answered { value: Value::String(n.to_string()) },
        };
        self.resolve(&ask, by, resolution);
    }

    pub(super) fn resolve(&mut self, ask: &Ask, by: Caller, resolution: Resolution) {
        let key = ask.spec.run.clone();
        let shard = key.shard();
        let input = RunInput::ResolveAsk {
            ask_id: ask.spec.ask_id.clone(),
            resolution: resolution.clone(),
            by: by.clone(),
        };
        let call = Call::Resolve { ask: Box::new(ask.clone()), by, resolution };
        self.call(Some(call), shard, Input::Run { key, input, ticket: None });
    }

    fn call_world(&mut self) {
        let worlds = stage::worlds();
        let (id, mut settings) = worlds[self.chance.index(worlds.len())].clone();
        settings.limit_micro =
            settings.limit_micro.map(|limit| limit / 2 + self.chance.between(0, limit));
        let input = match self.chance.percent(20) {
            true => WorldInput::Create(settings),
            false => WorldInput::Change(settings),
        };
        self.world(id, input);
    }

    pub(super) fn create_world(&mut self, id: WorldId, settings: WorldSettings) {
        self.world(id, WorldInput::Create(settings));
    }

    fn world(&mut self, id: WorldId, input: WorldInput) {
        let shard = StreamId::World(id.clone()).shard();
        let by = Caller::owner().to_ref();
        self.call(
            Some(Call::World),
            shard,
            Input::Record { input: RecordInput::World(id, input), by, ticket: None },
        );
    }

    /// A provider raises an ask and waits for the core to take it.
    pub(super) fn call_raise(&mut self, node: usize, provider: usize, key: RunKey, ask: NewAsk) {
        let call = Call::Raise { provider, attempt: ask.attempt_id.clone() };
        let shard = key.shard();
        let input = Input::Run { key, input: RunInput::RaiseAsk(ask), ticket: None };
        self.call_at(node, Some(call), shard, input);
    }

    /// The core answers a call.
    pub(super) fn answered(&mut self, call: u64, result: &Result<Reply, Fault>) {
        let Some(call) = self.calls.open.remove(&call) else { return };
        #[cfg(test)]
        self.calls.answers.push((call.clone(), result.clone()));
        self.trace(|| format!("{call:?} is answered: {}", brief_reply(result)));
        match call {
            Call::Create { key, digest, durability, claim } => {
                self.check.create_answered(&key, &digest, durability, claim.as_ref(), result);
                match result {
                    Ok(Reply::Run { .. }) if durability == Durability::Memory => {
                        self.seen.note(Thing::MemoryRun);
                    }
                    Ok(Reply::Repeated(_)) => self.seen.note(Thing::Repeated),
                    Err(fault) if fault.is(Code::RunConflict) => self.seen.note(Thing::Conflict),
                    _ => {}
                }
            }
            Call::Resolve { ask, by, resolution } => {
                if result.as_ref().is_err_and(|fault| fault.is(Code::PermissionDenied)) {
                    self.seen.note(Thing::Forbidden);
                }
                self.check.resolve_answered(&ask, &by, &resolution, result);
            }
            Call::Raise { provider, attempt } => match result {
                Ok(reply) => self.check.reply(reply),
                Err(fault) => self.raise_failed(provider, &attempt, fault.retryable),
            },
            Call::Step { flow, path, number } => self.step_answered(&flow, path, number, result),
            Call::Cancel | Call::World => {
                if let Ok(reply) = result {
                    self.check.reply(reply);
                }
            }
        }
    }

    /// The core died before it could answer: nobody knows what became of the call.
    pub(super) fn call_lost(&mut self, call: u64) {
        if let Some(Call::Raise { provider, attempt }) = self.calls.open.remove(&call) {
            self.raise_failed(provider, &attempt, true);
        }
    }

    /// People decide what is still open, so that nothing waits for a week.
    pub(super) fn look_through_inbox(&mut self) {
        self.agenda.after(2_000, Event::Inbox);
        let mut asks: Vec<Ask> =
            self.store.state.open_asks(0, 1_000).into_iter().map(|open| open.ask).collect();
        asks.extend(self.asks_in_memory());
        for ask in asks {
            let resolution = match ask.spec.kind {
                AskKind::Approval if self.chance.percent(80) => Resolution::ALLOW,
                AskKind::Approval => Resolution::Deny { reason: String::new() },
                AskKind::Question => Resolution::Answered { value: Value::String("x".to_owned()) },
            };
            self.resolve(&ask, Caller::owner(), resolution);
        }
    }

    /// Asks of runs that no store knows.
    fn asks_in_memory(&self) -> Vec<Ask> {
        let shards = self.nodes.iter().flat_map(|node| node.memory.shards.values());
        let runs = shards.flat_map(Shard::runs).filter_map(|view| view.run);
        let memory = runs.filter(|run| run.spec.durability == Durability::Memory);
        let open = memory.flat_map(|run| run.open_asks().map(|raised| raised.ask.clone()));
        let mut asks: Vec<Ask> = open.collect();
        asks.sort_by(|a, b| a.spec.ask_id.cmp(&b.spec.ask_id));
        asks
    }
}

fn brief_reply(result: &Result<Reply, Fault>) -> String {
    match result {
        Ok(Reply::Run { run, made }) => format!("{} {} made={made}", run.key, run.status()),
        Ok(Reply::Repeated(key)) => format!("repeats {key}"),
        Ok(Reply::Record(record)) => {
            let stream = record.stream();
            format!("{} {}", stream.kind().as_str(), stream.key())
        }
        Ok(Reply::Done) => "done".to_owned(),
        Err(fault) => fault.to_string(),
    }
}
