//! What an approval is about: arguments, files and proposals, cut to what fits.

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::rest_v1::Ask;

use crate::commands::{Output, Table};
use crate::plain;
use crate::shape::plain_text;

/// Longest value of an argument that is shown.
const VALUE_CHARS_MAX: usize = 120;
/// Most arguments that are shown.
const ARGUMENTS_MAX: usize = 20;

/// A value on one line, cut.
pub(crate) fn short(value: &Value) -> String {
    plain::cut(&value.to_string(), VALUE_CHARS_MAX)
}

/// Arguments, each on a line below the heading.
pub(crate) fn inputs(heading: &str, inputs: &Object, output: Output) -> String {
    if inputs.is_empty() {
        return format!("{heading}: none\n");
    }
    let mut table = Table::bare(output).keep_whole(&[0]);
    for (name, value) in inputs.iter().take(ARGUMENTS_MAX) {
        table.row([&format!("  {}", plain::cut(name, 40)), &short(value)]);
    }
    let more = inputs.len().saturating_sub(ARGUMENTS_MAX);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    format!("{heading}\n{}{more}", table.text())
}

/// Arguments on one line.
pub(crate) fn on_a_line(inputs: &Object) -> String {
    let each = inputs.iter().map(|(name, value)| format!("{name}={value}"));
    plain::cut(&each.collect::<Vec<_>>().join(" "), 400)
}

/// The files that the run reads, and why the core asks or what the provider proposes.
pub(super) fn files_and_detail(table: &mut Table, ask: &Ask, indent: &str) {
    for file in &ask.files {
        let b3 = file.b3.as_deref().unwrap_or("not known");
        let said = format!("{} ({} bytes, b3 {b3})", file.path, file.bytes);
        table.row([&format!("{indent}reads {}", file.name), &said]);
    }
    match &ask.detail {
        Some(Value::String(reason)) => table.row([&format!("{indent}because"), reason]),
        Some(Value::Object(proposal)) => {
            for (name, value) in proposal {
                table.row([&format!("{indent}{name}"), &plain_text(value)]);
            }
        }
        Some(other) => table.row([&format!("{indent}about"), &other.to_string()]),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_cut_and_safe() {
        let Value::Object(object) = json!({"a": "x".repeat(500), "b": "\u{1b}[2Jhi"}) else {
            panic!("an object")
        };
        let text = inputs("arguments", &object, Output::new(false));
        assert!(text.starts_with("arguments\n  a  \"xxx") && text.contains('…'), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(inputs("arguments", &Object::new(), Output::new(false)), "arguments: none\n");
        assert!(on_a_line(&object).chars().count() <= 400);
    }
}
