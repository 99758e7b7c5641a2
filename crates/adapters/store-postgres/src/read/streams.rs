//! Streams: their entries, and their history with progress.

use futures::TryStreamExt as _;
use tokio_postgres::Row;
use wharf_domain::{Entry, Progress};
use wharf_ports::{History, HistoryItem, HistoryRecord, StoreError};
use wharf_vocab::{RunKey, Seq, ShardId, StreamId, StreamKind, Timestamp};

use super::Reader;
use crate::error::{corrupt, from_journal, from_postgres};
use crate::number::{clamp, clamp_len};
use crate::pool::Pooled;
use crate::writer::shard_number;

/// The columns of a row of the journal, in the order `JournalRow::of` reads them.
const ROW: &str = "class, first_seq, last_seq, at, commit_no, body";

/// The entries of one stream, and the number of its last, as they are at one moment.
pub(crate) async fn load(reader: Reader, stream: StreamId) -> Result<Option<History>, StoreError> {
    let sql =
        "SELECT j.class, j.first_seq, j.last_seq, j.at, j.commit_no, j.body, s.seq, s.withheld
               FROM streams AS s LEFT JOIN journal AS j ON j.stream = s.id AND j.class = 0
               WHERE s.shard = $1 AND s.kind = $2 AND s.key = $3 ORDER BY j.first_seq";
    let (shard, key) = (shard_number(stream.shard()), stream.key());
    let mut client = reader.get().await?;
    let rows = client.query(sql, &[&shard, &stream.kind().as_str(), &key]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let seq: i64 = first.try_get(6).map_err(from_postgres)?;
    let kept = kept(first.try_get(7).map_err(from_postgres)?);
    let mut entries = Vec::new();
    for row in &rows {
        if row.try_get::<_, Option<i16>>(0).map_err(from_postgres)?.is_some() {
            JournalRow::of(row)?.add_entries(&mut entries, &key, kept)?;
        }
    }
    Ok(Some(History { seq: Seq(seq.cast_unsigned()), entries }))
}

/// The entries of a stream by its number.
pub(super) async fn entries(
    client: &mut Pooled,
    name: &str,
    id: i64,
) -> Result<Vec<(Timestamp, Entry)>, StoreError> {
    let sql =
        format!("SELECT {ROW} FROM journal WHERE stream = $1 AND class = 0 ORDER BY first_seq");
    let mut entries = Vec::new();
    for row in client.query(&sql, &[&id]).await? {
        JournalRow::of(&row)?.add_entries(&mut entries, name, |entry| entry)?;
    }
    Ok(entries)
}

/// All open streams of a kind in these shards, oldest first, without large inputs of runs. Rows are
/// read one after the other, of each stream the newest first, since a fold says what is needed of
/// those before it.
pub(crate) async fn load_open(
    reader: Reader,
    kind: StreamKind,
    shards: Vec<ShardId>,
) -> Result<Vec<(StreamId, History)>, StoreError> {
    let shards: Vec<i16> = shards.into_iter().map(shard_number).collect();
    let sql = "SELECT j.class, j.first_seq, j.last_seq, j.at, j.commit_no, j.body,
                      s.id, s.key, s.seq
               FROM opens AS o
               JOIN streams AS s ON s.shard = o.shard AND s.id = o.stream
               LEFT JOIN journal AS j ON j.stream = s.id AND j.class = 0
               WHERE o.kind = $1 AND o.shard = ANY ($2)
               ORDER BY s.pos, j.first_seq DESC";
    let mut client = reader.get().await?;
    let rows = client.stream(sql, &[&kind.as_str(), &shards]).await?;
    let mut rows = std::pin::pin!(rows);
    let mut found: Vec<(StreamId, History)> = Vec::new();
    let (mut current, mut folded) = (None, false);
    while let Some(row) = rows.try_next().await.map_err(from_postgres)? {
        let id: i64 = row.try_get(6).map_err(from_postgres)?;
        let key: &str = row.try_get(7).map_err(from_postgres)?;
        if current != Some(id) {
            (current, folded) = (Some(id), false);
            in_order(&mut found);
            let seq: i64 = row.try_get(8).map_err(from_postgres)?;
            let stored = History { seq: Seq(seq.cast_unsigned()), entries: Vec::new() };
            found.push((stream_id(kind, key)?, stored));
        }
        let is_row = row.try_get::<_, Option<i16>>(0).map_err(from_postgres)?.is_some();
        if let (true, Some((_, stored))) = (is_row, found.last_mut()) {
            JournalRow::of(&row)?.add_open_entries(&mut stored.entries, key, &mut folded)?;
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
pub(crate) async fn closed(
    reader: Reader,
    kind: StreamKind,
    limit: usize,
) -> Result<Vec<StreamId>, StoreError> {
    let sql = "SELECT found.key FROM generate_series(0, 255) AS every (shard), LATERAL (
                   SELECT s.key FROM streams AS s
                   WHERE s.shard = every.shard AND s.kind = $1 AND NOT EXISTS (
                       SELECT FROM opens AS o
                       WHERE o.shard = s.shard AND o.kind = s.kind AND o.stream = s.id)
                   LIMIT $2) AS found
               LIMIT $2";
    let rows = reader.get().await?.query(sql, &[&kind.as_str(), &clamp_len(limit)]).await?;
    let key = |row: &tokio_postgres::Row| stream_id(kind, row.try_get(0).map_err(from_postgres)?);
    rows.iter().map(key).collect()
}

/// The open runs whose parents belong to these shards, each behind its parent.
pub(crate) async fn open_children(
    reader: Reader,
    parents: Vec<ShardId>,
) -> Result<Vec<(RunKey, RunKey)>, StoreError> {
    let sql = "SELECT s.parent, s.key
               FROM opens AS o
               JOIN streams AS s ON s.shard = o.shard AND s.id = o.stream
               WHERE o.kind = $1 AND s.parent IS NOT NULL";
    let mut client = reader.get().await?;
    let mut found = Vec::new();
    for row in client.query(sql, &[&StreamKind::Run.as_str()]).await? {
        let [parent, child]: [&str; 2] =
            [row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?];
        let parent = run_key(parent)?;
        if parents.contains(&parent.shard()) {
            found.push((parent, run_key(child)?));
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
pub(crate) async fn history(
    reader: Reader,
    stream: StreamId,
    after: Seq,
    limit: usize,
) -> Result<Vec<HistoryRecord>, StoreError> {
    let mut client = reader.get().await?;
    let Some((id, withheld)) = find(&mut client, &stream).await? else { return Ok(Vec::new()) };
    let name = stream.key();
    // Each class begins with the last row that may reach behind `after`.
    let class = |class: u8| {
        format!(
            "(SELECT {ROW} FROM journal WHERE stream = $1 AND class = {class} AND last_seq > $2
                  AND first_seq >= coalesce(
                      (SELECT max(first_seq) FROM journal
                       WHERE stream = $1 AND class = {class} AND first_seq <= $2 + 1), 0)
              ORDER BY first_seq LIMIT $3)"
        )
    };
    let sql = format!("{} UNION ALL {} ORDER BY 2", class(0), class(1));
    let after = clamp(after.0.min(u64::MAX / 4));
    let mut rows_max = clamp_len(limit.max(1)).saturating_add(8);
    loop {
        let rows = client.query(&sql, &[&id, &after, &rows_max]).await?;
        let all = clamp_len(rows.len()) < rows_max;
        let mut records = Vec::new();
        let mut last_no = None;
        let mut complete = all;
        for row in &rows {
            let row = JournalRow::of(row)?;
            if records.len() >= limit.max(1) && last_no != Some(row.no) {
                complete = true;
                break;
            }
            last_no = Some(row.no);
            row.unpack(&name, after.cast_unsigned(), withheld, &mut records)?;
        }
        if complete {
            return Ok(records);
        }
        // A commit of very many rows; the next look brings more of them.
        rows_max = rows_max.saturating_mul(4);
    }
}

/// One row of the journal.
struct JournalRow<'a> {
    class: i16,
    first: u64,
    last: u64,
    at: Timestamp,
    no: i64,
    body: &'a [u8],
}

impl<'a> JournalRow<'a> {
    fn of(row: &'a Row) -> Result<Self, StoreError> {
        let number = |at: usize| -> Result<u64, StoreError> {
            Ok(row.try_get::<_, i64>(at).map_err(from_postgres)?.cast_unsigned())
        };
        Ok(Self {
            class: row.try_get(0).map_err(from_postgres)?,
            first: number(1)?,
            last: number(2)?,
            at: Timestamp(number(3)?),
            no: row.try_get(4).map_err(from_postgres)?,
            body: row.try_get(5).map_err(from_postgres)?,
        })
    }

    /// Adds what the row holds behind `after`.
    fn unpack(
        self,
        name: &str,
        after: u64,
        withheld: bool,
        records: &mut Vec<HistoryRecord>,
    ) -> Result<(), StoreError> {
        let damaged = |error| from_journal(name, &error);
        let items: Vec<HistoryItem> = match self.class {
            0 => {
                let entries = wharf_journal::decode(self.body).map_err(damaged)?;
                entries.into_iter().map(kept(withheld)).map(HistoryItem::Entry).collect()
            }
            _ => {
                let pieces = wharf_journal::decode_progress(self.body).map_err(damaged)?;
                let shown = |piece| if withheld { Progress::Withheld } else { piece };
                pieces.into_iter().map(shown).map(HistoryItem::Progress).collect()
            }
        };
        self.check_len(name, items.len())?;
        let at = self.at;
        let behind = items.into_iter().zip(self.first..).filter(|(_, seq)| *seq > after);
        records.extend(behind.map(|(item, seq)| HistoryRecord { seq: Seq(seq), at, item }));
        Ok(())
    }

    fn add_entries(
        self,
        entries: &mut Vec<(Timestamp, Entry)>,
        name: &str,
        kept: impl Fn(Entry) -> Entry,
    ) -> Result<(), StoreError> {
        let decoded =
            wharf_journal::decode(self.body).map_err(|error| from_journal(name, &error))?;
        self.check_len(name, decoded.len())?;
        entries.extend(decoded.into_iter().map(|entry| (self.at, kept(entry))));
        Ok(())
    }

    /// Adds what an open run needs of the row, the last entry first.
    fn add_open_entries(
        self,
        entries: &mut Vec<(Timestamp, Entry)>,
        name: &str,
        folded: &mut bool,
    ) -> Result<(), StoreError> {
        let decoded = wharf_journal::decode_open(self.body, folded);
        let (decoded, count) = decoded.map_err(|error| from_journal(name, &error))?;
        self.check_len(name, count)?;
        entries.extend(decoded.into_iter().rev().map(|entry| (self.at, entry.lean())));
        Ok(())
    }

    /// A row that holds more or less than its numbers say was damaged.
    fn check_len(&self, name: &str, len: usize) -> Result<(), StoreError> {
        let (first, last) = (self.first, self.last);
        if last.checked_sub(first).map(|span| span + 1) == Some(len as u64) {
            return Ok(());
        }
        Err(corrupt(format!("a row of {name} holds {len} entries for {first} to {last}")))
    }
}

/// A stream's number, and whether its values are withheld.
async fn find(client: &mut Pooled, stream: &StreamId) -> Result<Option<(i64, bool)>, StoreError> {
    let sql = "SELECT id, withheld FROM streams WHERE shard = $1 AND kind = $2 AND key = $3";
    let shard = shard_number(stream.shard());
    let rows = client.query(sql, &[&shard, &stream.kind().as_str(), &stream.key()]).await?;
    let found =
        |row: &Row| -> Result<_, tokio_postgres::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
    rows.first().map(|row| found(row).map_err(from_postgres)).transpose()
}

/// What is shown of an entry of a stream.
pub(super) fn kept(withheld: bool) -> fn(Entry) -> Entry {
    if withheld { Entry::withheld } else { |entry| entry }
}

/// Reads a stream's name back.
fn stream_id(kind: StreamKind, key: &str) -> Result<StreamId, StoreError> {
    StreamId::parse(kind.as_str(), key)
        .map_err(|error| corrupt(format!("the stream {key:?} has a damaged name: {error}")))
}
