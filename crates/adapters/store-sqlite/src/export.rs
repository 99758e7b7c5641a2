//! Reads a whole database part by part, so that it can be copied into another store.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, Row, params};
use wharf_ports::copy::{
    CopyPart, StoredAccount, StoredCost, StoredFile, StoredHold, StoredParts, StoredPrice,
    StoredRecord, StoredRow, StoredShard, StoredStream, StoredUse,
};
use wharf_ports::plan::Class;
use wharf_ports::{Claim, StoreError, StoreErrorKind};
use wharf_vocab::{RunKey, ShardId, StreamId, StreamKind, Timestamp};

use crate::error::{corrupt, from_sqlite};
use crate::number::{first_row, first_seq, last_row};
use crate::{connect, migrations, seal};

/// Rows of one part at most.
const ROWS: i64 = 1_000;
/// Bytes of journal after which a part is large enough.
const BYTES: usize = 8 << 20;

/// A database that is read from one end to the other, as it was when it was opened.
#[derive(Debug)]
pub struct SqliteExport {
    conn: Connection,
    stage: Stage,
    /// The last row of the stage that was read.
    after: i64,
    /// Which run's end takes the values of rows that a key opens.
    seals: HashMap<i64, RunKey>,
}

/// What is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Streams,
    Claims,
    Accounts,
    Holds,
    Prices,
    Records,
    Files,
    Uses,
    Costs,
    Shards,
    End,
}

/// How much a database holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportSize {
    /// Streams: runs, asks, worlds, providers, grants, seats.
    pub streams: u64,
    /// Streams that are runs.
    pub runs: u64,
    /// Records of the audit.
    pub records: u64,
    /// Records of files.
    pub files: u64,
    /// Accounts.
    pub accounts: u64,
}

