//! The list of runs, and how many there are.

use futures::TryStreamExt as _;
use tokio_postgres::types::ToSql;
use wharf_domain::Rights;
use wharf_ports::{ID_PREFIX_RUNS_MAX, RunPage, RunPlace, RunQuery, StoreError};
use wharf_vocab::{RunStatus, ToolId, WorldId};

use super::Reader;
use crate::error::{corrupt, from_postgres};
use crate::number::{clamp, clamp_len, to_text};

/// A page of runs, newest first.
pub(crate) async fn runs(reader: Reader, query: RunQuery) -> Result<RunPage, StoreError> {
    let statement = Statement::of(&query, "s.pos, s.summary", query.limit.saturating_add(1));
    let mut client = reader.get().await?;
    let rows = client.query(&statement.sql, &statement.params()).await?;
    let mut page = RunPage::default();
    let mut last = None;
    for row in rows {
        if page.runs.len() == query.limit {
            page.next = last;
            break;
        }
        let pos: i64 = row.try_get(0).map_err(from_postgres)?;
        let json: &str = row.try_get(1).map_err(from_postgres)?;
        let run = serde_json::from_str(json)
            .map_err(|error| corrupt(format!("a run's summary is damaged: {error}")))?;
        page.runs.push(run);
        page.places.push(RunPlace { stored: pos.cast_unsigned(), ..RunPlace::FIRST });
        last = Some(pos.cast_unsigned());
    }
    Ok(page)
}

