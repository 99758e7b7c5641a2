//! The bus between cores: it loses, repeats and reorders frames, and now and then it splits, so
//! that cores on two sides do not hear each other.

use std::collections::BTreeSet;

use wharf_domain::{Availability, Resolution};
use wharf_engine::book::Adoption;
use wharf_engine::link::{Frame, Link};
use wharf_engine::shard::{Input, Reply, UnloadedShard};
use wharf_ports::Dispatch;
use wharf_vocab::{AttemptId, Durability, Epoch, Fault, Place, RunKey, ShardId, Timestamp};

use super::Sim;
use super::event::Event;
use super::exercised::Thing;
use super::node::{Origin, busy};

/// How long a core waits for a frame to be confirmed before it sends it again: twice as long each
/// time, up to a bound.
const RESEND_MS: u64 = 400;
const RESEND_MS_MAX: u64 = 3_000;
/// Frames that are sent again at once.
const RESENT_MAX: usize = 32;

/// What one core says to another.
#[derive(Debug, Clone)]
pub(super) enum Message {
    /// An input for a shard that the receiver steps, as far as the sender knows.
    Input { shard: ShardId, input: Box<Input>, origin: Origin, hops: u8 },
    /// The answer to a call.
    Answer { life: u32, call: u64, result: Result<Reply, Fault> },
    /// An attempt for a provider of the receiver, at this place.
    Deliver { dispatch: Box<Dispatch>, place: Place },
    /// An attempt is to stop.
    Cancel { provider: usize, attempt: AttemptId },
    /// An ask of an attempt has ended.
    Told { provider: usize, attempt: AttemptId, key: String, resolution: Resolution },
    /// What has become of an attempt?
    Adopt { shard: ShardId, epoch: Epoch, place: Place, key: RunKey, attempt: AttemptId },
    /// This has become of it.
    Adopted { shard: ShardId, epoch: Epoch, key: RunKey, attempt: AttemptId, found: Adoption },
    /// An attempt is over: nobody need speak of it any more, or work on it.
    Over { key: RunKey, attempt: AttemptId, stop: bool },
    /// An attempt is known at the sender's place; is it still wanted?
    Still { key: RunKey, attempt: AttemptId },
    /// What providers can do at the sender's place.
    News(Vec<ProviderNews>),
    /// The sender steps these shards.
    Holds(Vec<(ShardId, Epoch)>),
    /// The receiver steps a shard from now on; this is what was said to it and is not written down.
    Moved { shard: ShardId, epoch: Epoch, left: UnloadedShard, waiting: Vec<(Input, Origin)> },
}

/// What a provider can do at a place.
#[derive(Debug, Clone)]
pub(super) struct ProviderNews {
    pub(super) provider: usize,
    pub(super) version: u64,
    pub(super) availability: Availability,
    pub(super) under_way: usize,
}

/// What the bus is like.
#[derive(Debug, Default)]
pub(super) struct Bus {
    /// Frames that are lost, of a hundred.
    pub(super) loses: u64,
    /// Frames that come twice, of a hundred.
    pub(super) repeats: u64,
    pub(super) split: Option<Split>,
}

/// What does not pass between two sides.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// The cores of one side.
    pub(super) side: BTreeSet<usize>,
    /// When it is over.
    pub(super) until: Timestamp,
    /// Whether only what this side says is lost, and it hears the others all the while.
    pub(super) one_way: bool,
}

impl Bus {
    pub(super) fn carries(&self, from: usize, to: usize, now: Timestamp) -> bool {
        let Some(Split { side, until, one_way }) = &self.split else { return true };
        let (speaks, hears) = (side.contains(&from), side.contains(&to));
        *until <= now || speaks == hears || (*one_way && hears)
    }
}

impl Sim {
    /// Says something to another core.
    pub(super) fn say(&mut self, node: usize, to: usize, message: Message) {
        let frame = self.link(node, to).send(message);
        self.put_on_bus(node, to, frame);
        self.resend_later(node, to);
    }

    fn link(&mut self, node: usize, to: usize) -> &mut Link<Message> {
        let memory = &mut self.nodes[node].memory;
        let here = &memory.place;
        memory.links.entry(to).or_insert_with(|| Link::of(here.clone()))
    }

    /// Makes itself known to all others.
    pub(super) fn greet(&mut self, node: usize) {
        for to in (0..self.nodes.len()).filter(|to| *to != node) {
            let frame = self.link(node, to).confirm();
            self.put_on_bus(node, to, frame);
        }
    }

    fn put_on_bus(&mut self, node: usize, to: usize, frame: Frame<Message>) {
        let now = self.agenda.now();
        if !self.bus.carries(node, to, now) {
            let one_way = self.bus.split.as_ref().is_some_and(|split| split.one_way);
            return self.seen.note(if one_way { Thing::OneWay } else { Thing::SplitBus });
        }
        if self.chance.percent(self.bus.loses) {
            return self.seen.note(Thing::FrameLost);
        }
        let frame = Box::new(frame);
        if self.chance.percent(self.bus.repeats) {
            self.seen.note(Thing::FrameRepeated);
            let latency = self.latency();
            self.agenda.after(latency, Event::Frame { from: node, to, frame: frame.clone() });
        }
        let latency = self.latency();
        self.agenda.after(latency, Event::Frame { from: node, to, frame });
    }

