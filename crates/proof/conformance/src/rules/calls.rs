//! Calls and their results.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::is_text;
use crate::findings::Findings;
use crate::transcript::{Line, Transcript};

pub(super) fn judge(seen: &Transcript, findings: &mut Findings) {
    let mut calls: HashMap<&str, &Value> = HashMap::new();
    let mut ended: HashMap<&str, &Value> = HashMap::new();
    for line in &seen.lines {
        let Some(call_id) = line.call_id() else { continue };
        match line.kind() {
            "core.tool.call" => {
                calls.entry(call_id).or_insert(&line.message);
            }
            "agent.tool.stream" => judge_echo(line, calls.get(call_id).copied(), findings),
            "agent.tool.result" => {
                judge_echo(line, calls.get(call_id).copied(), findings);
                judge_result(&line.message["payload"], findings);
                let known = calls.contains_key(call_id);
                findings.check(117, known, "The agent sent a result for a call nobody made.");
                let before = ended.insert(call_id, &line.message["payload"]["status"]);
                judge_second(before, &line.message["payload"]["status"], findings);
            }
            "agent.tool.cancel_ack" if line.message["payload"]["accepted"] == true => {
                let first = !ended.contains_key(call_id);
                findings.check(137, first, "A cancel was acknowledged after the call's result.");
            }
            _ => {}
        }
    }
}

/// The fields that tie messages to a request come back as they were, or stay away.
fn judge_echo(line: &Line, call: Option<&Value>, findings: &mut Findings) {
    let Some(call) = call else { return };
    let altered = ["request_id", "correlation_id", "causation_id"]
        .into_iter()
        .find(|field| call.get(*field) != line.message.get(*field).filter(|v| !v.is_null()));
    match altered {
        None => findings.pass(35),
        Some(field) => {
            let why = format!("The {field} of an {} is not the one of its call.", line.kind());
            findings.fail(35, why);
        }
    }
}

fn judge_result(result: &Value, findings: &mut Findings) {
    let error = &result["error"];
    match result["status"].as_str() {
        Some("succeeded") => {
            let output = result.get("output").is_none_or(Value::is_object);
            findings.check(121, output && error.is_null(), "A success has an error or no object.");
        }
        Some(status @ ("failed" | "canceled")) => {
            let why = format!("A result that is {status} has no error.");
            findings.check(121, error.is_object(), why);
            if status == "canceled" {
                let code = error["code"].as_str().unwrap_or_default();
                let said = code.starts_with("tool.");
                findings.check(
                    123,
                    said,
                    "A canceled result does not have the code tool.canceled.",
                );
            }
        }
        _ => findings.fail(121, "A result is neither succeeded nor failed nor canceled."),
    }
    judge_times(result, findings);
    let cost = &result["metrics"]["cost_micro"];
    if !cost.is_null() {
        findings.check(165, cost.is_u64(), "A reported cost is not a whole number.");
    }
}

fn judge_times(result: &Value, findings: &mut Findings) {
    let (start, end) = (&result["started_at"], &result["finished_at"]);
    if !is_text(start) || !is_text(end) {
        return;
    }
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let ordered = matches!((time(start), time(end)), (Some(a), Some(b)) if a <= b);
    findings.check(127, ordered, "A call ended before it started, or its times are no RFC 3339.");
}

fn judge_second(before: Option<&Value>, status: &Value, findings: &mut Findings) {
    match before {
        None => {
            findings.pass(117);
            findings.pass(131);
        }
        Some(before) if before == status => {
            findings.fail(117, "The agent sent two results for one call.");
        }
        Some(_) => findings.fail(131, "The agent sent two results that contradict each other."),
    }
}
