//! T7 and T1 while many runs are asked for at once.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use wharf_wire::run_v1::HEALTH_PATH;

use super::{health, rule};
use crate::findings::Findings;
use crate::run::frames::{request, run_id};
use crate::run::server::Server;

/// How many runs are asked for at once.
const RUNS: usize = 16;

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let run = run_id();
            let ask = request(&run, &server.options.inputs);
            (run, ask)
        })
        .collect();
    let all = join_all(runs.iter().map(|(_, ask)| server.exchange(ask)));
    let (sessions, slowest) = tokio::join!(all, health_beside(server, findings));
    let mut last_ack = Duration::ZERO;
    let mut found = Findings::default();
    for ((run, ask), seen) in runs.iter().zip(&sessions) {
        rule(server, run, ask, seen, &mut found);
        last_ack = last_ack.max(seen.frames.first().map_or(Duration::ZERO, |frame| frame.at));
    }
    found.pass_with(
        7,
        format!("The Ack took at most {} ms on {RUNS} connections.", last_ack.as_millis()),
    );
    let slowest = slowest.as_millis();
    found.pass_with(1, format!("200 after at most {slowest} ms beside {RUNS} runs."));
    findings.merge(found);
}

/// Asks for health a few times while the runs go; gives the slowest answer.
async fn health_beside(server: &Server, findings: &mut Findings) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        match server.ask(Method::GET, HEALTH_PATH).await {
            Ok(answer) => {
                health::shape(&answer, findings);
                slowest = slowest.max(answer.took);
            }
            Err(why) => findings.fail(1, why),
        }
    }
    health::quick(server, slowest, findings);
    slowest
}
