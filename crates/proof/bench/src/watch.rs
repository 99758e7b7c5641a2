//! One run and a thousand readers: nobody loses anything, and the run is not slowed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use wharf_domain::{Caller, Progress};
use wharf_engine::{Handle, HistoryItem};
use wharf_vocab::{RunKey, Seq};

use crate::report::Report;
use crate::{Scale, core};

const NUMBERS: usize = 2_000;
const LONG: Duration = Duration::from_secs(120);

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let handle = core.handle();
    let alone = counted(handle, 0).await?;
    report.floor("count to 2,000 without a reader", alone.as_secs_f64() * 1e3, "ms");
    let watched = counted(handle, scale.readers).await?;
    let name = format!("count to 2,000 with {} readers, none loses an event", scale.readers);
    let of = Some((alone.as_secs_f64() * 1e3, "unwatched"));
    report.figure(&name, watched.as_secs_f64() * 1e3, "ms", of, "0 lost, not slowed");
    core.stop().await?;
    Ok(())
}

/// How long the run takes while so many readers follow it.
async fn counted(handle: &Handle, readers: usize) -> anyhow::Result<Duration> {
    let new = core::request("wharf/count", json!({"n": NUMBERS, "delay_ms": 1}))?;
    let run = handle.runs().create(&Caller::owner(), new).await?.run;
    let started = Instant::now();
    let tasks: Vec<_> =
        (0..readers).map(|_| tokio::spawn(read(handle.clone(), run.key.clone()))).collect();
    let over = handle.runs().wait(&run.key, LONG).await?;
    ensure!(over.is_over(), "the run takes too long");
    let took = started.elapsed();
    let expected: String = (1..=NUMBERS).map(|n| format!("{n}\n")).collect();
    for task in tasks {
        ensure!(task.await?? == expected, "a reader lost something");
    }
    Ok(took)
}

async fn read(handle: Handle, key: RunKey) -> anyhow::Result<String> {
    let mut watch = handle.run_events().watch(&key, Seq(0)).await?;
    let mut text = String::new();
    let mut ended = false;
    while let Some(event) = watch.next().await {
        let event = event?;
        ended = event.ended.is_some();
        if let HistoryItem::Progress(Progress::Text { text: more, .. }) = event.item {
            text.push_str(&more);
        }
    }
    ended.then_some(text).context("a reader did not see the end")
}