impl SqliteExport {
    /// Opens a database of the newest version that no core uses.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let conn = connect::reader(path)?;
        conn.execute_batch("BEGIN").map_err(from_sqlite)?;
        let (version, newest) = (migrations::version(&conn)?, migrations::NEWEST);
        if version != newest {
            let message =
                format!("the database has schema {version} of {newest}; bring it up to it first");
            return Err(StoreError { kind: StoreErrorKind::Unavailable, message });
        }
        let seals = read_seals(&conn)?;
        Ok(Self { conn, stage: Stage::Streams, after: i64::MIN, seals })
    }

    /// How much there is.
    pub fn size(&self) -> Result<ExportSize, StoreError> {
        let count = |sql: &str| -> Result<u64, StoreError> {
            let count: i64 = self.conn.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)?;
            Ok(count.cast_unsigned())
        };
        Ok(ExportSize {
            streams: count("SELECT count(*) FROM streams")?,
            runs: count("SELECT count(*) FROM streams WHERE kind = 'run'")?,
            records: count("SELECT count(*) FROM audit")?,
            files: count("SELECT count(*) FROM artifacts")?,
            accounts: count("SELECT count(*) FROM accounts")?,
        })
    }

    fn streams(&mut self) -> Result<Vec<StoredStream>, StoreError> {
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut select = self
            .conn
            .prepare_cached(
                "SELECT id, kind, key, seq, open, summary, sealed FROM streams WHERE id > ?1
                 ORDER BY id LIMIT ?2",
            )
            .map_err(from_sqlite)?;
        let mut rows = select.query(params![self.after, ROWS]).map_err(from_sqlite)?;
        while bytes < BYTES
            && let Some(row) = rows.next().map_err(from_sqlite)?
        {
            let (id, stream) = self.stream(row)?;
            self.after = id;
            bytes += stream.rows.iter().map(|row| row.body.len()).sum::<usize>();
            found.push(stream);
        }
        Ok(found)
    }

    fn stream(&self, row: &Row<'_>) -> Result<(i64, StoredStream), StoreError> {
        let id: i64 = row.get(0).map_err(from_sqlite)?;
        let (kind, key): (String, String) =
            (row.get(1).map_err(from_sqlite)?, row.get(2).map_err(from_sqlite)?);
        let stream = StreamId::parse(&kind, &key)
            .map_err(|error| corrupt(format!("the stream {key:?} has a damaged name: {error}")))?;
        let sealed: Option<i64> = row.get(6).map_err(from_sqlite)?;
        let mut journal = self.rows(id, Class::Entries)?;
        journal.extend(self.rows(id, Class::Progress)?);
        let stored = StoredStream {
            position: id.cast_unsigned(),
            seq: row.get::<_, i64>(3).map_err(from_sqlite)?.cast_unsigned(),
            open: row.get(4).map_err(from_sqlite)?,
            summary: row.get(5).map_err(from_sqlite)?,
            sealed_with: sealed.and_then(|key| self.seals.get(&key).cloned()),
            rows: journal,
            claims: self.claims("SELECT scope, key, value FROM claims WHERE stream = ?1", id)?,
            stream,
        };
        Ok((id, stored))
    }

    fn rows(&self, stream: i64, class: Class) -> Result<Vec<StoredRow>, StoreError> {
        let mut select = self
            .conn
            .prepare_cached(
                "SELECT id, last_seq, at, commit_no, body FROM journal
                 WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            )
            .map_err(from_sqlite)?;
        let mut rows = select
            .query([first_row(stream, class), last_row(stream, class)])
            .map_err(from_sqlite)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            let id: i64 = row.get(0).map_err(from_sqlite)?;
            let body: Vec<u8> = row.get(4).map_err(from_sqlite)?;
            found.push(StoredRow {
                class,
                first: first_seq(id),
                last: row.get::<_, i64>(1).map_err(from_sqlite)?.cast_unsigned(),
                at: Timestamp(row.get::<_, i64>(2).map_err(from_sqlite)?.cast_unsigned()),
                commit_no: row.get::<_, i64>(3).map_err(from_sqlite)?.cast_unsigned(),
                body: seal::open(&self.conn, id, &body)?.into_owned(),
            });
        }
        Ok(found)
    }

    fn claims(&self, sql: &str, of: i64) -> Result<Vec<Claim>, StoreError> {
        let claim =
            |row: &Row<'_>| Ok(Claim { scope: row.get(0)?, key: row.get(1)?, value: row.get(2)? });
        self.conn
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map([of], claim)?.collect())
            .map_err(from_sqlite)
    }

    /// The next rows of a table with whole numbers for names.
    fn page<T>(
        &mut self,
        sql: &str,
        each: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut select = self.conn.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = select.query(params![self.after, ROWS]).map_err(from_sqlite)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            self.after = row.get(0).map_err(from_sqlite)?;
            found.push(each(row).map_err(from_sqlite)?);
        }
        Ok(found)
    }

    /// All rows of a table that has few.
    fn all<T>(
        &self,
        sql: &str,
        each: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut select = self.conn.prepare(sql).map_err(from_sqlite)?;
        select.query_map((), each).and_then(Iterator::collect).map_err(from_sqlite)
    }

    fn part(&mut self) -> Result<(CopyPart, bool), StoreError> {
        let few = "SELECT scope, key, value FROM claims WHERE stream IS NULL
                   OR stream NOT IN (SELECT id FROM streams) OR 0 = ?1";
        Ok(match self.stage {
            Stage::Streams => {
                let found = self.streams()?;
                let more = !found.is_empty();
                (CopyPart::Streams(found), more)
            }
            Stage::Claims => (CopyPart::Claims(self.claims(few, 1)?), false),
            Stage::Accounts => {
                let sql = "SELECT id, parent, max, held, spent FROM accounts";
                (CopyPart::Accounts(self.all(sql, account)?), false)
            }
            Stage::Holds => {
                let sql = "SELECT id, shard, account, amount, reported FROM holds";
                (CopyPart::Holds(self.all(sql, hold)?), false)
            }
            Stage::Prices => {
                let sql = "SELECT tool, hash, cost FROM prices ORDER BY id";
                (CopyPart::Prices(self.all(sql, price)?), false)
            }
            Stage::Records => {
                let sql = "SELECT id, shard, n, at, mac, record FROM audit WHERE id > ?1
                           ORDER BY id LIMIT ?2";
                let found = self.page(sql, record)?;
                let more = !found.is_empty();
                (CopyPart::Records(found), more)
            }
            Stage::Files => {
                let sql = "SELECT id, world, path, bytes, b3, media_type, run, key, direction, at,
                                  gone_at, used_at
                           FROM artifacts WHERE id > ?1 ORDER BY id LIMIT ?2";
                let found = self.page(sql, file)?;
                let more = !found.is_empty();
                (CopyPart::Files(found), more)
            }
            Stage::Uses => {
                let sql = "SELECT world, path, run FROM file_uses";
                (CopyPart::Uses(self.all(sql, file_use)?), false)
            }
            Stage::Costs => {
                let sql = "SELECT hour, world, tool, caller, runs, failed, cost_high, cost_low,
                                  wall_high, wall_low FROM purged_costs";
                (CopyPart::Costs(self.all(sql, cost)?), false)
            }
            Stage::Shards => {
                let sql = "SELECT s.shard, coalesce(l.epoch, 0), coalesce(h.commit_no, 0),
                                  coalesce(h.audit_n, 0), h.audit_mac, h.audit_sig
                           FROM (SELECT shard FROM leases UNION SELECT shard FROM heads) AS s
                           LEFT JOIN leases AS l USING (shard) LEFT JOIN heads AS h USING (shard)";
                (CopyPart::Shards(self.all(sql, shard)?), false)
            }
            Stage::End => (CopyPart::Claims(Vec::new()), false),
        })
    }
}

