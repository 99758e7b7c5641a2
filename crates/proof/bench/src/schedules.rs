//! Schedules: what very many of them cost while none is due, and what becomes of others when very
//! many are due at once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use wharf_domain::schedule::SchedulePlan;
use wharf_domain::{Caller, ScheduleSpec};
use wharf_engine::Handle;
use wharf_vocab::{
    CatchUp, Durability, Mode, Object, Overlap, RunKey, RunStatus, ScheduleId, Timestamp, WorldId,
};

use crate::cpu::cpu_us;
use crate::report::{Report, median_us};
use crate::{Scale, core};

/// How long a core is looked at that has nothing to do.
const IDLE: Duration = Duration::from_secs(10);
/// How far ahead the schedules are due that are due at once.
const AHEAD_MS: u64 = 20_000;
/// When the runs beside them begin to be looked at, and for how long.
const BESIDE: Duration = Duration::from_secs(3);
/// What is never due while this is measured.
const DAY_MS: u64 = 24 * 3_600 * 1_000;
const ADDERS: usize = 32;
const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let handle = core.handle().clone();
    let alone = idle_us().await?;
    report.floor("processor time of an idle second, no schedule", alone, "µs");
    let sleeping = scale.idle_agents;
    add(&handle, "asleep", sleeping, SchedulePlan::Every { ms: DAY_MS }).await?;
    let idle = idle_us().await?;
    let name = format!("processor time of an idle second, {sleeping} schedules");
    report.figure(&name, idle, "µs", Some((alone, "no schedule")), "as with none");

    let due = (scale.idle_agents / 10).max(1);
    let before = p99_us(&handle, BESIDE).await?;
    report.floor("durable run p99, 1 caller, nothing due", before, "µs");
    let at = Timestamp(handle.now().0 + AHEAD_MS);
    add(&handle, "due", due, SchedulePlan::At { at, tz: "UTC".to_owned() }).await?;
    let left = at.ms_since(handle.now());
    ensure!(left > 0, "the schedules were due before all of them were there");
    tokio::time::sleep(Duration::from_millis(left.saturating_sub(200))).await;
    let beside = p99_us(&handle, BESIDE).await?;
    let last = last_start_ms(&handle, due, at).await?;
    let name = format!("{due} schedules due at once: the last has started after");
    report.figure(&name, last, "ms", None, "≤ 2 s");
    let name = format!("durable run p99, 1 caller, while {due} are due");
    report.figure(&name, beside, "µs", Some((before, "nothing due")), "≤ 2 ×");
    core.stop().await?;
    Ok(())
}

/// The processor time of one second in which nothing is asked.
async fn idle_us() -> anyhow::Result<f64> {
    let cpu = cpu_us()?;
    tokio::time::sleep(IDLE).await;
    Ok((cpu_us()? - cpu) / IDLE.as_secs_f64())
}

fn name(prefix: &str, n: usize) -> anyhow::Result<ScheduleId> {
    Ok(ScheduleId::new(format!("{prefix}-{n}"))?)
}

async fn add(
    handle: &Handle,
    prefix: &'static str,
    count: usize,
    plan: SchedulePlan,
) -> anyhow::Result<()> {
    let tasks: Vec<_> = (0..ADDERS)
        .map(|adder| {
            let (handle, plan) = (handle.clone(), plan.clone());
            tokio::spawn(async move {
                for n in (adder..count).step_by(ADDERS) {
                    let spec = spec(plan.clone())?;
                    handle.schedules().add(&Caller::owner(), name(prefix, n)?, spec).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn spec(plan: SchedulePlan) -> anyhow::Result<ScheduleSpec> {
    Ok(ScheduleSpec {
        plan,
        tool: "wharf/echo".parse()?,
        world: WorldId::new("default")?,
        inputs: Object::from_iter([("text".to_owned(), "x".repeat(100).into())]),
        outputs: Object::new(),
        mode: Mode::Real,
        timeout_ms: None,
        budget_micro: None,
        durability: Some(Durability::Journal),
        catch_up: CatchUp::Last,
        overlap: Overlap::Skip,
        allow: Vec::new(),
    })
}

/// The 99th of a hundred runs that one caller makes for so long.
async fn p99_us(handle: &Handle, lasts: Duration) -> anyhow::Result<f64> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < lasts {
        let started = Instant::now();
        let mut new = core::request("wharf/echo", json!({"text": "beside"}))?;
        new.durability = Some(Durability::Journal);
        let run = handle.runs().create_and_wait(&Caller::owner(), new, LONG).await?.run;
        ensure!(run.status() == RunStatus::Succeeded, "a run ended {}", run.status());
        took.push(started.elapsed());
    }
    took.sort_unstable();
    let slow = took.len() * 99 / 100;
    Ok(median_us(took.get(slow..=slow).context("no run was made")?.to_vec()))
}

/// How long after they were due the last of so many schedules has started its run.
async fn last_start_ms(handle: &Handle, count: usize, at: Timestamp) -> anyhow::Result<f64> {
    let mut last = 0;
    for n in 0..count {
        let id = name("due", n)?;
        let begun = Instant::now();
        let run = loop {
            let firings = handle.schedules().history(&id).await?;
            if let Some(run) = firings.first().and_then(|firing| firing.run.clone()) {
                break run;
            }
            ensure!(begun.elapsed() < LONG, "the schedule {id} has not started its run");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let key = RunKey { world: WorldId::new("default")?, run };
        let run = handle.runs().wait(&key, LONG).await?;
        let started = run.started_at.unwrap_or(run.created_at);
        last = last.max(started.ms_since(at));
    }
    Ok(last as f64)
}
