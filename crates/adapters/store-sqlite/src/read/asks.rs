//! Asks.

use rusqlite::Connection;
use wharf_domain::{Ask, Entry};
use wharf_ports::{OpenAsk, StoreError};

use super::streams::entries;
use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// Decided asks before a place, newest first.
pub(crate) fn decided_asks(
    conn: &Connection,
    before: u64,
    limit: usize,
) -> Result<Vec<OpenAsk>, StoreError> {
    let sql = "SELECT id, key FROM streams INDEXED BY asks_decided
               WHERE kind = 'ask' AND open = 0 AND id < ?1 ORDER BY id DESC LIMIT ?2";
    asks(conn, sql, [clamp(before), clamp_len(limit)])
}

/// Open asks behind `after`, oldest first.
pub(crate) fn open_asks(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<OpenAsk>, StoreError> {
    let sql = "SELECT id, key FROM streams WHERE open = 1 AND kind = 'ask' AND id > ?1
               ORDER BY id LIMIT ?2";
    asks(conn, sql, [clamp(after), clamp_len(limit)])
}

fn asks(conn: &Connection, sql: &str, values: [i64; 2]) -> Result<Vec<OpenAsk>, StoreError> {
    let streams: Vec<(i64, String)> = conn
        .prepare_cached(sql)
        .and_then(|mut select| {
            select.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
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
