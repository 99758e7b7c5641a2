//! The example files: ours are written as they were read; what peers send may gain defaults and
//! loses nothing that is known here.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_wire::operator_v1::{
    Blueprint, CoreMessage, NewSeat, NewTask, OperatorMessage, Seat, SeatList, SeatMade,
    TaskStarted, WorkerDegradation, WorkerProgress, WorkerPrompt, WorkerResult,
};

fn examples(folder: &str) -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/operator_v1").join(folder);
    let mut examples = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().expect("named").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        examples.insert(name, value);
    }
    assert!(examples.len() > 5, "the examples are found");
    examples
}

#[track_caller]
fn read<T: DeserializeOwned>(name: &str, value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Reads an example and writes it again.
#[track_caller]
fn again<T: DeserializeOwned + Serialize + PartialEq + Debug>(name: &str, value: &Value) -> Value {
    let message: T = read(name, value);
    let written = serde_json::to_value(&message).expect("JSON");
    assert_eq!(read::<T>(name, &written), message, "{name}");
    written
}

#[test]
fn o008_what_the_core_says_is_written_as_it_was_read() {
    for (name, value) in examples("core") {
        assert_eq!(again::<CoreMessage>(&name, &value), value, "{name}");
        assert_eq!(value["type"].as_str(), name.split('.').next(), "{name}");
    }
}

#[test]
fn o008_every_kind_of_message_has_an_example() {
    let kinds = |folder: &str| {
        let all = examples(folder).into_values();
        let mut kinds: Vec<String> =
            all.map(|value| value["type"].as_str().expect("a type").to_owned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    let core = ["ask", "cancel", "error", "hook_after", "hook_before", "spawn"];
    assert_eq!(kinds("core"), core);
    assert_eq!(kinds("seed/core"), ["ask", "hook_after", "hook_before", "spawn"]);
    assert_eq!(kinds("operator"), ["answer", "hook_ack", "spawn_ack", "spawn_halt"]);
    assert_eq!(kinds("seed/operator"), ["answer", "hook_ack", "spawn_ack"]);
}

#[test]
fn o009_what_an_operator_says_is_written_as_it_was_read() {
    for (name, value) in examples("operator") {
        assert_eq!(again::<OperatorMessage>(&name, &value), value, "{name}");
    }
}

#[test]
fn o008_the_original_messages_of_a_core_are_read_and_written_word_by_word() {
    for (name, value) in examples("seed/core") {
        assert_eq!(again::<CoreMessage>(&name, &value), value, "{name}");
    }
}

#[test]
fn o009_the_original_replies_have_the_original_defaults() {
    let all = examples("seed/operator");
    for (name, value) in &all {
        let written = again::<OperatorMessage>(name, value);
        for (key, given) in value.as_object().expect("an object") {
            // Null and absent are the same.
            let kept = written.get(key).unwrap_or(&Value::Null);
            assert_eq!(kept, given, "{name}: {key}");
        }
    }
    let ack = |name: &str| match read::<OperatorMessage>(name, &all[name]) {
        OperatorMessage::SpawnAck { value, ok, error, stats, .. } => (value, ok, error, stats),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(ack("spawn_ack"), (Value::Null, true, None, None));
    assert_eq!(ack("spawn_ack.empty"), (serde_json::json!({}), true, None, None));
    let failed = (Value::Null, false, Some("no compiler".to_owned()), None);
    assert_eq!(ack("spawn_ack.error"), failed);
    let hook = |name: &str| match read::<OperatorMessage>(name, &all[name]) {
        OperatorMessage::HookAck { ok, reason, .. } => (ok, reason),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(hook("hook_ack"), (false, None));
    assert_eq!(hook("hook_ack.null"), (true, None));
    assert_eq!(hook("hook_ack.reason"), (false, Some("no".to_owned())));
}

#[test]
fn o021_o022_o023_what_goes_over_http_is_written_as_it_was_read() {
    for (name, value) in examples("http") {
        let written = match name.split('.').next().expect("a name") {
            "new_seat" => again::<NewSeat>(&name, &value),
            "seat_made" => again::<SeatMade>(&name, &value),
            "seat" => again::<Seat>(&name, &value),
            "seat_list" => again::<SeatList>(&name, &value),
            "new_task" => again::<NewTask>(&name, &value),
            "task_started" => again::<TaskStarted>(&name, &value),
            "worker_prompt" => again::<WorkerPrompt>(&name, &value),
            "worker_result" => again::<WorkerResult>(&name, &value),
            "worker_progress" => again::<WorkerProgress>(&name, &value),
            "worker_degradation" => again::<WorkerDegradation>(&name, &value),
            other => panic!("nobody reads {other}"),
        };
        assert_eq!(written, value, "{name}");
    }
}

#[test]
fn o028_the_calls_of_a_later_client_are_read() {
    let all = examples("upstream");
    let get = |name: &str| &all[name];
    let join: NewSeat = read("join", get("join"));
    assert_eq!(join.desc.as_deref(), Some("drives the nightly build"));
    assert_eq!(join.capability_manifest, None);
    let launch: NewTask = read("launch", get("launch"));
    assert_eq!(launch.blueprint, Some(Blueprint::Id("bb".to_owned())));
    assert_eq!(launch.blueprint.as_ref().and_then(Blueprint::name), Some("bb"));
    assert!(launch.operator_sid.is_some() && launch.detach.is_none());
    let detached: NewTask = read("launch.detached", get("launch.detached"));
    assert_eq!(detached.detach, Some(true));
    let inline: NewTask = read("launch.inline", get("launch.inline"));
    assert_eq!(inline.blueprint.as_ref().and_then(Blueprint::name), None);
    let degradation: WorkerDegradation = read("degradation", get("degradation"));
    assert_eq!((degradation.tool.as_str(), degradation.note), ("WebFetch", None));
    let result: WorkerResult = read("result", get("result"));
    assert_eq!((result.ok, result.cost_micro), (true, None));
    let halt: OperatorMessage = read("spawn_halt", get("spawn_halt"));
    assert_eq!(halt.req_id(), "r4");
}
