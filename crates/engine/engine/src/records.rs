//! All worlds, agents, grants and seats as they were last committed.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use wharf_domain::{Grant, Provider, Seat, World};
use wharf_vocab::{GrantId, ProviderId, SeatId, WorldId};

/// Records by their ids, for readers that must not wait for the shell.
#[derive(Debug)]
pub(crate) struct Records<K, V>(RwLock<BTreeMap<K, V>>);

pub(crate) type Worlds = Records<WorldId, World>;
pub(crate) type Agents = Records<ProviderId, Provider>;
pub(crate) type Grants = Records<GrantId, Grant>;
pub(crate) type Seats = Records<SeatId, Seat>;

impl<K, V> Default for Records<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Ord, V: Clone> Records<K, V> {
    fn insert(&self, key: K, value: V) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// What `look` finds in a record, without a copy of it.
    pub(crate) fn look<T>(&self, key: &K, look: impl FnOnce(&V) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).map(look)
    }

    /// What `look` finds in all records, without copies of them.
    pub(crate) fn find<T>(&self, look: impl FnMut(&V) -> Option<T>) -> Vec<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().filter_map(look).collect()
    }

    pub(crate) fn all(&self) -> Vec<V> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Worlds {
    /// A world that is there.
    pub(crate) fn here(&self, id: &WorldId) -> Option<World> {
        self.get(id).filter(|world| !world.removed)
    }

    /// Whether a world is there.
    pub(crate) fn has(&self, id: &WorldId) -> bool {
        self.look(id, |world| !world.removed).unwrap_or(false)
    }

    pub(crate) fn set(&self, world: World) {
        self.insert(world.id.clone(), world);
    }
}

impl Agents {
    pub(crate) fn set(&self, agent: Provider) {
        self.insert(agent.id.clone(), agent);
    }
}

impl Grants {
    /// The first grant that has been revoked among these and those they were narrowed from.
    pub(crate) fn revoked<'a>(
        &self,
        mut ids: impl Iterator<Item = &'a GrantId>,
    ) -> Option<GrantId> {
        ids.find_map(|id| {
            let root = GrantId::new(id.as_str().split('.').next()?).ok()?;
            self.look(&root, |grant| grant.revoked_at.is_some())?.then_some(root)
        })
    }

    pub(crate) fn set(&self, grant: Grant) {
        self.insert(grant.id.clone(), grant);
    }
}

impl Seats {
    pub(crate) fn set(&self, seat: Seat) {
        self.insert(seat.id.clone(), seat);
    }
}
