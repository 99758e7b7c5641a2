//! Performing what shards ask for, as the engine's shell does.

use wharf_domain::Availability;
use wharf_domain::run::{AttemptError, AttemptReport, Run, RunInput};
use wharf_engine::shard::{AnyRecord, Effect, Input};
use wharf_ports::Dispatch;
use wharf_vocab::{Code, Executed, Fault, Place, RunKey, RunStatus, Seq, ShardId};

use super::super::Sim;
use super::super::bus::Message;
use super::super::event::{Chore, Event};
use super::super::exercised::Thing;
use super::super::stage;
use super::read_run;

/// How long the core waits before it asks a store again that could not be read.
const READ_AGAIN_MS: u64 = 250;

impl Sim {
    pub(super) fn perform(&mut self, node: usize, shard: ShardId, effect: Effect) {
        match effect {
            Effect::Reply { ticket, result } => {
                let waiting = self.nodes[node].memory.answers.remove(&ticket);
                if let Some((_, origin)) = waiting {
                    self.answer(node, origin, result);
                }
            }
            Effect::Publish { batch, run } => {
                let owner = self.owns(node, shard);
                let published = &mut self.nodes[node].memory.published;
                self.check.published(&batch, &run, owner, published);
            }
            Effect::RecordChanged(AnyRecord::World(world)) => self.check.world_shown(&world),
            Effect::RecordChanged(_) => {}
            Effect::Dispatch { dispatch, place } => self.dispatch(node, shard, *dispatch, place),
            Effect::AttemptOver { place, key, attempt_id } => match self.elsewhere(node, &place) {
                Some(to) => {
                    let over = Message::Over { key, attempt: attempt_id, stop: false };
                    self.say(node, to, over);
                }
                None => self.over_here(node, &key, &attempt_id, false),
            },
            Effect::Queue(turn) => {
                self.seen.note(Thing::NoRoom);
                self.nodes[node].memory.turns.push(turn);
            }
            Effect::LeaveQueue { provider, run } => {
                self.nodes[node].memory.turns.remove(&provider, &run);
            }
            Effect::CancelAttempt { provider, place, attempt_id: attempt, .. } => {
                let Some(provider) = stage::tool_of(&provider) else { return };
                match self.elsewhere(node, &place) {
                    Some(to) => self.say(node, to, Message::Cancel { provider, attempt }),
                    None => self.cancel_here(node, provider, attempt),
                }
            }
            Effect::Answer { provider, place, attempt_id: attempt, key, resolution } => {
                self.seen.note(Thing::Answer);
                self.check.answer_given(&attempt, &key, &resolution);
                let Some(provider) = stage::tool_of(&provider) else { return };
                match self.elsewhere(node, &place) {
                    Some(to) => {
                        self.say(node, to, Message::Told { provider, attempt, key, resolution });
                    }
                    None => self.answer_here(node, provider, attempt, key, resolution),
                }
            }
            Effect::PutInPlace { run, attempt_id, moves, .. } => {
                self.chore(node, Chore::PutInPlace { run, attempt_id, moves: moves.into() });
            }
            Effect::Send { to, input } => self.send_or_lose(node, to, *input),
            Effect::Flow { run, work } => self.chore(node, Chore::Flow(run, Box::new(work))),
            Effect::AskAfterParent { parent, child } => {
                self.chore(node, Chore::AskAfterParent { parent, child });
            }
            Effect::Adopt { place, key, attempt_id, epoch } => {
                self.ask_place(node, (shard, epoch), place, key, attempt_id);
            }
            Effect::LookUp { key, epoch } => self.chore(node, Chore::LookUp(key, epoch)),
            Effect::FindEnded { key, cost } => {
                self.chore(node, Chore::FindEnded(key, Box::new(cost)))
            }
            Effect::LookUpRecord { stream, epoch } => {
                self.chore(node, Chore::LookUpRecord(stream, epoch));
            }
            Effect::Reload => {
                self.nodes[node].memory.reload.insert(shard);
            }
        }
    }

    pub(in super::super) fn send(&mut self, node: usize, to: ShardId, input: Input) {
        self.route(node, to, input, None, 0);
    }

    /// Which other core a place belongs to.
    fn elsewhere(&self, node: usize, place: &Option<Place>) -> Option<usize> {
        let other = place.as_ref().filter(|place| place.node != self.nodes[node].id)?;
        self.number_of(&other.node)
    }

