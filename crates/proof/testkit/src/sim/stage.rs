//! The fixed cast: shards, worlds, tools and callers, and run ids that fall into the shards.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use wharf_domain::grant::Narrowing;
use wharf_domain::run::flow::StepRef;
use wharf_domain::run::{Addresses, RunContext};
use wharf_domain::scope::Bindings;
use wharf_domain::{Audience, Caller, Gate, Rights, RunSpec, WorldSettings};
use wharf_vocab::{
    AccountId, Digest, Durability, Micro, Mode, Object, ProviderId, Publish, RunId, RunKey,
    ShardId, StreamId, ToolId, UnknownCost, Verb, WorldId,
};

use super::flows;

/// Shards that only runs fall into, besides those of the worlds.
const MORE_SHARDS: [ShardId; 3] = [ShardId(0x07), ShardId(0x70), ShardId(0xd3)];

/// What a tool is like; each has a provider of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) side_effect_free: bool,
    pub(super) idempotent: bool,
    /// The provider lives on its own and can be attached to again; others die with their core.
    pub(super) reattach: bool,
    pub(super) gated: bool,
    pub(super) hold: Option<Micro>,
    pub(super) asks: u64,
    pub(super) forks: u64,
    /// How often it wants an approval of what it is about to do.
    pub(super) proposes: u64,
    pub(super) lies: bool,
    /// Its outputs are published when a run can only succeed.
    pub(super) stages: bool,
}

const PLAIN: Tool = Tool {
    name: "plain",
    side_effect_free: false,
    idempotent: false,
    reattach: false,
    gated: false,
    hold: None,
    asks: 0,
    forks: 0,
    proposes: 0,
    lies: false,
    stages: false,
};

pub(super) const TOOLS: [Tool; 11] = [
    PLAIN,
    Tool { name: "pure", side_effect_free: true, ..PLAIN },
    Tool { name: "keyed", idempotent: true, hold: Some(40), ..PLAIN },
    Tool { name: "remote", reattach: true, asks: 20, ..PLAIN },
    Tool { name: "gated", gated: true, hold: Some(100), ..PLAIN },
    Tool { name: "gated-remote", gated: true, reattach: true, asks: 30, ..PLAIN },
    Tool { name: "asker", reattach: true, asks: 80, hold: Some(20), stages: true, ..PLAIN },
    Tool { name: "forker", forks: 70, asks: 20, reattach: true, stages: true, ..PLAIN },
    Tool { name: "paid", side_effect_free: true, hold: Some(300), stages: true, ..PLAIN },
    Tool { name: "proposer", proposes: 60, asks: 10, hold: Some(10), ..PLAIN },
    Tool {
        name: "liar",
        side_effect_free: true,
        lies: true,
        stages: true,
        hold: Some(30),
        ..PLAIN
    },
];

impl Tool {
    pub(super) fn provider(&self) -> ProviderId {
        ProviderId::new(self.name).expect("a valid id")
    }

    pub(super) fn id(&self) -> ToolId {
        ToolId::new(format!("{}/work", self.name)).expect("a valid id")
    }
}

/// Which provider a tool id belongs to.
pub(super) fn tool_of(provider: &ProviderId) -> Option<usize> {
    TOOLS.iter().position(|tool| tool.name == provider.as_str())
}

/// The worlds and what their owner sets.
pub(super) fn worlds() -> [(WorldId, WorldSettings); 3] {
    let world = |name| WorldId::new(name).expect("a valid id");
    [
        (world("default"), WorldSettings::default()),
        (world("small"), WorldSettings::budget(Some(700), 0)),
        (world("metered"), WorldSettings::budget(Some(20_000), 60)),
    ]
}

/// The shards of the cast.
pub(super) fn shards() -> Vec<ShardId> {
    let worlds = worlds().map(|(id, _)| StreamId::World(id).shard());
    let all: BTreeSet<_> = worlds.into_iter().chain(MORE_SHARDS).collect();
    all.into_iter().collect()
}

/// The owner, as whoever cancels a run.
pub(crate) fn owner() -> wharf_domain::Actor {
    wharf_domain::Actor::from(&Caller::owner().grant)
}

/// Whoever asks for something. The first two are people.
pub(super) fn callers() -> [Caller; 4] {
    let token = |name| Caller::token(name, Rights::all());
    let person = Caller { person: true, links: Vec::new(), ..token("person") };
    let few = Narrowing { verbs: Some([Verb::Run].into()), ..Narrowing::default() };
    let worker = Caller::token("worker", Rights::all().narrowed(&few));
    [Caller::owner(), person, token("robot"), worker]
}

