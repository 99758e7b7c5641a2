//! What two cores say to each other, in order and once each, over a bus that loses, repeats and
//! reorders.
//!
//! One end of a link numbers what it sends and keeps it until the other end has said that it has
//! it. Numbers begin anew with each life of either end, and what a life that is gone did not
//! confirm is given back to its sender: the one thing that only the sender knows what to do with.
//! Later lives have larger incarnations.

use std::collections::BTreeMap;

use wharf_vocab::{Incarnation, Place};

/// Messages ahead of the next that are kept; others come again.
const EARLY_MAX: usize = 1024;

/// What travels between two cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame<M> {
    /// Who sends it.
    pub from: Place,
    /// The life of the receiver that it is meant for, once that is known.
    pub to: Option<Incarnation>,
    /// Up to which number everything was received from that life.
    pub heard: u64,
    /// A message with its number; none in a frame that only confirms.
    pub message: Option<(u64, M)>,
}

/// One end of a link.
#[derive(Debug)]
pub struct Link<M> {
    here: Place,
    /// The life at the other end, once it was heard.
    peer: Option<Incarnation>,
    sent: u64,
    unconfirmed: BTreeMap<u64, M>,
    heard: u64,
    early: BTreeMap<u64, M>,
}

/// What follows from a frame.
#[derive(Debug, PartialEq)]
pub struct Heard<M> {
    /// Messages, in order.
    pub messages: Vec<M>,
    /// What was sent to an earlier life of the peer, in order. It may have come there or not.
    pub returned: Vec<M>,
    /// Whether the peer waits to be told how far it was heard.
    pub answer: bool,
    /// Whether another life of the peer than before speaks.
    pub new_life: bool,
}

impl<M: Clone> Link<M> {
    /// A link of this life of a core, over which nothing was said.
    pub fn of(here: Place) -> Self {
        let (unconfirmed, early) = (BTreeMap::new(), BTreeMap::new());
        Self { here, peer: None, sent: 0, unconfirmed, heard: 0, early }
    }

    /// Sends a message.
    pub fn send(&mut self, message: M) -> Frame<M> {
        self.sent += 1;
        self.unconfirmed.insert(self.sent, message.clone());
        self.frame(Some((self.sent, message)))
    }

    /// A frame that only says how far the peer was heard.
    pub fn confirm(&self) -> Frame<M> {
        self.frame(None)
    }

    /// What is to be sent again, in order; nothing if all was confirmed.
    pub fn again(&self) -> Vec<Frame<M>> {
        let frame = |(number, message): (&u64, &M)| self.frame(Some((*number, message.clone())));
        self.unconfirmed.iter().map(frame).collect()
    }

