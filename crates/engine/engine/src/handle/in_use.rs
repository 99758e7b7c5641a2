//! Which files and worlds are spoken for right now.
//!
//! A file that a new run reads must not be removed between the look at it and the moment the run
//! is known, and no run must begin in a world that is being removed. Whoever does one of these
//! holds a claim here for as long as it takes; claims are gone with the core, and with a caller
//! that does not wait. That a file stays which a run reads that is written down, is for the store
//! to say ([`Require`](wharf_ports::Require)); claims tell earlier, and cover what no store knows:
//! runs in memory, files that runs write, objects without a record.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};
use wharf_domain::Run;
use wharf_domain::scope::{InputBinding, Target, WorldPath};
use wharf_vocab::{Code, Fault, WorldId};

/// A file of a world.
pub(super) type FileKey = (WorldId, WorldPath);

/// What is spoken for.
#[derive(Debug, Default)]
pub(super) struct InUse(Mutex<Claims>);

#[derive(Debug, Default)]
struct Claims {
    /// Files that requests on their way read.
    reading: BTreeMap<FileKey, usize>,
    /// Files that are being removed.
    removing: BTreeSet<FileKey>,
    /// Worlds in which something is being made.
    working: BTreeMap<WorldId, usize>,
    /// Worlds that are being removed.
    closing: BTreeSet<WorldId>,
}

/// Ends a claim when it is dropped.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    all: &'a InUse,
    kind: UseKind,
}

#[derive(Debug)]
enum UseKind {
    Reading(Vec<FileKey>),
    Removing(Vec<FileKey>),
    Working(WorldId),
    Closing(WorldId),
}

impl InUse {
    fn lock(&self) -> MutexGuard<'_, Claims> {
        self.0.lock()
    }

    /// Speaks for files that a new run reads; the first that is being removed is the error.
    pub(super) fn read(&self, places: Vec<FileKey>) -> Result<Claim<'_>, FileKey> {
        let mut claims = self.lock();
        if let Some(gone) = places.iter().find(|place| claims.removing.contains(place)) {
            return Err(gone.clone());
        }
        for place in &places {
            *claims.reading.entry(place.clone()).or_default() += 1;
        }
        Ok(Claim { all: self, kind: UseKind::Reading(places) })
    }

    /// Speaks for files that are to be removed, leaving out those that somebody else speaks for.
    pub(super) fn remove(&self, places: Vec<FileKey>) -> (Claim<'_>, Vec<FileKey>) {
        let mut claims = self.lock();
        let free = |place: &FileKey| {
            !claims.reading.contains_key(place) && !claims.removing.contains(place)
        };
        let free: Vec<_> = places.into_iter().filter(free).collect();
        claims.removing.extend(free.iter().cloned());
        (Claim { all: self, kind: UseKind::Removing(free.clone()) }, free)
    }

    /// Says that something is made in a world, unless it is being removed.
    pub(super) fn work(&self, world: &WorldId) -> Result<Claim<'_>, Fault> {
        let mut claims = self.lock();
        if claims.closing.contains(world) {
            let message = format!("The world {world} is being removed.");
            return Err(Fault::new(Code::WorldNotFound, message));
        }
        *claims.working.entry(world.clone()).or_default() += 1;
        Ok(Claim { all: self, kind: UseKind::Working(world.clone()) })
    }

    /// Whether something is being made in a world.
    pub(super) fn is_working(&self, world: &WorldId) -> bool {
        self.lock().working.contains_key(world)
    }

    /// Lets nothing begin in a world any more; `None` if something is being made there.
    pub(super) fn close(&self, world: &WorldId) -> Option<Claim<'_>> {
        let mut claims = self.lock();
        if claims.working.contains_key(world) || !claims.closing.insert(world.clone()) {
            return None;
        }
        Some(Claim { all: self, kind: UseKind::Closing(world.clone()) })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut claims = self.all.lock();
        match &self.kind {
            UseKind::Reading(places) => {
                for place in places {
                    leave(&mut claims.reading, place);
                }
            }
            UseKind::Removing(places) => {
                for place in places {
                    claims.removing.remove(place);
                }
            }
            UseKind::Working(world) => leave(&mut claims.working, world),
            UseKind::Closing(world) => {
                claims.closing.remove(world);
            }
        }
    }
}

fn leave<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The files that open runs read or write, and the runs whose local files stay.
#[derive(Debug, Default)]
pub(super) struct FilesInUse {
    paths: BTreeSet<WorldPath>,
    runs: BTreeSet<String>,
}

impl FilesInUse {
    /// Adds what one run uses.
    pub(super) fn add(&mut self, run: &Run) {
        let bindings = &run.spec.bindings;
        self.paths.extend(bindings.reads.values().filter_map(|bound| match bound {
            InputBinding::Object(read) => Some(read.path.clone()),
            InputBinding::Uri => None,
        }));
        self.paths.extend(bindings.writes.values().filter_map(|target| match target {
            Target::Object { path } => Some(path.clone()),
            Target::Uri => None,
        }));
        self.runs.insert(run.key.run.as_str().to_owned());
    }

    /// Keeps the local files of a run.
    pub(super) fn keep_run(&mut self, run: &str) -> bool {
        self.runs.insert(run.to_owned())
    }

    /// Whether a file is used.
    pub(super) fn has(&self, path: &WorldPath) -> bool {
        self.paths.contains(path) || path.run().is_some_and(|run| self.runs.contains(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> FileKey {
        (WorldId::new("w").expect("valid"), WorldPath::parse(path).expect("valid"))
    }

    #[test]
    fn what_is_read_is_not_removed_and_what_is_removed_is_not_read() {
        let all = InUse::default();
        let reading = all.read(vec![place("/a")]).expect("free");
        let (removing, free) = all.remove(vec![place("/a"), place("/b")]);
        assert_eq!(free, [place("/b")]);
        assert_eq!(all.read(vec![place("/b")]).expect_err("goes"), place("/b"));
        drop((reading, removing));
        assert_eq!(all.remove(vec![place("/a")]).1, [place("/a")]);
        all.read(vec![place("/a"), place("/b")]).expect("nobody speaks for them");
    }

    #[test]
    fn nothing_begins_in_a_world_that_goes_and_none_goes_while_something_begins() {
        let all = InUse::default();
        let world = WorldId::new("w").expect("valid");
        let working = all.work(&world).expect("open");
        assert!(all.close(&world).is_none());
        drop(working);
        let closing = all.close(&world).expect("nobody works there");
        assert!(all.work(&world).expect_err("closing").is(Code::WorldNotFound));
        drop(closing);
        all.work(&world).expect("open again");
    }
}
