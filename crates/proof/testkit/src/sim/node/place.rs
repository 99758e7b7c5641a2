//! A place: where attempts are handed to the providers of one life of a core, whoever steps their
//! shards.

use wharf_domain::Resolution;
use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_engine::book::{Adoption, Taken};
use wharf_engine::shard::Input;
use wharf_ports::Dispatch;
use wharf_vocab::{AttemptId, Code, Epoch, Executed, Fault, Place, RunKey, ShardId, Timestamp};

use super::super::Sim;
use super::super::bus::Message;
use super::super::event::{Event, Order};
use super::super::exercised::Thing;
use super::super::stage::{self, TOOLS};

/// How long a place waits for whoever steps the shard of an attempt now to ask for it.
const UNASKED_MS: u64 = 5_000;

/// What a place keeps of an attempt.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Kept {
    provider: usize,
    /// In which epoch it was last heard of.
    epoch: Epoch,
    /// Since when somebody steps the shard in a later one.
    passed_on: Option<Timestamp>,
}

impl Sim {
    /// An attempt comes to its place; `own` says whether from the core itself.
    pub(in super::super) fn take(
        &mut self,
        node: usize,
        dispatch: Dispatch,
        place: &Place,
        own: bool,
    ) {
        // What was meant for an earlier life is asked for by whoever sent it.
        if *place != self.nodes[node].memory.place {
            return;
        }
        let Some(provider) = stage::tool_of(&dispatch.spec.provider()) else { return };
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let kept = Kept { provider, epoch: dispatch.effect.epoch, passed_on: None };
        let taken = self.nodes[node].memory.book.take(&dispatch.effect, &key, &attempt_id, kept);
        if taken == Taken::Old {
            self.seen.note(Thing::RefusedOld);
        }
        let reattach = dispatch.reattach;
        self.trace(|| {
            let again = if reattach { " again" } else { "" };
            format!("node {node} is given {attempt_id}{again} by {:?}: {taken:?}", dispatch.effect)
        });
        if taken == Taken::Old || (taken == Taken::Known && !reattach) {
            return;
        }
        let owner = own && self.owns(node, dispatch.effect.shard);
        let leased = self.nodes[node].leased_until;
        self.check.hands_over(&attempt_id, self.agenda.now(), leased);
        self.check.dispatched(&dispatch, owner, &mut self.nodes[node].memory.dispatched);
        if let Err(fault) = self.hand_to_provider(node, dispatch) {
            self.seen.note(Thing::DispatchFailed);
            self.trace(|| format!("node {node} cannot hand {attempt_id} over: {fault}"));
            if reattach && fault.is(Code::ToolUnavailable) {
                self.seen.note(Thing::Detached);
                if taken == Taken::New {
                    self.nodes[node].memory.book.over(&key, &attempt_id);
                }
                let input = Input::Detached { key: key.clone(), attempt_id };
                self.route(node, key.shard(), input, None, 0);
            } else {
                let executed = if reattach { Executed::Maybe } else { Executed::No };
                if executed == Executed::No {
                    self.check.never_starts(&attempt_id);
                }
                self.end_here(node, &key, attempt_id, fault, executed);
            }
        }
        self.tell_room(node, provider);
    }

    /// An attempt ends at its place before any provider has it.
    pub(super) fn end_here(
        &mut self,
        node: usize,
        key: &RunKey,
        attempt_id: AttemptId,
        fault: Fault,
        executed: Executed,
    ) {
        let result = Err(AttemptError::Failed(fault, executed));
        let report = AttemptReport::new(result, 0);
        let input = RunInput::AttemptEnded { attempt_id, report };
        let input = Input::Run { key: key.clone(), input, ticket: None };
        self.note_end(node, &input);
        self.route(node, key.shard(), input, None, 0);
    }

    pub(in super::super) fn cancel_here(
        &mut self,
        node: usize,
        provider: usize,
        attempt: AttemptId,
    ) {
        // Whether or not it stops, its place can be had by another.
        self.providers[provider].leave(node, &attempt);
        self.order(provider, node, Order::Cancel(attempt));
        self.tell_room(node, provider);
    }

    pub(in super::super) fn answer_here(
        &mut self,
        node: usize,
        provider: usize,
        attempt: AttemptId,
        key: String,
        resolution: Resolution,
    ) {
        self.order(provider, node, Order::Answer(attempt, key, resolution));
    }

