//! Rules on what is committed.

use wharf_domain::{
    Actor, AuditEvent, Entry, Outcome, Progress, Resolution, Run, RunEntry, Subject,
};
use wharf_memory::MemoryState;
use wharf_ports::{Batch, Body};
use wharf_vocab::limits::ATTEMPTS_MAX;
use wharf_vocab::{AttemptId, Code, Epoch, Executed, RunKey, StreamId};

use super::super::exercised::{Exercised, Thing};
use super::super::stage;
use super::{Checker, Wrote, files};

impl Checker {
    /// A batch was committed.
    pub(in super::super) fn committed(
        &mut self,
        batch: &Batch,
        state: &MemoryState,
        seen: &mut Exercised,
    ) {
        seen.note(Thing::Commit);
        self.numbered(batch);
        self.money_moved(batch);
        for claim in &batch.claims {
            let name = (claim.scope.clone(), claim.key.clone());
            let before = self.model.claims.insert(name, claim.value.clone());
            self.require(before.is_none(), "a name is claimed once", || format!("{claim:?}"));
        }
        let allowed =
            batch.audit.iter().any(|record| record.event == AuditEvent::WORLD_TOOL_ALLOWED);
        if allowed {
            seen.note(Thing::ToolAllowed);
        }
        for append in &batch.appends {
            if let StreamId::Run(key) = &append.stream {
                self.progress_fits(key, &append.body, batch.epoch);
            }
            if let Err(why) = self.model.append(batch, append) {
                let seen = format!("{:?} of {:?}: {why}", append.body, append.stream);
                self.broken("a stream goes on from where it stood, and not beyond its end", seen);
            }
            if let (StreamId::Run(key), Body::Entries(entries)) = (&append.stream, &append.body) {
                self.entries_fit(key, entries, batch, seen);
                let stored = state.load(&append.stream).map(|stored| stored.seq);
                let known = self.model.runs.get(key).map(|tale| tale.seq);
                self.require(stored == known, "the store keeps what it committed", || {
                    format!("{key}: {stored:?} instead of {known:?}")
                });
            }
        }
    }

    fn numbered(&mut self, batch: &Batch) {
        let shard = self.model.shards.entry(batch.shard).or_default();
        let current = shard.epoch == batch.epoch;
        let fresh = shard.numbers.insert(batch.no);
        // What no stream guards can be committed again when the store denied it the first time.
        let known = !fresh && self.hidden.contains(&(batch.shard, batch.no));
        let rises = batch.no > shard.before && (fresh || known);
        shard.last = shard.last.max(batch.no);
        let seen = || format!("shard {} epoch {} no {}", batch.shard, batch.epoch, batch.no);
        self.require(current, "nothing is committed under an old lease", seen);
        self.require(rises, "a commit number is used once and rises with the lease", seen);
    }

    fn money_moved(&mut self, batch: &Batch) {
        let of_memory = batch.appends.is_empty();
        for op in &batch.ledger {
            if let Err(why) = self.model.purse.apply(op, of_memory) {
                self.broken("no account is held beyond its limit, and no hold twice", why);
            }
        }
    }

    /// Progress belongs to the attempt that is under way.
    fn progress_fits(&mut self, key: &RunKey, body: &Body, epoch: Epoch) {
        let Body::Progress(pieces) = body else { return };
        let active = self.model.runs.get(key).and_then(|tale| tale.run.active.as_ref());
        let active = active.map(|attempt| attempt.id.clone());
        if let Some(wrote) = active.as_ref().and_then(|active| self.wrote.get_mut(active))
            && wrote.epoch == epoch
        {
            wrote.committed += texts(pieces);
        }
        let active = active.map(|active| active.as_str().to_owned());
        for piece in pieces {
            let text = match piece {
                Progress::Text { text, .. } => text.as_str(),
                Progress::Partial { value, .. } => value.as_str().unwrap_or(""),
                _ => "",
            };
            let mut writers = text.split(';').map(str::trim).filter(|writer| !writer.is_empty());
            let foreign = writers.find(|writer| Some(*writer) != active.as_deref());
            self.require(foreign.is_none(), "only the attempt under way makes progress", || {
                format!("{key}: {foreign:?} wrote while {active:?} was active")
            });
        }
    }

