//! Headers of modern requests over HTTP, which repeat parts of the body. Both ends use the same
//! functions: a client writes what a server compares.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use wharf_vocab::Object;

use super::{McpError, code};

/// Version of the request, of every revision from 2025-06-18 on.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Session of a legacy request.
pub const SESSION_ID: &str = "mcp-session-id";
/// Where a legacy stream is to go on.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The method.
pub const METHOD: &str = "mcp-method";
/// The tool, prompt, resource or task.
pub const NAME: &str = "mcp-name";
/// Before the name of a parameter.
pub const PARAM_PREFIX: &str = "mcp-param-";

const SENTINEL_BEGIN: &str = "=?base64?";
const SENTINEL_END: &str = "?=";
/// Largest whole number that every reader of JSON keeps exactly.
const SAFE_MAX: i64 = 9_007_199_254_740_991;
/// Deepest property that is looked at.
const PATH_MAX: usize = 64;

/// A value as a header has it: as it is, or in Base64 where that would not be safe.
#[must_use]
pub fn encode(value: &str) -> String {
    let looks_encoded = value.starts_with(SENTINEL_BEGIN) && value.ends_with(SENTINEL_END);
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    if is_plain(value) && !looks_encoded && !padded {
        return value.to_owned();
    }
    format!("{SENTINEL_BEGIN}{}{SENTINEL_END}", STANDARD.encode(value))
}

/// The value that a header means; `None` if it is none.
#[must_use]
pub fn decode(header: &str) -> Option<String> {
    let inner = header.strip_prefix(SENTINEL_BEGIN).and_then(|it| it.strip_suffix(SENTINEL_END));
    match inner {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => is_plain(header).then(|| header.to_owned()),
    }
}

fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

/// What stands in the header [`NAME`] for these parameters, if this method has it.
#[must_use]
pub fn name_of<'a>(method: &str, params: Option<&'a Object>) -> Option<&'a str> {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ if method.starts_with("tasks/") => "taskId",
        _ => return None,
    };
    params?.get(field)?.as_str()
}

/// A property of a tool's arguments that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpMirror {
    /// The header, in lower case.
    pub header: String,
    /// The way to the property.
    pub path: Vec<String>,
}

/// Why the annotations of a tool cannot be used. The tool is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum McpMirrorError {
    /// The name is no name of a header.
    #[error("`x-mcp-header` is no name of a header")]
    Name,
    /// Two properties have one header.
    #[error("two properties have the same `x-mcp-header`")]
    Twice,
    /// Only texts, whole numbers and truth values can be repeated.
    #[error("`x-mcp-header` is at a property that is neither text, integer nor boolean")]
    Type,
    /// It stands where no call has exactly one value.
    #[error("`x-mcp-header` is at a place that not every call has")]
    Place,
}

/// The properties that a tool's input schema wants to have repeated, in order of their headers.
pub fn mirrors(schema: &Object) -> Result<Vec<McpMirror>, McpMirrorError> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    found.sort_by(|a, b| a.header.cmp(&b.header));
    match found.windows(2).any(|pair| pair[0].header == pair[1].header) {
        true => Err(McpMirrorError::Twice),
        false => Ok(found),
    }
}

const ANNOTATION: &str = "x-mcp-header";

/// Looks at a schema that is reached through `properties` only.
fn collect(
    schema: &Object,
    path: &mut Vec<String>,
    found: &mut Vec<McpMirror>,
) -> Result<(), McpMirrorError> {
    if let Some(annotation) = schema.get(ANNOTATION) {
        let name = annotation.as_str().filter(|name| is_token(name)).ok_or(McpMirrorError::Name)?;
        let kind = schema.get("type").and_then(Value::as_str);
        if path.is_empty() {
            return Err(McpMirrorError::Place);
        }
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(McpMirrorError::Type);
        }
        let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
        found.push(McpMirror { header, path: path.clone() });
    }
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            // Values that are no schemas may well have a key of that name.
            ("default" | "const" | "enum" | "examples", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    if path.len() >= PATH_MAX {
                        return Err(McpMirrorError::Place);
                    }
                    path.push(name.clone());
                    collect(property, path, found)?;
                    path.pop();
                }
            }
            _ if is_annotated(value, PATH_MAX) => return Err(McpMirrorError::Place),
            _ => {}
        }
    }
    Ok(())
}

