//! How many runs there are.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use wharf_domain::Rights;
use wharf_ports::{RunQuery, StoreError};
use wharf_vocab::{RunStatus, ToolId, WorldId};

use super::pieces::Pieces;
use super::runs;
use crate::error::from_sqlite;
use crate::writer::SumTable;

/// How many runs there are within these rights, up to a number.
pub(crate) fn count_runs(
    conn: &Connection,
    query: &RunQuery,
    within: &Rights,
    up_to: u64,
) -> Result<u64, StoreError> {
    let mut query = RunQuery { before: None, ..query.clone() };
    if let (None, Some(only)) = (&query.world, within.only_world()) {
        query.world = Some(only.clone());
    }
    if !is_summed_up(&query) || is_covered(&query, within) {
        return count_listed(conn, &query, within, up_to);
    }
    let mut count = Count { within, count: 0, up_to };
    let pieces = Pieces::of(conn, query.since, query.until).map_err(from_sqlite)?;
    let sums = pieces.sums.into_iter().map(|(table, time)| summed_up(&query, table, time));
    let ends = pieces.ends.into_iter().map(|end| by_run(&query, end));
    for (sql, values) in sums.chain(ends) {
        count.add(conn, &sql, values).map_err(from_sqlite)?;
    }
    Ok(count.count)
}

/// Whether what narrows the query is what sums are kept by. Runs that are open are few, and are
/// listed quicker than they are looked for among all sums.
fn is_summed_up(query: &RunQuery) -> bool {
    let RunQuery { id_prefix, grant, parent, correlation_id, over_hold, paid, .. } = query;
    let open = |status: &RunStatus| !status.is_terminal();
    let only_open = !query.statuses.is_empty() && query.statuses.iter().all(open);
    id_prefix.is_none()
        && grant.is_none()
        && parent.is_none()
        && correlation_id.is_none()
        && !over_hold
        && !paid
        && query.error.is_none()
        && query.error_text.is_none()
        && query.text.is_none()
        && !only_open
}

/// Whether an index alone says how many there are, without a look at any run: then no number of
/// hours makes it longer.
fn is_covered(query: &RunQuery, within: &Rights) -> bool {
    let RunQuery { world, caller, since, until, .. } = query;
    let narrowed = world.is_some() || caller.is_some() || since.is_some() || until.is_some();
    let by_index = match (&query.tool, &query.statuses[..]) {
        (Some(_), []) => true,
        (None, [status]) => status.is_terminal() && *status != RunStatus::Succeeded,
        _ => false,
    };
    by_index && !narrowed && within.worlds.is_none() && within.tools.is_empty()
}

/// Counts one run after the other, by the index that a list of them would walk.
fn count_listed(
    conn: &Connection,
    query: &RunQuery,
    within: &Rights,
    up_to: u64,
) -> Result<u64, StoreError> {
    let Some(span) = runs::span(conn, query).map_err(from_sqlite)? else { return Ok(0) };
    if within.worlds.is_none() && within.tools.is_empty() {
        let limit = usize::try_from(up_to).unwrap_or(usize::MAX);
        let (sql, values) = runs::statement(query, span, "1", limit.saturating_sub(1));
        let count = conn
            .prepare_cached(&format!("SELECT count(*) FROM ({sql})"))
            .and_then(|mut select| select.query_row(params_from_iter(values), |row| row.get(0)));
        return count.map(i64::cast_unsigned).map_err(from_sqlite);
    }
    let columns = "substr(key, 1, instr(key, '/') - 1), tool, 1";
    let (sql, values) = runs::statement(query, span, columns, usize::MAX);
    let mut count = Count { within, count: 0, up_to };
    count.add(conn, &sql, values).map_err(from_sqlite)?;
    Ok(count.count)
}

/// A count while it is made.
struct Count<'a> {
    within: &'a Rights,
    count: u64,
    up_to: u64,
}

impl Count<'_> {
    /// Adds rows of world, tool and number until there are enough.
    fn add(&mut self, conn: &Connection, sql: &str, values: Vec<Value>) -> rusqlite::Result<()> {
        let mut select = conn.prepare_cached(sql)?;
        let mut rows = select.query(params_from_iter(values))?;
        while self.count < self.up_to
            && let Some(row) = rows.next()?
        {
            let world = row.get_ref(0)?.as_str().unwrap_or_default();
            let tool = row.get_ref(1)?.as_str().unwrap_or_default();
            if is_within(self.within, world, tool) {
                self.count = self.count.saturating_add(row.get::<_, i64>(2)?.cast_unsigned());
            }
        }
        self.count = self.count.min(self.up_to);
        Ok(())
    }
}

