//! What expressions give, and where they end.

use serde_json::{Value, json};
use wharf_expression::{EvaluateError, NameScope, Program};
use wharf_vocab::limits::{EXPRESSION_OPERATIONS_MAX, EXPRESSION_RESULT_BYTES_MAX};

fn scope_value() -> Value {
    json!({
        "n": 7, "half": 0.5, "text": "Hällo", "none": null, "list": [3, 1, 2],
        "object": {"b": 1, "a": 2, "with-dash": 3}, "now": "2026-11-19T14:00:00.000Z",
    })
}

fn evaluate_on(text: &str, inputs: &Value) -> Result<Value, EvaluateError> {
    let program = Program::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let scope = NameScope::default().with("inputs", inputs);
    let (mut operations, mut bytes) = (EXPRESSION_OPERATIONS_MAX, EXPRESSION_RESULT_BYTES_MAX);
    program.evaluate(&scope, &mut operations, &mut bytes)
}

fn evaluate(text: &str) -> Result<Value, EvaluateError> {
    evaluate_on(text, &scope_value())
}

fn is_fault(text: &str) -> bool {
    matches!(evaluate(text), Err(EvaluateError::Fault(_)))
}

#[test]
fn f004_expressions_give_what_the_language_says() {
    for (text, expected) in [
        ("inputs.n > 5 && inputs.text.startsWith('H')", json!(true)),
        ("inputs.n / 2", json!(3)),
        ("inputs.n * inputs.half", json!(3.5)),
        ("1 + 2 * 3 - 4 % 3", json!(6)),
        ("inputs.list.map(x, x * 2)", json!([6, 2, 4])),
        ("inputs.list.filter(x, x > 1)", json!([3, 2])),
        ("inputs.list.map(x, x > 1, x + 1)", json!([4, 3])),
        ("inputs.list.exists(x, x == 2)", json!(true)),
        ("inputs.list.all(x, x > 1)", json!(false)),
        ("inputs.list.exists_one(x, x > 2)", json!(true)),
        ("has(inputs.n) && !has(inputs.m)", json!(true)),
        ("'a' in inputs.object && 2 in inputs.list", json!(true)),
        ("inputs.object['with-dash']", json!(3)),
        ("inputs.list[0] == 3 ? 'yes' : 'no'", json!("yes")),
        ("{'k': [1, 2.5, 'x', null, true]}", json!({"k": [1, 2.5, "x", null, true]})),
        ("size(inputs.text) + inputs.list.size() + size(inputs.object)", json!(11)),
        ("'a,b'.split(',') + ['c']", json!(["a", "b", "c"])),
        ("['a', 'b'].join('-').upperAscii()", json!("A-B")),
        ("inputs.text.substring(1, 3)", json!("äl")),
        ("string(1) + string(true) + string(1.5)", json!("1true1.5")),
        ("int('42') + int(1.9) + int(true ? 1 : 2)", json!(44)),
        ("sum(inputs.list) + max(inputs.list) - min(inputs.list)", json!(8)),
        ("inputs.list.sort()", json!([1, 2, 3])),
        ("string(timestamp(inputs.now) + duration('1h30m'))", json!("2026-11-19T15:30:00.000Z")),
        ("duration('90s') > duration('1m')", json!(true)),
        ("inputs.none == null && inputs.n != 'x' && 1 == 1.0", json!(true)),
        ("inputs.list.map(x, inputs.list.map(y, x + y))", json!([[6, 4, 5], [4, 2, 3], [5, 3, 4]])),
    ] {
        assert_eq!(evaluate(text), Ok(expected), "{text}");
    }
}

#[test]
fn f004_every_row_of_the_page_gives_what_it_says() {
    let page = include_str!("../../../../docs/expressions.md");
    let (_, inputs) = page.split_once("```json file inputs.json\n").expect("the inputs");
    let (inputs, _) = inputs.split_once("```").expect("their end");
    let inputs: Value = serde_json::from_str(inputs).expect("JSON");
    let mut checked = 0;
    for row in page.lines().filter(|line| line.starts_with("| `") && line.ends_with("` |")) {
        let row = row.trim_matches(['|', ' ']).replace("\\|", "|");
        let Some((text, gives)) = row.split_once("` | `") else { continue };
        let (text, gives) = (text.trim_matches('`'), gives.trim_matches('`'));
        let expected: Value = serde_json::from_str(gives).expect("JSON");
        assert_eq!(evaluate_on(text, &inputs), Ok(expected), "{text}");
        checked += 1;
    }
    assert!(checked > 45, "{checked} rows");
}

#[test]
fn f004_maps_go_by_key() {
    let text = "inputs.object.map(k, k)";
    assert_eq!(evaluate(text), Ok(json!(["a", "b", "with-dash"])));
    assert_eq!(evaluate("{'z': 1, 'y': 2}.map(k, k)"), Ok(json!(["y", "z"])));
    assert_eq!(evaluate("inputs.object.values()"), Ok(json!([2, 1, 3])));
}

