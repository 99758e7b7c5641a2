//! Removing what is over.

use rusqlite::{OptionalExtension as _, params};
use wharf_ports::StoreError;
use wharf_vocab::StreamId;

use super::Writer;
use crate::error::from_sqlite;
use crate::number::{Class, first_row, last_row};

impl Writer {
    /// Removes a stream that is not open, with its rows and the names claimed for it.
    pub(crate) fn purge(&mut self, stream: &StreamId) -> Result<bool, StoreError> {
        self.transact(|writer, _| writer.remove(stream).map_err(from_sqlite))
    }

    fn remove(&mut self, stream: &StreamId) -> rusqlite::Result<bool> {
        let found: Option<(i64, bool)> = self
            .conn
            .prepare_cached("SELECT id, open FROM streams WHERE kind = ?1 AND key = ?2")?
            .query_row(params![stream.kind().as_str(), stream.key()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((id, false)) = found else { return Ok(false) };
        self.known.forget_stream(stream);
        self.conn
            .prepare_cached("DELETE FROM journal WHERE id BETWEEN ?1 AND ?2")?
            .execute([first_row(id, Class::Entries), last_row(id, Class::Progress)])?;
        self.conn.prepare_cached("DELETE FROM claims WHERE stream = ?1")?.execute([id])?;
        self.conn.prepare_cached("DELETE FROM streams WHERE id = ?1")?.execute([id])?;
        Ok(true)
    }
}
