//! Putting the files of a run that has succeeded in their places.

use std::time::Duration;

use wharf_domain::{Move, Run};
use wharf_ports::{ObjectError, ObjectErrorKind, ObjectStore};
use wharf_vocab::RunKey;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Copies each file to its place, as often as it takes. Doing it again after a crash changes
/// nothing more; what was copied from goes when all of them are there.
pub(super) async fn put_in_place(objects: &dyn ObjectStore, run: &RunKey, moves: &[Move]) {
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
pub(super) fn leftovers(before: Option<&Run>, after: &Run) -> Option<String> {
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
