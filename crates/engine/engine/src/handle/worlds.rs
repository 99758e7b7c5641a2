//! Worlds: making, showing, setting, removing.

use wharf_domain::{Account, Caller, World, WorldInput, WorldSettings};
use wharf_vocab::{AccountId, Fault, StreamId, WorldId};

use super::{Handle, no_world};
use crate::shard::Input;

/// A world and its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldView {
    /// The world.
    pub world: World,
    /// Its account.
    pub account: Account,
}

impl Handle {
    /// Makes a world.
    pub async fn create_world(
        &self,
        caller: &Caller,
        id: WorldId,
        settings: WorldSettings,
    ) -> Result<WorldView, Fault> {
        self.change_world(caller, id, WorldInput::Create(settings)).await
    }

    /// Changes a world's settings.
    pub async fn set_world(
        &self,
        caller: &Caller,
        id: WorldId,
        settings: WorldSettings,
    ) -> Result<WorldView, Fault> {
        self.change_world(caller, id, WorldInput::Change(settings)).await
    }

    async fn change_world(
        &self,
        caller: &Caller,
        id: WorldId,
        input: WorldInput,
    ) -> Result<WorldView, Fault> {
        let shard = StreamId::World(id.clone()).shard();
        let input = Input::World { id: id.clone(), input, by: caller.to_ref(), ticket: None };
        self.ask(shard, input).await?;
        self.world(&id).await
    }

    /// One world.
    pub async fn world(&self, id: &WorldId) -> Result<WorldView, Fault> {
        let world = self.inner.worlds.here(id).ok_or_else(|| no_world(id))?;
        let account = self.inner.store.account(AccountId::of_world(id)).await;
        let account = account.map_err(|error| error.to_fault())?.unwrap_or_default();
        Ok(WorldView { world, account })
    }

    /// All worlds.
    pub async fn worlds(&self) -> Result<Vec<WorldView>, Fault> {
        let mut views = Vec::new();
        for world in self.inner.worlds.all().into_iter().filter(|world| !world.removed) {
            views.push(self.world(&world.id).await?);
        }
        Ok(views)
    }

    /// Removes a world: an empty one, or with `force` also one that holds files, which go with
    /// it. A world with runs under way stays. Needs the verb `admin`.
    pub async fn remove_world(
        &self,
        caller: &Caller,
        id: &WorldId,
        force: bool,
    ) -> Result<(), Fault> {
        let _ = force;
        self.change_world(caller, id.clone(), WorldInput::Remove).await.map(drop)
    }
}
