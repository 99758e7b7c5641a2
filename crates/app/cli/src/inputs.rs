//! What a person types as inputs or as an answer, made into JSON.

use std::io::Read as _;
use std::path::{Component, Path};

use serde_json::{Value, json};
use wharf_vocab::{Code, Object};

use crate::failure::{CliError, Result};
use crate::shape::{SchemaNode, guess};

/// The endings by which an input names a file instead of carrying its content.
const SCOPES: [&str; 2] = [".world", ".local"];

/// Makes an object of `key=value` pairs, each typed by the schema when there is one. What does not
/// fit the schema is refused with `code`.
pub(crate) fn object(pairs: &[String], schema: Option<&Value>, code: Code) -> Result<Object> {
    let shape = schema.map(SchemaNode::new);
    let mut object = Object::new();
    for pair in pairs {
        let (key, text) = pair
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| CliError::usage(format!("{pair:?} is not of the form key=value")))?;
        let field = field_of(shape, key, code)?;
        let is_list = field.is_some_and(|field| field.types().contains(&"array"));
        let value = read_field(key, field, text).map_err(|wanted| {
            CliError::new(code, format!("{key} must be {wanted}, not {text:?}"))
        })?;
        match (object.get_mut(key), value) {
            (None, value) => {
                object.insert(key.to_owned(), value);
            }
            (Some(Value::Array(all)), Value::Array(more)) if is_list => all.extend(more),
            (Some(_), _) => return Err(CliError::usage(format!("{key} is given twice"))),
        }
    }
    Ok(object)
}

/// The same for inputs in which expressions may stand: what has one is a text, whatever the schema
/// says, and becomes what it gives when it is evaluated.
pub(crate) fn templates(pairs: &[String], schema: Option<&Value>, code: Code) -> Result<Object> {
    let has_expression = |pair: &&String| {
        pair.split_once('=').is_some_and(|(key, text)| !key.is_empty() && text.contains("${"))
    };
    let (given, plain): (Vec<&String>, Vec<&String>) = pairs.iter().partition(has_expression);
    let plain: Vec<String> = plain.into_iter().cloned().collect();
    let mut object = object(&plain, schema, code)?;
    let shape = schema.map(SchemaNode::new);
    for (key, text) in given.iter().filter_map(|pair| pair.split_once('=')) {
        field_of(shape, key, code)?;
        if object.insert(key.to_owned(), Value::from(text)).is_some() {
            return Err(CliError::usage(format!("{key} is given twice")));
        }
    }
    Ok(object)
}

/// The schema of one input; an error if the object takes no such input.
fn field_of<'a>(
    shape: Option<SchemaNode<'a>>,
    key: &str,
    code: Code,
) -> Result<Option<SchemaNode<'a>>> {
    let Some(shape) = shape else { return Ok(None) };
    if let Some(literal) = escaped(key) {
        // The tool sees the name with one dot, so that is the one its schema speaks of.
        return match shape.field(&literal) {
            None if shape.is_closed() => Err(unknown(shape, &literal, code)),
            field => Ok(field),
        };
    }
    let Some(base) = SCOPES.iter().find_map(|scope| key.strip_suffix(scope)) else {
        return match shape.field(key) {
            None if shape.is_closed() => Err(unknown(shape, key, code)),
            field => Ok(field),
        };
    };
    // A scoped input is a path, whatever the tool makes of what lies there.
    if shape.is_closed() && shape.field(base).is_none() {
        return Err(unknown(shape, key, code));
    }
    Ok(None)
}

/// The name that `name..world` stands for: an input that is called `name.world` itself.
fn escaped(key: &str) -> Option<String> {
    SCOPES.iter().find_map(|scope| {
        let base = key.strip_suffix(scope)?.strip_suffix('.')?;
        Some(format!("{base}{scope}"))
    })
}

fn unknown(shape: SchemaNode<'_>, key: &str, code: Code) -> CliError {
    let known: Vec<_> = shape.fields().into_iter().map(|(name, _)| name).collect();
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    CliError::new(code, format!("there is no input {key}; the inputs are: {known}"))
}