    /// An attempt goes to its place, here or at another core.
    fn dispatch(&mut self, node: usize, shard: ShardId, dispatch: Dispatch, place: Option<Place>) {
        let provider = dispatch.spec.provider();
        if dispatch.reattach {
            self.seen.note(Thing::Reattach);
            let known = self.nodes[node].memory.providers.availability(&provider);
            if known != Availability::Up {
                let rule = "an attempt is taken up again once its provider is there";
                self.check.broken(rule, format!("{} is {known:?}", dispatch.run));
            }
        }
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let turns = &mut self.nodes[node].memory.turns;
        let passes = dispatch.reattach || turns.may_pass(&provider, &key);
        turns.remove(&provider, &key);
        if !passes {
            self.seen.note(Thing::DispatchFailed);
            self.check.never_starts(&attempt_id);
            let fault = Fault::new(Code::ToolBusy, "Others wait already.");
            let result = Err(AttemptError::Failed(fault, Executed::No));
            let report = AttemptReport::new(result, 0);
            let input = RunInput::AttemptEnded { attempt_id, report };
            let input = Input::Run { key, input, ticket: None };
            return self.nodes[node].memory.queue.push_back((shard, input));
        }
        let place = place.unwrap_or_else(|| self.nodes[node].memory.place.clone());
        match self.elsewhere(node, &Some(place.clone())) {
            Some(to) => {
                let dispatch = Box::new(dispatch);
                self.say(node, to, Message::Deliver { dispatch, place });
            }
            None => self.take(node, dispatch, &place, true),
        }
    }

    fn chore(&mut self, node: usize, chore: Chore) {
        let latency = self.store.latency(&mut self.chance);
        let life = self.nodes[node].life;
        self.agenda.after(latency, Event::Chore { node, life, chore });
    }

    pub(in super::super) fn do_chore(&mut self, node: usize, chore: Chore) {
        let cut = self.is_cut(node);
        if !self.store.readable(&mut self.chance, cut) {
            let life = self.nodes[node].life;
            return self.agenda.after(READ_AGAIN_MS, Event::Chore { node, life, chore });
        }
        match chore {
            Chore::AskAfterParent { parent, child } => {
                if self.was_called_off(&parent)
                    && let Effect::Send { to, input } = Effect::cancel_child(&child)
                {
                    self.send(node, to, *input);
                }
            }
            Chore::FindEnded(key, cost) => {
                let found = self.find(&key);
                self.seen.note(Thing::LateCost);
                self.send(node, key.shard(), Input::LateCost { key, cost: *cost, found });
            }
            Chore::LookUp(key, epoch) => {
                let found = self.find(&key);
                if found.is_some() {
                    self.seen.note(Thing::Found);
                }
                self.send(node, key.shard(), Input::LookedUp { key, epoch, found });
            }
            Chore::LookUpRecord(stream, epoch) => {
                let stored = self.store.state.load(&stream);
                let found = stored.and_then(|stored| {
                    Some((AnyRecord::replay(&stream, &stored.entries)?, stored.seq))
                });
                self.seen.note(Thing::RecordFound);
                let to = stream.shard();
                self.send(node, to, Input::RecordLookedUp { stream, epoch, found });
            }
            Chore::Flow(run, work) => self.work_for_flow(node, &run, *work),
            Chore::PutInPlace { run, attempt_id, mut moves } => {
                if let Some(one) = moves.pop_front() {
                    self.check.put_in_place(&run, &attempt_id, &one, &mut self.seen);
                    self.trace(|| format!("node {node} puts {} in its place", one.to));
                    return self.chore(node, Chore::PutInPlace { run, attempt_id, moves });
                }
                let input = RunInput::Published { attempt_id, lost: Vec::new() };
                let to = run.shard();
                self.send(node, to, Input::Run { key: run, input, ticket: None });
            }
        }
        self.work(node);
    }

    pub(in super::super) fn find(&self, key: &RunKey) -> Option<(Box<Run>, Seq)> {
        let stored = self.store.state.load(&key.stream())?;
        Some((Box::new(read_run(&stored)?), stored.seq))
    }

    fn was_called_off(&self, run: &RunKey) -> bool {
        let stored = self.store.state.load(&run.stream());
        let run = stored.as_ref().and_then(read_run);
        run.is_some_and(|run| {
            let over = run.is_over() && run.steps.is_some();
            run.cancel.is_some() || run.status() == RunStatus::Canceled || over
        })
    }
}

/// What a sink says when its provider is not connected.
pub(crate) fn not_connected() -> Fault {
    Fault::new(Code::ToolUnavailable, "The provider is not connected.")
}
