//! What a run was asked to do, fixed when it is created, and the names of its attempts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{
    AccountId, AskId, Digest, Durability, Micro, Mode, Object, ProviderId, Publish, Retain, RunId,
    RunKey, SeatId, Timestamp, ToolId, UnknownCost,
};

use super::flow::{FlowSpec, StepRef};
use super::{Inputs, Run, ValueDigest};
use crate::scope::{Bindings, ReadObject, SecretAddresses};
use crate::world::{direct, is_direct, is_full, is_reported};
use crate::{CallerRef, Gate, KeysKept};

/// What a run was asked to do, with the facts of its tool that rules depend on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The tool.
    pub tool: ToolId,
    /// Hash of the tool's definition when the run was created.
    pub tool_hash: Digest,
    /// The inputs under their names; those that are references have the text that records may have.
    pub inputs: Inputs,
    /// What is known of the inputs, once they themselves are not kept any more.
    #[serde(default)]
    pub inputs_kept: Option<ValueDigest>,
    /// What is kept of its values when it is over.
    #[serde(default, skip_serializing_if = "is_full")]
    pub retain: Retain,
    /// Where outputs go, by their names.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub outputs: Object,
    /// What names in inputs and outputs stand for.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// Addresses among inputs and outputs with the parts that must not be written down.
    #[serde(skip)]
    pub addresses: Addresses,
    /// When its outputs can be seen.
    #[serde(default = "direct", skip_serializing_if = "is_direct")]
    pub publish: Publish,
    /// Whether it acts or pretends.
    pub mode: Mode,
    /// Whether it is written down.
    pub durability: Durability,
    /// Who started it.
    pub caller: CallerRef,
    /// Digest of the request, to tell a repeat from a conflict.
    pub digest: Digest,
    /// The run that started it.
    pub parent: Option<RunKey>,
    /// How deep it is nested; 0 for a run without a parent.
    #[serde(default)]
    pub depth: u32,
    /// How many triggers stand behind it: it was started by one, or by what one started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trigger_depth: u32,
    /// The run whose local files it may read.
    pub continues: Option<RunId>,
    /// The caller's own key for it.
    pub idempotency_key: Option<String>,
    /// The id of what it is part of: what the caller says, else the run that all of it began with.
    pub correlation_id: Option<String>,
    /// The trace it belongs to, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// What tracing systems on the way add to that for each other.
    pub tracestate: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: u64,
    /// Where its money comes from.
    pub account: AccountId,
    /// The account above, when the run has an account of its own.
    pub account_parent: Option<AccountId>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<Micro>,
    /// What is held for each attempt, as far as it was known when the run was accepted.
    #[serde(default)]
    pub hold_micro: Micro,
    /// Whether its tool is free, so that it needs no money to be left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
    /// Whether no account that it draws on had a limit when it was accepted. Only said of runs in
    /// memory: asking the books is the one commit of an attempt there, and an attempt that is
    /// written down asks them anyway.
    #[serde(skip)]
    pub unlimited: bool,
    /// What is booked when nobody knows what an attempt has cost.
    #[serde(default, skip_serializing_if = "is_reported")]
    pub unknown_cost: UnknownCost,
    /// Why it must be approved before it is dispatched, and by whom, if it must.
    pub gate: Option<Gate>,
    /// The approval given before that lets it start without being asked for again.
    pub approval: Option<AskId>,
    /// Where the caller is while it asks, as far as the provider may know.
    #[serde(default, skip_serializing_if = "RunContext::is_empty")]
    pub context: RunContext,
    /// The seat that is asked when a worker fails.
    pub senior: Option<SeatId>,
    /// What the MCP client can do whose call it is, or its parent's.
    pub mcp: Option<McpTerms>,
    /// Whether the tool is declared free of side effects.
    #[serde(default)]
    pub side_effect_free: bool,
    /// Whether the provider keeps idempotency keys.
    #[serde(default)]
    pub idempotent: bool,
    /// How far its memory of them goes, when it has bounds.
    pub keys_kept: Option<KeysKept>,
    /// Whether an attempt can be taken up again after a restart of the core.
    #[serde(default)]
    pub reattach: bool,
    /// Whether its tool is durable: its attempts are repeated, and its steps found again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub durable: bool,
    /// The document it goes by, if it is a flow.
    pub flow: Option<Arc<FlowSpec>>,
    /// Which step of its parent it is, if that is a flow or durable.
    pub step: Option<StepRef>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RunSpec {
    /// Who executes the run.
    pub fn provider(&self) -> ProviderId {
        self.tool.provider()
    }

    /// Whether its attempts cost real money: those that pretend do not.
    pub fn is_paid(&self) -> bool {
        self.mode == Mode::Real
    }

    /// Whether an attempt for which nothing is set aside may begin only while money is left.
    pub fn needs_admission(&self) -> bool {
        self.is_paid() && !self.free && !self.unlimited
    }

    /// Whether no more than hashes of its values are written down when it is over.
    pub fn is_withheld(&self) -> bool {
        self.retain == Retain::Digest && self.durability == Durability::Journal
    }

    /// The files that the run reads, which an approval is bound to.
    pub fn files(&self) -> BTreeMap<String, ReadObject> {
        self.bindings.files().map(|(name, read)| (name.clone(), read.clone())).collect()
    }

    /// Digest of the arguments, which an approval is bound to.
    pub fn args_digest(&self) -> Digest {
        self.inputs.digest()
    }

    /// What is kept of it while its run is open: all but large inputs, if a store has them.
    pub fn lean(spec: &Arc<Self>) -> Arc<Self> {
        let left = match spec.durability {
            // Expressions of a flow look at its inputs again and again.
            Durability::Journal if spec.flow.is_some() => None,
            Durability::Journal => spec.inputs.leave(),
            Durability::Memory => None,
        };
        left.map_or_else(
            || Arc::clone(spec),
            |inputs| Arc::new(Self { inputs, ..Self::clone(spec) }),
        )
    }

    /// The same with the inputs that its run's stream has. Parts of addresses that are written
    /// nowhere stay as they are known here.
    pub fn with_inputs_of(&self, stored: &Self) -> Self {
        debug_assert!(self.digest == stored.digest, "both are of one request");
        let (inputs, inputs_kept) = (stored.inputs.clone(), stored.inputs_kept.clone());
        Self { inputs, inputs_kept, ..self.clone() }
    }
}

