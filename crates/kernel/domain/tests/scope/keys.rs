//! What keys of a request stand for, and which cannot stand together.

use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_domain::scope::{InputSource, Target};
use wharf_vocab::limits::RUN_REFERENCES_MAX;
use wharf_vocab::{Code, ToolId};

use crate::{assert_refused, resolved};

#[test]
fn t034_a_name_stands_for_one_thing() {
    let pairs = [("x", "x.world"), ("x", "x.local"), ("x.world", "x.local")];
    for (one, other) in pairs {
        let both = json!({ one: "/a", other: "/b" });
        assert_refused(
            resolved(both, json!({}), None),
            Code::ScopeKeyConflict,
            other_of(one, other),
        );
    }
    let outputs = json!({ "x.world": "/a", "x.local": "/b" });
    assert_refused(resolved(json!({}), outputs, None), Code::ScopeKeyConflict, "x.world");
    let outputs = json!({ "x": "s3://b/k", "x.world": "/b" });
    assert_refused(resolved(json!({}), outputs, None), Code::ScopeKeyConflict, "x.world");
    // An input and an output may well have the same name.
    let plan = resolved(json!({ "x.world": "/a" }), json!({ "x.world": "/a" }), None);
    assert_eq!(plan.map(|plan| (plan.reads.len(), plan.writes.len())), Ok((1, 1)));
}

/// Keys are looked at in their order, so the later one is in the way.
fn other_of<'a>(one: &'a str, other: &'a str) -> &'a str {
    one.max(other)
}

#[test]
fn t034_two_outputs_do_not_share_a_file() {
    let same = [
        json!({ "a.world": "/x", "b.world": "/x" }),
        json!({ "a.world": "/x y", "b.world": "/x%20y" }),
        json!({ "a.world": "/x", "b": "world://w/x" }),
        json!({ "a.local": "/x", "b.local": "/@r2/x" }),
        json!({ "a.local": "/x", "b": "world://w/@r2/x" }),
    ];
    for outputs in same {
        let key =
            outputs.as_object().and_then(|o| o.keys().next_back().cloned()).expect("two keys");
        assert_refused(resolved(json!({}), outputs, None), Code::ScopeKeyConflict, &key);
    }
    let apart = json!({ "a.world": "/x", "b.local": "/x" });
    assert!(resolved(json!({}), apart, None).is_ok());
}

#[test]
fn t034_a_reference_is_text() {
    for value in [json!(1), json!(null), json!(true), json!(["/a"]), json!({ "path": "/a" })] {
        for key in ["x.world", "x.local"] {
            let refused = resolved(json!({ key: value }), json!({}), None);
            assert_refused(refused, Code::ScopeValueInvalid, key);
            let refused = resolved(json!({}), json!({ key: value }), None);
            assert_refused(refused, Code::ScopeValueInvalid, key);
        }
    }
}

#[test]
fn t034_a_suffix_needs_a_name_before_it() {
    for key in [".world", ".local"] {
        let refused = resolved(json!({ key: "/a" }), json!({}), None);
        assert_refused(refused, Code::ScopeValueInvalid, key);
        let refused = resolved(json!({}), json!({ key: "/a" }), None);
        assert_refused(refused, Code::ScopeValueInvalid, key);
    }
}

#[test]
fn t034_two_dots_make_a_literal_key() {
    let inputs = json!({
        "name..world": "/not a path/..", "name..local": 5, "a...world": "x", "..world": "y",
        "name.world.more": "z", "world": "/w", "local": "/l", "NAME.WORLD": "/..",
    });
    let plan = resolved(inputs, json!({}), None).expect("all of it is inline");
    let wanted = json!({
        "name.world": "/not a path/..", "name.local": 5, "a..world": "x", ".world": "y",
        "name.world.more": "z", "world": "/w", "local": "/l", "NAME.WORLD": "/..",
    });
    assert_eq!(Value::Object(plan.inputs), wanted);
    assert!(plan.reads.is_empty());
    // The literal key is a name like any other, beside the reference of the same name.
    let both = json!({ "name..world": 1, "name.world": "/a" });
    let plan = resolved(both, json!({}), None).expect("two names");
    assert_eq!(plan.inputs.keys().collect::<Vec<_>>(), ["name", "name.world"]);
    // An output with a literal key still says where it goes.
    let outputs = json!({ "name..world": "s3://bucket/key" });
    let plan = resolved(json!({}), outputs, None).expect("an address");
    assert_eq!(plan.writes.get("name.world"), Some(&Target::Uri));
}

#[test]
fn t034_an_output_says_where_it_goes() {
    for value in [json!("/a"), json!("a"), json!(""), json!("see s3://b/k"), json!(null), json!(3)]
    {
        let refused = resolved(json!({}), json!({ "x": value }), None);
        assert_refused(refused, Code::ScopeValueInvalid, "x");
    }
    // The escape makes a plain name, and a plain name needs an address.
    let refused = resolved(json!({}), json!({ "x..world": "/a" }), None);
    assert_refused(refused, Code::ScopeValueInvalid, "x..world");
}

