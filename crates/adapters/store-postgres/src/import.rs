//! Fills an empty database with what another store holds.
//!
//! All of it is one transaction: until it is committed nobody sees any of it, and whatever breaks
//! off leaves the database as empty as it was.

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, binary_copy::BinaryCopyInWriter};
use wharf_domain::RunSummary;
use wharf_ports::copy::{
    CopyPart, StoredAccount, StoredCost, StoredFile, StoredHold, StoredPrice, StoredRecord,
    StoredRow, StoredShard, StoredStream, StoredUse,
};
use wharf_ports::plan::PreparedRun;
use wharf_ports::{Claim, StoreError};
use wharf_vocab::{ShardId, Timestamp};

use crate::error::{corrupt, from_postgres, unavailable};
use crate::number::{Whole, clamp, stream_id, to_text};
use crate::options::PostgresOptions;
use crate::packed::PackedRecords;
use crate::writer::{class_number, is_remarkable, month_number, shard_number};
use crate::{connect, migrations};
use tables::{
    ACCOUNTS, AUDIT, CLAIMS, COSTS, CopiedTable, FILES, HOLDS, JOURNAL, OPENS, PRICES, REMARKABLE,
    STREAMS, USES,
};

/// Nobody is waited for, and nobody else may fill or change the schema meanwhile.
const BEGIN: &str = "SET statement_timeout TO 0; SET idle_in_transaction_session_timeout TO 0;
    BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('wharf schema', 0))";

/// Records of the audit that one row packs at most.
const PACKED_MAX: u32 = 256;

/// A database that is being filled.
#[derive(Debug)]
pub struct PostgresImport {
    client: Client,
    /// Streams that were made in each shard.
    made: BTreeMap<ShardId, u64>,
    months: BTreeSet<i64>,
}

type Values<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

impl PostgresImport {
    /// Whether a database could be filled; `Err` says why not. Nothing is written.
    pub async fn check(options: &PostgresOptions) -> Result<(), StoreError> {
        let client = connect::open(options).await?;
        connect::check(&client).await?;
        empty(&client).await
    }

    /// Brings the schema of an empty database up and begins to fill it.
    pub async fn begin(options: &PostgresOptions) -> Result<Self, StoreError> {
        Self::check(options).await?;
        let mut client = connect::open(options).await?;
        migrations::bring_up(&mut client).await?;
        client.batch_execute(BEGIN).await.map_err(from_postgres)?;
        // Now that nobody else can begin.
        empty(&client).await?;
        Ok(Self { client, made: BTreeMap::new(), months: Default::default() })
    }

    /// Adds a part.
    pub async fn add(&mut self, part: CopyPart) -> Result<(), StoreError> {
        match part {
            CopyPart::Streams(streams) => self.streams(&streams).await,
            CopyPart::Claims(claims) => {
                let rows = claims.iter().map(|it| claim(it, None)).collect();
                self.copy(CLAIMS, rows).await
            }
            CopyPart::Accounts(accounts) => self.accounts(&accounts).await,
            CopyPart::Holds(holds) => self.holds(&holds).await,
            CopyPart::Prices(prices) => self.prices(&prices).await,
            CopyPart::Records(records) => self.records(&records).await,
            CopyPart::Files(files) => self.files(&files).await,
            CopyPart::Uses(uses) => self.uses(&uses).await,
            CopyPart::Costs(costs) => self.costs(&costs).await,
            CopyPart::Shards(shards) => self.shards(&shards).await,
        }
    }

