//! Backups of a home: taken beside a running core, verified, and restored.
//!
//! A backup is a folder. `backup.json` names the one state that is complete; it is replaced as a
//! whole when everything it stands for is safe on the disk and was read again, so that a backup
//! that was broken off is never taken for one. A state is a folder with the database, the list of
//! objects and the manifest. What objects and files of the home hold lies in `blobs`, by hash, and
//! is shared by states: that is why an incremental backup is quick.
//!
//! Nothing is asked of a core. Its database is copied by SQLite's own backup, its objects never
//! change once they are written, and the files of its home are replaced as a whole.

mod blobs;
mod error;
mod home_files;
mod manifest;
mod objects;
mod place;
mod restore;
mod seal;
mod take;
mod verify;

pub use restore::{RestoreOptions, Restored, restore};
pub use seal::Key;
pub use take::{BackupSummary, TakeOptions, take};
pub use verify::{VerifyReport, verify};

/// Sees how far a backup has come.
pub trait Watcher {
    /// Something begins that passes so many bytes, if that is known.
    fn begin(&mut self, what: &str, bytes: Option<u64>);

    /// So many bytes more have passed.
    fn add(&mut self, bytes: u64);
}