#[test]
fn t034_references_are_counted() {
    let many = |count: usize| {
        let keys = (0..count).map(|n| (format!("k{n:04}.world"), json!(format!("/f{n}"))));
        Value::Object(keys.collect())
    };
    let most = many(RUN_REFERENCES_MAX);
    assert!(resolved(most.clone(), most, None).is_ok());
    let more = many(RUN_REFERENCES_MAX + 1);
    for (inputs, outputs) in [(more.clone(), json!({})), (json!({}), more)] {
        let fault = resolved(inputs, outputs, None).expect_err("too many");
        assert!(fault.is(Code::ScopeValueInvalid), "{fault:?}");
    }
    // Inline values are no references.
    let inline: Value =
        (0..1_000).map(|n| (format!("k{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    assert!(resolved(inline, json!({}), None).is_ok());
}

#[test]
fn t034_a_hostile_key_is_cut_in_the_refusal() {
    let key = format!("{}.world", "k".repeat(1_000_000));
    let fault = resolved(json!({ key: "/.." }), json!({}), None).expect_err("dots");
    assert!(serde_json::to_string(&fault).expect("JSON").len() < 1_000);
}

#[test]
fn t024_only_a_whole_address_is_a_reference() {
    let inputs = json!({
        "a": "https://a.example/x.png",
        "b": "look at https://a.example/x.png",
        "c": "https://a.example/x.png please",
        "d": ["https://a.example/x.png"],
        "e": { "url": "https://a.example/x.png" },
        "f": "s3://bucket/key",
        "g": "://x",
    });
    let plan = resolved(inputs.clone(), json!({}), None).expect("fine");
    assert_eq!(plan.reads.keys().collect::<Vec<_>>(), ["a", "f"]);
    assert!(plan.reads.values().all(|source| *source == InputSource::Uri));
    assert_eq!(Value::Object(plan.inputs), inputs, "the rest stays as it came");
}

#[test]
fn t024_a_literal_input_is_never_a_reference() {
    for text in ["https://a.example/x?sig=1", "world://other/secret", "world://w/../x"] {
        let plan = resolved(json!({ "prompt": text }), json!({}), None).expect("a prompt");
        assert_eq!(plan.inputs["prompt"], text, "as it came");
        assert!(plan.reads.is_empty() && plan.input_uris.0.is_empty());
    }
    // A suffix is no guess, so it holds for a literal input as well.
    let plan = resolved(json!({ "prompt.world": "/p.txt" }), json!({}), None).expect("a file");
    assert!(matches!(plan.reads.get("prompt"), Some(InputSource::Object(_))));
}

#[test]
fn t024_the_schema_says_which_inputs_are_literal() {
    let schema = json!({ "type": "object", "properties": {
        "prompt": { "type": "string", "x-wharf-literal": true },
        "image": { "type": "string", "x-wharf-literal": false },
        "odd": { "type": "string", "x-wharf-literal": "true" },
        "plain": { "type": "string" },
    }});
    let tool = ToolDef::new(ToolId::new("a/b").expect("a tool id"), "", schema);
    let literal = ["prompt", "image", "odd", "plain", "other"].map(|name| tool.is_literal(name));
    assert_eq!(literal, [true, false, false, false, false]);
    let none = ToolDef::new(ToolId::new("a/b").expect("a tool id"), "", json!(true));
    assert!(!none.is_literal("prompt"));
}

#[test]
fn t035_what_a_record_keeps_lets_nobody_in() {
    let secret = "https://user:pass@a.example:8443/x.png?X-Amz-Signature=abc&token=t#frag";
    let plan = resolved(json!({ "in": secret }), json!({ "out": secret }), None).expect("fine");
    let kept = "https://a.example:8443/x.png";
    assert_eq!((&plan.inputs["in"], &plan.outputs["out"]), (&json!(kept), &json!(kept)));
    // What the provider is given is whole; it is kept apart and never shown.
    assert_eq!(plan.input_uris.0["in"], secret);
    assert_eq!(plan.output_uris.0["out"], secret);
    let shown = format!("{plan:?}");
    for word in ["user", "pass", "Signature", "token", "frag"] {
        assert!(!shown.contains(word), "{word} stands in {shown}");
    }
}

#[test]
fn t035_records_name_files_by_world_and_path() {
    let inputs = json!({ "a.world": "/x/y.png", "b.local": "/@r1/s.json", "c.local": "/own" });
    let outputs = json!({ "d.world": "/z", "e.local": "/t" });
    let plan = resolved(inputs, outputs, None).expect("fine");
    let wanted = json!({
        "a": "world://w/x/y.png", "b": "world://w/@r1/s.json", "c": "world://w/@r2/own",
    });
    assert_eq!(Value::Object(plan.inputs), wanted);
    let wanted = json!({ "d": "world://w/z", "e": "world://w/@r2/t" });
    assert_eq!(Value::Object(plan.outputs), wanted);
}
