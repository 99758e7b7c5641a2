//! The index of files. What a batch says of it is always possible, so nothing is checked before.

use rusqlite::{Connection, params};
use wharf_domain::{Artifact, ArtifactOp};
use wharf_vocab::{B3, Direction, RunId, Timestamp, WorldId};

use crate::number::clamp;

/// Makes what a batch says about files part of the index, in order.
pub(super) fn write(conn: &Connection, at: Timestamp, ops: &[ArtifactOp]) -> rusqlite::Result<()> {
    let at = clamp(at.0);
    for op in ops {
        match op {
            ArtifactOp::Record(new) => {
                match new.direction {
                    Direction::Out => leave(conn, at, &new.world, new.path.as_str())?,
                    Direction::In => touch(conn, at, &new.world, new.path.as_str())?,
                }
                record(conn, at, new)?;
            }
            ArtifactOp::Remove { world, path } => leave(conn, at, world, path.as_str())?,
        }
    }
    Ok(())
}

/// The file that is there now is there no more.
fn leave(conn: &Connection, at: i64, world: &WorldId, path: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE artifacts INDEXED BY files_here SET gone_at = ?3
         WHERE direction = 'out' AND gone_at IS NULL AND world = ?1 AND path = ?2",
    )?
    .execute(params![world.as_str(), path, at])?;
    Ok(())
}

/// The file that is there now was read.
fn touch(conn: &Connection, at: i64, world: &WorldId, path: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE artifacts INDEXED BY files_here SET used_at = ?3
         WHERE direction = 'out' AND gone_at IS NULL AND world = ?1 AND path = ?2
           AND used_at < ?3",
    )?
    .execute(params![world.as_str(), path, at])?;
    Ok(())
}

fn record(conn: &Connection, at: i64, new: &Artifact) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO artifacts (world, path, bytes, b3, media_type, run, key, direction, at,
                                used_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        new.world.as_str(),
        new.path.as_str(),
        new.bytes.cast_signed(),
        new.b3.as_ref().map(B3::as_str),
        new.media_type,
        new.run.as_ref().map(RunId::as_str),
        new.key,
        new.direction.as_str(),
        at,
        (new.direction == Direction::Out).then_some(at)
    ])?;
    Ok(())
}
