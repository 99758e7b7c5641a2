//! Accepting runs: from a request to what the shard is asked to make.

use std::sync::Arc;

use wharf_domain::run::flow::{FlowSpec, STEP_PREFIX};
use wharf_domain::scope::WorldPath;
use wharf_domain::trace::TraceHeaders;
use wharf_domain::{Audience, Caller, Gate, Patience, Run, RunSpec, World};
use wharf_ports::{Claim, QuoteFor};
use wharf_vocab::limits::{RUN_DEPTH_MAX, SEAT_DEADLINE_MS, TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS};
use wharf_vocab::{
    AccountId, AskId, Code, Digest, Durability, Fault, Micro, Mode, Retain, RunId, RunKey, Verb,
    WorldId,
};

use super::request::{NewRun, RunSeats, check_request};
use super::runs::{AcceptedRun, fresh_run_id};
use super::scope::{ResolvedRequest, key_of, missing};
use super::{RunCalls, misfit, no_world, stopped};
use crate::admission::{self, InputCheck};
use crate::catalog::CatalogTool;
use crate::retention::retain_of;
use crate::shard::{ClaimValue, Create, Input, Reply, conflict};

impl RunCalls<'_> {
    pub(super) async fn try_create(
        self,
        caller: &Caller,
        new: NewRun,
    ) -> Result<AcceptedRun, Fault> {
        if self.0.is_stopping() {
            return Err(stopped());
        }
        self.0.trust().authorise(caller, Verb::Run, &new.world)?;
        caller.rights.check_tool(&new.tool)?;
        check_name(&new)?;
        let run_id = new.run_id.clone().unwrap_or_else(fresh_run_id);
        let key = RunKey { world: new.world.clone(), run: run_id };
        let tool = self.0.providers().tool(&new.tool)?;
        admission::check_tool(&self.0.inner.records, &tool)?;
        check_request(&new, &tool)?;
        let _working = self.0.files().work_in(&new.world)?;
        let plan = self.plan(&new, &tool, &key)?;
        if self.0.inner.input_checks.of(&self.0.inner.records, &new.tool) == InputCheck::Enforce {
            self.0.inner.catalog.check_inputs(&new.tool, &plan.inputs).await?;
        }
        let claims = match self.look_up(caller, &new, &key, plan).await {
            Ok(found) => found,
            // What was there for the first request may be gone when the same is asked again.
            Err(fault) => match self.made_before(caller, &new, &tool, &key).await {
                Some(accepted) => return accepted,
                None => return Err(fault),
            },
        };
        let (resolved, _reading) = claims;
        let read = files_read(&new, &resolved);
        let spec = self.spec(caller, new, &tool, &key, resolved).await?;
        // All tries of a step have one key, and its id tells repeats.
        let claimed = spec.idempotency_key.as_ref().filter(|_| spec.step.is_none());
        let claim = claimed.map(|name| Claim {
            scope: claim_scope(&key, spec.parent.as_ref(), caller),
            key: name.clone(),
            value: ClaimValue::of(&spec, &key).to_string(),
        });
        // Steps of a flow are counted by the flow.
        let parent = spec.parent.clone().filter(|_| spec.step.is_none());
        let bytes = spec.weight();
        // Held until it is committed; then what stays of it is counted with the open runs.
        let _held = self.0.inner.held.take(self.0.inner.hub.holders(&key, &spec), bytes)?;
        if let Some(parent) = &parent {
            self.0.inner.hub.check_written(parent, bytes)?;
            let is_over = |key: &RunKey| self.0.inner.hub.run(key).is_none_or(|run| run.is_over());
            self.0.inner.children.take(parent, self.0.now(), is_over)?;
        }
        let create = Create { key: key.clone(), spec: Arc::new(spec), claim, ticket: None };
        let reply = self.0.ask(key.shard(), Input::Create(Box::new(create))).await;
        if let Some(parent) = parent.filter(|_| !matches!(reply, Ok(Reply::Run { made: true, .. })))
        {
            self.0.inner.children.give_back(&parent);
        }
        match reply.map_err(|fault| naming_the_key(fault, &read))? {
            Reply::Run { run, made } => Ok(AcceptedRun { run, repeated: !made }),
            Reply::Repeated(key) => self.repeated(caller, &key).await,
            Reply::Record(_) | Reply::Done => Err(misfit()),
        }
    }

    /// The run that the same request made before. Somebody else who happens to ask for the same
    /// under the same id learns no more than that the id is taken, unless they may read it.
    async fn repeated(self, caller: &Caller, key: &RunKey) -> Result<AcceptedRun, Fault> {
        let run = self.get(key).await?;
        let may_read = || {
            self.0
                .trust()
                .authorise(caller, Verb::Read, &key.world)
                .and_then(|()| caller.rights.check_tool(&run.spec.tool))
        };
        if caller.owns(&run.spec.caller) || may_read().is_ok() {
            return Ok(AcceptedRun { run, repeated: true });
        }
        Err(conflict(key))
    }

    /// The run that the same request made before under the caller's own id, if there is one.
    async fn made_before(
        self,
        caller: &Caller,
        new: &NewRun,
        tool: &CatalogTool,
        key: &RunKey,
    ) -> Option<Result<AcceptedRun, Fault>> {
        new.run_id.as_ref()?;
        let run = self.get(key).await.ok()?;
        if run.spec.digest != digest_of(new, tool) {
            return Some(Err(conflict(key)));
        }
        Some(self.repeated(caller, key).await)
    }

    async fn spec(
        self,
        caller: &Caller,
        new: NewRun,
        tool: &CatalogTool,
        key: &RunKey,
        resolved: ResolvedRequest,
    ) -> Result<RunSpec, Fault> {
        let world =
            self.0.inner.records.worlds.here(&new.world).ok_or_else(|| no_world(&new.world))?;
        let parent = match &new.parent {
            Some(parent) => Some(self.open_parent(parent, caller, &new).await?),
            None => None,
        };
        let restarts = new.step.restarts.as_ref();
        let above = match (restarts, &parent, &caller.account) {
            // To begin anew gives no new money.
            (Some(before), ..) => before.account.clone(),
            (None, Some(parent), _) => parent.spec.account.clone(),
            (None, None, Some(account)) => account.clone(),
            (None, None, None) => AccountId::of_world(&new.world),
        };
        let flow = self.flow_of(&new, tool)?;
        let limits = flow.as_ref().filter(|_| restarts.is_none()).map(|it| it.document.limits);
        let most = limits.and_then(|limits| limits.budget_micro);
        let budget_micro = new.budget_micro.into_iter().chain(most).min();
        let own = budget_micro.is_some();
        let is_limited =
            own || above != AccountId::of_world(&new.world) || world.settings.limit_micro.is_some();
        let cap = tool.def.timeout_ms.unwrap_or(TIMEOUT_MAX_MS);
        let default = tool.def.timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS);
        let default_hold = world.settings.default_hold_micro;
        let quote = || self.quote(tool, &resolved);
        let (free, hold_micro) = self.0.inner.prices.hold(tool, default_hold, new.mode, quote);
        let (gate, approval) = self.gate(caller, tool, hold_micro, &world, parent.as_deref());
        let gate = self.with_seats(gate, approval.is_some(), &new.seats)?;
        let gate = if new.step.person_gate { gate.or_else(|| Some(person_gate())) } else { gate };
        let (digest, provider) = (digest_of(&new, tool), new.tool.provider());
        let home = self.0.inner.home.as_deref();
        let above_it = parent.as_deref().map(|parent| {
            let part_of = parent.spec.correlation_id.clone();
            part_of.unwrap_or_else(|| parent.key.run.to_string())
        });
        let correlation_id = above_it.or(new.correlation_id);
        // What somebody must approve is written down, whatever the caller wants.
        let durability = match &gate {
            Some(_) => Durability::Journal,
            None if flow.is_some() || new.step.of.is_some() || tool.def.durable => {
                Durability::Journal
            }
            None => new.durability.unwrap_or(tool.def.durability),
        };
        let given = TraceHeaders { traceparent: new.traceparent, tracestate: new.tracestate };
        let above_it = parent.as_deref().map(|it| self.0.inner.traces.headers_of_child(it));
        let trace = given.checked().below(above_it.unwrap_or_default());
        Ok(RunSpec {
            digest,
            tool_hash: tool.hash.clone(),
            durability,
            caller: caller.to_ref(),
            depth: parent.as_ref().map_or(0, |parent| parent.spec.depth + 1),
            trigger_depth: parent.as_ref().map_or(new.trigger_depth, |it| it.spec.trigger_depth),
            timeout_ms: new.timeout_ms.unwrap_or(default).min(cap),
            account: if own { AccountId::of_run(key) } else { above.clone() },
            account_parent: own.then_some(above),
            budget_micro,
            hold_micro: if flow.is_some() { 0 } else { hold_micro },
            free: free || flow.is_some(),
            unlimited: durability == Durability::Memory && !is_limited,
            retain: match new.step.of {
                // Whoever does the steps reads what they gave until it is over.
                Some(_) => Retain::Full,
                None => retain_of(&tool.def, &world.settings, &self.0.inner.retention),
            },
            inputs_kept: None,
            unknown_cost: world.settings.unknown_cost,
            gate,
            approval,
            senior: new.seats.senior,
            mcp: new.mcp.or(parent.as_deref().and_then(|parent| parent.spec.mcp)),
            context: admission::context(&self.0.inner.records, &provider, new.context, home)?,
            side_effect_free: tool.def.side_effects == Some(false),
            idempotent: tool.def.idempotency,
            keys_kept: tool.def.keys_kept,
            reattach: tool.def.reattach,
            durable: tool.def.durable,
            tool: if flow.is_some() { tool.def.tool.clone() } else { new.tool },
            flow,
            step: new.step.of,
            inputs: resolved.inputs.into(),
            outputs: resolved.outputs,
            bindings: resolved.bindings,
            addresses: resolved.addresses,
            publish: world.settings.publish,
            mode: new.mode,
            parent: new.parent,
            continues: new.continues,
            idempotency_key: new.idempotency_key,
            correlation_id: Some(correlation_id.unwrap_or_else(|| key.run.to_string())),
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
        })
    }

    /// The most that the provider says a call costs, if it can tell.
    fn quote(self, tool: &CatalogTool, resolved: &ResolvedRequest) -> Option<Micro> {
        let sink = self.0.inner.catalog.sink(&tool.def.tool.provider())?;
        let file_bytes = resolved.bindings.files().map(|(_, read)| read.bytes).sum();
        let inputs = &resolved.inputs;
        sink.quote(&QuoteFor { tool: &tool.def.tool, inputs, file_bytes })
    }

    /// What decides in a world whether somebody would have to approve a run.
    pub fn approval_terms(self, world: &WorldId) -> ApprovalTerms {
        // Looked at first: what changes meanwhile is seen the next time.
        let prices = self.0.inner.prices.changed();
        ApprovalTerms { world: self.0.inner.records.worlds.here(world), prices }
    }

    /// Whether somebody would have to approve a run of this tool that a caller asks for here.
    pub fn needs_approval(self, caller: &Caller, tool: &CatalogTool, world: &WorldId) -> bool {
        let Some(world) = self.0.inner.records.worlds.here(world) else {
            return tool.def.requires_directive;
        };
        let default = world.settings.default_hold_micro;
        let (_, hold_micro) = self.0.inner.prices.hold(tool, default, Mode::Real, || None);
        self.gate(caller, tool, hold_micro, &world, None).0.is_some()
    }

    /// Whether the run must be approved first, or the approval given before that spares it that.
    fn gate(
        self,
        caller: &Caller,
        tool: &CatalogTool,
        hold_micro: Micro,
        world: &World,
        parent: Option<&Run>,
    ) -> (Option<Gate>, Option<AskId>) {
        let known = world.allows(&tool.def.tool, &tool.hash);
        let gated = |allowed: bool| {
            let rules = &world.settings.policy;
            self.0.inner.policy.gate_in(rules, &tool.def, hold_micro, allowed)
        };
        match gated(known.is_some()) {
            Some(gate) => match parent.and_then(|it| it.allows_child(&tool.hash, &caller.grant)) {
                Some(approval) => (None, Some(approval.clone())),
                None => (Some(gate), None),
            },
            None => {
                let spared = known.is_some() && gated(false).is_some();
                (None, known.filter(|_| spared).cloned())
            }
        }
    }

    /// The gate that the caller's own wish adds where no rule asks for one. Its seat is waited for
    /// only so long as the caller says; then others may decide. A rule's gate is not the caller's
    /// to change.
    fn with_seats(
        self,
        gate: Option<Gate>,
        approved: bool,
        seats: &RunSeats,
    ) -> Result<Option<Gate>, Fault> {
        for seat in seats.gate.iter().chain(&seats.senior) {
            self.0.seats().get(seat)?;
        }
        let ms = seats.deadline_ms.unwrap_or(SEAT_DEADLINE_MS);
        let patience = Patience { ms, escalate: true, person: false };
        Ok(match (gate, &seats.gate) {
            (None, Some(seat)) if !approved => Some(Gate::of_seat(seat.clone(), patience)),
            (gate, _) => gate,
        })
    }

    /// The parent of a new run. Whatever starts a child does so within its parent's world and
    /// chain of grants, with the same rights or fewer.
    async fn open_parent(
        self,
        key: &RunKey,
        caller: &Caller,
        new: &NewRun,
    ) -> Result<Arc<Run>, Fault> {
        let parent = self.get(key).await?;
        let denied = |message: String| Err(Fault::new(Code::PermissionDenied, message));
        if parent.is_over() {
            return denied(format!("The run {key} is over; it starts nothing more."));
        }
        // A flow that is canceled still undoes what it did.
        let ends = parent.cancel.is_some() && new.step.of.is_none();
        if ends || parent.publishing.is_some() {
            let message = format!("The run {key} is about to end; it starts nothing more.");
            return Err(Fault::new(Code::ToolCanceled, message));
        }
        if parent.spec.depth + 1 > RUN_DEPTH_MAX {
            let message = format!("Child runs may be nested {RUN_DEPTH_MAX} deep at most.");
            return Err(Fault::new(Code::ToolDepthExceeded, message));
        }
        let above = &parent.spec.caller;
        let chained = above.links().iter().all(|link| caller.links.contains(link));
        if key.world != new.world || !chained || !above.rights().covers(&caller.rights) {
            return denied(format!("A child of the run {key} cannot have more rights than it."));
        }
        Ok(parent)
    }
}

