//! Whether an attempt may join the queue, and what is told where it may not.

use wharf_vocab::{Code, Fault, Isolation, WorldId};

use super::slot::{PoolSlot, SlotOwner};
use super::{INSTANCES_MAX, Pool, Upkeep};

/// Attempts that may wait for a process; others wait in line with the engine.
pub(super) const WAITING_MAX: usize = 64;
/// Attempts that may wait for a process that is there to take them.
const QUEUE_MAX: usize = 512;

impl Pool {
    /// Whether an attempt in a world would be taken beside so many others that are about to come.
    pub(crate) fn has_room(&self, world: &WorldId, coming: usize) -> bool {
        // What would be refused for another reason is told that at once.
        self.blocked.is_some()
            || self.admit(world, coming).err().is_none_or(|fault| !fault.is(Code::ToolBusy))
    }

    /// Whether an attempt in a world may join the queue, beside so many others that are about to.
    pub(super) fn admit(&self, world: &WorldId, coming: usize) -> Result<(), Fault> {
        let word = self.policy.word;
        if self.draining {
            let message = format!("The {word} finishes what it has and then stops.");
            return Err(Fault::new(Code::ToolUnavailable, message));
        }
        let queued = self.queue.len() + coming;
        if queued >= QUEUE_MAX || self.calls_max.is_some_and(|max| self.calls() + queued >= max) {
            return Err(too_much(word));
        }
        let fits = |at: usize, before: usize| match self.slots[at].is_busy(before + coming) {
            true => Err(too_much(word)),
            false => Ok(()),
        };
        // How many processes are wanted by those that wait and have none, this one included.
        let wanted = match self.policy.isolation {
            Isolation::Shared => match self.best() {
                Some(at) => return fits(at, self.queue.len()),
                None if self.policy.upkeep == Upkeep::Always => return Err(gone(word)),
                None => 0,
            },
            Isolation::World => {
                let homeless = self.homeless_worlds();
                match self.of_world(world) {
                    Some(at) => return fits(at, self.queued_of(world)),
                    None if homeless.contains(world) => 0,
                    None => homeless.len() + coming + 1,
                }
            }
            Isolation::Run => queued + 1,
        };
        let is_spare = |slot: &&PoolSlot| slot.owner == SlotOwner::Spare && slot.is_usable();
        if wanted > 0 && self.slots.iter().filter(is_spare).count() >= wanted {
            return Ok(());
        }
        let owned = self.slots.iter().filter(|slot| slot.owner != SlotOwner::Spare).count();
        if wanted > 0 && owned + wanted > INSTANCES_MAX {
            let message = format!("The {word} has as many processes as it may; try again later.");
            return Err(Fault::new(Code::ToolBusy, message));
        }
        if queued >= WAITING_MAX {
            return Err(too_much(word));
        }
        Ok(())
    }
}

/// What is told to runs of a provider that is down: what has a code of its own stands as it is.
pub(crate) fn not_running(what: &str, why: &Fault) -> Fault {
    match why.is(Code::ToolUnavailable) {
        true => {
            let message = format!("{what}: {}.", why.message.trim_end_matches('.'));
            Fault::new(Code::ToolUnavailable, message)
        }
        false => why.clone(),
    }
}

pub(crate) fn gone(word: &str) -> Fault {
    Fault::new(Code::ToolAgentLost, format!("The {word} is not connected."))
}

fn too_much(word: &str) -> Fault {
    Fault::new(Code::ToolBusy, format!("The {word} has too much to do; try again later."))
}