#[test]
fn f004_whole_numbers_stay_whole_and_do_not_overflow() {
    assert_eq!(evaluate("9223372036854775807"), Ok(json!(i64::MAX)));
    assert_eq!(
        evaluate_on("inputs", &json!(u64::MAX)),
        Ok(json!(18_446_744_073_709_551_615.0_f64))
    );
    for text in [
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "4611686018427387904 * 2",
        "1 / 0",
        "1 % 0",
        "1.0 / 0.0",
        "0.0 / 0.0",
        "1e308 * 10.0",
        "int(1e300)",
        "double('NaN')",
        "double('inf')",
    ] {
        assert!(is_fault(text), "{text}: {:?}", evaluate(text));
    }
}

#[test]
fn f004_what_makes_no_sense_is_a_fault_without_the_value() {
    for text in [
        "inputs.m",
        "inputs.text.n",
        "inputs.n + 'x'",
        "inputs.list[9]",
        "inputs.n ? 1 : 2",
        "inputs.n < 'x'",
        "{'a': 1, 'a': 2}",
        "vars.x",
        "timestamp('soon')",
        "string(inputs.object)",
    ] {
        let Err(EvaluateError::Fault(message)) = evaluate(text) else { panic!("{text}") };
        assert!(!message.contains("llo") && !message.contains('7'), "{text}: {message}");
    }
    assert_eq!(evaluate("inputs.m || true"), Ok(json!(true)), "the other side decides");
    assert_eq!(evaluate("false && inputs.m"), Ok(json!(false)));
    assert!(is_fault("inputs.m && true"));
}

#[test]
fn f004_work_is_counted() {
    let many: Vec<u32> = (0..10_000).collect();
    let inputs = json!(many);
    assert_eq!(evaluate_on("size(inputs.map(x, x + 1))", &inputs), Ok(json!(10_000)));
    for text in [
        "inputs.map(x, inputs.map(y, x + y))",
        "inputs.filter(x, inputs.exists(y, y == x + 1))",
        "inputs.all(x, inputs.all(y, true))",
        "inputs.distinct()",
    ] {
        let ended = evaluate_on(text, &inputs);
        assert_eq!(ended, Err(EvaluateError::Operations(EXPRESSION_OPERATIONS_MAX)), "{text}");
    }
    // A limit is no fault that the other side could make up for.
    let ended = evaluate_on("inputs.all(x, inputs.all(y, true)) || true", &inputs);
    assert!(matches!(ended, Err(EvaluateError::Operations(_))));
}

#[test]
fn f004_texts_that_grow_end_at_the_bound() {
    let inputs = json!({"text": "x".repeat(1_000_000), "list": vec![1; 1_000]});
    let text = "inputs.list.map(a, inputs.text + inputs.text)";
    assert!(matches!(evaluate_on(text, &inputs), Err(EvaluateError::Operations(_))));
    let text = "inputs.text.replace('x', inputs.text)";
    assert!(matches!(evaluate_on(text, &inputs), Err(EvaluateError::Operations(_))));
    let text = "inputs.text + inputs.text";
    assert!(matches!(evaluate_on(text, &inputs), Err(EvaluateError::Size(_))));
    // A small text stands for a large result as well.
    let text = "inputs.list.map(a, inputs.text)";
    assert!(matches!(evaluate_on(text, &inputs), Err(EvaluateError::Size(_))));
}

#[test]
fn f004_what_cannot_be_read_is_said_before_it_is_evaluated() {
    for text in [
        "",
        "inputs.",
        "1 +",
        "a b",
        "inputs.n.matches('a')",
        "nothing(1)",
        "size(1, 2)",
        "b'bytes'",
        "Message{a: 1}",
        "inputs.?n",
        "now()",
        "@result",
        &"(".repeat(10_000),
        &format!("1{}", " + 1".repeat(3_000)),
        &format!("{}1{}", "[".repeat(60), "]".repeat(60)),
        &"!".repeat(10_000),
        &"x".repeat(20_000),
        &"1 ? 2 : ".repeat(1_000),
        &format!("x{}", ".y".repeat(4_000)),
    ] {
        let shown = &text[..text.len().min(40)];
        assert!(Program::compile(text).is_err(), "{shown}");
    }
}

#[test]
fn f004_what_an_expression_refers_to_is_known_before() {
    let references = |text: &str| {
        let program = Program::compile(text).expect("compiles");
        let paths = program.references().paths.iter();
        paths.map(|path| path.join(".")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        references("steps.a.outputs.x + vars.n + steps['b'].cost_micro"),
        "steps.a.outputs.x steps.b.cost_micro vars.n"
    );
    assert_eq!(references("steps.all.outputs.map(o, o.text + vars.x)"), "steps.all.outputs vars.x");
    assert_eq!(references("steps[inputs.which].status"), "inputs.which steps");
    let program = Program::compile("steps[inputs.which].status").expect("compiles");
    assert_eq!(program.references().fields("steps"), None, "it may be any of them");
    let fields = program.references().fields("inputs").expect("known");
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), ["which"]);
}
