//! Clearing away what nobody needs any more: files that retention lets go, leftovers of attempts,
//! and objects that no record speaks of.
//!
//! What an open run reads or writes always stays, and so do the local files of the runs that it
//! continues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wharf_domain::scope::WorldPath;
use wharf_domain::{ArtifactOp, AuditEvent, AuditRecord, Caller, World};
use wharf_ports::{BoundVersions, FileQuery, FileRecord, ObjectEntry};
use wharf_vocab::limits::{CONTINUES_DEPTH_MAX, PAGE_ITEMS_MAX, SWEEP_AFTER_MS};
use wharf_vocab::{Code, Fault, RunId, RunKey, StreamId, Timestamp, Verb, WorldId};

use super::agree::is_later;
use super::in_use::{FileKey, FilesInUse};
use super::{FileCalls, Handle, no_world};
use crate::shard::Input;
use crate::storage::{self, LIST_PAGE};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How old an object without a record must be before nobody can be about to record it.
const UNRECORDED_MS: u64 = DAY_MS;
/// Records that are read at once.
const ROWS_PAGE: usize = 1_000;

/// What was cleared away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files that were removed because nobody had used them for long.
    pub files: u64,
    /// Leftovers of runs and uploads that were removed.
    pub leftovers: u64,
    /// How many bytes all that had.
    pub bytes: u64,
    /// Files that are old enough to go, but used by a run under way.
    pub in_use: u64,
    /// Objects that no record speaks of and that are too young to go: somebody may be about to
    /// record them.
    pub unrecorded: u64,
}

/// What is being cleared away; with `dry` it is only counted.
struct Sweep {
    dry: bool,
    collected: Collected,
}

