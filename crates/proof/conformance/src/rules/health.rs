//! What heartbeats say. When they come is a matter of the scenarios.

use crate::findings::Findings;
use crate::transcript::Transcript;

pub(super) fn judge(seen: &Transcript, findings: &mut Findings) {
    let welcome = seen.lines.iter().find(|line| line.kind() == "core.welcome");
    let Some(session_id) = welcome.map(|line| &line.message["payload"]["session_id"]) else {
        return;
    };
    let mut uptime_ms = 0;
    for line in seen.of_kind("agent.heartbeat") {
        let payload = &line.message["payload"];
        let ours = payload["session_id"] == *session_id;
        findings.check(140, ours, "A heartbeat names another session.");
        let now_ms = payload["uptime_ms"].as_u64();
        let rising = now_ms.is_some_and(|now_ms| now_ms >= uptime_ms);
        findings.check(140, rising, "The uptime of a heartbeat is missing or goes back.");
        uptime_ms = now_ms.unwrap_or(uptime_ms);
        let counted = payload["inflight_calls"].is_u64();
        findings.check(140, counted, "A heartbeat does not count the open calls.");
        let status = payload["status"].as_str().unwrap_or_default();
        let known = ["ok", "degraded", "unhealthy"].contains(&status);
        findings.check(140, known, "The status of a heartbeat is none of the three.");
    }
}
