//! Lists, counts, searches and sums of a core that has had a great many runs.
//!
//! A few hundred runs are real; the others are copies of their rows under other names, so that a
//! million of them take minutes instead of hours. What is asked goes over HTTP, as the console asks
//! it, while further runs go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::{Handle, NewRun};
use wharf_server::Core;
use wharf_store_sqlite::migrations;
use wharf_vocab::WorldId;

use crate::http::Client;
use crate::report::Report;
use crate::{Scale, core};

/// Runs that are real.
const REAL: usize = 400;
/// How often each question is asked.
const TIMES: usize = 200;
/// How many runs a second go on meanwhile.
const RATE: u64 = 100;
/// The run that the copies of some runs name as their parent.
const PARENT: &str = "default/bench-parent";
/// One real run in so many has that parent.
const CHILDREN: usize = 40;
/// What some runs are part of.
const BATCH: &str = "bench-batch";
/// One real run in so many is part of it.
const BATCHED: usize = 20;
/// The last schema without sums of runs by the hour, which the copied rows would be missing in.
const BEFORE_SUMS: u32 = 8;
const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    real_runs(core.handle()).await?;
    core.stop().await?;
    let database = dir.path().join("home/wharf.db");
    migrations::down(&database, BEFORE_SUMS)?;
    let started = Instant::now();
    let all = fill(&database, scale.runs)?;
    report.floor(&format!("rows of {all} runs written in"), started.elapsed().as_secs_f64(), "s");
    let started = Instant::now();
    migrations::up(&database)?;
    let took = started.elapsed().as_secs_f64();
    report.figure(&format!("schema brought up over {all} runs in"), took, "s", None, "");
    let core = core::start(&dir).await?;
    let mut client = Client::connect(core.http_addr(), core.owner_token()).await?;
    let health = asked(&mut client, "/healthz").await?;
    report.floor("GET /healthz p50, 1 caller", health.p50_ms, "ms");
    let questions = questions(&core, &mut client).await?;
    let over = Arc::new(AtomicBool::new(false));
    let others = tokio::spawn(go_on(core.handle().clone(), Arc::clone(&over)));
    for (name, path) in questions {
        let took = asked(&mut client, &path).await?;
        report.figure(&format!("{name} p50"), took.p50_ms, "ms", None, "");
        report.figure(&format!("{name} p99"), took.p99_ms, "ms", None, "10 ms");
    }
    over.store(true, Ordering::Relaxed);
    others.await??;
    core.stop().await?;
    Ok(())
}

/// What the console asks for.
async fn questions(core: &Core, client: &mut Client) -> anyhow::Result<Vec<(String, String)>> {
    let page: Value = body(client, "/v1/runs?limit=200").await?;
    let cursor = page["next_cursor"].as_str().context("there is no second page")?.to_owned();
    let id = page["items"][7]["run_id"].as_str().context("no run")?.to_owned();
    let beginning = id.get(..id.len().min(8)).unwrap_or(&id).to_owned();
    ensure!(core.handle().run_lists().open_count() == 0, "nothing is under way");
    let at = |name: &str, path: String| (name.to_owned(), path);
    Ok(vec![
        at("list: newest 200", "/v1/runs?limit=200".to_owned()),
        at("list: the next 200", format!("/v1/runs?limit=200&cursor={cursor}")),
        at("list: one tool", "/v1/runs?limit=200&tool=wharf/count".to_owned()),
        at("list: failed or refused", "/v1/runs?limit=200&status=failed,refused".to_owned()),
        at(
            "list: a tool's failures",
            "/v1/runs?limit=200&tool=wharf/fail&status=failed".to_owned(),
        ),
        at("list: no failures", "/v1/runs?limit=200&tool=wharf/echo&status=failed".to_owned()),
        at("list: one world", "/v1/runs?limit=200&world=lab".to_owned()),
        at("list: one caller", "/v1/runs?limit=200&caller=owner".to_owned()),
        at("list: one parent", format!("/v1/runs?limit=200&parent={PARENT}")),
        at("list: one correlation id", format!("/v1/runs?limit=200&correlation_id={BATCH}")),
        at("list: over their hold", "/v1/runs?limit=200&over_hold=true".to_owned()),
        at("list: the last hour", "/v1/runs?limit=200&since=1h".to_owned()),
        at("list: beginning of an id", format!("/v1/runs?limit=200&id_prefix={beginning}")),
        at("count: all", "/v1/runs/count".to_owned()),
        at(
            "count: one tool that failed",
            "/v1/runs/count?tool=wharf/fail&status=failed".to_owned(),
        ),
        at("count: none of a tool", "/v1/runs/count?tool=wharf/echo&status=failed".to_owned()),
        at(
            "count: world and week",
            "/v1/runs/count?world=lab&since=7d&status=succeeded".to_owned(),
        ),
        at("count: a caller's last hour", "/v1/runs/count?caller=owner&since=1h".to_owned()),
        at("count: one parent", format!("/v1/runs/count?parent={PARENT}")),
        at("count: one correlation id", format!("/v1/runs/count?correlation_id={BATCH}")),
        at("count: over their hold", "/v1/runs/count?over_hold=true".to_owned()),
        at("accounts, and how long they last", "/v1/accounts".to_owned()),
        at("search", format!("/v1/search?q={beginning}")),
        at("stats: an hour by minutes", "/v1/stats/runs?since=1h&step=1m&by=status".to_owned()),
        at(
            "stats: an hour by minutes and tool",
            "/v1/stats/runs?since=1h&step=1m&by=tool".to_owned(),
        ),
        at("stats: a day by minutes", "/v1/stats/runs?since=24h&step=1m&by=status".to_owned()),
        at("stats: a day by hours", "/v1/stats/runs?since=24h&step=1h&by=status".to_owned()),
        at("costs: today by tool", "/v1/costs?by=tool&since=24h".to_owned()),
        at("costs: thirty days by day", "/v1/costs?by=day&since=30d".to_owned()),
        at("costs: ever, by caller", "/v1/costs?by=caller".to_owned()),
    ])
}

