//! Runs: asking for them, showing, canceling, removing.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use wharf_domain::run::RunInput;
use wharf_domain::{Actor, AuditRecord, Caller, Run, RunSummary};
use wharf_ports::{RunPage, RunPlace, RunQuery, StatsQuery, StatsRow, StatsSums};
use wharf_vocab::limits::REASON_BYTES_MAX;
use wharf_vocab::{Code, Fault, ProviderId, RunId, RunKey, ToolId, Verb, WorldId};

use super::authority::told;
use super::request::NewRun;
use super::{RunCalls, RunListCalls};
use crate::hub::ProviderRuns;
use crate::shard::{Input, Reply};
use crate::shell::read_run;
use crate::totals::RunTotals;

/// A run that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedRun {
    /// The run.
    pub run: Arc<Run>,
    /// Whether the same request had been accepted before.
    pub repeated: bool,
}

impl RunCalls<'_> {
    /// A fresh id for all that one connection starts.
    pub fn new_session(self) -> String {
        format!("session:{}", Uuid::now_v7())
    }

    /// A fresh id for a run.
    pub fn new_run_id(self) -> RunId {
        fresh_run_id()
    }

    /// Accepts a run, or says why not; nothing is kept of a request that is refused but a record
    /// in the audit.
    pub async fn create(self, caller: &Caller, new: NewRun) -> Result<AcceptedRun, Fault> {
        let (tool, world) = (new.tool.clone(), new.world.clone());
        let result = self.try_create(caller, new).await;
        if let Err(fault) = &result {
            self.audit_refusal(caller, &tool, &world, fault);
        }
        result
    }

    /// Accepts a run and waits for its end, at most so long; then it is shown as it is.
    pub async fn create_and_wait(
        self,
        caller: &Caller,
        mut new: NewRun,
        at_most: Duration,
    ) -> Result<AcceptedRun, Fault> {
        let run_id = new.run_id.get_or_insert_with(fresh_run_id).clone();
        let key = RunKey { world: new.world.clone(), run: run_id };
        let mut waiter = self.0.inner.hub.wait(&key);
        let accepted = self.create(caller, new).await?;
        if accepted.run.is_over() {
            return Ok(accepted);
        }
        if accepted.run.key != key {
            drop(waiter);
            let run = self.wait(&accepted.run.key, at_most).await?;
            return Ok(AcceptedRun { run, ..accepted });
        }
        let run = match tokio::time::timeout(at_most, waiter.over()).await {
            Ok(Some(run)) => run,
            Ok(None) | Err(_) => self.get(&key).await?,
        };
        Ok(AcceptedRun { run, ..accepted })
    }

    /// Waits for a run's end, at most so long; then it is shown as it is.
    pub async fn wait(self, key: &RunKey, at_most: Duration) -> Result<Arc<Run>, Fault> {
        let mut waiter = self.0.inner.hub.wait(key);
        let run = self.get(key).await?;
        if run.is_over() {
            return Ok(run);
        }
        match tokio::time::timeout(at_most, waiter.over()).await {
            Ok(Some(run)) => Ok(run),
            Ok(None) | Err(_) => self.get(key).await,
        }
    }

    /// One run, as it was last committed. Large inputs of a run that is open are not with it: see
    /// [`RunCalls::with_inputs`].
    pub async fn get(self, key: &RunKey) -> Result<Arc<Run>, Fault> {
        if let Some(run) = self.0.inner.hub.run(key) {
            return Ok(run);
        }
        self.stored_run(key).await
    }

    /// The run with its inputs, which are read from the store if they are not here.
    pub async fn with_inputs(self, run: Arc<Run>) -> Result<Arc<Run>, Fault> {
        if run.spec.inputs.away().is_none() {
            return Ok(run);
        }
        let stored = self.stored_run(&run.key).await?;
        let spec = Arc::new(run.spec.with_inputs_of(&stored.spec));
        Ok(Arc::new(Run { spec, ..Run::clone(&run) }))
    }

    /// One run, as the store has it.
    pub(super) async fn stored_run(self, key: &RunKey) -> Result<Arc<Run>, Fault> {
        let stream = key.stream();
        let stored = self.0.inner.store.load(stream.clone()).await?;
        let stored = stored.ok_or_else(|| no_run(key))?;
        let run = read_run(&stream, &stored)?;
        Ok(Arc::new(run))
    }

    /// What a run under way does now, as it last said.
    pub fn phase(self, key: &RunKey) -> Option<(String, Option<f64>)> {
        self.0.inner.hub.phase(key)
    }

    /// Asks a run to stop. A run that is over stays as it is.
    pub async fn cancel(
        self,
        caller: &Caller,
        key: &RunKey,
        reason: &str,
    ) -> Result<Arc<Run>, Fault> {
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("A reason may have {REASON_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let run = self.get(key).await?;
        self.0.audited(caller, key, self.check_cancel(caller, &run))?;
        let by = Actor::from(&caller.grant);
        let reason = if reason.is_empty() { "The run was canceled." } else { reason }.to_owned();
        let input = RunInput::Cancel { by, reason };
        let input = Input::Run { key: key.clone(), input, ticket: None };
        match self.0.ask(key.shard(), input).await {
            Ok(Reply::Run { run, .. }) => Ok(run),
            Ok(_) => self.get(key).await,
            Err(fault) if fault.is(Code::RunNotFound) => self.get(key).await,
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn audit_refusal(
        self,
        caller: &Caller,
        tool: &ToolId,
        world: &WorldId,
        fault: &Fault,
    ) {
        let record = AuditRecord::denied(&caller.grant, world).fact("tool", tool.as_str());
        self.0.audit().denied(told(record, fault));
    }

    /// A run that is under way, as it was last committed.
    pub fn live(self, key: &RunKey) -> Option<Arc<Run>> {
        self.0.inner.hub.run(key)
    }

    /// Whether a caller may call a run off: whoever started it, and operators.
    pub(super) fn check_cancel(self, caller: &Caller, run: &Run) -> Result<(), Fault> {
        let world = &run.key.world;
        self.0.trust().authorise(caller, Verb::Run, world)?;
        if caller.owns(&run.spec.caller) || caller.rights.check(Verb::Operate, world).is_ok() {
            return Ok(());
        }
        let message = "Only whoever started a run, or an operator, can cancel it.";
        let fault = Fault::new(Code::PermissionDenied, message);
        Err(fault.with("verb", Verb::Operate.as_str()))
    }
}

impl RunListCalls<'_> {
    /// Runs, newest first, whether they are stored or kept in memory only.
    pub async fn list(self, query: RunQuery) -> Result<RunPage, Fault> {
        let before = query.memory_before.unwrap_or(RunPlace::FIRST.memory);
        let memory = self.0.inner.hub.memory_runs().into_iter();
        let memory = memory.filter(|(number, _)| *number < before);
        let memory = memory.map(|(number, run)| (number, run.summary()));
        let memory: Vec<_> = memory.filter(|(_, run)| query.wants(run)).collect();
        let (from, limit) = (query.before, query.limit);
        let stored = self.0.inner.store.runs(query).await?;
        let stored_from = from.unwrap_or(RunPlace::FIRST.stored);
        let at = RunPlace { stored: stored_from, memory: before };
        Ok(merged(stored, memory, at, limit))
    }

    /// How many runs there are within a caller's rights, counted up to a number, whether they are
    /// stored or kept in memory only.
    pub async fn count(self, caller: &Caller, query: RunQuery, up_to: u64) -> Result<u64, Fault> {
        let within = Arc::clone(&caller.rights);
        let memory = self.0.inner.hub.memory_runs().into_iter();
        let memory = memory.map(|(_, run)| run.summary()).filter(|run| {
            query.wants(run)
                && within.in_world(&run.key.world)
                && within.check_tool(&run.tool).is_ok()
        });
        let memory = u64::try_from(memory.count()).unwrap_or(u64::MAX).min(up_to);
        let stored = self.0.inner.store.count_runs(query, within, up_to - memory).await?;
        Ok(memory + stored)
    }

    /// How many runs were accepted in each piece of a time.
    pub async fn stats(self, query: StatsQuery) -> Result<Vec<StatsRow>, Fault> {
        let mut sums = StatsSums::default();
        for (_, run) in self.0.inner.hub.memory_runs() {
            sums.count(&query, &run.summary());
        }
        for row in self.0.inner.store.run_stats(query).await? {
            sums.add(row.at, row.key, row.sum);
        }
        Ok(sums.into_rows())
    }

    /// How many runs are open.
    pub fn open_count(self) -> usize {
        self.0.inner.hub.live_runs()
    }

    /// How many runs under way each provider has that has any.
    pub fn by_provider(self) -> Vec<(ProviderId, ProviderRuns)> {
        self.0.inner.hub.lines()
    }

    /// What happened to runs since the start.
    pub fn totals(self) -> RunTotals {
        self.0.inner.hub.totals.look()
    }

    /// How many attempts are at work.
    pub fn running_count(self) -> usize {
        self.0.inner.hub.active_attempts()
    }
}

/// One page of stored runs and runs in memory, by the time they were accepted.
fn merged(
    stored: RunPage,
    memory: Vec<(u64, RunSummary)>,
    mut at: RunPlace,
    limit: usize,
) -> RunPage {
    let more_stored = stored.next.is_some();
    let mut stored = stored.runs.into_iter().zip(stored.places).peekable();
    let mut memory = memory.into_iter().peekable();
    let mut page = RunPage::default();
    while page.runs.len() < limit {
        let newer_in_memory = match (memory.peek(), stored.peek()) {
            (Some((_, kept)), Some((run, _))) => kept.created_at >= run.created_at,
            (kept, _) => kept.is_some(),
        };
        let run = if newer_in_memory {
            memory.next().map(|(number, run)| (run, RunPlace { memory: number, ..at }))
        } else {
            stored.next().map(|(run, place)| (run, RunPlace { stored: place.stored, ..at }))
        };
        let Some((run, place)) = run else { break };
        at = place;
        page.runs.push(run);
        page.places.push(place);
    }
    let more = more_stored || stored.peek().is_some() || memory.peek().is_some();
    page.next = more.then_some(at.stored);
    page
}

fn no_run(key: &RunKey) -> Fault {
    Fault::new(
        Code::RunNotFound,
        format!("There is no run {} in the world {}.", key.run, key.world),
    )
}

pub(super) fn fresh_run_id() -> RunId {
    RunId::new(Uuid::now_v7().to_string()).expect("a UUID is a valid id")
}