    /// Makes all of it true.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.client.batch_execute("COMMIT").await.map_err(from_postgres)?;
        // Without it the server would guess for a while how much there is.
        self.client.batch_execute("ANALYZE").await.map_err(from_postgres)
    }

    /// Months that come are made while they are empty, which costs nothing.
    async fn make_month(&mut self, month: i64) -> Result<(), StoreError> {
        if self.months.insert(month) {
            let sql = "SELECT make_month($1)";
            self.client.execute(sql, &[&month]).await.map_err(from_postgres)?;
        }
        Ok(())
    }

    async fn streams(&mut self, all: &[StoredStream]) -> Result<(), StoreError> {
        let mut ids = Vec::with_capacity(all.len());
        let mut runs = Vec::with_capacity(all.len());
        for stored in all {
            let shard = stored.stream.shard();
            let n = self.made.entry(shard).or_default();
            *n += 1;
            let made_at = stored.rows.first().map_or(Timestamp(0), |row| row.at);
            let id = stream_id(made_at, shard, *n);
            self.make_month(id >> 51).await?;
            ids.push(id);
            runs.push(stored.summary.as_deref().map(prepared).transpose()?);
        }
        let rows = StreamRows::of(all, &ids, &runs);
        self.copy(STREAMS, rows.streams).await?;
        self.copy(OPENS, rows.opens).await?;
        self.copy(REMARKABLE, rows.remarkable).await?;
        self.copy(JOURNAL, rows.journal).await?;
        self.copy(CLAIMS, rows.claims).await
    }

    async fn accounts(&self, accounts: &[StoredAccount]) -> Result<(), StoreError> {
        let row = |it: &StoredAccount| -> Values<'_> {
            vec![
                Box::new(it.id.clone()),
                Box::new(it.parent.clone()),
                Box::new(it.limit.map(Whole::from)),
                Box::new(Whole::from(it.held)),
                Box::new(Whole::from(it.spent)),
            ]
        };
        self.copy(ACCOUNTS, accounts.iter().map(row).collect()).await
    }

    async fn holds(&self, holds: &[StoredHold]) -> Result<(), StoreError> {
        let row = |it: &StoredHold| -> Values<'_> {
            vec![
                Box::new(it.id.clone()),
                Box::new(shard_number(it.shard)),
                Box::new(it.account.clone()),
                Box::new(Whole::from(it.amount)),
                Box::new(Whole::from(it.reported)),
            ]
        };
        self.copy(HOLDS, holds.iter().map(row).collect()).await
    }

    async fn prices(&self, prices: &[StoredPrice]) -> Result<(), StoreError> {
        let row = |it: &StoredPrice| -> Values<'_> {
            vec![
                Box::new(it.tool.clone()),
                Box::new(it.hash.clone()),
                Box::new(Whole::from(it.cost)),
            ]
        };
        self.copy(PRICES, prices.iter().map(row).collect()).await
    }

    /// Records that follow each other in one chain and in all share a row, so that each keeps its
    /// place, its seal and the text that is sealed.
    async fn records(&mut self, records: &[StoredRecord]) -> Result<(), StoreError> {
        let mut rows: Vec<(ShardId, u64, PackedRecords)> = Vec::new();
        for record in records {
            let follows = rows.last().is_some_and(|(shard, pos, packed)| {
                let count = u64::from(packed.count);
                *shard == record.shard
                    && pos + count == record.id
                    && packed.n + count == record.n
                    && packed.count < PACKED_MAX
            });
            if !follows {
                rows.push((record.shard, record.id, PackedRecords::default()));
            }
            if let Some((.., packed)) = rows.last_mut() {
                packed.push(record.n, record.at, &record.mac, &record.json);
            }
        }
        for (.., packed) in &rows {
            self.make_month(month_number(Timestamp(packed.at)).into()).await?;
        }
        let row = |(shard, pos, it): &(ShardId, u64, PackedRecords)| -> Values<'_> {
            vec![
                Box::new(month_number(Timestamp(it.at))),
                Box::new(shard_number(*shard)),
                Box::new(clamp(it.n)),
                Box::new(clamp(*pos)),
                Box::new(i32::try_from(it.count).unwrap_or(i32::MAX)),
                Box::new(clamp(it.at)),
                Box::new(it.body.clone()),
            ]
        };
        let packed = rows.iter().map(row).collect();
        self.copy(AUDIT, packed).await
    }

    async fn files(&self, files: &[StoredFile]) -> Result<(), StoreError> {
        let row = |it: &StoredFile| -> Values<'_> {
            vec![
                Box::new(clamp(it.position)),
                Box::new(it.world.clone()),
                Box::new(it.path.clone()),
                Box::new(Whole::from(it.bytes)),
                Box::new(it.b3.clone()),
                Box::new(to_text(&it.media_type).into_owned()),
                Box::new(it.run.clone()),
                Box::new(it.key.as_deref().map(|key| to_text(key).into_owned())),
                Box::new(it.direction.clone()),
                Box::new(clamp(it.at)),
                Box::new(it.gone_at.map(clamp)),
                Box::new(it.used_at.map(clamp)),
            ]
        };
        self.copy(FILES, files.iter().map(row).collect()).await
    }

    async fn uses(&self, uses: &[StoredUse]) -> Result<(), StoreError> {
        let row = |it: &StoredUse| -> Values<'_> {
            vec![Box::new(it.world.clone()), Box::new(it.path.clone()), Box::new(it.run.clone())]
        };
        self.copy(USES, uses.iter().map(row).collect()).await
    }

    async fn costs(&self, costs: &[StoredCost]) -> Result<(), StoreError> {
        let row = |it: &StoredCost| -> Values<'_> {
            vec![
                Box::new(clamp(it.hour)),
                Box::new(it.world.clone()),
                Box::new(it.tool.clone()),
                Box::new(it.caller.clone()),
                Box::new(clamp(it.runs)),
                Box::new(clamp(it.failed)),
                Box::new(Whole(it.cost)),
                Box::new(Whole(it.wall_ms)),
            ]
        };
        self.copy(COSTS, costs.iter().map(row).collect()).await
    }

    /// Shards go on where they were, in the next epoch.
    async fn shards(&self, shards: &[StoredShard]) -> Result<(), StoreError> {
        let sql = "UPDATE shards SET epoch = $2, commit_no = $3, audit_n = $4, audit_mac = $5,
                       audit_sig = $6 WHERE shard = $1";
        for it in shards {
            let (shard, epoch) = (shard_number(it.shard), clamp(it.epoch));
            let (commit_no, audit_n) = (clamp(it.commit_no), clamp(it.audit_n));
            let (mac, sig) = (&it.audit_mac[..], &it.audit_sig[..]);
            let values: [&(dyn ToSql + Sync); 6] =
                [&shard, &epoch, &commit_no, &audit_n, &mac, &sig];
            self.client.execute(sql, &values).await.map_err(from_postgres)?;
        }
        for (shard, made) in &self.made {
            let sql = "UPDATE shards SET streams_made = $2 WHERE shard = $1";
            let values = (shard_number(*shard), clamp(*made));
            self.client.execute(sql, &[&values.0, &values.1]).await.map_err(from_postgres)?;
        }
        Ok(())
    }

    async fn copy(
        &self,
        (table, columns): CopiedTable,
        rows: Vec<Values<'_>>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<Type> = columns.iter().map(|(_, of)| of.clone()).collect();
        let sql = format!("COPY {table} ({}) FROM STDIN BINARY", names.join(", "));
        let sink = self.client.copy_in(sql.as_str()).await.map_err(from_postgres)?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in rows {
            let values: Vec<&(dyn ToSql + Sync)> =
                row.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            writer.as_mut().write(&values).await.map_err(from_postgres)?;
        }
        writer.finish().await.map(drop).map_err(from_postgres)
    }
}

