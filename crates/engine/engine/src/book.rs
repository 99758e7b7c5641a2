//! The book of a place: which attempts it was given in this life, and the newest epoch of each
//! shard that it has heard of. By it a shard that is loaded anew learns what goes on, what was never
//! begun, and what is lost.

use std::collections::{BTreeMap, HashMap};

use wharf_ports::EffectId;
use wharf_vocab::{AttemptId, Epoch, Place, RunKey, ShardId};

/// What a place says when it is given an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It begins.
    New,
    /// The place has it already, or had it.
    Known,
    /// Whoever sent it steps the shard no more; it is not begun, now or later.
    Old,
}

/// What a place says of an attempt that the journal calls under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// The place was given it: it goes on, or how it ended is on its way.
    Working,
    /// It began at a place that is gone, and this one took it up again: it goes on, or how it
    /// ended is on its way.
    TakenUp,
    /// The place was never given it and takes it from nobody any more.
    NeverBegun,
    /// The place is gone, with all that it was given.
    Gone,
}

/// What a place knows of the attempts it was given. `T` is what it keeps of each.
#[derive(Debug)]
pub struct Book<T> {
    place: Place,
    /// The latest attempt of each run; an earlier one is over.
    attempts: HashMap<RunKey, (AttemptId, T)>,
    epochs: BTreeMap<ShardId, Epoch>,
}

impl<T> Book<T> {
    /// The empty book of a place that begins its life.
    pub fn new(place: Place) -> Self {
        Self { place, attempts: HashMap::new(), epochs: BTreeMap::new() }
    }

    /// Whose book it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Writes down that an attempt is given to the place, before anybody is given it, so that it
    /// begins once at most.
    pub fn take(&mut self, effect: &EffectId, run: &RunKey, attempt: &AttemptId, kept: T) -> Taken {
        if !self.hear(effect.shard, effect.epoch) {
            return Taken::Old;
        }
        if self.knows(run, attempt) {
            return Taken::Known;
        }
        self.attempts.insert(run.clone(), (attempt.clone(), kept));
        Taken::New
    }

    /// What has become of an attempt that was to be at `place`, for whoever steps its shard under
    /// this epoch; `None` if somebody else has stepped it since.
    pub fn adopt(
        &mut self,
        (shard, epoch): (ShardId, Epoch),
        place: Option<&Place>,
        (run, attempt): (&RunKey, &AttemptId),
    ) -> Option<Adoption> {
        if !self.hear(shard, epoch) {
            return None;
        }
        // An attempt that was taken up again is at another place than where it began.
        let here = place == Some(&self.place);
        Some(match self.knows(run, attempt) {
            true if here => Adoption::Working,
            true => Adoption::TakenUp,
            false if here => Adoption::NeverBegun,
            false => Adoption::Gone,
        })
    }

    /// What is kept of an attempt.
    pub fn kept(&self, run: &RunKey, attempt: &AttemptId) -> Option<&T> {
        let found = self.attempts.get(run).filter(|(known, _)| known == attempt);
        found.map(|(_, kept)| kept)
    }

    /// Keeps this of an attempt that the place was given.
    pub fn keep(&mut self, run: &RunKey, attempt: &AttemptId, kept: T) {
        if let Some((_, known)) = self.attempts.get_mut(run).filter(|(known, _)| known == attempt) {
            *known = kept;
        }
    }

    /// Whether the place was given an attempt.
    pub fn knows(&self, run: &RunKey, attempt: &AttemptId) -> bool {
        self.attempts.get(run).is_some_and(|(known, _)| known == attempt)
    }

    /// That an attempt is over is committed: nobody asks for it any more.
    pub fn over(&mut self, run: &RunKey, attempt: &AttemptId) {
        if self.knows(run, attempt) {
            self.attempts.remove(run);
        }
    }

    /// The attempts that the place was given and that are not over.
    pub fn attempts(&self) -> impl Iterator<Item = (&RunKey, &AttemptId, &T)> {
        self.attempts.iter().map(|(run, (attempt, kept))| (run, attempt, kept))
    }

