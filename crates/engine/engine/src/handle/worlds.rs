//! Worlds: making, showing, setting, removing.

use std::sync::Arc;

use wharf_domain::{
    Account, AuditEvent, AuditRecord, Caller, World, WorldInput, WorldPatch, WorldSettings,
};
use wharf_ports::FileQuery;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{AccountId, Code, Fault, Verb, WorldId};

use super::names::NameKind;
use super::{WorldCalls, no_world};
use crate::storage;

/// The world of requests that name none.
const DEFAULT: &str = "default";

/// A world and its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldView {
    /// The world.
    pub world: World,
    /// Its account.
    pub account: Account,
}

/// What goes with a world that is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorldRemoval {
    /// Its files; without it a world that holds some stays.
    pub force: bool,
    /// Its runs.
    pub purge_runs: bool,
}

impl WorldCalls<'_> {
    /// Makes a world. One that is made again after it was removed begins empty, also when late
    /// writers left something under its name.
    pub async fn create(
        self,
        caller: &Caller,
        id: WorldId,
        settings: WorldSettings,
    ) -> Result<WorldView, Fault> {
        let share = |world: &World| (!world.removed).then(|| world.share.clone());
        let shares = self.0.inner.records.worlds.find(share).into_iter();
        let _place = self.0.inner.names.take(NameKind::Worlds, caller, shares)?;
        let removed = || self.0.inner.records.worlds.get(&id).is_some_and(|world| world.removed);
        let _closed = match removed() {
            true => Some(self.0.inner.in_use.close(&id).ok_or_else(|| busy(&id))?),
            false => None,
        };
        // Looked at again, since it may have been made before it was closed.
        if let Some(objects) = self.0.inner.objects.as_ref().filter(|_| removed()) {
            // What stays is on no record, so nobody can read it, and goes with other leftovers.
            if let Err(error) = storage::delete_all(&**objects, &format!("{id}/")).await {
                tracing::warn!(world = %id, %error, "leftovers could not be removed");
            }
        }
        self.change_world(caller, id, WorldInput::Create(settings)).await
    }

    /// Changes a world's settings.
    pub async fn set(
        self,
        caller: &Caller,
        id: WorldId,
        settings: WorldSettings,
    ) -> Result<WorldView, Fault> {
        self.change_world(caller, id, WorldInput::Change(settings)).await
    }

    /// Changes some of a world's settings. Two who change different ones at once both have their
    /// way.
    pub async fn patch(
        self,
        caller: &Caller,
        id: WorldId,
        patch: WorldPatch,
    ) -> Result<WorldView, Fault> {
        self.change_world(caller, id, WorldInput::Patch(patch)).await
    }

    /// Corrects what a world's account says was spent, by an entry that is audited. Needs the verb
    /// `admin`; no more can be taken away than was spent.
    pub async fn correct(
        self,
        caller: &Caller,
        id: WorldId,
        by_micro: i64,
        reason: String,
    ) -> Result<WorldView, Fault> {
        self.0.audited(caller, &id, self.0.trust().authorise(caller, Verb::Admin, &id))?;
        let spent = self.get(&id).await?.account.spent;
        if spent.checked_add_signed(by_micro).is_none() {
            let message = format!("The world {id} has spent {spent} micro-dollars, not that much.");
            return Err(Fault::new(Code::RequestInvalid, message).with("spent_micro", spent));
        }
        self.change_world(caller, id, WorldInput::Correct { by_micro, reason }).await
    }

    async fn change_world(
        self,
        caller: &Caller,
        id: WorldId,
        input: WorldInput,
    ) -> Result<WorldView, Fault> {
        self.0.change::<World>(caller, id.clone(), input).await?;
        self.get(&id).await
    }

    /// One world.
    pub async fn get(self, id: &WorldId) -> Result<WorldView, Fault> {
        let world = self.0.inner.records.worlds.here(id).ok_or_else(|| no_world(id))?;
        let account =
            self.0.inner.store.account(AccountId::of_world(id)).await?.unwrap_or_default();
        Ok(WorldView { world: Arc::unwrap_or_clone(world), account })
    }

    /// All worlds.
    pub async fn list(self) -> Result<Vec<WorldView>, Fault> {
        let mut views = Vec::new();
        for world in self.0.inner.records.worlds.all().into_iter().filter(|world| !world.removed) {
            views.push(self.get(&world.id).await?);
        }
        Ok(views)
    }

    /// One account.
    pub async fn account(self, id: AccountId) -> Result<Option<Account>, Fault> {
        Ok(self.0.inner.store.account(id).await?)
    }

    /// Removes a world: an empty one, or with `force` also one that holds files, which go with
    /// it. A world with runs under way stays. With `purge_runs` those that are over go as well,
    /// in the background. Needs the verb `admin`.
    pub async fn remove(
        self,
        caller: &Caller,
        id: &WorldId,
        WorldRemoval { force, purge_runs }: WorldRemoval,
    ) -> Result<(), Fault> {
        self.0.audited(caller, id, self.0.trust().authorise(caller, Verb::Admin, id))?;
        self.0.inner.records.worlds.here(id).ok_or_else(|| no_world(id))?;
        if id.as_str() == DEFAULT {
            let message = format!("The world {DEFAULT} stays: runs that name none go there.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        // From here on nothing begins in it.
        let closing = self.0.inner.in_use.close(id);
        let runs = self.0.inner.hub.open_in(id).len();
        if closing.is_none() || runs > 0 {
            let message = format!("The world {id} has runs under way; cancel them first.");
            return Err(Fault::new(Code::WorldNotEmpty, message).with("runs", runs.max(1) as u64));
        }
        let usage = self.0.inner.store.usage(id.clone()).await?;
        if usage.files > 0 && !force {
            let files = if usage.files == 1 { "file" } else { "files" };
            let message = format!(
                "The world {id} holds {} {files}; remove them first, or force it.",
                usage.files
            );
            let fault = Fault::new(Code::WorldNotEmpty, message);
            return Err(fault.with("files", usage.files).with("bytes", usage.bytes));
        }
        self.empty_world(caller, id).await?;
        self.0.change::<World>(caller, id.clone(), WorldInput::Remove { purge_runs }).await?;
        if purge_runs {
            let handle = self.0.clone();
            tokio::spawn(async move {
                if let Err(fault) = handle.purges().purge_removed().await {
                    tracing::warn!(code = %fault.code, "runs of a removed world were left for later");
                }
            });
        }
        Ok(())
    }

    /// Removes all files of a world, and whatever else the artifact store has under its name.
    async fn empty_world(self, caller: &Caller, id: &WorldId) -> Result<(), Fault> {
        let query = FileQuery { locals: true, ..FileQuery::new(id.clone(), PAGE_ITEMS_MAX) };
        loop {
            let files = self.0.inner.store.files(query.clone()).await?;
            if files.is_empty() {
                break;
            }
            let record = AuditRecord::new(AuditEvent::ARTIFACT_REMOVED, &caller.grant, id)
                .fact("files", files.len() as u64)
                .fact("reason", "world.removed");
            self.0.files().remove_all(id, &files, record).await?;
        }
        if let Some(objects) = &self.0.inner.objects {
            storage::delete_all(&**objects, &format!("{id}/")).await?;
        }
        Ok(())
    }
}

fn busy(id: &WorldId) -> Fault {
    let message = format!("The world {id} is being made or removed just now; try again.");
    Fault::new(Code::CoreBusy, message)
}
