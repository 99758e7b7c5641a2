//! Removing what is over.

use rusqlite::{OptionalExtension as _, params};
use wharf_ports::StoreError;
use wharf_ports::plan::Class;
use wharf_vocab::StreamId;

use super::Writer;
use super::sums::CountedRun;
use crate::error::from_sqlite;
use crate::number::{first_row, last_row};
use crate::room;

impl Writer {
    /// Removes those of these streams that are not open, with their rows and the names claimed
    /// for them.
    pub(crate) fn purge(&mut self, streams: &[StreamId]) -> Result<u64, StoreError> {
        self.transact(|writer, _| {
            let mut removed = 0;
            for stream in streams {
                removed += u64::from(writer.remove(stream).map_err(from_sqlite)?);
            }
            Ok(removed)
        })
    }

    /// Gives room that nothing uses back to the file system.
    pub(crate) fn shrink(&mut self, bytes_max: u64) -> Result<u64, StoreError> {
        room::shrink(&self.conn, bytes_max)
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
        if let Some(run) = CountedRun::stored(&self.conn, id)? {
            self.sums.take_out(run);
        }
        // What it has cost stays; what is no run has no time and adds nothing.
        self.conn.prepare_cached(KEEP_COSTS)?.execute([id])?;
        self.conn
            .prepare_cached("DELETE FROM journal WHERE id BETWEEN ?1 AND ?2")?
            .execute([first_row(id, Class::Entries), last_row(id, Class::Progress)])?;
        self.conn.prepare_cached("DELETE FROM claims WHERE stream = ?1")?.execute([id])?;
        self.conn.prepare_cached("DELETE FROM streams WHERE id = ?1")?.execute([id])?;
        Ok(true)
    }
}

const KEEP_COSTS: &str = "
    INSERT INTO purged_costs (hour, world, tool, caller, runs, failed,
                              cost_high, cost_low, wall_high, wall_low)
    SELECT created_at / 3600000 * 3600000, substr(key, 1, instr(key, '/') - 1),
           coalesce(tool, ''), coalesce(called_by, ''), 1, status = 'failed',
           coalesce(cost_micro, 0) >> 32 & 4294967295, coalesce(cost_micro, 0) & 4294967295,
           coalesce(wall_ms, 0) >> 32 & 4294967295, coalesce(wall_ms, 0) & 4294967295
    FROM streams WHERE id = ?1 AND created_at IS NOT NULL
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed,
        cost_high = cost_high + excluded.cost_high, cost_low = cost_low + excluded.cost_low,
        wall_high = wall_high + excluded.wall_high, wall_low = wall_low + excluded.wall_low";