/// Whether a grant of the cast is a person's.
pub(super) fn is_person(grant: &str) -> bool {
    callers().iter().any(|caller| caller.person && caller.grant.as_str() == grant)
}

/// Makes run ids that fall into the shards of the cast.
#[derive(Debug)]
pub(super) struct Names {
    shards: [bool; 256],
    last: u64,
}

impl Names {
    pub(super) fn new() -> Self {
        let mut known = [false; 256];
        for shard in shards() {
            known[shard.index()] = true;
        }
        Self { shards: known, last: 0 }
    }

    pub(super) fn fresh(&mut self, world: &WorldId) -> RunKey {
        loop {
            self.last += 1;
            let run = RunId::new(format!("r{}", self.last)).expect("a valid id");
            let key = RunKey { world: world.clone(), run };
            if self.shards[key.shard().index()] {
                return key;
            }
        }
    }
}

/// A request for a run, as a caller means it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) tool: usize,
    /// What tells requests apart.
    pub(super) input: u64,
    pub(super) durability: Durability,
    pub(super) timeout_ms: u64,
    pub(super) budget: Option<Micro>,
    pub(super) idempotency_key: Option<String>,
    pub(super) caller: Caller,
    pub(super) parent: Option<Parent>,
    /// Which of the flows it is, if it is one.
    pub(super) flow: Option<usize>,
    /// Which step of its parent it is, and its key.
    pub(super) step: Option<(StepRef, String)>,
}

/// What a child takes over from its parent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parent {
    pub(super) key: RunKey,
    pub(super) account: AccountId,
    pub(super) depth: u32,
}

impl Request {
    pub(super) fn spec(&self, key: &RunKey, default_hold: Micro) -> Arc<RunSpec> {
        let tool = TOOLS[self.tool];
        let mut inputs = Object::new();
        inputs.insert("n".to_owned(), json!(self.input));
        let above = match &self.parent {
            Some(parent) => parent.account.clone(),
            None => AccountId::of_world(&key.world),
        };
        let own = self.budget.is_some();
        let digest = Digest::of(&[tool.name.as_bytes(), &self.input.to_be_bytes()]);
        Arc::new(RunSpec {
            flow: self.flow.map(flows::spec),
            step: self.step.as_ref().map(|(step, _)| step.clone()),
            senior: None,
            mcp: None,
            tool: self.flow.map_or_else(|| tool.id(), flows::tool),
            tool_hash: Digest::of(&[tool.name.as_bytes()]),
            inputs: inputs.into(),
            inputs_kept: None,
            retain: wharf_vocab::Retain::Full,
            outputs: Object::new(),
            bindings: Bindings::default(),
            addresses: Addresses::default(),
            publish: if tool.stages && self.flow.is_none() {
                Publish::Staged
            } else {
                Publish::Direct
            },
            mode: Mode::Real,
            durability: self.durability,
            caller: self.caller.to_ref(),
            digest,
            parent: self.parent.as_ref().map(|parent| parent.key.clone()),
            depth: self.parent.as_ref().map_or(0, |parent| parent.depth + 1),
            trigger_depth: 0,
            continues: None,
            idempotency_key: match &self.step {
                Some((_, key)) => Some(key.clone()),
                None => self.idempotency_key.clone(),
            },
            correlation_id: None,
            timeout_ms: self.timeout_ms,
            account: if own { AccountId::of_run(key) } else { above.clone() },
            account_parent: own.then_some(above),
            budget_micro: self.budget,
            hold_micro: if self.flow.is_some() { 0 } else { tool.hold.unwrap_or(default_hold) },
            free: self.flow.is_some(),
            unlimited: false,
            unknown_cost: UnknownCost::Reported,
            gate: (tool.gated && self.flow.is_none()).then(|| Gate {
                patience: None,
                audience: Audience::Person,
                reason: "The tool asks for an approval of every run.".to_owned(),
                remember: !tool.reattach,
            }),
            approval: None,
            context: RunContext::default(),
            side_effect_free: tool.side_effect_free,
            idempotent: tool.idempotent,
            keys_kept: None,
            traceparent: None,
            tracestate: None,
            reattach: tool.reattach && self.flow.is_none(),
            durable: false,
        })
    }
}
