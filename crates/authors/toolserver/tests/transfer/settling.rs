//! How a handler's outputs come to their end.

use serde_json::{Value, json};
use wharf_toolserver::transfer::{RunFiles, Source};

use crate::support::{Bench, Reply, Storage};

async fn settled(files: &RunFiles, outputs: Value) -> (Value, Vec<String>) {
    let Value::Object(outputs) = outputs else { panic!("an object") };
    let (outputs, missing) = files.settle(outputs).await.expect("settled");
    (Value::Object(outputs), missing)
}

#[tokio::test]
async fn t028_values_are_written_and_places_named_in_their_stead() {
    let storage = Storage::always(Reply::new(200, "")).await;
    let bench = Bench::of(&storage);
    let (near, far) = ("/artifacts/r1/near.json", storage.url("/far.txt?X-Amz-Signature=1"));
    let places = json!({"near": near, "far": far, "none": "/artifacts/r1/none", "null": near});
    let files = bench.run(json!({}), places, None);
    let given = json!({"near": {"a": 1}, "far": "text", "null": null, "tokens": 150});
    let (outputs, missing) = settled(&files, given).await;
    let expected = json!({"near": near, "far": far, "none": null, "null": null, "tokens": 150});
    assert_eq!(outputs, expected);
    assert_eq!(missing, ["none", "null"]);
    assert_eq!(files.written().keys().collect::<Vec<_>>(), ["far", "near"]);
    assert_eq!(std::fs::read(bench.artifact("r1/near.json")).expect("it"), br#"{"a":1}"#);
    assert_eq!(storage.seen().len(), 1);
}

#[tokio::test]
async fn t016_what_a_handler_wrote_is_not_written_twice() {
    let storage = Storage::always(Reply::new(200, "")).await;
    let bench = Bench::of(&storage);
    let place = storage.url("/x");
    let files = bench.run(json!({}), json!({"x": place}), None);
    files.put("x", Source::Value(json!("first"))).await.expect("written");
    for given in [json!({"x": "second"}), json!({}), json!({"x": null}), json!({"x": place})] {
        let (outputs, missing) = settled(&files, given).await;
        assert_eq!(outputs, json!({"x": place}));
        assert!(missing.is_empty());
    }
    assert_eq!(storage.seen().len(), 1);
}

#[tokio::test]
async fn t016_a_place_as_a_value_says_that_the_handler_has_written_it_itself() {
    let storage = Storage::always(Reply::new(200, "")).await;
    let bench = Bench::of(&storage);
    bench.keep("r1/own.txt", b"own");
    let places = json!({
        "own": "/artifacts/r1/own.txt",
        "far": storage.url("/far"),
        "lie": "/artifacts/r1/lie.txt",
    });
    let files = bench.run(json!({}), places.clone(), None);
    let (outputs, missing) = settled(&files, places.clone()).await;
    assert_eq!(missing, ["lie"]);
    assert_eq!(outputs["own"], places["own"]);
    assert_eq!(outputs["far"], places["far"]);
    let written = files.written();
    assert_eq!(written["own"].b3, blake3::hash(b"own").to_hex().to_string());
    assert_eq!(written.len(), 1, "what nobody here has seen is not confirmed");
    assert!(storage.seen().is_empty(), "an address is never written over a file");
}

#[tokio::test]
async fn t010_an_output_that_cannot_be_written_fails_the_run() {
    let storage = Storage::always(Reply::new(403, "")).await;
    let bench = Bench::of(&storage);
    let files = bench.run(json!({}), json!({"x": storage.url("/x")}), None);
    let Value::Object(outputs) = json!({"x": 1}) else { unreachable!() };
    assert_eq!(files.settle(outputs).await.expect_err("denied").code, "ERR_STORAGE_DENIED");
}
