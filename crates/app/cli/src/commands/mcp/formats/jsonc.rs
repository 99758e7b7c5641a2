//! JSON as editors keep it, with comments and commas at the end, and changes to it that leave
//! everything else as it is.

use std::ops::Range;

use serde_json::Value;

/// Deepest nesting that is looked at.
const DEPTH_MAX: usize = 100;

/// Reads it. What is wrong is the end of a sentence and shows no value.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let plain = plain(text);
    if plain.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&plain).map_err(|error| format!("is not JSON (line {})", error.line()))
}

/// The same text with `value` at `path`; whatever else it holds stays as it is written.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    if !parse(text)?.is_object() {
        return Err("is no object".to_owned());
    }
    let text = if plain(text).trim().is_empty() { "{}\n" } else { text };
    let plain = plain(text);
    let mut scanner = JsonScanner { text: plain.as_bytes(), at: 0 };
    scanner.blank();
    let mut object = scanner.at;
    for (depth, key) in path.iter().enumerate() {
        let members = JsonScanner { text: plain.as_bytes(), at: object }.members();
        let members = members.ok_or("cannot be read")?;
        let rest = &path[depth + 1..];
        match members.iter().rfind(|(name, _)| name == key) {
            Some((_, found)) if rest.is_empty() => {
                let shown = indented(value, depth + 1);
                return Ok(spliced(text, found.clone(), &shown));
            }
            Some((_, found)) if plain.as_bytes()[found.start] == b'{' => object = found.start,
            Some(_) => return Err(format!("has something else under {key}")),
            None => {
                let value = rest.iter().rfold(value.clone(), |inner, key| {
                    Value::Object([((*key).to_owned(), inner)].into_iter().collect())
                });
                let shown = format!("\"{key}\": {}", indented(&value, depth + 1));
                return Ok(added(
                    text,
                    object,
                    members.last().map(|(_, last)| last.end),
                    depth,
                    &shown,
                ));
            }
        }
    }
    Err("has no place for it".to_owned())
}

/// Adds a member after the last one, or as the first.
fn added(text: &str, object: usize, last: Option<usize>, depth: usize, member: &str) -> String {
    let indent = "  ".repeat(depth + 1);
    match last {
        Some(end) => spliced(text, end..end, &format!(",\n{indent}{member}")),
        None => {
            let start = object + 1;
            let close = "  ".repeat(depth);
            spliced(text, start..start, &format!("\n{indent}{member}\n{close}"))
        }
    }
}

fn spliced(text: &str, at: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..at.start], &text[at.end..])
}

fn indented(value: &Value, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

/// The same text with blanks where JSON has no comments and no commas; every byte keeps its place.
fn plain(text: &str) -> String {
    let text =
        text.strip_prefix('\u{feff}').map_or_else(|| text.to_owned(), |it| format!("   {it}"));
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => end_of_text(bytes, at),
            (b'/', Some(b'/')) => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            (b'/', Some(b'*')) => find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2),
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => {
                out[at..end]
                    .iter_mut()
                    .filter(|byte| **byte != b'\n')
                    .for_each(|byte| *byte = b' ');
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    // Only whole characters of comments were replaced, by blanks.
    String::from_utf8(out).unwrap_or_default()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len()).position(|part| part == what).map(|at| from + at)
}

/// Where the text that begins here ends.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Walks over text that is known to be JSON.
struct JsonScanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl JsonScanner<'_> {
    fn blank(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.blank();
        let is = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is);
        is
    }

    /// The members of the object that begins here: names, and where their values stand.
    fn members(mut self) -> Option<Vec<(String, Range<usize>)>> {
        let mut members = Vec::new();
        if !self.next_is(b'{') {
            return None;
        }
        while !self.next_is(b'}') {
            self.blank();
            let name = self.at..end_of_text(self.text, self.at);
            self.at = name.end;
            let name = serde_json::from_slice(self.text.get(name)?).ok()?;
            if !self.next_is(b':') {
                return None;
            }
            self.blank();
            let start = self.at;
            self.skip(0)?;
            members.push((name, start..self.at));
            self.next_is(b',');
        }
        Some(members)
    }

    /// Goes past one value.
    fn skip(&mut self, depth: usize) -> Option<()> {
        self.blank();
        let close = match self.text.get(self.at)? {
            b'"' => {
                self.at = end_of_text(self.text, self.at);
                return Some(());
            }
            b'{' => b'}',
            b'[' => b']',
            _ => {
                let is_end = |byte: &u8| b",}] \t\r\n".contains(byte);
                let rest = &self.text[self.at..];
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                return Some(());
            }
        };
        if depth > DEPTH_MAX {
            return None;
        }
        self.at += 1;
        while !self.next_is(close) {
            self.skip(depth + 1)?;
            self.blank();
            if matches!(self.text.get(self.at), Some(b',' | b':')) {
                self.at += 1;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_last_commas_are_read_over() {
        let text = "// é\n{\"a\": \"// no\", /* x, } */ \"b\": [1, 2,],\n}";
        assert_eq!(parse(text), Ok(json!({"a": "// no", "b": [1, 2]})));
        assert_eq!(parse("  \n"), Ok(json!({})));
        assert_eq!(parse("\u{feff}{}"), Ok(json!({})));
        let wrong = parse("{\n\"a\": c4nary}").expect_err("no JSON");
        assert_eq!(wrong, "is not JSON (line 2)");
    }

    #[test]
    fn what_is_set_leaves_the_rest_as_it_was_written() {
        let text = "{\n  // mine\n  \"z\": 1,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // last\n  }\n}\n";
        let set = set(text, &["mcpServers", "wharf"], &json!({"command": "wharf"})).expect("set");
        for kept in ["// mine", "\"z\": 1", "\"a\": {\"command\": \"x\"}", "// last"] {
            assert!(set.contains(kept), "{kept} is gone from {set}");
        }
        let read = parse(&set).expect("still JSON");
        assert_eq!(read["mcpServers"]["wharf"]["command"], "wharf");
        assert_eq!(read["mcpServers"]["a"]["command"], "x");
    }

    #[test]
    fn what_is_there_is_replaced_and_what_is_not_is_made() {
        let set = |text: &str| set(text, &["mcpServers", "wharf"], &json!(2));
        let read = |text: &str| parse(&set(text).expect("set")).expect("JSON");
        assert_eq!(read(""), json!({"mcpServers": {"wharf": 2}}));
        assert_eq!(read("{}"), json!({"mcpServers": {"wharf": 2}}));
        assert_eq!(read("{\"a\":1}"), json!({"a": 1, "mcpServers": {"wharf": 2}}));
        assert_eq!(read("{\"mcpServers\":{}}"), json!({"mcpServers": {"wharf": 2}}));
        let text = "{\"mcpServers\":{\"wharf\": {\"x\": [1, {\"}\": 2}]}, \"b\": 1}}";
        assert_eq!(read(text), json!({"mcpServers": {"wharf": 2, "b": 1}}));
        assert!(set("[]").is_err() && set("{\"mcpServers\": 7}").is_err());
        let once = set("{}").expect("set");
        assert_eq!(super::set(&once, &["mcpServers", "wharf"], &json!(2)), Ok(once));
    }
}
