//! The list of runs.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use wharf_ports::{ID_PREFIX_RUNS_MAX, RunPage, RunPlace, RunQuery, StoreError};
use wharf_vocab::{RunStatus, ToolId, WorldId};

use crate::error::{corrupt, from_sqlite};
use crate::number::{clamp, clamp_len};

/// A page of runs, newest first.
pub(crate) fn runs(conn: &Connection, query: &RunQuery) -> Result<RunPage, StoreError> {
    let Some(span) = span(conn, query).map_err(from_sqlite)? else { return Ok(RunPage::default()) };
    let (sql, values) = statement(query, span, "id, summary", query.limit);
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
pub(super) type Span = (i64, i64);

/// Runs newer than a moment that are rather walked over than jumped over.
const WALKED_OVER_MAX: i64 = 5_000;

/// How far a page has to walk; `None` if there is nothing on the way. Runs are listed in the
/// order they were made, which is not quite the order of their times. So the index of times is
/// asked for the first and the last run of a time, instead of walking to the oldest run, or over
/// all that came later.
pub(super) fn span(conn: &Connection, query: &RunQuery) -> rusqlite::Result<Option<Span>> {
    let before = clamp(query.before.unwrap_or(u64::MAX));
    let all = Some((0, before));
    if !walks_all(query) {
        return Ok(all);
    }
    let until = query.until.map_or(i64::MAX, |until| clamp(until.0));
    let since = match query.since {
        Some(since) => clamp(since.0),
        None if query.until.is_none() => return Ok(all),
        None => {
            let mut later = conn.prepare_cached(LATER)?;
            let later: i64 = later.query_row([until, before, WALKED_OVER_MAX], |row| row.get(0))?;
            if later < WALKED_OVER_MAX {
                return Ok(all);
            }
            0
        }
    };
    let ends: (Option<i64>, Option<i64>) = conn
        .prepare_cached(SPAN)?
        .query_row([since, until, before], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = ends else { return Ok(None) };
    Ok(Some((first - 1, last.saturating_add(1))))
}

const SPAN: &str = "SELECT min(id), max(id) FROM streams INDEXED BY runs_by_time
                    WHERE created_at >= ?1 AND created_at < ?2 AND id < ?3";

const LATER: &str = "SELECT count(*) FROM (SELECT 1 FROM streams INDEXED BY runs_by_time
                     WHERE created_at >= ?1 AND id < ?2 LIMIT ?3)";

/// Whether what is walked over may be most of all runs.
fn walks_all(query: &RunQuery) -> bool {
    use RunIndex::{All, Caller, Paid, Tool, World};
    matches!(RunIndex::of(query), All | Caller | Paid | Tool | World)
}

/// What a list walks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunIndex {
    Id,
    Grant,
    Parent,
    Caller,
    Correlation,
    OverHold,
    Paid,
    Open,
    UnhappyByTool,
    Unhappy,
    NotSucceeded,
    Tool,
    World,
    All,
}

impl RunIndex {
    /// The smallest index that has all of the wanted runs.
    fn of(query: &RunQuery) -> Self {
        let unhappy = |status: &RunStatus| status.is_terminal() && !is_success(status);
        match &query.statuses[..] {
            _ if query.id_prefix.is_some() => Self::Id,
            _ if query.grant.is_some() => Self::Grant,
            _ if query.parent.is_some() => Self::Parent,
            _ if query.correlation_id.is_some() => Self::Correlation,
            _ if query.over_hold => Self::OverHold,
            _ if query.paid && query.world.is_some() && query.caller.is_none() => Self::Paid,
            // What has an error did not succeed, and such runs are few among all.
            statuses
                if statuses.is_empty() && (query.error.is_some() || query.error_text.is_some()) =>
            {
                Self::NotSucceeded
            }
            statuses
                if query.tool.is_some() && !statuses.is_empty() && statuses.iter().all(unhappy) =>
            {
                Self::UnhappyByTool
            }
            [status] if unhappy(status) => Self::Unhappy,
            statuses if !statuses.is_empty() && !statuses.iter().any(|it| it.is_terminal()) => {
                Self::Open
            }
            _ if query.caller.is_some() => Self::Caller,
            statuses if !statuses.is_empty() && !statuses.iter().any(is_success) => {
                Self::NotSucceeded
            }
            _ if query.tool.is_some() => Self::Tool,
            _ if query.world.is_some() => Self::World,
            _ => Self::All,
        }
    }

