//! What takes longer than a step of a shard: putting the files of a run that has succeeded in their
//! places, and what flows want done.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::run::RunInput;
use wharf_domain::run::flow::FlowWork;
use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, Move, Run};
use wharf_ports::{ObjectError, ObjectStore, SharedTrouble, TroubleOver};
use wharf_vocab::{AttemptId, Backoff, Publish, RunKey};

use super::Shell;
use crate::shard::Input;
use crate::storage;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Shell {
    /// Does what flows wanted while the engine was not there yet.
    pub(super) fn begin_flow_works(&mut self) {
        for (run, work) in std::mem::take(&mut self.flow_works) {
            self.work_for_flow(run, work);
        }
    }

    /// Has something done for a flow, unless it is being done already. What gets lost is asked for
    /// once more by the flow itself.
    pub(super) fn work_for_flow(&mut self, run: Arc<Run>, work: FlowWork) {
        if !self.parts.flows.is_there() {
            return self.flow_works.push((run, work));
        }
        let Some(done) = self.parts.flows.begin(Arc::clone(&run), work) else { return };
        self.chores.push(Box::pin(async move {
            let input = RunInput::Flow(done.await?);
            let key = run.key.clone();
            Some((key.shard(), Input::Run { key, input, ticket: None }))
        }));
    }

    /// Puts the files of an attempt in their places. It is tried until it is done or a file turns
    /// out to be lost: the attempt has succeeded, and nobody would clear up after half of it.
    pub(super) fn put_in_place(
        &mut self,
        run: RunKey,
        attempt_id: AttemptId,
        moves: Vec<Move>,
        files: Vec<Artifact>,
    ) {
        let Some(objects) = self.parts.objects.clone() else {
            tracing::error!(%run, "outputs cannot be published: this core has no artifact store");
            return;
        };
        let trouble = self.parts.unpublished.clone();
        self.chores.push(Box::pin(async move {
            let publication = Publication { objects: &*objects, run: &run, moves, files };
            let lost = publication.carry_out(&trouble).await;
            let input = RunInput::Published { attempt_id, lost };
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

/// Files of one attempt on the way to their places.
struct Publication<'a> {
    objects: &'a dyn ObjectStore,
    run: &'a RunKey,
    moves: Vec<Move>,
    /// What each is, by its place.
    files: Vec<Artifact>,
}

impl Publication<'_> {
    /// Copies each file to its place, as often as it takes, and says which are lost. Doing it
    /// again after a crash changes nothing more. What is copied from stays until the run's end is
    /// committed; then it goes with the run's other leftovers.
    async fn carry_out(&self, trouble: &SharedTrouble) -> Vec<WorldPath> {
        let mut pauses = Backoff::new(PAUSE_MIN, PAUSE_MAX);
        loop {
            match self.copy_all().await {
                Ok(lost) => {
                    if let Some(TroubleOver { failed, seconds }) = trouble.calm() {
                        tracing::info!(failed, seconds, "outputs are published again");
                    }
                    return lost;
                }
                Err(error) => {
                    if let Some(failed) = trouble.failed() {
                        let (run, what) =
                            (self.run, "outputs could not be published; trying again");
                        tracing::warn!(%run, %error, failed, "{what}");
                    }
                }
            }
            tokio::time::sleep(pauses.pause()).await;
        }
    }

    /// Nothing is copied when anything is lost, so that no half of a set is seen.
    async fn copy_all(&self) -> Result<Vec<WorldPath>, ObjectError> {
        let (mut left, mut lost) = (Vec::new(), Vec::new());
        for one in &self.moves {
            let (from, to) = (one.from.key(&self.run.world), one.to.key(&self.run.world));
            if self.objects.head(from.clone()).await?.is_some() {
                left.push((from, to));
            } else if !self.is_in_place(one, to).await? {
                tracing::error!(run = %self.run, place = %one.to, "an output is lost");
                lost.push(one.to.clone());
            }
        }
        if lost.is_empty() {
            for (from, to) in left {
                self.objects.copy(from, to).await?;
            }
        }
        Ok(lost)
    }

    /// Whether the place of a file holds that file already, and not what was there before it.
    async fn is_in_place(&self, one: &Move, key: String) -> Result<bool, ObjectError> {
        let Some(there) = self.objects.head(key).await? else { return Ok(false) };
        let Some(file) = self.files.iter().find(|file| file.path == one.to) else {
            return Ok(true);
        };
        let same_hash = match (&file.b3, &there.b3) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        Ok(file.bytes == there.bytes && same_hash)
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
