//! The index of files: which there are now, and who wrote and read each.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use wharf_domain::Artifact;
use wharf_domain::scope::WorldPath;
use wharf_ports::{
    FileQuery, FileRecord, FolderQuery, FolderSize, StoreError, TraceQuery, WorldSize,
};
use wharf_vocab::{B3, Direction, RunId, Timestamp, WorldId};

use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// The columns of a record, in the order `Columns::of` reads them.
const COLUMNS: &str = "id, path, bytes, b3, media_type, run, key, direction, at, gone_at";

/// A partial index is only used when its condition stands in the statement too.
const HERE: &str =
    "artifacts INDEXED BY files_here WHERE direction = 'out' AND gone_at IS NULL AND world = ?1";

/// Where local files of runs begin among all paths.
const LOCALS: &str = "/@";
/// The first text behind all local files of runs.
const BEHIND_LOCALS: &str = "/A";

/// Files that are there now, in the order of their paths.
pub(crate) fn files(conn: &Connection, query: &FileQuery) -> Result<Vec<FileRecord>, StoreError> {
    let sql = files_sql();
    let unused_since = query.unused_since.map(|since| clamp(since.0));
    let mut found = Vec::new();
    for (from, to) in ranges(query) {
        let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
        let left = clamp_len(query.limit - found.len());
        let values = params![query.world.as_str(), from, to, unused_since, left];
        let mut rows = select.query(values).map_err(from_sqlite)?;
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            found.push(to_record(&query.world, row)?);
        }
    }
    Ok(found)
}

/// Every file of every world that is there now, in the order of worlds and paths.
pub(crate) fn all_files(
    conn: &Connection,
    each: &mut dyn FnMut(FileRecord),
) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, world FROM artifacts WHERE direction = 'out' AND gone_at IS NULL
         ORDER BY world, path"
    );
    let mut select = conn.prepare(&sql).map_err(from_sqlite)?;
    let mut rows = select.query(()).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let world: String = row.get(10).map_err(from_sqlite)?;
        let world = WorldId::new(world).map_err(|_| corrupt("the name of a world is damaged"))?;
        each(to_record(&world, row)?);
    }
    Ok(())
}

fn files_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM {HERE} AND path >= ?2 AND path < ?3
             AND (?4 IS NULL OR used_at < ?4)
         ORDER BY path LIMIT ?5"
    )
}

/// The ranges of paths that have all wanted files and no others: from the first of each to the
/// first behind it. Paths are compared byte by byte here and by SQLite.
fn ranges(query: &FileQuery) -> Vec<(String, String)> {
    // Every path begins with a slash.
    let prefix = query.prefix.as_deref().filter(|prefix| !prefix.is_empty()).unwrap_or("/");
    if !prefix.starts_with('/') {
        return Vec::new();
    }
    let end = behind(prefix);
    let mut start = prefix.to_owned();
    if let Some(after) = query.after.as_ref().filter(|after| after.as_str() >= prefix) {
        // No text stands between another and the same with a zero behind it.
        start = format!("{after}\0");
    }
    let ranges = if query.locals || prefix.starts_with(LOCALS) {
        vec![(start, end)]
    } else {
        let before = (start.clone(), end.clone().min(LOCALS.to_owned()));
        vec![before, (start.max(BEHIND_LOCALS.to_owned()), end)]
    };
    ranges.into_iter().filter(|(start, end)| start < end).collect()
}

/// The first text behind all that begin with `prefix`, which begins with a slash.
fn behind(prefix: &str) -> String {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // Text has no surrogates, so the range steps over them.
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            break;
        }
    }
    text
}

/// Who wrote and read files, oldest first.
pub(crate) fn trace(conn: &Connection, query: &TraceQuery) -> Result<Vec<FileRecord>, StoreError> {
    let (sql, values) = trace_statement(query);
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let mut rows = select.query(params_from_iter(values)).map_err(from_sqlite)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        found.push(to_record(&query.world, row)?);
    }
    Ok(found)
}

