//! A real run on a stage: inputs go in, decisions are committed as an engine would, and after
//! each of them every invariant of the domain is checked.
//!
//! The stage owns what rules must not make themselves (time, unique text, chance), so a test
//! that passes once passes always.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::run::{
    AttemptError, AttemptReport, Cx, Decision, NewAsk, NoteKey, Phase, RunContext, RunInput,
};
use wharf_domain::{
    Actor, ArtifactOp, AskEntry, Audience, AuditRecord, Availability, Caller, Fresh, Funds, Ledger,
    LedgerOp, Outcome, Resolution, Rights, Run, RunEntry, RunSpec,
};
use wharf_vocab::{
    AccountId, AskId, AskKind, AttemptId, Code, Digest, Durability, Executed, Fault, GrantId,
    Micro, Mode, Object, RunKey, RunStatus, ShardId, Timestamp, UnknownCost,
};

pub(crate) use crate::cast::{allowed, gate, proposes, staged};
use crate::invariants;
pub(crate) use crate::names::{effects, kinds};

/// Stands in every payload of every test; no audit record may ever contain it.
pub(crate) const CANARY: &str = "canary-7f3a";

/// The shard all runs of these tests live in.
pub(crate) const SHARD: ShardId = ShardId(0x2a);

/// What a run starts from.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) spec: RunSpec,
    pub(crate) provider: Availability,
    pub(crate) accounts: Vec<LedgerOp>,
    pub(crate) chance: u64,
    /// Whether others wait for room at the provider already.
    pub(crate) full: bool,
}

impl Default for Plan {
    /// An ordinary run: no approval, no price, a tool that acts, a provider that is up.
    fn default() -> Self {
        let world = world_account();
        let spec = RunSpec {
            flow: None,
            step: None,
            tool: "acme/work".parse().expect("a tool id"),
            tool_hash: Digest::of(&[b"definition"]),
            inputs: object("secret").into(),
            inputs_kept: None,
            retain: wharf_vocab::Retain::Full,
            outputs: Object::new(),
            bindings: wharf_domain::scope::Bindings::default(),
            addresses: wharf_domain::run::Addresses::default(),
            publish: wharf_vocab::Publish::Direct,
            mode: Mode::Real,
            durability: Durability::Journal,
            caller: token("starter").to_ref(),
            digest: Digest::of(&[b"request"]),
            parent: None,
            depth: 0,
            trigger_depth: 0,
            continues: None,
            idempotency_key: None,
            correlation_id: None,
            timeout_ms: 60_000,
            account: world.clone(),
            account_parent: None,
            budget_micro: None,
            hold_micro: 0,
            free: false,
            unlimited: false,
            unknown_cost: UnknownCost::Reported,
            gate: None,
            approval: None,
            context: RunContext::default(),
            senior: None,
            mcp: None,
            side_effect_free: false,
            idempotent: false,
            keys_kept: None,
            traceparent: None,
            tracestate: None,
            reattach: false,
            durable: false,
        };
        let accounts = vec![LedgerOp::Open { account: world, parent: None, limit: None }];
        Self { spec, provider: Availability::Up, accounts, chance: 1, full: false }
    }
}

impl Plan {
    /// The plan of a run whose spec differs from the ordinary one.
    pub(crate) fn of(change: impl FnOnce(&mut RunSpec)) -> Self {
        let mut plan = Self::default();
        change(&mut plan.spec);
        plan
    }

    pub(crate) fn provider(mut self, provider: Availability) -> Self {
        self.provider = provider;
        self
    }

    /// Gives the world a budget.
    pub(crate) fn limit(mut self, limit: Micro) -> Self {
        self.accounts.push(LedgerOp::SetLimit { account: world_account(), limit: Some(limit) });
        self
    }

    /// Creates the run; an error means that no run was made.
    pub(crate) fn try_start(self) -> Result<(Stage, Decision), Fault> {
        let mut ledger = Ledger::default();
        ledger.apply(&self.accounts).expect("accounts open");
        let mut fresh = Counter { count: 0, chance: self.chance };
        let now = Timestamp(1_000_000);
        let mut cx = Cx {
            now,
            shard: SHARD,
            provider: &self.provider,
            full: self.full,
            place: None,
            refused: None,
            fresh: &mut fresh,
        };
        let decision = Run::create(&mut cx, run_key(), Arc::new(self.spec));
        ledger.apply(&decision.ledger).map_err(|funds| Run::refuse_for(&funds))?;
        let mut stage = Stage {
            run: decision.next.clone(),
            now,
            provider: self.provider,
            full: self.full,
            ledger,
            journal: Vec::new(),
            ask_journals: BTreeMap::new(),
            audit: Vec::new(),
            artifacts: Vec::new(),
            fresh,
        };
        stage.write(&decision);
        invariants::check(&stage, None, &decision);
        Ok((stage, decision))
    }