impl FileCalls<'_> {
    /// Removes from a world what its retention lets go, and what runs and uploads left behind.
    /// With `dry`, it only says what would go. Needs the verb `admin`.
    pub async fn collect(
        self,
        caller: &Caller,
        world: &WorldId,
        dry: bool,
    ) -> Result<Collected, Fault> {
        self.may_use_files(caller, Verb::Admin, world)?;
        let found = self.0.inner.records.worlds.here(world).ok_or_else(|| no_world(world))?;
        let mut sweep = Sweep { dry, collected: Collected::default() };
        self.collect_old(caller, &found, &mut sweep).await?;
        self.collect_leftovers(world, &mut sweep).await?;
        let mut collected = sweep.collected;
        if dry {
            return Ok(collected);
        }
        let before = Timestamp(self.0.now().0.saturating_sub(SWEEP_AFTER_MS));
        let swept = self.0.objects()?.sweep(before, self.bound()).await?;
        collected.bytes = collected.bytes.saturating_add(swept);
        let record = AuditRecord::new(AuditEvent::WORLD_COLLECTED, &caller.grant, world)
            .fact("files", collected.files)
            .fact("leftovers", collected.leftovers)
            .fact("bytes", collected.bytes)
            .fact("in_use", collected.in_use);
        let shard = StreamId::World(world.clone()).shard();
        self.0.tell(shard, Input::Audit(vec![record])).await?;
        Ok(collected)
    }

    /// Versions of files that open runs were accepted with: they are read, whatever is there now.
    fn bound(self) -> BoundVersions {
        let mut bound = BoundVersions::new();
        for world in self.0.inner.records.worlds.all() {
            for run in self.0.inner.hub.open_in(&world.id) {
                let reads = run.spec.bindings.files();
                bound.extend(reads.filter_map(|(_, read)| {
                    Some((read.path.key(&world.id), read.version.clone()?))
                }));
            }
        }
        bound
    }

    /// Removes what late writers left in worlds that are no more; says how many objects that were
    /// and how many bytes they had.
    pub async fn collect_removed(self) -> Result<(u64, u64), Fault> {
        let Some(objects) = self.0.inner.objects.clone() else { return Ok((0, 0)) };
        let (mut count, mut bytes) = (0, 0_u64);
        for world in self.0.inner.records.worlds.all().into_iter().filter(|world| world.removed) {
            // Nobody may make it again meanwhile.
            let Some(_closed) = self.0.inner.in_use.close(&world.id) else { continue };
            if self.0.inner.records.worlds.has(&world.id) {
                continue;
            }
            let (objects, size) = storage::delete_all(&*objects, &format!("{}/", world.id)).await?;
            storage::count_leftovers(objects, size);
            count += objects;
            bytes = bytes.saturating_add(size);
        }
        Ok((count, bytes))
    }

    /// Files that nobody has written or read for as long as the world keeps them.
    async fn collect_old(
        self,
        caller: &Caller,
        world: &World,
        sweep: &mut Sweep,
    ) -> Result<(), Fault> {
        let Some(days) = world.settings.retention_days else { return Ok(()) };
        let since = self.0.now().0.saturating_sub(u64::from(days).saturating_mul(DAY_MS));
        let mut query = FileQuery {
            locals: true,
            unused_since: Some(Timestamp(since)),
            ..FileQuery::new(world.id.clone(), PAGE_ITEMS_MAX)
        };
        loop {
            let page = self.0.inner.store.files(query.clone()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            query.after = Some(last.artifact.path.clone());
            self.remove_unused(caller, &world.id, page, sweep).await?;
        }
    }

    /// Removes those files that nobody uses.
    async fn remove_unused(
        self,
        caller: &Caller,
        world: &WorldId,
        files: Vec<FileRecord>,
        Sweep { dry, collected }: &mut Sweep,
    ) -> Result<(), Fault> {
        let place = |file: &FileRecord| (world.clone(), file.artifact.path.clone());
        let (_removing, free) = self.0.inner.in_use.remove(files.iter().map(place).collect());
        let used = self.used_for_long(world).await?;
        let goes = |file: &FileRecord| {
            free.binary_search(&place(file)).is_ok() && !used.has(&file.artifact.path)
        };
        let (mut gone, kept): (Vec<_>, Vec<_>) = files.into_iter().partition(goes);
        collected.in_use += kept.len() as u64;
        while !*dry && !gone.is_empty() {
            let record = AuditRecord::new(AuditEvent::ARTIFACT_REMOVED, &caller.grant, world)
                .fact("files", gone.len() as u64)
                .fact("reason", "retention");
            match self.remove_all(world, &gone, record).await {
                Ok(()) => break,
                Err(fault) if leave_out(&fault, &mut gone) => collected.in_use += 1,
                Err(fault) => return Err(fault),
            }
        }
        collected.files += gone.len() as u64;
        for file in &gone {
            collected.bytes = collected.bytes.saturating_add(file.artifact.bytes);
        }
        Ok(())
    }

    /// Removes the local files of a run, if no run under way reads one of them.
    pub(super) async fn remove_locals(self, caller: &Caller, run: &RunKey) -> Result<(), Fault> {
        let world = &run.world;
        let Some(objects) = self.0.inner.objects.clone() else { return Ok(()) };
        let prefix = Some(format!("/@{}/", run.run));
        let query = FileQuery { prefix, locals: true, ..FileQuery::new(world.clone(), ROWS_PAGE) };
        loop {
            let files = self.0.inner.store.files(query.clone()).await?;
            if files.is_empty() {
                break;
            }
            let place = |file: &FileRecord| (world.clone(), file.artifact.path.clone());
            let (_removing, free) = self.0.inner.in_use.remove(files.iter().map(place).collect());
            let used = self.used(world);
            if free.len() < files.len() || free.iter().any(|(_, path)| used.has(path)) {
                let message = format!("A run under way reads a local file of the run {run}.");
                return Err(Fault::new(Code::ArtifactInUse, message));
            }
            let record = AuditRecord::new(AuditEvent::ARTIFACT_REMOVED, &caller.grant, world)
                .fact("files", files.len() as u64)
                .fact("reason", "run.purged");
            self.remove_all(world, &files, record).await?;
        }
        let prefix = format!("{world}/@{}/", run.run);
        storage::delete_all(&*objects, &prefix).await?;
        Ok(())
    }

    /// Removes files: first what is known of them, then what they hold. If a run reads one of them,
    /// nothing is removed.
    pub(super) async fn remove_all(
        self,
        world: &WorldId,
        files: &[FileRecord],
        record: AuditRecord,
    ) -> Result<(), Fault> {
        let paths = || files.iter().map(|file| &file.artifact.path);
        let op = |path: &WorldPath| ArtifactOp::Remove { world: world.clone(), path: path.clone() };
        self.index(world, paths().map(op).collect(), record).await?;
        let objects = self.0.objects()?;
        for path in paths() {
            objects.delete(path.key(world)).await?;
        }
        Ok(())
    }

    /// What open runs use, and the runs whose local files a successor may still read.
    async fn used_for_long(self, world: &WorldId) -> Result<FilesInUse, Fault> {
        let mut used = self.used(world);
        for run in self.0.inner.hub.open_in(world) {
            let mut next = run.spec.continues.clone();
            for _ in 0..CONTINUES_DEPTH_MAX {
                let Some(before) = next.take().filter(|run| used.keep_run(run.as_str())) else {
                    break;
                };
                let key = RunKey { world: world.clone(), run: before };
                match self.0.runs().get(&key).await {
                    Ok(run) => next.clone_from(&run.spec.continues),
                    Err(fault) if fault.is(Code::RunNotFound) => {}
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(used)
    }

    /// Objects that no record speaks of: what attempts wrote that did not succeed, and what was
    /// written and never recorded.
    async fn collect_leftovers(
        self,
        world: &WorldId,
        Sweep { dry, collected }: &mut Sweep,
    ) -> Result<(), Fault> {
        let dry = *dry;
        let objects = self.0.objects()?;
        let (mut after, mut rows) = (None, Rows::new(world.clone(), dry));
        let mut over = BTreeMap::new();
        loop {
            let page = objects.list(format!("{world}/"), after.take(), LIST_PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.key.clone());
            let mut gone = Vec::new();
            for entry in page {
                match self.standing(world, &entry, &mut rows, &mut over).await? {
                    ObjectClass::Known => {}
                    ObjectClass::Young => collected.unrecorded += 1,
                    ObjectClass::Leftover => gone.push(entry),
                }
            }
            let places = gone.iter().filter_map(|entry| place_of(world, entry)).collect();
            let (_removing, free) = self.0.inner.in_use.remove(places);
            // Looked at only now, so that no run can have begun to use one of them.
            let used = self.used(world);
            let free: BTreeSet<_> =
                free.into_iter().map(|(_, path)| path).filter(|path| !used.has(path)).collect();
            for entry in gone {
                let Some((_, path)) = place_of(world, &entry) else { continue };
                // Somebody may have recorded it meanwhile.
                if !free.contains(&path) || self.row(world, &path).await?.is_some() {
                    continue;
                }
                collected.leftovers += 1;
                collected.bytes = collected.bytes.saturating_add(entry.bytes);
                if !dry {
                    objects.delete(entry.key).await?;
                    storage::count_leftovers(1, entry.bytes);
                }
            }
        }
    }

    /// Whether an object belongs to something that is known or under way.
    async fn standing(
        self,
        world: &WorldId,
        entry: &ObjectEntry,
        rows: &mut Rows,
        over: &mut BTreeMap<String, bool>,
    ) -> Result<ObjectClass, Fault> {
        let Some((_, path)) = place_of(world, entry) else { return Ok(ObjectClass::Known) };
        if let Some(row) = rows.of(self.0, &path).await? {
            if !rows.dry && (row.artifact.bytes != entry.bytes || is_later(entry.written_at, &row))
            {
                self.here(world, &path).await?;
            }
            return Ok(ObjectClass::Known);
        }
        let Some((run, _)) = path.staged_by() else {
            let old = entry.written_at.plus_ms(UNRECORDED_MS) <= self.0.now();
            return Ok(if old { ObjectClass::Leftover } else { ObjectClass::Young });
        };
        let is_over = match over.get(run) {
            Some(known) => *known,
            None => self.is_over(world, run).await?,
        };
        over.insert(run.to_owned(), is_over);
        Ok(if is_over { ObjectClass::Leftover } else { ObjectClass::Known })
    }

    /// Whether a run is over, so that what its attempts did not publish is nobody's.
    async fn is_over(self, world: &WorldId, run: &str) -> Result<bool, Fault> {
        let Ok(run) = RunId::new(run) else { return Ok(false) };
        match self.0.runs().get(&RunKey { world: world.clone(), run }).await {
            Ok(run) => Ok(run.is_over()),
            Err(fault) if fault.is(Code::RunNotFound) => Ok(true),
            Err(fault) => Err(fault),
        }
    }
}

/// Leaves out the file that a run has begun to read meanwhile, if that is what is wrong.
fn leave_out(fault: &Fault, files: &mut Vec<FileRecord>) -> bool {
    let used = fault.details.get("path").and_then(|path| path.as_str());
    let Some(used) = used.filter(|_| fault.is(Code::ArtifactInUse)) else { return false };
    let before = files.len();
    files.retain(|file| file.artifact.path.as_str() != used);
    files.len() < before
}

/// What is known of an object.
enum ObjectClass {
    /// A record speaks of it, or a run under way may publish it.
    Known,
    /// No record speaks of it, yet somebody may be about to make one.
    Young,
    /// It is nobody's.
    Leftover,
}

/// The records of a world's files, read in the same order as its objects.
struct Rows {
    query: FileQuery,
    page: VecDeque<FileRecord>,
    done: bool,
    /// Whether records stay as they are.
    dry: bool,
}

impl Rows {
    fn new(world: WorldId, dry: bool) -> Self {
        let query = FileQuery { locals: true, ..FileQuery::new(world, ROWS_PAGE) };
        Self { query, page: VecDeque::new(), done: false, dry }
    }

    /// The record of a file, if there is one. Paths must be asked for in their order.
    async fn of(&mut self, handle: &Handle, path: &WorldPath) -> Result<Option<FileRecord>, Fault> {
        loop {
            while self.page.front().is_some_and(|first| first.artifact.path < *path) {
                self.page.pop_front();
            }
            if let Some(first) = self.page.front() {
                return Ok(Some(first).filter(|it| it.artifact.path == *path).cloned());
            }
            if self.done {
                return Ok(None);
            }
            let page = handle.inner.store.files(self.query.clone()).await?;
            self.done = page.len() < self.query.limit;
            self.page.extend(page);
            self.query.after = self.page.back().map(|last| last.artifact.path.clone());
        }
    }
}

/// The file that an object holds; `None` for what somebody put there under another kind of name.
fn place_of(world: &WorldId, entry: &ObjectEntry) -> Option<FileKey> {
    let path = entry.key.strip_prefix(world.as_str())?;
    Some((world.clone(), WorldPath::try_from(path.to_owned()).ok()?))
}
