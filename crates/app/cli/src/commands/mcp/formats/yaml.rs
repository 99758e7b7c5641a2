//! The part of YAML that Goose writes: maps, lists and scalars, in blocks or in one line.
//!
//! Anchors, tags and documents of several parts are refused rather than misread.

use serde_json::{Map, Value};

/// Deepest nesting.
const DEPTH_MAX: usize = 32;

/// Reads it. What is wrong is the end of a sentence and shows no value.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut lines = Vec::new();
    for (number, raw) in text.lines().enumerate() {
        let body = raw.trim_start_matches(' ');
        if body.starts_with('\t') {
            return Err(unreadable(number + 1));
        }
        let text = uncommented(body).trim_end();
        let is_mark = lines.is_empty() && text == "---";
        if !text.is_empty() && !is_mark {
            lines.push(YamlLine { number: number + 1, indent: raw.len() - body.len(), text });
        }
    }
    let mut reader = YamlReader { lines: &lines, at: 0 };
    let Some(first) = lines.first() else { return Ok(Value::Object(Map::new())) };
    let value = reader.block(first.indent, 0)?;
    match lines.get(reader.at) {
        None => Ok(value),
        Some(line) => Err(unreadable(line.number)),
    }
}

fn unreadable(line: usize) -> String {
    format!("is not YAML that can be read here (line {line})")
}

#[derive(Debug, Clone, Copy)]
struct YamlLine<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

struct YamlReader<'a> {
    lines: &'a [YamlLine<'a>],
    at: usize,
}

impl<'a> YamlReader<'a> {
    /// The lines that begin at this column.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Value, String> {
        let Some(first) = self.lines.get(self.at) else { return Ok(Value::Null) };
        if depth > DEPTH_MAX {
            return Err(unreadable(first.number));
        }
        if is_item(first.text) {
            return self.list(indent, depth);
        }
        let mut map = Map::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent == indent) {
            let (key, rest) = key(line.text).ok_or_else(|| unreadable(line.number))?;
            self.at += 1;
            let value = self.value(rest, line, depth)?;
            if map.insert(key, value).is_some() {
                return Err(unreadable(line.number));
            }
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if line.indent != indent || !is_item(line.text) {
                break;
            }
            let rest = line.text[1..].trim_start();
            // A map may begin on the line of its item; only plain items are needed here.
            if key(rest).is_some() && !rest.starts_with(['"', '\'', '[', '{']) {
                return Err(unreadable(line.number));
            }
            self.at += 1;
            items.push(self.value(rest, line, depth)?);
        }
        Ok(Value::Array(items))
    }

    /// What stands behind a key or a dash: on the same line, or on those below.
    fn value(&mut self, rest: &str, line: &YamlLine<'a>, depth: usize) -> Result<Value, String> {
        if let Some(fold) = rest.strip_prefix(['|', '>']) {
            return self.long_text(line, rest.starts_with('|'), fold);
        }
        if !rest.is_empty() {
            return inline(rest).ok_or_else(|| unreadable(line.number));
        }
        match self.lines.get(self.at) {
            Some(next) if next.indent > line.indent => self.block(next.indent, depth + 1),
            // Lists may stand as far left as the key they belong to.
            Some(next)
                if next.indent == line.indent && is_item(next.text) && !is_item(line.text) =>
            {
                self.list(next.indent, depth + 1)
            }
            _ => Ok(Value::Null),
        }
    }

    fn long_text(&mut self, line: &YamlLine<'a>, keeps: bool, fold: &str) -> Result<Value, String> {
        if !matches!(fold, "" | "-" | "+") {
            return Err(unreadable(line.number));
        }
        let mut parts = Vec::new();
        while let Some(next) = self.lines.get(self.at).filter(|next| next.indent > line.indent) {
            parts.push(next.text);
            self.at += 1;
        }
        Ok(parts.join(if keeps { "\n" } else { " " }).into())
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// A key, and what stands behind its colon.
fn key(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = quoted_end(text, quote)?;
        let rest = text[end..].trim_start().strip_prefix(':')?;
        return Some((quoted(&text[..end], quote)?, rest.trim_start()));
    }
    let at = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    let key = text[..at].trim_end();
    let usable = !key.is_empty() && !key.starts_with(['&', '*', '!', '?', '{', '[', '%', '@', '`']);
    usable.then(|| (key.to_owned(), text[at + 1..].trim_start()))
}