    /// Creates the run.
    pub(crate) fn start(self) -> Stage {
        self.try_start().expect("the run is accepted").0
    }
}

/// A run with everything a core would keep around it.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) run: Run,
    pub(crate) now: Timestamp,
    pub(crate) provider: Availability,
    pub(crate) full: bool,
    pub(crate) ledger: Ledger,
    pub(crate) journal: Vec<(Timestamp, RunEntry)>,
    pub(crate) ask_journals: BTreeMap<AskId, Vec<(Timestamp, AskEntry)>>,
    pub(crate) audit: Vec<AuditRecord>,
    pub(crate) artifacts: Vec<ArtifactOp>,
    fresh: Counter,
}

impl Stage {
    /// Offers an input and commits what the rules decide. When the ledger has too little money,
    /// the same input is offered again with the shortage, as an engine does.
    pub(crate) fn offer(&mut self, input: &RunInput) -> Result<Decision, Fault> {
        let before = self.run.clone();
        let first = self.decide(input, None);
        assert_eq!(self.run, before, "deciding does not change the run");
        let mut decision = first?;
        if let Err(funds) = self.ledger.apply(&decision.ledger) {
            decision = self.decide(input, Some(&funds)).expect("the same input again");
            self.ledger.apply(&decision.ledger).expect("a refused run takes no money");
        }
        self.run = decision.next.clone();
        self.write(&decision);
        invariants::check(self, Some(&before), &decision);
        Ok(decision)
    }

    /// Offers an input that must be taken.
    pub(crate) fn take(&mut self, input: &RunInput) -> Decision {
        self.offer(input).expect("the input is taken")
    }

    /// Offers an input that must be rejected, and returns why it was.
    pub(crate) fn reject(&mut self, input: &RunInput) -> Fault {
        let fault = self.offer(input).expect_err("the input is rejected");
        let words = fault.message.split_whitespace().count();
        assert!(words > 2 && fault.message.ends_with('.'), "one sentence: {}", fault.message);
        fault
    }

    /// Offers an input that must change nothing.
    pub(crate) fn ignore(&mut self, input: &RunInput) {
        let decision = self.take(input);
        assert_eq!(decision.entries, [], "no entries");
        assert_eq!(decision.effects, [], "no effects");
    }

    fn decide(&mut self, input: &RunInput, refused: Option<&Funds>) -> Result<Decision, Fault> {
        let mut cx = Cx {
            now: self.now,
            shard: SHARD,
            provider: &self.provider,
            full: self.full,
            place: None,
            refused,
            fresh: &mut self.fresh,
        };
        self.run.decide(&mut cx, input)
    }

    /// What a tick at `now` would decide; nothing is committed.
    pub(crate) fn foresee_tick(&self, now: Timestamp) -> Decision {
        let mut fresh = self.fresh.clone();
        let provider = &self.provider;
        let (full, refused) = (self.full, None);
        let mut cx =
            Cx { now, shard: SHARD, provider, full, place: None, refused, fresh: &mut fresh };
        self.run.decide(&mut cx, &RunInput::Tick).expect("a tick is never an error")
    }