    /// A core takes progress of an attempt that is under way: it must not be lost.
    pub(in super::super) fn progress_taken(
        &mut self,
        epoch: Epoch,
        attempt: &AttemptId,
        pieces: &[Progress],
    ) {
        let wrote = self.wrote.entry(attempt.clone()).or_default();
        if wrote.epoch != epoch {
            *wrote = Wrote { epoch, ..Wrote::default() };
        }
        wrote.taken += texts(pieces);
    }

    /// What an attempt wrote is committed by the time it is over.
    fn all_is_written(&mut self, run: &Run, batch: &Batch) {
        let Some(attempt) = &run.active else { return };
        let Some(wrote) = self.wrote.remove(&attempt.id) else { return };
        let sure = !self.unsure.contains(&(batch.shard, batch.epoch, run.key.clone()));
        let kept = wrote.epoch != batch.epoch || wrote.committed >= wrote.taken;
        self.require(kept || !sure, "what an attempt writes is not lost", || {
            format!("{} {}: {wrote:?}", run.key, attempt.id)
        });
    }

    /// That an attempt never started is true once it is written down.
    fn written_as_never(&mut self, key: &RunKey) {
        let Some(tale) = self.model.runs.get(key) else { return };
        let Some(before) = tale.states.iter().rev().nth(1) else { return };
        let Some(ended) = before.active.as_ref().map(|active| active.id.clone()) else { return };
        let still = tale.run.active.as_ref().is_some_and(|active| active.id == ended);
        // A run that is over says how it ended; what an attempt before failed of, it still knows.
        let said = match &tale.run.outcome {
            Some(outcome) => outcome.error().is_some_and(|error| {
                error.details.get("executed").is_some_and(|executed| executed == "no")
            }),
            None => {
                let failed = tale.run.last_failure.as_ref();
                failed.is_some_and(|(_, executed)| *executed == Executed::No)
            }
        };
        if !still && said && self.doubted.contains(&ended) {
            let begun = self.begun.contains(&ended);
            self.require(!begun, "what was said never to have started never starts", || {
                ended.to_string()
            });
            self.never.insert(ended);
        }
    }

    fn entries_fit(
        &mut self,
        key: &RunKey,
        entries: &[Entry],
        batch: &Batch,
        seen: &mut Exercised,
    ) {
        let Some(tale) = self.model.runs.get(key) else { return };
        // The rules on an attempt look at the run as the batch found it and the entries before.
        let mut run = tale.states.iter().rev().nth(1).cloned();
        let (mut broken, mut ended) = (Vec::new(), Vec::new());
        let mut steps = Vec::new();
        for entry in entries {
            let Entry::Run(entry) = entry else { continue };
            match (&mut run, entry) {
                (_, RunEntry::Created(_)) => run = Run::replay([(batch.at, entry)]),
                (Some(run), RunEntry::AttemptStarted(started)) => {
                    broken.extend(may_start(run, started.attempt));
                    run.apply(batch.at, entry);
                }
                (Some(run), _) => {
                    broken.extend(ends_itself(run, entry));
                    broken.extend(fails_for_want_of_room(run, entry));
                    ended.extend(ends_well(run, entry).then(|| run.clone()));
                    steps.push((run.clone(), entry));
                    run.apply(batch.at, entry);
                }
                (None, _) => {}
            }
            note(entry, seen);
            let flows = run.as_ref().is_some_and(|run| run.flow.is_some());
            if flows && matches!(entry, RunEntry::CancelRequested(_)) {
                seen.note(Thing::Closing);
            }
            if let RunEntry::Flow(entry) = entry {
                self.flow_fits(key, entry, seen);
            }
            if let RunEntry::Ended(_) = entry {
                self.flow_ends_alone(key);
            }
        }
        self.written_as_never(key);
        for (before, entry) in steps {
            self.files_fit(&before, entry);
        }
        for run in ended {
            self.all_is_written(&run, batch);
        }
        broken.extend(batch_of_run(key, entries, batch));
        for (rule, what) in broken {
            self.broken(rule, format!("{key}: {what}"));
        }
    }
}

