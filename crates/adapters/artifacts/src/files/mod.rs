//! Objects in a folder.
//!
//! An object is a folder with its versions, which never change, and a head that names the one
//! that counts. A version is written and safe on the disk before a head names it, and a head is
//! replaced as a whole, so a reader, a crash or a second writer never meets half an object.

mod disk;
mod folder;
mod head;
mod layout;
mod list;
mod objects;
mod parts;
mod read;
mod sweep;
mod uploads;
mod versions;
mod write;

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use wharf_ports::{Clock as _, ObjectError, SystemClock};
use wharf_vocab::Timestamp;

pub use self::folder::{ObjectFolder, StoredObject};
use self::layout::{Layout, ObjectLocation, TURNS};
use crate::error::unavailable;
use crate::rolling::Rolling;

/// Objects in a folder. Whoever opens it makes sure that no other process does, as a core does
/// with the lock on its home.
pub struct FileObjects {
    layout: Layout,
    /// Whoever changes an object holds its turn; many objects share one.
    turns: Vec<Mutex<()>>,
    rolling: Rolling,
}

impl FileObjects {
    /// Opens the store in a folder, makes it if it is not there, and removes what a crash has
    /// left half-written. It reads the disk and should not be called where nothing may wait.
    pub fn open(folder: impl AsRef<Path>) -> io::Result<Arc<Self>> {
        let folder = folder.as_ref();
        disk::make_folder(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let layout = Layout::new(folder);
        layout.make()?;
        for name in disk::names(&layout.tmp)? {
            let path = layout.tmp.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::IsADirectory => fs::remove_dir_all(path)?,
                done => done?,
            }
        }
        let turns = (0..TURNS).map(|_| Mutex::default()).collect();
        Ok(Arc::new(Self { layout, turns, rolling: Rolling::default() }))
    }

    /// Waits until nobody else changes the object.
    fn turn(&self, place: &ObjectLocation) -> MutexGuard<'_, ()> {
        self.turns[place.turn % TURNS].lock()
    }
}

/// Runs what waits for the disk where waiting harms nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectError> + Send + 'static,
) -> Result<T, ObjectError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(broken_off()))
}

fn broken_off() -> ObjectError {
    unavailable("the work on the disk was broken off")
}

fn now() -> Timestamp {
    SystemClock.now()
}