/// Whether runs of this world and this tool lie within rights.
pub(super) fn is_within(within: &Rights, world: &str, tool: &str) -> bool {
    (within.worlds.is_none() || WorldId::new(world).is_ok_and(|world| within.in_world(&world)))
        && (within.tools.is_empty()
            || ToolId::new(tool).is_ok_and(|tool| within.check_tool(&tool).is_ok()))
}

/// What is summed up, newest first, so that a great count ends early.
fn summed_up(
    query: &RunQuery,
    SumTable { name, at }: SumTable,
    (since, until): (i64, i64),
) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = vec![since.into(), until.into()];
    let narrowed = narrowed(query, ["world", "tool", "caller"], &mut values);
    let sql = format!(
        "SELECT world, tool, runs FROM {name} WHERE {at} >= ?1 AND {at} < ?2{narrowed}
         ORDER BY {at} DESC"
    );
    (sql, values)
}

/// The runs of a time, in groups.
fn by_run(query: &RunQuery, (since, until): (i64, i64)) -> (String, Vec<Value>) {
    const WORLD: &str = "substr(key, 1, instr(key, '/') - 1)";
    let mut values: Vec<Value> = vec![since.into(), until.into()];
    let narrowed = narrowed(query, [WORLD, "tool", "called_by"], &mut values);
    let sql = format!(
        "SELECT {WORLD}, tool, count(*) FROM streams INDEXED BY runs_by_time
         WHERE created_at >= ?1 AND created_at < ?2{narrowed} GROUP BY 1, 2"
    );
    (sql, values)
}

/// What the query wants of these columns, and of the status.
fn narrowed(
    query: &RunQuery,
    [world, tool, caller]: [&'static str; 3],
    values: &mut Vec<Value>,
) -> String {
    let mut sql = String::new();
    for (column, wanted) in [
        (world, query.world.as_ref().map(WorldId::as_str)),
        (tool, query.tool.as_ref().map(ToolId::as_str)),
        (caller, query.caller.as_ref().map(|it| it.as_str())),
    ] {
        if let Some(wanted) = wanted {
            values.push(wanted.to_owned().into());
            sql.push_str(&format!(" AND +{column} = ?{}", values.len()));
        }
    }
    if !query.statuses.is_empty() {
        let words: Vec<String> = query.statuses.iter().map(|it| format!("'{it}'")).collect();
        sql.push_str(&format!(" AND +status IN ({})", words.join(", ")));
    }
    sql
}

#[cfg(test)]
mod tests {
    use wharf_vocab::GrantId;

    use super::*;
    use crate::migrations;
    use crate::writer::{HOURS, MINUTES};

    /// What is asked for most is read from the sums, in the order of time.
    #[test]
    fn c045_counts_walk_the_sums_and_the_runs_at_their_ends() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let query = RunQuery {
            tool: ToolId::new("a/b").ok(),
            world: WorldId::new("w").ok(),
            caller: GrantId::new("g").ok(),
            statuses: vec![RunStatus::Failed, RunStatus::Refused],
            ..RunQuery::default()
        };
        assert!(is_summed_up(&query) && is_summed_up(&RunQuery::default()));
        assert!(!is_summed_up(&RunQuery { over_hold: true, ..query.clone() }));
        assert!(!is_summed_up(&RunQuery { paid: true, ..query.clone() }));
        let open = vec![RunStatus::Queued, RunStatus::Running];
        assert!(!is_summed_up(&RunQuery { statuses: open, ..query.clone() }));
        for query in [query, RunQuery::default()] {
            assert!(!is_covered(&query, &Rights::all()));
            for ((sql, values), expect) in [
                (summed_up(&query, HOURS, (1, 2)), "PRIMARY KEY (hour>? AND hour<?)"),
                (summed_up(&query, MINUTES, (1, 2)), "PRIMARY KEY (minute>? AND minute<?)"),
                (by_run(&query, (1, 2)), "runs_by_time (created_at>? AND created_at<?)"),
            ] {
                let plan = runs::plan(&conn, &sql, values);
                assert!(plan[0].contains(expect), "{plan:?}");
            }
            let (sql, values) = summed_up(&query, HOURS, (1, 2));
            let plan = runs::plan(&conn, &sql, values);
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }

    /// What can be counted without looking at the rows is.
    #[test]
    fn c045_counts_of_a_tool_or_a_status_read_an_index_only() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let tool = RunQuery { tool: ToolId::new("a/b").ok(), ..RunQuery::default() };
        let failed = RunQuery { statuses: vec![RunStatus::Failed], ..RunQuery::default() };
        for query in [tool, failed] {
            assert!(is_covered(&query, &Rights::all()));
            let (sql, values) = runs::statement(&query, (0, 9), "1", 5);
            let plan = runs::plan(&conn, &sql, values);
            assert!(plan[0].contains("USING COVERING INDEX"), "{query:?}: {plan:?}");
        }
    }
}
