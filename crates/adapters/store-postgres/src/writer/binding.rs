//! What a group writes, bound to the statements that write it: one column for each array.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use wharf_domain::ArtifactOp;
use wharf_journal::audit::Sealer;
use wharf_ports::plan::{Class, PreparedRun};
use wharf_vocab::limits::PRICES_PER_TOOL_MAX;
use wharf_vocab::{B3, RunId, ShardId, Timestamp};

use super::statements::Statements;
use super::writes::{Decided, StreamWrite, Writes};
use crate::number::{Whole, clamp, clamp_len, month_of, to_text};

type PgResult<T> = Result<T, tokio_postgres::Error>;

/// A value of a statement, or a column of values.
pub(super) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement that is about to leave.
pub(super) struct BoundStatement {
    pub(super) statement: Statement,
    pub(super) values: Vec<Value>,
}

impl BoundStatement {
    pub(super) fn new(statement: &Statement, values: Vec<Value>) -> Self {
        Self { statement: statement.clone(), values }
    }

    /// Sends it; its rows are what is waited for.
    pub(super) fn send<'a>(
        &'a self,
        client: &'a Client,
    ) -> BoxFuture<'a, PgResult<Vec<tokio_postgres::Row>>> {
        async move {
            let values: Vec<&(dyn ToSql + Sync)> =
                self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            client.query(&self.statement, &values).await
        }
        .boxed()
    }
}

/// A column of values that are made one by one.
fn column<I: IntoIterator, T: ToSql + Sync + Send + 'static>(
    of: I,
    value: impl FnMut(I::Item) -> T,
) -> Value
where
    Vec<T>: ToSql,
{
    Box::new(of.into_iter().map(value).collect::<Vec<T>>())
}

fn owned(text: &str) -> String {
    to_text(text).into_owned()
}

impl Statements {
    /// What a group has to write; nothing for what it has nothing of.
    pub(super) fn writes(
        &self,
        decided: &Decided<'_>,
        sealer: &Sealer,
        base: i64,
    ) -> Vec<BoundStatement> {
        let mut steps = vec![self.shards_step(decided, sealer)];
        let writes = &decided.writes;
        if !writes.claims.is_empty() {
            let all = || writes.claims.iter();
            let values = vec![
                column(all(), |((scope, _), _)| owned(scope)),
                column(all(), |((_, key), _)| owned(key)),
                column(all(), |(_, (value, _))| owned(value)),
                column(all(), |(_, (_, stream))| *stream),
            ];
            steps.push(BoundStatement::new(&self.claims, values));
        }
        self.add_money(decided, &mut steps);
        self.add_streams(decided, base, &mut steps);
        if !writes.rows.is_empty() {
            let all = || writes.rows.iter();
            let values = vec![
                column(all(), |row| row.stream),
                column(all(), |row| class_number(row.class)),
                column(all(), |row| clamp(row.first)),
                column(all(), |row| clamp(row.last)),
                column(all(), |row| clamp(row.at.0)),
                column(all(), |row| clamp(row.no)),
                column(all(), |row| row.body.to_vec()),
            ];
            steps.push(BoundStatement::new(&self.journal, values));
        }
        if !writes.shortened.is_empty() {
            let all = || writes.shortened.iter();
            let values = vec![
                column(all(), |row| row.0),
                column(all(), |row| row.1),
                column(all(), |row| row.2.clone()),
            ];
            steps.push(BoundStatement::new(&self.shortened, values));
        }
        self.add_audit(decided, base, &mut steps);
        self.add_uses(decided, &mut steps);
        self.add_files(decided, base, &mut steps);
        steps
    }

    fn shards_step(&self, decided: &Decided<'_>, sealer: &Sealer) -> BoundStatement {
        let known = &decided.view.known.shards;
        let all: Vec<_> = decided
            .writes
            .shards
            .iter()
            .filter_map(|(id, before)| Some((*id, *before, *known.get(id)?)))
            .map(|(id, before, now)| (id, before, now, sealer.sign(id, now.audit_n, now.audit_mac)))
            .collect();
        let values = vec![
            column(&all, |(id, ..)| shard_number(*id)),
            column(&all, |(_, before, ..)| clamp(before.epoch)),
            column(&all, |(_, before, ..)| clamp(before.streams_made)),
            column(&all, |(_, before, ..)| clamp(before.audit_n)),
            column(&all, |(_, _, now, _)| clamp(now.commit_no)),
            column(&all, |(_, _, now, _)| clamp(now.streams_made)),
            column(&all, |(.., head)| clamp(head.n)),
            column(&all, |(.., head)| head.mac.to_vec()),
            column(&all, |(.., head)| head.sig.to_vec()),
            column(&all, |(_, before, ..)| clamp(before.commit_no)),
        ];
        BoundStatement::new(&self.shards, values)
    }

