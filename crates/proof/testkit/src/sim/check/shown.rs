//! Rules on what a core shows, says and does: nothing of it before it is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wharf_domain::{Ask, Audience, Caller, Resolution, Run, RunSpec, World};
use wharf_engine::shard::{AnyRecord, ClaimValue, Reply};
use wharf_ports::{Batch, Claim, Dispatch};
use wharf_vocab::{AttemptId, Digest, Durability, Epoch, Fault, RunKey, Seq, Timestamp};

use super::Checker;
use super::committed::{is_allowed, is_guarded};

const TOO_EARLY: &str = "nothing is observable before it is committed";

impl Checker {
    /// A batch is shown to watchers.
    pub(in super::super) fn published(
        &mut self,
        batch: &Batch,
        run: &Arc<Run>,
        owner: bool,
        published: &mut BTreeMap<RunKey, (Epoch, Seq)>,
    ) {
        let stream = run.key.stream();
        let mut appends = batch.appends.iter().filter(|append| append.stream == stream).peekable();
        if let (Some(first), Some((epoch, seq))) = (appends.peek(), published.get(&run.key))
            && *epoch == batch.epoch
        {
            let (seq, next) = (*seq, first.expected);
            self.require(seq == next, "watchers see every number once and in order", || {
                format!("{}: {next} after {seq}", run.key)
            });
        }
        if let Some(last) = appends.last() {
            let seq = Seq(last.expected.0 + last.body.len() as u64);
            published.insert(run.key.clone(), (batch.epoch, seq));
        }
        if run.spec.durability == Durability::Memory && batch.ledger.is_empty() {
            return;
        }
        let shard = self.model.shards.get(&batch.shard);
        let committed = shard.is_some_and(|shard| shard.numbers.contains(&batch.no));
        self.require(committed, TOO_EARLY, || format!("{} is shown #{}", run.key, batch.no));
        if run.spec.durability == Durability::Journal {
            let latest = self.model.runs.get(&run.key).map(|tale| &tale.run);
            let true_once = if owner { latest == Some(run) } else { self.model.was(run) };
            let seen = (!true_once).then(|| format!("{run:?} is shown instead of {latest:?}"));
            self.require(true_once, TOO_EARLY, || seen.unwrap_or_default());
        }
    }

    pub(in super::super) fn world_shown(&mut self, world: &World) {
        let tale = self.model.worlds.get(&world.id);
        let was = tale.is_some_and(|tale| tale.states.contains(world));
        self.require(was, TOO_EARLY, || format!("{world:?} is shown"));
    }

    /// An attempt is handed to its provider.
    pub(in super::super) fn dispatched(
        &mut self,
        dispatch: &Dispatch,
        owner: bool,
        dispatched: &mut BTreeSet<AttemptId>,
    ) {
        let id = &dispatch.attempt_id;
        let again = !dispatched.insert(id.clone());
        self.require(!again || dispatch.reattach, "an attempt is dispatched once", || {
            format!("{} {id} is dispatched again by the same core", dispatch.run)
        });
        self.require(
            !dispatch.reattach || dispatch.spec.reattach,
            "only what can be attached to is attached to",
            || format!("{} {id}", dispatch.run),
        );
        if dispatch.spec.durability == Durability::Memory {
            return;
        }
        let known = self.model.attempts.get(id) == Some(&dispatch.run);
        self.require(known, TOO_EARLY, || format!("{} {id} is dispatched", dispatch.run));
        let shard = self.model.shards.get(&dispatch.effect.shard);
        let committed = shard.is_some_and(|s| s.numbers.contains(&dispatch.effect.commit));
        self.require(committed || dispatch.reattach, TOO_EARLY, || {
            format!("{id} follows from {:?}", dispatch.effect)
        });
        let Some(tale) = self.model.runs.get(&dispatch.run) else { return };
        let active = tale.run.active.as_ref().is_some_and(|attempt| attempt.id == *id);
        let allowed = !active || !is_guarded(&tale.run) || is_allowed(&tale.run);
        let named = !active || dispatch.approval.as_ref() == tale.run.approval();
        self.require(active || !owner, "what is dispatched is under way", || {
            format!("{} {id}", dispatch.run)
        });
        self.require(allowed, "nothing is dispatched without the approval it needs", || {
            format!("{} {id}", dispatch.run)
        });
        self.require(named, "what is dispatched names its approval", || {
            format!("{} {id}: {:?}", dispatch.run, dispatch.approval)
        });
    }

    /// A core hands an attempt over; its leases last until then, as the store has it.
    pub(in super::super) fn hands_over(
        &mut self,
        attempt: &AttemptId,
        now: Timestamp,
        leased_until: Timestamp,
    ) {
        self.require(now < leased_until, "nothing starts under leases that are over", || {
            format!("{attempt} at {now:?}, and leases until {leased_until:?}")
        });
    }

