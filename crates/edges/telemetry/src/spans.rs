//! Spans of a run, and the request that carries them.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, status};
use wharf_vocab::{RunStatus, Timestamp};

use crate::history::{AttemptPart, WaitPart};
use crate::model::ModelCall;
use crate::options::TelemetryOptions;
use crate::record::{AskPart, EndedRun};

/// The names of the parts of a span, as this version of the core gives them.
const SCOPE: &str = "wharf";

/// Bits of a span's flags: its trace is recorded, it is known where its parent is, and that is in
/// another program.
const SAMPLED: u32 = 0x001;
const KNOWS_REMOTE: u32 = 0x100;
const REMOTE_PARENT: u32 = 0x200;

/// What an attribute says.
enum Fact {
    Text(String),
    Number(u64),
    List(Vec<String>),
}

/// The facts of a span, in their order.
#[derive(Default)]
struct Facts(Vec<KeyValue>);

impl Facts {
    fn text(self, key: &str, text: impl Into<String>) -> Self {
        self.with(key, Fact::Text(text.into()))
    }

    fn maybe(self, key: &str, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    fn number(self, key: &str, number: impl Into<u64>) -> Self {
        self.with(key, Fact::Number(number.into()))
    }

    fn maybe_number(self, key: &str, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(key, number),
            None => self,
        }
    }

    fn with(mut self, key: &str, fact: Fact) -> Self {
        let text = any_value::Value::StringValue;
        let value = match fact {
            Fact::Text(it) => text(it),
            Fact::Number(number) => {
                any_value::Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX))
            }
            Fact::List(all) => any_value::Value::ArrayValue(ArrayValue {
                values: all.into_iter().map(|it| AnyValue { value: Some(text(it)) }).collect(),
            }),
        };
        let value = Some(AnyValue { value: Some(value) });
        self.0.push(KeyValue { key: key.to_owned(), value, ..KeyValue::default() });
        self
    }
}

/// The spans of a run with these attempts and waits.
pub(crate) fn of_run(run: &EndedRun, attempts: &[AttemptPart], waits: &[WaitPart]) -> Vec<Span> {
    let mut spans = vec![run_span(run)];
    spans.extend(attempts.iter().map(|part| attempt_span(run, attempts, part)));
    let mut number = 0;
    let mut next = || {
        let id = run.trace.wait_span(number);
        number += 1;
        id
    };
    spans.extend(waits.iter().map(|part| wait_span(run, part, &next())));
    spans.extend(run.asks.iter().map(|part| ask_span(run, part, &next())));
    spans
}

fn run_span(run: &EndedRun) -> Span {
    // A child's parent is an attempt here, or a span below it of whoever works on that.
    let remote = run.parent.is_none() && run.trace.parent.is_some();
    let kind = if run.parent.is_none() { SpanKind::Server } else { SpanKind::Internal };
    let facts = of_all(run)
        .text("wharf.mode", run.mode.as_str())
        .text("wharf.durability", run.durability.as_str())
        .text("wharf.status", run.status.as_str())
        .maybe("wharf.executed", run.executed.map(|executed| executed.as_str()))
        .number("wharf.attempts", run.attempts)
        .number("wharf.cost_micro", run.cost_micro)
        .maybe("wharf.parent_run_id", run.parent.as_ref().map(|parent| parent.as_str()))
        .maybe("error.type", run.error.as_ref().map(|code| code.as_str()));
    Span {
        parent_span_id: bytes(run.trace.parent.as_deref().unwrap_or_default()),
        name: format!("run {}", run.tool),
        kind: kind.into(),
        flags: flags(remote),
        status: status_of(run.status),
        ..span(run, &run.trace.run_span(), (run.created_at, run.ended_at), facts)
    }
}

fn attempt_span(run: &EndedRun, attempts: &[AttemptPart], part: &AttemptPart) -> Span {
    let is_last = attempts.last().is_some_and(|last| last.number == part.number);
    let booked = run.booked(part.id.as_ref());
    let (status, error, executed) = match &part.failure {
        Some((code, executed)) => (RunStatus::Failed, Some(code.as_str()), Some(*executed)),
        None => (run.status, run.error.as_ref().map(|code| code.as_str()), run.executed_last),
    };
    let facts = of_all(run)
        .number("wharf.attempt", part.number)
        .maybe("wharf.attempt_id", part.id.as_ref().map(|id| id.as_str()))
        .maybe("wharf.launch_id", booked.and_then(|it| it.launch.as_ref()).map(|id| id.as_str()))
        .text("wharf.status", status.as_str())
        .maybe("wharf.executed", executed.map(|executed| executed.as_str()))
        .maybe_number("wharf.cost_micro", booked.map(|booked| booked.cost_micro))
        .maybe("error.type", error);
    let model = run.model.as_ref().filter(|_| is_last);
    let name = match model.filter(|model| model.is_chat) {
        Some(ModelCall { wanted: Some(model), .. } | ModelCall { model: Some(model), .. }) => {
            format!("chat {model}")
        }
        Some(_) => "chat".to_owned(),
        None => format!("attempt {}", run.tool),
    };
    let facts = model.into_iter().fold(facts, of_model);
    Span {
        parent_span_id: bytes(&run.trace.run_span()),
        name,
        kind: SpanKind::Client.into(),
        status: status_of(status),
        ..span(run, &run.trace.attempt_span(part.number), (part.from, part.to), facts)
    }
}

