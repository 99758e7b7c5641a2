//! The index of files, and which of them open runs use. What a batch says of the index is always
//! possible; what it requires of files is checked before.

use rusqlite::{Connection, params};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, ArtifactOp};
use wharf_ports::Require;
use wharf_vocab::{B3, Direction, RunId, RunKey, Timestamp, WorldId};

use super::known::WriterCache;
use crate::number::clamp;

/// Whether a file is there now.
pub(super) fn is_here(
    conn: &Connection,
    world: &WorldId,
    path: &WorldPath,
) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM artifacts INDEXED BY files_here
         WHERE direction = 'out' AND gone_at IS NULL AND world = ?1 AND path = ?2)",
    )?
    .query_row([world.as_str(), path.as_str()], |row| row.get(0))
}

/// Whether a run uses a file.
pub(super) fn is_in_use(
    conn: &Connection,
    world: &WorldId,
    path: &WorldPath,
) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM file_uses WHERE world = ?1 AND path = ?2)")?
        .query_row([world.as_str(), path.as_str()], |row| row.get(0))
}

/// Makes runs users of the files that must be there.
pub(super) fn use_all(
    conn: &Connection,
    known: &mut WriterCache,
    requires: &[Require],
) -> rusqlite::Result<()> {
    for require in requires {
        let Require::FileHere { world, path, run } = require else { continue };
        conn.prepare_cached(
            "INSERT INTO file_uses (world, path, run) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?
        .execute([world.as_str(), path.as_str(), run.as_str()])?;
        known.files_are_used = Some(true);
    }
    Ok(())
}

/// A run that is over uses nothing any more. While no file is used at all, as in a home whose runs
/// read none, that costs nothing.
pub(super) fn leave_all(
    conn: &Connection,
    known: &mut WriterCache,
    run: &RunKey,
) -> rusqlite::Result<()> {
    let used = match known.files_are_used {
        Some(used) => used,
        None => conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM file_uses)")?
            .query_row((), |row| row.get(0))?,
    };
    known.files_are_used = Some(used);
    if used {
        conn.prepare_cached("DELETE FROM file_uses WHERE world = ?1 AND run = ?2")?
            .execute([run.world.as_str(), run.run.as_str()])?;
    }
    Ok(())
}

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