/// The statement walks records in their order over the index of the run or of the file, which
/// end with it, so that nothing is gathered and sorted.
fn trace_statement(query: &TraceQuery) -> (String, Vec<Value>) {
    let mut values = vec![
        Value::from(query.world.as_str().to_owned()),
        clamp(query.after).into(),
        clamp_len(query.limit).into(),
    ];
    let mut term = |text: &str| {
        values.push(text.to_owned().into());
        values.len()
    };
    let from = match (&query.run, &query.path) {
        (Some(run), None) => {
            let run = term(run.as_str());
            format!("INDEXED BY artifacts_by_run WHERE world = ?1 AND run = ?{run}")
        }
        // A run has few files, while a file may have been read by many runs.
        (Some(run), Some(path)) => {
            let (run, path) = (term(run.as_str()), term(path.as_str()));
            format!(
                "INDEXED BY artifacts_by_run
                 WHERE world = ?1 AND run = ?{run} AND +path = ?{path}"
            )
        }
        (None, Some(path)) => {
            let path = term(path.as_str());
            format!("INDEXED BY artifacts_by_path WHERE world = ?1 AND path = ?{path}")
        }
        (None, None) => "WHERE +world = ?1".to_owned(),
    };
    let sql = format!("SELECT {COLUMNS} FROM artifacts {from} AND id > ?2 ORDER BY id LIMIT ?3");
    (sql, values)
}

/// How much a world holds.
pub(crate) fn usage(conn: &Connection, world: &WorldId) -> Result<WorldSize, StoreError> {
    conn.prepare_cached(&usage_sql())
        .and_then(|mut select| {
            select.query_row(params![world.as_str(), LOCALS, BEHIND_LOCALS], to_usage)
        })
        .map_err(from_sqlite)
}

/// How much some folders hold, as far as is counted.
pub(crate) fn folder_sizes(
    conn: &Connection,
    query: &FolderQuery,
) -> Result<Vec<FolderSize>, StoreError> {
    let sql = folder_sql();
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let mut size = |folder: &String| {
        if !folder.starts_with('/') {
            return Ok(FolderSize::default());
        }
        let (world, most) = (query.world.as_str(), clamp_len(query.files_max));
        select.query_row(params![world, folder, behind(folder), most], |row| {
            Ok(FolderSize { files: part(row, 0)?, bytes: whole(row, 1)? })
        })
    };
    query.folders.iter().map(|folder| size(folder).map_err(from_sqlite)).collect()
}

/// The statement walks the paths of a folder over the index alone, and no farther than it may.
fn folder_sql() -> String {
    format!(
        "SELECT count(*), sum(bytes >> 32 & 4294967295), sum(bytes & 4294967295)
         FROM (SELECT bytes FROM {HERE} AND path >= ?2 AND path < ?3 ORDER BY path LIMIT ?4)"
    )
}

/// The statement reads the index alone, once. It adds up the halves of each number apart, since
/// SQLite's sums end at 63 bits.
fn usage_sql() -> String {
    let sums = |which: &str| {
        format!(
            "count(*) {which}, sum(bytes >> 32 & 4294967295) {which}, \
             sum(bytes & 4294967295) {which}"
        )
    };
    let local = sums("FILTER (WHERE path >= ?2 AND path < ?3)");
    format!("SELECT {}, {local} FROM {HERE}", sums(""))
}

fn to_usage(row: &Row<'_>) -> rusqlite::Result<WorldSize> {
    Ok(WorldSize {
        files: part(row, 0)?,
        bytes: whole(row, 1)?,
        local_files: part(row, 3)?,
        local_bytes: whole(row, 4)?,
    })
}

/// A count, or one half of a sum. There is no sum of nothing.
fn part(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(at)?.unwrap_or(0).cast_unsigned())
}

