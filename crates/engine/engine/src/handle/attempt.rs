//! What a provider holds while it works on an attempt.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{AttemptError, AttemptReport, NewAsk, NoteKey, RunInput};
use wharf_domain::{Audience, Caller, Delivery, Entry, Progress, Run, RunEntry, value_weight};
use wharf_ports::{Dispatch, HistoryItem, Lifeline, WeakLifeline};
use wharf_vocab::{
    AttemptId, Code, Digest, Executed, Fault, GrantId, LaunchId, Micro, Object, ProviderId, RunKey,
    Seq,
};

use super::data::AttemptRecord;
use super::outputs::{AttemptEnd, AttemptOutputs};
use super::watch::PAGE_RECORDS;
use super::{AcceptedRun, Handle, NewRun, RunCalls};
use crate::clean::Clean;
use crate::schema::Schema;
use crate::shard::{Input, Reply};

/// An attempt under way, owned by whoever executes it. There is one owner, who says how it ended;
/// everything else is done through an [`AttemptRef`], of which there may be many.
///
/// Dropping an attempt that has not ended ends it with `tool.worker_lost`: `executed: no` before
/// [`AttemptRef::handed_over`], `maybe` after it. So a panic, an early return or a task that is
/// gone leaves no run behind that waits for its deadline.
#[derive(Debug)]
pub struct Attempt {
    shared: AttemptRef,
    lifeline: Lifeline,
}

/// An attempt for those who work on it without owning its end: they write progress, ask, read its
/// files. It keeps nothing alive.
#[derive(Debug, Clone)]
pub struct AttemptRef {
    handle: Handle,
    dispatch: Arc<Dispatch>,
    lifeline: WeakLifeline,
    work: AttemptRecord,
    /// Every grant that stands behind the connection that works on it.
    by: Arc<[GrantId]>,
}

impl Deref for Attempt {
    type Target = AttemptRef;

    fn deref(&self) -> &AttemptRef {
        &self.shared
    }
}

impl Attempt {
    /// Takes an attempt that was dispatched.
    pub fn new(handle: Handle, mut dispatch: Dispatch) -> Self {
        let lifeline = std::mem::take(&mut dispatch.lifeline);
        let shared = AttemptRef {
            handle,
            dispatch: Arc::new(dispatch),
            lifeline: lifeline.downgrade(),
            work: AttemptRecord::default(),
            by: Arc::new([]),
        };
        Self { shared, lifeline }
    }

    /// The attempt as one that is worked on over a connection of this caller's.
    #[must_use]
    pub fn worked_on_by(mut self, caller: &Caller) -> Self {
        self.shared.by = caller.behind().into();
        self
    }

    /// Says that the attempt succeeded. Outputs that go to files are durable before anybody is
    /// told; outputs that are too large or do not fit the tool's schema fail it.
    pub async fn succeeded(
        &self,
        outputs: impl Into<AttemptOutputs>,
        cost_micro: Micro,
    ) -> Result<(), Fault> {
        self.ended(AttemptEnd::new(Ok(outputs.into()), cost_micro)).await
    }

    /// Says that the attempt failed.
    pub async fn failed(&self, fault: Fault, executed: Executed) -> Result<(), Fault> {
        self.ended(AttemptEnd::new(Err(AttemptError::Failed(fault, executed)), 0)).await
    }

    /// Says how the attempt ended.
    pub async fn ended(&self, end: AttemptEnd) -> Result<(), Fault> {
        let input = self.end(end, None).await;
        self.shared.handle.tell(self.dispatch().run.shard(), input).await?;
        self.lifeline.told();
        Ok(())
    }

    /// Says how the attempt ended, and answers once that is kept for good: with the run as it is
    /// then. An attempt that was over already changes nothing. `given` tells a repeat of the result
    /// from another one.
    pub async fn conclude(
        &self,
        end: AttemptEnd,
        given: Option<Digest>,
    ) -> Result<Arc<Run>, Fault> {
        let input = self.end(end, given).await;
        let reply = self.shared.handle.ask(self.dispatch().run.shard(), input).await?;
        self.lifeline.told();
        match reply {
            Reply::Run { run, .. } => Ok(run),
            _ => self.shared.handle.runs().get(&self.dispatch().run).await,
        }
    }
}