    /// What the place of this core says of an attempt.
    pub(in super::super) fn adopt_here(
        &mut self,
        node: usize,
        (shard, epoch): (ShardId, Epoch),
        place: Option<&Place>,
        (key, attempt): (&RunKey, &AttemptId),
    ) -> Option<Adoption> {
        let book = &mut self.nodes[node].memory.book;
        let found = book.adopt((shard, epoch), place, (key, attempt))?;
        if let Some(kept) = book.kept(key, attempt).copied() {
            book.keep(key, attempt, Kept { epoch, passed_on: None, ..kept });
        }
        if found == Adoption::NeverBegun {
            self.check.never_starts(attempt);
        }
        Some(found)
    }

    /// An attempt is over; one that still goes on is stopped.
    pub(in super::super) fn over_here(
        &mut self,
        node: usize,
        key: &RunKey,
        attempt: &AttemptId,
        stop: bool,
    ) {
        let memory = &mut self.nodes[node].memory;
        let kept = memory.book.kept(key, attempt).copied();
        memory.book.over(key, attempt);
        let ended = memory.ends.remove(attempt).is_some();
        if let Some(kept) = kept.filter(|_| stop && !ended) {
            self.seen.note(Thing::StoppedUnwanted);
            self.cancel_here(node, kept.provider, attempt.clone());
        }
    }

    /// Somebody's place knows an attempt of a shard that this core may step.
    pub(in super::super) fn is_still_wanted(
        &mut self,
        node: usize,
        from: usize,
        key: RunKey,
        attempt: AttemptId,
    ) {
        let memory = &self.nodes[node].memory;
        let Some(shard) = memory.shards.get(&key.shard()) else { return };
        let wanted = shard.run(&key).is_some_and(|view| {
            let active = view.run.and_then(|run| run.active.as_ref());
            // What is on its way may make it the attempt under way.
            view.busy || active.is_some_and(|active| active.id == attempt)
        });
        if !wanted {
            self.say(node, from, Message::Over { key, attempt, stop: true });
        }
    }

    /// A place asks for attempts whose shard has passed on and that nobody has asked for, and
    /// says again how attempts ended of which nobody has said that it is written down.
    pub(super) fn look_after_attempts(&mut self, node: usize) {
        let now = self.agenda.now();
        let memory = &mut self.nodes[node].memory;
        let known = memory.book.attempts().map(|(key, id, kept)| (key.clone(), id.clone(), *kept));
        let mut known: Vec<_> = known.collect();
        // A book is in no order; the same life must give the same words.
        known.sort_by(|a, b| a.1.cmp(&b.1));
        let mut unsure = Vec::new();
        for (key, attempt, mut kept) in known {
            let past = memory.owners.is_past(key.shard(), kept.epoch);
            let since = if past { Some(kept.passed_on.unwrap_or(now)) } else { None };
            let unasked = since.is_some_and(|since| now.ms_since(since) >= UNASKED_MS);
            kept.passed_on = since;
            memory.book.keep(&key, &attempt, kept);
            let ended = memory.ends.get(&attempt).cloned();
            if unasked || ended.is_some() {
                unsure.push((key, attempt, ended));
            }
        }
        for (key, attempt, ended) in unsure {
            let shard = key.shard();
            if let Some(input) = ended {
                self.route(node, shard, input, None, 0);
            }
            let owner = self.nodes[node].memory.owners.of(shard).map(|(owner, _)| owner.clone());
            match owner.and_then(|owner| self.number_of(&owner)) {
                Some(owner) if owner != node => {
                    self.say(node, owner, Message::Still { key, attempt });
                }
                Some(_) => self.is_wanted_here(node, &key, &attempt),
                None => {}
            }
        }
    }

    fn is_wanted_here(&mut self, node: usize, key: &RunKey, attempt: &AttemptId) {
        let Some(shard) = self.nodes[node].memory.shards.get(&key.shard()) else { return };
        let wanted = shard.run(key).is_some_and(|view| {
            let active = view.run.and_then(|run| run.active.as_ref());
            view.busy || active.is_some_and(|active| active.id == *attempt)
        });
        if !wanted {
            self.over_here(node, key, attempt, true);
        }
    }

