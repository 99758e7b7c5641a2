//! Files that runs read and write, and the receipts that go with them.

use serde_json::{Value, json};
use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_domain::scope::{Bindings, InputBinding, ReadObject, Target, WorldPath};
use wharf_domain::{
    ArtifactOp, AuditRecord, Availability, Delivery, Metered, Outcome, RunSpec, Transfer,
};
use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{B3, Code, Direction, Executed, Fault, RunStatus, Timestamp};

use crate::stage::{
    CANARY, Plan, Stage, assert_stands, cancel, down, gate, kinds, object, proposes, staged,
};

fn path(text: &str) -> WorldPath {
    WorldPath::parse_any(text).expect("a path")
}

fn hash() -> B3 {
    B3::parse("ab".repeat(32)).expect("a hash")
}

/// A run that reads a file of the world, a local file of an earlier run and an address elsewhere.
const READS: fn(&mut RunSpec) = |spec| {
    let object = |at: &str, b3| {
        InputBinding::Object(ReadObject {
            path: path(at),
            bytes: 3,
            b3,
            media_type: "image/png".to_owned(),
            version: None,
            tag: None,
        })
    };
    spec.bindings = Bindings {
        reads: [
            ("image".to_owned(), object("/in/a.png", Some(hash()))),
            ("state".to_owned(), object("/@r0/s.png", None)),
            ("page".to_owned(), InputBinding::Uri),
        ]
        .into(),
        writes: [("report".to_owned(), Target::Object { path: path("/out/report.json") })].into(),
    };
};

fn recorded(ops: &[ArtifactOp]) -> Vec<(&str, Option<&str>, Direction)> {
    let records = ops.iter().map(|op| match op {
        ArtifactOp::Record(it) => (it.path.as_str(), it.key.as_deref(), it.direction),
        ArtifactOp::Remove { .. } => panic!("runs remove nothing"),
    });
    records.collect()
}

/// The attempt under way ends like this, with a file that is in its place.
fn ends(stage: &Stage, result: Result<wharf_vocab::Object, AttemptError>) -> RunInput {
    let delivery = Delivery { moves: Vec::new(), ..staged(&stage.attempt_id()) };
    let report = AttemptReport { delivery, ..AttemptReport::new(result, 0) };
    RunInput::AttemptEnded { attempt_id: stage.attempt_id(), report }
}

/// Whether a file was read is known when it is handed out, and by whoever does that.
#[test]
fn t040_a_run_that_is_accepted_has_read_nothing_yet() {
    let gated = Plan::of(|spec| {
        READS(spec);
        spec.gate = gate();
    });
    let waits = Plan::of(READS).provider(Availability::Coming);
    for plan in [Plan::of(READS), gated, waits, Plan::of(READS).provider(down())] {
        let (stage, created) = plan.try_start().expect("accepted");
        assert_eq!(recorded(&created.artifacts), []);
        assert!(stage.run.artifacts.is_empty());
    }
}

#[test]
fn t040_what_a_run_wrote_is_recorded_with_its_success() {
    let mut stage = Plan::of(READS).start();
    let wrote = staged(&stage.attempt_id()).artifacts;
    let ended = stage.take(&ends(&stage, Ok(object("result"))));
    assert_eq!(kinds(&ended.entries), ["ended"]);
    assert_eq!(ended.artifacts, [ArtifactOp::Record(wrote[0].clone())]);
    assert_eq!(stage.run.artifacts, wrote);
    assert_eq!(stage.run.outcome, Some(Outcome::Succeeded { outputs: object("result") }));
}

#[test]
fn t040_a_run_that_does_not_succeed_leaves_no_record_of_files() {
    let fault = || Fault::new(Code::ToolFailed, "It did not work.");
    let ends_badly = [
        (AttemptError::Failed(fault(), Executed::Yes), RunStatus::Failed),
        (AttemptError::Refused(fault()), RunStatus::Refused),
        (AttemptError::Canceled(fault()), RunStatus::Canceled),
    ];
    for (error, status) in ends_badly {
        let mut stage = Plan::default().start();
        stage.take(&ends(&stage, Err(error)));
        assert_eq!(stage.status(), status);
        assert!(stage.artifacts.is_empty() && stage.run.artifacts.is_empty());
    }
    let mut late = Plan::default().start();
    let result = ends(&late, Ok(object("result")));
    late.take(&cancel());
    late.wait(CANCEL_GRACE_MS);
    late.take(&RunInput::Tick);
    late.ignore(&result);
    assert!(late.artifacts.is_empty(), "what comes too late is not recorded either");
}

#[test]
fn t040_only_the_attempt_that_succeeds_leaves_records() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    let busy = Fault::new(Code::ToolBusy, "Not now.");
    stage.take(&ends(&stage, Err(AttemptError::Failed(busy, Executed::Maybe))));
    assert!(stage.artifacts.is_empty());
    stage.wake();
    stage.take(&ends(&stage, Ok(object("result"))));
    assert_eq!(stage.artifacts.len(), 1);
    assert_eq!(stage.run.metered.bytes_out, 14, "both attempts have written");
}

fn completed(stage: &Stage) -> Vec<&AuditRecord> {
    stage.audit.iter().filter(|record| record.event == "tool.call_completed").collect()
}

