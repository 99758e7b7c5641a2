//! The first message, and the tools that are registered.

use serde_json::Value;

use super::is_text;
use crate::findings::Findings;
use crate::transcript::Transcript;

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 128;

pub(super) fn judge(seen: &Transcript, findings: &mut Findings) {
    let Some((_, first)) = seen.received().next() else { return };
    if first.kind() != "agent.hello" {
        findings.fail(40, "The first message of the agent is not a hello.");
        return;
    }
    let hello = &first.message["payload"];
    let missing = ["session_token", "agent_id", "agent_version"]
        .into_iter()
        .find(|field| !is_text(&hello[*field]))
        .or_else(|| {
            let lists = ["supported_versions", "capabilities"];
            lists.into_iter().find(|field| !hello["protocol"][*field].is_array())
        });
    match missing {
        None => findings.pass(40),
        Some(field) => findings.fail(40, format!("The hello lacks {field}.")),
    }
    let agent_id = hello["agent_id"].as_str().unwrap_or_default();
    judge_tools(seen, agent_id, findings);
}

fn judge_tools(seen: &Transcript, agent_id: &str, findings: &mut Findings) {
    let welcomed = seen.lines.iter().position(|line| line.kind() == "core.welcome");
    for (place, line) in seen.received().filter(|(_, line)| line.kind() == "agent.tools.register") {
        let in_order = welcomed.is_some_and(|welcomed| welcomed < place);
        findings.check(68, in_order, "The agent registered tools before it was welcomed.");
        let Some(tools) = line.message["payload"]["tools"].as_array() else {
            findings.fail(68, "The registration has no list of tools.");
            continue;
        };
        for tool in tools {
            findings.check(
                68,
                is_complete(tool),
                "A tool lacks a part or has one of a wrong form.",
            );
            let name = tool["name"].as_str().unwrap_or_default();
            let well_named = is_name(name) && tool["tool_id"] == format!("{agent_id}/{name}");
            findings.check(71, well_named, "The id of a tool is not agent id, slash, name.");
        }
    }
}

fn is_complete(tool: &Value) -> bool {
    let optional = |name: &str, fits: fn(&Value) -> bool| {
        tool.get(name).is_none_or(|value| value.is_null() || fits(value))
    };
    is_text(&tool["tool_id"])
        && is_text(&tool["name"])
        && tool["description"].is_string()
        && tool["input_schema"].is_object()
        && optional("output_schema", Value::is_object)
        && optional("capabilities", Value::is_array)
        && optional("side_effects", Value::is_boolean)
        && optional("requires_directive", Value::is_boolean)
        && optional("tags", Value::is_array)
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits)
}
