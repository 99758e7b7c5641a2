//! The store behind the port.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use wharf_domain::{Account, Price, Rights};
use wharf_journal::audit::{Anchors, AuditKey, Sealer};
use wharf_ports::plan::Prepared;
use wharf_ports::{
    AuditPage, AuditQuery, Batch, Body, Clock, CommitError, CostQuery, CostRow, FileQuery,
    FileRecord, FolderQuery, FolderSize, History, HistoryRecord, Lease, LeaseView, OpenAsk,
    RewoundShard, RunPage, RunQuery, SealedRecord, StatsQuery, StatsRow, Store, StoreError,
    StoreSize, TraceQuery, WorldSize,
};
use wharf_vocab::{AccountId, HoldId, NodeId, RunKey, Seq, ShardId, StreamId, StreamKind, WorldId};

use crate::error::from_postgres;
use crate::number::{first_position_sql, settled_sql};
use crate::options::PostgresOptions;
use crate::pool::Pool;
use crate::read::Reader;
use crate::writer::{CommitAnswers, LaneShared, Lanes, Memory, shard_number};
use crate::{connect, lease, migrations, months, read};

/// How long the size of the database is remembered: to find it out, the server looks at every one
/// of its files.
const SIZE_KEPT: Duration = Duration::from_secs(30);

/// A store in a PostgreSQL database.
///
/// Everything that was committed is there when it is dropped; [`close`](Self::close) waits for what
/// is under way.
#[derive(Debug)]
pub struct PostgresStore {
    lanes: Lanes,
    reader: Reader,
    clock: Arc<dyn Clock>,
    size: Arc<Mutex<Option<(Instant, StoreSize)>>>,
}

impl PostgresStore {
    /// Opens the database and brings its schema up to date. Leases expire by `clock`; `node` is the
    /// core that writes.
    pub async fn open(
        options: PostgresOptions,
        audit_key: &AuditKey,
        node: &NodeId,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let mut client = connect::open(&options).await?;
        connect::check(&client).await?;
        migrations::bring_up(&mut client).await?;
        let base = position_base(&client).await?;
        let pool = Pool::of(options.clone());
        if let Err(error) = months::make(&pool, clock.now()).await {
            // The rest takes what has no month.
            tracing::warn!(%error, "the next months of the journal could not be prepared");
        }
        let shared = Arc::new(LaneShared {
            options,
            node: node.as_str().to_owned(),
            sealer: Sealer::new(audit_key),
            memory: Mutex::new(Memory::default()),
            reported: Mutex::default(),
            base,
            written: AtomicI64::new(0),
        });
        let lanes = Lanes::begin(&shared);
        Ok(Self { lanes, reader: Reader { pool, shared }, clock, size: Arc::default() })
    }

    /// Another core that may write this database at this moment, by its name.
    pub async fn other_core(&self, node: &NodeId) -> Result<Option<String>, StoreError> {
        lease::other_core(&self.reader.pool, node, self.clock.now()).await
    }

    /// Finishes what was begun. Whatever is asked afterwards is refused as unavailable.
    pub async fn close(&self) -> Result<(), StoreError> {
        let closed = self.lanes.close().await;
        self.reader.pool.close().await;
        closed
    }

    /// The signed heads of the audit's chains as they are now, to be kept outside the store.
    pub fn anchors(&self) -> BoxFuture<'static, Result<Anchors, StoreError>> {
        self.read(|reader| async move {
            let mut client = reader.get().await?;
            Ok(Anchors { heads: read::heads(&mut client).await? })
        })
    }

    /// How many commits have added to the audit since the store was opened.
    pub fn audit_growth(&self) -> u64 {
        self.lanes.audit_growth()
    }

    /// How often shards were found to have lost something that was reported as committed.
    pub fn rewinds(&self) -> u64 {
        self.reader.shared.reported.lock().rewinds()
    }

    /// How large the database was when that was last found out. When that was a while ago, it is
    /// found out anew for whoever asks next.
    pub fn known_bytes(&self) -> Option<u64> {
        let known = *self.size.lock();
        let is_old = known.is_none_or(|(at, _)| at.elapsed() >= SIZE_KEPT);
        if let (true, Ok(runtime)) = (is_old, tokio::runtime::Handle::try_current()) {
            let size = self.size();
            // What could not be found out is asked again.
            runtime.spawn(async move { size.await.ok() });
        }
        known.map(|(_, size)| size.bytes)
    }

    fn read<T, F>(
        &self,
        read: impl FnOnce(Reader) -> F,
    ) -> BoxFuture<'static, Result<T, StoreError>>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        read(self.reader.clone()).boxed()
    }
}

