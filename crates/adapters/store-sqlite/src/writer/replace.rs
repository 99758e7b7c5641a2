//! Entries whose place a later one takes: what is kept of them is little, so that a stream does
//! not grow by what nobody will read again.

use rusqlite::{Connection, params};
use wharf_domain::Entry;

use crate::number::first_of_its_stream;

/// Makes the rows before this one in its stream keep no more than they need. Before one of which
/// little was kept already there is nothing left to do.
pub(super) fn earlier(conn: &Connection, row: i64) -> rusqlite::Result<()> {
    let mut select = conn.prepare_cached(
        "SELECT id, body FROM journal WHERE id >= ?1 AND id < ?2 ORDER BY id DESC",
    )?;
    let mut update = conn.prepare_cached("UPDATE journal SET body = ?2 WHERE id = ?1")?;
    let mut rows = select.query([first_of_its_stream(row), row])?;
    while let Some(found) = rows.next()? {
        let body = found.get_ref(1)?.as_blob()?;
        // What cannot be read stays as it is; whoever reads the stream finds it.
        let Ok(entries) = wharf_journal::decode(body) else { continue };
        if entries.iter().any(Entry::is_replaced) {
            break;
        }
        if entries.iter().any(|entry| entry.replaced().is_some()) {
            let id: i64 = found.get(0)?;
            let kept = entries.into_iter().map(|entry| entry.replaced().unwrap_or(entry));
            let body = wharf_journal::encode(&kept.collect::<Vec<_>>());
            update.execute(params![id, body])?;
        }
    }
    Ok(())
}
