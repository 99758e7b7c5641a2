//! The audit of a run: every call leaves its two records, with ids and facts and no payload.
//!
//! That no payload stands in any record is checked after every decision of every test: each
//! input, output, answer, title, schema, reason and message contains the canary.

use serde_json::{Value, json};
use wharf_domain::run::AttemptError;
use wharf_domain::{AuditRecord, Resolution, Severity};
use wharf_vocab::{AskKind, Code, Executed, Fault, RunStatus};

use crate::stage::{
    CANARY, Plan, Stage, answered, cancel, denied, gate, object, person, resolve, said, token,
};

fn events(stage: &Stage) -> Vec<(&str, &str)> {
    stage.audit.iter().map(|record| (record.event.as_str(), record.actor.as_str())).collect()
}

fn fact<'a>(record: &'a AuditRecord, key: &str) -> &'a Value {
    record.facts.get(key).unwrap_or(&Value::Null)
}

#[test]
fn the_canary_is_really_where_payloads_are() {
    let mut stage = Plan::of(|spec| spec.gate = gate()).start();
    stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
    stage.take(&stage.question("q"));
    stage.take(&resolve(stage.open_ask(), answered(), person("p")));
    stage.take(&cancel());
    stage.take(&stage.succeeded());
    let journal = format!("{:?}", stage.journal);
    // Inputs, title, schema, answer, reason of the cancel, outputs.
    assert!(journal.matches(CANARY).count() >= 6, "{journal}");
    let audit = serde_json::to_string(&stage.audit).expect("records are JSON");
    assert!(!audit.contains(CANARY), "{audit}");
}

#[test]
fn a_run_that_goes_through_everything_leaves_these_records() {
    let mut stage = Plan::of(|spec| {
        spec.gate = gate();
        spec.side_effect_free = true;
    })
    .start();
    stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
    stage.take(&stage.question("q"));
    stage.take(&resolve(stage.open_ask(), answered(), token("other")));
    stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
    stage.wake();
    stage.take(&cancel());
    stage.wake();
    assert_eq!(
        events(&stage),
        [
            ("ask.raised", "grant:starter"),
            ("ask.decided", "grant:p"),
            ("tool.call_routed", "grant:starter"),
            ("ask.raised", "provider:acme"),
            ("ask.decided", "grant:other"),
            ("tool.call_completed", "provider:acme"),
            ("tool.call_routed", "grant:starter"),
            ("run.cancel_requested", "grant:starter"),
            ("tool.call_completed", "provider:acme"),
        ]
    );
}

#[test]
fn r128_every_call_leaves_its_ids_its_time_its_cost_and_its_code() {
    let mut stage = Plan::of(|spec| {
        spec.side_effect_free = true;
        spec.hold_micro = 10;
        spec.correlation_id = Some("trace-1".to_owned());
    })
    .start();
    let first = stage.attempt_id();
    stage.wait(30);
    let busy = Fault::new(Code::ToolBusy, said(Code::ToolBusy));
    stage.take(&stage.ended(Err(AttemptError::Failed(busy, Executed::No)), 4));
    stage.wake();
    let second = stage.attempt_id();
    stage.wait(70);
    stage.take(&stage.ended(Ok(object("result")), 5));

    let routed: Vec<_> = stage.audit.iter().filter(|r| r.event == "tool.call_routed").collect();
    let completed: Vec<_> =
        stage.audit.iter().filter(|r| r.event == "tool.call_completed").collect();
    assert_eq!((routed.len(), completed.len()), (2, 2));
    let calls = [
        (1, &first, "failed", 30, 4, json!("tool.busy"), Severity::Error),
        (2, &second, "succeeded", 70, 5, Value::Null, Severity::Info),
    ];
    for (n, (number, id, status, ms, cost, code, severity)) in calls.into_iter().enumerate() {
        for record in [routed[n], completed[n]] {
            assert_eq!(record.subject, "run:w/r");
            assert_eq!(fact(record, "tool"), "acme/work");
            assert_eq!(fact(record, "attempt"), number);
            assert_eq!(fact(record, "attempt_id"), id.as_str());
            assert_eq!(fact(record, "correlation_id"), "trace-1");
        }
        let end = completed[n];
        assert_eq!(fact(end, "status"), status);
        assert_eq!(fact(end, "duration_ms"), ms);
        assert_eq!(fact(end, "cost_micro"), cost);
        assert_eq!(fact(end, "error_code"), &code);
        assert_eq!(end.severity, severity);
    }
}

#[test]
fn refusals_and_failures_stand_out() {
    let mut denied_run = Plan::of(|spec| spec.gate = gate()).start();
    denied_run.take(&resolve(denied_run.open_ask(), denied(), person("p")));
    let mut failed = Plan::default().start();
    failed.take(&failed.failed(Code::ToolFailed, Executed::Yes));
    let mut canceled = Plan::default().start();
    canceled.take(&cancel());
    canceled.wake();
    let cases = [
        (denied_run, RunStatus::Refused, Severity::Security),
        (failed, RunStatus::Failed, Severity::Error),
        (canceled, RunStatus::Canceled, Severity::Info),
    ];
    for (stage, status, severity) in cases {
        let last = stage.audit.last().expect("a record");
        assert_eq!((last.event.as_str(), last.severity), ("tool.call_completed", severity));
        assert_eq!(fact(last, "status"), status.as_str());
    }
}

#[test]
fn an_ask_leaves_its_id_its_kind_and_its_decision() {
    let mut stage = Plan::default().start();
    let ask = stage.asks(AskKind::Approval, "send");
    stage.take(&wharf_domain::run::RunInput::RaiseAsk(ask));
    let ask_id = stage.open_ask();
    stage.take(&resolve(ask_id.clone(), denied(), person("p")));
    let [raised, decided] = stage.audit.last_chunk::<2>().expect("two records");
    for record in [raised, decided] {
        assert_eq!(fact(record, "ask_id"), ask_id.as_str());
    }
    assert_eq!(fact(raised, "kind"), "approval");
    assert_eq!(fact(decided, "decision"), "deny");
}
