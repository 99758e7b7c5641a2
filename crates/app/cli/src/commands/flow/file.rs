//! Reads documents from files: JSON and YAML are the same tree.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use wharf_vocab::Code;
use wharf_vocab::limits::FLOW_BYTES_MAX;

use crate::commands::{CliError, Result};

/// Whether what was typed names a file and no flow: the name of a flow has no dot or slash.
pub(super) fn is_file(typed: &str) -> bool {
    typed == "-" || typed.contains(['.', '/', '\\']) && Path::new(typed).exists()
}

/// The document in a file, or on standard input.
pub(super) fn read(file: &str) -> Result<Value> {
    let mut bytes = Vec::new();
    let limit = FLOW_BYTES_MAX as u64 * 2 + 1;
    let read = if file == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(limit).read_to_end(&mut bytes))
    };
    let shown = if file == "-" { "standard input" } else { file };
    read.map_err(|error| CliError::unreadable(shown, &error))?;
    if bytes.len() as u64 == limit {
        let message = format!("{shown} is larger than a document of a flow may be");
        return Err(CliError::new(Code::FlowLimit, message));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::new(Code::FlowInvalid, format!("{shown} is not UTF-8")))?;
    parse(&text).map_err(|error| {
        CliError::new(Code::FlowInvalid, format!("{shown} is neither JSON nor YAML: {error}"))
    })
}

/// The tree that a text stands for. JSON that is right is read as such, so that its numbers and
/// texts are exactly what they are.
fn parse(text: &str) -> std::result::Result<Value, String> {
    let json = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if text.trim_start().starts_with('{') {
        return Err(json.to_string());
    }
    // As YAML 1.2 has it, `n`, `yes` and `on` are texts.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f003_yaml_is_the_same_tree() {
        let yaml = "\
name: digest
steps:
  - id: count
    call:
      tool: wharf/count
      inputs: {n: '${inputs.n}'}
      retry: {max: 3, on: [tool.failed]}
  - id: which
    branch:
      cases:
        - when: steps.count.outputs.sum > 10
          step: {id: big, set: {size: \"'big'\", n: 1, yes: true}}
on: [n, y, off]
output:
  text: |
    Sum: ${steps.count.outputs.sum}
";
        let expected = json!({"name": "digest", "steps": [
            {"id": "count", "call": {"tool": "wharf/count", "inputs": {"n": "${inputs.n}"},
                "retry": {"max": 3, "on": ["tool.failed"]}}},
            {"id": "which", "branch": {"cases": [{"when": "steps.count.outputs.sum > 10",
                "step": {"id": "big", "set": {"size": "'big'", "n": 1, "yes": true}}}]}}],
            "on": ["n", "y", "off"],
            "output": {"text": "Sum: ${steps.count.outputs.sum}\n"}});
        assert_eq!(parse(yaml), Ok(expected));
    }

    #[test]
    fn f005_what_is_neither_is_refused_with_a_place() {
        assert!(parse("{\"name\": }").expect_err("no JSON").contains("line 1"));
        assert!(parse("name: [").is_err());
        assert!(parse("a: 1\na: 2").is_err(), "a key stands twice");
        // Aliases that stand for very much are ended.
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
            c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
            e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
            g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
        assert!(parse(bomb).is_err());
    }
}