/// How many texts there are among pieces of progress.
fn texts(pieces: &[Progress]) -> usize {
    let stdout = pieces.iter().filter_map(|piece| match piece {
        Progress::Text { channel, text } if channel == "stdout" => Some(text),
        _ => None,
    });
    stdout.map(|text| text.matches(';').count()).sum()
}

/// Whether an attempt is over with it that did not write more than it may.
fn ends_well(run: &Run, entry: &RunEntry) -> bool {
    match entry {
        RunEntry::AttemptFailed(_) | RunEntry::Publishing(_) => true,
        RunEntry::RoomAwaited(awaited) => awaited.attempt_id.is_some(),
        // It was over when its files began to be published.
        RunEntry::Ended(_) if run.publishing.is_some() => false,
        RunEntry::Ended(ended) => {
            ended.outcome.error().is_none_or(|error| !error.is(Code::ToolOutputTooLarge))
        }
        _ => false,
    }
}

type Broken = (&'static str, String);

/// An attempt begins only when none is under way, with permission, and again only if it is safe.
fn may_start(run: &Run, attempt: u32) -> Vec<Broken> {
    let mut broken = Vec::new();
    if run.active.is_some() || attempt != run.attempt + 1 || attempt > ATTEMPTS_MAX + run.proposals
    {
        broken.push(("attempts follow each other", format!("attempt {attempt} of {run:?}")));
    }
    let spec = &run.spec;
    let safe = spec.side_effect_free || (spec.idempotent && spec.idempotency_key.is_some());
    if let Some((error, executed)) = &run.last_failure
        && *executed != Executed::No
        && !safe
    {
        let rule = "what may have acted is not done again";
        broken.push((rule, format!("attempt {attempt} after {error} ({executed:?})")));
    }
    if is_guarded(run) && !is_allowed(run) {
        broken.push(("nothing starts without the approval it needs", format!("{run:?}")));
    }
    broken
}

/// A run succeeds with what the attempt under way brings, not with what an earlier one says.
fn ends_itself(run: &Run, entry: &RunEntry) -> Option<Broken> {
    let RunEntry::Ended(ended) = entry else { return None };
    let Outcome::Succeeded { outputs } = &ended.outcome else { return None };
    let by = outputs.get("by").and_then(|by| by.as_str());
    let active = run.active.as_ref().map(|attempt| attempt.id.as_str());
    let rule = "only the attempt under way ends a run";
    (by.is_some() && by != active).then(|| (rule, format!("{by:?} instead of {active:?}")))
}

/// What was accepted and never began waits for room, and does not fail because there is none.
fn fails_for_want_of_room(run: &Run, entry: &RunEntry) -> Option<Broken> {
    let RunEntry::Ended(ended) = entry else { return None };
    let error = ended.outcome.error().filter(|error| error.is(Code::ToolBusy))?;
    let never_began = error.details.get("executed").is_some_and(|executed| executed == "no");
    let paid = run.cost_micro > 0 || ended.cost_micro > 0;
    let rule = "no accepted run fails for want of room";
    (never_began && !paid && run.cancel.is_none()).then(|| (rule, format!("{error:?}")))
}

/// Whether somebody must have allowed the run, or something that an attempt of it proposed.
pub(super) fn is_guarded(run: &Run) -> bool {
    run.spec.gate.is_some() || run.asks.iter().any(|raised| raised.gate)
}

/// Whether a person gave the permission the run needs.
pub(super) fn is_allowed(run: &Run) -> bool {
    let mut gates = run.asks.iter().filter(|raised| raised.gate).peekable();
    let allowed = |by: &Actor| by.as_str().strip_prefix("grant:").is_some_and(stage::is_person);
    gates.peek().is_some()
        && gates.all(
            |raised| matches!(&raised.ask.resolved, Some((Resolution::Allow { .. }, by)) if allowed(by)),
        )
}

/// What must stand in one batch together.
fn batch_of_run(key: &RunKey, entries: &[Entry], batch: &Batch) -> Vec<Broken> {
    let mut broken = Vec::new();
    let runs = || {
        entries.iter().filter_map(|entry| match entry {
            Entry::Run(entry) => Some(entry),
            _ => None,
        })
    };
    for entry in runs() {
        if let RunEntry::Created(created) = entry
            && created.spec.step.is_none()
            && let Some(name) = &created.spec.idempotency_key
            && !batch.claims.iter().any(|claim| claim.key == *name)
        {
            broken.push(("a key is claimed with the run it stands for", name.clone()));
        }
    }
    let subject = Subject::from(key);
    let audited = |event: AuditEvent| {
        batch.audit.iter().filter(|r| r.event == event && r.subject == subject).count()
    };
    let ended = runs().filter(|entry| match entry {
        RunEntry::Ended(_) | RunEntry::AttemptFailed(_) => true,
        RunEntry::RoomAwaited(awaited) => awaited.attempt_id.is_some(),
        _ => false,
    });
    let started = runs().filter(|entry| matches!(entry, RunEntry::AttemptStarted(_)));
    let (ended, started) = (ended.count(), started.count());
    if audited(AuditEvent::TOOL_CALL_COMPLETED) != ended
        || audited(AuditEvent::TOOL_CALL_ROUTED) != started
    {
        broken.push(("what happens to a run is audited with it", format!("{:?}", batch.audit)));
    }
    let recorded = files::recorded_with_the_end(entries, batch);
    broken.extend(recorded.map(|what| ("files are recorded with the end of their run", what)));
    broken
}

fn note(entry: &RunEntry, seen: &mut Exercised) {
    match entry {
        RunEntry::Created(created) if created.spec.parent.is_some() => seen.note(Thing::Child),
        RunEntry::AttemptStarted(started) if started.attempt > 1 => seen.note(Thing::Retry),
        RunEntry::Publishing(_) => seen.note(Thing::Publishing),
        RunEntry::ChildrenAllowed(_) => seen.note(Thing::ParentAllowed),
        RunEntry::AttemptFailed(failed) if failed.error.is(Code::ToolDirectiveRequired) => {
            seen.note(Thing::Proposed);
        }
        RunEntry::AskResolved(resolved) => match resolved.resolution {
            Resolution::Allow { .. } => seen.note(Thing::Allowed),
            Resolution::Deny { .. } => seen.note(Thing::Denied),
            Resolution::Expired => seen.note(Thing::Expired),
            Resolution::Withdrawn => seen.note(Thing::Withdrawn),
            _ => {}
        },
        RunEntry::CancelRequested(cancel) if cancel.by == "core" => seen.note(Thing::ChildCanceled),
        RunEntry::Ended(ended) => {
            if let Some(thing) = Thing::of_status(ended.outcome.status()) {
                seen.note(thing);
            }
            match ended.outcome.error() {
                Some(error) if error.is(Code::ToolTimeout) => seen.note(Thing::Timeout),
                Some(error) if error.is(Code::ToolOutputTooLarge) => seen.note(Thing::TooLarge),
                Some(error) if error.is(Code::BudgetExceeded) && ended.cost_micro > 0 => {
                    seen.note(Thing::BudgetStopped);
                }
                Some(error) if error.details.get("by").is_some_and(|by| by == "core") => {
                    seen.note(Thing::ChildCanceled);
                }
                _ => {}
            }
        }
        _ => {}
    }
}
