//! Looking after a database whether a core uses it or not; everything is only read.

use std::sync::Arc;

use futures::TryStreamExt as _;
use parking_lot::Mutex;
use wharf_journal::audit::{Anchors, AuditKey, AuditRow, ChainReport, Sealer, Verifier};
use wharf_ports::{FileRecord, Publication, StoreError};
use wharf_vocab::{ShardId, StreamKind};

use crate::error::from_postgres;
use crate::options::PostgresOptions;
use crate::pool::{Pool, Pooled};
use crate::read::Reader;
use crate::writer::{LaneShared, Memory};
use crate::{connect, migrations, read};

/// How much is told at most.
const FINDINGS_MAX: i64 = 100;

/// A connection on which all that is read is of one moment, however long it takes.
async fn onlooker(options: &PostgresOptions) -> Result<Pooled, StoreError> {
    let mut client = Pool::of(options.clone()).get().await?;
    client
        .execute(
            "SET statement_timeout TO 0; SET idle_in_transaction_session_timeout TO 0;
             BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        )
        .await?;
    Ok(client)
}

/// What a server says of itself that whoever runs it should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Its version.
    pub version: String,
    /// What could lose what was committed, one sentence each.
    pub warnings: Vec<String>,
}

/// Whether the server can be reached and holds what it promises.
pub async fn ready(options: &PostgresOptions) -> Result<Ready, StoreError> {
    let client = connect::open(options).await?;
    connect::check(&client).await?;
    let sql = "SELECT current_setting('server_version'), current_setting('fsync'),
                      current_setting('full_page_writes'),
                      current_setting('synchronous_standby_names'),
                      (SELECT count(*) FROM pg_stat_replication), pg_is_in_recovery(),
                      current_setting('autovacuum'), current_setting('track_counts')";
    let row = client.query_one(sql, &[]).await.map_err(from_postgres)?;
    let text = |at: usize| row.try_get::<_, String>(at).map_err(from_postgres);
    let standbys: i64 = row.try_get(4).map_err(from_postgres)?;
    let is_standby: bool = row.try_get(5).map_err(from_postgres)?;
    let mut warnings = Vec::new();
    if is_standby {
        warnings.push("This is a standby, which cannot be written; name the primary.".to_owned());
    }
    for (at, name) in [(1, "fsync"), (2, "full_page_writes")] {
        if text(at)? == "off" {
            warnings.push(format!("{name} is off, so a crash of the machine loses runs."));
        }
    }
    if standbys > 0 && text(3)?.is_empty() {
        let names = "synchronous_standby_names";
        warnings.push(format!(
            "It has a standby and {names} is empty, so a failover may lose what was committed."
        ));
    }
    for (at, name) in [(6, "autovacuum"), (7, "track_counts")] {
        if text(at)? == "off" {
            warnings.push(format!("{name} is off, so tables grow with every commit."));
        }
    }
    let lazy = lazy_tables(&client).await?;
    if !lazy.is_empty() {
        warnings.push(format!(
            "Dead rows of {} are not cleared soon enough, so every commit gets slower; give them \
             autovacuum_vacuum_scale_factor = 0 and autovacuum_vacuum_threshold = 2000.",
            lazy.join(", ")
        ));
    }
    Ok(Ready { version: text(0)?, warnings })
}

/// Those of the tables that change with every commit that are not vacuumed often.
async fn lazy_tables(client: &tokio_postgres::Client) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT c.relname::text FROM pg_class AS c
               JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = 'wharf' AND c.relname IN ('accounts', 'shards', 'lanes')
                   AND ('autovacuum_enabled=false' = ANY (c.reloptions)
                        OR 'autovacuum_enabled=off' = ANY (c.reloptions)
                        OR NOT coalesce('autovacuum_vacuum_scale_factor=0' = ANY (c.reloptions),
                                        false))
               ORDER BY 1";
    let rows = client.query(sql, &[]).await.map_err(from_postgres)?;
    rows.iter().map(|row| row.try_get(0).map_err(from_postgres)).collect()
}