/// A sum from its halves; what has no room stays at the most there is.
fn whole(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let bytes = (u128::from(part(row, at)?) << 32) + u128::from(part(row, at + 1)?);
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn to_record(world: &WorldId, row: &Row<'_>) -> Result<FileRecord, StoreError> {
    let columns = Columns::of(row).map_err(from_sqlite)?;
    let position = columns.id;
    columns
        .into_record(world)
        .ok_or_else(|| corrupt(format!("the record {position} of a file is damaged")))
}

/// A record as its columns hold it.
struct Columns {
    id: i64,
    path: String,
    bytes: i64,
    b3: Option<String>,
    media_type: String,
    run: Option<String>,
    key: Option<String>,
    direction: String,
    at: i64,
    gone_at: Option<i64>,
}

impl Columns {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            path: row.get(1)?,
            bytes: row.get(2)?,
            b3: row.get(3)?,
            media_type: row.get(4)?,
            run: row.get(5)?,
            key: row.get(6)?,
            direction: row.get(7)?,
            at: row.get(8)?,
            gone_at: row.get(9)?,
        })
    }

    /// The record, unless one of its parts is nothing that was ever written.
    fn into_record(self, world: &WorldId) -> Option<FileRecord> {
        let moment = |at: i64| Timestamp(at.cast_unsigned());
        Some(FileRecord {
            position: self.id.cast_unsigned(),
            at: moment(self.at),
            artifact: Artifact {
                world: world.clone(),
                path: WorldPath::try_from(self.path).ok()?,
                bytes: self.bytes.cast_unsigned(),
                b3: self.b3.map(B3::parse).transpose().ok()?,
                media_type: self.media_type,
                run: self.run.map(RunId::new).transpose().ok()?,
                key: self.key,
                direction: Direction::parse(&self.direction)?,
            },
            gone_at: self.gone_at.map(moment),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations;

    fn plan(sql: &str, values: Vec<Value>) -> Vec<String> {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepares");
        explain
            .query_map(params_from_iter(values), |row| row.get(3))
            .and_then(Iterator::collect)
            .expect("explains")
    }

    /// A page walks the paths of its range and nothing else, and nothing is sorted.
    #[test]
    fn t040_a_page_of_files_is_one_walk_over_their_paths() {
        let values = ["w", "/a", "/b"].map(|text| Value::from(text.to_owned()));
        let values = values.into_iter().chain([5.into(), 9.into()]).collect();
        let plan = plan(&files_sql(), values);
        assert_eq!(plan.len(), 1, "{plan:?}");
        assert!(plan[0].contains("files_here (world=? AND path>? AND path<?)"), "{plan:?}");
    }

    #[test]
    fn t040_lineage_is_read_in_order_from_an_index() {
        let world = WorldId::new("w").expect("valid");
        let path = WorldPath::parse("/a").expect("valid");
        let run = RunId::new("r").expect("valid");
        let base = TraceQuery { world, path: None, run: None, after: 3, limit: 9 };
        let by_run = "artifacts_by_run (world=? AND run=? AND rowid>?)";
        let cases = [
            (Some(&path), None, "artifacts_by_path (world=? AND path=? AND rowid>?)"),
            (None, Some(&run), by_run),
            (Some(&path), Some(&run), by_run),
            (None, None, "INTEGER PRIMARY KEY (rowid>?)"),
        ];
        for (path, run, index) in cases {
            let query = TraceQuery { path: path.cloned(), run: run.cloned(), ..base.clone() };
            let (sql, values) = trace_statement(&query);
            let plan = plan(&sql, values);
            assert_eq!(plan.len(), 1, "{plan:?}");
            assert!(plan[0].contains(index), "{plan:?}");
        }
    }

    #[test]
    fn t040_a_worlds_size_is_summed_from_the_index_alone() {
        let values = ["w", LOCALS, BEHIND_LOCALS].map(|text| Value::from(text.to_owned()));
        let plan = plan(&usage_sql(), values.into());
        assert_eq!(plan.len(), 1, "{plan:?}");
        assert!(plan[0].contains("COVERING INDEX files_here (world=?)"), "{plan:?}");
    }

    #[test]
    fn c045_a_folders_size_is_summed_from_the_index_alone_and_no_farther() {
        let values = ["w", "/a/", "/a0"].map(|text| Value::from(text.to_owned()));
        let plan = plan(&folder_sql(), values.into_iter().chain([5.into()]).collect());
        let walk = "COVERING INDEX files_here (world=? AND path>? AND path<?)";
        assert!(plan.iter().any(|step| step.contains(walk)), "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    }

    #[test]
    fn t040_the_text_behind_a_prefix_is_the_first_that_does_not_begin_with_it() {
        let cases = [
            ("/", "0"),
            ("/a", "/b"),
            ("/a%_", "/a%`"),
            ("/\u{d7ff}", "/\u{e000}"),
            ("/a\u{10ffff}", "/b"),
            ("/\u{10ffff}\u{10ffff}", "0"),
        ];
        for (prefix, next) in cases {
            assert_eq!(behind(prefix), next, "{prefix:?}");
        }
    }
}
