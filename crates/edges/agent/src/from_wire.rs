//! From the agent wire to the engine's words.

use serde_json::Value;
use wharf_domain::run::{AttemptError, NewAsk};
use wharf_domain::{Audience, KeysKept, Level, Progress, ToolDef, json_weight};
use wharf_engine::{AttemptEnd, AttemptOutputs, Handle, WrittenFile};
use wharf_ports::providers::ProviderHealth;
use wharf_protocol::agent::{CallEnd, CallOutcome};
use wharf_vocab::{
    AskKind, AttemptId, B3, Code, Durability, Executed, Fault, Health, Object, Retain, Timestamp,
    ToolId,
};
use wharf_wire::agent_v1::{
    AgentNotice, Chunk, HealthStatus, IdempotencyKept, IdempotencyPromise, NoticeLevel,
    QuestionAsk, TextChannel, ToolDefinition,
};

/// Largest details of a heartbeat that are shown, as JSON text.
const DETAILS_BYTES_MAX: usize = 16 * 1024;
/// Capabilities and tags of a tool that are kept, each.
const WORDS_MAX: usize = 64;
/// Longest capability or tag.
const WORD_BYTES_MAX: usize = 128;

/// A tool that an agent offers; `None` if its id does not fit the catalog. Whether it can pretend,
/// whether it costs nothing and whether no more than hashes of its values are to be kept are among
/// the capabilities it declares.
pub(crate) fn tool(
    definition: &ToolDefinition,
    keys: Option<IdempotencyPromise>,
) -> Option<ToolDef> {
    let capabilities = words(definition.capabilities.as_deref());
    let says = |word: &str| capabilities.iter().any(|name| name == word);
    Some(ToolDef {
        free: says("free"),
        retain: if says("retain_digest") { Retain::Digest } else { Retain::Full },
        tool: ToolId::new(&definition.tool_id).ok()?,
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        output_schema: definition.output_schema.clone(),
        side_effects: definition.side_effects,
        destructive: None,
        requires_directive: definition.requires_directive.unwrap_or(false),
        mock: says("mock"),
        idempotency: keys.is_some(),
        reattach: false,
        durable: says("durable"),
        timeout_ms: None,
        max_cost_micro: None,
        durability: Durability::Journal,
        worker: None,
        keys_kept: keys.map(keys_kept),
        tags: words(definition.tags.as_deref()),
        capabilities,
        hidden: false,
        mcp: None,
    })
}

