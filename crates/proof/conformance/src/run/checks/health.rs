//! T1: health, and nothing else but runs.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use wharf_wire::run_v1::HEALTH_PATH;

use crate::findings::Findings;
use crate::run::server::{Answer, Server};

/// How often health is asked for; the quickest counts, since machines are busy at times.
const TIMES: usize = 3;
/// Places that frameworks open by themselves, and some that nobody does.
const CLOSED: [&str; 6] =
    ["/", "/docs", "/openapi.json", "/metrics", "/healthz/more", "/no-such-place"];

pub(super) async fn check(server: &Server, findings: &mut Findings) {
    let mut quickest = Duration::MAX;
    for _ in 0..TIMES {
        match server.ask(Method::GET, HEALTH_PATH).await {
            Ok(answer) => {
                shape(&answer, findings);
                quickest = quickest.min(answer.took);
            }
            Err(why) => findings.fail(1, why),
        }
    }
    quick(server, quickest, findings);
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        expect(server, method, HEALTH_PATH, 405, findings).await;
    }
    for path in CLOSED {
        expect(server, Method::GET, path, 404, findings).await;
    }
    findings.pass_with(1, format!("200 after {} ms.", quickest.as_millis()));
}

/// 200, `ok` and a digest.
pub(super) fn shape(answer: &Answer, findings: &mut Findings) {
    let status = answer.status;
    findings.check(1, status == 200, format!("GET {HEALTH_PATH} gave {status}, not 200."));
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let right = body["ok"] == true && body["digest"].is_string();
    findings.check(1, right, "The answer of health is not {\"ok\":true,\"digest\":\"…\"}.");
}

/// Well under a tenth of a second.
pub(super) fn quick(server: &Server, took: Duration, findings: &mut Findings) {
    let bound = Duration::from_millis(100) + server.options.slack;
    let wrong = format!("Health took {} ms.", took.as_millis());
    findings.check(1, took <= bound, wrong);
}

async fn expect(server: &Server, method: Method, path: &str, status: u16, found: &mut Findings) {
    match server.ask(method.clone(), path).await {
        Ok(answer) => {
            let wrong = format!("{method} {path} gave {}, not {status}.", answer.status);
            found.check(1, answer.status == status, wrong);
        }
        Err(why) => found.fail(1, why),
    }
}
