//! Reads JSON that others wrote: not too deep, and with errors that name the place but never the
//! value. Every edge words what is wrong with a message by this, so that none repeats what it was
//! sent: the texts of serde quote values, so none of them is shown or read here.

mod tree;

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::JSON_DEPTH_MAX;
use crate::{Code, Fault};
use tree::{Misfit, Node};

/// Reads a body that must be an object, the JSON form of `T`.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    read_to(bytes, JSON_DEPTH_MAX)
}

/// The same for a body that may be nested as deep as this.
pub fn read_to<T: DeserializeOwned>(bytes: &[u8], depth_max: usize) -> Result<T, Fault> {
    check_depth(bytes, depth_max)?;
    let node: Node = serde_json::from_slice(bytes).map_err(|error| no_json(&error))?;
    read_node(node, BODY)
}

/// Reads a body that may be any JSON.
pub fn value(bytes: &[u8]) -> Result<Value, Fault> {
    check_depth(bytes, JSON_DEPTH_MAX)?;
    serde_json::from_slice(bytes).map_err(|error| no_json(&error))
}

/// Makes a `T` of JSON that was read already. Errors call it `what`, such as "The body".
pub fn fit<T: DeserializeOwned>(value: Value, what: &str) -> Result<T, Fault> {
    read_node(Node::from(value), what)
}

fn read_node<T: DeserializeOwned>(node: Node, what: &str) -> Result<T, Fault> {
    serde_path_to_error::deserialize(node).map_err(|error| {
        let path = error.path().to_string();
        describe(what, &path, error.into_inner())
    })
}

/// How long a value is as JSON text, without writing it anywhere.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// What errors call a body.
const BODY: &str = "The body";
/// Longest path of a field that an error names; those of messages are shorter.
const PATH_SHOWN_BYTES_MAX: usize = 120;

/// Refuses nesting that would cost too much to read, before anything is built of it.
fn check_depth(bytes: &[u8], max: usize) -> Result<(), Fault> {
    if is_deeper(bytes, max) {
        let message = format!("The body is nested more than {max} levels deep.");
        return Err(Fault::new(Code::RequestTooDeep, message));
    }
    Ok(())
}

/// Whether brackets outside of texts are nested deeper, in one pass and without recursion.
#[must_use]
pub fn is_deeper(bytes: &[u8], max: usize) -> bool {
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'[' | b'{' if !text => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' if !text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
fn no_json(error: &serde_json::Error) -> Fault {
    let (line, column) = (error.line(), error.column());
    let message = format!("{BODY} is not valid JSON at line {line}, column {column}.");
    Fault::new(Code::RequestInvalid, message).with("line", line).with("column", column)
}

/// Says what is wrong without a word of what was sent but the name of an unknown field.
fn describe(what: &str, path: &str, misfit: Misfit) -> Fault {
    match misfit {
        Misfit::Missing(field) => {
            Fault::invalid(field, format!("{what} lacks the field `{field}`."))
        }
        Misfit::Twice(field) => {
            Fault::invalid(field, format!("{what} has the field `{field}` more than once."))
        }
        Misfit::Unknown { name, known } => unknown_field(what, &name, known),
        Misfit::Wanted(_) | Misfit::Refused(_) if path == "." => {
            Fault::invalid("body", format!("{what} must be a JSON object."))
        }
        Misfit::Wanted(wanted) => of_field(what, path, &format!("must be {wanted}")),
        Misfit::Refused(why) => of_field(what, path, &format!("does not fit; {why}")),
    }
}

fn of_field(what: &str, path: &str, wrong: &str) -> Fault {
    // A path goes through names that a caller may have chosen.
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    if path.len() > PATH_SHOWN_BYTES_MAX || !path.chars().all(is_name) {
        let message = format!("{what} has a field that is not valid.");
        return Fault::new(Code::RequestInvalid, message);
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    Fault::invalid(path, format!("The field `{path}` {wrong}.")).with("path", pointer)
}

fn unknown_field(what: &str, name: &str, known: &[&str]) -> Fault {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_name) {
        let message = format!("{what} has a field whose name the API does not know.");
        return Fault::new(Code::RequestInvalid, message);
    }
    let nearest = known.iter().map(|known| (strsim::levenshtein(name, known), known)).min();
    let hint = match nearest {
        Some((distance, known)) if distance <= 2 => format!("did you mean `{known}`?"),
        _ => "see /openapi.json for those it may have.".to_owned(),
    };
    Fault::invalid(name, format!("{what} has an unknown field `{name}`; {hint}"))
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
        world: Option<crate::WorldId>,
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
        refused(
            r#"{"tool": "a/b", "mode": 7}"#,
            invalid,
            "The field `mode` must be `real` or `mock`.",
        );
        refused(
            r#"{"tool": "a/b", "tool": "a/c"}"#,
            invalid,
            "The body has the field `tool` more than once.",
        );
        refused(
            r#"{"tool": "a/b", "world": "c4nary c4nary"}"#,
            invalid,
            "The field `world` does not fit; a world id must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}.",
        );
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
            r#"{"tool": "a/b", "world": "c4nary c4nary"}"#,
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
