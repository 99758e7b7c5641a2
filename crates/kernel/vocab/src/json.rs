//! Reads JSON that others wrote: not too deep, and with errors that name the place but never the
//! value. Every edge words what is wrong with a message by this, so that none repeats what it was
//! sent: serde's own texts quote values.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::error::Category;

use crate::limits::JSON_DEPTH_MAX;
use crate::{Code, Fault};

/// Reads a body that must be an object, the JSON form of `T`.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    check_depth(bytes)?;
    if bytes.trim_ascii_start().starts_with(b"[") {
        // Serde would take the items for fields in order.
        return Err(no_object(BODY));
    }
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let path = error.path().to_string();
        // A value that cannot name one of several words is called a wrong letter, too.
        let is_json = || serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        match error.inner().classify() {
            Category::Syntax if path != "." && is_json() => misfit(BODY, &path, ""),
            _ => describe(BODY, &path, error.inner()),
        }
    })?;
    from.end().map_err(|error| describe(BODY, ".", &error))?;
    Ok(value)
}

/// Reads a body that may be any JSON.
pub fn value(bytes: &[u8]) -> Result<Value, Fault> {
    check_depth(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| describe(BODY, ".", &error))
}

/// Makes a `T` of JSON that was read already. Errors call it `what`, such as "The body".
pub fn fit<T: DeserializeOwned>(value: Value, what: &str) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        describe(what, &path, error.inner())
    })
}

/// What errors call a body.
const BODY: &str = "The body";
/// Longest path of a field that an error names; those of messages are shorter.
const PATH_SHOWN_BYTES_MAX: usize = 120;

/// Refuses nesting that would cost too much to read, before anything is built of it.
fn check_depth(bytes: &[u8]) -> Result<(), Fault> {
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'[' | b'{' if !text => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    let message =
                        format!("The body is nested more than {JSON_DEPTH_MAX} levels deep.");
                    return Err(Fault::new(Code::RequestTooDeep, message));
                }
            }
            b']' | b'}' if !text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Says what is wrong without a word of what was sent but the name of an unknown field.
fn describe(what: &str, path: &str, error: &serde_json::Error) -> Fault {
    if matches!(error.classify(), Category::Syntax | Category::Eof | Category::Io) {
        let (line, column) = (error.line(), error.column());
        let message = format!("{what} is not valid JSON at line {line}, column {column}.");
        return Fault::new(Code::RequestInvalid, message).with("line", line).with("column", column);
    }
    let text = error.to_string();
    if let Some(rest) = text.strip_prefix("missing field `") {
        let field = rest.split('`').next().unwrap_or_default();
        return invalid(field, format!("{what} lacks the field `{field}`."));
    }
    if let Some(rest) = text.strip_prefix("unknown field `") {
        return unknown_field(what, rest);
    }
    // What serde expected is ours; it stands behind the last such phrase, so that a value which
    // holds the phrase itself cannot bring its own words in.
    let expected = text.rsplit_once(", expected ").map_or("something else", |(_, expected)| {
        expected.rsplit_once(" at line ").map_or(expected, |(expected, _)| expected)
    });
    if path == "." {
        return no_object(what);
    }
    misfit(what, path, expected)
}

