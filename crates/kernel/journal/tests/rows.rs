//! Rows survive being written and read, and what cannot be understood is refused.

use proptest::prelude::*;
use serde_json::{Value, json};
use wharf_domain::{Entry, Level, Outcome, Progress, RunEntry, run};
use wharf_journal::{Error, Kind, decode, decode_progress, encode, encode_progress};
use wharf_vocab::{AttemptId, Code, Fault, Object};

fn ended(outputs: Object, cost_micro: u64) -> Entry {
    Entry::Run(RunEntry::Ended(run::Ended::new(Outcome::Succeeded { outputs }, cost_micro)))
}

fn started(attempt: u32) -> Entry {
    Entry::Run(RunEntry::AttemptStarted(run::AttemptStarted {
        attempt,
        attempt_id: AttemptId::new("a-1").expect("valid"),
        hold: None,
        place: None,
    }))
}

#[test]
fn a_row_is_compact_and_says_kind_and_version() {
    let row = encode(&[started(1), ended(Object::new(), 3)]);
    let text = String::from_utf8(row).expect("text");
    assert_eq!(
        text,
        concat!(
            r#"[["run.attempt_started",1,{"attempt":1,"attempt_id":"a-1"}],"#,
            r#"["run.ended",1,{"outcome":{"status":"succeeded","outputs":{}},"cost_micro":3}]]"#,
        )
    );
    assert_eq!(encode(&[]), b"[]");
    assert_eq!(encode_progress(&[]), b"[]");
    assert!(decode(b"[]").expect("nothing").is_empty());
}

#[test]
fn what_cannot_be_understood_is_refused_and_not_skipped() {
    let good = String::from_utf8(encode(&[started(1)])).expect("text");
    let beside = |piece: &str| format!("{},{piece}]", &good[..good.len() - 1]);
    let refused = |row: &str| decode(row.as_bytes()).expect_err(row);

    let error = refused(&beside(r#"["run.dreamt",1,{}]"#));
    assert!(matches!(&error, Error::UnknownKind { kind } if kind == "run.dreamt"), "{error}");
    let error = refused(&beside(r#"["run.ended",2,{}]"#));
    assert!(error.is_newer(), "{error}");
    assert_eq!(error.to_string(), "run.ended has version 2 and this version of Wharf knows 1");
    let error = refused(&beside(r#"["run.ended",0,{}]"#));
    assert!(matches!(error, Error::NeverWritten { version: 0, .. }), "{error}");
    let error = refused(&beside(r#"["run.ended",1,{"cost_micro":1}]"#));
    assert!(matches!(error, Error::Shape { kind: Kind::RunEnded, .. }), "{error}");
    let error = refused(&beside(r#"["progress.gap",1,{"from":1,"to":2}]"#));
    assert!(matches!(error, Error::Misplaced { kind: Kind::ProgressGap, .. }), "{error}");
    let error = decode_progress(good.as_bytes()).expect_err("entries");
    assert!(matches!(error, Error::Misplaced { .. }), "{error}");
    for bad in ["", "{}", "[[1]]", r#"[["run.ended",1]]"#, r#"[["run.ended",-1,{}]]"#] {
        assert!(matches!(refused(bad), Error::Malformed(_)), "{bad}");
    }
    assert!(matches!(refused(&good[..good.len() - 1]), Error::Malformed(_)), "half a row");
}

#[test]
fn kinds_are_dotted_unique_and_read_back() {
    for kind in Kind::ALL {
        assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        assert!(kind.as_str().contains('.') && kind.newest() >= 1);
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |n| n.is_finite())
            .prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn pieces() -> impl Strategy<Value = Progress> {
    prop_oneof![
        (".*", ".*").prop_map(|(channel, text)| Progress::Text { channel, text }),
        ".*".prop_map(|text| Progress::Log { level: Level::Warn, text }),
        (prop::option::of(".*"), values())
            .prop_map(|(key, value)| Progress::Partial { key, value }),
        (".*", prop::option::of(0.0..=1.0))
            .prop_map(|(phase, fraction)| Progress::Phase { phase, fraction }),
        any::<(u64, u64)>().prop_map(|(from, to)| Progress::Gap { from, to }),
    ]
}

fn entries() -> impl Strategy<Value = Entry> {
    let outputs = prop::collection::btree_map(".*", values(), 0..4)
        .prop_map(|map| map.into_iter().collect::<Object>());
    let fault = (".*", values())
        .prop_map(|(message, value)| Fault::new(Code::ToolFailed, message).with("fact", value));
    prop_oneof![
        (outputs, any::<u64>()).prop_map(|(outputs, cost)| ended(outputs, cost)),
        any::<u32>().prop_map(started),
        fault.prop_map(|error| {
            Entry::Run(RunEntry::Ended(run::Ended::new(Outcome::Failed { error }, 0)))
        }),
    ]
}

proptest! {
    #[test]
    fn entries_come_back_as_they_went_in(list in prop::collection::vec(entries(), 0..5)) {
        prop_assert_eq!(decode(&encode(&list)).expect("decodes"), list);
    }

    #[test]
    fn progress_comes_back_as_it_went_in(list in prop::collection::vec(pieces(), 0..5)) {
        prop_assert_eq!(decode_progress(&encode_progress(&list)).expect("decodes"), list);
    }

    #[test]
    fn no_bytes_bring_the_reader_down(row in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&row);
        let _ = decode_progress(&row);
    }
}

#[test]
fn a_fraction_without_a_number_is_read_as_none() {
    let piece = Progress::Phase { phase: "x".into(), fraction: Some(f64::NAN) };
    let back = decode_progress(&encode_progress(&[piece])).expect("decodes");
    assert_eq!(back, [Progress::Phase { phase: "x".into(), fraction: None }]);
    assert_eq!(json!(f64::NAN), Value::Null);
}
