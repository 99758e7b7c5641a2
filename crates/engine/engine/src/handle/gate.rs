//! Who may write by address now: an address ends with the attempt it was made for.

use wharf_domain::Run;
use wharf_domain::scope::WorldPath;
use wharf_ports::WriteGate;
use wharf_vocab::{Publish, RunId, RunKey, WorldId};

use super::Handle;

impl WriteGate for Handle {
    fn may_write(&self, key: &str) -> bool {
        let hub = &self.inner.hub;
        if hub.writers(key).iter().any(|run| is_at_work(run)) {
            return true;
        }
        staged(key).is_some_and(|(run, path)| {
            hub.run(&run).is_some_and(|run| is_at_work(&run) && stages(&run, &path))
        })
    }
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
