//! Where files come from and where they went.

use std::collections::BTreeSet;

use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_ports::{FileRecord, TraceQuery};
use wharf_vocab::{Direction, Fault, RunId, RunKey, Verb, WorldId};

use super::FileCalls;
use super::files::no_file;

/// Records of a file that are shown.
const RECORDS_MAX: usize = 500;
/// Runs on each side that are looked at.
const RUNS_MAX: usize = 50;
/// Files of one run that are shown.
const FILES_MAX: usize = 100;
/// Runs farther away that are looked at.
const FAR_RUNS_MAX: usize = 200;
/// How far away a run may be that is shown.
pub const TRACE_DEPTH_MAX: u32 = 5;

/// Where a file comes from and where it went.
#[derive(Debug, Clone, PartialEq)]
pub struct FileTrace {
    /// Every writing of the file, oldest first; the last may be there now.
    pub written: Vec<FileRecord>,
    /// Every reading of it by a run, oldest first.
    pub read: Vec<FileRecord>,
    /// For each run that wrote it: the files that run read.
    pub made_from: Vec<(RunId, Vec<FileRecord>)>,
    /// For each run that read it: the files that run wrote.
    pub went_into: Vec<(RunId, Vec<FileRecord>)>,
    /// Runs farther away, nearer ones first.
    pub further: Vec<FarRun>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

/// A run that files connect with a file over other runs.
#[derive(Debug, Clone, PartialEq)]
pub struct FarRun {
    /// The run.
    pub run: RunId,
    /// How many runs away it is, from 2.
    pub depth: u32,
    /// Where it lies: `in` what the file was made from, `out` what it went into.
    pub side: Direction,
    /// The files it read, as far as they lie on the way.
    pub read: Vec<FileRecord>,
    /// The files it wrote, as far as they lie on the way.
    pub wrote: Vec<FileRecord>,
}

/// The files of a run, and the runs that they connect it with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunLineage {
    /// The files it read.
    pub read: Vec<FileRecord>,
    /// The files it wrote.
    pub wrote: Vec<FileRecord>,
    /// For each run that wrote what it read: those files.
    pub made_from: Vec<(RunId, Vec<FileRecord>)>,
    /// For each run that read what it wrote: those files.
    pub went_into: Vec<(RunId, Vec<FileRecord>)>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

impl FileCalls<'_> {
    /// The files of a run, and the runs that wrote what it read or read what it wrote. Needs the
    /// verb `read`.
    pub async fn lineage(self, caller: &Caller, key: &RunKey) -> Result<RunLineage, Fault> {
        let world = &key.world;
        self.may_use_files(caller, Verb::Read, world)?;
        let (records, cut) = self.records(world, None, Some(&key.run), 2 * FILES_MAX).await?;
        let mut lineage = RunLineage { cut, ..RunLineage::default() };
        (lineage.wrote, lineage.read) =
            records.into_iter().partition(|record| record.artifact.direction == Direction::Out);
        for read in &lineage.read {
            let (records, more) =
                self.records(world, Some(&read.artifact.path), None, RECORDS_MAX).await?;
            lineage.cut |= more;
            let written = records
                .into_iter()
                .filter(|it| is_same(it, read, Direction::Out) && it.position < read.position);
            keep(&mut lineage.made_from, written.last().into_iter(), &key.run, &mut lineage.cut);
        }
        for wrote in &lineage.wrote {
            let (records, more) =
                self.records(world, Some(&wrote.artifact.path), None, RECORDS_MAX).await?;
            lineage.cut |= more;
            let read = records
                .into_iter()
                .filter(|it| is_same(it, wrote, Direction::In) && it.position > wrote.position);
            keep(&mut lineage.went_into, read, &key.run, &mut lineage.cut);
        }
        Ok(lineage)
    }

