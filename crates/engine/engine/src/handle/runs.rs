//! Runs: accepting, showing, canceling, removing.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use wharf_domain::run::{Addresses, RunInput};
use wharf_domain::scope::Bindings;
use wharf_domain::{AuditRecord, Caller, Gate, Run, RunSpec, World};
use wharf_ports::{Claim, RunPage, RunQuery};
use wharf_vocab::limits::{REASON_BYTES_MAX, RUN_DEPTH_MAX, TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS};
use wharf_vocab::{
    AccountId, AskId, Code, Durability, Fault, Micro, RunId, RunKey, StreamId, ToolId, Verb,
    WorldId,
};

use super::authority::told;
use super::request::{NewRun, check_request};
use super::{Handle, no_world, stopped};
use crate::admission;
use crate::catalog::CatalogTool;
use crate::shard::{Create, Input, Reply, conflict};
use crate::shell::read_run;

/// A run that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The run.
    pub run: Arc<Run>,
    /// Whether the same request had been accepted before.
    pub repeated: bool,
}

impl Handle {
    /// Accepts a run, or says why not; nothing is kept of a request that is refused but a record
    /// in the audit.
    pub async fn create_run(&self, caller: &Caller, new: NewRun) -> Result<Accepted, Fault> {
        let (tool, world) = (new.tool.clone(), new.world.clone());
        let result = self.try_create(caller, new).await;
        if let Err(fault) = &result {
            self.audit_refusal(caller, &tool, &world, fault);
        }
        result
    }

    /// Accepts a run and waits for its end, at most so long; then it is shown as it is.
    pub async fn create_and_wait(
        &self,
        caller: &Caller,
        mut new: NewRun,
        at_most: Duration,
    ) -> Result<Accepted, Fault> {
        let run_id = new.run_id.get_or_insert_with(fresh_run_id).clone();
        let key = RunKey { world: new.world.clone(), run: run_id };
        let over = self.inner.hub.wait(&key);
        let accepted = self.create_run(caller, new).await;
        let accepted = match accepted {
            Ok(accepted) if accepted.run.is_over() || accepted.run.key != key => Ok(accepted),
            Ok(accepted) => match tokio::time::timeout(at_most, over).await {
                Ok(Ok(run)) => return Ok(Accepted { run, ..accepted }),
                Ok(Err(_)) | Err(_) => {
                    let run = self.run(&key).await?;
                    Ok(Accepted { run, ..accepted })
                }
            },
            Err(fault) => Err(fault),
        };
        self.inner.hub.gave_up(&key);
        match accepted {
            Ok(accepted) if !accepted.run.is_over() && accepted.run.key != key => {
                let run = self.wait_run(&accepted.run.key, at_most).await?;
                Ok(Accepted { run, ..accepted })
            }
            other => other,
        }
    }

    /// Waits for a run's end, at most so long; then it is shown as it is.
    pub async fn wait_run(&self, key: &RunKey, at_most: Duration) -> Result<Arc<Run>, Fault> {
        let over = self.inner.hub.wait(key);
        let run = self.run(key).await;
        let result = match run {
            Ok(run) if !run.is_over() => match tokio::time::timeout(at_most, over).await {
                Ok(Ok(run)) => return Ok(run),
                Ok(Err(_)) | Err(_) => self.run(key).await,
            },
            other => {
                drop(over);
                other
            }
        };
        self.inner.hub.gave_up(key);
        result
    }

    /// One run, as it was last committed.
    pub async fn run(&self, key: &RunKey) -> Result<Arc<Run>, Fault> {
        if let Some(run) = self.inner.hub.run(key) {
            return Ok(run);
        }
        self.stored_run(key).await
    }

    /// One run, as the store has it.
    pub(super) async fn stored_run(&self, key: &RunKey) -> Result<Arc<Run>, Fault> {
        let stream = key.stream();
        let stored = self.inner.store.load(stream.clone()).await.map_err(|e| e.to_fault())?;
        let stored = stored.ok_or_else(|| no_run(key))?;
        let run = read_run(&stream, &stored).map_err(|error| error.to_fault())?;
        Ok(Arc::new(run))
    }

    /// Runs, newest first. Runs that are kept in memory only stand on the first page.
    pub async fn runs(&self, query: RunQuery) -> Result<RunPage, Fault> {
        let mut shown = Vec::new();
        if query.before.is_none() {
            let fits = |run: &Arc<Run>| {
                query.world.as_ref().is_none_or(|world| run.key.world == *world)
                    && query.tool.as_ref().is_none_or(|tool| run.spec.tool == *tool)
                    && query.status.is_none_or(|status| run.status() == status)
                    && query.since.is_none_or(|since| run.created_at >= since)
                    && query.until.is_none_or(|until| run.created_at < until)
            };
            let memory = self.inner.hub.memory_runs().into_iter().filter(fits);
            shown.extend(memory.take(query.limit).map(|run| run.summary()));
        }
        let page = self.inner.store.runs(query).await.map_err(|error| error.to_fault())?;
        shown.extend(page.runs);
        Ok(RunPage { runs: shown, next: page.next })
    }