    /// A partial index is only used when its condition stands in the statement, too.
    fn table(self) -> &'static str {
        match self {
            Self::Id | Self::All => "streams WHERE +kind = 'run'",
            Self::Grant => "streams INDEXED BY runs_by_caller WHERE caller IS NOT NULL",
            Self::Parent => "streams INDEXED BY runs_by_parent WHERE parent IS NOT NULL",
            Self::Caller => "streams INDEXED BY runs_by_called_by WHERE called_by IS NOT NULL",
            Self::Correlation => {
                "streams INDEXED BY runs_by_correlation WHERE correlation IS NOT NULL"
            }
            Self::OverHold => "streams INDEXED BY runs_over_hold WHERE over_hold = 1",
            Self::Paid => "streams INDEXED BY runs_paid WHERE kind = 'run' AND cost_micro <> 0",
            Self::Open => "streams INDEXED BY streams_open WHERE open = 1 AND kind = 'run'",
            Self::UnhappyByTool => {
                "streams INDEXED BY runs_unhappy_by_tool
                 WHERE status IN ('failed', 'refused', 'canceled')"
            }
            Self::Unhappy => {
                "streams INDEXED BY runs_unhappy WHERE status IN ('failed', 'refused', 'canceled')"
            }
            Self::NotSucceeded => {
                "streams INDEXED BY runs_not_succeeded WHERE status <> 'succeeded' AND kind = 'run'"
            }
            Self::Tool => "streams INDEXED BY runs_by_tool WHERE tool IS NOT NULL",
            Self::World => "streams INDEXED BY runs_by_world WHERE kind = 'run'",
        }
    }
}

fn is_success(status: &RunStatus) -> bool {
    *status == RunStatus::Succeeded
}

/// The statement walks streams from the newest to the oldest. It names the index, or hides a
/// column behind `+`, so that SQLite never gathers and sorts instead.
pub(super) fn statement(
    query: &RunQuery,
    (behind, before): Span,
    columns: &str,
    limit: usize,
) -> (String, Vec<Value>) {
    let index = RunIndex::of(query);
    let mut sql = format!("SELECT {columns} FROM {}", index.table());
    let mut values = vec![Value::from(behind), before.into()];
    sql.push_str(" AND id > ?1 AND id < ?2");
    if matches!(index, RunIndex::Id | RunIndex::All | RunIndex::Open) {
        // The other indices have nothing but runs, and a count need not look at the rows.
        sql.push_str(" AND summary IS NOT NULL");
    }
    if let Some(prefix) = &query.id_prefix {
        sql.push_str(&found_by_id(query.world.as_ref(), prefix, &mut values));
    }
    match &query.statuses[..] {
        [] => {}
        [status] if index == RunIndex::Unhappy => {
            sql.push_str(&format!(" AND status = '{status}'"))
        }
        statuses => {
            let words: Vec<String> = statuses.iter().map(|it| format!("'{it}'")).collect();
            sql.push_str(&format!(" AND +status IN ({})", words.join(", ")));
        }
    }
    if let Some(world) = query.world.as_ref().filter(|_| by_world(index)) {
        values.push(world.as_str().to_owned().into());
        sql.push_str(&format!(" AND substr(key, 1, instr(key, '/') - 1) = ?{}", values.len()));
    } else if let Some(world) = &query.world {
        // A run's key begins with its world and a slash; the next character after it is "0".
        values.push(format!("{world}/").into());
        values.push(format!("{world}0").into());
        let (from, to) = (values.len() - 1, values.len());
        sql.push_str(&format!(" AND +key >= ?{from} AND +key < ?{to}"));
    }
    let parent = query.parent.as_ref().map(ToString::to_string);
    let by_tool = match index {
        RunIndex::UnhappyByTool => index,
        _ => RunIndex::Tool,
    };
    for (column, wanted, own) in [
        ("tool", query.tool.as_ref().map(ToolId::as_str), by_tool),
        ("caller", query.grant.as_ref().map(|it| it.as_str()), RunIndex::Grant),
        ("called_by", query.caller.as_ref().map(|it| it.as_str()), RunIndex::Caller),
        ("parent", parent.as_deref(), RunIndex::Parent),
        ("correlation", query.correlation_id.as_deref(), RunIndex::Correlation),
    ] {
        if let Some(wanted) = wanted {
            values.push(wanted.to_owned().into());
            let plus = if index == own { "" } else { "+" };
            sql.push_str(&format!(" AND {plus}{column} = ?{}", values.len()));
        }
    }
    if query.over_hold && index != RunIndex::OverHold {
        sql.push_str(" AND +over_hold = 1");
    }
    if query.paid && index != RunIndex::Paid {
        sql.push_str(" AND +cost_micro <> 0");
    }
    sql.push_str(&failed_with(query, &mut values));
    for (moment, compared) in [(query.since, ">="), (query.until, "<")] {
        if let Some(moment) = moment {
            values.push(clamp(moment.0).into());
            sql.push_str(&format!(" AND +created_at {compared} ?{}", values.len()));
        }
    }
    values.push(clamp_len(limit.saturating_add(1)).into());
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ?{}", values.len()));
    (sql, values)
}

