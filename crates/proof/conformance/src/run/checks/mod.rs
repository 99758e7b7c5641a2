//! What is tried, one file per idea.

mod again;
mod first_frame;
mod handshake;
mod health;
mod load;
mod long;
mod modes;
mod places;

use std::time::Duration;

use serde_json::Value;
use wharf_wire::run_v1::Mode;

use super::frames::{request, run_id};
use super::rules::{Asked, judge};
use super::server::Server;
use super::session::Seen;
use crate::findings::Findings;

/// Tries everything, one after the other, so that times mean something.
pub(super) async fn all(server: &Server, mut findings: Findings) -> Findings {
    health::check(server, &mut findings).await;
    findings.tell();
    handshake::check(server, &mut findings).await;
    if let Err(why) = server.dial().await {
        findings.fail(2, why);
        return findings;
    }
    findings.tell();
    ordinary(server, &mut findings).await;
    findings.tell();
    first_frame::check(server, &mut findings).await;
    findings.tell();
    load::check(server, &mut findings).await;
    findings.tell();
    if server.is_full() {
        again::check(server, &mut findings).await;
        places::check(server, &mut findings).await;
        findings.tell();
        long::check(server, &mut findings).await;
        findings.tell();
    }
    // It leans on whether repeated requests attach.
    modes::check(server, &mut findings).await;
    findings.tell();
    findings
}

/// The run the inputs are meant for.
async fn ordinary(server: &Server, findings: &mut Findings) {
    let run = run_id();
    let mut ask = request(&run, &server.options.inputs);
    if server.options.mode == Mode::Real {
        ask["control"]["mode"] = "real".into();
    }
    let seen = judged(server, &run, &ask, findings).await;
    let count = seen.frames.len();
    if let Some(first) = seen.frames.first() {
        findings.pass_with(7, format!("The Ack took {} ms.", first.at.as_millis()));
    }
    let ended = seen.ended_as();
    findings.pass_with(10, format!("The run of the inputs ended with {ended}, {count} frames."));
}

/// Has a run and judges it by the rules that hold for every one.
async fn judged(server: &Server, run: &str, ask: &Value, findings: &mut Findings) -> Seen {
    let seen = server.exchange(ask).await;
    rule(server, run, ask, &seen, findings);
    seen
}

/// Judges a run by the rules that hold for every one.
fn rule(server: &Server, run: &str, ask: &Value, seen: &Seen, findings: &mut Findings) {
    let sent = ask.to_string();
    let ack = Duration::from_secs(1) + server.options.slack;
    judge(seen, &Asked { run_id: run, sent: &sent, full: server.is_full(), ack }, findings);
}
