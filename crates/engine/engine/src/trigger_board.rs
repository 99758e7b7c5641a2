//! Triggers that start runs on files and on ends of runs: known to all shards of a core, with a
//! bell for whoever starts what they owe.
//!
//! Shards only look whether something may concern a trigger: its world, the path, what its maker
//! may read. Whether its condition holds is found out by the task that starts the runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use wharf_domain::permission::PathGlob;
use wharf_domain::trigger::{Cause, TriggerOn};
use wharf_domain::{CallerRef, Trigger};
use wharf_vocab::limits::TRIGGER_FIRINGS_OWED_MAX;
use wharf_vocab::{Timestamp, TriggerId, Verb, WorldId};

/// The triggers of a core that look at what happens inside, and how much each owes.
#[derive(Debug, Default)]
pub(crate) struct TriggerBoard {
    watching: RwLock<Arc<Vec<Watching>>>,
    /// About how many runs each owes.
    owed: Mutex<HashMap<TriggerId, usize>>,
    /// Those that owe too much.
    full: Mutex<BTreeSet<TriggerId>>,
    bell: Notify,
}

/// A trigger that looks at what happens inside.
#[derive(Debug, Clone)]
struct Watching {
    id: TriggerId,
    made_at: Timestamp,
    world: WorldId,
    by: CallerRef,
    /// Which files it looks at; none if it looks at runs.
    paths: Option<PathGlob>,
}

impl Watching {
    fn of(trigger: &Trigger) -> Option<Self> {
        let paths = match &trigger.spec.on {
            TriggerOn::Hook(_) => return None,
            TriggerOn::File(files) => Some(PathGlob::parse(&files.paths).ok()?),
            TriggerOn::Run(_) => None,
        };
        let here = !trigger.removed && trigger.paused.is_none();
        here.then(|| Self {
            id: trigger.id.clone(),
            made_at: trigger.made_at,
            world: trigger.spec.world.clone(),
            by: trigger.by.clone(),
            paths,
        })
    }

    /// Whether something may concern it that its maker may know of.
    fn sees(&self, world: &WorldId, cause: &Cause) -> bool {
        if self.world != *world {
            return false;
        }
        let fits = match (cause, &self.paths) {
            (Cause::File(file), Some(paths)) => paths.matches(file.path.as_str()),
            (Cause::Run(run), None) => self.by.rights().check_tool(&run.tool).is_ok(),
            (Cause::File(_), None) | (Cause::Run(_), Some(_)) => false,
        };
        fits && self.by.rights().check(Verb::Read, world).is_ok()
    }
}

impl TriggerBoard {
    /// A trigger was made, changed or removed.
    pub(crate) fn set(&self, trigger: &Trigger) {
        if trigger.spec.hook().is_some() {
            return;
        }
        let mut watching = self.watching.write();
        let others = watching.iter().filter(|it| it.id != trigger.id).cloned();
        *watching = Arc::new(others.chain(Watching::of(trigger)).collect());
    }

    /// Whether any trigger looks at what happens inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.watching.read().is_empty()
    }

    /// Takes a place for a run of each trigger that something may concern; gives their names and
    /// when they were made. Those that owe too much take none, and are to be paused.
    pub(crate) fn take(&self, world: &WorldId, cause: &Cause) -> Vec<(TriggerId, Timestamp)> {
        let watching = Arc::clone(&self.watching.read());
        let mut taken = Vec::new();
        for it in watching.iter().filter(|it| it.sees(world, cause)) {
            let mut owed = self.owed.lock();
            let count = owed.entry(it.id.clone()).or_default();
            if *count < TRIGGER_FIRINGS_OWED_MAX {
                *count += 1;
                taken.push((it.id.clone(), it.made_at));
            } else {
                drop(owed);
                self.full.lock().insert(it.id.clone());
                self.bell.notify_one();
            }
        }
        taken
    }

    /// Says how much each trigger really owes.
    pub(crate) fn count(&self, owed: HashMap<TriggerId, usize>) {
        *self.owed.lock() = owed;
    }

    /// Those that owe too much.
    pub(crate) fn take_full(&self) -> BTreeSet<TriggerId> {
        std::mem::take(&mut *self.full.lock())
    }

    /// Something is owed that was not.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits until something may be owed.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}