/// Whether an index has the runs of one world together.
fn by_world(index: RunIndex) -> bool {
    matches!(index, RunIndex::World | RunIndex::Paid)
}

/// Runs whose error has this code, or says this.
fn failed_with(query: &RunQuery, values: &mut Vec<Value>) -> String {
    let mut sql = String::new();
    if let Some(code) = &query.error {
        let (begin, is_begin) = match code.strip_suffix('*') {
            Some(begin) => (begin, true),
            None => (code.as_str(), false),
        };
        values.push(begin.to_owned().into());
        let (at, code) = (values.len(), "json_extract(summary, '$.error.code')");
        sql.push_str(&match is_begin {
            true => format!(" AND substr({code}, 1, length(?{at})) = ?{at}"),
            false => format!(" AND {code} = ?{at}"),
        });
    }
    if let Some(text) = &query.error_text {
        values.push(text.to_ascii_lowercase().into());
        let message = "lower(json_extract(summary, '$.error.message'))";
        sql.push_str(&format!(" AND instr({message}, ?{}) > 0", values.len()));
    }
    if let Some(text) = &query.text {
        values.push(text.to_ascii_lowercase().into());
        let said = ["$.correlation_id", "$.error.code", "$.error.message"]
            .map(|path| format!("coalesce(json_extract(summary, '{path}'), '')"));
        let places = ["key".to_owned(), "tool".to_owned()].into_iter().chain(said);
        let at = values.len();
        let any: Vec<_> = places.map(|it| format!("instr(lower({it}), ?{at}) > 0")).collect();
        sql.push_str(&format!(" AND ({})", any.join(" OR ")));
    }
    sql
}

/// Runs whose id begins so. Ids that the core makes begin with their time, so a short beginning
/// fits very many: only the greatest are taken.
fn found_by_id(world: Option<&WorldId>, prefix: &str, values: &mut Vec<Value>) -> String {
    let (from, table, column) = match world {
        Some(world) => (format!("{world}/{prefix}"), "streams INDEXED BY streams_by_key", "key"),
        None => {
            let column = "substr(key, instr(key, '/') + 1)";
            (prefix.to_owned(), "streams INDEXED BY runs_by_id", column)
        }
    };
    // No id has a character as great as this one.
    let to = format!("{from}\u{7f}");
    values.extend([from.into(), to.into(), clamp_len(ID_PREFIX_RUNS_MAX).into()]);
    let at = values.len();
    format!(
        " AND id IN (SELECT id FROM {table} WHERE kind = 'run' AND {column} >= ?{}
           AND {column} < ?{} ORDER BY {column} DESC LIMIT ?{at})",
        at - 2,
        at - 1
    )
}