/// Checks every record of the audit against its seal, the signed heads and the anchors, and says
/// what was done to it.
pub async fn verify_audit(
    options: &PostgresOptions,
    key: &AuditKey,
    anchors: &Anchors,
) -> Result<ChainReport, StoreError> {
    let mut client = onlooker(options).await?;
    let mut verifier = Verifier::new(key, &read::heads(&mut client).await?, anchors);
    let sql = "SELECT shard, n, pos, records, body FROM audit ORDER BY pos";
    {
        let rows = client.stream(sql, &[]).await?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(from_postgres)? {
            for record in read::record_rows(&row)? {
                verifier.push(&AuditRow {
                    shard: record.shard,
                    n: record.n,
                    at: record.at,
                    record_json: record.json,
                    mac: record.mac,
                });
            }
        }
    }
    Ok(verifier.finish())
}

/// Says what is wrong with a database, in sentences; nothing if every stream is whole.
pub async fn integrity_check(options: &PostgresOptions) -> Result<Vec<String>, StoreError> {
    let mut client = onlooker(options).await?;
    let sql = "SELECT s.kind, s.key, s.seq, coalesce(sum(j.last_seq - j.first_seq + 1), 0)::bigint
               FROM streams AS s LEFT JOIN journal AS j ON j.stream = s.id
               GROUP BY s.shard, s.id
               HAVING s.seq IS DISTINCT FROM sum(j.last_seq - j.first_seq + 1)
                   OR s.seq IS DISTINCT FROM max(j.last_seq)
               LIMIT $1";
    let rows = client.query(sql, &[&FINDINGS_MAX]).await?;
    rows.into_iter()
        .map(|row| {
            let (kind, key): (&str, &str) =
                (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
            let (seq, covered): (i64, i64) =
                (row.try_get(2).map_err(from_postgres)?, row.try_get(3).map_err(from_postgres)?);
            Ok(format!("The {kind} {key} has {seq} entries, but its journal holds {covered}."))
        })
        .collect()
}

/// Files of worlds, as the database knows them.
#[derive(Debug)]
pub struct StoreFiles {
    client: Pooled,
    reader: Reader,
}

impl StoreFiles {
    /// Opens a database to ask for its files; nothing if it has no schema yet.
    pub async fn open(options: &PostgresOptions) -> Result<Option<Self>, StoreError> {
        let pool = Pool::of(options.clone());
        let mut client = pool.get().await?;
        if migrations::version(&*client).await? == 0 {
            return Ok(None);
        }
        client.execute("SET statement_timeout TO 0").await?;
        let shared = Arc::new(LaneShared {
            options: options.clone(),
            node: String::new(),
            sealer: Sealer::new(&AuditKey::new([0; 32])),
            memory: Mutex::new(Memory::default()),
            reported: Mutex::default(),
            base: 0,
            written: Default::default(),
        });
        Ok(Some(Self { client, reader: Reader { pool, shared } }))
    }

    /// Every file that is there now, in the order of worlds and paths.
    pub async fn each(
        &mut self,
        each: &mut (dyn FnMut(FileRecord) + Send),
    ) -> Result<(), StoreError> {
        read::all_files(&mut self.client, each).await
    }

    /// Whether a record still stands for a file that is there.
    pub async fn is_here(&mut self, record: &FileRecord) -> Result<bool, StoreError> {
        read::is_here(&mut self.client, record).await
    }

    /// What open runs are about to publish.
    pub async fn publications(&self) -> Result<Vec<Publication>, StoreError> {
        let shards: Vec<ShardId> = ShardId::all().collect();
        let open = read::load_open(self.reader.clone(), StreamKind::Run, shards).await?;
        Ok(open
            .into_iter()
            .filter_map(|(stream, stored)| Publication::of(&stream, stored))
            .collect())
    }
}
