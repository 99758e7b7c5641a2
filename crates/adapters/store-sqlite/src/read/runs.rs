//! The list of runs.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use wharf_ports::{RunPage, RunPlace, RunQuery, StoreError};
use wharf_vocab::RunStatus;

use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// A page of runs, newest first.
pub(crate) fn runs(conn: &Connection, query: &RunQuery) -> Result<RunPage, StoreError> {
    let Some(span) = span(conn, query).map_err(from_sqlite)? else { return Ok(RunPage::default()) };
    let (sql, values) = statement(query, span);
    let mut select = conn.prepare_cached(&sql).map_err(from_sqlite)?;
    let mut rows = select.query(params_from_iter(values)).map_err(from_sqlite)?;
    let mut page = RunPage::default();
    let mut last = None;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        if page.runs.len() == query.limit {
            page.next = last;
            break;
        }
        let id: i64 = row.get(0).map_err(from_sqlite)?;
        let json = row.get_ref(1).map_err(from_sqlite)?.as_str();
        let json = json.map_err(|_| corrupt("a run's summary is not text"))?;
        let run = serde_json::from_str(json)
            .map_err(|error| corrupt(format!("a run's summary is damaged: {error}")))?;
        page.runs.push(run);
        page.places.push(RunPlace { stored: id.cast_unsigned(), ..RunPlace::FIRST });
        last = Some(id.cast_unsigned());
    }
    Ok(page)
}

/// Where the wanted runs can be: behind the first number and before the second.
type Span = (i64, i64);

/// How far a page has to walk; `None` if there is nothing on the way. Runs are listed in the
/// order they were made, which is not quite the order of their times. So the index of times is
/// asked for the first and the last run since a moment, instead of walking to the oldest run.
fn span(conn: &Connection, query: &RunQuery) -> rusqlite::Result<Option<Span>> {
    let before = clamp(query.before.unwrap_or(u64::MAX));
    let Some(since) = query.since.filter(|_| walks_all(query)) else {
        return Ok(Some((0, before)));
    };
    let until = query.until.map_or(i64::MAX, |until| clamp(until.0));
    let ends: (Option<i64>, Option<i64>) = conn
        .prepare_cached(SPAN)?
        .query_row([clamp(since.0), until, before], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = ends else { return Ok(None) };
    Ok(Some((first - 1, last.saturating_add(1))))
}

const SPAN: &str = "SELECT min(id), max(id) FROM streams INDEXED BY runs_by_time
                    WHERE created_at >= ?1 AND created_at < ?2 AND id < ?3";

/// Whether no small index has the wanted runs.
fn walks_all(query: &RunQuery) -> bool {
    query.grant.is_none() && matches!(query.status, None | Some(RunStatus::Succeeded))
}

/// The statement walks streams from the newest to the oldest, over the smallest index that has
/// all of the wanted ones. It names the index, or hides a column behind `+`, so that SQLite never
/// gathers and sorts instead. A partial index is only used when its condition stands here too.
fn statement(query: &RunQuery, (behind, before): Span) -> (String, Vec<Value>) {
    let from = match query.status {
        _ if query.grant.is_some() => "streams INDEXED BY runs_by_caller WHERE caller IS NOT NULL",
        None | Some(RunStatus::Succeeded) => "streams WHERE +kind = 'run'",
        Some(RunStatus::Queued | RunStatus::Waiting | RunStatus::Running) => {
            "streams INDEXED BY streams_open WHERE open = 1 AND kind = 'run'"
        }
        Some(RunStatus::Failed | RunStatus::Refused | RunStatus::Canceled) => {
            "streams INDEXED BY runs_unhappy WHERE status IN ('failed', 'refused', 'canceled')"
        }
    };
    let mut sql = format!("SELECT id, summary FROM {from}");
    if let Some(status) = query.status {
        sql.push_str(&format!(" AND status = '{status}'"));
    }
    let mut values = vec![Value::from(behind), before.into()];
    sql.push_str(" AND id > ?1 AND id < ?2 AND summary IS NOT NULL");
    if let Some(world) = &query.world {
        // A run's key begins with its world and a slash; the next character after it is "0".
        values.push(format!("{world}/").into());
        values.push(format!("{world}0").into());
        sql.push_str(" AND +key >= ?3 AND +key < ?4");
    }
    if let Some(tool) = &query.tool {
        values.push(tool.as_str().to_owned().into());
        sql.push_str(&format!(" AND tool = ?{}", values.len()));
    }
    if let Some(grant) = &query.grant {
        values.push(grant.as_str().to_owned().into());
        sql.push_str(&format!(" AND caller = ?{}", values.len()));
    }
    for (moment, compared) in [(query.since, ">="), (query.until, "<")] {
        if let Some(moment) = moment {
            values.push(clamp(moment.0).into());
            sql.push_str(&format!(" AND +created_at {compared} ?{}", values.len()));
        }
    }
    values.push(clamp_len(query.limit.saturating_add(1)).into());
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ?{}", values.len()));
    (sql, values)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use wharf_vocab::{GrantId, Timestamp, ToolId, WorldId};

    use super::*;
    use crate::migrations;

    /// Gathering and sorting all runs for one page would grow with the database.
    #[test]
    fn no_page_is_sorted() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        for status in RunStatus::ALL.iter().copied().map(Some).chain([None]) {
            for narrow in [false, true] {
                let query = RunQuery {
                    world: narrow.then(|| WorldId::new("w").expect("valid")),
                    tool: narrow.then(|| ToolId::new("a/b").expect("valid")),
                    status,
                    grant: None,
                    since: narrow.then_some(Timestamp(1)),
                    until: narrow.then_some(Timestamp(2)),
                    before: Some(9),
                    memory_before: None,
                    limit: 5,
                };
                let (sql, values) = statement(&query, (0, 9));
                let plan = plan(&conn, &sql, values);
                assert_eq!(plan.len(), 1, "{status:?} {narrow}: {plan:?}");
                let index = match status {
                    Some(RunStatus::Failed | RunStatus::Refused | RunStatus::Canceled) => {
                        "runs_unhappy"
                    }
                    Some(RunStatus::Succeeded) | None => "PRIMARY KEY",
                    Some(_) => "streams_open",
                };
                assert!(plan[0].contains(index), "{status:?} {narrow}: {plan:?}");
                let grant = Some(GrantId::new("g").expect("valid"));
                let (sql, values) = statement(&RunQuery { grant, ..query }, (0, 9));
                let plan = self::plan(&conn, &sql, values);
                assert_eq!(plan.len(), 1, "{status:?} {narrow}: {plan:?}");
                let found = plan[0].contains("runs_by_caller (caller=? AND rowid>? AND rowid<?)");
                assert!(found, "{status:?} {narrow}: {plan:?}");
            }
        }
    }
    /// Runs of the last days must not grow with all the runs there ever were.
    #[test]
    fn t045_a_page_since_a_moment_is_bounded_by_the_index_of_times() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let plan = plan(&conn, SPAN, vec![1.into(), 2.into(), 3.into()]);
        assert!(plan[0].contains("COVERING INDEX runs_by_time (created_at>?"), "{plan:?}");
    }

    fn plan(conn: &Connection, sql: &str, values: Vec<Value>) -> Vec<String> {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepares");
        explain
            .query_map(params_from_iter(values), |row| row.get(3))
            .and_then(Iterator::collect)
            .expect("explains")
    }
}