    fn write(&mut self, decision: &Decision) {
        self.journal.extend(decision.entries.iter().map(|entry| (self.now, entry.clone())));
        for (ask_id, entry) in &decision.asks {
            let stream = self.ask_journals.entry(ask_id.clone()).or_default();
            stream.push((self.now, entry.clone()));
        }
        self.audit.extend(decision.audit.iter().cloned());
        self.artifacts.extend(decision.artifacts.iter().cloned());
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    /// Lets time pass until the run wants to be looked at, and looks.
    pub(crate) fn wake(&mut self) -> Decision {
        let due = self.run.next_deadline().expect("an open run waits for something");
        self.now = self.now.max(due);
        self.take(&RunInput::Tick)
    }

    /// Tells the run that its provider is now like this.
    pub(crate) fn provider(&mut self, provider: Availability) -> Decision {
        self.provider = provider;
        self.take(&RunInput::Provider)
    }

    /// The id of the attempt under way, or of none.
    pub(crate) fn attempt_id(&self) -> AttemptId {
        let none = || "no-attempt".parse().expect("an attempt id");
        self.run.active.as_ref().map_or_else(none, |attempt| attempt.id.clone())
    }

    /// The attempt under way ends like this.
    pub(crate) fn ended(&self, result: Result<Object, AttemptError>, cost: Micro) -> RunInput {
        let report = AttemptReport::new(result, cost);
        RunInput::AttemptEnded { attempt_id: self.attempt_id(), report }
    }

    pub(crate) fn succeeded(&self) -> RunInput {
        self.ended(Ok(object("result")), 0)
    }

    /// The attempt under way, or the last one, has cost so much so far.
    pub(crate) fn reports(&self, cost_micro: Micro) -> RunInput {
        let last = self.run.booked.last().map(|booked| booked.attempt_id.clone());
        let active = self.run.active.as_ref().map(|attempt| attempt.id.clone());
        let attempt_id = active.or(last).expect("an attempt has begun");
        RunInput::CostReported { attempt_id, cost_micro }
    }

    /// The attempt under way notes something.
    pub(crate) fn notes(&self, key: NoteKey, value: Option<Value>) -> RunInput {
        RunInput::Note { attempt_id: self.attempt_id(), key, value }
    }

    /// The attempt under way has succeeded, and its file is to be put in its place.
    pub(crate) fn publishes(&self) -> RunInput {
        let report = AttemptReport {
            delivery: staged(&self.attempt_id()),
            ..AttemptReport::new(Ok(object("result")), 0)
        };
        RunInput::AttemptEnded { attempt_id: self.attempt_id(), report }
    }

    pub(crate) fn published(&self) -> RunInput {
        RunInput::Published { attempt_id: self.attempt_id(), lost: Vec::new() }
    }

    pub(crate) fn failed(&self, code: Code, executed: Executed) -> RunInput {
        self.ended(Err(AttemptError::Failed(Fault::new(code, said(code)), executed)), 0)
    }

    /// The attempt under way asks; who may decide is left to whoever may answer at all.
    pub(crate) fn asks(&self, kind: AskKind, key: &str) -> NewAsk {
        NewAsk {
            attempt_id: self.attempt_id(),
            kind,
            escalates: None,
            detail: None,
            by: Vec::new(),
            key: key.to_owned(),
            title: format!("{CANARY} {key}?"),
            schema: Some(json!({ "const": CANARY })),
            audience: Audience::Any,
            deadline: None,
        }
    }

    pub(crate) fn question(&self, key: &str) -> RunInput {
        RunInput::RaiseAsk(self.asks(AskKind::Question, key))
    }

    /// The oldest open ask.
    pub(crate) fn open_ask(&self) -> AskId {
        let raised = self.run.open_asks().next().expect("an ask is open");
        raised.ask.spec.ask_id.clone()
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.run.status()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.run.phase()
    }

    /// The error the run ended with.
    pub(crate) fn error(&self) -> &Fault {
        let outcome = self.run.outcome.as_ref().expect("the run is over");
        outcome.error().expect("it did not succeed")
    }

    pub(crate) fn world(&self) -> (Micro, Micro) {
        let account = self.ledger.account(&world_account()).expect("the world's account");
        (account.held, account.spent)
    }
}

/// Checks where a run stands: its status, and the code of its error if it ended with one.
pub(crate) fn assert_stands(stage: &Stage, status: RunStatus, code: Option<Code>) {
    assert_eq!(stage.status(), status, "{:?}", stage.run.outcome);
    let error = stage.run.outcome.as_ref().and_then(Outcome::error);
    let found = error.map(|error| error.code.as_str());
    assert_eq!(found, code.map(Code::as_str), "{error:?}");
}

/// The fact `executed` of an error.
pub(crate) fn executed(fault: &Fault) -> Option<&str> {
    fault.details.get("executed").and_then(|value| value.as_str())
}

pub(crate) fn cancel() -> RunInput {
    let reason = format!("{CANARY} not needed any more");
    RunInput::Cancel { by: Actor::from(&GrantId::new("starter").expect("valid")), reason }
}

pub(crate) fn resolve(ask_id: AskId, resolution: Resolution, by: Caller) -> RunInput {
    RunInput::ResolveAsk { ask_id, resolution, by }
}

pub(crate) fn answered() -> Resolution {
    Resolution::Answered { value: json!(CANARY) }
}

pub(crate) fn denied() -> Resolution {
    Resolution::Deny { reason: format!("{CANARY} too risky") }
}

/// A token that is not a person's.
pub(crate) fn token(grant: &str) -> Caller {
    Caller::token(grant, Rights::all())
}

/// A person's own token.
pub(crate) fn person(grant: &str) -> Caller {
    Caller { person: true, links: Vec::new(), ..token(grant) }
}

pub(crate) fn down() -> Availability {
    Availability::down(format!("{CANARY} crashed five times"))
}

pub(crate) fn object(key: &str) -> Object {
    Object::from_iter([(key.to_owned(), json!(CANARY))])
}

/// What a provider says about a failure; it may well quote its input.
pub(crate) fn said(code: Code) -> String {
    format!("{code} at {CANARY}")
}

pub(crate) fn world_account() -> AccountId {
    "world:w".parse().expect("an account id")
}

pub(crate) fn run_key() -> RunKey {
    RunKey { world: "w".parse().expect("a world id"), run: "r".parse().expect("a run id") }
}

/// Counts where a core draws unique text, and walks a fixed sequence where it draws chance.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    pub(crate) count: u64,
    pub(crate) chance: u64,
}

impl Fresh for Counter {
    fn unique(&mut self) -> String {
        self.count += 1;
        format!("u{}", self.count)
    }

    fn random(&mut self) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.chance
    }
}