/// How many runs there are within these rights, up to a number.
pub(crate) async fn count_runs(
    reader: Reader,
    query: RunQuery,
    within: &Rights,
    up_to: u64,
) -> Result<u64, StoreError> {
    let mut query = RunQuery { before: None, ..query };
    if let (None, Some(only)) = (&query.world, within.only_world()) {
        query.world = Some(only.clone());
    }
    let mut client = reader.get().await?;
    if within.worlds.is_none() && within.tools.is_empty() {
        let limit = usize::try_from(up_to).unwrap_or(usize::MAX);
        let statement = Statement::of(&query, "1", limit);
        let sql = format!("SELECT count(*) FROM ({}) AS found", statement.sql);
        let row = client.query_one(&sql, &statement.params()).await?;
        return Ok(row.try_get::<_, i64>(0).map_err(from_postgres)?.cast_unsigned());
    }
    let statement = Statement::of(&query, "s.world, s.tool", usize::MAX);
    let rows = client.stream(&statement.sql, &statement.params()).await?;
    let mut rows = std::pin::pin!(rows);
    let mut count = 0;
    while count < up_to
        && let Some(row) = rows.try_next().await.map_err(from_postgres)?
    {
        let (world, tool): (Option<&str>, Option<&str>) =
            (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
        count += u64::from(is_within(within, world.unwrap_or(""), tool.unwrap_or("")));
    }
    Ok(count)
}

/// Whether a run of this world and tool lies within rights.
pub(super) fn is_within(within: &Rights, world: &str, tool: &str) -> bool {
    WorldId::new(world).is_ok_and(|world| within.in_world(&world))
        && ToolId::new(tool).is_ok_and(|tool| within.check_tool(&tool).is_ok())
}

/// Where a search looks, in lower case.
const SEARCHED: [&str; 5] = [
    "lower(s.key)",
    "lower(s.tool)",
    "lower(s.correlation)",
    "lower(s.error_code)",
    "s.error_text",
];

/// A list's statement and what is bound to it.
struct Statement {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Statement {
    /// Walks runs from the newest to the oldest. Those that are few among all are found by the
    /// tables that hold only them.
    fn of(query: &RunQuery, columns: &str, limit: usize) -> Self {
        let mut list = Self { sql: String::new(), values: Vec::new() };
        let few = Few::of(query);
        // The table of few runs is walked in its own order, and not sorted by that of all.
        let pos = if matches!(few, Few::Remarkable) { "r.pos" } else { "s.pos" };
        let from = match few {
            Few::Open => {
                "opens AS o JOIN streams AS s ON s.shard = o.shard AND s.id = o.stream
                 AND o.kind = 'run'"
            }
            Few::Remarkable => {
                "remarkable AS r JOIN streams AS s ON s.shard = r.shard AND s.id = r.stream"
            }
            Few::None => "streams AS s",
        };
        list.sql = format!("SELECT {columns} FROM {from} WHERE s.kind = 'run'");
        if let Some(before) = query.before {
            list.narrow(&format!("{pos} < $"), clamp(before));
        }
        if let Some(world) = &query.world {
            list.narrow("s.world = $", world.as_str().to_owned());
        }
        if let Some(prefix) = &query.id_prefix {
            list.narrow_to_ids(query.world.as_ref(), prefix);
        }
        let parent = query.parent.as_ref().map(ToString::to_string);
        for (column, wanted) in [
            ("tool", query.tool.as_ref().map(ToolId::as_str)),
            ("caller", query.grant.as_ref().map(|it| it.as_str())),
            ("called_by", query.caller.as_ref().map(|it| it.as_str())),
            ("parent", parent.as_deref()),
            ("correlation", query.correlation_id.as_deref()),
        ] {
            if let Some(wanted) = wanted {
                list.narrow(&format!("s.{column} = $"), to_text(wanted).into_owned());
            }
        }
        if !query.statuses.is_empty() {
            let words: Vec<&'static str> = query.statuses.iter().map(|it| it.as_str()).collect();
            list.values.push(Box::new(words));
            list.sql.push_str(&format!(" AND s.status = ANY (${})", list.values.len()));
        }
        if query.over_hold {
            list.sql.push_str(" AND s.over_hold");
        }
        if query.paid {
            list.sql.push_str(" AND s.cost > 0");
        }
        if let Some(code) = &query.error {
            match code.strip_suffix('*') {
                Some(begin) => list.begins_with("s.error_code", begin),
                None => list.narrow("s.error_code = $", to_text(code).into_owned()),
            }
        }
        if let Some(text) = &query.error_text {
            list.says(text, &["s.error_text"]);
        }
        if let Some(text) = &query.text {
            list.says(text, &SEARCHED);
        }
        for (moment, compared) in [(query.since, ">="), (query.until, "<")] {
            if let Some(moment) = moment {
                list.narrow(&format!("s.created_at {compared} $"), clamp(moment.0));
            }
        }
        list.values.push(Box::new(clamp_len(limit)));
        list.sql.push_str(&format!(" ORDER BY {pos} DESC LIMIT ${}", list.values.len()));
        list
    }

    fn narrow(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
        self.sql.push_str(&format!(" AND {condition}{}", self.values.len()));
    }

    /// One of these has the text in it, in whatever case.
    fn says(&mut self, text: &str, columns: &[&str]) {
        self.values.push(Box::new(to_text(&text.to_ascii_lowercase()).into_owned()));
        let number = self.values.len();
        let says = columns.iter().map(|column| format!("strpos({column}, ${number}) > 0"));
        let says = says.collect::<Vec<_>>().join(" OR ");
        self.sql.push_str(&format!(" AND ({says})"));
    }

    fn begins_with(&mut self, column: &str, beginning: &str) {
        self.values.push(Box::new(to_text(beginning).into_owned()));
        self.sql.push_str(&format!(" AND starts_with({column}, ${})", self.values.len()));
    }

    /// Ids that the core makes begin with their time, so a short beginning fits very many: only the
    /// greatest are taken.
    fn narrow_to_ids(&mut self, world: Option<&WorldId>, prefix: &str) {
        // No id has a character as great as this one.
        let behind = format!("{prefix}\u{7f}");
        self.values.push(Box::new(to_text(prefix).into_owned()));
        self.values.push(Box::new(to_text(&behind).into_owned()));
        self.values.push(Box::new(world.map(|world| world.as_str().to_owned())));
        self.values.push(Box::new(clamp_len(ID_PREFIX_RUNS_MAX)));
        let at = self.values.len();
        let id = "substr(key, strpos(key, '/') + 1)";
        self.sql.push_str(&format!(
            " AND (s.shard, s.id) IN (SELECT shard, id FROM streams
               WHERE kind = 'run' AND {id} >= ${} AND {id} < ${}
                   AND (${}::text IS NULL OR world = ${}) ORDER BY {id} DESC LIMIT ${at})",
            at - 3,
            at - 2,
            at - 1,
            at - 1,
        ));
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}

/// A table that holds all of the wanted runs and few others.
enum Few {
    Open,
    Remarkable,
    None,
}

impl Few {
    fn of(query: &RunQuery) -> Self {
        let unhappy = |status: &RunStatus| status.is_terminal() && *status != RunStatus::Succeeded;
        let statuses = &query.statuses;
        let wants_errors = query.error.is_some() || query.error_text.is_some();
        if query.over_hold || wants_errors || (!statuses.is_empty() && statuses.iter().all(unhappy))
        {
            return Self::Remarkable;
        }
        if !statuses.is_empty() && !statuses.iter().any(|it| it.is_terminal()) {
            return Self::Open;
        }
        Self::None
    }
}
