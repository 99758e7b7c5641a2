//! How a run ended: one JSON object for programs, what came out of it for people.

use serde_json::Value;
use wharf_vocab::{Direction, Object, RunStatus};
use wharf_wire::rest_v1::{Artifact, Run};

use crate::commands::runs::{FoundRun, money_warnings};
use crate::commands::{CliError, Exit, Output, Result, Table};
use crate::failure::explanation;
use crate::render::Renderer;
use crate::{amount, plain};

/// A value that is longer stands below its name, on lines of its own.
const INLINE_CHARS_MAX: usize = 100;
/// Lines of one value that are shown.
const LINES_MAX: usize = 24;

/// Prints how the run ended, and gives the exit code that says so.
pub(crate) fn print(
    (status, raw): (RunStatus, Value),
    renderer: Option<&Renderer<std::io::Stderr>>,
    output: Output,
) -> Result<Exit> {
    let for_people = output.out_is_terminal() && !output.is_json();
    let run = serde_json::from_value::<Run>(raw.clone()).ok();
    if let (Some(run), false) = (&run, output.is_json()) {
        money_warnings(run).iter().for_each(|line| output.note(line));
        if !for_people && renderer.is_some() && status == RunStatus::Succeeded {
            wrote(run).iter().for_each(|line| output.note(line));
        }
    }
    let printed = match &run {
        Some(run) if for_people => {
            let streamed = |key: &str| renderer.is_some_and(|shown| shown.has_streamed(key));
            let printed = output.text(&text_of(run, streamed, output));
            if renderer.is_some() {
                output.note(&next(run, output));
            }
            printed
        }
        _ => output.json(&raw),
    };
    match printed {
        // Whoever read the outcome has gone, but the exit code still says how the run ended.
        Ok(()) | Err(CliError::ReaderGone) => Ok(Exit::of_run(status)),
        Err(failure) => Err(failure),
    }
}

/// What to type next, beside the point for whoever is content.
fn next(run: &Run, output: Output) -> String {
    let found = FoundRun::of(run);
    let mut text = format!("run {}", plain::line(&run.run_id));
    if let Some(error) = &run.error {
        text = format!("more: wharf runs show {}", found.typed());
        if let Some(hint) = explanation(&error.code, &error.message) {
            text.push_str(&format!("\n      {hint}"));
        }
    }
    output.err_paint().faint(&text)
}

/// The files that the run wrote.
fn files(run: &Run) -> impl Iterator<Item = &Artifact> {
    run.artifacts.iter().flatten().filter(|file| file.direction == Direction::Out)
}

fn address(file: &Artifact) -> String {
    format!("world://{}{}", plain::line(&file.world), plain::line(&file.path))
}

/// A line for each file that the run wrote.
fn wrote(run: &Run) -> Vec<String> {
    let line = |file: &Artifact| format!("wrote {} ({})", address(file), amount::about(file.bytes));
    files(run).map(line).collect()
}

/// The outputs: short values beside their names, long ones below, files with address and size.
fn text_of(run: &Run, streamed: impl Fn(&str) -> bool, output: Output) -> String {
    let none = Object::new();
    let outputs = run.outputs.as_ref().unwrap_or(&none);
    let (mut table, mut rows) = (Table::bare(output).keep_whole(&[0]).uncut(&[1]), 0);
    let mut below = String::new();
    let mut row = |name: &str, value: &str| {
        table.row([name, value]);
        rows += 1;
    };
    for (key, value) in outputs {
        if let Some(file) = files(run).find(|file| file.key.as_deref() == Some(key)) {
            row(key, &format!("{} ({})", address(file), amount::about(file.bytes)));
            continue;
        }
        let shown = readable(value);
        let is_short = shown.chars().count() <= INLINE_CHARS_MAX && !shown.contains('\n');
        if is_short {
            row(key, &shown);
        } else if streamed(key) {
            row(key, &format!("as shown above ({} characters)", shown.chars().count()));
        } else {
            below.push_str(&lines_below(key, &shown, &run.run_id));
        }
    }
    // What a run wrote beside its outputs is a file all the same.
    for file in files(run) {
        let key = file.key.as_deref().unwrap_or_default();
        if !outputs.contains_key(key) {
            row(key, &format!("{} ({})", address(file), amount::about(file.bytes)));
        }
    }
    let table = if rows == 0 { String::new() } else { table.text() };
    format!("{table}{below}")
}

/// A value as one reads it: text as it is, all else as JSON.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => plain::text(text).trim_end().to_owned(),
        Value::Object(_) | Value::Array(_) => {
            let line = value.to_string();
            let long = line.chars().count() > INLINE_CHARS_MAX;
            plain::json(&if long { format!("{value:#}") } else { line })
        }
        other => other.to_string(),
    }
}

fn lines_below(key: &str, text: &str, run: &str) -> String {
    let mut below = format!("{}\n", plain::line(key));
    for line in text.lines().take(LINES_MAX) {
        below.push_str(&format!("  {line}\n"));
    }
    let more = text.lines().count().saturating_sub(LINES_MAX);
    if more > 0 {
        let run = plain::line(run);
        below
            .push_str(&format!("  … {more} more lines; all of it: wharf runs show {run} --json\n"));
    }
    below
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(outputs: &Value, artifacts: &Value) -> Run {
        serde_json::from_value(json!({"run_id": "r", "tool": "a/b", "world": "lab",
            "mode": "real", "durability": "journal", "status": "succeeded", "attempt": 1,
            "cost_micro": 0, "created_at": "2026-11-15T09:00:00.000Z",
            "outputs": outputs, "artifacts": artifacts}))
        .expect("a run")
    }

    fn shown(outputs: &Value) -> String {
        text_of(&run(outputs, &json!([])), |key| key == "streamed", Output::new(false))
    }

    #[test]
    fn short_values_stand_beside_their_names_and_long_ones_below() {
        let text = shown(&json!({"n": 20, "said": "hello\u{1b}[2J", "list": [1, 2],
            "poem": "one\ntwo\n", "streamed": "x".repeat(200)}));
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["list", "[1,2]"]);
        assert_eq!(lines[1], ["n", "20"]);
        assert_eq!(lines[2], ["said", "hello"]);
        assert_eq!(lines[3], ["streamed", "as", "shown", "above", "(200", "characters)"]);
        assert_eq!(lines[4..], [vec!["poem"], vec!["one"], vec!["two"]]);
        assert_eq!(shown(&json!({})), "");
    }

    #[test]
    fn a_very_long_value_says_where_the_rest_is() {
        let text = shown(&json!({"log": "line\n".repeat(100)}));
        assert_eq!(text.lines().count(), 1 + LINES_MAX + 1);
        assert!(text.ends_with("… 76 more lines; all of it: wharf runs show r --json\n"), "{text}");
    }

    #[test]
    fn files_have_an_address_and_a_size() {
        let file = |key: &str, path: &str| {
            json!({"world": "lab", "path": path, "bytes": 1_536, "media_type": "",
                "run_id": "r", "key": key, "direction": "out"})
        };
        let run = run(
            &json!({"small": "world://lab/out/a.png"}),
            &json!([file("small", "/out/a.png"), file("extra", "/out/b.txt")]),
        );
        let text = text_of(&run, |_| false, Output::new(false));
        let expect = "small  world://lab/out/a.png (1.5 KiB)\n\
                      extra  world://lab/out/b.txt (1.5 KiB)\n";
        assert_eq!(text, expect);
        assert_eq!(wrote(&run)[0], "wrote world://lab/out/a.png (1.5 KiB)");
    }
}
