//! Inputs of runs: deciding, and putting decisions and progress on their way.

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_domain::run::{ChildrenAllowed, Cx, Decision, Run, RunEffect, RunInput};
use wharf_domain::trace::TraceHeaders;
use wharf_domain::{
    Actor, AskEntry, Availability, CallerRef, Entry, Notice, NoticeEntry, Progress, RunEntry,
    RunSpec, ToolAllowance, WorldInput,
};
use wharf_ports::{Append, Batch, Body, Dispatch, EffectId, Lifeline, Require, StreamHead};
use wharf_vocab::limits::{
    RUN_CHILDREN_MAX, RUN_INPUTS_WAITING_MAX, SHARD_PROGRESS_BYTES_MAX, SHARD_RUNS_OPEN_MAX,
};
use wharf_vocab::{
    AskId, AttemptId, Code, CommitNo, Digest, Durability, Fault, Place, RunKey, RunStatus, Seq,
    StreamId, Timestamp,
};

use super::late;
use super::slot::{Cause, PendingBatch, Slot, WaitingInput};
use super::{CommitOwner, Create, Effect, Input, Output, RecordInput, Reply, Shard, Ticket};
use crate::turns::Turn;

impl Shard {
    pub(super) fn create(&mut self, now: Timestamp, create: Create, out: &mut Output) {
        let Create { key, spec, claim, ticket } = create;
        if let Some(slot) = self.runs.get_mut(&key) {
            let result = match &slot.run {
                Some(run) => repeats(run, &spec.digest),
                None if slot.repeats.len() < RUN_INPUTS_WAITING_MAX => {
                    return slot.repeats.push((ticket, spec.digest.clone()));
                }
                None => Err(Fault::new(Code::CoreBusy, "Too much waits for this run.")),
            };
            return reply(out, ticket, result);
        }
        if !self.is_wanted(&spec) {
            let over = Fault::new(Code::FlowOver, "The flow goes on without this step.");
            return reply(out, ticket, Err(over));
        }
        if self.runs.len() >= SHARD_RUNS_OPEN_MAX {
            let busy = Fault::new(Code::CoreBusy, "Too many runs are open; try again later.");
            return reply(out, ticket, Err(busy));
        }
        let provider = spec.provider();
        let mut slot = Slot::new(provider.clone());
        let place = self.providers.place(&provider, &mut self.fresh);
        let mut cx = Cx {
            now,
            shard: self.id,
            provider: &self.providers.availability(&provider),
            full: self.providers.is_full(&provider),
            place: place.as_ref(),
            refused: None,
            fresh: &mut self.fresh,
        };
        let decision = Run::create(&mut cx, key.clone(), spec);
        let cause = Cause::Create { claim, ticket };
        self.send_off(now, &key, &mut slot, decision, cause, out);
        self.insert(key.clone(), slot);
        self.settle_memory(now, &key, out);
        self.reschedule(&key);
    }

    /// Offers an input to a run; it waits if a batch of the run is on its way.
    pub(super) fn offer(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        input: RunInput,
        ticket: Option<Ticket>,
        out: &mut Output,
    ) {
        let Some(slot) = self.runs.get_mut(key) else {
            return self.offer_late(key, input, ticket, out);
        };
        let Some(input) = late::join(slot, input, ticket) else { return };
        // What the core itself asks for must never be dropped; what others ask for may be refused.
        if ticket.is_some() && slot.waiting.len() >= RUN_INPUTS_WAITING_MAX {
            let busy = Fault::new(Code::CoreBusy, "Too much waits for this run; try again later.");
            return reply(out, ticket, Err(busy));
        }
        if input == RunInput::Tick && slot.pending.is_some() {
            return;
        }
        slot.waiting.push_back(WaitingInput { input, ticket, refused: None });
        self.pump(now, key, out);
    }

