//! `tools/call` on the direct way and through a hop, in memory and durable.
//!
//! All ways take turns, so that what else goes on in the machine falls on all of them.

use std::time::Duration;

use serde_json::json;

use super::client::{Endpoint, McpClient, Prepared, at_once, one_by_one};
use super::echo::{EchoServer, TOOL};
use super::era::Era;
use super::stage::{FastMcp, Stage};
use crate::cpu::cpu_us_of;
use crate::report::{Report, median_us};
use crate::{Scale, raw};

const TURNS: usize = 10;
const TURNS_OF_MANY: usize = 4;
const CALLERS: usize = 32;
/// What a durable hop may take beyond one in memory.
const COMMITS: f64 = 2.2;
/// Calls on a new connection that are not counted.
const WARMTH: usize = 2;
/// How many times fewer calls FastMCP is given, which takes as many times longer.
const FEWER: usize = 30;

/// A way to the echo.
struct Way {
    name: &'static str,
    endpoint: Endpoint,
    durability: Option<&'static str>,
    /// How many times fewer calls go this way.
    fewer: usize,
}

impl Way {
    async fn connect(&self) -> anyhow::Result<(McpClient, Prepared)> {
        let client = McpClient::connect(&self.endpoint).await?;
        let mut params = json!({ "name": TOOL, "arguments": { "text": "x".repeat(100) } });
        if let Some(durability) = self.durability {
            params["_meta"] = json!({ "dev.wharf/run": { "durability": durability } });
        }
        let request = client.prepare("tools/call", params);
        Ok((client, request))
    }
}

// bench: M86
pub(super) async fn measure(
    scale: Scale,
    server: &EchoServer,
    stage: &Stage,
    report: &mut Report,
) -> anyhow::Result<()> {
    for era in Era::ALL {
        let path = format!("/{}", era.name());
        let fastmcp = FastMcp::start(&format!("http://{}{path}", server.address)).await?;
        let direct = Endpoint { address: server.address, path, token: "none".to_owned(), era };
        let hop = stage.endpoint(era.name(), era);
        let way = |name, endpoint, durability| Way { name, endpoint, durability, fewer: 1 };
        let mut ways = vec![
            way("direct", direct, None),
            way("in memory", hop.clone(), Some("memory")),
            way("durable", hop, Some("journal")),
        ];
        match &fastmcp {
            Some(proxy) => {
                let endpoint = proxy.endpoint(era);
                ways.push(Way { name: "FastMCP", endpoint, durability: None, fewer: FEWER });
            }
            None => report.figure("FastMCP as a proxy: not installed", 0.0, "", None, ""),
        }
        one_caller(scale, era, &ways, report).await?;
        many_callers(scale, era, &ways, stage.pid(), report).await?;
    }
    Ok(())
}

async fn one_caller(
    scale: Scale,
    era: Era,
    ways: &[Way],
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut took = vec![Vec::new(); ways.len()];
    let mut commits = Vec::new();
    for turn in 0..=TURNS {
        for (way, took) in ways.iter().zip(&mut took) {
            let (mut client, request) = way.connect().await?;
            let count = (scale.singles / TURNS / way.fewer).max(2);
            let calls = one_by_one(&mut client, &request, WARMTH + count).await?;
            // The first turn pays for what is compiled or cached on the way.
            if turn > 0 {
                took.extend(calls.into_iter().skip(WARMTH));
            }
        }
        let us = raw::single_commit_us(scale.singles / TURNS)?;
        commits.push(Duration::from_secs_f64(us / 1e6));
    }
    let commit = median_us(commits);
    let mut medians = ways.iter().zip(took).map(|(way, took)| (way.name, median_us(took)));
    let direct = medians.next().map_or(0.0, |(_, p50)| p50);
    let mut memory = 0.0;
    let what = era.name();
    report.floor(&format!("MCP call p50, {what}, direct"), direct, "µs");
    for (name, p50) in medians {
        let title = format!("MCP call p50, {what}, {name}");
        let (of, goal) = match name {
            "in memory" => ((direct, "direct"), "≤ 1.8 ×"),
            "durable" => ((memory + COMMITS * commit, "in memory + 2.2 raw commits"), "≤ 1 ×"),
            _ => ((direct, "direct"), ""),
        };
        report.figure(&title, p50, "µs", Some(of), goal);
        if name == "in memory" {
            memory = p50;
        }
    }
    report.floor("  raw SQLite commit, taken in turns with these, p50", commit, "µs");
    Ok(())
}

async fn many_callers(
    scale: Scale,
    era: Era,
    ways: &[Way],
    core: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut loads: Vec<_> = ways.iter().map(|way| Load::new(scale, way)).collect();
    for _ in 0..TURNS_OF_MANY {
        for load in &mut loads {
            load.turn(core).await?;
        }
    }
    let what = era.name();
    let direct = loads.first().map_or(0.0, Load::rate);
    for load in &loads {
        let name = load.way.name;
        let title = format!("MCP calls, {CALLERS} callers, {what}, {name}");
        if name == "direct" {
            report.floor(&title, direct, "calls/s");
            continue;
        }
        let goal = if name == "in memory" { "≥ 0.45 ×" } else { "" };
        report.figure(&title, load.rate(), "calls/s", Some((direct, "direct")), goal);
        if load.way.durability.is_some() {
            let each = load.cpu / (load.count * TURNS_OF_MANY) as f64;
            report.cpu(each);
        }
    }
    Ok(())
}

/// Many clients on one way, and what came of their turns.
struct Load<'a> {
    way: &'a Way,
    /// Calls of one turn.
    count: usize,
    rates: Vec<f64>,
    cpu: f64,
}

impl<'a> Load<'a> {
    fn new(scale: Scale, way: &'a Way) -> Self {
        let count = scale.many / 2 / TURNS_OF_MANY / way.fewer;
        Self { way, count: count.max(CALLERS), rates: Vec::new(), cpu: 0.0 }
    }

    async fn turn(&mut self, core: u32) -> anyhow::Result<()> {
        let mut clients = Vec::new();
        for _ in 0..CALLERS {
            clients.push(self.way.connect().await?);
        }
        let before = cpu_us_of(core)?;
        self.rates.push(at_once(clients, self.count).await?);
        self.cpu += cpu_us_of(core)? - before;
        Ok(())
    }

    /// Calls a second over all turns, which are of equal length.
    fn rate(&self) -> f64 {
        let slowness: f64 = self.rates.iter().map(|rate| 1.0 / rate).sum();
        self.rates.len() as f64 / slowness
    }
}