    /// The newest epoch of a shard that was heard of.
    pub fn epoch(&self, shard: ShardId) -> Epoch {
        self.epochs.get(&shard).copied().unwrap_or_default()
    }

    /// The end of a run is committed: nobody asks for its attempts any more.
    pub fn forget(&mut self, run: &RunKey) {
        self.attempts.remove(run);
    }

    /// Hears that somebody steps a shard under this epoch. Whether nobody has stepped it under a
    /// newer one, as far as is known here.
    pub fn hear(&mut self, shard: ShardId, epoch: Epoch) -> bool {
        let newest = self.epochs.entry(shard).or_default();
        *newest = epoch.max(*newest);
        *newest == epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::{CommitNo, Incarnation, NodeId, RunId, WorldId};

    fn place(incarnation: u64) -> Place {
        let node = NodeId::new("core").expect("valid");
        Place { node, incarnation: Incarnation(incarnation) }
    }

    fn effect(epoch: u64) -> EffectId {
        EffectId { shard: ShardId(7), epoch: Epoch(epoch), commit: CommitNo(1) }
    }

    fn names() -> (RunKey, AttemptId) {
        let world = WorldId::new("w").expect("valid");
        let run = RunKey { world, run: RunId::new("r").expect("valid") };
        (run, AttemptId::in_shard(ShardId(7), "1"))
    }

    #[test]
    fn s030_an_attempt_is_taken_once_and_from_the_newest_owner_only() {
        let mut book = Book::new(place(1));
        let (run, attempt) = names();
        assert_eq!(book.take(&effect(2), &run, &attempt, ()), Taken::New);
        assert_eq!(book.take(&effect(2), &run, &attempt, ()), Taken::Known);
        assert_eq!(book.take(&effect(3), &run, &attempt, ()), Taken::Known);
        let next = AttemptId::in_shard(ShardId(7), "2");
        assert_eq!(book.take(&effect(2), &run, &next, ()), Taken::Old);
        assert_eq!(book.take(&effect(3), &run, &next, ()), Taken::New);
        assert!(!book.knows(&run, &attempt), "it is over");
    }

    #[test]
    fn s030_what_was_never_given_to_a_place_is_never_begun_there() {
        let (mut book, (run, attempt)) = (Book::new(place(1)), names());
        let shard = ShardId(7);
        let here = place(1);
        let asked = (&run, &attempt);
        let found = book.adopt((shard, Epoch(3)), Some(&here), asked);
        assert_eq!(found, Some(Adoption::NeverBegun));
        assert_eq!(book.take(&effect(2), &run, &attempt, ()), Taken::Old, "it comes too late");
        assert_eq!(book.adopt((shard, Epoch(2)), Some(&here), asked), None, "an old owner asks");

        assert_eq!(book.take(&effect(4), &run, &attempt, ()), Taken::New);
        assert_eq!(book.adopt((shard, Epoch(5)), Some(&here), asked), Some(Adoption::Working));
        let (earlier, unknown) = (place(0), None);
        let found = book.adopt((shard, Epoch(5)), Some(&earlier), asked);
        assert_eq!(found, Some(Adoption::TakenUp), "it began elsewhere");
        let other = AttemptId::in_shard(shard, "of an earlier life");
        for place in [Some(&earlier), unknown] {
            let found = book.adopt((shard, Epoch(5)), place, (&run, &other));
            assert_eq!(found, Some(Adoption::Gone));
        }
        book.forget(&run);
        assert!(book.kept(&run, &attempt).is_none());
    }

    #[test]
    fn s030_an_owner_before_is_not_told_that_what_is_over_never_began() {
        let (mut book, (run, attempt)) = (Book::new(place(1)), names());
        assert_eq!(book.take(&effect(1), &run, &attempt, ()), Taken::New);
        assert!(book.hear(ShardId(7), Epoch(3)), "somebody steps it now");
        book.over(&run, &attempt);
        let asked = (ShardId(7), Epoch(2));
        assert_eq!(book.adopt(asked, Some(&place(1)), (&run, &attempt)), None);
        assert!(!book.hear(ShardId(7), Epoch(2)));
    }
}
