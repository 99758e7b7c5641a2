//! Copies of a database, made beside a core that uses it, and what a copy says about files.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};
use wharf_ports::{FileRecord, Publication, StoreError};
use wharf_vocab::{ShardId, StreamKind};

use crate::error::{from_sqlite, unavailable};
use crate::{connect, migrations, read};

/// Pages that are copied before the next look around.
const STEP_PAGES: i32 = 1_024;
/// How long to wait when somebody holds the file for a moment.
const PAUSE: Duration = Duration::from_millis(20);
/// The version of the schema that knows files.
const FILES_SINCE: u32 = 4;

/// Copies a database as it is at one moment, by SQLite's own backup. The source is only read, and
/// a core may go on writing it. The copy is one file, which must not be there yet; `step` is told
/// how many pages are done, and how many there are.
pub fn copy(from: &Path, to: &Path, step: &mut dyn FnMut(u64, u64)) -> Result<(), StoreError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    made.map_err(|error| crate::connect::file_trouble("write", to, &error))?;
    let source = connect::reader(from)?;
    // One view for all steps; without it a commit of the core would make the copy begin anew.
    let view = source.unchecked_transaction().map_err(from_sqlite)?;
    migrations::version(&view)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(to, flags).map_err(from_sqlite)?;
    let backup = Backup::new(&view, &mut target).map_err(from_sqlite)?;
    loop {
        let outcome = backup.step(STEP_PAGES).map_err(from_sqlite)?;
        let counts = backup.progress();
        let (all, left) = (pages(counts.pagecount), pages(counts.remaining));
        step(all.saturating_sub(left), all);
        match outcome {
            StepResult::Done => break,
            StepResult::More => {}
            _ => thread::sleep(PAUSE),
        }
    }
    drop(backup);
    // Without a log beside it the copy can be read where nothing can be written.
    let mode: String = target
        .query_row("PRAGMA journal_mode = DELETE", (), |row| row.get(0))
        .map_err(from_sqlite)?;
    if mode != "delete" {
        return Err(unavailable("the copy of the database could not be closed"));
    }
    target.close().map_err(|(_, error)| from_sqlite(error))
}

fn pages(count: i32) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Every file that is there now, in the order of worlds and paths.
pub fn files(path: &Path, each: &mut dyn FnMut(FileRecord)) -> Result<(), StoreError> {
    let mut conn = connect::reader(path)?;
    let view = conn.transaction().map_err(from_sqlite)?;
    if migrations::version(&view)? < FILES_SINCE {
        return Ok(());
    }
    read::all_files(&view, each)
}

/// Whether a record still stands for a file that is there.
pub fn is_here(path: &Path, record: &FileRecord) -> Result<bool, StoreError> {
    let conn = connect::reader(path)?;
    let found = conn.query_row(
        "SELECT count(*) FROM artifacts WHERE id = ?1 AND gone_at IS NULL",
        params![record.position.cast_signed()],
        |row| row.get::<_, i64>(0),
    );
    Ok(found.map_err(from_sqlite)? > 0)
}

/// Marks files in a copy as removed, which they were since it was made.
pub fn forget(copy: &Path, gone: &[FileRecord]) -> Result<(), StoreError> {
    if gone.is_empty() {
        return Ok(());
    }
    let mut conn = connect::exclusive(copy)?;
    let change = conn.transaction().map_err(from_sqlite)?;
    for record in gone {
        let values = params![record.position.cast_signed()];
        change
            .execute("UPDATE artifacts SET gone_at = at WHERE id = ?1 AND gone_at IS NULL", values)
            .map_err(from_sqlite)?;
    }
    change.commit().map_err(from_sqlite)
}

/// What open runs are about to publish.
pub fn publications(path: &Path) -> Result<Vec<Publication>, StoreError> {
    let conn = connect::reader(path)?;
    let shards: Vec<ShardId> = (0..=u8::MAX).map(ShardId).collect();
    let open = read::load_open(&conn, StreamKind::Run, &shards)?;
    Ok(open.into_iter().filter_map(|(stream, stored)| Publication::of(&stream, stored)).collect())
}
