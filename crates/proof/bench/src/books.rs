//! Money and files as rows: holds of many callers, lists of many files, presigned addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use wharf_artifacts::{Credentials, Endpoint, EndpointOptions, FileObjects};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, ArtifactOp, LedgerOp};
use wharf_journal::audit::AuditKey;
use wharf_ports::{Batch, CommitError, FileQuery, Method, ObjectStore as _, Store, SystemClock};
use wharf_store_sqlite::SqliteStore;
use wharf_vocab::{
    AccountId, CommitNo, Direction, Epoch, HoldId, NodeId, RunId, ShardId, Timestamp, WorldId,
};

use crate::report::{Report, median_us, per_second};
use crate::{Scale, core, raw};

const CALLERS: usize = 64;
const PAGE: usize = 200;
/// Rows of one batch while the list is filled.
const FILL: usize = 1_000;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    presigns(scale, report).await?;
    holds(scale, report).await?;
    one_call_budget(report).await?;
    listing(scale, report).await
}

async fn presigns(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let files = FileObjects::open(dir.path().join("objects"))?;
    let options = EndpointOptions::new(core::any_port(), Credentials::generate()?);
    let objects = Endpoint::bind(files, options).await?.objects();
    let started = Instant::now();
    let mut bytes = 0;
    for n in 0..scale.many {
        let method = if n % 2 == 0 { Method::Get } else { Method::Put };
        bytes += objects.presign(method, &format!("w/folder/file-{n}.bin"), 3_600).len();
    }
    ensure!(bytes > 0, "no addresses");
    let rate = per_second(scale.many, started.elapsed());
    report.figure("presigned addresses", rate, "/s", None, "");
    Ok(())
}

/// A store with one world's account, for many callers.
struct Bank {
    _dir: tempfile::TempDir,
    store: Arc<SqliteStore>,
    epoch: Epoch,
    last: AtomicU64,
}

const SHARD: ShardId = ShardId(0);

impl Bank {
    async fn open() -> anyhow::Result<Self> {
        let dir = core::scratch()?;
        let key = AuditKey::new([7; 32]);
        let path = dir.path().join("bank.db");
        let store = Arc::new(SqliteStore::open(&path, &key, Arc::new(SystemClock))?);
        let leases = store.acquire(NodeId::new("bench")?, vec![SHARD], 600_000).await?;
        let epoch = leases.first().context("no lease")?.epoch;
        Ok(Self { _dir: dir, store, epoch, last: AtomicU64::new(0) })
    }

    async fn commit(
        &self,
        ledger: Vec<LedgerOp>,
        artifacts: Vec<ArtifactOp>,
    ) -> anyhow::Result<Result<(), CommitError>> {
        let no = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let batch = Batch {
            shard: SHARD,
            epoch: self.epoch,
            no: CommitNo(no),
            at: Timestamp(no),
            appends: Vec::new(),
            claims: Vec::new(),
            requires: Vec::new(),
            ledger,
            audit: Vec::new(),
            artifacts,
        };
        self.store.commit(vec![Arc::new(batch)]).await.pop().context("no answer")
    }

    async fn must(&self, ledger: Vec<LedgerOp>, artifacts: Vec<ArtifactOp>) -> anyhow::Result<()> {
        match self.commit(ledger, artifacts).await? {
            Ok(()) => Ok(()),
            Err(error) => bail!("a batch was not taken: {error:?}"),
        }
    }
}

/// Each caller sets money aside on one account and settles it, over and over.
async fn holds(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let bank = Arc::new(Bank::open().await?);
    let account = AccountId::of_world(&WorldId::new("bench")?);
    let open = LedgerOp::Open { account: account.clone(), parent: None, limit: Some(u64::MAX / 2) };
    bank.must(vec![open], Vec::new()).await?;
    let each = scale.many / CALLERS;
    let started = Instant::now();
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (bank, account) = (Arc::clone(&bank), account.clone());
            tokio::spawn(async move {
                for n in 0..each {
                    let hold = HoldId::new(format!("h-{caller}-{n}"))?;
                    let (amount, account) = (10, account.clone());
                    let take = LedgerOp::Hold { hold: hold.clone(), account, amount };
                    bank.must(vec![take], Vec::new()).await?;
                    bank.must(vec![LedgerOp::Settle { hold, spent: 7 }], Vec::new()).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let rate = per_second(each * CALLERS, started.elapsed());
    let floor = raw::batched_rows_per_second(scale.many)? / 2.0;
    let of = Some((floor, "raw batched rows/s ÷ 2"));
    report.figure("holds taken and settled, 64 callers (FULL)", rate, "holds/s", of, "");
    Ok(())
}

/// 64 callers at once on a budget for one call: how many were let through.
async fn one_call_budget(report: &mut Report) -> anyhow::Result<()> {
    let bank = Arc::new(Bank::open().await?);
    let account = AccountId::of_world(&WorldId::new("poor")?);
    let open = LedgerOp::Open { account: account.clone(), parent: None, limit: Some(10) };
    bank.must(vec![open], Vec::new()).await?;
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (bank, account) = (Arc::clone(&bank), account.clone());
            tokio::spawn(async move {
                let hold = HoldId::new(format!("h-{caller}"))?;
                let taken = LedgerOp::Hold { hold, account, amount: 10 };
                anyhow::Ok(bank.commit(vec![taken], Vec::new()).await?.is_ok())
            })
        })
        .collect();
    let mut admitted = 0.0;
    for task in tasks {
        admitted += f64::from(u8::from(task.await??));
    }
    report.figure("calls let through by a one-call budget, of 64", admitted, "calls", None, "1");
    Ok(())
}

/// Fills the index with many files and lists all of them, page by page.
async fn listing(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let bank = Bank::open().await?;
    let world = WorldId::new("bench")?;
    let count = scale.files;
    for first in (0..count).step_by(FILL) {
        let ops = (first..(first + FILL).min(count)).map(|n| record(&world, n));
        bank.must(Vec::new(), ops.collect::<anyhow::Result<_>>()?).await?;
    }
    let mut pages: Vec<Duration> = Vec::new();
    let mut query = FileQuery::new(world, PAGE);
    let mut seen = 0;
    let started = Instant::now();
    loop {
        let page = Instant::now();
        let files = bank.store.files(query.clone()).await?;
        pages.push(page.elapsed());
        seen += files.len();
        let Some(last) = files.last() else { break };
        query.after = Some(last.artifact.path.clone());
    }
    ensure!(seen == count, "{seen} of {count} files were listed");
    let name = format!("list {count} files, all pages");
    report.figure(&name, started.elapsed().as_secs_f64() * 1e3, "ms", None, "");
    report.figure("one page of 200 files, p50", median_us(pages), "µs", None, "");
    Ok(())
}

fn record(world: &WorldId, n: usize) -> anyhow::Result<ArtifactOp> {
    Ok(ArtifactOp::Record(Artifact {
        world: world.clone(),
        path: WorldPath::parse(&format!("/folder-{}/file-{n}.bin", n % 100))?,
        bytes: n as u64,
        b3: None,
        media_type: "application/octet-stream".to_owned(),
        run: Some(RunId::new(format!("r-{n}"))?),
        key: Some("out".to_owned()),
        direction: Direction::Out,
    }))
}