/// A value on one line.
fn inline(text: &str) -> Option<Value> {
    match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = quoted_end(text, quote)?;
            (end == text.len()).then(|| quoted(text, quote).map(Value::String))?
        }
        '[' => {
            let inner = text.strip_prefix('[')?.strip_suffix(']')?;
            parts(inner)?.into_iter().map(|part| inline(part.trim())).collect()
        }
        '{' => {
            let inner = text.strip_prefix('{')?.strip_suffix('}')?;
            let each = |part: &str| {
                let (key, rest) = key(part.trim())?;
                Some((key, inline(rest).unwrap_or(Value::Null)))
            };
            let members: Option<Map<_, _>> = parts(inner)?.into_iter().map(each).collect();
            members.map(Value::Object)
        }
        '&' | '*' | '!' | '%' | '@' | '`' => None,
        _ => Some(scalar(text)),
    }
}

/// What stands between commas.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut at, mut open) = (Vec::new(), 0, 0, 0_usize);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += quoted_end(&text[at..], char::from(quote))?;
                continue;
            }
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.checked_sub(1)?,
            b',' if open == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    Some(parts)
}

fn scalar(text: &str) -> Value {
    match text {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        "null" | "~" => Value::Null,
        _ => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => text.into(),
        },
    }
}

/// Where a quoted text ends that begins here.
fn quoted_end(text: &str, quote: char) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = u8::try_from(quote).ok()?;
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

fn quoted(text: &str, quote: char) -> Option<String> {
    match quote {
        '"' => serde_json::from_str(text).ok(),
        _ => Some(text.get(1..text.len() - 1)?.replace("''", "'")),
    }
}

/// The line without its comment.
fn uncommented(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'')
                if at == 0 || matches!(bytes[at - 1], b' ' | b'[' | b'{' | b',') =>
            {
                match quoted_end(&text[at..], char::from(quote)) {
                    Some(end) => at += end,
                    None => return text,
                }
            }
            b'#' if at == 0 || bytes[at - 1] == b' ' => return &text[..at],
            _ => at += 1,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_goose_writes_is_read() {
        let text = "---\n# mine\nGOOSE_MODE: auto # really\nextensions:\n  fetch:\n    enabled: true\n    \
                    cmd: uvx\n    args:\n    - mcp-server-fetch\n    - '--x: y'\n    envs: {}\n    \
                    timeout: 300\n  other:\n    args: [a, \"b, c\"]\n    bundled: null\n    \
                    about: |-\n      one\n      two\n";
        let expect = json!({"GOOSE_MODE": "auto", "extensions": {
            "fetch": {"enabled": true, "cmd": "uvx", "args": ["mcp-server-fetch", "--x: y"],
                "envs": {}, "timeout": 300},
            "other": {"args": ["a", "b, c"], "bundled": null, "about": "one\ntwo"}}});
        assert_eq!(parse(text), Ok(expect));
        assert_eq!(
            parse("a:\n  - x\nb: 'it''s'\n\"c d\": \"\\t\"\n"),
            Ok(json!({"a": ["x"], "b": "it's", "c d": "\t"}))
        );
        assert_eq!(parse(""), Ok(json!({})));
    }

    #[test]
    fn what_could_be_misread_is_refused_with_its_line() {
        for (text, line) in [
            ("a: &x c4nary", 1),
            ("a: *x", 1),
            ("a: 1\nb", 2),
            ("a: 1\na: 2", 2),
            ("a:\n\tb: 1", 2),
            ("a: [1", 1),
            ("a:\n  - b: 1", 2),
            ("a: 1\n  b: 2", 2),
            ("a: !!str x", 1),
            ("a: \"open", 1),
        ] {
            let said = parse(text).expect_err(text);
            assert_eq!(said, unreadable(line), "{text}");
        }
        let deep: String = (0..40).map(|at| format!("{}a:\n", " ".repeat(at))).collect();
        assert!(parse(&deep).is_err());
    }
}