async fn empty(client: &Client) -> Result<(), StoreError> {
    if migrations::version(client).await? > 0 && migrations::holds_data(client).await? {
        let message = "the database holds runs or records already; only an empty one can be filled";
        return Err(unavailable(message));
    }
    Ok(())
}

fn prepared(summary: &str) -> Result<PreparedRun, StoreError> {
    let run: RunSummary = serde_json::from_str(summary)
        .map_err(|error| corrupt(format!("the summary of a run is damaged: {error}")))?;
    // What is shown stays as it was written.
    Ok(PreparedRun { summary: summary.to_owned(), ..PreparedRun::of(&run)? })
}

fn stream<'a>(stored: &StoredStream, id: i64, run: Option<&'a PreparedRun>) -> Values<'a> {
    let key = stored.stream.key();
    let world = run.and_then(|_| key.split_once('/')).map(|(world, _)| world.to_owned());
    let text = |text: Option<&String>| text.map(|text| to_text(text).into_owned());
    let error = run.and_then(|run| run.error.as_ref());
    vec![
        Box::new(shard_number(stored.stream.shard())),
        Box::new(id),
        Box::new(stored.stream.kind().as_str()),
        Box::new(key),
        Box::new(clamp(stored.seq)),
        Box::new(clamp(stored.position)),
        Box::new(world),
        Box::new(run.map(|run| run.tool.as_str().to_owned())),
        Box::new(run.map(|run| run.status)),
        Box::new(run.map(|run| clamp(run.created_at.0))),
        Box::new(run.map(|run| Whole::from(run.cost_micro))),
        Box::new(run.map(|run| clamp(run.wall_ms))),
        Box::new(run.map(|run| run.summary.clone())),
        Box::new(text(run.and_then(|run| run.caller.as_ref()))),
        Box::new(text(run.and_then(|run| run.called_by.as_ref()))),
        Box::new(text(run.and_then(|run| run.parent.as_ref()))),
        Box::new(text(run.and_then(|run| run.correlation.as_ref()))),
        Box::new(run.map(|run| run.over_hold)),
        Box::new(text(error.map(|(code, _)| code))),
        Box::new(text(error.map(|(_, text)| text))),
        Box::new(stored.sealed_with.as_ref().map(ToString::to_string)),
    ]
}