    /// A provider begins with an attempt.
    pub(in super::super) fn begins(&mut self, attempt: &AttemptId) {
        let first = self.begun.insert(attempt.clone());
        self.require(first, "an attempt starts at most once over all cores", || {
            attempt.to_string()
        });
        let denied = self.never.contains(attempt);
        self.require(!denied, "what was said never to have started never starts", || {
            attempt.to_string()
        });
    }

    /// Somebody says that an attempt has never started and never will. Whether anybody hears it
    /// is another matter.
    pub(in super::super) fn never_starts(&mut self, attempt: &AttemptId) {
        self.doubted.insert(attempt.clone());
        let begun = self.begun.contains(attempt);
        self.require(!begun, "what has started is not said never to have", || attempt.to_string());
    }

    /// An attempt whose provider cannot be attached to is lost with the place where it was.
    pub(in super::super) fn declared_gone(&mut self, attempt: &AttemptId) {
        self.gone.insert(attempt.clone());
    }

    /// A provider is told how its ask ended.
    pub(in super::super) fn answer_given(
        &mut self,
        attempt: &AttemptId,
        key: &str,
        resolution: &Resolution,
    ) {
        let run = self.model.attempts.get(attempt).and_then(|key| self.model.runs.get(key));
        let Some(tale) = run else { return };
        let recorded =
            tale.run.asks.iter().find(|raised| !raised.gate && raised.ask.spec.key == key);
        let recorded = recorded.and_then(|raised| raised.ask.resolved.clone());
        let same = recorded.as_ref().is_some_and(|(recorded, _)| recorded == resolution);
        self.require(same, "a provider is told the answer that was recorded", || {
            format!("{attempt} {key}: {resolution:?} instead of {recorded:?}")
        });
    }

    /// An attempt acts on the world.
    pub(in super::super) fn acted(&mut self, key: &RunKey, attempt: &AttemptId, spec: &RunSpec) {
        let gone = self.gone.contains(attempt);
        self.require(!gone, "what was lost with its place does not act any more", || {
            format!("{key} {attempt}")
        });
        let acted = self.acted.entry(key.clone()).or_default();
        acted.insert(attempt.clone());
        let keyed = spec.idempotent && spec.idempotency_key.is_some();
        let once = keyed || spec.side_effect_free || acted.len() < 2;
        let seen = format!("{key}: {acted:?}");
        self.require(once, "a run acts on the world at most once", || seen);
    }

    /// A request for a run is answered.
    pub(in super::super) fn create_answered(
        &mut self,
        key: &RunKey,
        digest: &Digest,
        durability: Durability,
        claim: Option<&Claim>,
        result: &Result<Reply, Fault>,
    ) {
        let Ok(reply) = result else { return };
        self.reply(reply);
        let made = match reply {
            Reply::Run { run, .. } => run.key.clone(),
            Reply::Repeated(key) => key.clone(),
            Reply::Record(_) | Reply::Done => {
                return self.broken("an answer fits its question", format!("{key}: {reply:?}"));
            }
        };
        if durability == Durability::Memory {
            return;
        }
        let recorded = self.model.runs.get(&made).map(|tale| tale.run.spec.digest.clone());
        self.require(
            recorded.as_ref() == Some(digest),
            "the same request gives the same run",
            || format!("{key} is answered with {made}, which is {recorded:?}"),
        );
        let named = claim.is_none_or(|claim| {
            let name = (claim.scope.clone(), claim.key.clone());
            let stands_for = self.model.claims.get(&name);
            stands_for
                .and_then(|value| ClaimValue::parse(value))
                .is_some_and(|value| value.run == made.run)
        });
        self.require(named || made == *key, "one key stands for one run", || {
            format!("{key} is answered with {made}")
        });
        self.accepted.insert(made, digest.clone());
    }

    pub(in super::super) fn resolve_answered(
        &mut self,
        ask: &Ask,
        by: &Caller,
        resolution: &Resolution,
        result: &Result<Reply, Fault>,
    ) {
        let Ok(reply) = result else { return };
        self.reply(reply);
        let chain = ask.spec.caller.links();
        let foreign = !by.links.iter().any(|link| chain.contains(link));
        let may = by.person || (ask.spec.audience == Audience::Any && foreign);
        self.require(may, "only who may decide decides", || {
            format!("{} of {:?} by {by:?}: {resolution:?}", ask.spec.ask_id, ask.spec.audience)
        });
    }

    /// A core says yes to something.
    pub(in super::super) fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Run { run, .. } if run.spec.durability == Durability::Journal => {
                let was = self.model.was(run);
                self.require(was, TOO_EARLY, || format!("the answer is {run:?}"));
            }
            Reply::Repeated(key) => {
                let known = self.model.runs.contains_key(key);
                self.require(known, TOO_EARLY, || format!("the answer is that {key} was made"));
            }
            Reply::Record(AnyRecord::World(world)) => self.world_shown(world),
            Reply::Run { .. } | Reply::Record(_) | Reply::Done => {}
        }
    }
}
