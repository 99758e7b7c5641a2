//! Streams: their entries, and their history with progress.

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, Rows, params};
use wharf_domain::Entry;
use wharf_ports::plan::Class;
use wharf_ports::{History, HistoryItem, HistoryRecord, StoreError};
use wharf_vocab::{RunKey, Seq, ShardId, StreamId, StreamKind, Timestamp};

use crate::error::{corrupt, from_journal, from_sqlite};
use crate::number::{
    ENTRIES_SPAN, clamp, clamp_len, first_row, first_row_sql, first_seq, last_row,
};
use crate::seal;

/// The entries of one stream.
pub(crate) fn load(conn: &Connection, stream: &StreamId) -> Result<Option<History>, StoreError> {
    let Some((id, seq)) = find(conn, stream)? else { return Ok(None) };
    let entries = entries(conn, &stream.key(), id)?;
    Ok(Some(History { seq, entries }))
}

/// The entries of a stream by its number.
pub(super) fn entries(
    conn: &Connection,
    name: &str,
    id: i64,
) -> Result<Vec<(Timestamp, Entry)>, StoreError> {
    let mut select = conn
        .prepare_cached(
            "SELECT id, last_seq, at, commit_no, body FROM journal
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
        )
        .map_err(from_sqlite)?;
    let (first, last) = (first_row(id, Class::Entries), last_row(id, Class::Entries));
    let mut rows = select.query([first, last]).map_err(from_sqlite)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        add_entries(&mut entries, conn, (name, row), |entry| entry)?;
    }
    Ok(entries)
}

/// All open streams of a kind in these shards, oldest first, without large inputs of runs.
pub(crate) fn load_open(
    conn: &Connection,
    kind: StreamKind,
    shards: &[ShardId],
) -> Result<Vec<(StreamId, History)>, StoreError> {
    let mut wanted = [false; 256];
    for shard in shards {
        wanted[shard.index()] = true;
    }
    // A left join walks streams first, so that rows come stream by stream; one that has progress
    // only comes once, without a row. The newest come first, since a fold says what is needed of
    // those before it.
    let base = first_row_sql("s.id");
    let sql = format!(
        "SELECT j.id, j.last_seq, j.at, j.commit_no, j.body, s.id, s.shard, s.key, s.seq
         FROM streams AS s
         LEFT JOIN journal AS j ON j.id >= {base} AND j.id < {base} + {ENTRIES_SPAN}
         WHERE s.open = 1 AND s.kind = ?1
         ORDER BY s.id, j.id DESC"
    );
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let mut rows = select.query([kind.as_str()]).map_err(from_sqlite)?;
    let mut found: Vec<(StreamId, History)> = Vec::new();
    let (mut current, mut folded) = (None, false);
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let (id, shard): (i64, u8) =
            (row.get(5).map_err(from_sqlite)?, row.get(6).map_err(from_sqlite)?);
        if !wanted[usize::from(shard)] {
            continue;
        }
        let key = row.get_ref(7).map_err(from_sqlite)?.as_str();
        let key = key.map_err(|_| corrupt("a stream's name is not text"))?;
        if current != Some(id) {
            (current, folded) = (Some(id), false);
            in_order(&mut found);
            let seq: i64 = row.get(8).map_err(from_sqlite)?;
            let stored = History { seq: Seq(seq.cast_unsigned()), entries: Vec::new() };
            found.push((stream_id(kind, key)?, stored));
        }
        let is_row = !matches!(row.get_ref(0).map_err(from_sqlite)?, ValueRef::Null);
        if let (true, Some((_, stored))) = (is_row, found.last_mut()) {
            add_open_entries(&mut stored.entries, conn, (key, row), &mut folded)?;
        }
    }
    in_order(&mut found);
    Ok(found)
}

/// Turns the entries of the last stream around, which were read newest first.
fn in_order(found: &mut [(StreamId, History)]) {
    if let Some((_, stored)) = found.last_mut() {
        stored.entries.reverse();
    }
}

/// Some streams of a kind that are not open.
pub(crate) fn closed(
    conn: &Connection,
    kind: StreamKind,
    limit: usize,
) -> Result<Vec<StreamId>, StoreError> {
    let mut select = conn
        .prepare_cached("SELECT key FROM streams WHERE kind = ?1 AND open = 0 LIMIT ?2")
        .map_err(from_sqlite)?;
    let mut rows = select.query(params![kind.as_str(), clamp_len(limit)]).map_err(from_sqlite)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let key: String = row.get(0).map_err(from_sqlite)?;
        found.push(stream_id(kind, &key)?);
    }
    Ok(found)
}

