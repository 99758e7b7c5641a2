//! Chunks of calls that stream.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::findings::Findings;
use crate::transcript::Transcript;

pub(super) fn judge(seen: &Transcript, findings: &mut Findings) {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut over: HashSet<&str> = HashSet::new();
    for (_, line) in seen.received() {
        let Some(call_id) = line.call_id() else { continue };
        let payload = &line.message["payload"];
        match line.kind() {
            "agent.tool.stream" => {
                let due = counts.entry(call_id).or_default();
                *due += 1;
                let why = format!("Chunk {due} of a call has another seq.");
                findings.check(105, payload["seq"].as_u64() == Some(*due), why);
                judge_data(payload, findings);
                let open = !over.contains(call_id);
                findings.check(109, open, "A chunk followed the last one or the result.");
                if payload["done"] == true {
                    over.insert(call_id);
                }
            }
            "agent.tool.result" => {
                over.insert(call_id);
            }
            _ => {}
        }
    }
}

fn judge_data(payload: &Value, findings: &mut Findings) {
    let (channel, data) = (payload["channel"].as_str().unwrap_or_default(), &payload["data"]);
    let fits = match channel {
        "stdout" | "stderr" | "log" | "status" => data["text"].is_string(),
        "partial_result" => !data["json"].is_null(),
        _ => false,
    };
    findings.check(107, fits, "A chunk has an unknown channel or data that does not fit it.");
    if let Some(fraction) = data.get("fraction").filter(|_| channel == "status") {
        let within = fraction.as_f64().is_some_and(|fraction| (0.0..=1.0).contains(&fraction));
        findings.check(168, within, "A fraction does not lie between 0 and 1.");
    }
}
