//! What schemas may cost, tried with those that cost most.

use std::time::Instant;

use serde_json::{Value, json};

use super::*;

fn compiled(schema: &Value) -> Arc<Schema> {
    Arc::new(Schema::compile(schema).unwrap_or_else(|flaw| panic!("{flaw:?}: {schema}")))
}

#[track_caller]
fn assert_too_large(schema: &Value) {
    let began = Instant::now();
    let refused = check_schema(schema).expect_err("it costs too much");
    assert_eq!(refused, Code::ToolSchemaTooLarge);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// A schema in which each of so many levels asks the next twice.
fn doubled(levels: usize, word: &str) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({word: [next.clone(), next]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "object"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

/// An array in an array in an array.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn r073_a_schema_that_doubles_with_every_level_is_too_large() {
    for word in ["allOf", "anyOf", "oneOf"] {
        assert_too_large(&doubled(31, word));
        compiled(&doubled(8, word));
    }
    let percent: Value =
        serde_json::from_str(&doubled(31, "allOf").to_string().replace("#/$defs", "#/%24defs"))
            .expect("JSON");
    assert_too_large(&percent);
}

#[test]
fn r073_anchors_ids_and_words_that_look_back_are_counted_too() {
    let mut named = doubled(31, "allOf");
    for level in 0..=31 {
        named["$defs"][format!("l{level}")]["$anchor"] = json!(format!("a{level}"));
    }
    let text = named.to_string().replace("#/$defs/l", "#a");
    assert_too_large(&serde_json::from_str(&text).expect("JSON"));

    let inner = doubled(31, "allOf");
    let mut with_id = inner.clone();
    with_id["$id"] = json!("urn:inner");
    assert_too_large(&json!({"properties": {"a": with_id}}));

    let back = (0..15).fold(
        json!({"type": "object"}),
        |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
    );
    assert_too_large(&back);
}

#[test]
fn r073_a_long_chain_of_references_is_too_large() {
    let mut defs = serde_json::Map::new();
    for level in 0..1_500 {
        defs.insert(format!("l{level}"), json!({"$ref": format!("#/$defs/l{}", level + 1)}));
    }
    defs.insert("l1500".to_owned(), json!({}));
    assert_too_large(&json!({"$ref": "#/$defs/l0", "$defs": defs}));
}

#[test]
fn r073_regular_expressions_are_bounded_and_never_backtrack() {
    let one = |pattern: &str| json!({"properties": {"a": {"pattern": pattern}}});
    compiled(&one("^[\\w.-]{1,64}$"));
    compiled(&one("^(a+)+$"));
    for wrong in ["^(a+)+\\1$", "(?=x)x", "(?:[a-z]{500}){500}"] {
        assert_eq!(check_schema(&one(wrong)), Err(Code::ToolSchemaInvalid), "{wrong}");
    }
    let many: serde_json::Map<_, _> =
        (0..200).map(|n| (format!("p{n}"), json!({"pattern": format!("^{n}.*x$")}))).collect();
    assert_too_large(&json!({"properties": many}));
}

#[tokio::test]
async fn r073_a_tree_is_checked_however_deep_it_is() {
    let tree = compiled(&json!({
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}},
        "additionalProperties": false,
    }));
    let deep = (0..100).fold(json!({"n": 1}), |inner, _| json!({"left": inner, "right": {}}));
    assert_eq!(tree.check(deep).await, Ok(()));
    let wrong = (0..20).fold(json!({"n": "x"}), |inner, _| json!({"right": inner}));
    let Err(CheckError::Misfit(misfit)) = tree.check(wrong).await else {
        panic!("it does not fit")
    };
    assert!(misfit.place.ends_with("/right/n"), "{misfit:?}");
}

#[tokio::test]
async fn what_is_missing_is_named_and_the_whole_has_no_place() {
    let schema = compiled(&json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "at": {"type": "object", "required": ["x"]}},
        "required": ["n"],
    }));
    for (value, told) in [
        (json!({}), "The inputs do not fit the tool: `n` is missing."),
        (json!({"n": 1, "at": {}}), "The inputs do not fit the tool at /at: `x` is missing."),
    ] {
        let misfit = schema.check(value).await.expect_err("it does not fit");
        let fault = misfit.told(Code::ToolInvalidInput, "The inputs do not fit the tool");
        assert_eq!(fault.message, told);
    }
}

#[tokio::test]
async fn r073_a_value_that_costs_too_much_is_refused_soon() {
    let twice = json!({"items": {"$ref": "#"}});
    let hostile = [
        json!({"allOf": [twice.clone(), twice.clone()]}),
        json!({"anyOf": [{"not": twice.clone()}, twice.clone()], "unevaluatedItems": false}),
    ];
    for schema in hostile {
        let schema = compiled(&schema);
        assert_eq!(schema.check(nested(5)).await, Ok(()));
        let began = Instant::now();
        let Err(CheckError::Misfit(misfit)) = schema.check(nested(100)).await else {
            panic!("it cannot have been checked")
        };
        assert_eq!(misfit, too_much());
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn r073_a_schema_that_asks_itself_without_end_refuses_every_value() {
    for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})] {
        if let Ok(schema) = Schema::compile(&schema) {
            let checked = Arc::new(schema).check(json!({})).await;
            assert_eq!(checked, Err(CheckError::Misfit(too_much())));
        }
    }
}

#[tokio::test]
async fn r073_a_large_value_waits_for_a_thread_of_its_own_and_a_small_one_does_not() {
    let list = compiled(&json!({"items": {"enum": (0..5_000).collect::<Vec<_>>()}}));
    let turns = SLOW_CHECKS.acquire_many(2).await.expect("never closed");
    assert_eq!(list.check(json!([1, 2, 3])).await, Ok(()));
    let mut large = Box::pin(list.check(Value::from(vec![4_999; 1_000])));
    let waited = tokio::select! {
        biased;
        checked = &mut large => Some(checked),
        () = tokio::task::yield_now() => None,
    };
    assert_eq!(waited, None, "it must wait for its turn");
    drop(turns);
    assert_eq!(large.await, Ok(()));
    let huge = Value::from(vec![4_999; 100_000]);
    assert_eq!(list.check(huge).await, Err(CheckError::Misfit(too_much())));
}
