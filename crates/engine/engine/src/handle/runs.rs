//! Runs: accepting, showing, canceling, removing.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use wharf_domain::run::RunInput;
use wharf_domain::{AuditRecord, Caller, Run, RunSpec};
use wharf_ports::{Claim, RunPage, RunQuery};
use wharf_vocab::limits::{REASON_BYTES_MAX, RUN_DEPTH_MAX, TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS};
use wharf_vocab::{
    AccountId, Code, Digest, Durability, Fault, Micro, Mode, Object, RunId, RunKey, StreamId,
    ToolId, WorldId,
};

use super::{Handle, no_world, stopped};
use crate::catalog::CatalogTool;
use crate::shard::{Create, Input, Reply};
use crate::shell::read_run;

/// A request for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// The tool.
    pub tool: ToolId,
    /// Its inputs.
    pub inputs: Object,
    /// Where outputs go.
    pub outputs: Object,
    /// The world.
    pub world: WorldId,
    /// Whether to act or to pretend.
    pub mode: Mode,
    /// The caller's own id for the run.
    pub run_id: Option<RunId>,
    /// The run whose local files it may read.
    pub continues: Option<RunId>,
    /// The caller's own key for the request.
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The caller's own id for what the run is part of.
    pub correlation_id: Option<String>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<Micro>,
    /// Whether it is written down; the tool's default when absent.
    pub durability: Option<Durability>,
    /// The run that starts it.
    pub parent: Option<RunKey>,
}

impl NewRun {
    /// A request with nothing but a tool and inputs.
    #[must_use]
    pub fn new(tool: ToolId, inputs: Object, world: WorldId) -> Self {
        Self {
            tool,
            inputs,
            outputs: Object::new(),
            world,
            mode: Mode::Real,
            run_id: None,
            continues: None,
            idempotency_key: None,
            timeout_ms: None,
            correlation_id: None,
            budget_micro: None,
            durability: None,
            parent: None,
        }
    }

    /// What tells a repeat of this request from another one.
    fn digest(&self) -> Digest {
        let option = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let text = |value: Option<&str>| value.unwrap_or("").to_owned();
        Digest::of(&[
            self.tool.as_str().as_bytes(),
            Digest::of_object(&self.inputs).as_str().as_bytes(),
            Digest::of_object(&self.outputs).as_str().as_bytes(),
            self.mode.as_str().as_bytes(),
            text(self.continues.as_ref().map(RunId::as_str)).as_bytes(),
            option(self.timeout_ms).as_bytes(),
            option(self.budget_micro).as_bytes(),
            text(self.durability.map(Durability::as_str)).as_bytes(),
        ])
    }
}

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
        let result = self.try_create(caller, new, None).await;
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

    async fn try_create(
        &self,
        caller: &Caller,
        new: NewRun,
        run_id: Option<RunId>,
    ) -> Result<Accepted, Fault> {
        if self.is_stopping() {
            return Err(stopped());
        }
        let run_id = new.run_id.clone().or(run_id).unwrap_or_else(fresh_run_id);
        let key = RunKey { world: new.world.clone(), run: run_id };
        let tool = self.tool(&new.tool)?;
        check_request(&new, &tool)?;
        self.inner.catalog.check_inputs(&new.tool, &new.inputs)?;
        let spec = self.spec(caller, new, &tool, &key).await?;
        let claim = spec.idempotency_key.as_ref().map(|name| Claim {
            scope: format!("idempotency:{}:{}", key.world, caller.grant),
            key: name.clone(),
            value: format!("{} {}", spec.digest, key.run),
        });
        let create = Create { key: key.clone(), spec: Arc::new(spec), claim, ticket: None };
        match self.ask(key.shard(), Input::Create(Box::new(create))).await? {
            Reply::Run { run, made } => Ok(Accepted { run, repeated: !made }),
            Reply::Repeated(key) => Ok(Accepted { run: self.run(&key).await?, repeated: true }),
            Reply::World(_) | Reply::Agent(_) | Reply::Grant(_) => {
                Err(Fault::new(Code::CoreInternal, "The answer does not fit."))
            }
        }
    }

    async fn spec(
        &self,
        caller: &Caller,
        new: NewRun,
        tool: &CatalogTool,
        key: &RunKey,
    ) -> Result<RunSpec, Fault> {
        let world = self.inner.worlds.get(&new.world).ok_or_else(|| no_world(&new.world))?;
        let parent = match &new.parent {
            Some(parent) => Some(self.open_parent(parent).await?),
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
        Ok(RunSpec {
            digest: new.digest(),
            tool_hash: tool.hash.clone(),
            durability: new.durability.unwrap_or(tool.def.durability),
            caller: caller.to_ref(),
            depth: parent.as_ref().map_or(0, |parent| parent.spec.depth + 1),
            timeout_ms: new.timeout_ms.unwrap_or(default).min(cap),
            account: if own { AccountId::of_run(key) } else { above.clone() },
            account_parent: own.then_some(above),
            budget_micro: new.budget_micro,
            hold_micro: tool.def.max_cost_micro.unwrap_or(world.settings.default_hold_micro),
            needs_approval: tool.def.requires_directive,
            side_effect_free: tool.def.side_effects == Some(false),
            idempotent: tool.def.idempotency,
            reattach: tool.def.reattach,
            tool: new.tool,
            inputs: new.inputs,
            outputs: new.outputs,
            mode: new.mode,
            parent: new.parent,
            continues: new.continues,
            idempotency_key: new.idempotency_key,
            correlation_id: new.correlation_id,
        })
    }

    async fn open_parent(&self, key: &RunKey) -> Result<Arc<Run>, Fault> {
        let parent = self.run(key).await?;
        if parent.is_over() || parent.cancel.is_some() {
            let message = format!("The run {key} is over or about to end; it starts nothing more.");
            return Err(Fault::new(Code::ToolCanceled, message));
        }
        if parent.spec.depth + 1 > RUN_DEPTH_MAX {
            let message = format!("Child runs may be nested {RUN_DEPTH_MAX} deep at most.");
            return Err(Fault::new(Code::ToolDepthExceeded, message));
        }
        Ok(parent)
    }

    fn audit_refusal(&self, caller: &Caller, tool: &ToolId, world: &WorldId, fault: &Fault) {
        let actor = format!("grant:{}", caller.grant);
        let record = AuditRecord::new("security.denied", actor, format!("world:{world}"))
            .fact("tool", tool.as_str())
            .fact("error_code", fault.code.as_str());
        self.denied(record);
    }
}

fn check_request(new: &NewRun, tool: &CatalogTool) -> Result<(), Fault> {
    if new.mode == Mode::Mock && !tool.def.mock {
        let message = format!("The tool {} cannot pretend; run it with mode real.", new.tool);
        return Err(Fault::new(Code::RunModeUnsupported, message));
    }
    if new.timeout_ms == Some(0) {
        return Err(Fault::new(Code::RequestInvalid, "timeout_ms must be more than 0."));
    }
    let memory = new.durability.unwrap_or(tool.def.durability) == Durability::Memory;
    if memory && new.idempotency_key.is_some() {
        let message = "An idempotency_key needs durability journal: memory keeps no record.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let key = new.idempotency_key.as_deref().unwrap_or("key");
    if key.is_empty() || key.len() > 255 || key.chars().any(char::is_control) {
        let message = "An idempotency_key has 1 to 255 bytes and no control characters.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    if !new.outputs.is_empty() {
        let message = "This core has no artifact store, so outputs cannot be sent anywhere.";
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    Ok(())
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
