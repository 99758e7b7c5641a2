//! Checks that the file is sound and that no stream has a hole.

use std::path::Path;

use rusqlite::Connection;
use wharf_ports::StoreError;

use crate::connect;
use crate::error::from_sqlite;
use crate::number::first_row_sql;

/// How much is told at most; a file this broken needs no longer list.
const FINDINGS_MAX: usize = 100;

/// Says what is wrong with a database, in sentences; nothing if it is sound. It is only read.
pub fn integrity_check(path: &Path) -> Result<Vec<String>, StoreError> {
    let mut conn = connect::reader(path)?;
    let view = conn.transaction().map_err(from_sqlite)?;
    let mut findings = damaged_pages(&view).map_err(from_sqlite)?;
    if findings.is_empty() {
        findings = holes(&view).map_err(from_sqlite)?;
    }
    Ok(findings)
}

fn damaged_pages(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = conn.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
    let found: Vec<String> = check.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found
        .into_iter()
        .filter(|line| line != "ok")
        .map(|line| format!("The database file is damaged: {line}."))
        .collect())
}

/// A stream is whole when the rows of its journal cover every number up to its last.
fn holes(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let (base, next) = (first_row_sql("s.id"), first_row_sql("(s.id + 1)"));
    let mask = crate::number::ENTRIES_SPAN - 1;
    let sql = format!(
        "SELECT s.kind, s.key, s.seq, sum(j.last_seq - (j.id & {mask}) + 1), max(j.last_seq)
         FROM streams AS s LEFT JOIN journal AS j ON j.id >= {base} AND j.id < {next}
         GROUP BY s.id
         HAVING s.seq IS NOT sum(j.last_seq - (j.id & {mask}) + 1)
             OR s.seq IS NOT max(j.last_seq)
         LIMIT {FINDINGS_MAX}"
    );
    conn.prepare(&sql)?
        .query_map((), |row| {
            let (kind, key, seq): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let covered = row.get::<_, Option<i64>>(3)?.unwrap_or(0);
            Ok(format!("The {kind} {key} has {seq} entries, but its journal holds {covered}."))
        })?
        .collect()
}
