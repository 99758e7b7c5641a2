//! `tools/list` with many tools, beside answers of the same sizes that cost nothing to make.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use super::client::{McpClient, Prepared};
use super::echo::{EchoServer, MANY_TOOLS};
use super::era::Era;
use super::stage::Stage;
use crate::Scale;
use crate::http::Client;
use crate::report::{Report, median_us};

const TURNS: usize = 10;

// bench: M86
pub(super) async fn measure(
    scale: Scale,
    server: &EchoServer,
    stage: &Stage,
    provider: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    for era in Era::ALL {
        let mut client = McpClient::connect(&stage.endpoint(provider, era)).await?;
        let pages = pages(&mut client).await?;
        let mut floor = Client::connect(server.address, "none").await?;
        let (mut lists, mut answers) = (Vec::new(), Vec::new());
        for turn in 0..=TURNS {
            for _ in 0..(scale.singles / 10 / TURNS).max(2) {
                let list = listed(&mut client, &pages).await?;
                let answer = answered(&mut floor, &pages).await?;
                // The first turn is for warmth.
                if turn > 0 {
                    lists.push(list);
                    answers.push(answer);
                }
            }
        }
        let bytes: usize = pages.iter().map(|(_, bytes)| bytes).sum();
        let (what, count) = (era.name(), pages.len());
        let floor = median_us(answers);
        let title = format!("{} KiB in {count} static answers, p50", bytes / 1024);
        report.floor(&title, floor, "µs");
        let title = format!("tools/list of {MANY_TOOLS} tools in {count} pages, {what}, p50");
        let of = Some((floor, "static answers"));
        report.figure(&title, median_us(lists), "µs", of, "≤ 2 ×");
    }
    Ok(())
}

/// The requests of all pages, with how many bytes each is answered with.
async fn pages(client: &mut McpClient) -> anyhow::Result<Vec<(Prepared, usize)>> {
    let (mut pages, mut tools, mut params) = (Vec::new(), 0, json!({}));
    loop {
        let request = client.prepare("tools/list", params.clone());
        let bytes = client.send(&request).await?.body.len();
        let result = client.ask("tools/list", params).await?;
        tools += result["tools"].as_array().map_or(0, Vec::len);
        pages.push((request, bytes));
        match &result["nextCursor"] {
            Value::Null => break,
            next => params = json!({ "cursor": next }),
        }
    }
    ensure!(tools == MANY_TOOLS, "only {tools} tools are listed");
    Ok(pages)
}

async fn listed(client: &mut McpClient, pages: &[(Prepared, usize)]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for (request, _) in pages {
        client.fetch(request).await?;
    }
    Ok(started.elapsed())
}

async fn answered(client: &mut Client, pages: &[(Prepared, usize)]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for (_, bytes) in pages {
        let (status, _) = client.request("GET", &format!("/static/{bytes}"), "").await?;
        ensure!(status == 200, "a static answer was {status}");
    }
    Ok(started.elapsed())
}