impl RunCalls<'_> {
    /// The document that a run goes by, if its tool is a flow.
    fn flow_of(self, new: &NewRun, tool: &CatalogTool) -> Result<Option<Arc<FlowSpec>>, Fault> {
        let is_flow = new.tool.is_flow();
        if (is_flow || tool.def.durable) && new.durability == Some(Durability::Memory) {
            let what = if is_flow { "A flow" } else { "A durable tool" };
            let message = format!("{what} is written down, so its durability cannot be memory.");
            return Err(Fault::invalid("durability", message));
        }
        if !is_flow {
            return Ok(None);
        }
        let version = self.0.flows().of_tool(&tool.def.tool);
        let version = version.ok_or_else(|| crate::catalog::not_found(&new.tool))?;
        let (document, pins) = (Arc::clone(&version.document), Arc::clone(&version.pins));
        let restarts = new.step.restarts.as_ref().map(|before| before.run.clone());
        let (version, cites) = (version.number, new.step.cites.clone());
        Ok(Some(Arc::new(FlowSpec { version, document, pins, restarts, cites })))
    }
}

/// Ids that begin like those of steps are the engine's to give.
fn check_name(new: &NewRun) -> Result<(), Fault> {
    let own = new.step.of.is_some() || new.step.restarts.is_some();
    let taken = |id: &RunId| !own && id.starts_with(STEP_PREFIX);
    match new.run_id.as_ref().filter(|id| taken(id)) {
        Some(_) => {
            let message = format!("Ids that begin with {STEP_PREFIX} belong to steps.");
            Err(Fault::invalid("run_id", message))
        }
        None => Ok(()),
    }
}