/// The open runs whose parents belong to these shards, each behind its parent. Of open runs only
/// what lists show is read.
pub(crate) fn open_children(
    conn: &Connection,
    parents: &[ShardId],
) -> Result<Vec<(RunKey, RunKey)>, StoreError> {
    let mut select = conn
        .prepare_cached(
            "SELECT parent, key FROM streams INDEXED BY streams_open
             WHERE open = 1 AND kind = 'run' AND parent IS NOT NULL",
        )
        .map_err(from_sqlite)?;
    let mut rows = select.query([]).map_err(from_sqlite)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let [parent, child]: [String; 2] =
            [row.get(0).map_err(from_sqlite)?, row.get(1).map_err(from_sqlite)?];
        let parent = run_key(&parent)?;
        if parents.contains(&parent.shard()) {
            found.push((parent, run_key(&child)?));
        }
    }
    Ok(found)
}

fn run_key(key: &str) -> Result<RunKey, StoreError> {
    match stream_id(StreamKind::Run, key)? {
        StreamId::Run(key) => Ok(key),
        _ => Err(corrupt(format!("{key:?} is not the name of a run"))),
    }
}

/// Entries and progress behind `after`, until `limit` is reached and a commit is complete.
pub(crate) fn history(
    conn: &Connection,
    stream: &StreamId,
    after: Seq,
    limit: usize,
) -> Result<Vec<HistoryRecord>, StoreError> {
    let Some((id, _)) = find(conn, stream)? else { return Ok(Vec::new()) };
    let name = stream.key();
    let select = || {
        // Begins with the last row that may reach behind `after`, found without a scan.
        conn.prepare_cached(
            "SELECT id, last_seq, at, commit_no, body FROM journal
             WHERE id BETWEEN coalesce(
                     (SELECT id FROM journal WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1),
                     ?1)
                 AND ?3 AND last_seq > ?4
             ORDER BY id",
        )
        .map_err(from_sqlite)
    };
    let (mut of_entries, mut of_progress) = (select()?, select()?);
    let range = |class| {
        let (first, last) = (first_row(id, class), last_row(id, class));
        let near = first.saturating_add(clamp(after.0)).saturating_add(1).min(last);
        [first, near, last, clamp(after.0)]
    };
    let mut entries = ClassCursor::over(
        of_entries.query(range(Class::Entries)).map_err(from_sqlite)?,
        Class::Entries,
    )?;
    let mut progress = ClassCursor::over(
        of_progress.query(range(Class::Progress)).map_err(from_sqlite)?,
        Class::Progress,
    )?;
    let mut records = Vec::new();
    let mut last_no = None;
    loop {
        let next = match (entries.first, progress.first) {
            (Some(a), Some(b)) if b < a => &mut progress,
            (Some(_), _) => &mut entries,
            (None, Some(_)) => &mut progress,
            (None, None) => break,
        };
        let Some(row) = next.take()? else { break };
        if records.len() >= limit.max(1) && last_no != Some(row.no) {
            break;
        }
        last_no = Some(row.no);
        row.unpack(conn, &name, after, &mut records)?;
    }
    Ok(records)
}

/// Rows of one class, and where the next of them begins.
struct ClassCursor<'a> {
    rows: Rows<'a>,
    class: Class,
    first: Option<u64>,
    ahead: Option<JournalRow>,
}

/// One row of the journal.
struct JournalRow {
    id: i64,
    class: Class,
    first: u64,
    last: u64,
    at: Timestamp,
    no: i64,
    body: Vec<u8>,
}

impl<'a> ClassCursor<'a> {
    fn over(rows: Rows<'a>, class: Class) -> Result<Self, StoreError> {
        let mut cursor = Self { rows, class, first: None, ahead: None };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<(), StoreError> {
        let row = self.rows.next().map_err(from_sqlite)?;
        let class = self.class;
        self.ahead = row.map(|row| JournalRow::of(row, class)).transpose().map_err(from_sqlite)?;
        self.first = self.ahead.as_ref().map(|row| row.first);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<JournalRow>, StoreError> {
        let row = self.ahead.take();
        self.advance()?;
        Ok(row)
    }
}

impl JournalRow {
    fn of(row: &Row<'_>, class: Class) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            class,
            first: first_seq(row.get(0)?),
            last: row.get::<_, i64>(1)?.cast_unsigned(),
            at: Timestamp(row.get::<_, i64>(2)?.cast_unsigned()),
            no: row.get(3)?,
            body: row.get(4)?,
        })
    }

