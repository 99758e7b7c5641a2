//! The index of files in memory.

use wharf_domain::ArtifactOp;
use wharf_vocab::{Direction, Timestamp, WorldId};

use super::MemoryState;
use crate::{FileQuery, FileRecord, TraceQuery, Usage};

impl MemoryState {
    /// Makes what a batch says about files part of the index.
    pub(super) fn index(&mut self, at: Timestamp, ops: &[ArtifactOp]) {
        for op in ops {
            let (world, path, writes) = match op {
                ArtifactOp::Record(new) => (&new.world, &new.path, new.direction == Direction::Out),
                ArtifactOp::Remove { world, path } => (world, path, true),
            };
            if writes {
                let here = |file: &&mut FileRecord| {
                    file.is_here() && file.artifact.world == *world && file.artifact.path == *path
                };
                if let Some(file) = self.files.iter_mut().find(here) {
                    file.gone_at = Some(at);
                }
            }
            if let ArtifactOp::Record(artifact) = op {
                let position = self.files.len() as u64 + 1;
                let artifact = artifact.clone();
                self.files.push(FileRecord { position, at, artifact, gone_at: None });
            }
        }
    }

    /// Files that are there now, in the order of their paths.
    #[must_use]
    pub fn files(&self, query: &FileQuery) -> Vec<FileRecord> {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        let used = |file: &FileRecord, since: Timestamp| {
            self.files.iter().any(|other| {
                other.artifact.world == file.artifact.world
                    && other.artifact.path == file.artifact.path
                    && other.at >= since
            })
        };
        let found = self.files.iter().filter(|file| {
            let path = file.artifact.path.as_str();
            file.is_here()
                && file.artifact.world == query.world
                && path.starts_with(prefix)
                && (query.locals || prefix.starts_with("/@") || !path.starts_with("/@"))
                && query.after.as_ref().is_none_or(|after| file.artifact.path > *after)
                && query.unused_since.is_none_or(|since| !used(file, since))
        });
        let mut found: Vec<_> = found.cloned().collect();
        found.sort_by(|a, b| a.artifact.path.cmp(&b.artifact.path));
        found.truncate(query.limit);
        found
    }

    /// Who wrote and read files, oldest first.
    #[must_use]
    pub fn trace(&self, query: &TraceQuery) -> Vec<FileRecord> {
        let fits = |file: &&FileRecord| {
            file.artifact.world == query.world
                && file.position > query.after
                && query.path.as_ref().is_none_or(|path| file.artifact.path == *path)
                && query.run.as_ref().is_none_or(|run| file.artifact.run.as_ref() == Some(run))
        };
        self.files.iter().filter(fits).take(query.limit).cloned().collect()
    }

    /// How much a world holds.
    #[must_use]
    pub fn usage(&self, world: &WorldId) -> Usage {
        let mut usage = Usage::default();
        for file in self.files.iter().filter(|file| file.is_here() && file.artifact.world == *world)
        {
            usage.files += 1;
            usage.bytes = usage.bytes.saturating_add(file.artifact.bytes);
            if file.artifact.path.run().is_some() {
                usage.local_files += 1;
                usage.local_bytes = usage.local_bytes.saturating_add(file.artifact.bytes);
            }
        }
        usage
    }
}