    /// Asks a run to stop. A run that is over stays as it is.
    pub async fn cancel_run(
        &self,
        caller: &Caller,
        key: &RunKey,
        reason: &str,
    ) -> Result<Arc<Run>, Fault> {
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("A reason may have {REASON_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let run = self.run(key).await?;
        self.audited(caller, format!("run:{key}"), self.check_cancel(caller, &run))?;
        let by = format!("grant:{}", caller.grant);
        let reason = if reason.is_empty() { "The run was canceled." } else { reason }.to_owned();
        let input = RunInput::Cancel { by, reason };
        let input = Input::Run { key: key.clone(), input, ticket: None };
        match self.ask(key.shard(), input).await {
            Ok(Reply::Run { run, .. }) => Ok(run),
            Ok(_) => self.run(key).await,
            Err(fault) if fault.is(Code::RunNotFound) => self.run(key).await,
            Err(fault) => Err(fault),
        }
    }

    /// Removes a run that is over, with its inputs, outputs, progress and asks. The audit stays.
    pub async fn purge_run(&self, caller: &Caller, key: &RunKey) -> Result<(), Fault> {
        let allowed = self.authorise(caller, Verb::Admin, &key.world);
        self.audited(caller, format!("run:{key}"), allowed)?;
        let run = self.run(key).await?;
        if !run.is_over() {
            let message = format!("The run {key} is still open; cancel it first.");
            return Err(Fault::new(Code::RunStillOpen, message));
        }
        if self.inner.hub.forget_memory(key) {
            return Ok(());
        }
        let asks = run.asks.iter().map(|raised| StreamId::Ask(raised.ask.spec.ask_id.clone()));
        for stream in asks.chain([key.stream()]) {
            self.inner.store.purge(stream).await.map_err(|error| error.to_fault())?;
        }
        let actor = format!("grant:{}", caller.grant);
        let record = AuditRecord::new("run.purged", actor, format!("run:{key}"));
        self.tell(key.shard(), Input::Audit(vec![record])).await
    }

    async fn try_create(&self, caller: &Caller, new: NewRun) -> Result<Accepted, Fault> {
        if self.is_stopping() {
            return Err(stopped());
        }
        self.authorise(caller, Verb::Run, &new.world)?;
        caller.rights.check_tool(&new.tool)?;
        let run_id = new.run_id.clone().unwrap_or_else(fresh_run_id);
        let key = RunKey { world: new.world.clone(), run: run_id };
        let tool = self.tool(&new.tool)?;
        admission::check_tool(&self.inner.agents, &tool)?;
        check_request(&new, &tool)?;
        self.inner.catalog.check_inputs(&new.tool, &new.inputs).await?;
        let spec = self.spec(caller, new, &tool, &key).await?;
        let claim = spec.idempotency_key.as_ref().map(|name| Claim {
            scope: claim_scope(&key, spec.parent.as_ref(), caller),
            key: name.clone(),
            value: format!("{} {}", spec.digest, key.run),
        });
        let parent = spec.parent.clone();
        if let Some(parent) = &parent {
            let is_over = |key: &RunKey| self.inner.hub.run(key).is_none_or(|run| run.is_over());
            self.inner.children.take(parent, self.now(), is_over)?;
        }
        let create = Create { key: key.clone(), spec: Arc::new(spec), claim, ticket: None };
        let reply = self.ask(key.shard(), Input::Create(Box::new(create))).await;
        if let Some(parent) = parent.filter(|_| !matches!(reply, Ok(Reply::Run { made: true, .. })))
        {
            self.inner.children.give_back(&parent);
        }
        match reply? {
            Reply::Run { run, made } => Ok(Accepted { run, repeated: !made }),
            Reply::Repeated(key) => self.repeated(caller, &key).await,
            Reply::World(_) | Reply::Agent(_) | Reply::Grant(_) | Reply::Done => {
                Err(Fault::new(Code::CoreInternal, "The answer does not fit."))
            }
        }
    }

    /// The run that the same request made before. Somebody else who happens to ask for the same
    /// under the same id learns no more than that the id is taken, unless they may read it.
    async fn repeated(&self, caller: &Caller, key: &RunKey) -> Result<Accepted, Fault> {
        let run = self.run(key).await?;
        let may_read = || {
            self.authorise(caller, Verb::Read, &key.world)
                .and_then(|()| caller.rights.check_tool(&run.spec.tool))
        };
        if caller.owns(&run.spec.caller) || may_read().is_ok() {
            return Ok(Accepted { run, repeated: true });
        }
        Err(conflict(key))
    }

    async fn spec(
        &self,
        caller: &Caller,
        new: NewRun,
        tool: &CatalogTool,
        key: &RunKey,
    ) -> Result<RunSpec, Fault> {
        let world = self.inner.worlds.here(&new.world).ok_or_else(|| no_world(&new.world))?;
        let parent = match &new.parent {
            Some(parent) => Some(self.open_parent(parent, caller, &new.world).await?),
            None => None,
        };
        let above = match (&parent, &caller.account) {
            (Some(parent), _) => parent.spec.account.clone(),
            (None, Some(account)) => account.clone(),
            (None, None) => AccountId::of_world(&new.world),
        };
        let own = new.budget_micro.is_some();
        let cap = tool.def.timeout_ms.unwrap_or(TIMEOUT_MAX_MS);
        let default = tool.def.timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS);
        let hold_micro = tool.def.max_cost_micro.unwrap_or(world.settings.default_hold_micro);
        let (gate, approval) = self.gate(caller, tool, hold_micro, (&world, parent.as_deref()));
        let (digest, provider) = (new.digest(), new.tool.provider());
        let home = self.inner.home.as_deref();
        let correlation_id = parent.as_ref().and_then(|parent| parent.spec.correlation_id.clone());
        Ok(RunSpec {
            digest,
            tool_hash: tool.hash.clone(),
            // What somebody must approve is written down, whatever the caller wants.
            durability: match &gate {
                Some(_) => Durability::Journal,
                None => new.durability.unwrap_or(tool.def.durability),
            },
            caller: caller.to_ref(),
            depth: parent.as_ref().map_or(0, |parent| parent.spec.depth + 1),
            timeout_ms: new.timeout_ms.unwrap_or(default).min(cap),
            account: if own { AccountId::of_run(key) } else { above.clone() },
            account_parent: own.then_some(above),
            budget_micro: new.budget_micro,
            hold_micro,
            gate,
            approval,
            context: admission::context(&self.inner.agents, &provider, new.context, home)?,
            side_effect_free: tool.def.side_effects == Some(false),
            idempotent: tool.def.idempotency,
            reattach: tool.def.reattach,
            tool: new.tool,
            inputs: new.inputs,
            outputs: new.outputs,
            bindings: Bindings::default(),
            addresses: Addresses::default(),
            publish: world.settings.publish,
            mode: new.mode,
            parent: new.parent,
            continues: new.continues,
            idempotency_key: new.idempotency_key,
            correlation_id: correlation_id.or(new.correlation_id),
        })
    }

