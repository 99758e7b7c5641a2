//! `wharf tools diff`: what was taken on, beside what is offered now.

use serde_json::Value;
use wharf_vocab::ToolId;
use wharf_wire::rest_v1::{Tool, ToolDefinition, ToolDiff};

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use crate::paint::Paint;
use crate::{plain, table};

use super::{path, tool_id};

/// Lines around a change that are shown with it.
const AROUND: usize = 3;
/// Above this many lines two texts are shown one after the other instead of compared.
const LINES_MAX: usize = 2_000;

/// Shows how one tool changed, or all that did.
pub(super) async fn run(typed: Option<&str>, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let tools = match typed {
        Some(typed) => vec![tool_id(typed)?],
        None => {
            let (items, _) = client.list(&["v1", "tools"], &[], None).await?;
            let tools: Vec<Tool> = table::rows(items)?;
            let changed = tools.iter().filter(|tool| tool.state == "quarantined");
            changed.filter_map(|tool| ToolId::new(&tool.tool_id).ok()).collect()
        }
    };
    let mut diffs = Vec::new();
    for tool in &tools {
        diffs.push(client.get::<Value>(&path(tool, &["diff"]), &[]).await?);
    }
    if output.is_json() {
        output.json(&diffs)?;
        return Ok(Exit::Done);
    }
    if diffs.is_empty() {
        output.line("no tool changed")?;
    }
    for diff in diffs {
        output.text(&text_of(&table::typed(diff)?, output))?;
    }
    Ok(Exit::Done)
}

/// How these tools changed, for whoever is about to decide about them.
pub(crate) async fn of(client: &Client, tools: &[String], output: Output) -> Result<String> {
    let mut text = String::new();
    for tool in tools.iter().filter_map(|tool| ToolId::new(tool).ok()) {
        let diff: ToolDiff = client.get(&path(&tool, &["diff"]), &[]).await?;
        if diff.changed {
            text.push_str(&format!("\n{}", text_of(&diff, output)));
        }
    }
    Ok(text)
}

fn text_of(diff: &ToolDiff, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&diff.tool_id);
    let (Some(old), Some(new)) = (&diff.pinned, &diff.offered) else {
        let what = if diff.offered.is_some() { "has not been taken on" } else { "is not offered" };
        return format!("{id} {what}\n");
    };
    if !diff.changed {
        return format!("{id} is what was approved\n");
    }
    let mut text = format!("{}\n", paint.strong(&id));
    text.push_str(&format!("{}\n", paint.bad("--- approved")));
    text.push_str(&format!("{}\n", paint.good("+++ offered")));
    let (old, new) = (lines(old), lines(new));
    for line in unified(&old, &new) {
        text.push_str(&painted(&line, paint));
    }
    text.push_str(&format!("take it on with\n  wharf tools approve {id}\n"));
    text
}

/// A definition as lines of indented JSON, safe for a terminal.
fn lines(definition: &ToolDefinition) -> Vec<String> {
    let text = serde_json::to_string_pretty(definition).unwrap_or_default();
    plain::json(&text).lines().map(str::to_owned).collect()
}

fn painted(line: &str, paint: Paint) -> String {
    let painted = match line.as_bytes().first() {
        Some(b'-') => paint.bad(line),
        Some(b'+') => paint.good(line),
        Some(b'@') => paint.faint(line),
        _ => line.to_owned(),
    };
    format!("{painted}\n")
}

/// The lines that differ, each with a few around it.
fn unified(old: &[String], new: &[String]) -> Vec<String> {
    let steps = compare(old, new);
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        let to = (at + AROUND + 1).min(steps.len());
        steps[from..to].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut shown = Vec::new();
    let mut skipped = true;
    for (at, (mark, line)) in steps.iter().enumerate() {
        if !near(at) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            shown.push("@@".to_owned());
        }
        shown.push(format!("{mark}{line}"));
    }
    shown
}

/// Each line of both, marked ` ` when both have it, `-` when only the old one does, `+` when only
/// the new one does. As many lines as can be are shared.
fn compare<'a>(old: &'a [String], new: &'a [String]) -> Vec<(char, &'a str)> {
    if old.len().max(new.len()) > LINES_MAX {
        let gone = old.iter().map(|line| ('-', line.as_str()));
        return gone.chain(new.iter().map(|line| ('+', line.as_str()))).collect();
    }
    // shared[i][j] is how many lines the rests behind i and j can share.
    let width = new.len() + 1;
    let mut shared = vec![0_usize; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            shared[i * width + j] = if old[i] == new[j] {
                shared[(i + 1) * width + j + 1] + 1
            } else {
                shared[(i + 1) * width + j].max(shared[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let drops = i < old.len()
            && (j == new.len() || shared[(i + 1) * width + j] >= shared[i * width + j + 1]);
        if i < old.len() && j < new.len() && old[i] == new[j] {
            steps.push((' ', old[i].as_str()));
            (i, j) = (i + 1, j + 1);
        } else if drops {
            steps.push(('-', old[i].as_str()));
            i += 1;
        } else {
            steps.push(('+', new[j].as_str()));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(old: &str, new: &str, expect: &str) {
        assert_eq!(unified(&words(old), &words(new)), words(expect), "{old} -> {new}");
    }

    #[test]
    fn what_differs_is_marked_with_a_little_around_it() {
        check("a b c", "a b c", "");
        check("a", "b", "@@ -a +b");
        let of = |text: &str| unified(&words(text), &words(&text.replace("e", "x")));
        let shown = of("1 2 3 4 e 5 6 7 8");
        assert_eq!(shown, ["@@", " 2", " 3", " 4", "-e", "+x", " 5", " 6", " 7"]);
        let far = of("e 1 2 3 4 5 6 7 8 e");
        assert_eq!(far.iter().filter(|line| *line == "@@").count(), 2, "{far:?}");
    }

    #[test]
    fn both_sides_can_be_read_back_from_a_comparison() {
        let (old, new) = (words("a b c d e f"), words("b x d f g a"));
        let steps = compare(&old, &new);
        let side = |gone: char| -> Vec<&str> {
            steps.iter().filter(|(mark, _)| *mark != gone).map(|(_, line)| *line).collect()
        };
        assert_eq!(side('+'), old);
        assert_eq!(side('-'), new);
        assert_eq!(steps.iter().filter(|(mark, _)| *mark == ' ').count(), 3);
    }

    #[test]
    fn a_changed_tool_is_shown_with_what_to_do() {
        let side = |description: &str| {
            json!({"hash": "0", "description": description, "input_schema": {}, "output_schema": null,
                "side_effects": null, "requires_directive": false, "mock": false,
                "idempotency": false, "timeout_ms": null, "max_cost_micro": null})
        };
        let diff = |pinned: Value, offered: Value, changed: bool| -> ToolDiff {
            serde_json::from_value(json!({"tool_id": "a/b", "changed": changed, "changes": [],
                "pinned": pinned, "offered": offered}))
            .expect("a diff")
        };
        let output = Output::new(false);
        let text = text_of(&diff(side("old"), side("\u{1b}[2Jnew"), true), output);
        assert!(text.contains("-  \"description\": \"old\""), "{text}");
        assert!(text.contains("+  \"description\": \"") && !text.contains('\u{1b}'), "{text}");
        assert!(text.ends_with("  wharf tools approve a/b\n"), "{text}");
        let same = text_of(&diff(side("x"), side("x"), false), output);
        assert_eq!(same, "a/b is what was approved\n");
    }
}