    /// Adds what the row holds behind `after`.
    fn unpack(
        self,
        conn: &Connection,
        name: &str,
        after: Seq,
        records: &mut Vec<HistoryRecord>,
    ) -> Result<(), StoreError> {
        let damaged = |error| from_journal(name, &error);
        let body = seal::open(conn, self.id, &self.body)?;
        let items: Vec<HistoryItem> = match self.class {
            Class::Entries => {
                let entries = wharf_journal::decode(&body).map_err(damaged)?;
                entries.into_iter().map(HistoryItem::Entry).collect()
            }
            Class::Progress => {
                let pieces = wharf_journal::decode_progress(&body).map_err(damaged)?;
                pieces.into_iter().map(HistoryItem::Progress).collect()
            }
        };
        check_len(name, self.first, self.last, items.len())?;
        let at = self.at;
        let numbered = items.into_iter().zip(self.first..);
        let behind = numbered.filter(|(_, seq)| *seq > after.0);
        records.extend(behind.map(|(item, seq)| HistoryRecord { seq: Seq(seq), at, item }));
        Ok(())
    }
}

/// Adds the entries of a row whose columns begin with `id, last_seq, at, commit_no, body`.
fn add_entries(
    entries: &mut Vec<(Timestamp, Entry)>,
    conn: &Connection,
    (name, row): (&str, &Row<'_>),
    kept: impl Fn(Entry) -> Entry,
) -> Result<(), StoreError> {
    let row = EntriesRow::of(conn, (name, row))?;
    let decoded = wharf_journal::decode(&row.body).map_err(|error| from_journal(name, &error))?;
    check_len(name, row.first, row.last, decoded.len())?;
    entries.extend(decoded.into_iter().map(|entry| (row.at, kept(entry))));
    Ok(())
}

/// Adds what an open run needs of such a row, the last entry first.
fn add_open_entries(
    entries: &mut Vec<(Timestamp, Entry)>,
    conn: &Connection,
    (name, row): (&str, &Row<'_>),
    folded: &mut bool,
) -> Result<(), StoreError> {
    let row = EntriesRow::of(conn, (name, row))?;
    let decoded = wharf_journal::decode_open(&row.body, folded);
    let (decoded, count) = decoded.map_err(|error| from_journal(name, &error))?;
    check_len(name, row.first, row.last, count)?;
    entries.extend(decoded.into_iter().rev().map(|entry| (row.at, entry.lean())));
    Ok(())
}

/// A row of entries that is not sealed any more.
struct EntriesRow<'a> {
    first: u64,
    last: u64,
    at: Timestamp,
    body: Cow<'a, [u8]>,
}

impl<'a> EntriesRow<'a> {
    fn of(conn: &Connection, (name, row): (&str, &'a Row<'_>)) -> Result<Self, StoreError> {
        let (id, last, at): (i64, i64, i64) = (
            row.get(0).map_err(from_sqlite)?,
            row.get(1).map_err(from_sqlite)?,
            row.get(2).map_err(from_sqlite)?,
        );
        let body = row.get_ref(4).map_err(from_sqlite)?.as_blob();
        let body = body.map_err(|_| corrupt(format!("a row of {name} holds no bytes")))?;
        let (first, last) = (first_seq(id), last.cast_unsigned());
        let (at, body) = (Timestamp(at.cast_unsigned()), seal::open(conn, id, body)?);
        Ok(Self { first, last, at, body })
    }
}

/// A row that holds more or less than its numbers say was damaged.
fn check_len(name: &str, first: u64, last: u64, len: usize) -> Result<(), StoreError> {
    if last.checked_sub(first).map(|span| span + 1) == Some(len as u64) {
        Ok(())
    } else {
        Err(corrupt(format!("a row of {name} holds {len} entries for {first} to {last}")))
    }
}

fn find(conn: &Connection, stream: &StreamId) -> Result<Option<(i64, Seq)>, StoreError> {
    conn.prepare_cached("SELECT id, seq FROM streams WHERE kind = ?1 AND key = ?2")
        .and_then(|mut select| {
            select
                .query_row(params![stream.kind().as_str(), stream.key()], |row| {
                    Ok((row.get(0)?, Seq(row.get::<_, i64>(1)?.cast_unsigned())))
                })
                .optional()
        })
        .map_err(from_sqlite)
}

/// Reads a stream's name back.
fn stream_id(kind: StreamKind, key: &str) -> Result<StreamId, StoreError> {
    StreamId::parse(kind.as_str(), key)
        .map_err(|error| corrupt(format!("the stream {key:?} has a damaged name: {error}")))
}
