//! What becomes of batches: committed, refused, or not taken by the store.

use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::scope::WorldPath;
use wharf_domain::{Progress, Run};
use wharf_ports::{Refusal, StoreError, StoreErrorKind};
use wharf_vocab::limits::COMMIT_RETRY_MS;
use wharf_vocab::{Code, CommitNo, Digest, Durability, Fault, RunKey, Timestamp};

use super::late;
use super::runs::{conflict, repeats, reply};
use super::slot::{Cause, PendingBatch, WaitingInput};
use super::{ClaimValue, CommitOwner, Effect, Output, Reply, Shard};

/// Nobody's batches that may wait for a store that cannot take them.
const NOBODYS_WAITING_MAX: usize = 1024;

impl Shard {
    pub(super) fn committed(&mut self, now: Timestamp, no: CommitNo, out: &mut Output) {
        match self.on_the_way.remove(&no) {
            Some(CommitOwner::Run(key)) => {
                self.finish_commit(now, &key, no, out);
                self.pump(now, &key, out);
            }
            Some(CommitOwner::Record(stream)) => self.record_committed(now, &stream, out),
            Some(CommitOwner::Files(ticket)) => reply(out, ticket, Ok(Reply::Done)),
            Some(CommitOwner::Nobody(_)) | None => {}
        }
    }

