//! Keeping the index of files and the artifact store in agreement.
//!
//! The index says which files there are: an object without a record is not there. An object that
//! is not what its record says was written by somebody whose record was lost, or who came late
//! with an address; then the record is made anew from what is there.

use wharf_domain::scope::WorldPath;
use wharf_domain::{Actor, Artifact, ArtifactOp, AuditEvent, AuditRecord};
use wharf_ports::{FileQuery, FileRecord, ObjectInfo, TraceQuery};
use wharf_vocab::{Direction, Fault, RunId, Timestamp, WorldId};

use super::FileCalls;
use super::files::written;
use crate::storage::{self, Tries};

/// How far the clock of the artifact store may be off the core's.
pub(super) const SKEW_MS: u64 = 15_000;

/// How far back, in the order of all records, a writer is looked for.
const RECORDS_BEFORE: u64 = 10_000;
/// Records of one file that are looked at for its writer.
const RECORDS_MAX: usize = 1_000;

impl FileCalls<'_> {
    /// A file that is there now, as it is: with a record, and with bytes.
    pub(super) async fn here(
        self,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<Option<FileRecord>, Fault> {
        Ok(self.here_now(world, path).await?.map(|(record, _)| record))
    }

    /// A file that is there now, and what the artifact store says of it.
    pub(super) async fn here_now(
        self,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<Option<(FileRecord, ObjectInfo)>, Fault> {
        let Some(row) = self.row(world, path).await? else { return Ok(None) };
        let objects = self.0.objects()?;
        let Some(info) = storage::head(&*objects, &path.key(world), Tries::Short).await? else {
            return Ok(None);
        };
        if agrees(&row, &info) {
            return Ok(Some((row, info)));
        }
        // Whoever is writing it now will record it, so what is seen is only shown.
        let settled = !self.is_being_written(world, path);
        let Some(now) = self.row(world, path).await? else { return Ok(None) };
        if agrees(&now, &info) {
            return Ok(Some((now, info)));
        }
        let artifact = self.found(world, path, &now, info.clone()).await?;
        if settled && now == row {
            let record = AuditRecord::new(AuditEvent::ARTIFACT_FOUND, Actor::CORE, world)
                .fact("path", path.as_str())
                .fact("bytes", artifact.bytes);
            self.index(world, vec![ArtifactOp::Record(artifact.clone())], record).await?;
        }
        Ok(Some((FileRecord { artifact, ..now }, info)))
    }

    /// What is on record of an object whose record is another one's. Of several who wrote the file
    /// at once, the one whose bytes are there is among the earlier records; a local file is its
    /// run's; else nobody knows who wrote it.
    async fn found(
        self,
        world: &WorldId,
        path: &WorldPath,
        row: &FileRecord,
        info: ObjectInfo,
    ) -> Result<Artifact, Fault> {
        let artifact = written(world, path, info);
        let query = TraceQuery {
            world: world.clone(),
            path: Some(path.clone()),
            run: None,
            after: row.position.saturating_sub(RECORDS_BEFORE),
            limit: RECORDS_MAX,
        };
        let records = self.0.inner.store.trace(query).await?;
        let wrote = |record: &&FileRecord| {
            let known = &record.artifact;
            known.direction == Direction::Out && known.b3.is_some() && known.b3 == artifact.b3
        };
        if let Some(writer) = records.iter().rev().find(wrote) {
            let Artifact { run, key, .. } = writer.artifact.clone();
            return Ok(Artifact { run, key, ..artifact });
        }
        let run = path.run().and_then(|run| RunId::new(run).ok());
        let key = row.artifact.key.clone().filter(|_| run.is_some());
        Ok(Artifact { run, key, ..artifact })
    }

    /// Whether somebody may be about to record a file.
    fn is_being_written(self, world: &WorldId, path: &WorldPath) -> bool {
        self.0.inner.in_use.is_working(world)
            || !self.0.inner.hub.writers(&path.key(world)).is_empty()
    }

    /// The record of a file that is there now, if the index has one.
    pub(super) async fn row(
        self,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<Option<FileRecord>, Fault> {
        // Of all paths that begin with a path, the path itself comes first.
        let prefix = Some(path.as_str().to_owned());
        let query = FileQuery { prefix, locals: true, ..FileQuery::new(world.clone(), 1) };
        let rows = self.0.inner.store.files(query).await?;
        Ok(rows.into_iter().next().filter(|row| row.artifact.path == *path))
    }
}

/// Whether an object is what its record says.
pub(super) fn agrees(row: &FileRecord, info: &ObjectInfo) -> bool {
    let same_hash = match (&row.artifact.b3, &info.b3) {
        (Some(recorded), Some(there)) => recorded == there,
        _ => !is_later(info.written_at, row),
    };
    row.artifact.bytes == info.bytes && same_hash
}

/// Whether something was written after it was recorded.
pub(super) fn is_later(written_at: Timestamp, row: &FileRecord) -> bool {
    written_at > row.at.plus_ms(SKEW_MS)
}