    pub(super) fn progress(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        attempt_id: &AttemptId,
        pieces: Vec<Progress>,
        out: &mut Output,
    ) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        // An attempt whose files are being published has said how it ended.
        let open = slot.latest().filter(|run| run.publishing.is_none());
        let active = open.and_then(|run| run.active.as_ref());
        let ending = slot.waiting.iter().any(|waiting| ends(&waiting.input, attempt_id));
        if ending || active.is_none_or(|attempt| attempt.id != *attempt_id) {
            return;
        }
        let before = slot.progress.waiting_bytes();
        let fits = pieces.into_iter().all(|piece| slot.progress.push(piece));
        self.progress_waiting_bytes += slot.progress.waiting_bytes() - before;
        if fits && self.progress_waiting_bytes <= SHARD_PROGRESS_BYTES_MAX {
            self.pump(now, key, out);
        } else {
            let input = RunInput::OutputTooLarge { attempt_id: attempt_id.clone() };
            self.offer(now, key, input, None, out);
        }
    }

    /// Works off what waits for a run until a batch is on its way or nothing waits.
    pub(super) fn pump(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        loop {
            let Some(mut slot) = self.runs.remove(key) else { return };
            let busy = slot.pending.is_some();
            let went_on = !busy && self.advance(now, key, &mut slot, out);
            self.runs.insert(key.clone(), slot);
            self.settle_memory(now, key, out);
            if !went_on {
                break;
            }
        }
        self.leave_if_over(now, key, out);
        self.reschedule(key);
    }

    /// Takes the next thing that waits; `false` if nothing does.
    fn advance(&mut self, now: Timestamp, key: &RunKey, slot: &mut Slot, out: &mut Output) -> bool {
        let Some(run) = slot.run.clone() else { return false };
        let Some(mut waiting) = slot.waiting.pop_front() else {
            if slot.progress.is_empty() {
                return false;
            }
            let decision = unchanged(&run);
            self.send_off(now, key, slot, decision, Cause::Progress, out);
            return true;
        };
        if self.is_made_after_all(key, &waiting.input) {
            reply(out, waiting.ticket, Ok(Reply::Run { run, made: false }));
            return true;
        }
        let provider = self.providers.availability(&slot.provider);
        if waiting.input == RunInput::Recovered {
            // An attempt can be taken up again only while its provider is there.
            let attaches = run.active.is_some() && run.spec.reattach;
            slot.detached = attaches && provider != Availability::Up;
            if slot.detached {
                return true;
            }
            if attaches {
                slot.at_one_place = None;
                slot.taken_up = run.active.as_ref().map(|active| active.id.clone());
            }
        }
        if self.providers.is_among_others() {
            slot.doubt(&run, &mut waiting.input);
        }
        let place = self.providers.place(&slot.provider, &mut self.fresh);
        let mut cx = Cx {
            now,
            shard: self.id,
            provider: &provider,
            full: self.providers.is_full(&slot.provider),
            place: place.as_ref(),
            refused: waiting.refused.as_ref(),
            fresh: &mut self.fresh,
        };
        match run.decide(&mut cx, &waiting.input) {
            Ok(decision) if decision.entries.is_empty() => {
                let effects = self.outward(&run, decision.effects, &mut slot.at);
                out.effects.extend(effects);
                reply(out, waiting.ticket, Ok(Reply::Run { run, made: false }));
            }
            Ok(decision) => {
                self.send_off(now, key, slot, decision, Cause::Input(waiting), out);
            }
            Err(fault) => reply(out, waiting.ticket, Err(fault)),
        }
        true
    }

    /// Puts a decision and the progress before it on their way to the store.
    fn send_off(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        slot: &mut Slot,
        decision: Decision,
        cause: Cause,
        out: &mut Output,
    ) {
        let mut batch = self.batch(now);
        let no = batch.no;
        let next = Arc::new(decision.next);
        let sealed_with = next.spec.is_withheld().then(|| key.clone());
        let summary = next.summary();
        let summary = if next.is_withheld() { summary.withheld() } else { summary };
        let head = StreamHead {
            open: !next.is_over(),
            run: Some(summary),
            sealed_with: sealed_with.clone(),
        };
        let (pieces, bytes) = slot.progress.take();
        self.progress_waiting_bytes -= bytes;
        let mut seq = slot.seq;
        if !pieces.is_empty() {
            seq = append(&mut batch, key.stream(), seq, Body::Progress(pieces), head.clone());
        }
        if decision.entries.iter().any(|entry| matches!(entry, RunEntry::AttemptStarted(_))) {
            slot.progress.forget_partials();
        }
        if !decision.entries.is_empty() {
            let entries = decision.entries.into_iter().map(Entry::Run).collect();
            seq = append(&mut batch, key.stream(), seq, Body::Entries(entries), head);
        }
        self.owe_of_run(&mut batch, &next, &decision.asks);
        append_asks(&mut batch, decision.asks, sealed_with.as_ref());
        append_notices(&mut batch, decision.notices, sealed_with.as_ref());
        if let Cause::Create { claim, .. } = &cause {
            batch.claims.extend(claim.clone());
            batch.requires = reads(&next);
        }
        batch.ledger = decision.ledger;
        batch.audit = decision.audit;
        batch.artifacts = decision.artifacts;
        self.owe_of_files(&mut batch, now, next.spec.trigger_depth);
        let mut at = slot.at.clone();
        let mut effects = self.outward_at(no, &next, decision.effects, &mut at);
        effects.extend(family(slot, &next, &cause));

        let batch = Arc::new(batch);
        let stored = match next.spec.durability {
            Durability::Journal if next.is_withheld() => Arc::new(withheld(&batch)),
            Durability::Journal => Arc::clone(&batch),
            Durability::Memory => {
                Arc::new(Batch { ledger: late::repeatable(&batch, &next), ..only_shared(&batch) })
            }
        };
        if !is_empty(&stored) {
            self.on_the_way.insert(no, CommitOwner::Run(key.clone()));
            out.batches.push(Arc::clone(&stored));
        }
        slot.pending = Some(PendingBatch {
            no,
            batch,
            stored,
            next,
            next_seq: seq,
            effects,
            at,
            cause,
            again_at: None,
        });
    }

    /// A run in memory with no money to move has nothing to wait for.
    fn settle_memory(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let pending = self.runs.get(key).and_then(|slot| slot.pending.as_ref());
        if let Some(pending) = pending
            && is_empty(&pending.stored)
        {
            let no = pending.no;
            self.finish_commit(now, key, no, out);
        }
    }

    /// Addresses effects that follow from nothing new.
    pub(super) fn outward(
        &mut self,
        run: &Arc<Run>,
        effects: Vec<RunEffect>,
        at: &mut Option<Place>,
    ) -> Vec<Effect> {
        let no = self.last_no;
        self.outward_at(no, run, effects, at)
    }

    /// Addresses the effects of a decision to the run's provider, parent or world. `at` is where
    /// the latest attempt was handed over, and afterwards where it is then.
    fn outward_at(
        &mut self,
        commit: CommitNo,
        run: &Arc<Run>,
        effects: Vec<RunEffect>,
        at: &mut Option<Place>,
    ) -> Vec<Effect> {
        let provider = run.spec.provider();
        let effect = EffectId { shard: self.id, epoch: self.epoch, commit };
        let outward = |inner| match inner {
            RunEffect::Dispatch { attempt_id, reattach } => {
                *at = if reattach {
                    self.providers.place(&provider, &mut self.fresh)
                } else {
                    run.active.as_ref().and_then(|active| active.place.clone())
                };
                let dispatch = Box::new(dispatch(effect, run, attempt_id, reattach));
                Effect::Dispatch { dispatch, place: at.clone() }
            }
            RunEffect::Queue { from, again } => {
                let (run, spec) = (run.key.clone(), RunSpec::lean(&run.spec));
                Effect::Queue(Turn { run, spec, from, again })
            }
            RunEffect::LeaveQueue => {
                Effect::LeaveQueue { provider: provider.clone(), run: run.key.clone() }
            }
            RunEffect::Publish { attempt_id, moves } => {
                let files = run.publishing.as_ref().map(|begun| begun.artifacts.clone());
                let files = files.unwrap_or_default();
                Effect::PutInPlace { run: run.key.clone(), attempt_id, moves, files }
            }
            RunEffect::CancelAttempt { attempt_id, reason, grace_ms } => {
                let (provider, place) = (provider.clone(), at.clone());
                Effect::CancelAttempt { provider, place, attempt_id, reason, grace_ms }
            }
            RunEffect::Answer { attempt_id, key, resolution } => {
                let (provider, place) = (provider.clone(), at.clone());
                Effect::Answer { provider, place, attempt_id, key, resolution }
            }
            RunEffect::AllowChildren { parent, allowed } => allow_children(parent, allowed),
            RunEffect::AllowTool { ask_id, by } => allow_tool(run, ask_id, by),
            RunEffect::Flow(work) => super::flows::outward(run, work),
        };
        effects.into_iter().map(outward).collect()
    }

    /// A child run began or ended.
    pub(super) fn child(
        &mut self,
        now: Timestamp,
        parent: &RunKey,
        (child, began): (RunKey, bool),
        out: &mut Output,
    ) {
        // A run whose creation is on its way has no children: if it ever had any, it is over, and
        // somebody asks for it once more.
        let Some(slot) = self.runs.get_mut(parent).filter(|slot| slot.run.is_some()) else {
            if began {
                out.effects.push(Effect::AskAfterParent { parent: parent.clone(), child });
            }
            return;
        };
        if slot.is_flow() {
            return self.step_news(now, parent, (child, began), out);
        }
        if !began {
            slot.children.remove(&child);
            return;
        }
        let canceled = slot.latest().is_some_and(|run| is_called_off(run));
        if canceled || slot.children.len() >= RUN_CHILDREN_MAX {
            out.effects.push(cancel_child(&child));
        } else {
            slot.children.insert(child);
        }
    }
}