    /// Earlier lives of a core are gone, or all of it is: attempts that were handed over there are
    /// lost, and its providers are not there any more.
    pub(in super::super) fn place_gone(&mut self, node: usize, gone: usize, now: Option<&Place>) {
        let gone_id = self.nodes[gone].id.clone();
        let is_gone = |place: &Place| place.node == gone_id && Some(place) != now;
        let memory = &mut self.nodes[node].memory;
        let mut lost = Vec::new();
        for (shard, held) in &memory.shards {
            for view in held.runs().filter(|view| view.at.is_some_and(is_gone)) {
                let active = view.run.and_then(|run| run.active.as_ref());
                if let (Some(run), Some(active)) = (view.run, active) {
                    lost.push(((*shard, held.epoch()), run.key.clone(), active.id.clone()));
                }
            }
        }
        lost.sort_by(|a, b| a.2.cmp(&b.2));
        let stale: Vec<_> = memory
            .news
            .iter()
            .filter(|((_, at), news)| *at == gone && is_gone(&news.place))
            .map(|(key, _)| *key)
            .collect();
        for key in stale {
            self.nodes[node].memory.news.remove(&key);
            self.weigh(node, key.0);
        }
        for (at, key, attempt) in lost {
            self.adopted(node, at, key, attempt, Adoption::Gone);
        }
    }

    /// Whoever steps a shard learns what has become of an attempt.
    pub(in super::super) fn adopted(
        &mut self,
        node: usize,
        (shard, epoch): (ShardId, Epoch),
        key: RunKey,
        attempt_id: AttemptId,
        found: Adoption,
    ) {
        // A shard that was loaded anew meanwhile has asked once more.
        let asking = &mut self.nodes[node].memory.asking;
        if asking.get(&attempt_id).is_some_and(|(_, asked, ..)| *asked <= epoch) {
            asking.remove(&attempt_id);
        }
        self.seen.note(found);
        self.trace(|| format!("node {node}: {attempt_id} is {found:?}"));
        let Some(held) = self.nodes[node].memory.shards.get(&shard) else { return };
        let run = held.run(&key).and_then(|view| view.run);
        let dies = run.is_some_and(|run| !run.spec.reattach);
        if found == Adoption::Gone && dies && held.epoch() == epoch {
            self.check.declared_gone(&attempt_id);
        }
        let input = Input::Adopted { key, attempt_id, epoch, found };
        self.nodes[node].memory.queue.push_back((shard, input));
    }

    /// Asks the place of an attempt what has become of it.
    pub(super) fn ask_place(
        &mut self,
        node: usize,
        (shard, epoch): (ShardId, Epoch),
        place: Option<Place>,
        key: RunKey,
        attempt: AttemptId,
    ) {
        let elsewhere = place.as_ref().filter(|place| place.node != self.nodes[node].id);
        let Some(at) = elsewhere.and_then(|place| self.number_of(&place.node)) else {
            let asked = (&key, &attempt);
            if let Some(found) = self.adopt_here(node, (shard, epoch), place.as_ref(), asked) {
                self.adopted(node, (shard, epoch), key, attempt, found);
            }
            return;
        };
        let Some(place) = place else { return };
        let known = self.nodes[node].memory.links.get(&at).and_then(|link| link.peer());
        if known.is_some_and(|life| life > place.incarnation) {
            return self.adopted(node, (shard, epoch), key, attempt, Adoption::Gone);
        }
        let asked = (shard, epoch, key.clone(), place.clone());
        self.nodes[node].memory.asking.insert(attempt.clone(), asked);
        self.say(node, at, Message::Adopt { shard, epoch, place, key, attempt });
    }

    /// What was asked of a place whose core is gone has its answer.
    pub(super) fn answer_for_gone(&mut self, node: usize, gone: usize, now: Option<&Place>) {
        let id = self.nodes[gone].id.clone();
        let asking = self.nodes[node].memory.asking.iter();
        let lost = asking.filter(|(_, (.., place))| place.node == id && Some(place) != now);
        let lost: Vec<_> = lost.map(|(attempt, it)| (attempt.clone(), it.clone())).collect();
        for (attempt, (shard, epoch, key, _)) in lost {
            self.adopted(node, (shard, epoch), key, attempt, Adoption::Gone);
        }
    }

    /// The processes that a core has started end by themselves when it has not said for too long
    /// that it lives.
    pub(in super::super) fn outlives_its_core(&self, provider: usize, home: usize) -> bool {
        let late = self.agenda.now() >= self.nodes[home].children_until;
        late && !TOOLS[provider].reattach
    }

    pub(in super::super) fn look_after(&mut self, node: usize) {
        self.look_after_attempts(node);
        let life = self.nodes[node].life;
        self.agenda.after(UNASKED_MS, Event::LookAfter { node, life });
        self.work(node);
    }
}
