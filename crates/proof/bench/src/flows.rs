//! Flows through the engine's handle: ten steps beside ten runs that somebody makes one after the
//! other, and many flows at once beside as many runs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use wharf_domain::Caller;
use wharf_engine::{Handle, NewFlow};
use wharf_vocab::{Durability, RunStatus};

use crate::calls::{CALLERS, many_callers};
use crate::cpu::cpu_us;
use crate::report::{Report, median_us, per_second};
use crate::{Scale, core};

/// Steps of the flow, and runs that stand beside them.
const STEPS: usize = 10;
const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let handle = core.handle().clone();
    let flow = NewFlow { document: document(), pin: false };
    handle.flows().add(&Caller::owner(), flow).await?;
    let singles = scale.singles / STEPS;
    one_flow_each(&handle, singles / 10).await?;

    let (by_hand, cpu) = by_hand(&handle, singles).await?;
    report.floor("ten durable runs one after the other p50, 1 caller", by_hand, "µs");
    report.cpu(cpu);
    let (p50, cpu) = one_flow_each(&handle, singles).await?;
    let of = Some((by_hand, "ten runs by hand"));
    report.figure("flow of ten steps p50, 1 caller, durable", p50, "µs", of, "≤ 1.3 ×");
    report.cpu(cpu);

    let count = scale.many / 4;
    let (runs, cpu) = many_callers(&handle, count, CALLERS, Durability::Journal).await?;
    report.floor("durable runs, 64 callers", runs, "runs/s");
    report.cpu(cpu);
    let (steps, cpu) = many_flows(&handle, count / STEPS).await?;
    let of = Some((runs, "durable runs"));
    report.figure("steps of flows, 64 flows at once, durable", steps, "steps/s", of, "");
    report.cpu(cpu);
    core.stop().await?;
    Ok(())
}

/// A flow that says something ten times.
fn document() -> Value {
    let steps: Vec<Value> = (0..STEPS)
        .map(|n| {
            let inputs = json!({"n": n, "text": "${inputs.text}"});
            json!({"id": format!("s{n}"), "call": {"tool": "wharf/echo", "inputs": inputs}})
        })
        .collect();
    json!({
        "name": "ten", "description": "Says something ten times.",
        "input_schema": {"type": "object"}, "steps": steps,
        "output": {"text": "${steps.s9.outputs.text}"},
    })
}

async fn call(handle: &Handle, tool: &str) -> anyhow::Result<()> {
    let mut new = core::request(tool, json!({"text": "x".repeat(100)}))?;
    new.durability = Some(Durability::Journal);
    let accepted = handle.runs().create_and_wait(&Caller::owner(), new, LONG).await?;
    ensure!(accepted.run.status() == RunStatus::Succeeded, "a run ended {}", accepted.run.status());
    Ok(())
}

/// The middle of so many times ten runs, and the processor time of one of the ten.
async fn by_hand(handle: &Handle, count: usize) -> anyhow::Result<(f64, f64)> {
    let (mut took, cpu) = (Vec::with_capacity(count), cpu_us()?);
    for _ in 0..count {
        let started = Instant::now();
        for _ in 0..STEPS {
            call(handle, "wharf/echo").await?;
        }
        took.push(started.elapsed());
    }
    Ok((median_us(took), (cpu_us()? - cpu) / (count * STEPS) as f64))
}

/// The middle of so many flows, and the processor time of a step.
async fn one_flow_each(handle: &Handle, count: usize) -> anyhow::Result<(f64, f64)> {
    let (mut took, cpu) = (Vec::with_capacity(count), cpu_us()?);
    for _ in 0..count {
        let started = Instant::now();
        call(handle, "flow/ten").await?;
        took.push(started.elapsed());
    }
    Ok((median_us(took), (cpu_us()? - cpu) / (count * STEPS).max(1) as f64))
}

/// Steps a second of flows that 64 callers start, and the processor time of a step.
async fn many_flows(handle: &Handle, count: usize) -> anyhow::Result<(f64, f64)> {
    let each = (count / CALLERS).max(1);
    let (started, cpu) = (Instant::now(), cpu_us()?);
    let tasks: Vec<_> = (0..CALLERS)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    call(&handle, "flow/ten").await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let steps = each * CALLERS * STEPS;
    Ok((per_second(steps, started.elapsed()), (cpu_us()? - cpu) / steps as f64))
}