    /// Makes a batch's state the run's state and lets its effects go.
    pub(super) fn finish_commit(
        &mut self,
        now: Timestamp,
        key: &RunKey,
        no: CommitNo,
        out: &mut Output,
    ) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        let Some(pending) = slot.pending.take_if(|pending| pending.no == no) else { return };
        let PendingBatch { batch, next, next_seq, effects, at, cause, .. } = pending;
        // Now that the store has its inputs, nobody need keep large ones here.
        let next = Run::lean(&next);
        let before = slot.run.replace(Arc::clone(&next)).and_then(|run| run.active.clone());
        let began = next.active.as_ref().map(|now| &now.id);
        let began = began.filter(|id| before.as_ref().is_none_or(|it| it.id != **id)).cloned();
        let over = before.filter(|it| next.active.as_ref().is_none_or(|now| now.id != it.id));
        let place = std::mem::replace(&mut slot.at, at);
        slot.seq = next_seq;
        slot.doubtful = false;
        // Another attempt is not taken up again, and what was to be gone on with has gone on.
        slot.detached &= over.is_none();
        if over.is_some() || began.is_some() {
            slot.waiting.retain(|waiting| waiting.input != RunInput::Recovered);
            slot.at_one_place = began;
        }
        if !slot.detached {
            slot.recheck_at = super::flows::recheck_at(&next, now);
        }
        for raised in &next.asks {
            self.asks.insert(raised.ask.spec.ask_id.clone(), key.clone());
        }
        let settles = match next.spec.durability {
            Durability::Memory => late::settles(&batch, &next),
            Durability::Journal => Vec::new(),
        };
        out.effects.push(Effect::Publish { batch, run: Arc::clone(&next) });
        let (ticket, made) = match cause {
            Cause::Create { ticket, .. } => (ticket, true),
            Cause::Input(waiting) => (waiting.ticket, false),
            Cause::Progress => (None, false),
        };
        reply(out, ticket, Ok(Reply::Run { run: Arc::clone(&next), made }));
        for (ticket, digest) in std::mem::take(&mut slot.repeats) {
            reply(out, ticket, repeats(&next, &digest));
        }
        out.effects.extend(effects);
        if let Some(over) = over {
            let key = key.clone();
            out.effects.push(Effect::AttemptOver { place, key, attempt_id: over.id });
        }
        self.move_money(now, settles.into_iter(), out);
        self.leave_if_over(now, key, out);
    }

    /// A run that is over leaves memory, once what its attempts have cost is booked.
    pub(super) fn leave_if_over(&mut self, now: Timestamp, key: &RunKey, out: &mut Output) {
        let Some(slot) = self.runs.get(key).filter(|slot| slot.pending.is_none()) else { return };
        let Some(run) = slot.run.clone().filter(|run| run.is_over()) else { return };
        if !slot.waiting.iter().any(late::is_cost) {
            self.leave(now, key, &run, out);
        }
    }

    /// A run that is over leaves memory; what still waits for it is told so.
    fn leave(&mut self, now: Timestamp, key: &RunKey, run: &Arc<Run>, out: &mut Output) {
        let Some(slot) = self.forget(key) else { return };
        let provider = self.providers.availability(&slot.provider);
        for waiting in slot.waiting {
            let mut cx = wharf_domain::run::Cx {
                now,
                shard: self.id,
                provider: &provider,
                full: false,
                place: None,
                refused: None,
                fresh: &mut self.fresh,
            };
            let result = run.decide(&mut cx, &waiting.input);
            let answer = result.map(|_| Reply::Run { run: Arc::clone(run), made: false });
            reply(out, waiting.ticket, answer);
        }
    }

    pub(super) fn refused(
        &mut self,
        now: Timestamp,
        no: CommitNo,
        refusal: Refusal,
        out: &mut Output,
    ) {
        let key = match self.on_the_way.remove(&no) {
            Some(CommitOwner::Run(key)) => key,
            Some(CommitOwner::Record(stream)) => return self.record_refused(now, &stream, out),
            Some(CommitOwner::Files(ticket)) => {
                if let Refusal::FileInUse { path, .. } = &refusal {
                    return reply(out, ticket, Err(file_in_use(path)));
                }
                reply(out, ticket, Err(moved()));
                return out.effects.push(Effect::Reload);
            }
            Some(CommitOwner::Nobody(_)) | None => {
                if refusal == Refusal::Fenced {
                    out.effects.push(Effect::Reload);
                }
                return;
            }
        };
        let Some(slot) = self.runs.get_mut(&key) else { return };
        let Some(pending) = slot.pending.take_if(|pending| pending.no == no) else { return };
        let (doubtful, progress) = (slot.doubtful, pending.progress());
        match (pending.cause, refusal) {
            (Cause::Create { ticket, claim }, refusal) => {
                let digest = &pending.next.spec.digest;
                let open = match &refusal {
                    Refusal::Exists { run: Some(run), .. } => !run.status.is_terminal(),
                    _ => doubtful,
                };
                if open {
                    // It is open and was not known here, so nobody goes on with it.
                    self.look_up(&key, out);
                }
                let result = match refusal {
                    Refusal::Exists { run: Some(run), .. } if run.digest == *digest => {
                        Ok(Reply::Repeated(key.clone()))
                    }
                    Refusal::Exists { .. } => Err(conflict(&key)),
                    Refusal::Claimed(taken) => {
                        repeated(&key, digest, &taken.value, claim.map(|claim| claim.key))
                    }
                    Refusal::Funds(funds) => Err(Run::refuse_for(&funds)),
                    Refusal::FileGone { path, .. } => Err(file_gone(&path)),
                    Refusal::Fenced | Refusal::Stale { .. } | Refusal::FileInUse { .. } => {
                        out.effects.push(Effect::Reload);
                        Err(moved())
                    }
                };
                reply(out, ticket, result);
                self.drop_uncreated(&key, out);
            }
            (Cause::Input(waiting), Refusal::Funds(funds)) => {
                // The same input again, knowing that there is no money for another attempt.
                slot.waiting.push_front(WaitingInput { refused: Some(funds), ..waiting });
                self.put_back(&key, progress);
                self.pump(now, &key, out);
            }
            (Cause::Input(waiting), _) => {
                reply(out, waiting.ticket, Err(moved()));
                out.effects.push(Effect::Reload);
            }
            (Cause::Progress, _) => out.effects.push(Effect::Reload),
        }
    }

    /// The store could not take a batch. Whoever waits is told; what the core owes is kept and
    /// offered again.
    pub(super) fn failed(
        &mut self,
        now: Timestamp,
        no: CommitNo,
        error: &StoreError,
        out: &mut Output,
    ) {
        let key = match self.on_the_way.get(&no).cloned() {
            Some(CommitOwner::Run(key)) => key,
            Some(CommitOwner::Record(stream)) => {
                self.on_the_way.remove(&no);
                return self.record_failed(now, &stream, error, out);
            }
            Some(CommitOwner::Files(ticket)) => {
                self.on_the_way.remove(&no);
                return reply(out, ticket, Err(error.clone().into()));
            }
            Some(CommitOwner::Nobody(batch)) => {
                if self.again.len() < NOBODYS_WAITING_MAX {
                    self.again.insert((now.plus_ms(COMMIT_RETRY_MS), no), batch);
                } else {
                    self.on_the_way.remove(&no);
                }
                return;
            }
            None => return,
        };
        let Some(slot) = self.runs.get_mut(&key) else { return };
        let Some(mut pending) = slot.pending.take_if(|pending| pending.no == no) else { return };
        let (doubtful, progress) = (slot.doubtful, pending.progress());
        match pending.cause {
            Cause::Create { ticket, .. } => {
                self.on_the_way.remove(&no);
                reply(out, ticket, Err(error.clone().into()));
                self.drop_uncreated(&key, out);
                // An earlier request for it may have made it, and was looked up meanwhile.
                if error.kind == StoreErrorKind::Unavailable || doubtful {
                    self.in_doubt(now, &pending.next, out);
                }
            }
            Cause::Input(WaitingInput { ticket: Some(ticket), .. }) => {
                self.on_the_way.remove(&no);
                reply(out, Some(ticket), Err(error.clone().into()));
                if error.kind == StoreErrorKind::Unavailable || doubtful {
                    self.in_doubt(now, &pending.next, out);
                }
                self.put_back(&key, progress);
                self.pump(now, &key, out);
            }
            cause @ (Cause::Input(_) | Cause::Progress) => {
                pending.cause = cause;
                pending.again_at = Some(now.plus_ms(COMMIT_RETRY_MS));
                slot.pending = Some(pending);
                self.reschedule(&key);
            }
        }
    }

    /// What an attempt wrote must not be lost with the input that was to be committed with it.
    fn put_back(&mut self, key: &RunKey, progress: Vec<Progress>) {
        if let Some(slot) = self.runs.get_mut(key) {
            let before = slot.progress.waiting_bytes();
            slot.progress.put_back(progress);
            self.progress_waiting_bytes += slot.progress.waiting_bytes() - before;
        }
    }

    /// A store that was lost during a commit may have made it all the same: a run that was made
    /// must not be left lying, nor money be held for one that nobody knows.
    fn in_doubt(&mut self, now: Timestamp, run: &Run, out: &mut Output) {
        match run.spec.durability {
            Durability::Journal => self.look_up(&run.key, out),
            Durability::Memory => {
                let held = run.active.as_ref().and_then(|attempt| attempt.hold.as_ref());
                let holds = held.map(|held| held.hold.clone()).into_iter().collect();
                self.give_back(now, holds, out);
            }
        }
    }

    fn drop_uncreated(&mut self, key: &RunKey, out: &mut Output) {
        if let Some(slot) = self.forget(key) {
            for waiting in slot.waiting {
                let error = Fault::new(Code::RunNotFound, format!("There is no run {key}."));
                reply(out, waiting.ticket, Err(error));
            }
            for (ticket, _) in slot.repeats {
                let message = "The same request was under way and was not accepted; try again.";
                reply(out, ticket, Err(Fault::new(Code::CoreBusy, message)));
            }
        }
    }
}

/// The answer to a second request under one idempotency key.
fn repeated(
    key: &RunKey,
    digest: &Digest,
    taken: &str,
    idempotency_key: Option<String>,
) -> Result<Reply, Fault> {
    match ClaimValue::parse(taken).filter(|first| first.digest == *digest) {
        Some(first) => Ok(Reply::Repeated(RunKey { world: key.world.clone(), run: first.run })),
        None => Err(Fault::new(
            Code::RunConflict,
            format!(
                "The idempotency key {} stands for another request.",
                idempotency_key.unwrap_or_default()
            ),
        )),
    }
}

/// A file that a new run reads has gone since it was looked up.
fn file_gone(path: &WorldPath) -> Fault {
    let message = format!("The file {path} that an input refers to is not there.");
    Fault::new(Code::ScopeNotFound, message).with("path", path.as_str())
}

/// A file is not to be removed while a run uses it.
pub(crate) fn file_in_use(path: &WorldPath) -> Fault {
    let message = format!("The file {path} is used by a run under way.");
    Fault::new(Code::ArtifactInUse, message).with("path", path.as_str())
}

fn moved() -> Fault {
    Fault::new(Code::CoreBusy, "Another core has taken this over; try again.")
}
