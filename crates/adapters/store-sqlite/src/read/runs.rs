//! The list of runs.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use wharf_ports::{RunPage, RunQuery, StoreError};
use wharf_vocab::RunStatus;

use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// A page of runs, newest first.
pub(crate) fn runs(conn: &Connection, query: &RunQuery) -> Result<RunPage, StoreError> {
    let (sql, values) = statement(query);
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
        last = Some(id.cast_unsigned());
    }
    Ok(page)
}

/// The statement walks streams from the newest to the oldest, over the smallest index that has
/// all of the wanted ones. It names the index, or hides a column behind `+`, so that SQLite never
/// gathers and sorts instead. A partial index is only used when its condition stands here too.
fn statement(query: &RunQuery) -> (String, Vec<Value>) {
    let from = match query.status {
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
    let mut values = vec![Value::from(clamp(query.before.unwrap_or(u64::MAX)))];
    sql.push_str(" AND id < ?1 AND summary IS NOT NULL");
    if let Some(world) = &query.world {
        // A run's key begins with its world and a slash; the next character after it is "0".
        values.push(format!("{world}/").into());
        values.push(format!("{world}0").into());
        sql.push_str(" AND +key >= ?2 AND +key < ?3");
    }
    if let Some(tool) = &query.tool {
        values.push(tool.as_str().to_owned().into());
        sql.push_str(&format!(" AND tool = ?{}", values.len()));
    }
    values.push(clamp_len(query.limit.saturating_add(1)).into());
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ?{}", values.len()));
    (sql, values)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use wharf_vocab::{ToolId, WorldId};

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
                    before: Some(9),
                    limit: 5,
                };
                let (sql, values) = statement(&query);
                let mut explain =
                    conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepares");
                let plan: Vec<String> = explain
                    .query_map(params_from_iter(values), |row| row.get(3))
                    .and_then(Iterator::collect)
                    .expect("explains");
                assert_eq!(plan.len(), 1, "{status:?} {narrow}: {plan:?}");
                let index = match status {
                    Some(RunStatus::Failed | RunStatus::Refused | RunStatus::Canceled) => {
                        "runs_unhappy"
                    }
                    Some(RunStatus::Succeeded) | None => "PRIMARY KEY",
                    Some(_) => "streams_open",
                };
                assert!(plan[0].contains(index), "{status:?} {narrow}: {plan:?}");
            }
        }
    }
}
