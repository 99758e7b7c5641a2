//! Putting the files of a run that has succeeded in their places.

use std::time::Duration;

use wharf_domain::run::RunInput;
use wharf_domain::{Move, Run};
use wharf_ports::{ObjectError, ObjectErrorKind, ObjectStore};
use wharf_vocab::{AttemptId, Publish, RunKey};

use super::Shell;
use crate::shard::Input;
use crate::storage;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Shell {
    /// Puts the files of an attempt in their places. It is tried until it is done: the run has
    /// succeeded, and nobody would clear up after half of it.
    pub(super) fn put_in_place(&mut self, run: RunKey, attempt_id: AttemptId, moves: Vec<Move>) {
        let Some(objects) = self.parts.objects.clone() else {
            tracing::error!(%run, "outputs cannot be published: this core has no artifact store");
            return;
        };
        self.chores.push(Box::pin(async move {
            move_all(&*objects, &run, &moves).await;
            let input = RunInput::Published { attempt_id };
            Some((run.shard(), Input::Run { key: run, input, ticket: None }))
        }));
    }

    /// Removes what attempts that are over wrote and nobody will see. What is missed, because the
    /// artifact store is in trouble or a provider writes late, goes with the next collection.
    pub(super) fn clear_up(&mut self, run: &Run) {
        if run.spec.publish == Publish::Direct || run.spec.bindings.writes.is_empty() {
            return;
        }
        let Some(objects) = self.parts.objects.clone() else { return };
        let before = self.parts.hub.run(&run.key);
        let Some(prefix) = leftovers(before.as_deref(), run) else { return };
        self.chores.push(Box::pin(async move {
            if let Err(error) = storage::delete_all(&*objects, &prefix).await {
                tracing::debug!(%error, "leftovers of an attempt could not be removed");
            }
            None
        }));
    }
}

/// Copies each file to its place, as often as it takes. Doing it again after a crash changes
/// nothing more; what was copied from goes when all of them are there.
async fn move_all(objects: &dyn ObjectStore, run: &RunKey, moves: &[Move]) {
    let mut pause = PAUSE_MIN;
    while let Err(error) = copy_all(objects, run, moves).await {
        tracing::warn!(%run, %error, "outputs could not be published; trying again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    for one in moves {
        // What stays is removed with the run's other leftovers.
        let _ = objects.delete(one.from.key(&run.world)).await;
    }
}

/// Where objects lie that were written by attempts which are over and which are not published:
/// those of the attempt that ended between these two states of a run, or all of a run that is over.
fn leftovers(before: Option<&Run>, after: &Run) -> Option<String> {
    let ended = before?.active.as_ref()?;
    let key = &after.key;
    if after.is_over() {
        return Some(format!("{}/@{}/@", key.world, key.run));
    }
    let still = after.active.as_ref().is_some_and(|active| active.id == ended.id);
    (!still).then(|| format!("{}/@{}/@{}/", key.world, key.run, ended.id))
}

async fn copy_all(
    objects: &dyn ObjectStore,
    run: &RunKey,
    moves: &[Move],
) -> Result<(), ObjectError> {
    for Move { from, to } in moves {
        let (from, to) = (from.key(&run.world), to.key(&run.world));
        match objects.copy(from, to.clone()).await {
            Ok(_) => {}
            // It was published before a crash that kept the core from saying so.
            Err(error) if error.kind == ObjectErrorKind::NotFound => {
                if objects.head(to).await?.is_none() {
                    tracing::error!(%run, "an output that was to be published is gone");
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
