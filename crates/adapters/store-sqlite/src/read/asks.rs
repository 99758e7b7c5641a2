//! Open asks.

use rusqlite::Connection;
use wharf_domain::{Ask, Entry};
use wharf_ports::{OpenAsk, StoreError};

use super::streams::entries;
use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// Open asks behind `after`, oldest first.
pub(crate) fn open_asks(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<OpenAsk>, StoreError> {
    let streams: Vec<(i64, String)> = conn
        .prepare_cached(
            "SELECT id, key FROM streams WHERE open = 1 AND kind = 'ask' AND id > ?1
             ORDER BY id LIMIT ?2",
        )
        .and_then(|mut select| {
            select
                .query_map([clamp(after), clamp_len(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .map_err(from_sqlite)?;
    streams
        .into_iter()
        .map(|(id, key)| {
            let entries = entries(conn, &key, id)?.into_iter().filter_map(|(at, entry)| {
                let Entry::Ask(entry) = entry else { return None };
                Some((at, entry))
            });
            let ask = Ask::replay(entries)
                .ok_or_else(|| corrupt(format!("the ask {key} does not begin with its raising")))?;
            Ok(OpenAsk { position: id.cast_unsigned(), ask })
        })
        .collect()
}
