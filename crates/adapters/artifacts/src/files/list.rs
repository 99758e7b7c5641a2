//! Listing the keys of a world or a run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_ports::{ObjectEntry, ObjectError};

use super::disk::{self, trouble};
use super::head::ObjectHead;
use super::{FileObjects, blocking};

impl FileObjects {
    /// Keys that begin with a prefix, behind `after` in the order of their bytes. Memory is
    /// bounded by the limit; the heads of all objects of the world or the run are read.
    pub async fn list(
        self: Arc<Self>,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>, ObjectError> {
        blocking(move || {
            let list = || {
                let mut found = BTreeMap::new();
                for shelf in self.layout.shelves(&prefix)? {
                    for folder in folders(&shelf)? {
                        // One that cannot be read must not hide all others.
                        let Ok(Some(head)) = ObjectHead::read(&folder) else { continue };
                        let behind = after.as_ref().is_none_or(|after| head.key > *after);
                        if head.key.starts_with(&prefix) && behind {
                            found.insert(head.key, (head.bytes, head.written_at));
                        }
                        if found.len() > limit {
                            found.pop_last();
                        }
                    }
                }
                Ok(found)
            };
            let found: io::Result<BTreeMap<_, _>> = list();
            let found = found.map_err(|error| trouble("list objects", &error))?;
            let entry = |(key, (bytes, written_at))| ObjectEntry { key, bytes, written_at };
            Ok(found.into_iter().map(entry).collect())
        })
        .await
    }
}

/// The folders of the objects on a shelf.
pub(super) fn folders(shelf: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(disk::names(shelf)?.into_iter().map(|name| shelf.join(name)).collect())
}
