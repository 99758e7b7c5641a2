//! A run's inputs and outputs: files as references with their sizes, other values as they are.

use serde_json::Value;
use wharf_vocab::{Direction, Object};
use wharf_wire::rest_v1::{Artifact, Run};

use crate::commands::worlds::short;
use crate::commands::{Output, Table};
use crate::{amount, plain};

/// A value that is longer is shown below the others, on lines of its own.
const INLINE_CHARS_MAX: usize = 100;

/// Inputs and outputs as text, nothing if there are none.
pub(super) fn text_of(run: &Run, output: Output) -> String {
    let none = Object::new();
    let inputs = run.inputs.as_ref().unwrap_or(&none);
    let mut text = section("inputs", inputs, &files(run, Direction::In), output);
    let outputs = run.outputs.as_ref().unwrap_or(&none);
    text.push_str(&section("outputs", outputs, &files(run, Direction::Out), output));
    text
}

fn files(run: &Run, direction: Direction) -> Vec<&Artifact> {
    run.artifacts.iter().flatten().filter(|file| file.direction == direction).collect()
}

fn section(name: &str, values: &Object, files: &[&Artifact], output: Output) -> String {
    let mut table = Table::bare(output).keep_whole(&[0]).leave_out(2, "").leave_out(3, "");
    let (mut rows, mut long) = (0, String::new());
    for (key, value) in values {
        let file = files.iter().find(|file| file.key.as_deref() == Some(key));
        match file {
            Some(file) => file_row(&mut table, key, file),
            None => {
                let shown = value.to_string();
                if shown.chars().count() > INLINE_CHARS_MAX {
                    long.push_str(&below(key, value));
                    continue;
                }
                table.row([key, &shown, "", ""]);
            }
        }
        rows += 1;
    }
    // What a run wrote beside its outputs is a file all the same.
    for file in files {
        let key = file.key.as_deref().unwrap_or_default();
        if !values.contains_key(key) {
            file_row(&mut table, key, file);
            rows += 1;
        }
    }
    if rows == 0 && long.is_empty() {
        return String::new();
    }
    let rows = if rows == 0 { String::new() } else { indented(&table.text()) };
    format!("{name}\n{rows}{long}")
}

fn file_row(table: &mut Table, key: &str, file: &Artifact) {
    let hash = file.b3.as_deref().map(|hash| format!("b3 {}", short(hash))).unwrap_or_default();
    let uri = format!("world://{}{}", file.world, file.path);
    table.row([key, &uri, &amount::about(file.bytes), &hash]);
}

fn below(key: &str, value: &Value) -> String {
    let shown = plain::json(&format!("{value:#}"));
    format!("  {}\n{}", plain::line(key), indented(&format!("{shown}\n")))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output;

    fn run(value: &Value) -> Run {
        let mut run = json!({"run_id": "r", "tool": "a/b", "world": "lab", "mode": "real",
            "durability": "journal", "status": "succeeded", "attempt": 1, "cost_micro": 0,
            "created_at": "2026-11-15T09:00:00.000Z"});
        for (key, value) in value.as_object().expect("an object") {
            run[key] = value.clone();
        }
        output::typed(run).expect("a run")
    }

    #[test]
    fn t040_files_are_references_with_sizes_and_values_are_themselves() {
        let file = |key: &str, path: &str, direction: &str| {
            json!({"world": "lab", "path": path, "bytes": 1_536, "b3": "ab".repeat(32),
                "media_type": "", "run_id": "r", "key": key, "direction": direction})
        };
        let run = run(&json!({
            "inputs": {"image": "world://lab/in/a.png", "width": 5},
            "outputs": {"small": "world://lab/out/a.png", "long": ["x".repeat(120)]},
            "artifacts": [file("image", "/in/a.png", "in"), file("small", "/out/a.png", "out")],
        }));
        let text = text_of(&run, Output::new(false));
        let lines: Vec<Vec<_>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["inputs"]);
        let image = ["image", "world://lab/in/a.png", "1.5", "KiB", "b3", "abababababababab"];
        assert_eq!(lines[1], image);
        assert_eq!(lines[2], ["width", "5"]);
        assert_eq!(lines[3], ["outputs"]);
        assert_eq!(lines[4][..4], ["small", "world://lab/out/a.png", "1.5", "KiB"]);
        assert_eq!(lines[5], ["long"]);
        assert_eq!(lines.len(), 9, "a long value stands below: {text}");
    }

    #[test]
    fn a_run_without_data_says_nothing_of_it() {
        assert_eq!(text_of(&run(&json!({})), Output::new(false)), "");
    }
}
