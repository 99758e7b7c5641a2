//! Where an object lies. Names on the disk are made of ids and hashes, never of a path that a
//! user chose.
//!
//! ```text
//! worlds/<world>/<2 digits>/<sha256 of the key>/   an object: its head and its versions
//! worlds/<world>/@<run>/<sha256 of the key>/       an object of a run
//! uploads/<id>/                                    an unfinished upload and its parts
//! tmp/                                             what is being written
//! ```

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::disk;

/// How many turns there are; see [`ObjectLocation::turn`].
pub(crate) const TURNS: usize = 256;

/// The folders of a store.
#[derive(Debug)]
pub(crate) struct Layout {
    worlds: PathBuf,
    /// Where unfinished uploads are.
    pub(crate) uploads: PathBuf,
    /// Where things are written.
    pub(crate) tmp: PathBuf,
}

/// Where one object lies.
#[derive(Debug)]
pub(crate) struct ObjectLocation {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Whoever changes an object waits for this turn.
    pub(crate) turn: usize,
}

impl Layout {
    /// The folders below this one.
    pub(crate) fn new(root: &Path) -> Self {
        let below = |name| root.join(name);
        Self { worlds: below("worlds"), uploads: below("uploads"), tmp: below("tmp") }
    }

    /// Makes the folders.
    pub(crate) fn make(&self) -> io::Result<()> {
        [&self.worlds, &self.uploads, &self.tmp]
            .into_iter()
            .try_for_each(|path| disk::make_folder(path))
    }

    /// Where an object lies.
    pub(crate) fn place(&self, key: &str) -> ObjectLocation {
        let hash = Sha256::digest(key.as_bytes());
        let name = hex::encode(hash);
        let (world, path) = key.split_once('/').unwrap_or((key, ""));
        let shelf = match run_of(path) {
            Some(run) => format!("@{}", name_of(run)),
            None => name[..2].to_owned(),
        };
        let folder = self.worlds.join(name_of(world)).join(shelf).join(name);
        ObjectLocation { folder, turn: usize::from(hash[0]) }
    }

    /// The place of an object whose folder was found.
    pub(crate) fn found(folder: PathBuf) -> Option<ObjectLocation> {
        let name = folder.file_name()?.to_str()?;
        let turn = usize::from_str_radix(name.get(..2)?, 16).ok()?;
        (name.len() == 64).then_some(ObjectLocation { folder, turn })
    }

    /// The shelves on which objects lie whose keys begin with a prefix; others may lie there too.
    pub(crate) fn shelves(&self, prefix: &str) -> io::Result<Vec<PathBuf>> {
        let Some((world, path)) = prefix.split_once('/') else {
            let worlds = disk::names(&self.worlds)?;
            let shelves = worlds.iter().map(|world| shelves_in(&self.worlds.join(world)));
            return Ok(shelves.collect::<io::Result<Vec<_>>>()?.concat());
        };
        let world = self.worlds.join(name_of(world));
        match run_of(path) {
            Some(run) => Ok(vec![world.join(format!("@{}", name_of(run)))]),
            None => shelves_in(&world),
        }
    }
}

fn shelves_in(world: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(disk::names(world)?.into_iter().map(|name| world.join(name)).collect())
}

/// The run whose own a path is.
fn run_of(path: &str) -> Option<&str> {
    path.strip_prefix('@')?.split_once('/').map(|(run, _)| run)
}

/// An id as it is, and a hash of anything else.
fn name_of(id: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let is_id = id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if is_id && id.len() <= 128 && id.bytes().all(plain) {
        id.to_owned()
    } else {
        format!("~{}", hex::encode(Sha256::digest(id.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t031_no_key_leads_out_of_the_folder_or_names_a_file() {
        let layout = Layout::new(Path::new("/r"));
        for key in ["../x", "w/../../x", "/etc/passwd", "", "w", "..", "w/@../x", "w/@/x", "é/\0"]
        {
            let place = layout.place(key);
            let inside = place.folder.strip_prefix("/r/worlds").expect("inside");
            let names: Vec<_> = inside.iter().map(|name| name.to_str().expect("text")).collect();
            assert_eq!(names.len(), 3, "{key}: {names:?}");
            assert_eq!(names[2].len(), 64);
            assert!(names.iter().all(|name| !name.starts_with('.') && !name.is_empty()), "{key}");
        }
    }

    #[test]
    fn the_objects_of_a_run_lie_together() {
        let layout = Layout::new(Path::new("/r"));
        let shelf = layout.shelves("w/@r1/").expect("no folder is needed");
        assert_eq!(shelf, [Path::new("/r/worlds/w/@r1")]);
        assert_eq!(layout.place("w/@r1/a/b").folder.parent(), Some(shelf[0].as_path()));
        let place = layout.place("w/a");
        assert_eq!(Layout::found(place.folder.clone()).expect("found").turn, place.turn);
    }
}