/// What pages of streams become, table by table.
struct StreamRows<'a> {
    streams: Vec<Values<'a>>,
    opens: Vec<Values<'a>>,
    remarkable: Vec<Values<'a>>,
    journal: Vec<Values<'a>>,
    claims: Vec<Values<'a>>,
}

impl<'a> StreamRows<'a> {
    fn of(all: &'a [StoredStream], ids: &[i64], runs: &'a [Option<PreparedRun>]) -> Self {
        let mut rows = Self {
            streams: Vec::with_capacity(all.len()),
            opens: Vec::new(),
            remarkable: Vec::new(),
            journal: Vec::new(),
            claims: Vec::new(),
        };
        for ((stored, id), run) in all.iter().zip(ids).zip(runs) {
            rows.streams.push(stream(stored, *id, run.as_ref()));
            if stored.open {
                rows.opens.push(opened(stored, *id));
            }
            if run.as_ref().is_some_and(is_remarkable) {
                rows.remarkable.push(remarked(stored, *id));
            }
            rows.journal.extend(stored.rows.iter().map(|row| appended(row, *id)));
            rows.claims.extend(stored.claims.iter().map(|it| claim(it, Some(*id))));
        }
        rows
    }
}

fn appended(row: &StoredRow, id: i64) -> Values<'_> {
    vec![
        Box::new(id),
        Box::new(class_number(row.class)),
        Box::new(clamp(row.first)),
        Box::new(clamp(row.last)),
        Box::new(clamp(row.at.0)),
        Box::new(clamp(row.commit_no)),
        Box::new(row.body.as_slice()),
    ]
}

fn claim(claim: &Claim, stream: Option<i64>) -> Values<'_> {
    vec![
        Box::new(to_text(&claim.scope)),
        Box::new(to_text(&claim.key)),
        Box::new(to_text(&claim.value)),
        Box::new(stream),
    ]
}

fn opened(stored: &StoredStream, id: i64) -> Values<'static> {
    let (shard, kind) = (shard_number(stored.stream.shard()), stored.stream.kind().as_str());
    vec![Box::new(shard), Box::new(kind), Box::new(id)]
}

fn remarked(stored: &StoredStream, id: i64) -> Values<'static> {
    let shard = shard_number(stored.stream.shard());
    vec![Box::new(clamp(stored.position)), Box::new(shard), Box::new(id)]
}