/// How SQLite would go about a statement.
#[cfg(test)]
pub(super) fn plan(conn: &Connection, sql: &str, values: Vec<Value>) -> Vec<String> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepares");
    explain
        .query_map(params_from_iter(values), |row| row.get(3))
        .and_then(Iterator::collect)
        .expect("explains")
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
                    since: narrow.then_some(Timestamp(1)),
                    until: narrow.then_some(Timestamp(2)),
                    statuses: status.into_iter().collect(),
                    before: Some(9),
                    limit: 5,
                    ..RunQuery::default()
                };
                let index = match status {
                    Some(RunStatus::Failed | RunStatus::Refused | RunStatus::Canceled) => {
                        "runs_unhappy (status=? AND rowid>? AND rowid<?)"
                    }
                    Some(RunStatus::Succeeded) | None if narrow => "runs_by_world (<expr>=?",
                    Some(RunStatus::Succeeded) | None => "PRIMARY KEY",
                    Some(_) => "streams_open",
                };
                walks(&conn, &query, index);
                let grant = Some(GrantId::new("g").expect("valid"));
                let by_grant = "runs_by_caller (caller=? AND rowid>? AND rowid<?)";
                walks(&conn, &RunQuery { grant, ..query }, by_grant);
            }
        }
    }

    /// What the console narrows a list by has an index each.
    #[test]
    fn c045_no_narrowed_page_is_sorted() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let base = RunQuery { since: Some(Timestamp(1)), limit: 5, ..RunQuery::default() };
        let grant = || Some(GrantId::new("g").expect("valid"));
        let tool = || Some(ToolId::new("a/b").expect("valid"));
        let all = RunQuery { tool: tool(), caller: grant(), over_hold: true, ..base.clone() };
        let parent = wharf_vocab::RunKey {
            world: WorldId::new("w").expect("valid"),
            run: wharf_vocab::RunId::new("r").expect("valid"),
        };
        walks(&conn, &RunQuery { tool: tool(), ..base.clone() }, "runs_by_tool (tool=?");
        walks(
            &conn,
            &RunQuery { caller: grant(), ..base.clone() },
            "runs_by_called_by (called_by=?",
        );
        walks(&conn, &all, "runs_over_hold (over_hold=?");
        let paid = RunQuery { paid: true, ..base.clone() };
        walks(
            &conn,
            &RunQuery { world: WorldId::new("w").ok(), ..paid.clone() },
            "runs_paid (<expr>=?",
        );
        walks(&conn, &RunQuery { caller: grant(), ..paid }, "runs_by_called_by (called_by=?");
        let query = RunQuery { parent: Some(parent), ..all.clone() };
        walks(&conn, &query, "runs_by_parent (parent=?");
        let query = RunQuery { correlation_id: Some("c".to_owned()), ..all };
        walks(&conn, &query, "runs_by_correlation (correlation=?");
        let statuses = vec![RunStatus::Running, RunStatus::Failed, RunStatus::Refused];
        let query = RunQuery { statuses, tool: tool(), ..base.clone() };
        walks(&conn, &query, "runs_not_succeeded (kind=?");
        let statuses = vec![RunStatus::Failed, RunStatus::Refused];
        let query = RunQuery { statuses, tool: tool(), ..base.clone() };
        walks(&conn, &query, "runs_unhappy_by_tool (tool=?");
        let query = RunQuery { error: Some("tool.*".to_owned()), tool: tool(), ..base.clone() };
        walks(&conn, &query, "runs_not_succeeded (kind=?");
        let query = RunQuery {
            error_text: Some("gone".to_owned()),
            statuses: vec![RunStatus::Failed],
            ..base.clone()
        };
        walks(&conn, &query, "runs_unhappy (status=?");
        for (world, index) in [(None, "runs_by_id"), (WorldId::new("w").ok(), "streams_by_key")] {
            let query = RunQuery { id_prefix: Some("01".to_owned()), world, ..base.clone() };
            let (sql, values) = statement(&query, (0, 9), "id", 5);
            let plan = plan(&conn, &sql, values);
            assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }

    #[track_caller]
    fn walks(conn: &Connection, query: &RunQuery, index: &str) {
        let (sql, values) = statement(query, (0, 9), "id, summary", 5);
        let plan = plan(conn, &sql, values);
        assert_eq!(plan.len(), 1, "{query:?}: {plan:?}");
        assert!(plan[0].contains(index), "{query:?}: {plan:?}");
    }

    /// Runs of the last days must not grow with all the runs there ever were.
    #[test]
    fn t045_a_page_since_a_moment_is_bounded_by_the_index_of_times() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let plan = plan(&conn, SPAN, vec![1.into(), 2.into(), 3.into()]);
        assert!(plan[0].contains("COVERING INDEX runs_by_time (created_at>?"), "{plan:?}");
    }
}