    fn add_streams(&self, decided: &Decided<'_>, base: i64, steps: &mut Vec<BoundStatement>) {
        let all = &decided.writes.streams;
        let made: Vec<_> = all.iter().filter(|(_, it)| it.before.is_none()).collect();
        if !made.is_empty() {
            steps.push(self.new_streams_step(&made, base));
        }
        let changed: Vec<(i64, &StreamWrite<'_>, i64)> = all
            .iter()
            .filter_map(|(id, it)| Some((*id, it, clamp(it.before?.place.seq))))
            .collect();
        if !changed.is_empty() {
            let run = |it: &StreamWrite<'_>| it.run.is_some();
            let error = |it: &StreamWrite<'_>| it.run.and_then(|run| run.error.clone());
            let values = vec![
                column(&changed, |(_, it, _)| shard_number(it.stream.shard())),
                column(&changed, |(id, ..)| *id),
                column(&changed, |(.., before)| *before),
                column(&changed, |(_, it, _)| clamp(it.seq)),
                column(&changed, |(_, it, _)| it.run.map(|run| run.status)),
                column(&changed, |(_, it, _)| it.run.map(|run| Whole::from(run.cost_micro))),
                column(&changed, |(_, it, _)| it.run.map(|run| clamp(run.wall_ms))),
                column(&changed, |(_, it, _)| it.run.map(|run| run.summary.clone())),
                column(&changed, |(_, it, _)| run(it).then(|| is_over_hold(it))),
                column(&changed, |(_, it, _)| error(it).map(|(code, _)| owned(&code))),
                column(&changed, |(_, it, _)| error(it).map(|(_, text)| owned(&text))),
            ];
            steps.push(BoundStatement::new(&self.streams, values));
        }
        if !decided.writes.unsealed.is_empty() {
            let values = vec![Box::new(decided.writes.unsealed.clone()) as Value];
            steps.push(BoundStatement::new(&self.withheld, values));
        }
        let was_open = |it: &StreamWrite<'_>| it.before.is_some_and(|before| before.open);
        let mut lists = |statement, wanted: &dyn Fn(&StreamWrite<'_>) -> bool| {
            let all: Vec<_> = all.iter().filter(|(_, it)| wanted(it)).collect();
            if !all.is_empty() {
                let values = vec![
                    column(&all, |(_, it)| shard_number(it.stream.shard())),
                    column(&all, |(_, it)| it.stream.kind().as_str()),
                    column(&all, |(id, _)| **id),
                ];
                steps.push(BoundStatement::new(statement, values));
            }
        };
        lists(&self.opened, &|it| it.open && !was_open(it));
        lists(&self.closed, &|it| !it.open && was_open(it));
        let told: Vec<_> = all.iter().filter(|(_, it)| it.run.is_some_and(is_remarkable)).collect();
        if !told.is_empty() {
            let values = vec![
                column(&told, |(_, it)| shard_number(it.stream.shard())),
                column(&told, |(id, _)| **id),
            ];
            steps.push(BoundStatement::new(&self.remarkable, values));
        }
    }

    fn new_streams_step(&self, made: &[(&i64, &StreamWrite<'_>)], base: i64) -> BoundStatement {
        let run = |it: &StreamWrite<'_>| it.run.is_some();
        let world = |it: &StreamWrite<'_>| {
            let (world, _) = it.key.split_once('/').filter(|_| run(it))?;
            Some(world.to_owned())
        };
        let text = |text: Option<&String>| text.map(|text| owned(text));
        let values = vec![
            Box::new(base) as Value,
            column(made, |(_, it)| shard_number(it.stream.shard())),
            column(made, |(id, _)| **id),
            column(made, |(_, it)| it.stream.kind().as_str()),
            column(made, |(_, it)| it.key.to_owned()),
            column(made, |(_, it)| clamp(it.seq)),
            column(made, |(_, it)| world(it)),
            column(made, |(_, it)| it.run.map(|run| run.tool.as_str().to_owned())),
            column(made, |(_, it)| it.run.map(|run| run.status)),
            column(made, |(_, it)| it.run.map(|run| clamp(run.created_at.0))),
            column(made, |(_, it)| it.run.map(|run| Whole::from(run.cost_micro))),
            column(made, |(_, it)| it.run.map(|run| clamp(run.wall_ms))),
            column(made, |(_, it)| it.run.map(|run| run.summary.clone())),
            column(made, |(_, it)| it.run.and_then(|run| text(run.caller.as_ref()))),
            column(made, |(_, it)| it.run.and_then(|run| text(run.called_by.as_ref()))),
            column(made, |(_, it)| it.run.and_then(|run| text(run.parent.as_ref()))),
            column(made, |(_, it)| it.run.and_then(|run| text(run.correlation.as_ref()))),
            column(made, |(_, it)| run(it).then(|| is_over_hold(it))),
            column(made, |(_, it)| {
                it.run.and_then(|run| run.error.as_ref()).map(|(code, _)| owned(code))
            }),
            column(made, |(_, it)| {
                it.run.and_then(|run| run.error.as_ref()).map(|(_, text)| owned(text))
            }),
            column(made, |(_, it)| it.sealed.map(ToString::to_string)),
        ];
        BoundStatement::new(&self.new_streams, values)
    }

    fn add_money(&self, decided: &Decided<'_>, steps: &mut Vec<BoundStatement>) {
        let (writes, known) = (&decided.writes, &decided.view.known);
        for (statement, wanted) in [(&self.new_accounts, false), (&self.accounts, true)] {
            let all: Vec<_> = writes
                .accounts
                .iter()
                .filter(|(_, before)| before.is_some() == wanted)
                .filter_map(|(id, _)| Some((id, known.accounts.get(id)?)))
                .collect();
            if !all.is_empty() {
                let values = vec![
                    column(&all, |(id, _)| id.as_str().to_owned()),
                    column(&all, |(_, it)| it.parent.as_ref().map(|up| up.as_str().to_owned())),
                    column(&all, |(_, it)| it.limit.map(Whole::from)),
                    column(&all, |(_, it)| Whole::from(it.held)),
                    column(&all, |(_, it)| Whole::from(it.spent)),
                ];
                steps.push(BoundStatement::new(statement, values));
            }
        }
        let holds = || writes.holds.iter().map(|(id, write)| (id, write, known.holds.get(id)));
        let taken: Vec<_> = holds()
            .filter(|(_, write, _)| write.taken || !write.was_there)
            .filter_map(|(id, write, now)| Some((id, write, now?)))
            .collect();
        if !taken.is_empty() {
            let values = vec![
                column(&taken, |(id, ..)| id.as_str().to_owned()),
                column(&taken, |(_, write, _)| shard_number(write.shard)),
                column(&taken, |(.., now)| now.account.as_str().to_owned()),
                column(&taken, |(.., now)| Whole::from(now.amount)),
                column(&taken, |(.., now)| Whole::from(now.reported)),
            ];
            steps.push(BoundStatement::new(&self.taken_holds, values));
        }
        let grown: Vec<_> = holds()
            .filter(|(_, write, _)| write.was_there && !write.taken)
            .filter_map(|(id, _, now)| Some((id, now?)))
            .collect();
        if !grown.is_empty() {
            let values = vec![
                column(&grown, |(id, _)| id.as_str().to_owned()),
                column(&grown, |(_, now)| Whole::from(now.amount)),
                column(&grown, |(_, now)| Whole::from(now.reported)),
            ];
            steps.push(BoundStatement::new(&self.grown_holds, values));
        }
        let ended: Vec<String> = holds()
            .filter(|(_, write, now)| write.was_there && now.is_none())
            .map(|(id, ..)| id.as_str().to_owned())
            .collect();
        if !ended.is_empty() {
            steps.push(BoundStatement::new(&self.ended_holds, vec![Box::new(ended)]));
        }
        if !writes.prices.is_empty() {
            let all = || writes.prices.iter();
            let values = vec![
                column(all(), |(tool, ..)| tool.as_str().to_owned()),
                column(all(), |(_, hash, _)| hash.as_str().to_owned()),
                column(all(), |(.., cost)| Whole::from(*cost)),
                Box::new(clamp_len(PRICES_PER_TOOL_MAX)) as Value,
            ];
            steps.push(BoundStatement::new(&self.learn, values));
        }
    }

    fn add_audit(&self, decided: &Decided<'_>, base: i64, steps: &mut Vec<BoundStatement>) {
        let audit = &decided.writes.audit;
        if audit.is_empty() {
            return;
        }
        let mut place = 0_i64;
        let places: Vec<i64> = audit
            .values()
            .map(|packed| {
                let first = place;
                place += i64::from(packed.count);
                first
            })
            .collect();
        let values = vec![
            Box::new(base) as Value,
            column(audit.keys(), |shard| shard_number(*shard)),
            column(audit.values(), |packed| clamp(packed.n)),
            Box::new(places),
            column(audit.values(), |packed| i32::try_from(packed.count).unwrap_or(i32::MAX)),
            column(audit.values(), |packed| clamp(packed.at)),
            column(audit.values(), |packed| packed.body.clone()),
            column(audit.values(), |packed| month_number(Timestamp(packed.at))),
        ];
        steps.push(BoundStatement::new(&self.audit, values));
    }

    fn add_uses(&self, decided: &Decided<'_>, steps: &mut Vec<BoundStatement>) {
        let Writes { uses, ended, .. } = &decided.writes;
        if !uses.is_empty() {
            let values = vec![
                column(uses, |(world, ..)| world.to_string()),
                column(uses, |(_, path, _)| path.to_string()),
                column(uses, |(.., run)| run.to_string()),
            ];
            steps.push(BoundStatement::new(&self.uses, values));
        }
        if !ended.is_empty() {
            let values = vec![
                column(ended, |run| run.world.to_string()),
                column(ended, |run| run.run.to_string()),
            ];
            steps.push(BoundStatement::new(&self.unused, values));
        }
    }

    fn add_files(&self, decided: &Decided<'_>, base: i64, steps: &mut Vec<BoundStatement>) {
        let files = &decided.writes.files;
        if files.is_empty() {
            return;
        }
        let told = |op: &ArtifactOp| match op {
            ArtifactOp::Record(new) => Some(new.clone()),
            ArtifactOp::Remove { .. } => None,
        };
        let place = |op: &ArtifactOp| match op {
            ArtifactOp::Record(new) => (new.world.to_string(), new.path.to_string()),
            ArtifactOp::Remove { world, path } => (world.to_string(), path.to_string()),
        };
        let values = vec![
            Box::new(base) as Value,
            column(files, |(_, op)| place(op).0),
            column(files, |(_, op)| place(op).1),
            column(files, |(_, op)| told(op).map(|new| Whole::from(new.bytes))),
            column(files, |(_, op)| {
                told(op).and_then(|new| new.b3.as_ref().map(B3::as_str).map(str::to_owned))
            }),
            column(files, |(_, op)| told(op).map(|new| owned(&new.media_type))),
            column(files, |(_, op)| {
                told(op).and_then(|new| new.run.as_ref().map(RunId::as_str).map(str::to_owned))
            }),
            column(files, |(_, op)| told(op).and_then(|new| new.key.as_deref().map(owned))),
            column(files, |(_, op)| told(op).map(|new| new.direction.as_str())),
            column(files, |(at, _)| clamp(at.0)),
        ];
        steps.push(BoundStatement::new(&self.files, values));
    }
}

fn is_over_hold(it: &StreamWrite<'_>) -> bool {
    it.run.is_some_and(|run| run.over_hold)
}

/// Whether people will look for a run: it did not succeed, or cost more than was held.
pub(crate) fn is_remarkable(run: &PreparedRun) -> bool {
    run.over_hold || run.error.is_some() || matches!(run.status, "failed" | "refused" | "canceled")
}

pub(crate) fn class_number(class: Class) -> i16 {
    match class {
        Class::Entries => 0,
        Class::Progress => 1,
    }
}

/// The month of a record of the audit.
pub(crate) fn month_number(at: Timestamp) -> i16 {
    i16::try_from(month_of(at)).unwrap_or(i16::MAX)
}

pub(crate) fn shard_number(shard: ShardId) -> i16 {
    i16::from(shard.0)
}
