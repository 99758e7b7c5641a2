//! An agent that calls another tool: the core lets it, and plays that tool.

use serde_json::{Value, json};

use crate::findings::Findings;
use crate::session::{Session, message};
use crate::transcript::Transcript;

/// A tool that no agent has.
const TOOL: &str = "dev.example.conformance/echo";

pub(super) async fn all(session: &mut Session, findings: &mut Findings) {
    if !session.declares("invoke") {
        let why = "The agent does not declare the capability invoke.";
        return findings.not_applicable(159, why);
    }
    let call = session.call("relay", json!({ "tool_id": TOOL, "input": { "said": "canary" } }));
    session.link.send(call.clone()).await;
    let of_call = |seen: &Transcript| {
        seen.of_kind("agent.tool.invoke").next().map(|line| line.message.clone())
    };
    let Some(invoke) = session.link.wait(session.reply, of_call).await else {
        return findings.fail(159, "relay did not call a tool though it was granted.");
    };
    judge(&call, &invoke, findings);
    let invoke_id = &invoke["payload"]["invoke_id"];
    let chunk = json!({
        "invoke_id": invoke_id, "seq": 1, "channel": "stdout", "data": { "text": "half" },
    });
    let mut chunk = message("core.tool.invoke_stream", chunk);
    let ended = json!({
        "invoke_id": invoke_id, "status": "succeeded", "output": { "heard": "canary" },
    });
    let mut ended = message("core.tool.invoke_result", ended);
    ended["in_reply_to"] = invoke["id"].clone();
    for message in [&mut chunk, &mut ended] {
        message["request_id"] = invoke["request_id"].clone();
        session.link.send(message.clone()).await;
    }
    let result = session.result(&call).await.unwrap_or_default();
    let passed_on = result["payload"]["status"] == "succeeded"
        && result["payload"]["output"].to_string().contains("canary");
    findings.check(159, passed_on, "relay did not pass on what the tool gave.");
}

fn judge(call: &Value, invoke: &Value, findings: &mut Findings) {
    let (asked, made) = (&call["payload"], &invoke["payload"]);
    let named = made["invoke_id"].as_str().is_some_and(|id| !id.is_empty());
    findings.check(159, named, "A call through the core has no id of its own.");
    let parent = made["parent_call_id"] == asked["call_id"];
    findings.check(159, parent, "A call through the core does not name the call it belongs to.");
    let same = made["tool_id"] == TOOL && made["input"] == asked["input"]["input"];
    findings.check(159, same, "A call through the core has another tool or input.");
    let echo = invoke["request_id"] == call["request_id"];
    findings.check(159, echo, "A call through the core does not carry the request_id.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn failed(change: impl FnOnce(&mut Value)) -> bool {
        let call = json!({
            "request_id": "r", "payload": {"call_id": "c", "input": {"input": {"said": 1}}},
        });
        let mut invoke = json!({"request_id": "r", "payload": {
            "invoke_id": "i", "parent_call_id": "c", "tool_id": TOOL, "input": {"said": 1},
        }});
        change(&mut invoke);
        let mut findings = Findings::default();
        judge(&call, &invoke, &mut findings);
        matches!(findings.take(159), Some(Verdict::Fail(_)))
    }

    #[test]
    fn r159_a_call_through_the_core_that_belongs_to_no_call_is_found() {
        assert!(!failed(|_| {}));
        for (field, wrong) in [
            ("invoke_id", json!("")),
            ("parent_call_id", json!("other")),
            ("tool_id", json!("x/y")),
            ("input", json!({})),
        ] {
            assert!(failed(|invoke| invoke["payload"][field] = wrong), "{field}");
        }
        assert!(failed(|invoke| invoke["request_id"] = Value::Null));
    }
}
