//! The index of files: which there are now, and who wrote and read each.

use futures::TryStreamExt as _;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use wharf_domain::Artifact;
use wharf_domain::scope::WorldPath;
use wharf_ports::{
    FileQuery, FileRecord, FolderQuery, FolderSize, StoreError, TraceQuery, WorldSize,
};
use wharf_vocab::{B3, Direction, RunId, Timestamp, WorldId};

use super::Reader;
use crate::error::{corrupt, from_postgres};
use crate::number::{Whole, clamp, clamp_len, from_text};
use crate::pool::Pooled;

/// The columns of a record, in the order `to_record` reads them.
const COLUMNS: &str = "pos, world, path, bytes, b3, media_type, run, key, direction, at, gone_at";
/// What makes a record stand for a file that is there now.
const HERE: &str = "direction = 'out' AND gone_at IS NULL";
/// Where local files of runs begin among all paths.
const LOCALS: &str = "/@";
/// The first text behind all local files of runs.
const BEHIND_LOCALS: &str = "/A";
/// No character is greater.
const GREATEST: char = char::MAX;

/// Files that are there now, in the order of their paths.
pub(crate) async fn files(reader: Reader, query: FileQuery) -> Result<Vec<FileRecord>, StoreError> {
    // Every path begins with a slash.
    let prefix = query.prefix.as_deref().filter(|prefix| !prefix.is_empty()).unwrap_or("/");
    // No path has the character 0, and PostgreSQL has no text with it.
    if !prefix.starts_with('/') || prefix.contains('\0') {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM artifacts WHERE {HERE} AND world = $1 AND path >= $2 AND path <= $3
             AND starts_with(path, $2) AND ($4::text IS NULL OR path > $4)
             AND ($5 OR path < '{LOCALS}' OR path >= '{BEHIND_LOCALS}')
             AND ($6::bigint IS NULL OR used_at < $6)
         ORDER BY path LIMIT $7"
    );
    // What begins so is not behind this; what is not beyond it may begin otherwise.
    let last = format!("{prefix}{}", GREATEST.to_string().repeat(8));
    let locals = query.locals || prefix.starts_with(LOCALS);
    let after = query.after.as_ref().map(WorldPath::as_str);
    let unused_since = query.unused_since.map(|since| clamp(since.0));
    let limit = clamp_len(query.limit);
    let params: [&(dyn ToSql + Sync); 7] =
        [&query.world.as_str(), &prefix, &last, &after, &locals, &unused_since, &limit];
    let rows = reader.get().await?.query(&sql, &params).await?;
    rows.iter().map(to_record).collect()
}

/// Every file of every world that is there now, in the order of worlds and paths.
pub(crate) async fn all_files(
    client: &mut Pooled,
    each: &mut (dyn FnMut(FileRecord) + Send),
) -> Result<(), StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM artifacts WHERE {HERE} ORDER BY world, path");
    let rows = client.stream(&sql, &[]).await?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await.map_err(from_postgres)? {
        each(to_record(&row)?);
    }
    Ok(())
}

/// Whether a record still stands for a file that is there.
pub(crate) async fn is_here(client: &mut Pooled, record: &FileRecord) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT FROM artifacts WHERE pos = $1 AND gone_at IS NULL)";
    let row = client.query_one(sql, &[&clamp(record.position)]).await?;
    row.try_get(0).map_err(from_postgres)
}

/// Who wrote and read files, oldest first.
pub(crate) async fn trace(
    reader: Reader,
    query: TraceQuery,
) -> Result<Vec<FileRecord>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM artifacts WHERE world = $1 AND pos > $2 AND pos < $3
             AND ($4::text IS NULL OR path = $4) AND ($5::text IS NULL OR run = $5)
         ORDER BY pos LIMIT $6"
    );
    let mut client = reader.get().await?;
    let settled = reader.settled(&mut client).await?;
    let path = query.path.as_ref().map(WorldPath::as_str);
    let run = query.run.as_ref().map(RunId::as_str);
    let (after, limit) = (clamp(query.after), clamp_len(query.limit));
    let params: [&(dyn ToSql + Sync); 6] =
        [&query.world.as_str(), &after, &settled, &path, &run, &limit];
    let rows = client.query(&sql, &params).await?;
    rows.iter().map(to_record).collect()
}

