//! Finding whoever steps a shard, by what this core knows, and bringing answers back.

use wharf_domain::run::RunInput;
use wharf_engine::shard::{Input, Reply, Ticket};
use wharf_vocab::{Code, Fault, NodeId, ShardId};

use super::super::Sim;
use super::super::bus::Message;
use super::super::event::{Event, Parcel};
use super::super::exercised::Thing;

/// How long something waits before it is sent on to a shard that nobody steps at the moment.
const NOBODY_HOME_MS: u64 = 700;
/// How often a call is sent on before its caller is told to try again.
const TRIES_MAX: u8 = 10;
/// Cores that send something on to each other before it waits.
const HOPS_MAX: u8 = 3;
/// How long a core waits for the answer of another one.
const FAR_CALL_MS: u64 = 8_000;

/// Who waits for an answer: a call that came to a life of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct CallAt {
    pub(in super::super) node: usize,
    pub(in super::super) life: u32,
    pub(in super::super) call: u64,
}

/// Who waits for an answer, if anybody does.
pub(in super::super) type Origin = Option<CallAt>;

impl Sim {
    /// Brings an input to whoever steps its shard.
    pub(in super::super) fn route(
        &mut self,
        node: usize,
        shard: ShardId,
        mut input: Input,
        origin: Origin,
        hops: u8,
    ) {
        let memory = &mut self.nodes[node].memory;
        if let Some(leaving) = memory.leaving.get_mut(&shard) {
            return leaving.waiting.push((input, origin));
        }
        if memory.shards.contains_key(&shard) {
            if let Some(origin) = origin {
                memory.last_ticket += 1;
                let ticket = Ticket(memory.last_ticket);
                input.set_ticket(ticket);
                memory.answers.insert(ticket, (shard, origin));
            }
            return memory.queue.push_back((shard, input));
        }
        let loading = memory.loading.contains(&shard);
        let owner = memory.owners.of(shard).map(|(owner, _)| owner.clone());
        let owner = owner.and_then(|owner| self.number_of(&owner));
        match owner.filter(|owner| *owner != node && !loading && hops < HOPS_MAX) {
            Some(owner) => {
                self.wait_for_far(node, origin);
                let (input, hops) = (Box::new(input), hops + 1);
                self.say(node, owner, Message::Input { shard, input, origin, hops });
            }
            None => self.park(node, shard, input, origin, 0),
        }
    }

    pub(super) fn wait_for_far(&mut self, node: usize, origin: Origin) {
        let life = self.nodes[node].life;
        let Some(origin) = origin.filter(|origin| origin.node == node && origin.life == life)
        else {
            return;
        };
        if self.nodes[node].memory.far_calls.insert(origin.call) {
            let call = origin.call;
            self.agenda.after(FAR_CALL_MS, Event::CallTimeout { node, life, call });
        }
    }

    /// Nobody is known to step the shard at the moment.
    fn park(&mut self, node: usize, shard: ShardId, input: Input, origin: Origin, tries: u8) {
        if let Some(waiting) = origin
            && tries >= TRIES_MAX
        {
            return self.answer(node, waiting, Err(busy("Nobody has this part of the store.")));
        }
        self.seen.note(Thing::NobodyHome);
        let life = self.nodes[node].life;
        let parcel = Parcel::Parked { shard, input: Box::new(input), origin, tries: tries + 1 };
        self.agenda.after(NOBODY_HOME_MS, Event::ToNode { node, life, parcel });
    }

    pub(super) fn unpark(
        &mut self,
        node: usize,
        shard: ShardId,
        input: Input,
        origin: Origin,
        tries: u8,
    ) {
        let memory = &self.nodes[node].memory;
        let here = memory.shards.contains_key(&shard) || memory.leaving.contains_key(&shard);
        let owner = memory.owners.of(shard).map(|(owner, _)| owner.clone());
        let elsewhere = owner.is_some_and(|owner| owner != self.nodes[node].id)
            && !memory.loading.contains(&shard);
        if here || elsewhere {
            self.route(node, shard, input, origin, 0);
        } else {
            self.park(node, shard, input, origin, tries);
        }
    }

    /// Brings an answer to whoever waits for it.
    pub(in super::super) fn answer(
        &mut self,
        node: usize,
        origin: CallAt,
        result: Result<Reply, Fault>,
    ) {
        let CallAt { node: to, life, call } = origin;
        if to != node {
            return self.say(node, to, Message::Answer { life, call, result });
        }
        if self.nodes[node].life == life {
            self.nodes[node].memory.far_calls.remove(&call);
            self.answered(call, &result);
        }
    }

    /// Another core has not answered for long.
    pub(in super::super) fn far_call_timed_out(&mut self, node: usize, call: u64) {
        if self.nodes[node].memory.far_calls.remove(&call) {
            self.seen.note(Thing::FarTimeout);
            self.answered(call, &Err(busy("Another core does not answer.")));
        }
    }

    pub(in super::super) fn number_of(&self, id: &NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == *id)
    }

    /// An input for a shard that the core has lost meanwhile.
    pub(super) fn gone(&mut self, node: usize, shard: ShardId, input: Input) {
        match &input {
            Input::Committed(_)
            | Input::Refused(..)
            | Input::Failed(..)
            | Input::ProviderChanged(_)
            | Input::Adopted { .. }
            | Input::Tick => return,
            _ => {}
        }
        // Its answer went when the shard went.
        if input.ticket().is_none() {
            self.route(node, shard, input, None, 0);
        }
    }

    /// What a place was told of an attempt comes to the core that has the place first.
    pub(super) fn note_end(&mut self, node: usize, input: &Input) {
        if let Input::Run { key, input: RunInput::AttemptEnded { attempt_id, .. }, .. } = input {
            let memory = &mut self.nodes[node].memory;
            if memory.book.knows(key, attempt_id) {
                memory.ends.entry(attempt_id.clone()).or_insert_with(|| input.clone());
            }
        }
    }
}

pub(in super::super) fn busy(message: &str) -> Fault {
    Fault::new(Code::CoreBusy, message)
}