/// How far an agent's memory of keys goes. What this core does not know is taken to end with the
/// process.
fn keys_kept(promise: IdempotencyPromise) -> KeysKept {
    let beyond_process = promise.kept_for == IdempotencyKept::Day;
    let for_ms = promise.kept_for_ms.or(beyond_process.then_some(DAY_MS));
    KeysKept { for_ms, beyond_process }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Words for display, as many and as long as are worth keeping.
fn words(given: Option<&[String]>) -> Vec<String> {
    let fits = |word: &&String| {
        !word.is_empty() && word.len() <= WORD_BYTES_MAX && !word.contains(char::is_control)
    };
    given.unwrap_or_default().iter().filter(fits).take(WORDS_MAX).cloned().collect()
}

/// What an agent says of itself: uptime and calls as it counts them, and figures of its own.
pub(crate) fn health(
    handle: &Handle,
    status: HealthStatus,
    (uptime_ms, inflight_calls): (u64, u64),
    mut details: Object,
) -> ProviderHealth {
    if json_weight(&details) > DETAILS_BYTES_MAX {
        details = Object::from_iter([("truncated".to_owned(), true.into())]);
    }
    handle.trust().redact(&mut details);
    let status = match status {
        HealthStatus::Ok => Health::Ok,
        HealthStatus::Degraded => Health::Degraded,
        HealthStatus::Unhealthy => Health::Unhealthy,
    };
    ProviderHealth { status, uptime_ms, inflight_calls, details }
}

/// A piece of output, after the hole before it.
pub(crate) fn chunk(gap: Option<(u64, u64)>, chunk: Chunk) -> Vec<Progress> {
    let piece = match chunk {
        Chunk::Text { channel: TextChannel::Log, text } => {
            Progress::Log { level: Level::Info, text }
        }
        Chunk::Text { channel, text } => {
            let channel = if channel == TextChannel::Stderr { "stderr" } else { "stdout" };
            Progress::Text { channel: channel.to_owned(), text }
        }
        Chunk::Status { text, fraction: None } => {
            Progress::Text { channel: "status".to_owned(), text }
        }
        Chunk::Status { text, fraction } => Progress::Phase { phase: text, fraction },
        Chunk::Partial { json } => Progress::Partial { key: None, value: Value::Object(json) },
    };
    gap.map(|(from, to)| Progress::Gap { from, to }).into_iter().chain([piece]).collect()
}

/// A notice about a call, as a line of the run's log.
pub(crate) fn notice(notice: AgentNotice) -> Progress {
    let level = match notice.level {
        NoticeLevel::Debug => Level::Debug,
        NoticeLevel::Info => Level::Info,
        NoticeLevel::Warn => Level::Warn,
        NoticeLevel::Error => Level::Error,
    };
    Progress::Log { level, text: notice.text }
}

/// What an agent gives. An output that it has written to its place already is an object that says
/// so: `{"$written": true}`, with its size and hash if the agent knows them.
fn outputs(output: Object) -> AttemptOutputs {
    let mut outputs = AttemptOutputs::default();
    for (name, value) in output {
        if value.get("$written") == Some(&Value::Bool(true)) {
            let b3 = value.get("b3").and_then(Value::as_str).and_then(|text| B3::parse(text).ok());
            let bytes = value.get("bytes").and_then(Value::as_u64);
            outputs.written.insert(name, WrittenFile { bytes, b3 });
        } else {
            outputs.values.insert(name, value);
        }
    }
    outputs
}

/// The end of a call. Whether it acted is what the session or the agent says; a plain failure
/// reported by the agent itself counts as acted, unless it says that it wants an approval first or
/// has no room for the call.
pub(crate) fn ended(end: CallEnd) -> AttemptEnd {
    let result = match end.outcome {
        CallOutcome::Succeeded(output) => Ok(outputs(output)),
        CallOutcome::Canceled(fault) => Err(AttemptError::Canceled(fault)),
        CallOutcome::Failed(fault) => {
            let executed = executed(&fault);
            Err(AttemptError::Failed(fault, executed))
        }
    };
    AttemptEnd::new(result, end.cost_micro)
}

fn executed(fault: &Fault) -> Executed {
    if fault.is(Code::ToolDirectiveRequired) {
        return Executed::No;
    }
    match fault.details.get("executed").and_then(Value::as_str) {
        Some("no") => Executed::No,
        Some("maybe") => Executed::Maybe,
        None if fault.is(Code::ToolBusy) => Executed::No,
        _ => Executed::Yes,
    }
}

/// A question of a call.
pub(crate) fn question(attempt_id: AttemptId, question: &QuestionAsk, now: Timestamp) -> NewAsk {
    NewAsk {
        escalates: None,
        detail: None,
        by: Vec::new(),
        attempt_id,
        kind: AskKind::Question,
        key: question.ask_id.to_string(),
        title: question.title.clone(),
        schema: Some(question.schema.clone()),
        audience: Audience::Any,
        deadline: question.deadline_ms.map(|ms| now.plus_ms(ms)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t040_outputs_that_are_written_already_say_so() {
        let hash = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let sorted = |value: &Value| outputs(Object::from_iter([("x".to_owned(), value.clone())]));
        for (said, bytes, b3) in [
            (json!({ "$written": true }), None, None),
            (json!({ "$written": true, "bytes": 3 }), Some(3), None),
            (json!({ "$written": true, "b3": hash }), None, B3::parse(hash).ok()),
            (json!({ "$written": true, "bytes": "3", "b3": "?" }), None, None),
        ] {
            let AttemptOutputs { values, written } = sorted(&said);
            assert!(values.is_empty());
            assert_eq!(written["x"], WrittenFile { bytes, b3 }, "{said}");
        }
        for other in
            [json!({ "$written": false }), json!({ "$written": 1 }), json!({}), json!(true)]
        {
            let AttemptOutputs { values, written } = sorted(&other);
            assert!(written.is_empty() && values["x"] == other, "{other}");
        }
    }
}