/// The files that a request reads, each with the key that names it.
fn files_read(new: &NewRun, resolved: &ResolvedRequest) -> Vec<(WorldPath, String)> {
    let files = resolved.bindings.files();
    files.map(|(name, read)| (read.path.clone(), key_of(&new.inputs, name))).collect()
}

/// A file that has gone since it was looked up is as good as one that never was there.
fn naming_the_key(fault: Fault, read: &[(WorldPath, String)]) -> Fault {
    let gone = fault.details.get("path").and_then(|path| path.as_str());
    let gone = gone.filter(|_| fault.is(Code::ScopeNotFound));
    match read.iter().find(|(path, _)| gone == Some(path.as_str())) {
        Some((_, key)) => missing(key),
        None => fault,
    }
}

/// The approval that a step asks for by itself.
fn person_gate() -> Gate {
    Gate {
        audience: Audience::Person,
        reason: "The flow asks for an approval of this step.".to_owned(),
        remember: false,
        patience: None,
    }
}

/// What decides in a world whether somebody would have to approve a run of a tool. While it is the
/// same and the catalog is, so are the answers of [`RunCalls::needs_approval`].
#[derive(Debug, Clone)]
pub struct ApprovalTerms {
    world: Option<Arc<World>>,
    prices: u64,
}

impl PartialEq for ApprovalTerms {
    fn eq(&self, other: &Self) -> bool {
        let same_world = match (&self.world, &other.world) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_world && self.prices == other.prices
    }
}

/// What tells a repeat of a request from another one.
fn digest_of(new: &NewRun, tool: &CatalogTool) -> Digest {
    new.digest(&|name| tool.def.is_literal(name))
}

/// What an idempotency key is unique within: a world and a caller, or the run that starts it.
fn claim_scope(key: &RunKey, parent: Option<&RunKey>, caller: &Caller) -> String {
    match parent {
        Some(parent) => format!("idempotency:{parent}:{}", caller.grant),
        None => format!("idempotency:{}:{}", key.world, caller.grant),
    }
}