/// How much a world holds.
pub(crate) async fn usage(reader: Reader, world: WorldId) -> Result<WorldSize, StoreError> {
    let local = format!("path >= '{LOCALS}' AND path < '{BEHIND_LOCALS}'");
    let sql = format!(
        "SELECT count(*), coalesce(sum(bytes), 0), count(*) FILTER (WHERE {local}),
                coalesce(sum(bytes) FILTER (WHERE {local}), 0)
         FROM artifacts WHERE {HERE} AND world = $1"
    );
    let row = reader.get().await?.query_one(&sql, &[&world.as_str()]).await?;
    let count = |at: usize| -> Result<u64, StoreError> {
        Ok(row.try_get::<_, i64>(at).map_err(from_postgres)?.cast_unsigned())
    };
    let bytes = |at: usize| -> Result<u64, StoreError> {
        Ok(row.try_get::<_, Whole>(at).map_err(from_postgres)?.saturated())
    };
    Ok(WorldSize {
        files: count(0)?,
        bytes: bytes(1)?,
        local_files: count(2)?,
        local_bytes: bytes(3)?,
    })
}

/// How much some folders hold, as far as is counted.
pub(crate) async fn folder_sizes(
    reader: Reader,
    query: FolderQuery,
) -> Result<Vec<FolderSize>, StoreError> {
    let asked: Vec<&str> = query.folders.iter().map(String::as_str).collect();
    let sql = format!(
        "SELECT count(file.bytes), coalesce(sum(file.bytes), 0)
         FROM unnest($2::text[]) WITH ORDINALITY AS folder (prefix, n)
         LEFT JOIN LATERAL (
             SELECT bytes FROM artifacts WHERE {HERE} AND world = $1
                 AND path >= folder.prefix AND path <= folder.prefix || $3
                 AND starts_with(path, folder.prefix)
             ORDER BY path LIMIT $4
         ) AS file ON true
         GROUP BY folder.n ORDER BY folder.n"
    );
    let (last, most) = (GREATEST.to_string().repeat(8), clamp_len(query.files_max));
    let params: [&(dyn ToSql + Sync); 4] = [&query.world.as_str(), &asked, &last, &most];
    let rows = reader.get().await?.query(&sql, &params).await?;
    let size = |row: &Row| {
        let files: i64 = row.try_get(0).map_err(from_postgres)?;
        let bytes = row.try_get::<_, Whole>(1).map_err(from_postgres)?.saturated();
        Ok(FolderSize { files: files.cast_unsigned(), bytes })
    };
    rows.iter().map(size).collect()
}

fn to_record(row: &Row) -> Result<FileRecord, StoreError> {
    let position: i64 = row.try_get(0).map_err(from_postgres)?;
    let record = parts(row, position).map_err(from_postgres)?;
    record.ok_or_else(|| corrupt(format!("the record {position} of a file is damaged")))
}

/// The record, unless one of its parts is nothing that was ever written.
fn parts(row: &Row, position: i64) -> Result<Option<FileRecord>, tokio_postgres::Error> {
    let moment = |at: i64| Timestamp(at.cast_unsigned());
    let bytes: Whole = row.try_get(3)?;
    let key: Option<String> = row.try_get(7)?;
    let gone_at: Option<i64> = row.try_get(10)?;
    let at = moment(row.try_get(9)?);
    let (world, path, b3, run, direction): (String, String, Option<String>, Option<String>, &str) =
        (row.try_get(1)?, row.try_get(2)?, row.try_get(4)?, row.try_get(6)?, row.try_get(8)?);
    let media_type = from_text(row.try_get(5)?);
    let named = || {
        Some(Artifact {
            world: WorldId::new(world).ok()?,
            path: WorldPath::try_from(path).ok()?,
            bytes: bytes.saturated(),
            b3: b3.map(B3::parse).transpose().ok()?,
            media_type,
            run: run.map(RunId::new).transpose().ok()?,
            key: key.map(from_text),
            direction: Direction::parse(direction)?,
        })
    };
    let position = position.cast_unsigned();
    let gone_at = gone_at.map(moment);
    Ok(named().map(|artifact| FileRecord { position, at, artifact, gone_at }))
}