/// How long answers took.
struct Took {
    p50_ms: f64,
    p99_ms: f64,
}

async fn asked(client: &mut Client, path: &str) -> anyhow::Result<Took> {
    let mut took = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let started = Instant::now();
        let (status, body) = client.request("GET", path, "").await?;
        ensure!(status == 200, "{path} answered {status}: {}", String::from_utf8_lossy(&body));
        took.push(started.elapsed());
    }
    took.sort_unstable();
    let ms = |at: usize| took.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    Ok(Took { p50_ms: ms(TIMES / 2), p99_ms: ms(TIMES * 99 / 100) })
}

async fn body(client: &mut Client, path: &str) -> anyhow::Result<Value> {
    let (status, body) = client.request("GET", path, "").await?;
    ensure!(status == 200, "{path} answered {status}");
    Ok(serde_json::from_slice(&body)?)
}

/// Runs of several tools and worlds, some of which failed or cost something.
async fn real_runs(handle: &Handle) -> anyhow::Result<()> {
    let lab = WorldId::new("lab")?;
    let settings = WorldSettings { limit_micro: Some(u64::MAX / 2), ..WorldSettings::default() };
    handle.worlds().create(&Caller::owner(), lab, settings).await?;
    for n in 0..REAL {
        one_run(handle, n).await?;
    }
    Ok(())
}

async fn one_run(handle: &Handle, n: usize) -> anyhow::Result<()> {
    let new = match n % 8 {
        0 => core::request("wharf/fail", json!({"message": "as it should"}))?,
        1 | 2 => core::request("wharf/sleep", json!({"ms": 0, "cost_micro": 10 + n}))?,
        3 => core::request("wharf/count", json!({"n": 1, "delay_ms": 0}))?,
        _ => core::request("wharf/echo", json!({"text": "hello"}))?,
    };
    let world = if n.is_multiple_of(3) { WorldId::new("lab")? } else { new.world.clone() };
    let correlation_id = n.is_multiple_of(BATCHED).then(|| BATCH.to_owned());
    let new = NewRun { world, correlation_id, ..new };
    let run = handle.runs().create(&Caller::owner(), new).await?.run;
    handle.runs().wait(&run.key, LONG).await?;
    Ok(())
}

/// Starts runs at an even pace, one after the other, until it is over.
async fn go_on(handle: Handle, over: Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut beat = tokio::time::interval(Duration::from_millis(1_000 / RATE));
    for n in 0.. {
        beat.tick().await;
        if over.load(Ordering::Relaxed) {
            break;
        }
        one_run(&handle, n).await?;
    }
    Ok(())
}

/// Copies the rows of runs until there are so many, spread over the last thirty days; how many
/// there are.
fn fill(database: &std::path::Path, wanted: usize) -> anyhow::Result<usize> {
    const COPY: &str = "
        INSERT INTO streams (shard, kind, key, seq, open, status, tool, summary, created_at,
                             cost_micro, wall_ms, caller, called_by, parent, correlation, over_hold)
        SELECT shard, kind, key || '-' || ?1, seq, 0, status, tool,
               json_set(summary, '$.key.run', json_extract(summary, '$.key.run') || '-' || ?1,
                        '$.created_at', created_at - ?2),
               created_at - ?2, cost_micro, wall_ms, caller, called_by, parent, correlation,
               over_hold
        FROM streams WHERE kind = 'run' AND id <= ?3 ORDER BY id";
    const CHILD: &str = "
        UPDATE streams SET parent = ?1,
            summary = json_set(summary, '$.parent', json_object(
                'world', substr(?1, 1, instr(?1, '/') - 1), 'run', substr(?1, instr(?1, '/') + 1)))
        WHERE kind = 'run' AND id % ?2 = 0 AND id <= ?3";
    const MONTH_MS: usize = 30 * 86_400_000;
    let mut store = Connection::open(database)?;
    store.pragma_update(None, "synchronous", "OFF")?;
    let last: i64 = store.query_row("SELECT max(id) FROM streams", [], |row| row.get(0))?;
    let rounds = wanted.div_ceil(REAL).max(1);
    let copies = store.transaction()?;
    copies.execute(CHILD, params![PARENT, i64::try_from(CHILDREN)?, last])?;
    for n in 1..rounds {
        // The oldest copies come first, as if time had passed.
        let ago = i64::try_from(MONTH_MS / rounds * (rounds - n))?;
        copies.execute(COPY, params![i64::try_from(n)?, ago, last])?;
    }
    copies.commit()?;
    store.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?;
    let all: i64 =
        store.query_row("SELECT count(*) FROM streams WHERE kind = 'run'", [], |row| row.get(0))?;
    Ok(usize::try_from(all)?)
}