/// What is added to positions so that they go on rising where transaction numbers began anew, as
/// they do after a dump and a restore.
async fn position_base(client: &tokio_postgres::Client) -> Result<i64, StoreError> {
    let sql = format!(
        "WITH known AS (SELECT value::bigint AS base FROM settings WHERE key = 'position_base'),
              last AS (SELECT greatest(
                  (SELECT max(pos) FROM streams), (SELECT max(pos) FROM audit),
                  (SELECT max(pos) FROM artifacts)) AS pos)
         UPDATE settings SET value = (CASE
             WHEN last.pos >= {next} THEN known.base + last.pos + (1 << 21) - ({settled})
             ELSE known.base END)::text
         FROM known, last WHERE key = 'position_base'
         RETURNING value::bigint",
        next = first_position_sql("known.base"),
        settled = settled_sql("known.base"),
    );
    let row = client.query_one(&sql, &[]).await.map_err(from_postgres)?;
    row.try_get(0).map_err(from_postgres)
}

fn encode(body: &Body) -> Vec<u8> {
    match body {
        Body::Entries(entries) => wharf_journal::encode(entries),
        Body::Progress(pieces) => wharf_journal::encode_progress(pieces),
    }
}

impl Store for PostgresStore {
    fn commit(&self, batches: Vec<Arc<Batch>>) -> BoxFuture<'static, CommitAnswers> {
        let count = batches.len();
        let prepared: Result<Vec<_>, _> =
            batches.iter().map(|batch| Prepared::of(batch, encode)).collect();
        match prepared {
            Ok(prepared) => self.lanes.commit(prepared).boxed(),
            Err(error) => {
                futures::future::ready(vec![Err(CommitError::Failed(error)); count]).boxed()
            }
        }
    }

    fn acquire(
        &self,
        node: NodeId,
        shards: Vec<ShardId>,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<Vec<Lease>, StoreError>> {
        let (pool, now) = (self.reader.pool.clone(), self.clock.now());
        lease::acquire(pool, node, shards, ttl_ms, now).boxed()
    }

    fn renew(
        &self,
        node: NodeId,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<LeaseView, StoreError>> {
        let now = self.clock.now();
        self.read(move |reader| async move {
            let view = lease::renew(reader.pool.clone(), node, ttl_ms, now).await?;
            // Shards that nobody writes to may have lost something, too.
            let client = reader.get().await?;
            reader.shared.compare(&client).await.map_err(from_postgres)?;
            Ok(view)
        })
    }

    fn load(&self, stream: StreamId) -> BoxFuture<'static, Result<Option<History>, StoreError>> {
        self.read(|reader| read::load(reader, stream))
    }

    fn load_open(
        &self,
        kind: StreamKind,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(StreamId, History)>, StoreError>> {
        self.read(|reader| read::load_open(reader, kind, shards))
    }

    fn closed(
        &self,
        kind: StreamKind,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<StreamId>, StoreError>> {
        self.read(move |reader| read::closed(reader, kind, limit))
    }

    fn open_children(
        &self,
        parents: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(RunKey, RunKey)>, StoreError>> {
        self.read(|reader| read::open_children(reader, parents))
    }

    fn history(
        &self,
        stream: StreamId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<HistoryRecord>, StoreError>> {
        self.read(|reader| read::history(reader, stream, after, limit))
    }

    fn runs(&self, query: RunQuery) -> BoxFuture<'static, Result<RunPage, StoreError>> {
        self.read(|reader| read::runs(reader, query))
    }

    fn count_runs(
        &self,
        query: RunQuery,
        within: Arc<Rights>,
        up_to: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.read(|reader| async move { read::count_runs(reader, query, &within, up_to).await })
    }

    fn run_stats(
        &self,
        query: StatsQuery,
    ) -> BoxFuture<'static, Result<Vec<StatsRow>, StoreError>> {
        self.read(|reader| read::run_stats(reader, query))
    }

    fn costs(&self, query: CostQuery) -> BoxFuture<'static, Result<Vec<CostRow>, StoreError>> {
        self.read(|reader| read::costs(reader, query))
    }

    fn files(&self, query: FileQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.read(|reader| read::files(reader, query))
    }

    fn trace(&self, query: TraceQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.read(|reader| read::trace(reader, query))
    }

    fn usage(&self, world: WorldId) -> BoxFuture<'static, Result<WorldSize, StoreError>> {
        self.read(|reader| read::usage(reader, world))
    }

    fn folder_sizes(
        &self,
        query: FolderQuery,
    ) -> BoxFuture<'static, Result<Vec<FolderSize>, StoreError>> {
        self.read(|reader| read::folder_sizes(reader, query))
    }

    fn open_asks(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.read(|reader| read::open_asks(reader, after, limit))
    }

    fn decided_asks(
        &self,
        before: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.read(|reader| read::decided_asks(reader, before, limit))
    }

    fn account(&self, id: AccountId) -> BoxFuture<'static, Result<Option<Account>, StoreError>> {
        self.read(|reader| read::account(reader, id))
    }

    fn holds(
        &self,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(ShardId, HoldId)>, StoreError>> {
        self.read(|reader| read::holds(reader, shards))
    }

    fn prices(&self) -> BoxFuture<'static, Result<Vec<Price>, StoreError>> {
        self.read(read::prices)
    }

    fn audit(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<SealedRecord>, StoreError>> {
        self.read(|reader| read::audit(reader, after, limit))
    }

    fn find_audit(&self, query: AuditQuery) -> BoxFuture<'static, Result<AuditPage, StoreError>> {
        self.read(|reader| read::find_audit(reader, query))
    }

    fn purge(&self, streams: Vec<StreamId>) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.read(|reader| async move {
            let shards: Vec<i16> = streams.iter().map(|it| shard_number(it.shard())).collect();
            let kinds: Vec<&str> = streams.iter().map(|it| it.kind().as_str()).collect();
            let keys: Vec<String> = streams.iter().map(StreamId::key).collect();
            let sql = "SELECT purge($1, $2, $3)";
            let row = reader.get().await?.query_one(sql, &[&shards, &kinds, &keys]).await?;
            Ok(row.try_get::<_, i64>(0).map_err(from_postgres)?.cast_unsigned())
        })
    }

    /// PostgreSQL uses again what was freed, by itself. What is given back are whole months whose
    /// runs are all gone, one at a time.
    fn shrink(&self, _bytes_max: u64) -> BoxFuture<'static, Result<u64, StoreError>> {
        let now = self.clock.now();
        self.read(move |reader| async move {
            months::make(&reader.pool, now).await?;
            Ok(months::drop_one(&reader.pool, now).await?.into())
        })
    }

    fn take_rewound(&self) -> Vec<RewoundShard> {
        self.reader.shared.reported.lock().take_rewound()
    }

    fn shred(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.read(crate::shred::shred)
    }

    fn size(&self) -> BoxFuture<'static, Result<StoreSize, StoreError>> {
        let kept = Arc::clone(&self.size);
        self.read(|reader| async move {
            let known = *kept.lock();
            if let Some((at, size)) = known
                && at.elapsed() < SIZE_KEPT
            {
                return Ok(size);
            }
            let size = database_size(reader).await?;
            *kept.lock() = Some((Instant::now(), size));
            Ok(size)
        })
    }
}

async fn database_size(reader: Reader) -> Result<StoreSize, StoreError> {
    let sql = "SELECT pg_database_size(current_database())";
    let row = reader.get().await?.query_one(sql, &[]).await?;
    let bytes: i64 = row.try_get(0).map_err(from_postgres)?;
    Ok(StoreSize { bytes: bytes.cast_unsigned(), ..StoreSize::default() })
}
