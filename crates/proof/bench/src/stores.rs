//! The same runs on SQLite and on PostgreSQL, in turns: how many, how long one takes, and what the
//! core, the database server and the disk have to do for each.

use anyhow::Context as _;
use wharf_postgres::PostgresServer;
use wharf_server::Core;
use wharf_vocab::Durability;

use crate::calls::{CALLERS, many_callers, one_caller};
use crate::cpu::cpu_us_of;
use crate::report::Report;
use crate::{Scale, core};

/// How often it is the turn of each store within a round: what the machine does besides hits both.
const TURNS: usize = 4;

/// What one store makes of the load.
#[derive(Debug, Clone, Copy, Default)]
struct StoreFigures {
    /// One caller who waits for each run, in microseconds.
    p50_us: f64,
    /// The processor time of the core for such a run.
    p50_cpu_us: f64,
    /// Microseconds for each of the runs of many callers.
    each_us: f64,
    /// The processor time of the core for such a run.
    rate_cpu_us: f64,
    /// The processor time of the server for such a run.
    server_us: f64,
    /// Bytes of the server's log for such a run.
    wal_bytes: f64,
}

// bench: S5
pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let server = wharf_postgres::durable().context("PostgreSQL is not installed")?;
    let mut stores = [
        StoreUnderLoad::begin(scale, None).await?,
        StoreUnderLoad::begin(scale, Some(&server)).await?,
    ];
    for turn in 0..TURNS {
        for place in 0..stores.len() {
            // Whoever comes second in one turn comes first in the next.
            let of = (place + turn) % stores.len();
            stores[of].take_turn(scale).await?;
        }
    }
    let [sqlite, postgres] = stores;
    let (sqlite, postgres) = (sqlite.end().await?, postgres.end().await?);
    let rate = |store: &StoreFigures| 1_000_000.0 / store.each_us;
    drop(server);
    let beside = "SQLite";
    report.floor("SQLite: durable run p50, 1 caller, handle", sqlite.p50_us, "µs");
    report.cpu(sqlite.p50_cpu_us);
    let of = Some((sqlite.p50_us, beside));
    report.figure("PostgreSQL: durable run p50, 1 caller, handle", postgres.p50_us, "µs", of, "");
    report.cpu(postgres.p50_cpu_us);
    report.floor("SQLite: durable runs, 64 callers, handle", rate(&sqlite), "runs/s");
    report.cpu(sqlite.rate_cpu_us);
    let of = Some((rate(&sqlite), beside));
    report.figure(
        "PostgreSQL: durable runs, 64 callers, handle",
        rate(&postgres),
        "runs/s",
        of,
        "",
    );
    report.cpu(postgres.rate_cpu_us);
    let of = Some((sqlite.rate_cpu_us, "SQLite's core"));
    let name = "PostgreSQL: processor time of the core, 64 callers";
    report.figure(name, postgres.rate_cpu_us, "µs/run", of, "");
    let name = "PostgreSQL: processor time of the server, 64 callers";
    report.figure(name, postgres.server_us, "µs/run", None, "");
    let name = "PostgreSQL: write-ahead log, 64 callers";
    report.figure(name, postgres.wal_bytes, "bytes/run", None, "");
    Ok(())
}

/// A core on one store.
struct StoreUnderLoad<'a> {
    core: Core,
    server: Option<&'a PostgresServer>,
    sums: StoreFigures,
    /// Kept until the core has ended.
    _dir: tempfile::TempDir,
}

impl<'a> StoreUnderLoad<'a> {
    async fn begin(scale: Scale, server: Option<&'a PostgresServer>) -> anyhow::Result<Self> {
        let dir = core::scratch()?;
        let home = dir.path().join("home");
        std::fs::create_dir_all(&home)?;
        if let Some(server) = server {
            let url = server.database();
            std::fs::write(home.join("wharf.toml"), format!("[store]\nurl = \"{url}\"\n"))?;
        }
        let core = core::start(&dir).await?;
        one_caller(core.handle(), scale.singles / 10, Durability::Journal).await?;
        Ok(Self { core, server, sums: StoreFigures::default(), _dir: dir })
    }

    /// A part of the load, while the other core has nothing to do.
    async fn take_turn(&mut self, scale: Scale) -> anyhow::Result<()> {
        let (handle, kept) = (self.core.handle(), Durability::Journal);
        let singles = (scale.singles / TURNS).max(1);
        let many = (scale.many / TURNS).max(CALLERS);
        let (p50_us, p50_cpu_us) = one_caller(handle, singles, kept).await?;
        let before = self.server.map(ServerUse::of).transpose()?.unwrap_or_default();
        let (rate, rate_cpu_us) = many_callers(handle, many, CALLERS, kept).await?;
        let after = self.server.map(ServerUse::of).transpose()?.unwrap_or_default();
        let runs = (many / CALLERS * CALLERS) as f64;
        let sums = &mut self.sums;
        sums.p50_us += p50_us;
        sums.p50_cpu_us += p50_cpu_us;
        sums.each_us += 1_000_000.0 / rate;
        sums.rate_cpu_us += rate_cpu_us;
        sums.server_us += (after.cpu_us - before.cpu_us) / runs;
        sums.wal_bytes += (after.wal_bytes - before.wal_bytes) / runs;
        Ok(())
    }

    /// The means of all turns.
    async fn end(self) -> anyhow::Result<StoreFigures> {
        self.core.stop().await?;
        let mean = |sum: f64| sum / TURNS as f64;
        Ok(StoreFigures {
            p50_us: mean(self.sums.p50_us),
            p50_cpu_us: mean(self.sums.p50_cpu_us),
            each_us: mean(self.sums.each_us),
            rate_cpu_us: mean(self.sums.rate_cpu_us),
            server_us: mean(self.sums.server_us),
            wal_bytes: mean(self.sums.wal_bytes),
        })
    }
}

/// What a server has used so far.
#[derive(Debug, Clone, Copy, Default)]
struct ServerUse {
    cpu_us: f64,
    wal_bytes: f64,
}

impl ServerUse {
    fn of(server: &PostgresServer) -> anyhow::Result<Self> {
        let written = server.sql("postgres", "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn");
        let pids = server.pids().into_iter().filter_map(|pid| u32::try_from(pid).ok());
        // A process may end while it is looked at, or have done nothing yet.
        let cpu_us = pids.map(|pid| cpu_us_of(pid).unwrap_or(0.0)).sum();
        Ok(Self { cpu_us, wal_bytes: written.parse()? })
    }
}
