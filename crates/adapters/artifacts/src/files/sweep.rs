//! Removing what nobody will ask for any more.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use wharf_ports::{BoundVersions, ObjectError};
use wharf_vocab::Timestamp;

use super::disk::{self, trouble};
use super::head::{ObjectHead, written_ms};
use super::layout::Layout;
use super::list::folders;
use super::objects::tidy;
use super::{FileObjects, blocking};

impl FileObjects {
    /// Removes uploads begun and versions replaced before this moment, unless somebody is bound to
    /// them, and says how many bytes that freed.
    pub async fn sweep(
        self: Arc<Self>,
        before: Timestamp,
        bound: BoundVersions,
    ) -> Result<u64, ObjectError> {
        blocking(move || {
            let freed = self.sweep_uploads(before)?;
            let versions = self.sweep_versions(before, &bound);
            Ok(freed + versions.map_err(|error| trouble("remove old versions", &error))?)
        })
        .await
    }

    fn sweep_versions(&self, before: Timestamp, bound: &BoundVersions) -> io::Result<u64> {
        let mut freed = 0;
        for shelf in self.layout.shelves("")? {
            for folder in folders(&shelf)? {
                let Some(place) = Layout::found(folder) else { continue };
                let _turn = self.turn(&place);
                freed += sweep_object(&place.folder, before, bound)?;
                tidy(&place.folder);
            }
            tidy(&shelf);
        }
        Ok(freed)
    }
}

/// A version was replaced when the one behind it was written. One that no head has ever named,
/// because its writer was killed, counts from when it was written.
fn sweep_object(folder: &Path, before: Timestamp, bound: &BoundVersions) -> io::Result<u64> {
    let (key, current) = ObjectHead::read(folder)?.map(|head| (head.key, head.version)).unzip();
    let is_bound = |version: &String| {
        key.as_ref().is_some_and(|key| bound.contains(&(key.clone(), version.clone())))
    };
    let mut versions = disk::names(folder)?;
    versions.retain(|name| written_ms(name).is_some());
    versions.sort();
    let mut freed = 0;
    for (index, version) in versions.iter().enumerate() {
        let never_named = current.as_ref().is_none_or(|current| version > current);
        let next = versions.get(index + 1).filter(|_| !never_named);
        let replaced = written_ms(next.unwrap_or(version)).unwrap_or(u64::MAX);
        if current.as_ref() == Some(version) || replaced >= before.0 || is_bound(version) {
            continue;
        }
        let path = folder.join(version);
        let found = fs::symlink_metadata(&path)?;
        disk::remove_file(&path)?;
        // A file that another object shares is not freed.
        if found.nlink() == 1 {
            freed += found.len();
        }
    }
    Ok(freed)
}