impl StoredParts for SqliteExport {
    fn next_part(&mut self) -> Result<Option<CopyPart>, StoreError> {
        if self.stage == Stage::End {
            return Ok(None);
        }
        let (part, more) = self.part()?;
        if !more {
            (self.stage, self.after) = (self.stage.next(), i64::MIN);
        }
        Ok(Some(part))
    }
}

impl Stage {
    fn next(self) -> Self {
        match self {
            Self::Streams => Self::Claims,
            Self::Claims => Self::Accounts,
            Self::Accounts => Self::Holds,
            Self::Holds => Self::Prices,
            Self::Prices => Self::Records,
            Self::Records => Self::Files,
            Self::Files => Self::Uses,
            Self::Uses => Self::Costs,
            Self::Costs => Self::Shards,
            Self::Shards | Self::End => Self::End,
        }
    }
}

fn read_seals(conn: &Connection) -> Result<HashMap<i64, RunKey>, StoreError> {
    let mut select = conn
        .prepare("SELECT sealed, key FROM streams WHERE sealed IS NOT NULL AND kind = 'run'")
        .map_err(from_sqlite)?;
    let mut rows = select.query(()).map_err(from_sqlite)?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let key: String = row.get(1).map_err(from_sqlite)?;
        let Ok(StreamId::Run(run)) = StreamId::parse(StreamKind::Run.as_str(), &key) else {
            return Err(corrupt(format!("the run {key:?} has a damaged name")));
        };
        found.insert(row.get(0).map_err(from_sqlite)?, run);
    }
    Ok(found)
}

/// An unsigned number that is kept in SQLite's signed one.
fn whole(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(at)?.cast_unsigned())
}

fn perhaps(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(i64::cast_unsigned))
}

/// A number whose halves are summed up apart.
fn halves(row: &Row<'_>, at: usize) -> rusqlite::Result<u128> {
    Ok((u128::from(whole(row, at)?) << 32) + u128::from(whole(row, at + 1)?))
}

fn account(row: &Row<'_>) -> rusqlite::Result<StoredAccount> {
    Ok(StoredAccount {
        id: row.get(0)?,
        parent: row.get(1)?,
        limit: perhaps(row, 2)?,
        held: whole(row, 3)?,
        spent: whole(row, 4)?,
    })
}

fn hold(row: &Row<'_>) -> rusqlite::Result<StoredHold> {
    Ok(StoredHold {
        id: row.get(0)?,
        shard: ShardId(row.get(1)?),
        account: row.get(2)?,
        amount: whole(row, 3)?,
        reported: whole(row, 4)?,
    })
}

fn price(row: &Row<'_>) -> rusqlite::Result<StoredPrice> {
    Ok(StoredPrice { tool: row.get(0)?, hash: row.get(1)?, cost: whole(row, 2)? })
}

fn record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        id: whole(row, 0)?,
        shard: ShardId(row.get(1)?),
        n: whole(row, 2)?,
        at: Timestamp(whole(row, 3)?),
        mac: row.get(4)?,
        json: row.get(5)?,
    })
}

fn file(row: &Row<'_>) -> rusqlite::Result<StoredFile> {
    Ok(StoredFile {
        position: whole(row, 0)?,
        world: row.get(1)?,
        path: row.get(2)?,
        bytes: whole(row, 3)?,
        b3: row.get(4)?,
        media_type: row.get(5)?,
        run: row.get(6)?,
        key: row.get(7)?,
        direction: row.get(8)?,
        at: whole(row, 9)?,
        gone_at: perhaps(row, 10)?,
        used_at: perhaps(row, 11)?,
    })
}

fn file_use(row: &Row<'_>) -> rusqlite::Result<StoredUse> {
    Ok(StoredUse { world: row.get(0)?, path: row.get(1)?, run: row.get(2)? })
}

fn cost(row: &Row<'_>) -> rusqlite::Result<StoredCost> {
    Ok(StoredCost {
        hour: whole(row, 0)?,
        world: row.get(1)?,
        tool: row.get(2)?,
        caller: row.get(3)?,
        runs: whole(row, 4)?,
        failed: whole(row, 5)?,
        cost: halves(row, 6)?,
        wall_ms: halves(row, 8)?,
    })
}

fn shard(row: &Row<'_>) -> rusqlite::Result<StoredShard> {
    Ok(StoredShard {
        shard: ShardId(row.get(0)?),
        epoch: whole(row, 1)?,
        commit_no: whole(row, 2)?,
        audit_n: whole(row, 3)?,
        audit_mac: row.get::<_, Option<[u8; 32]>>(4)?.unwrap_or_default(),
        audit_sig: row.get::<_, Option<[u8; 32]>>(5)?.unwrap_or_default(),
    })
}