impl AttemptRef {
    /// What was dispatched.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Says that the attempt is in the hands of whoever executes it: from now on it may act, and
    /// if it is lost, it counts as one that may have acted.
    pub fn handed_over(&self) {
        if let Some(lifeline) = self.lifeline.upgrade() {
            lifeline.begun();
        }
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn work(&self) -> &AttemptRecord {
        &self.work
    }

    /// Says which process the attempt was given to.
    pub fn launched(&self, launch: &LaunchId) {
        self.handle.inner.traces.launched(&self.dispatch.attempt_id, launch);
    }

    /// What people call whoever started the run, if anything is known of it.
    pub fn caller_display(&self) -> Option<String> {
        self.handle.trust().display_of(&self.dispatch.spec.caller.grant)
    }

    /// Says how much processor time the attempt has used, as far as that is known.
    pub fn used_cpu_ms(&self, cpu_ms: u64) {
        self.work.used_cpu_ms(cpu_ms);
    }

    /// Says what the attempt has cost so far, in all. It may be said as often as it changes and
    /// at any time, also when the attempt or its run is over; what counts is the largest number.
    /// Of a run that was removed it says that there is none.
    pub async fn report_cost(&self, so_far_micro: Micro) -> Result<(), Fault> {
        let Dispatch { run, attempt_id, .. } = &*self.dispatch;
        self.handle.runs().report_cost(run, attempt_id, so_far_micro).await
    }

    /// Writes progress. It waits while the core has too much to do.
    pub async fn progress(&self, mut pieces: Vec<Progress>) -> Result<(), Fault> {
        self.handed_over();
        self.work.clean(&self.handle.inner.redactor, &mut pieces);
        self.write(pieces).await
    }

    async fn write(&self, pieces: Vec<Progress>) -> Result<(), Fault> {
        if pieces.is_empty() {
            return Ok(());
        }
        let key = self.dispatch.run.clone();
        let attempt_id = self.dispatch.attempt_id.clone();
        let shard = key.shard();
        self.handle.tell(shard, Input::Progress { key, attempt_id, pieces }).await
    }

    /// Raises an ask; how it ends comes by [`wharf_ports::ProviderSink::answer`] under its key.
    pub async fn raise(&self, mut ask: NewAsk) -> Result<(), Fault> {
        self.handed_over();
        self.work.given().ask(&mut ask);
        self.handle.inner.redactor.ask(&mut ask);
        // Whoever works on it is no third party to what it asks; a seat that is asked by its name
        // was chosen by somebody else.
        if ask.audience == Audience::Any {
            let caller = self.caller(Vec::new());
            ask.by = caller.executing_for(&self.handle.trust().behind(&self.provider())).links;
        }
        if let Some(Err(flaw)) = ask.schema.as_ref().map(Schema::compile) {
            return Err(flaw.told(flaw.code(), "The schema of the question"));
        }
        let (key, inner) = (self.dispatch.run.clone(), &self.handle.inner);
        let holders = inner.hub.holders(&key, &self.dispatch.spec);
        inner.held.check(&holders, ask.weight())?;
        let input = Input::Run { input: RunInput::RaiseAsk(ask), ticket: None, key: key.clone() };
        self.handle.ask(key.shard(), input).await.map(drop)
    }

    /// Notes what whoever takes the attempt up again after a restart of the core must know, in
    /// place of what was noted under this key before; nothing when absent. It answers once that is
    /// committed, and `false` if nothing was noted because it holds a secret: what comes back must
    /// be what was noted, and a secret is not written down.
    pub async fn note(&self, key: NoteKey, value: Option<Value>) -> Result<bool, Fault> {
        if let Some(value) = &value {
            let mut clean = value.clone();
            self.work.given().value(&mut clean);
            if let Some(secrets) = self.handle.inner.redactor.only_secrets() {
                secrets.value(&mut clean);
            }
            if clean != *value {
                return Ok(false);
            }
        }
        let (run, inner) = (self.dispatch.run.clone(), &self.handle.inner);
        let holders = inner.hub.holders(&run, &self.dispatch.spec);
        inner.held.check(&holders, value.as_ref().map_or(0, value_weight))?;
        let attempt_id = self.dispatch.attempt_id.clone();
        let input = RunInput::Note { attempt_id, key, value };
        let input = Input::Run { input, ticket: None, key: run.clone() };
        self.handle.ask(run.shard(), input).await.map(|_| true)
    }

    fn provider(&self) -> ProviderId {
        self.dispatch.spec.tool.provider()
    }

    /// Whoever works on the attempt, as a caller of these tools: the rights of whoever started
    /// the run, or fewer. A seat with those it was made with, and the token that a connection was
    /// made with, stand in the chain of all that is started so: they decide nothing about it, and
    /// nothing is started once one of them is revoked.
    pub fn caller(&self, tools: Vec<ToolPattern>) -> Caller {
        let provider = self.provider();
        let caller = Caller::agent(&provider, &self.dispatch.spec.caller, tools);
        let seat = match self.handle.seats().is_seat(&provider) {
            true => self.handle.trust().behind(&provider),
            false => Vec::new(),
        };
        caller.executing_for(&seat).executing_for(&self.by)
    }

    /// Starts a child run in the same world, under the same account or one below it. It needs a
    /// caller made by [`AttemptRef::caller`], and the attempt must still be under way.
    pub async fn invoke(&self, caller: &Caller, new: NewRun) -> Result<AcceptedRun, Fault> {
        let new = self.as_child(new);
        if let Err(fault) = self.check_active().await {
            self.handle.runs().audit_refusal(caller, &new.tool, &new.world, &fault);
            return Err(fault);
        }
        self.handle.runs().create(caller, new).await
    }

    /// A request as one of the attempt's own.
    pub(super) fn as_child(&self, new: NewRun) -> NewRun {
        let parent = self.dispatch.run.clone();
        let mut new = NewRun { world: parent.world.clone(), parent: Some(parent), ..new };
        // An address that is handed on stands for its file again, so that it can be traced.
        new.handed_on = self.work.handed_on(&self.dispatch.spec, &new.inputs);
        let given = self.work.given();
        given.object(&mut new.inputs);
        given.object(&mut new.outputs);
        new
    }

    pub(super) async fn check_active(&self) -> Result<(), Fault> {
        let run = self.handle.runs().get(&self.dispatch.run).await?;
        let active = run.active.as_ref().map(|attempt| &attempt.id);
        if active == Some(&self.dispatch.attempt_id) {
            return Ok(());
        }
        let message = "The call that wants to start another is over.";
        Err(Fault::new(Code::PermissionDenied, message))
    }

    async fn delivered(
        &self,
        mut outputs: AttemptOutputs,
    ) -> Result<(Object, Delivery), AttemptError> {
        // Before they are written to files, too.
        if let Some(secrets) = self.handle.inner.redactor.only_secrets() {
            secrets.object(&mut outputs.values);
            let clean = |(name, file): (String, _)| (secrets.clean(&name).unwrap_or(name), file);
            outputs.written = outputs.written.into_iter().map(clean).collect();
        }
        let delivered = Box::pin(self.deliver(outputs)).await;
        delivered.map_err(|fault| AttemptError::Failed(fault, Executed::Yes))
    }

    /// Whether the tool says what its outputs look like.
    pub fn has_output_schema(&self) -> bool {
        let tool = self.handle.inner.catalog.tool(&self.dispatch.spec.tool);
        tool.is_some_and(|tool| tool.def.output_schema.is_some())
    }

    /// Checks inputs against the tool's schema, for a provider whose inputs were let pass without.
    pub async fn check_inputs(&self) -> Result<(), Fault> {
        let spec = &self.dispatch.spec;
        self.handle.inner.catalog.check_inputs(&spec.tool, &spec.inputs).await
    }

    /// Checks outputs against the tool's schema, as [`Attempt::succeeded`] will.
    pub async fn check_outputs(&self, outputs: &Object) -> Result<(), Fault> {
        let (tool, catalog) = (&self.dispatch.spec.tool, &self.handle.inner.catalog);
        let places = self.dispatch.spec.bindings.writes.keys().cloned().collect();
        catalog.check_outputs(tool, outputs, places).await
    }

    /// What the shard is told about the attempt's end, with nothing in it that must not be kept.
    async fn end(&self, end: AttemptEnd, given: Option<Digest>) -> Input {
        let delivered = match end.result {
            Ok(outputs) => self.delivered(outputs).await,
            Err(error) => Err(error),
        };
        let (mut result, delivery) = match delivered {
            Ok((outputs, delivery)) => (Ok(outputs), delivery),
            Err(error) => (Err(error), Delivery::default()),
        };
        let addresses = self.work.given();
        match &mut result {
            Ok(outputs) => addresses.object(outputs),
            Err(
                AttemptError::Failed(fault, _)
                | AttemptError::Refused(fault)
                | AttemptError::Canceled(fault),
            ) => {
                addresses.fault(fault);
                self.handle.inner.redactor.fault(fault);
            }
        }
        // When the engine is gone there is nobody left to tell.
        let _ = self.write(self.work.rest(&self.handle.inner.redactor)).await;
        let mut delivery = Delivery { given, ..delivery };
        if delivery.metered.is_empty() {
            delivery.metered = self.work.metered();
        }
        self.record_reads().await;
        if result.is_err() {
            self.discard();
            self.record_direct().await;
        }
        let key = self.dispatch.run.clone();
        let attempt_id = self.dispatch.attempt_id.clone();
        let report = AttemptReport { result, cost_micro: end.cost_micro, delivery };
        let input = RunInput::AttemptEnded { attempt_id, report };
        Input::Run { key, input, ticket: None }
    }

    /// The progress of this attempt that is committed, as it was kept: text that follows other
    /// text of its channel may have been joined to it. A provider whose stream begins anew after
    /// a restart of the core compares, and writes only what is not there.
    pub async fn progress_so_far(&self) -> Result<Vec<Progress>, Fault> {
        let key = &self.dispatch().run;
        let (mut pieces, mut last, mut ours) = (Vec::new(), Seq(0), false);
        loop {
            let records = self.handle().run_events().history(key, last, PAGE_RECORDS).await?;
            if records.is_empty() {
                return Ok(pieces);
            }
            for record in records {
                last = record.seq;
                match record.item {
                    HistoryItem::Entry(Entry::Run(RunEntry::AttemptStarted(started))) => {
                        ours = started.attempt_id == self.dispatch().attempt_id;
                        pieces.clear();
                    }
                    HistoryItem::Progress(piece) if ours => pieces.push(piece),
                    HistoryItem::Entry(_) | HistoryItem::Progress(_) => {}
                }
            }
        }
    }
}

impl RunCalls<'_> {
    /// Says what an attempt has cost so far, for whoever does not hold it any more. See
    /// [`AttemptRef::report_cost`].
    pub async fn report_cost(
        self,
        run: &RunKey,
        attempt_id: &AttemptId,
        so_far_micro: Micro,
    ) -> Result<(), Fault> {
        let known = self.0.inner.hub.run(run);
        let active = known.as_ref().and_then(|run| run.active.as_ref());
        let under_way = active.is_some_and(|active| active.id == *attempt_id);
        let input =
            RunInput::CostReported { attempt_id: attempt_id.clone(), cost_micro: so_far_micro };
        let input = Input::Run { key: run.clone(), input, ticket: None };
        if under_way {
            return self.0.tell(run.shard(), input).await;
        }
        self.0.ask(run.shard(), input).await.map(drop)
    }
}
