//! What is told of runs.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use wharf_domain::trace::TraceContext;
use wharf_domain::{Caller, Outcome, Resolution};

use crate::stage::{CALLER, CANARY, Stage, new, options};
use wharf_testkit::collector::{Collector, attribute, digits, named, said};

const KIND_SERVER: i32 = SpanKind::Server as i32;

#[tokio::test(flavor = "multi_thread")]
async fn traces_of_a_run_and_what_it_started_arrive_as_one() {
    let collector = Collector::new(&[]);
    let stage = Stage::new(&collector.url).await;
    let mut wanted = new("test/outer", json!({"text": CANARY}));
    wanted.traceparent = Some(CALLER.to_owned());
    wanted.tracestate = Some("vendor=a1".to_owned());
    let run = stage.finish(wanted).await;
    let spans = collector.until(4);
    assert_eq!(spans.len(), 4, "{spans:?}");
    let caller = TraceContext::parse(CALLER).expect("a trace");
    for span in &spans {
        assert_eq!(digits(&span.trace_id), caller.trace_id);
        assert_eq!(span.trace_state, "vendor=a1");
        assert_eq!(said(span, "wharf.world").as_deref(), Some("default"));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    }
    let outer = named(&spans, "run test/outer");
    assert_eq!((digits(&outer.parent_span_id), outer.kind), (caller.span_id, KIND_SERVER));
    let attempt = named(&spans, "attempt test/outer");
    assert_eq!(attempt.parent_span_id, outer.span_id);
    let child = named(&spans, "run wharf/echo");
    assert_eq!(child.parent_span_id, attempt.span_id, "the child lies below the attempt");
    let echoed = named(&spans, "attempt wharf/echo");
    assert_eq!(echoed.parent_span_id, child.span_id);

    assert_eq!(said(outer, "wharf.run_id").as_deref(), Some(run.key.run.as_str()));
    assert_eq!(said(outer, "wharf.status").as_deref(), Some("succeeded"));
    assert_eq!(said(outer, "wharf.cost_micro").as_deref(), Some("7"));
    assert_eq!(said(attempt, "wharf.attempt").as_deref(), Some("1"));
    assert_eq!(said(attempt, "wharf.provider").as_deref(), Some("test"));
    assert_eq!(said(attempt, "wharf.executed").as_deref(), Some("yes"));
    assert_eq!(said(child, "wharf.parent_run_id").as_deref(), Some(run.key.run.as_str()));
    let Some(Outcome::Succeeded { outputs }) = &run.outcome else { panic!("{run:?}") };
    let carried = outputs["trace"].as_str().and_then(TraceContext::parse).expect("a trace");
    assert_eq!(carried.span_id, digits(&attempt.span_id), "a provider is told its attempt");
    assert!(carried.sampled);

    assert_eq!(attribute(&collector.resource(), "service.name").as_deref(), Some("dock"));
    let place = attribute(&collector.resource(), "deployment.environment");
    assert_eq!(place.as_deref(), Some("test"));
    assert!(!collector.holds(CANARY), "a payload was exported");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_name_models_by_the_names_that_everybody_uses() {
    let collector = Collector::new(&[]);
    let stage = Stage::new(&collector.url).await;
    stage.finish(new("test/model", json!({"prompt": CANARY}))).await;
    let spans = collector.until(2);
    let attempt = named(&spans, "attempt test/model");
    for (key, value) in [
        ("gen_ai.response.model", "small-1"),
        ("gen_ai.provider.name", "acme"),
        ("gen_ai.usage.input_tokens", "11"),
        ("gen_ai.usage.output_tokens", "5"),
    ] {
        assert_eq!(said(attempt, key).as_deref(), Some(value), "{key}");
    }
    let reasons = said(attempt, "gen_ai.response.finish_reasons").expect("reasons");
    assert!(reasons.contains("\"stop\""), "{reasons}");
    assert!(!collector.holds(CANARY), "a payload was exported");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_show_each_attempt_and_what_was_waited_for() {
    let collector = Collector::new(&[]);
    let stage = Stage::new(&collector.url).await;
    let run = stage.finish(new("test/flaky", json!({}))).await;
    assert_eq!(run.attempt, 2);
    let spans = collector.until(4);
    let of_run = named(&spans, "run test/flaky");
    let retry = named(&spans, "wait retry");
    assert_eq!(retry.parent_span_id, of_run.span_id);
    let attempts: Vec<&Span> =
        spans.iter().filter(|span| span.name == "attempt test/flaky").collect();
    assert_eq!(attempts.len(), 2, "{spans:?}");
    assert_ne!(attempts[0].span_id, attempts[1].span_id);
    assert_eq!(said(attempts[0], "wharf.status").as_deref(), Some("failed"));
    assert_eq!(said(attempts[0], "error.type").as_deref(), Some("tool.failed"));
    assert!(attempts[0].status.is_some() && of_run.status.is_none(), "{spans:?}");
    assert_eq!(said(attempts[1], "wharf.status").as_deref(), Some("succeeded"));
    assert!(attempts[0].end_time_unix_nano <= attempts[1].start_time_unix_nano);
    assert!(!collector.holds(CANARY), "the words of an error were exported");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_survive_a_core_that_was_killed_meanwhile() {
    let collector = Collector::new(&[]);
    let stage = Stage::new(&collector.url).await;
    let mut wanted = new("wharf/ask", json!({"question": "Go on?"}));
    wanted.traceparent = Some(CALLER.to_owned());
    let run = stage.start(wanted).await;
    let asked = async |stage: &Stage| loop {
        if let Some(ask) = stage.handle.asks().open_of(&run.key).pop() {
            break ask;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    };
    asked(&stage).await;
    let stage = stage.killed(&collector.url).await;
    let ask = asked(&stage).await;
    let yes = Resolution::Answered { value: Value::from("blue") };
    let resolved = stage.handle.asks().resolve(&Caller::owner(), &ask.spec.ask_id, yes).await;
    resolved.expect("answered");
    let over = stage.handle.runs().wait(&run.key, crate::stage::LONG).await.expect("known");
    assert!(over.is_over(), "{over:?}");
    let spans = collector.until(3);
    let told = named(&spans, "run wharf/ask");
    assert_eq!(told.start_time_unix_nano, run.created_at.0 * 1_000_000, "it is told whole");
    let caller = TraceContext::parse(CALLER).expect("a trace");
    assert_eq!(digits(&told.parent_span_id), caller.span_id);
    assert!(spans.iter().any(|span| span.name == "wait ask"), "{spans:?}");
    stage.task.stop(std::time::Duration::from_secs(5)).await;
    named(&collector.spans(), "run wharf/ask");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_began_a_trace_decides_whether_it_is_recorded() {
    let collector = Collector::new(&[]);
    let stage = Stage::with(options(&collector.url, 0.0)).await;
    let traced = |flags: &str| {
        let mut wanted = new("test/outer", json!({"text": "a"}));
        wanted.traceparent = Some(format!("{}{flags}", &CALLER[..CALLER.len() - 2]));
        wanted
    };
    let unwanted = stage.finish(traced("00")).await;
    let Some(Outcome::Succeeded { outputs }) = &unwanted.outcome else { panic!("{unwanted:?}") };
    let carried = outputs["trace"].as_str().and_then(TraceContext::parse).expect("a trace");
    assert!(!carried.sampled, "whoever works on it hears of the decision");
    stage.finish(new("test/outer", json!({"text": "b"}))).await;
    let wanted = stage.finish(traced("01")).await;
    let spans = collector.until(4);
    assert_eq!(spans.len(), 4, "{spans:?}");
    let outer = named(&spans, "run test/outer");
    assert_eq!(said(outer, "wharf.run_id").as_deref(), Some(wanted.key.run.as_str()));
}
