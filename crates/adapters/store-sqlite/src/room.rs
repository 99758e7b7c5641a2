//! The room that the file takes: how much of it nothing uses, and giving that back.
//!
//! What is removed leaves free pages, which later rows use. They go back to the file system a few
//! at a time, between two groups of commits, so that nobody waits for it. That takes a file that
//! was made so: one of an older version shrinks only after it was written anew, with the core
//! stopped.

use std::path::Path;

use rusqlite::Connection;
use wharf_ports::{StoreError, StoreSize};

use crate::connect;
use crate::error::{from_sqlite, unavailable};

/// What SQLite calls a file whose pages can be given back a few at a time.
const INCREMENTAL: i64 = 2;

/// Makes an empty file one whose pages can be given back. Of any other it changes nothing.
pub(crate) fn keep_movable(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")
}

/// How much room the file takes, and the log beside it.
pub(crate) fn size(conn: &Connection, log: &Path) -> Result<StoreSize, StoreError> {
    let page = number(conn, "page_size")?;
    Ok(StoreSize {
        bytes: page * number(conn, "page_count")?,
        free_bytes: page * number(conn, "freelist_count")?,
        log_bytes: std::fs::metadata(log).map_or(0, |log| log.len()),
    })
}

/// Gives up to so many bytes back; says how many more could be given.
pub(crate) fn shrink(conn: &Connection, bytes_max: u64) -> Result<u64, StoreError> {
    if number(conn, "auto_vacuum")? != INCREMENTAL.cast_unsigned() {
        return Ok(0);
    }
    let page = number(conn, "page_size")?.max(1);
    let pages = (bytes_max / page).clamp(1, u64::from(u32::MAX));
    if number(conn, "freelist_count")? > 0 {
        let mut give =
            conn.prepare(&format!("PRAGMA incremental_vacuum({pages})")).map_err(from_sqlite)?;
        let mut rows = give.query(()).map_err(from_sqlite)?;
        // Each step gives one page.
        while rows.next().map_err(from_sqlite)?.is_some() {}
    }
    Ok(page * number(conn, "freelist_count")?)
}

/// Writes a closed database anew without the room that nothing uses; from then on it shrinks by
/// itself. Says how large it was and is.
pub fn compact(path: &Path) -> Result<(StoreSize, StoreSize), StoreError> {
    if !path.exists() {
        return Err(unavailable(format!("there is no database at {}", path.display())));
    }
    let conn = connect::exclusive(path)?;
    let log = connect::log_of(path);
    let before = size(&conn, &log)?;
    // The mode of the log must not stand in the way of the new layout.
    conn.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")
        .map_err(from_sqlite)?;
    connect::set_up_log(&conn, path)?;
    Ok((before, size(&conn, &log)?))
}

fn number(conn: &Connection, pragma: &str) -> Result<u64, StoreError> {
    conn.query_row(&format!("PRAGMA {pragma}"), (), |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
        .map_err(from_sqlite)
}