/// An attempt as its provider is given it.
fn dispatch(effect: EffectId, run: &Run, attempt_id: AttemptId, reattach: bool) -> Dispatch {
    Dispatch {
        effect,
        run: run.key.clone(),
        attempt_id,
        attempt: run.attempt,
        accepted: run.created_at,
        spec: Arc::clone(&run.spec),
        approval: run.approval().cloned(),
        deadline: run.next_deadline(),
        reattach,
        notes: run.active.as_ref().map_or_else(BTreeMap::new, |it| it.notes.clone()),
        trace: TraceHeaders::default(),
        lifeline: Lifeline::default(),
    }
}

pub(super) fn reply(out: &mut Output, ticket: Option<Ticket>, result: Result<Reply, Fault>) {
    if let Some(ticket) = ticket {
        out.effects.push(Effect::Reply { ticket, result });
    }
}

/// The answer to a request for a run that exists.
pub(super) fn repeats(run: &Run, digest: &Digest) -> Result<Reply, Fault> {
    if run.spec.digest == *digest {
        Ok(Reply::Repeated(run.key.clone()))
    } else {
        Err(conflict(&run.key))
    }
}

pub(crate) fn conflict(key: &RunKey) -> Fault {
    Fault::new(Code::RunConflict, format!("The run {key} was asked for with another request."))
}