    /// Whether the run must be approved first, or the approval given before that spares it that.
    fn gate(
        &self,
        caller: &Caller,
        tool: &CatalogTool,
        hold_micro: Micro,
        (world, parent): (&World, Option<&Run>),
    ) -> (Option<Gate>, Option<AskId>) {
        let known = world.allows(&tool.def.tool, &tool.hash);
        match self.inner.policy.gate(&tool.def, hold_micro, known.is_some()) {
            Some(gate) => match parent.and_then(|it| it.allows_child(&tool.hash, &caller.grant)) {
                Some(approval) => (None, Some(approval.clone())),
                None => (Some(gate), None),
            },
            None => {
                let spared = known.is_some()
                    && self.inner.policy.gate(&tool.def, hold_micro, false).is_some();
                (None, known.filter(|_| spared).cloned())
            }
        }
    }

    /// The parent of a new run. Whatever starts a child does so within its parent's world and
    /// chain of grants, with the same rights or fewer.
    async fn open_parent(
        &self,
        key: &RunKey,
        caller: &Caller,
        world: &WorldId,
    ) -> Result<Arc<Run>, Fault> {
        let parent = self.run(key).await?;
        let denied = |message: String| Err(Fault::new(Code::PermissionDenied, message));
        if parent.is_over() {
            return denied(format!("The run {key} is over; it starts nothing more."));
        }
        if parent.cancel.is_some() {
            let message = format!("The run {key} is about to end; it starts nothing more.");
            return Err(Fault::new(Code::ToolCanceled, message));
        }
        if parent.spec.depth + 1 > RUN_DEPTH_MAX {
            let message = format!("Child runs may be nested {RUN_DEPTH_MAX} deep at most.");
            return Err(Fault::new(Code::ToolDepthExceeded, message));
        }
        let above = &parent.spec.caller;
        let chained = above.links().iter().all(|link| caller.links.contains(link));
        if key.world != *world || !chained || !above.rights().covers(&caller.rights) {
            return denied(format!("A child of the run {key} cannot have more rights than it."));
        }
        Ok(parent)
    }

    pub(super) fn audit_refusal(
        &self,
        caller: &Caller,
        tool: &ToolId,
        world: &WorldId,
        fault: &Fault,
    ) {
        let actor = format!("grant:{}", caller.grant);
        let record = AuditRecord::new("security.denied", actor, format!("world:{world}"))
            .fact("tool", tool.as_str());
        self.denied(told(record, fault));
    }
}

/// What an idempotency key is unique within: a world and a caller, or the run that starts it.
fn claim_scope(key: &RunKey, parent: Option<&RunKey>, caller: &Caller) -> String {
    match parent {
        Some(parent) => format!("idempotency:{parent}:{}", caller.grant),
        None => format!("idempotency:{}:{}", key.world, caller.grant),
    }
}

fn no_run(key: &RunKey) -> Fault {
    Fault::new(
        Code::RunNotFound,
        format!("There is no run {} in the world {}.", key.run, key.world),
    )
}

fn fresh_run_id() -> RunId {
    RunId::new(Uuid::now_v7().to_string()).expect("a UUID is a valid id")
}
