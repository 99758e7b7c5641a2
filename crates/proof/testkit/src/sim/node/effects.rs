//! Performing what shards ask for, as the engine's shell does.

use wharf_domain::Availability;
use wharf_domain::run::{AttemptError, AttemptReport, Run, RunInput};
use wharf_engine::shard::{AnyRecord, Effect, Input};
use wharf_ports::Dispatch;
use wharf_vocab::{Code, Executed, Fault, RunKey, RunStatus, Seq, ShardId};

use super::super::Sim;
use super::super::event::{Chore, Event, Order, Parcel};
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
                if let Some((_, call)) = waiting {
                    self.answered(call, &result);
                }
            }
            Effect::Publish { batch, run } => {
                let owner = self.owns(node, shard);
                let published = &mut self.nodes[node].memory.published;
                self.check.published(&batch, &run, owner, published);
            }
            Effect::RecordChanged(AnyRecord::World(world)) => self.check.world_shown(&world),
            Effect::RecordChanged(_) => {}
            Effect::Dispatch(dispatch) => self.dispatch(node, shard, dispatch),
            Effect::Queue(turn) => {
                self.seen.note(Thing::NoRoom);
                self.nodes[node].memory.turns.push(turn);
            }
            Effect::LeaveQueue { provider, run } => {
                self.nodes[node].memory.turns.remove(&provider, &run);
            }
            Effect::CancelAttempt { provider, attempt_id, .. } => {
                if let Some(provider) = stage::tool_of(&provider) {
                    // Whether or not it stops, its place can be had by another.
                    self.providers[provider].leave(node, &attempt_id);
                    self.order(provider, node, Order::Cancel(attempt_id));
                }
            }
            Effect::Answer { provider, attempt_id, key, resolution } => {
                self.seen.note(Thing::Answer);
                self.check.answer_given(&attempt_id, &key, &resolution);
                if let Some(provider) = stage::tool_of(&provider) {
                    self.order(provider, node, Order::Answer(attempt_id, key, resolution));
                }
            }
            Effect::PutInPlace { run, attempt_id, moves, .. } => {
                self.chore(node, Chore::PutInPlace { run, attempt_id, moves: moves.into() });
            }
            Effect::Send { to, input } => self.send(node, to, *input),
            Effect::AskAfterParent { parent, child } => {
                self.chore(node, Chore::AskAfterParent { parent, child });
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

    fn send(&mut self, node: usize, to: ShardId, input: Input) {
        if self.takes(node, to, &input) {
            return self.nodes[node].memory.queue.push_back((to, input));
        }
        let parcel = Parcel::Input { shard: to, input: Box::new(input), call: None };
        let life = self.nodes[node].life;
        // It goes out by way of this core's own door, which knows who steps the shard.
        self.agenda.after(0, Event::ToNode { node, life, parcel });
    }

    fn dispatch(&mut self, node: usize, shard: ShardId, dispatch: Dispatch) {
        let owner = self.owns(node, shard);
        if dispatch.reattach {
            self.seen.note(Thing::Reattach);
            let provider = dispatch.spec.provider();
            let known = self.nodes[node].memory.catalog.get(&provider);
            if known.is_none_or(|(_, availability)| *availability != Availability::Up) {
                let rule = "an attempt is taken up again once its provider is there";
                self.check.broken(rule, format!("{} is {known:?}", dispatch.run));
            }
        }
        self.check.dispatched(&dispatch, owner, &mut self.nodes[node].memory.dispatched);
        let (key, attempt_id) = (dispatch.run.clone(), dispatch.attempt_id.clone());
        let (reattach, provider) = (dispatch.reattach, dispatch.spec.provider());
        let turns = &mut self.nodes[node].memory.turns;
        let passes = reattach || turns.may_pass(&provider, &key);
        turns.remove(&provider, &key);
        let handed_over = if passes {
            self.hand_to_provider(node, dispatch)
        } else {
            Err(Fault::new(Code::ToolBusy, "Others wait already."))
        };
        if let Err(fault) = handed_over {
            self.seen.note(Thing::DispatchFailed);
            let executed = if reattach { Executed::Maybe } else { Executed::No };
            let result = Err(AttemptError::Failed(fault, executed));
            let report = AttemptReport::new(result, 0);
            let input = RunInput::AttemptEnded { attempt_id, report };
            let input = Input::Run { key, input, ticket: None };
            self.nodes[node].memory.queue.push_back((shard, input));
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

    fn find(&self, key: &RunKey) -> Option<(Box<Run>, Seq)> {
        let stored = self.store.state.load(&key.stream())?;
        Some((Box::new(read_run(&stored)?), stored.seq))
    }

    fn was_called_off(&self, run: &RunKey) -> bool {
        let stored = self.store.state.load(&run.stream());
        let run = stored.as_ref().and_then(read_run);
        run.is_some_and(|run| run.cancel.is_some() || run.status() == RunStatus::Canceled)
    }
}

/// What a sink says when its provider is not connected.
pub(crate) fn not_connected() -> Fault {
    Fault::new(Code::ToolUnavailable, "The provider is not connected.")
}