/// Addresses with the parts that must not be written down, by the names they stand under.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Addresses {
    /// Of inputs.
    pub inputs: SecretAddresses,
    /// Of outputs.
    pub outputs: SecretAddresses,
}

/// Where a caller is while it asks for a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunContext {
    /// The folder of the caller's project.
    pub project_root: Option<String>,
    /// Files and folders the request is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_paths: Vec<String>,
    /// What the caller's program shows.
    pub ui: Option<Object>,
}

impl RunContext {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All paths it names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.project_root.iter().chain(&self.resource_paths).map(String::as_str)
    }
}

/// What an MCP client can do for the runs that it calls for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpTerms {
    /// It fills in forms.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub form: bool,
    /// It leads its user to an address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub url: bool,
    /// It asks its model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sampling: bool,
    /// It lets its model use tools meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sampling_tools: bool,
    /// It tells its folders.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub roots: bool,
    /// What it cannot do nobody else is asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inbox_off: bool,
    /// How long it wants the run to be kept as a task, from its beginning on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ttl_ms: Option<u64>,
}

/// What every name of a task begins with.
const PREFIX: &str = "ST-";
/// How much of the digest stands in a name.
const NAME_CHARS: usize = 32;

/// An attempt by the name that operators know it under. It follows from the run and the number of
/// the attempt, so it is known before the attempt begins: whoever is asked to let it pass, whoever
/// executes it and whoever is told of its end hear the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// The name.
    pub task_id: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

impl TaskRef {
    /// The name of an attempt of a run that was accepted at this moment. A run that was removed
    /// and another one that was made under its id later do not share it.
    pub fn of(run: &RunKey, accepted: Timestamp, attempt: u32) -> Self {
        let digest = Digest::of(&[
            b"wharf.task.1",
            run.world.as_str().as_bytes(),
            run.run.as_str().as_bytes(),
            &accepted.0.to_be_bytes(),
            &attempt.to_be_bytes(),
        ]);
        Self { task_id: format!("{PREFIX}{}", &digest.as_str()[..NAME_CHARS]), attempt }
    }
}

impl Run {
    /// The name of one of its attempts, also of one that has not begun.
    pub fn task(&self, attempt: u32) -> TaskRef {
        TaskRef::of(&self.key, self.created_at, attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::{RunId, WorldId};

    fn key(world: &str, run: &str) -> RunKey {
        RunKey { world: WorldId::new(world).expect("valid"), run: RunId::new(run).expect("valid") }
    }

    #[test]
    fn o010_a_task_is_named_by_its_run_and_the_number_of_its_attempt() {
        let named =
            |world, run, at, attempt| TaskRef::of(&key(world, run), Timestamp(at), attempt).task_id;
        let first = named("w", "r", 1, 1);
        assert_eq!(first, named("w", "r", 1, 1), "it can be said again at any time");
        assert!(first.starts_with("ST-") && first.len() == 35, "{first}");
        assert!(first[3..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        for other in [
            named("v", "r", 1, 1),
            named("w", "s", 1, 1),
            named("w", "r", 2, 1),
            named("w", "r", 1, 2),
        ] {
            assert_ne!(first, other);
        }
    }
}