/// What is known of a model, by the names that everybody uses for it.
fn of_model(facts: Facts, model: &ModelCall) -> Facts {
    let facts = match model.is_chat {
        true => facts.text("gen_ai.operation.name", "chat"),
        false => facts,
    };
    let facts = facts
        .maybe("gen_ai.provider.name", model.provider.clone())
        .maybe("gen_ai.request.model", model.wanted.clone())
        .maybe("gen_ai.response.model", model.model.clone())
        .maybe_number("gen_ai.usage.input_tokens", model.input_tokens)
        .maybe_number("gen_ai.usage.output_tokens", model.output_tokens);
    match &model.finish_reason {
        Some(reason) => {
            facts.with("gen_ai.response.finish_reasons", Fact::List(vec![reason.clone()]))
        }
        None => facts,
    }
}

fn wait_span(run: &EndedRun, part: &WaitPart, id: &str) -> Span {
    let what = part.what.as_str();
    let facts = of_all(run).text("wharf.wait", what);
    Span {
        parent_span_id: bytes(&run.trace.run_span()),
        name: format!("wait {what}"),
        ..span(run, id, (part.from, part.to), facts)
    }
}

fn ask_span(run: &EndedRun, part: &AskPart, id: &str) -> Span {
    let trace = &run.trace;
    let parent = part.attempt.map_or_else(|| trace.run_span(), |it| trace.attempt_span(it));
    let facts = of_all(run)
        .text("wharf.wait", "ask")
        .text("wharf.ask_id", part.id.as_str())
        .text("wharf.ask_kind", part.kind.as_str())
        .maybe("wharf.ask_outcome", part.outcome);
    Span {
        parent_span_id: bytes(&parent),
        name: "wait ask".to_owned(),
        ..span(run, id, (part.from, part.to), facts)
    }
}

/// What every span of a run says.
fn of_all(run: &EndedRun) -> Facts {
    Facts::default()
        .text("wharf.run_id", run.key.run.as_str())
        .text("wharf.world", run.key.world.as_str())
        .text("wharf.tool", run.tool.as_str())
        .text("wharf.provider", run.tool.provider().as_str())
}

fn span(run: &EndedRun, id: &str, (from, to): (Timestamp, Timestamp), facts: Facts) -> Span {
    Span {
        trace_id: bytes(&run.trace.trace_id),
        span_id: bytes(id),
        trace_state: run.tracestate.clone().unwrap_or_default(),
        flags: flags(false),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(from),
        // The clock may have been set back between two cores.
        end_time_unix_nano: nanos(to.max(from)),
        attributes: facts.0,
        ..Span::default()
    }
}

fn flags(remote: bool) -> u32 {
    SAMPLED | KNOWS_REMOTE | if remote { REMOTE_PARENT } else { 0 }
}

/// What went wrong is an error; what somebody called off is none. The message stays here: it may
/// quote what was asked.
fn status_of(status: RunStatus) -> Option<Status> {
    let is_error = matches!(status, RunStatus::Failed | RunStatus::Refused);
    is_error.then(|| Status { code: status::StatusCode::Error.into(), message: String::new() })
}

fn nanos(at: Timestamp) -> u64 {
    at.0.saturating_mul(1_000_000)
}

/// An id as the wire has it. Ids are made of hexadecimal digits.
fn bytes(id: &str) -> Vec<u8> {
    hex::decode(id).unwrap_or_default()
}

/// The request that carries spans.
pub(crate) fn request(options: &TelemetryOptions, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let own = Facts::default()
        .text("service.name", options.service_name.as_str())
        .text("service.version", version);
    let own = options.resource.iter().fold(own, |facts, (key, value)| facts.text(key, value));
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource { attributes: own.0, ..Resource::default() };
    let of_scope = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let of_core = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![of_scope],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![of_core] }
}