/// Reads one input; the error completes "key must be …".
fn read_field(
    key: &str,
    field: Option<SchemaNode<'_>>,
    text: &str,
) -> std::result::Result<Value, String> {
    let Some(field) = field else {
        // `1` is fine text where a path is expected.
        let is_scoped = SCOPES.iter().any(|scope| key.ends_with(scope)) && escaped(key).is_none();
        return Ok(if is_scoped { Value::String(text.to_owned()) } else { guess(text) });
    };
    if field.is_only("array") && !text.starts_with('[') {
        // One item of a list; the list grows when the key is repeated.
        let item = field.items().map_or_else(|| Ok(guess(text)), |items| items.read(text));
        return item.map(|item| Value::Array(vec![item]));
    }
    field.read(text)
}

/// Makes an answer of what was typed after the ask's id.
pub(crate) fn answer(words: &[String], schema: Option<&Value>) -> Result<Value> {
    let Some(schema) = schema else { return Ok(guess(&words.join(" "))) };
    let shape = SchemaNode::new(schema);
    if shape.is_only("object") {
        let is_json = words.len() == 1 && words[0].starts_with('{');
        let is_plain = !is_json && words.iter().all(|word| !word.contains('='));
        if let (true, Some((key, field))) = (is_plain, sole_field(shape)) {
            return Ok(json!({ key: read_answer(field, words)? }));
        }
        if !is_json {
            return object(words, Some(schema), Code::AskAnswerInvalid).map(Value::Object);
        }
    }
    read_answer(shape, words)
}

/// The field that a plain value must be meant for: the only one, or the only one that must be there.
fn sole_field(shape: SchemaNode<'_>) -> Option<(&str, SchemaNode<'_>)> {
    let mut fields = shape.fields();
    if fields.len() > 1 {
        fields.retain(|(key, _)| shape.requires(key));
    }
    if fields.len() == 1 { fields.pop() } else { None }
}

fn read_answer(shape: SchemaNode<'_>, words: &[String]) -> Result<Value> {
    let wrong = |wanted: String| {
        let message = format!("the answer must be {wanted}, not {:?}", words.join(" "));
        CliError::new(Code::AskAnswerInvalid, message)
    };
    let is_json = words.len() == 1 && words[0].starts_with('[');
    if shape.is_only("array") && !is_json {
        let item = |word: &String| match shape.items() {
            Some(items) => items.read(word),
            None => Ok(guess(word)),
        };
        let items: std::result::Result<Vec<_>, _> = words.iter().map(item).collect();
        return items.map(Value::Array).map_err(wrong);
    }
    shape.read(&words.join(" ")).map_err(wrong)
}

/// Makes the object that says where outputs go; each is a reference, so each is text.
pub(crate) fn outputs(pairs: &[String]) -> Result<Object> {
    let mut object = Object::new();
    for pair in pairs {
        let (key, text) = pair
            .split_once('=')
            .filter(|(key, text)| !key.is_empty() && !text.is_empty())
            .ok_or_else(|| {
                CliError::usage(format!("{pair:?} is not of the form key.world=/path"))
            })?;
        if object.insert(key.to_owned(), Value::String(text.to_owned())).is_some() {
            return Err(CliError::usage(format!("the output {key} is given twice")));
        }
    }
    Ok(object)
}

/// Reads JSON given as text, as `@file`, or as `-` for standard input.
pub(crate) fn json(source: &str) -> Result<Value> {
    let (text, from) = match source.strip_prefix('@') {
        Some(path) => {
            let path = Path::new(path);
            let text = std::fs::read_to_string(path)
                .map_err(|error| CliError::unreadable(path.display(), &error))?;
            (text, format!("{} holds", path.display()))
        }
        None if source == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| CliError::unreadable("standard input", &error))?;
            (text, "standard input holds".to_owned())
        }
        None => (source.to_owned(), "that is".to_owned()),
    };
    serde_json::from_str(&text)
        .map_err(|error| CliError::usage(format!("{from} no valid JSON: {error}")))
}

