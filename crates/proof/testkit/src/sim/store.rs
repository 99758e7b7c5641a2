//! The simulated store: the memory store's plain state behind a disk that can be slow, full or
//! unreachable, and that can say it failed when it did not.

use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryState;
use wharf_ports::{StoreError, StoreErrorKind};

use super::chance::Chance;

/// What is wrong with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    Nothing,
    Slow,
    Full,
    Down,
    /// Some of what it is told fails, and some of that is committed all the same.
    Flaky,
}

/// What becomes of a group of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Taken,
    Failed(StoreErrorKind),
    /// Committed, and reported as failed.
    Hidden,
}

/// The simulated store.
#[derive(Debug)]
pub(super) struct SimStore {
    pub(super) state: MemoryState,
    pub(super) trouble: Trouble,
    /// What becomes of the next group, if a scenario says so.
    #[cfg(test)]
    pub(super) next: Option<Fate>,
}

impl SimStore {
    pub(super) fn new() -> Self {
        Self {
            state: MemoryState::new(&audit_key()),
            trouble: Trouble::Nothing,
            #[cfg(test)]
            next: None,
        }
    }

    /// What becomes of the next group; `cut` if the core cannot reach the store.
    pub(super) fn fate(&mut self, chance: &mut Chance, cut: bool) -> Fate {
        #[cfg(test)]
        if let Some(fate) = self.next.take() {
            return fate;
        }
        let unavailable = Fate::Failed(StoreErrorKind::Unavailable);
        match self.trouble {
            _ if cut => unavailable,
            Trouble::Nothing | Trouble::Slow => Fate::Taken,
            Trouble::Full => Fate::Failed(StoreErrorKind::Full),
            Trouble::Down => unavailable,
            Trouble::Flaky => match chance.between(0, 9) {
                0..=4 => Fate::Taken,
                5..=6 => unavailable,
                _ => Fate::Hidden,
            },
        }
    }

    /// Whether it can be read now.
    pub(super) fn readable(&self, chance: &mut Chance, cut: bool) -> bool {
        match self.trouble {
            _ if cut => false,
            Trouble::Down => false,
            Trouble::Flaky => chance.percent(60),
            Trouble::Nothing | Trouble::Slow | Trouble::Full => true,
        }
    }

    /// How long it takes.
    pub(super) fn latency(&self, chance: &mut Chance) -> u64 {
        match self.trouble {
            Trouble::Slow => chance.between(50, 4_000),
            _ if chance.percent(5) => chance.between(10, 400),
            _ => chance.between(0, 6),
        }
    }
}

pub(super) fn audit_key() -> AuditKey {
    AuditKey::new([7; 32])
}

pub(super) fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError { kind, message: "as the simulation wants it".to_owned() }
}