    fn resend_later(&mut self, node: usize, to: usize) {
        let life = self.nodes[node].life;
        let pauses = &mut self.nodes[node].memory.resending;
        if let std::collections::btree_map::Entry::Vacant(pause) = pauses.entry(to) {
            pause.insert(RESEND_MS);
            self.agenda.after(RESEND_MS, Event::Resend { node, life, to });
        }
    }

    pub(super) fn resend(&mut self, node: usize, to: usize) {
        let frames = self.link(node, to).again();
        let pauses = &mut self.nodes[node].memory.resending;
        if frames.is_empty() {
            pauses.remove(&to);
            return;
        }
        let pause = pauses.entry(to).or_insert(RESEND_MS);
        *pause = (*pause * 2).min(RESEND_MS_MAX);
        let (after, life) = (*pause, self.nodes[node].life);
        self.agenda.after(after, Event::Resend { node, life, to });
        // What is far behind comes later.
        for frame in frames.into_iter().take(RESENT_MAX) {
            self.put_on_bus(node, to, frame);
        }
    }

    /// A frame arrives.
    pub(super) fn framed(&mut self, from: usize, to: usize, frame: Box<Frame<Message>>) {
        let now = self.agenda.now();
        let node = &self.nodes[to];
        if !node.up {
            return;
        }
        if node.frozen_until > now {
            let until = node.frozen_until;
            return self.agenda.at(until, Event::Frame { from, to, frame });
        }
        // A core that may not act hears nothing; it is told again.
        if !self.is_safe(to) {
            return;
        }
        let place = frame.from.clone();
        let heard = self.link(to, from).hear(*frame);
        if heard.answer {
            let confirm = self.link(to, from).confirm();
            self.put_on_bus(to, from, confirm);
        }
        if heard.new_life {
            self.gone_for_all(to, from, Some(&place));
        }
        for message in heard.returned {
            self.returned(to, message);
        }
        if self.nodes[to].memory.met.insert(place) {
            self.tell_all_news(to, from);
        }
        for message in heard.messages {
            if self.nodes[to].up {
                self.told(to, from, message);
            }
        }
        if self.nodes[to].up {
            self.work(to);
        }
    }

    /// What was said to a life that is gone, and may have been heard or not.
    fn returned(&mut self, node: usize, message: Message) {
        match message {
            Message::Input { shard, input, origin, .. } => {
                if !makes_in_memory(&input) {
                    return self.route(node, shard, *input, origin, 0);
                }
                // Nothing tells whether the run was made, so it is not asked for again.
                if let Some(origin) = origin {
                    self.answer(node, origin, Err(busy("Nobody knows whether it was made.")));
                }
            }
            Message::Moved { waiting, shard, .. } => {
                for (input, origin) in waiting {
                    self.route(node, shard, input, origin, 0);
                }
            }
            // A life that begins asks anew; of places that are gone all is known.
            _ => {}
        }
    }

    fn told(&mut self, node: usize, from: usize, message: Message) {
        match message {
            Message::Input { shard, input, origin, hops } => {
                self.seen.note(Thing::Forwarded);
                self.route(node, shard, *input, origin, hops);
            }
            Message::Answer { life, call, result } => {
                if life == self.nodes[node].life && self.nodes[node].memory.far_calls.remove(&call)
                {
                    self.answered(call, &result);
                }
            }
            Message::Deliver { dispatch, place } => {
                self.seen.note(Thing::Delivered);
                self.take(node, *dispatch, &place, false);
            }
            Message::Cancel { provider, attempt } => self.cancel_here(node, provider, attempt),
            Message::Told { provider, attempt, key, resolution } => {
                self.answer_here(node, provider, attempt, key, resolution);
            }
            Message::Adopt { shard, epoch, place, key, attempt } => {
                let found = self.adopt_here(node, (shard, epoch), Some(&place), (&key, &attempt));
                if let Some(found) = found {
                    self.seen.note(Thing::AskedElsewhere);
                    self.say(node, from, Message::Adopted { shard, epoch, key, attempt, found });
                }
            }
            Message::Adopted { shard, epoch, key, attempt, found } => {
                self.adopted(node, (shard, epoch), key, attempt, found);
            }
            Message::Over { key, attempt, stop } => self.over_here(node, &key, &attempt, stop),
            Message::Still { key, attempt } => self.is_still_wanted(node, from, key, attempt),
            Message::News(news) => self.hear_news(node, from, news),
            Message::Holds(held) => {
                let id = self.nodes[from].id.clone();
                let memory = &mut self.nodes[node].memory;
                for (shard, epoch) in held {
                    memory.owners.hear(shard, &id, epoch);
                    memory.book.hear(shard, epoch);
                }
            }
            Message::Moved { shard, epoch, left, waiting } => {
                self.moved_here(node, (shard, epoch), left, waiting);
            }
        }
    }
}

/// Whether an input asks for a run that no store will know.
fn makes_in_memory(input: &Input) -> bool {
    matches!(input, Input::Create(create) if create.spec.durability == Durability::Memory)
}