fn is_annotated(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(object) => {
            let below = |value| depth > 0 && is_annotated(value, depth - 1);
            object.contains_key(ANNOTATION) || object.values().any(below)
        }
        Value::Array(list) => list.iter().any(|value| depth > 0 && is_annotated(value, depth - 1)),
        _ => false,
    }
}

fn is_token(name: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_tchar)
}

impl McpMirror {
    fn value<'a>(&self, arguments: Option<&'a Object>) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        let first = arguments?.get(first)?;
        let value = rest.iter().try_fold(first, |value, name| value.get(name))?;
        Some(value).filter(|value| !value.is_null())
    }

    /// The header's value for these arguments; none if the property is not among them.
    #[must_use]
    pub fn header_value(&self, arguments: Option<&Object>) -> Option<String> {
        match self.value(arguments)? {
            Value::String(text) => Some(encode(text)),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(_) => Some(whole(self.value(arguments)?)?.to_string()),
            _ => None,
        }
    }

    fn agrees(&self, arguments: Option<&Object>, header: Option<&str>) -> bool {
        match (self.value(arguments), header.map(decode)) {
            (None, None) => true,
            (Some(Value::String(text)), Some(Some(header))) => *text == header,
            (Some(Value::Bool(flag)), Some(Some(header))) => flag.to_string() == header,
            (Some(value @ Value::Number(_)), Some(Some(header))) => {
                let header = serde_json::from_str(&header).ok();
                let header = header.as_ref().and_then(whole);
                header.is_some() && header == whole(value)
            }
            _ => false,
        }
    }
}

/// A whole number that every reader keeps exactly; `42.0` is 42.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
fn whole(value: &Value) -> Option<i64> {
    let number = value.as_number()?;
    let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= SAFE_MAX as f64);
    number.as_i64().or(float.map(|it| it as i64)).filter(|it| it.abs() <= SAFE_MAX)
}

/// What a body says that headers must repeat.
#[derive(Debug, Clone, Copy)]
pub struct McpMirrored<'a> {
    /// The version in `_meta`.
    pub version: &'a str,
    /// The method.
    pub method: &'a str,
    /// The parameters.
    pub params: Option<&'a Object>,
    /// What the tool that is called wants repeated.
    pub mirrors: &'a [McpMirror],
}

/// Compares the headers of a modern request with its body. Each must stand there once and mean the
/// same; the error names the header and no value.
pub fn check(headers: &[(&str, &str)], body: McpMirrored<'_>) -> Result<(), McpError> {
    let one = |name: &str| {
        let mut all = headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        match (all.next(), all.next()) {
            (_, Some(_)) => Err(mismatch(name, "stands there twice")),
            (first, None) => Ok(first.map(|(_, value)| *value)),
        }
    };
    let required = |name: &str| one(name)?.ok_or_else(|| mismatch(name, "is missing"));
    let differs = |name: &str| mismatch(name, "differs from the body");
    if required(PROTOCOL_VERSION)? != body.version {
        return Err(differs(PROTOCOL_VERSION));
    }
    if required(METHOD)? != body.method {
        return Err(differs(METHOD));
    }
    if let Some(name) = name_of(body.method, body.params)
        && decode(required(NAME)?).as_deref() != Some(name)
    {
        return Err(differs(NAME));
    }
    let arguments = body.params.and_then(|params| params.get("arguments")?.as_object());
    for mirror in body.mirrors {
        if !mirror.agrees(arguments, one(&mirror.header)?) {
            return Err(differs(&mirror.header));
        }
    }
    Ok(())
}

/// The headers of a modern request, as a client sends them.
#[must_use]
pub fn write(body: McpMirrored<'_>) -> Vec<(String, String)> {
    let mut headers = vec![
        (PROTOCOL_VERSION.to_owned(), body.version.to_owned()),
        (METHOD.to_owned(), body.method.to_owned()),
    ];
    if let Some(name) = name_of(body.method, body.params) {
        headers.push((NAME.to_owned(), encode(name)));
    }
    let arguments = body.params.and_then(|params| params.get("arguments")?.as_object());
    headers.extend(
        body.mirrors
            .iter()
            .filter_map(|mirror| Some((mirror.header.clone(), mirror.header_value(arguments)?))),
    );
    headers
}

fn mismatch(header: &str, wrong: &str) -> McpError {
    McpError::new(code::HEADER_MISMATCH, format!("The header `{header}` {wrong}."))
}
