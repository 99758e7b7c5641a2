//! Calls through the engine's handle: durable and in memory, one caller and many.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::json;
use wharf_domain::Caller;
use wharf_engine::Handle;
use wharf_vocab::{Durability, RunStatus};

use crate::cpu::cpu_us;
use crate::report::{Report, median_us, per_second};
use crate::{Scale, core, raw};

/// Rows that SQLite writes for an ordinary run: journal, stream and audit, twice each.
const ROWS_PER_RUN: f64 = 6.0;
pub(crate) const CALLERS: usize = 64;
const MEMORY_CALLERS: usize = 32;
const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let handle = core.handle().clone();
    one_caller(&handle, scale.singles / 10, Durability::Journal).await?;

    let (p50, cpu) = one_caller(&handle, scale.singles, Durability::Journal).await?;
    let floor = 2.0 * raw::single_commit_us(scale.singles)?;
    let of = Some((floor, "two raw commits"));
    report.figure("durable run p50, 1 caller, handle", p50, "µs", of, "≤ 1.6 ×");
    report.cpu(cpu);

    let (rate, cpu) = many_callers(&handle, scale.many, CALLERS, Durability::Journal).await?;
    let floor = raw::batched_rows_per_second(scale.many)? / ROWS_PER_RUN;
    let of = Some((floor, "raw batched rows/s ÷ 6"));
    report.figure("durable runs, 64 callers, handle", rate, "runs/s", of, "≥ 25,000");
    report.cpu(cpu);

    let floor = channel_echo_us(scale.singles).await?;
    report.floor("echo over two channels between two tasks, p50", floor, "µs");
    let (p50, cpu) = one_caller(&handle, scale.singles, Durability::Memory).await?;
    let of = Some((floor, "channel echo"));
    report.figure("memory run p50, 1 caller, handle", p50, "µs", of, "");
    report.cpu(cpu);
    let (rate, cpu) = many_callers(&handle, scale.many, MEMORY_CALLERS, Durability::Memory).await?;
    report.figure("memory runs, 32 callers, handle", rate, "runs/s", None, "≥ 30,000");
    report.cpu(cpu);
    core.stop().await?;
    Ok(())
}

/// The middle of so many calls, and the processor time of each.
pub(crate) async fn one_caller(
    handle: &Handle,
    count: usize,
    durability: Durability,
) -> anyhow::Result<(f64, f64)> {
    let mut durations = Vec::with_capacity(count);
    let cpu = cpu_us()?;
    for n in 0..count {
        let started = Instant::now();
        call(handle, n, durability).await?;
        durations.push(started.elapsed());
    }
    let cpu = (cpu_us()? - cpu) / count as f64;
    Ok((median_us(durations), cpu))
}

/// Calls a second, and the processor time of each.
pub(crate) async fn many_callers(
    handle: &Handle,
    count: usize,
    callers: usize,
    durability: Durability,
) -> anyhow::Result<(f64, f64)> {
    let cpu = cpu_us()?;
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let handle = handle.clone();
            tokio::spawn(async move {
                for n in 0..count / callers {
                    call(&handle, caller * count + n, durability).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let (made, took) = (count / callers * callers, started.elapsed());
    Ok((per_second(made, took), (cpu_us()? - cpu) / made as f64))
}

async fn call(handle: &Handle, n: usize, durability: Durability) -> anyhow::Result<()> {
    let mut new = core::request("wharf/echo", json!({"n": n, "text": "x".repeat(100)}))?;
    new.durability = Some(durability);
    let accepted = handle.runs().create_and_wait(&Caller::owner(), new, LONG).await?;
    ensure!(accepted.run.status() == RunStatus::Succeeded, "a run ended {}", accepted.run.status());
    Ok(())
}

/// What a message to another task and back costs on this machine.
async fn channel_echo_us(count: usize) -> anyhow::Result<f64> {
    let (to, mut from) = tokio::sync::mpsc::channel::<tokio::sync::oneshot::Sender<()>>(1);
    let echo = tokio::spawn(async move {
        while let Some(back) = from.recv().await {
            if back.send(()).is_err() {
                return;
            }
        }
    });
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        let (back, answer) = tokio::sync::oneshot::channel();
        to.send(back).await?;
        answer.await?;
        durations.push(started.elapsed());
    }
    drop(to);
    echo.await?;
    Ok(median_us(durations))
}