fn ends(input: &RunInput, attempt: &AttemptId) -> bool {
    matches!(input, RunInput::AttemptEnded { attempt_id, .. } if attempt_id == attempt)
}

fn unchanged(run: &Arc<Run>) -> Decision {
    Decision {
        next: Run::clone(run),
        entries: Vec::new(),
        asks: Vec::new(),
        notices: Vec::new(),
        ledger: Vec::new(),
        audit: Vec::new(),
        artifacts: Vec::new(),
        effects: Vec::new(),
    }
}

fn append(batch: &mut Batch, stream: StreamId, expected: Seq, body: Body, head: StreamHead) -> Seq {
    let last = Seq(expected.0 + body.len() as u64);
    batch.appends.push(Append { stream, expected, body, head });
    last
}

/// The files that a run reads must be there when it is made, and stay until it is over.
fn reads(run: &Run) -> Vec<Require> {
    let files = run.spec.bindings.files();
    files
        .map(|(_, read)| Require::FileHere {
            world: run.key.world.clone(),
            path: read.path.clone(),
            run: run.key.run.clone(),
        })
        .collect()
}

/// The asks that a decision raised or closed.
fn append_asks(batch: &mut Batch, asks: Vec<(AskId, AskEntry)>, sealed_with: Option<&RunKey>) {
    for (ask_id, entry) in asks {
        let raised = matches!(entry, AskEntry::Raised(_));
        let expected = if raised { Seq(0) } else { Seq(1) };
        let head = StreamHead { open: raised, run: None, sealed_with: sealed_with.cloned() };
        let body = Body::Entries(vec![Entry::Ask(entry)]);
        append(batch, StreamId::Ask(ask_id), expected, body, head);
    }
}