fn misfit(what: &str, path: &str, expected: &str) -> Fault {
    // A path goes through names that a caller may have chosen.
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    if path.len() > PATH_SHOWN_BYTES_MAX || !path.chars().all(is_name) {
        let message = format!("{what} has a field that is not valid.");
        return Fault::new(Code::RequestInvalid, message);
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    let message = match in_plain_words(expected) {
        Some(wanted) => format!("The field `{path}` must be {wanted}."),
        None => format!("The field `{path}` is not valid."),
    };
    invalid(path, message).with("path", pointer)
}

/// What serde expects, as somebody says it who knows JSON but not Rust.
fn in_plain_words(expected: &str) -> Option<String> {
    let number = |most: u64| Some(format!("a whole number from 0 to {most}"));
    let words = match expected {
        "u8" => return number(u8::MAX.into()),
        "u16" => return number(u16::MAX.into()),
        "u32" => return number(u32::MAX.into()),
        "u64" | "usize" => return number(u64::MAX),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a character" | "str" | "string" => "text",
        "a boolean" => "true or false",
        "unit" | "null" => "null",
        _ if expected.starts_with("a sequence") || expected.starts_with("a tuple") => "a list",
        _ if expected.starts_with("a map") || expected.starts_with("struct ") => "a JSON object",
        // The names that a field may have are shown as they are.
        _ if expected.starts_with('`') || expected.starts_with("one of `") => expected,
        "a value that is not null" => expected,
        _ => return None,
    };
    Some(words.to_owned())
}

fn no_object(what: &str) -> Fault {
    invalid("body", format!("{what} must be a JSON object."))
}

/// A field cannot be used.
fn invalid(field: &str, message: impl Into<String>) -> Fault {
    Fault::new(Code::RequestInvalid, message).with("field", field)
}

/// `rest` is `NAME`, expected one of `A`, `B` …
fn unknown_field(what: &str, rest: &str) -> Fault {
    let (name, expected) = rest.split_once('`').unwrap_or((rest, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_name) {
        let message = format!("{what} has a field whose name the API does not know.");
        return Fault::new(Code::RequestInvalid, message);
    }
    let known = expected.split('`').skip(1).step_by(2);
    let nearest = known.map(|known| (distance(name, known), known)).min();
    let hint = match nearest {
        Some((distance, known)) if distance <= 2 => format!("did you mean `{known}`?"),
        _ => "see /openapi.json for those it may have.".to_owned(),
    };
    invalid(name, format!("{what} has an unknown field `{name}`; {hint}"))
}

/// How many letters must change to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request like those of the API.
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading is tried")]
    struct CreateRun {
        tool: String,
        #[serde(default)]
        inputs: Value,
        run_id: Option<String>,
        timeout_ms: Option<u64>,
        mode: Option<Mode>,
        tags: Option<std::collections::BTreeMap<String, u8>>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Real,
        Mock,
    }

    #[track_caller]
    fn refused(body: &str, code: Code, message: &str) {
        let fault = read::<CreateRun>(body.as_bytes()).expect_err("refused");
        assert!(fault.is(code), "{fault}");
        assert_eq!(fault.message, message);
    }

    #[test]
    fn an_error_names_the_place() {
        let invalid = Code::RequestInvalid;
        refused(
            r#"{"tool": "wharf/echo", "input": {}}"#,
            invalid,
            "The body has an unknown field `input`; did you mean `inputs`?",
        );
        refused(
            r#"{"tool": "a/b", "zebra": 1}"#,
            invalid,
            "The body has an unknown field `zebra`; see /openapi.json for those it may have.",
        );
        refused(r#"{"inputs": {}}"#, invalid, "The body lacks the field `tool`.");
        refused(
            "{\"tool\": \"a/b\",\n \"timeout_ms\": \"soon, expected never\"}",
            invalid,
            "The field `timeout_ms` must be a whole number from 0 to 18446744073709551615.",
        );
        refused(
            r#"{"tool": "a/b", "timeout_ms": -1}"#,
            invalid,
            "The field `timeout_ms` must be a whole number from 0 to 18446744073709551615.",
        );
        refused(r#"{"tool": 7}"#, invalid, "The field `tool` must be text.");
        refused(
            r#"{"tool": "a/b", "mode": "c4nary"}"#,
            invalid,
            "The field `mode` must be `real` or `mock`.",
        );
        refused(r#"{"tool": "a/b", "mode": 7}"#, invalid, "The field `mode` is not valid.");
        refused("[1]", invalid, "The body must be a JSON object.");
        refused("\"x\"", invalid, "The body must be a JSON object.");
        refused("{\n\"tool\": c4nary}", invalid, "The body is not valid JSON at line 2, column 9.");
        refused("", invalid, "The body is not valid JSON at line 1, column 0.");
        refused(
            "{\"tool\":\"a/b\"} x",
            invalid,
            "The body is not valid JSON at line 1, column 16.",
        );
    }

    #[test]
    fn nobody_needs_to_know_the_names_of_types() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only reading is tried")]
        struct All {
            small: Option<u32>,
            signed: Option<i64>,
            real: Option<f64>,
            flag: Option<bool>,
            list: Option<Vec<String>>,
            map: Option<std::collections::BTreeMap<String, u8>>,
            nested: Option<Box<All>>,
            none: Option<()>,
        }
        for (field, wrong, message) in [
            ("small", "5000000000", "must be a whole number from 0 to 4294967295"),
            ("small", "1.5", "must be a whole number from 0 to 4294967295"),
            ("signed", "\"1\"", "must be a whole number"),
            ("real", "true", "must be a number"),
            ("flag", "\"yes\"", "must be true or false"),
            ("list", "{}", "must be a list"),
            ("map", "[]", "must be a JSON object"),
            ("nested", "\"x\"", "must be a JSON object"),
            ("none", "1", "must be null"),
        ] {
            let body = format!("{{\"{field}\": {wrong}}}");
            let fault = read::<All>(body.as_bytes()).expect_err(field);
            assert_eq!(fault.message, format!("The field `{field}` {message}."));
        }
    }

    #[test]
    fn nothing_of_a_value_is_shown() {
        for body in [
            r#"{"tool": {"c4nary": 1}}"#,
            r#"{"tool": "a/b", "mode": "c4nary"}"#,
            r#"{"tool": "a/b", "timeout_ms": "c4nary, expected c4nary at line 1"}"#,
            r#"{"tool": "a/b", "run_id": ["c4nary"]}"#,
            r#"{"tool": "a/b", "c4nary c4nary": 1}"#,
            r#"{"tool": c4nary}"#,
            r#""c4nary""#,
            r#"{"tool": "a/b", "tags": {"c4nary c4nary": "x"}}"#,
        ] {
            let fault = read::<CreateRun>(body.as_bytes()).expect_err("refused");
            let shown = format!("{fault:?}");
            assert!(!shown.contains("c4nary"), "{body}: {shown}");
            let Ok(body) = value(body.as_bytes()) else { continue };
            let fault = fit::<CreateRun>(body.clone(), "The body").expect_err("refused");
            let shown = format!("{fault:?}");
            assert!(!shown.contains("c4nary"), "{body}: {shown}");
        }
        let fault = value(b"{c4nary").expect_err("no JSON");
        assert!(!format!("{fault:?}").contains("c4nary"), "{fault:?}");
    }

    #[test]
    fn what_was_read_already_is_worded_alike() {
        let told = |json: &str| {
            let value = value(json.as_bytes()).expect("JSON");
            fit::<CreateRun>(value, "The offer").expect_err("refused").message
        };
        assert_eq!(told(r#"{"inputs": {}}"#), "The offer lacks the field `tool`.");
        assert_eq!(told(r#"{"tool": 7}"#), "The field `tool` must be text.");
        assert_eq!(
            told(r#"{"tool": "", "mode": "x"}"#),
            "The field `mode` must be `real` or `mock`."
        );
        assert_eq!(told("7"), "The offer must be a JSON object.");
    }

    #[test]
    fn deep_nesting_is_refused_before_it_is_built() {
        let nested = |depth: usize| {
            let inner = "[".repeat(depth - 1) + &"]".repeat(depth - 1);
            format!(r#"{{"tool": "a/b", "inputs": {inner}}}"#)
        };
        assert!(read::<CreateRun>(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let message = "The body is nested more than 64 levels deep.";
        refused(&nested(JSON_DEPTH_MAX + 1), Code::RequestTooDeep, message);
        refused(&"[".repeat(1_000_000), Code::RequestTooDeep, message);
        let brackets = format!(r#"{{"tool": "a/b", "inputs": {{"x": "{}\""}}}}"#, "[{".repeat(99));
        assert!(read::<CreateRun>(brackets.as_bytes()).is_ok(), "text does not count");
    }
}
