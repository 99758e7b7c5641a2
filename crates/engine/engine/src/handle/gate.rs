//! Who may read and write by address now: an address ends with the attempt it was made for.

use wharf_domain::Run;
use wharf_domain::scope::{ReadObject, WorldPath};
use wharf_ports::{AddressGate, ObjectVersion};
use wharf_vocab::{AttemptId, Publish, RunId, RunKey, WorldId};

use super::Handle;

impl AddressGate for Handle {
    fn may_write(&self, key: &str) -> bool {
        let hub = &self.inner.hub;
        if hub.writers(key).iter().any(|run| is_at_work(run)) {
            return true;
        }
        staged(key).is_some_and(|(run, path)| {
            hub.run(&run).is_some_and(|run| is_at_work(&run) && stages(&run, &path))
        })
    }

    fn may_read(&self, key: &str, version: &str, holder: &str) -> Option<ObjectVersion> {
        let (run, attempt) = held_by(holder)?;
        let run = self.inner.hub.run(&run).filter(|run| is_at_work(run))?;
        run.active.as_ref().filter(|active| active.id == attempt)?;
        let world = &run.key.world;
        let reads = run.spec.bindings.files().map(|(_, read)| read);
        let same: Vec<_> = reads.filter(|read| read.path.key(world) == key).collect();
        // Two inputs may have been bound to one file at different moments.
        let named = same.iter().find(|read| read.version.as_deref() == Some(version));
        named.or_else(|| same.first()).map(|read| version_of(world, read))
    }

    fn damaged(&self, key: &str) {
        // Every object is named after the world that owns it.
        let parts = key.split_once('/');
        if let Some((Ok(world), path)) = parts.map(|(world, path)| (WorldId::new(world), path)) {
            self.files().note_damage(&world, &format!("/{path}"));
        }
    }
}

/// Who an address for reading is made for: one attempt of one run.
pub(super) fn holder(run: &RunKey, attempt: &AttemptId) -> String {
    format!("{run}/{attempt}")
}

fn held_by(holder: &str) -> Option<(RunKey, AttemptId)> {
    let (run, attempt) = holder.rsplit_once('/')?;
    let (world, run) = run.split_once('/')?;
    let run = RunKey { world: WorldId::new(world).ok()?, run: RunId::new(run).ok()? };
    Some((run, AttemptId::new(attempt).ok()?))
}

/// The version of an object that a run was bound to when it was accepted.
pub(super) fn version_of(world: &WorldId, read: &ReadObject) -> ObjectVersion {
    let ReadObject { path, bytes, b3, media_type, version, tag } = read.clone();
    ObjectVersion { key: path.key(world), bytes, b3, media_type, version, tag }
}

/// Whether an attempt of a run is under way that has not delivered yet.
fn is_at_work(run: &Run) -> bool {
    run.active.is_some() && run.publishing.is_none() && !run.is_over()
}

/// The run that a key of a staged output names.
fn staged(key: &str) -> Option<(RunKey, WorldPath)> {
    let (world, _) = key.split_once('/')?;
    let path = WorldPath::try_from(key[world.len()..].to_owned()).ok()?;
    let (run, _) = path.staged_by()?;
    Some((RunKey { world: WorldId::new(world).ok()?, run: RunId::new(run).ok()? }, path))
}

/// Whether the attempt under way of a run puts one of its outputs there, to be published later.
fn stages(run: &Run, path: &WorldPath) -> bool {
    let Some(active) = run.active.as_ref().filter(|_| run.spec.publish == Publish::Staged) else {
        return false;
    };
    let outputs = 0..run.spec.bindings.writes.len();
    outputs.into_iter().any(|at| WorldPath::staged(&run.key.run, &active.id, at) == *path)
}