    /// Whether everything that was sent was confirmed.
    pub fn is_quiet(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// The life at the other end, once it was heard.
    pub fn peer(&self) -> Option<Incarnation> {
        self.peer
    }

    /// Takes a frame.
    pub fn hear(&mut self, frame: Frame<M>) -> Heard<M> {
        let life = frame.from.incarnation;
        let mut heard =
            Heard { messages: Vec::new(), returned: Vec::new(), answer: false, new_life: false };
        if self.peer.is_some_and(|known| life < known) {
            return heard;
        }
        if self.peer != Some(life) {
            heard.new_life = self.peer.is_some();
            heard.returned = self.meet(life);
        }
        // What was meant for another life than this is not taken. Its sender learns who is here,
        // and sends again what is meant for whoever it is.
        if frame.to != Some(self.here.incarnation) {
            heard.answer = true;
            return heard;
        }
        self.unconfirmed.retain(|number, _| *number > frame.heard);
        if let Some((number, message)) = frame.message {
            heard.answer = true;
            if number > self.heard && self.early.len() < EARLY_MAX {
                self.early.insert(number, message);
            }
            while let Some(message) = self.early.remove(&(self.heard + 1)) {
                self.heard += 1;
                heard.messages.push(message);
            }
        }
        heard
    }

    /// Another life speaks: what an earlier one did not confirm is given back. What was sent
    /// before any life was heard is meant for whichever it is.
    fn meet(&mut self, life: Incarnation) -> Vec<M> {
        let first = self.peer.replace(life).is_none();
        (self.heard, self.early) = (0, BTreeMap::new());
        if first {
            return Vec::new();
        }
        self.sent = 0;
        std::mem::take(&mut self.unconfirmed).into_values().collect()
    }

    fn frame(&self, message: Option<(u64, M)>) -> Frame<M> {
        Frame { from: self.here.clone(), to: self.peer, heard: self.heard, message }
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::Fresh as _;
    use wharf_vocab::NodeId;

    use super::*;
    use crate::Seeded;

    fn place(node: &str, life: u64) -> Place {
        Place { node: NodeId::new(node).expect("valid"), incarnation: Incarnation(life) }
    }

    /// Lets all that is on the way arrive, some of it never, some twice, and in any order.
    fn carry(
        ends: &mut [Link<u32>; 2],
        bus: &mut Vec<(usize, Frame<u32>)>,
        seen: &mut [Vec<u32>; 2],
        chance: &mut Seeded,
    ) {
        while !bus.is_empty() {
            let at = usize::try_from(chance.random() % bus.len() as u64).expect("small");
            let (to, frame) = match chance.random() % 10 {
                0..=2 => bus[at].clone(),
                _ => bus.swap_remove(at),
            };
            if chance.random().is_multiple_of(4) {
                continue;
            }
            let heard = ends[to].hear(frame);
            assert_eq!(heard.returned, [0_u32; 0], "nobody died");
            seen[to].extend(heard.messages);
            if heard.answer {
                bus.push((1 - to, ends[to].confirm()));
            }
        }
    }

    #[test]
    fn s032_what_is_said_arrives_once_and_in_order_whatever_the_bus_does() {
        for seed in 0..200 {
            let mut chance = Seeded::new(seed);
            let mut ends = [Link::of(place("a", 1)), Link::of(place("b", 1))];
            let (mut bus, mut seen, mut said) = (Vec::new(), [Vec::new(), Vec::new()], [0, 0]);
            for round in 0.. {
                for from in 0..2 {
                    if said[from] < 20 && chance.random().is_multiple_of(2) {
                        said[from] += 1;
                        let frame = ends[from].send(said[from]);
                        bus.push((1 - from, frame));
                    }
                    bus.extend(ends[from].again().into_iter().map(|frame| (1 - from, frame)));
                }
                carry(&mut ends, &mut bus, &mut seen, &mut chance);
                if said == [20, 20] && ends.iter().all(Link::is_quiet) {
                    break;
                }
                assert!(round < 1_000, "seed {seed}: {ends:?}");
            }
            let all: Vec<u32> = (1..=20).collect();
            assert_eq!(seen, [all.clone(), all], "seed {seed}");
        }
    }

    #[test]
    fn s032_what_a_life_that_is_gone_did_not_confirm_is_given_back() {
        let (mut a, mut b) = (Link::of(place("a", 1)), Link::of(place("b", 1)));
        let unknown = a.send(1);
        assert_eq!(b.hear(unknown).messages, [0_u32; 0], "meant for nobody yet");
        a.hear(b.confirm());
        let (first, second) = (a.again().remove(0), a.send(2));
        assert_eq!(b.hear(first).messages, [1]);
        let confirmed = b.confirm();
        a.hear(confirmed);
        let third = a.send(3);
        assert_eq!(a.again().len(), 2, "only the first was confirmed");

        let mut b = Link::of(place("b", 2));
        assert!(b.hear(second).messages.is_empty(), "it was meant for the earlier life");
        let heard = b.hear(third);
        assert!(heard.messages.is_empty() && heard.answer, "it was meant for the earlier life");
        let told = a.hear(b.confirm());
        assert_eq!((told.returned, told.new_life), (vec![2, 3], true));
        assert_eq!(b.hear(a.send(4)).messages, [4], "numbers begin anew");

        let to = Some(Incarnation(1));
        let late = Frame { from: place("b", 1), to, heard: 9, message: Some((1, 9)) };
        let ignored = a.hear(late);
        assert!(ignored.messages.is_empty() && !ignored.answer, "whoever is gone says nothing");
    }
}