/// The notices that a decision owes to seats.
fn append_notices(batch: &mut Batch, notices: Vec<Notice>, sealed_with: Option<&RunKey>) {
    for notice in notices {
        let stream = StreamId::Notice(notice.ask_id.clone());
        let body = Body::Entries(vec![Entry::Notice(NoticeEntry::Owed(Box::new(notice)))]);
        let head = StreamHead { open: true, run: None, sealed_with: sealed_with.cloned() };
        append(batch, stream, Seq(0), body, head);
    }
}

/// What of a memory run's batch must reach the store besides money: files, since others share
/// them, and what triggers owe because of these.
fn only_shared(batch: &Batch) -> Batch {
    let is_firing = |append: &&Append| matches!(append.stream, StreamId::Firing(_));
    Batch {
        appends: batch.appends.iter().filter(is_firing).cloned().collect(),
        claims: Vec::new(),
        requires: Vec::new(),
        audit: Vec::new(),
        ledger: Vec::new(),
        artifacts: batch.artifacts.clone(),
        ..*batch
    }
}

/// What of the last batch of a run is written down whose values are not kept.
fn withheld(batch: &Batch) -> Batch {
    let without = |append: &Append| {
        let body = match &append.body {
            Body::Entries(entries) => {
                Body::Entries(entries.iter().cloned().map(Entry::withheld).collect())
            }
            Body::Progress(pieces) => Body::Progress(vec![Progress::Withheld; pieces.len()]),
        };
        Append { body, ..append.clone() }
    };
    Batch { appends: batch.appends.iter().map(without).collect(), ..batch.clone() }
}

fn is_empty(batch: &Batch) -> bool {
    batch.appends.is_empty()
        && batch.claims.is_empty()
        && batch.requires.is_empty()
        && batch.ledger.is_empty()
        && batch.audit.is_empty()
        && batch.artifacts.is_empty()
}

/// Tells the parent that a child began or ended, and children that their parent was called off.
fn family(slot: &Slot, next: &Arc<Run>, cause: &Cause) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(parent) = &next.spec.parent {
        let began = matches!(cause, Cause::Create { .. });
        if began || next.is_over() {
            let input = Input::Child {
                parent: parent.clone(),
                child: next.key.clone(),
                began: !next.is_over(),
            };
            effects.push(Effect::Send { to: parent.shard(), input: Box::new(input) });
        }
        effects.extend(super::flows::step_over(next, parent));
    }
    if is_called_off(next) {
        effects.extend(slot.children.iter().map(cancel_child));
    }
    effects.extend(super::steps::left_over(next).iter().map(cancel_child));
    effects
}

/// Lets a parent remember that an approval holds for more of its children.
fn allow_children(parent: RunKey, allowed: ChildrenAllowed) -> Effect {
    let to = parent.shard();
    let input = Input::Run { key: parent, input: RunInput::AllowChildren(allowed), ticket: None };
    Effect::Send { to, input: Box::new(input) }
}

/// Lets a world remember that a tool was allowed.
fn allow_tool(run: &Run, ask_id: AskId, by: CallerRef) -> Effect {
    let id = run.key.world.clone();
    let allowance = ToolAllowance { tool_hash: run.spec.tool_hash.clone(), ask_id };
    let input = WorldInput::AllowTool(run.spec.tool.clone(), allowance);
    let to = StreamId::World(id.clone()).shard();
    Effect::Send {
        to,
        input: Box::new(Input::Record { input: RecordInput::World(id, input), by, ticket: None }),
    }
}

/// Whether somebody wanted the run to stop, however it ended: its children are to stop, too.
pub(super) fn is_called_off(run: &Run) -> bool {
    run.cancel.is_some() || run.status() == RunStatus::Canceled
}

/// The effect that calls a child off because its parent was.
pub(super) fn cancel_child(child: &RunKey) -> Effect {
    let input = RunInput::Cancel {
        by: Actor::CORE,
        reason: "The run that started it was canceled.".to_owned(),
    };
    let input = Input::Run { key: child.clone(), input, ticket: None };
    Effect::Send { to: child.shard(), input: Box::new(input) }
}