/// The path from the root, because the core has another working directory.
pub(crate) fn absolute_path(folder: &Path) -> Result<String> {
    let unreadable = |error| CliError::unreadable(folder.display(), &error);
    let mut path = std::path::absolute(folder).map_err(unreadable)?;
    // Where `..` leads depends on what is linked where, so the system must say.
    if path.components().any(|part| part == Component::ParentDir) {
        path = path.canonicalize().map_err(unreadable)?;
    }
    let wrong = |_| CliError::usage(format!("{} is not valid UTF-8", folder.display()));
    path.into_os_string().into_string().map_err(wrong)
}

/// The path without links and detours if it lies on this machine, else from the root.
pub(crate) fn canonical_path(folder: &Path) -> Result<String> {
    match folder.canonicalize() {
        Ok(path) => absolute_path(&path),
        Err(_) => absolute_path(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "label": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "image": {"type": "string"},
                "options": {"type": "object"},
            },
            "additionalProperties": false,
        })
    }

    #[test]
    fn pairs_are_typed_by_the_schema() {
        let pairs = strings(&["n=20", "label=7", "options={\"a\":1}", "image.world=/1"]);
        let expect = json!({"n": 20, "label": "7", "options": {"a": 1}, "image.world": "/1"});
        assert_eq!(
            object(&pairs, Some(&schema()), Code::ToolInvalidInput).map(Value::Object),
            Ok(expect)
        );
    }

    #[test]
    fn t034_a_scoped_input_is_a_path_and_an_escaped_one_is_none() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "n.world": {"type": "integer"}},
            "additionalProperties": false,
        });
        let made = |pair: &str| {
            object(&strings(&[pair]), Some(&schema), Code::ToolInvalidInput).map(Value::Object)
        };
        assert_eq!(made("n.world=/p.txt"), Ok(json!({"n.world": "/p.txt"})));
        assert_eq!(made("n.world=7"), Ok(json!({"n.world": "7"})));
        assert_eq!(made("n.local=/@r1/s"), Ok(json!({"n.local": "/@r1/s"})));
        assert_eq!(made("n..world=7"), Ok(json!({"n..world": 7})));
        assert!(made("n..local=7").is_err());
        assert!(made("m.world=/x").is_err());
        let free = object(&strings(&["a..world=7", "a.local=7"]), None, Code::ToolInvalidInput);
        assert_eq!(free.map(Value::Object), Ok(json!({"a..world": 7, "a.local": "7"})));
    }

    #[test]
    fn a_value_may_hold_an_equals_sign_and_be_empty() {
        let made = object(&strings(&["label=a=b"]), Some(&schema()), Code::ToolInvalidInput)
            .expect("made");
        assert_eq!(made["label"], "a=b");
        let made =
            object(&strings(&["label="]), Some(&schema()), Code::ToolInvalidInput).expect("made");
        assert_eq!(made["label"], "");
    }

    #[test]
    fn a_list_grows_with_each_repetition() {
        let pairs = strings(&["tags=1", "tags=two", "tags=[\"three\"]"]);
        let made = object(&pairs, Some(&schema()), Code::ToolInvalidInput).expect("made");
        assert_eq!(made["tags"], json!(["1", "two", "three"]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (pairs, part, code) in [
            (vec!["n=many"], "n must be a whole number", "tool.invalid_input"),
            (
                vec!["m=1"],
                "there is no input m; the inputs are: image, label",
                "tool.invalid_input",
            ),
            (vec!["n"], "\"n\" is not of the form key=value", "request.invalid"),
            (vec!["=1"], "not of the form key=value", "request.invalid"),
            (vec!["n=1", "n=2"], "n is given twice", "request.invalid"),
        ] {
            let failure = object(&strings(&pairs), Some(&schema()), Code::ToolInvalidInput)
                .expect_err("refused");
            assert!(failure.message().contains(part), "{}", failure.message());
            assert!(matches!(&failure, CliError::Reported { error, .. } if error.code() == code));
            assert_eq!(failure.exit().number(), 2);
        }
    }

    #[test]
    fn without_a_schema_values_are_guessed() {
        let made = object(&strings(&["a=1", "b=x", "c.local=1"]), None, Code::ToolInvalidInput)
            .expect("made");
        assert_eq!(Value::Object(made), json!({"a": 1, "b": "x", "c.local": "1"}));
    }

    #[test]
    fn answers_follow_the_question() {
        for (schema, words, expect) in [
            (json!({"type": "string"}), vec!["dark", "blue"], json!("dark blue")),
            (json!({"type": "string"}), vec!["a=b"], json!("a=b")),
            (json!({"type": "boolean"}), vec!["yes"], json!(true)),
            (json!({"type": "array", "items": {"type": "integer"}}), vec!["1", "2"], json!([1, 2])),
            (json!({"type": "array"}), vec!["[1]"], json!([1])),
            (
                json!({"type": "object", "properties": {"color": {"type": "string"}}}),
                vec!["blue"],
                json!({"color": "blue"}),
            ),
            (
                json!({
                    "type": "object",
                    "required": ["color"],
                    "properties": {"color": {"type": "string"}, "why": {"type": "string"}},
                }),
                vec!["dark", "blue"],
                json!({"color": "dark blue"}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}),
                vec!["a=1", "b=x"],
                json!({"a": 1, "b": "x"}),
            ),
            (json!({"type": "object"}), vec!["{\"a\":1}"], json!({"a": 1})),
        ] {
            assert_eq!(answer(&strings(&words), Some(&schema)), Ok(expect), "{schema} {words:?}");
        }
        assert_eq!(answer(&strings(&["5"]), None), Ok(json!(5)));
        let wrong = answer(&strings(&["many"]), Some(&json!({"type": "integer"})));
        assert!(wrong.expect_err("refused").is(Code::AskAnswerInvalid));
    }

    #[test]
    fn outputs_are_references() {
        let made = outputs(&strings(&["image.world=/out/a.png"])).expect("made");
        assert_eq!(Value::Object(made), json!({"image.world": "/out/a.png"}));
        assert!(outputs(&strings(&["image.world="])).is_err());
        assert!(outputs(&strings(&["a=x", "a=y"])).is_err());
    }

    #[test]
    fn json_comes_from_text_or_a_file() {
        assert_eq!(json("{\"a\":1}"), Ok(json!({"a": 1})));
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("in.json");
        std::fs::write(&path, "[1]").expect("written");
        assert_eq!(json(&format!("@{}", path.display())), Ok(json!([1])));
        assert!(json("@/nowhere/at/all").is_err());
        assert_eq!(json("{oops").expect_err("refused").exit().number(), 2);
    }

    #[test]
    fn a_folder_is_told_by_its_path_from_the_root() {
        let dir = tempfile::tempdir().expect("a directory");
        let here = std::env::current_dir().expect("a directory");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        assert_eq!(absolute_path(dir.path()), Ok(text(dir.path())));
        assert_eq!(absolute_path(Path::new("./hello")), Ok(text(&here.join("hello"))));
        std::fs::create_dir(dir.path().join("a")).expect("made");
        let real = dir.path().canonicalize().expect("there");
        assert_eq!(absolute_path(&dir.path().join("a/../a")), Ok(text(&real.join("a"))));
        assert!(absolute_path(&dir.path().join("none/../a")).is_err());
    }

    #[test]
    fn a_path_that_is_here_is_told_without_links_and_detours() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("a")).expect("made");
        std::os::unix::fs::symlink(dir.path().join("a"), dir.path().join("b")).expect("linked");
        let real = dir.path().canonicalize().expect("there").join("a");
        let real = real.to_str().expect("text");
        for typed in ["a", "a/", "./a/.", "b", "a/../b"] {
            assert_eq!(canonical_path(&dir.path().join(typed)).as_deref(), Ok(real), "{typed}");
        }
        let away = canonical_path(Path::new("/nowhere/here"));
        assert_eq!(away.as_deref(), Ok("/nowhere/here"), "it may be there for the core");
    }
}
