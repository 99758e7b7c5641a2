//! From the agent wire to the engine's words.

use serde_json::Value;
use wharf_domain::run::{AttemptError, AttemptReport, NewAsk};
use wharf_domain::{Audience, Level, Progress, ToolDef};
use wharf_protocol::agent::{CallEnd, CallOutcome, QuestionReceived};
use wharf_vocab::{AskKind, AttemptId, Code, Durability, Executed, Fault, Timestamp, ToolId};
use wharf_wire::agent_v1::{Chunk, Notice, NoticeLevel, TextChannel, ToolDefinition};

/// A tool that an agent offers; `None` if its id does not fit the catalog.
pub(crate) fn tool(definition: &ToolDefinition, idempotency: bool) -> Option<ToolDef> {
    Some(ToolDef {
        tool: ToolId::new(&definition.tool_id).ok()?,
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        output_schema: definition.output_schema.clone(),
        side_effects: definition.side_effects,
        requires_directive: definition.requires_directive.unwrap_or(false),
        mock: false,
        idempotency,
        reattach: false,
        timeout_ms: None,
        max_cost_micro: None,
        durability: Durability::Journal,
        worker: None,
    })
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
pub(crate) fn notice(notice: Notice) -> Progress {
    let level = match notice.level {
        NoticeLevel::Debug => Level::Debug,
        NoticeLevel::Info => Level::Info,
        NoticeLevel::Warn => Level::Warn,
        NoticeLevel::Error => Level::Error,
    };
    Progress::Log { level, text: notice.text }
}

/// The end of a call. Whether it acted is what the session or the agent says; a plain failure
/// reported by the agent itself counts as acted, unless it says that it wants an approval first.
pub(crate) fn ended(end: CallEnd) -> AttemptReport {
    let result = match end.outcome {
        CallOutcome::Succeeded(output) => Ok(output),
        CallOutcome::Canceled(fault) => Err(AttemptError::Canceled(fault)),
        CallOutcome::Failed(fault) => {
            let executed = executed(&fault);
            Err(AttemptError::Failed(fault, executed))
        }
    };
    AttemptReport::new(result, end.cost_micro)
}

fn executed(fault: &Fault) -> Executed {
    if fault.is(Code::ToolDirectiveRequired) {
        return Executed::No;
    }
    match fault.details.get("executed").and_then(Value::as_str) {
        Some("no") => Executed::No,
        Some("maybe") => Executed::Maybe,
        _ => Executed::Yes,
    }
}

/// A question of a call.
pub(crate) fn question(
    attempt_id: AttemptId,
    question: &QuestionReceived,
    now: Timestamp,
) -> NewAsk {
    NewAsk {
        escalates: None,
        detail: None,
        attempt_id,
        kind: AskKind::Question,
        key: question.ask_id.to_string(),
        title: question.title.clone(),
        schema: Some(question.schema.clone()),
        audience: Audience::Any,
        deadline: question.deadline_ms.map(|ms| now.plus_ms(ms)),
    }
}
