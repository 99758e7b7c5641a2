//! All worlds as they were last committed.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use wharf_domain::World;
use wharf_vocab::WorldId;

#[derive(Debug, Default)]
pub(crate) struct Worlds(RwLock<BTreeMap<WorldId, World>>);

impl Worlds {
    pub(crate) fn set(&self, world: World) {
        let mut worlds = self.0.write().unwrap_or_else(PoisonError::into_inner);
        worlds.insert(world.id.clone(), world);
    }

    pub(crate) fn get(&self, id: &WorldId) -> Option<World> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<World> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
