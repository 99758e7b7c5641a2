//! The index of files in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use wharf_domain::ArtifactOp;
use wharf_domain::scope::WorldPath;
use wharf_vocab::{Direction, RunId, RunKey, Timestamp, WorldId};

use super::MemoryState;
use wharf_ports::{
    FileQuery, FileRecord, FolderQuery, FolderSize, Refusal, Require, TraceQuery, WorldSize,
};

/// Where local files of runs lie.
const LOCALS: &str = "/@";

/// Who wrote and read files, and which are there now.
#[derive(Debug, Clone, Default)]
pub(super) struct FileTable {
    records: Vec<Arc<FileRecord>>,
    /// The files of each world that are there now, by path.
    here: BTreeMap<WorldId, BTreeMap<String, PresentFile>>,
    /// Files that open runs use.
    used: BTreeMap<(WorldId, WorldPath), BTreeSet<RunId>>,
}

/// A file that is there now.
#[derive(Debug, Clone)]
struct PresentFile {
    /// Its place among the records.
    place: usize,
    /// When it was last written or read.
    used_at: Timestamp,
}

impl FileTable {
    /// Makes what a batch says about files part of the index.
    pub(super) fn index(&mut self, at: Timestamp, ops: &[ArtifactOp]) {
        for op in ops {
            let (world, path) = match op {
                ArtifactOp::Record(new) => (&new.world, &new.path),
                ArtifactOp::Remove { world, path } => (world, path),
            };
            let here = self.here.entry(world.clone()).or_default();
            let ArtifactOp::Record(artifact) = op else {
                if let Some(left) = here.remove(path.as_str()) {
                    Arc::make_mut(&mut self.records[left.place]).gone_at = Some(at);
                }
                continue;
            };
            let place = self.records.len();
            match artifact.direction {
                Direction::In => {
                    if let Some(file) = here.get_mut(path.as_str()) {
                        file.used_at = file.used_at.max(at);
                    }
                }
                Direction::Out => {
                    let new = PresentFile { place, used_at: at };
                    if let Some(left) = here.insert(path.as_str().to_owned(), new) {
                        Arc::make_mut(&mut self.records[left.place]).gone_at = Some(at);
                    }
                }
            }
            let (position, artifact) = (place as u64 + 1, artifact.clone());
            self.records.push(Arc::new(FileRecord { position, at, artifact, gone_at: None }));
        }
    }

    /// Whether all is so of files that must be.
    pub(super) fn check(&self, requires: &[Require]) -> Result<(), Refusal> {
        for require in requires {
            let (world, path) = require.file();
            let file = (world.clone(), path.clone());
            let here = self.here.get(world).is_some_and(|here| here.contains_key(path.as_str()));
            match require {
                Require::FileHere { .. } if !here => {
                    return Err(Refusal::FileGone { world: file.0, path: file.1 });
                }
                Require::FileFree { .. } if self.used.contains_key(&file) => {
                    return Err(Refusal::FileInUse { world: file.0, path: file.1 });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Files are used by runs from now on.
    pub(super) fn use_all(&mut self, requires: &[Require]) {
        for require in requires {
            if let Require::FileHere { world, path, run } = require {
                let runs = self.used.entry((world.clone(), path.clone())).or_default();
                runs.insert(run.clone());
            }
        }
    }

    /// A run is over and uses nothing any more.
    pub(super) fn leave(&mut self, run: &RunKey) {
        self.used.retain(|(world, _), runs| {
            if *world == run.world {
                runs.remove(&run.run);
            }
            !runs.is_empty()
        });
    }

    /// The files of a world that are there now, from a path on.
    fn here_from(
        &self,
        world: &WorldId,
        from: Bound<&str>,
    ) -> impl Iterator<Item = (&FileRecord, &PresentFile)> {
        let files = self.here.get(world);
        files
            .into_iter()
            .flat_map(move |files| files.range::<str, _>((from, Bound::Unbounded)))
            .map(|(_, here)| (self.records[here.place].as_ref(), here))
    }
}

impl MemoryState {
    /// Files that are there now, in the order of their paths.
    pub fn files(&self, query: &FileQuery) -> Vec<FileRecord> {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        let from = match &query.after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let locals = query.locals || prefix.starts_with(LOCALS);
        self.files
            .here_from(&query.world, from)
            .take_while(|(file, _)| file.artifact.path.as_str().starts_with(prefix))
            .filter(|(file, _)| locals || file.artifact.path.run().is_none())
            .filter(|(_, here)| query.unused_since.is_none_or(|since| here.used_at < since))
            .take(query.limit)
            .map(|(file, _)| file.clone())
            .collect()
    }

    /// Who wrote and read files, oldest first.
    pub fn trace(&self, query: &TraceQuery) -> Vec<FileRecord> {
        let fits = |file: &&Arc<FileRecord>| {
            file.artifact.world == query.world
                && query.path.as_ref().is_none_or(|path| file.artifact.path == *path)
                && query.run.as_ref().is_none_or(|run| file.artifact.run.as_ref() == Some(run))
        };
        let behind = usize::try_from(query.after).unwrap_or(usize::MAX);
        let found = self.files.records.iter().skip(behind).filter(fits).take(query.limit);
        found.map(|file| FileRecord::clone(file)).collect()
    }

    /// How much some folders hold, as far as is counted.
    pub fn folder_sizes(&self, query: &FolderQuery) -> Vec<FolderSize> {
        let size = |folder: &String| {
            let mut size = FolderSize::default();
            let below = self.files.here_from(&query.world, Bound::Included(folder.as_str()));
            let below = below
                .take_while(|(file, _)| file.artifact.path.as_str().starts_with(folder.as_str()));
            for (file, _) in below.take(query.files_max) {
                size.files += 1;
                size.bytes = size.bytes.saturating_add(file.artifact.bytes);
            }
            size
        };
        query.folders.iter().map(size).collect()
    }

    /// How much a world holds.
    pub fn usage(&self, world: &WorldId) -> WorldSize {
        let mut usage = WorldSize::default();
        for (file, _) in self.files.here_from(world, Bound::Unbounded) {
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
