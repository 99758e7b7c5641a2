use super::*;

fn read(query: &str) -> Result<OperationType, Fault> {
    check(&mut Request::new(query))
}

#[track_caller]
fn refused(query: &str, code: Code) {
    let fault = read(query).expect_err("refused");
    assert!(fault.is(code), "{fault}");
}

#[test]
fn t045_an_operation_is_known_by_its_name() {
    assert_eq!(read("{ tools { edges { cursor } } }"), Ok(OperationType::Query));
    assert_eq!(read("mutation { cancelRun { runId } }"), Ok(OperationType::Mutation));
    let both = "query a { x } subscription b { y }";
    let mut request = Request::new(both).operation_name("b");
    assert_eq!(check(&mut request), Ok(OperationType::Subscription));
}

#[test]
fn t045_what_is_no_graphql_is_told_by_its_place_and_not_repeated() {
    let fault = read("{ a \n c4nary( }").expect_err("refused");
    assert!(fault.is(Code::RequestInvalid));
    assert_eq!(fault.details["line"], 2);
    assert!(!fault.message.contains("c4nary"), "{fault}");
    refused("", Code::RequestInvalid);
}

#[test]
fn t045_depth_is_bounded_and_introspection_has_bounds_of_its_own() {
    let nested = |levels: usize| format!("{}a{}", "{ a ".repeat(levels), " }".repeat(levels));
    let nested = |levels: usize| nested(levels).replacen("a }", "}", 1);
    assert!(read(&nested(DEPTH_MAX)).is_ok());
    refused(&nested(DEPTH_MAX + 1), Code::RequestTooDeep);

    let types = "{ __schema { types { fields { args { type { ofType { ofType { ofType { ofType \
                 { ofType { ofType { ofType { name } } } } } } } } } } } } }";
    assert!(read(types).is_ok(), "the question every client asks");
    let loops =
        "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }";
    refused(loops, Code::RequestTooDeep);
    let hidden = "query { __type(name: \"Run\") { ...A } } \
                  fragment A on __Type { fields { type { ...B } } } \
                  fragment B on __Type { fields { type { ...C } } } \
                  fragment C on __Type { fields { type { fields { name } } } }";
    refused(hidden, Code::RequestTooDeep);
}

#[test]
fn t045_fields_at_the_top_are_few_however_they_are_written() {
    let aliases = |count: usize| {
        let fields: String =
            (0..count).map(|n| format!("a{n}: run(id: \"r\") {{ runId }} ")).collect();
        format!("{{ {fields} }}")
    };
    assert!(read(&aliases(ROOT_FIELDS_MAX)).is_ok());
    refused(&aliases(ROOT_FIELDS_MAX + 1), Code::RequestTooLarge);
    let spread = format!("{{ {} }} fragment F on Query {{ a b c d }}", "...F ".repeat(6));
    refused(&spread, Code::RequestTooLarge);
    let inline = format!("{{ {} }}", "... { a b c d } ".repeat(6));
    refused(&inline, Code::RequestTooLarge);
}

#[test]
fn t045_fragments_that_double_each_other_are_counted_and_not_unfolded() {
    let mut bomb = "{ ...F0 }".to_owned();
    for level in 0..40 {
        let next = level + 1;
        bomb.push_str(&format!(" fragment F{level} on Query {{ ...F{next} ...F{next} }}"));
    }
    bomb.push_str(" fragment F40 on Query { tools { edges { cursor } } }");
    refused(&bomb, Code::RequestTooLarge);
    let chain: String =
        (0..2_000).map(|n| format!("fragment F{n} on Q {{ ...F{} }} ", n + 1)).collect();
    refused(&format!("{{ ...F0 }} {chain}"), Code::RequestTooLarge);
    let turns = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }";
    assert!(read(turns).is_ok(), "the rules refuse it, and measuring it ends");
}

#[test]
fn t045_nesting_is_bounded_before_anything_is_parsed() {
    for (open, close) in [("[", "]"), ("{a:", "}")] {
        let levels = 20_000;
        let value = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        refused(
            &format!("{{ a(b: {value}) }}")[..DOCUMENT_BYTES_MAX.min(levels * 2)],
            Code::RequestTooDeep,
        );
    }
    refused(&"{a".repeat(20_000), Code::RequestTooDeep);
    refused(&"x".repeat(DOCUMENT_BYTES_MAX + 1), Code::RequestTooLarge);
    assert!(check_json(&b"[".repeat(JSON_DEPTH_MAX)).is_ok());
    let fault = check_json(&b"[".repeat(JSON_DEPTH_MAX + 1)).expect_err("refused");
    assert!(fault.is(Code::RequestTooDeep));
}

#[test]
fn t045_brackets_in_text_and_comments_count_for_nothing() {
    for (text, syntax, expect) in [
        (r#"{"a":"[[[[\"[["}"#, Syntax::Json, 1),
        (r#"{"a":"\\","b":[1]}"#, Syntax::Json, 2),
        ("{ a(b: \"{{{\") } # ((((\n{ c }", Syntax::GraphQl, 2),
        ("{ a(b: \"\"\"{{ \\\"\"\" {{ \" {{\"\"\") }", Syntax::GraphQl, 2),
        ("\"", Syntax::GraphQl, 0),
        ("\"\"\"", Syntax::GraphQl, 0),
        ("\"\\", Syntax::Json, 0),
        ("", Syntax::Json, 0),
    ] {
        assert_eq!(nesting(text.as_bytes(), syntax), expect, "{text}");
    }
}