fn receipt(record: &AuditRecord) -> [Option<&Value>; 5] {
    ["cost_micro", "held_micro", "cpu_ms", "bytes_in", "bytes_out"]
        .map(|fact| record.facts.get(fact))
}

#[test]
fn t041_a_receipt_has_what_was_reported_beside_what_was_held_and_measured() {
    let report = |result, cost_micro, metered| AttemptReport {
        result,
        cost_micro,
        delivery: Delivery { metered, ..Delivery::default() },
    };
    let mut stage = Plan::of(|spec| {
        spec.hold_micro = 10;
        spec.side_effect_free = true;
    })
    .start();
    let busy = AttemptError::Failed(Fault::new(Code::ToolBusy, "Not now."), Executed::No);
    let read = Transfer {
        key: "a".into(),
        direction: Direction::In,
        bytes: 500,
        at: Timestamp(3),
        took_ms: 2,
    };
    let transfers = vec![read.clone()];
    let first = Metered { cpu_ms: Some(40), bytes_in: 500, transfers, ..Metered::default() };
    let attempt_id = stage.attempt_id();
    stage.take(&RunInput::AttemptEnded { attempt_id, report: report(Err(busy), 4, first) });
    stage.wake();
    let again = Transfer { at: Timestamp(9), ..read.clone() };
    let transfers = vec![again.clone()];
    let second = Metered { cpu_ms: None, bytes_in: 500, bytes_out: 70, transfers };
    let attempt_id = stage.attempt_id();
    let result = Ok(object("result"));
    stage.take(&RunInput::AttemptEnded { attempt_id, report: report(result, 5, second) });

    let [one, two] = completed(&stage).try_into().expect("two attempts");
    let fact = |number: u64| Some(json!(number));
    let wanted = [fact(4), fact(10), fact(40), fact(500), None];
    assert_eq!(receipt(one), wanted.each_ref().map(Option::as_ref));
    let wanted = [fact(5), fact(10), None, fact(500), fact(70)];
    assert_eq!(receipt(two), wanted.each_ref().map(Option::as_ref));
    let transfers = vec![read, again];
    let all = Metered { cpu_ms: Some(40), bytes_in: 1_000, bytes_out: 70, transfers };
    assert_eq!((stage.run.metered, stage.run.cost_micro), (all, 9));
}

#[test]
fn t041_the_receipt_of_what_was_published_has_the_same_facts() {
    let mut stage = Plan::of(|spec| spec.hold_micro = 10).start();
    stage.take(&stage.publishes());
    assert!(completed(&stage).is_empty(), "it is not over yet");
    stage.wait(30);
    stage.take(&stage.published());
    let [end] = completed(&stage).try_into().expect("one attempt");
    let wanted = [Some(json!(0)), Some(json!(10)), Some(json!(11)), None, Some(json!(7))];
    assert_eq!(receipt(end), wanted.each_ref().map(Option::as_ref));
    assert_eq!(end.facts.get("duration_ms"), Some(&json!(30)));
    assert_eq!(stage.run.metered.bytes_out, 7, "counted once");
}

#[test]
fn t041_nothing_measured_is_nothing_told() {
    let mut stage = Plan::default().start();
    stage.take(&stage.succeeded());
    let [end] = completed(&stage).try_into().expect("one attempt");
    assert_eq!(receipt(end), [Some(&json!(0)), None, None, None, None]);
    assert!(stage.run.metered.is_empty());
    // A run that never began has held and used nothing.
    let (stage, _) =
        Plan::of(|spec| spec.hold_micro = 10).provider(down()).try_start().expect("made");
    let [end] = completed(&stage).try_into().expect("one end");
    assert_eq!(receipt(end), [Some(&json!(0)), None, None, None, None]);
}

#[test]
fn t041_what_a_proposal_used_up_is_counted() {
    let mut stage = Plan::default().start();
    stage.take(&ends(&stage, Err(proposes("mail"))));
    let expect = Metered { cpu_ms: Some(11), bytes_out: 7, ..Metered::default() };
    assert_eq!(stage.run.metered, expect);
    assert!(stage.artifacts.is_empty());
}

#[test]
fn t041_what_was_measured_adds_up_without_overflowing() {
    let some =
        Metered { cpu_ms: Some(u64::MAX), bytes_in: u64::MAX, bytes_out: 1, ..Metered::default() };
    let none = Metered::default();
    assert_eq!(some.clone().plus(none.clone()), some);
    assert_eq!(none.plus(some.clone()), some);
    assert_eq!(some.clone().plus(some.clone()), Metered { bytes_out: 2, ..some });
}

#[test]
fn t035_names_of_files_stand_in_no_audit_record() {
    let mut stage = Plan::of(READS).start();
    stage.take(&stage.publishes());
    stage.take(&stage.published());
    assert_stands(&stage, RunStatus::Succeeded, None);
    assert!(format!("{:?}", stage.run.artifacts).contains(CANARY), "the file's name has it");
    let audit = serde_json::to_string(&stage.audit).expect("JSON");
    for word in [CANARY, "a.png", "report.json", "world://"] {
        assert!(!audit.contains(word), "{word} stands in {audit}");
    }
}