    /// Where a file comes from and where it went, over so many runs on each side. Needs the verb
    /// `read`.
    pub async fn trace(
        self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
        depth: u32,
    ) -> Result<FileTrace, Fault> {
        self.may_use_files(caller, Verb::Read, world)?;
        let (records, mut cut) = self.records(world, Some(path), None, RECORDS_MAX).await?;
        if records.is_empty() {
            return Err(no_file(world, path));
        }
        let (written, read): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| record.artifact.direction == Direction::Out);
        let made_from = self.others(world, &written, Direction::In, &mut cut).await?;
        let went_into = self.others(world, &read, Direction::Out, &mut cut).await?;
        let mut further = Vec::new();
        let mut seen: BTreeSet<RunId> =
            made_from.iter().chain(&went_into).map(|(run, _)| run.clone()).collect();
        for (side, near) in [(Direction::In, &made_from), (Direction::Out, &went_into)] {
            let mut edge: Vec<FileRecord> =
                near.iter().flat_map(|(_, files)| files.iter().cloned()).collect();
            for depth in 2..=depth.min(TRACE_DEPTH_MAX) {
                let found = self.beyond(world, &edge, (side, depth), &mut seen, &mut cut).await?;
                let next =
                    |it: &FarRun| if side == Direction::In { &it.read } else { &it.wrote }.clone();
                edge = found.iter().flat_map(next).collect();
                further.extend(found);
            }
        }
        Ok(FileTrace { written, read, made_from, went_into, further, cut })
    }

    /// The runs next to these files on one side that were not seen yet, each with its files.
    async fn beyond(
        self,
        world: &WorldId,
        edge: &[FileRecord],
        (side, depth): (Direction, u32),
        seen: &mut BTreeSet<RunId>,
        cut: &mut bool,
    ) -> Result<Vec<FarRun>, Fault> {
        let mut found: Vec<FarRun> = Vec::new();
        for file in edge {
            let path = Some(&file.artifact.path);
            let (records, more) = self.records(world, path, None, RECORDS_MAX).await?;
            *cut |= more;
            // Before: whoever wrote this version last. After: all who read it.
            let joins: Vec<FileRecord> = match side {
                Direction::In => {
                    let wrote = records.into_iter().filter(|it| {
                        is_same(it, file, Direction::Out) && it.position < file.position
                    });
                    wrote.last().into_iter().collect()
                }
                Direction::Out => {
                    let read = records.into_iter().filter(|it| {
                        is_same(it, file, Direction::In) && it.position > file.position
                    });
                    read.collect()
                }
            };
            for join in joins {
                let Some(run) = join.artifact.run.clone() else { continue };
                if let Some(known) = found.iter_mut().find(|it| it.run == run) {
                    let near =
                        if side == Direction::In { &mut known.wrote } else { &mut known.read };
                    near.push(join);
                    continue;
                }
                if seen.len() >= FAR_RUNS_MAX {
                    *cut = true;
                    continue;
                }
                if !seen.insert(run.clone()) {
                    continue;
                }
                let (mut files, more) =
                    self.records(world, None, Some(&run), 2 * FILES_MAX).await?;
                files.retain(|it| it.artifact.direction == side);
                *cut |= more || files.len() > FILES_MAX;
                files.truncate(FILES_MAX);
                let (read, wrote) = match side {
                    Direction::In => (files, vec![join]),
                    Direction::Out => (vec![join], files),
                };
                found.push(FarRun { run, depth, side, read, wrote });
            }
        }
        Ok(found)
    }

    /// For each run in these records: the files that it read or wrote.
    async fn others(
        self,
        world: &WorldId,
        records: &[FileRecord],
        direction: Direction,
        cut: &mut bool,
    ) -> Result<Vec<(RunId, Vec<FileRecord>)>, Fault> {
        let mut seen = BTreeSet::new();
        let runs = records.iter().filter_map(|record| record.artifact.run.clone());
        let mut runs: Vec<RunId> = runs.filter(|run| seen.insert(run.clone())).collect();
        if runs.len() > RUNS_MAX {
            // The newest say most about what is there now.
            runs.drain(..runs.len() - RUNS_MAX);
            *cut = true;
        }
        let mut found = Vec::new();
        for run in runs {
            let (mut files, more) = self.records(world, None, Some(&run), 2 * FILES_MAX).await?;
            files.retain(|file| file.artifact.direction == direction);
            *cut |= more || files.len() > FILES_MAX;
            files.truncate(FILES_MAX);
            found.push((run, files));
        }
        Ok(found)
    }

    /// Records of a file or a run, oldest first, and whether there are more.
    async fn records(
        self,
        world: &WorldId,
        path: Option<&WorldPath>,
        run: Option<&RunId>,
        limit: usize,
    ) -> Result<(Vec<FileRecord>, bool), Fault> {
        let query = TraceQuery {
            world: world.clone(),
            path: path.cloned(),
            run: run.cloned(),
            after: 0,
            limit: limit + 1,
        };
        let mut records = self.0.inner.store.trace(query).await?;
        let more = records.len() > limit;
        records.truncate(limit);
        Ok((records, more))
    }
}

/// Whether a record is about the same version of a file.
fn is_same(record: &FileRecord, other: &FileRecord, direction: Direction) -> bool {
    record.artifact.direction == direction
        && record.artifact.b3 == other.artifact.b3
        && record.artifact.bytes == other.artifact.bytes
}

/// Sorts records of other runs by run, as many as are shown.
fn keep(
    steps: &mut Vec<(RunId, Vec<FileRecord>)>,
    records: impl Iterator<Item = FileRecord>,
    own: &RunId,
    cut: &mut bool,
) {
    for record in records {
        let Some(run) = record.artifact.run.clone().filter(|run| run != own) else { continue };
        match steps.iter().position(|(known, _)| *known == run) {
            Some(at) if steps[at].1.len() < FILES_MAX => steps[at].1.push(record),
            None if steps.len() < RUNS_MAX => steps.push((run, vec![record])),
            _ => *cut = true,
        }
    }
}
