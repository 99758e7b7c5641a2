//! `wharf tools diff`: what was taken on, beside what is offered now.

use similar::{Algorithm, capture_diff_slices, group_diff_ops};
use wharf_client::Client;
use wharf_vocab::{ToolId, ToolState};
use wharf_wire::rest_v1::{ToolDefinition, ToolDiff};

use crate::commands::{Context, Exit, Output, Paint, Result};
use crate::{output, plain};

use super::tool_id;

/// Lines around a change that are shown with it.
const AROUND: usize = 3;

/// Shows how one tool changed, or all that did.
pub(super) async fn run(typed: Option<&str>, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let tools = match typed {
        Some(typed) => vec![tool_id(typed)?],
        None => {
            let tools = client.tools().list().all().await?;
            let changed = tools.into_iter().filter(|tool| tool.state == ToolState::Quarantined);
            let mut changed: Vec<ToolId> = changed.map(|tool| tool.tool_id).collect();
            // Prompts and the like of MCP servers are pinned as well, and stand in no list.
            for server in client.mcp_servers().list().all().await? {
                let unlisted = server.quarantined.into_iter().filter(|id| !changed.contains(id));
                changed.extend(unlisted.collect::<Vec<_>>());
            }
            changed
        }
    };
    let mut diffs = Vec::new();
    for tool in &tools {
        diffs.push(client.tools().diff(tool).raw().await?);
    }
    if output.is_json() {
        output.json(&diffs)?;
        return Ok(Exit::Done);
    }
    if diffs.is_empty() {
        output.line("no tool changed")?;
    }
    for diff in diffs {
        let diff: ToolDiff = output::typed(diff)?;
        let files = files_of(&client, &diff).await?;
        output.text(&if files.is_empty() { text_of(&diff, output) } else { files })?;
    }
    Ok(Exit::Done)
}

/// How the files of a tool's server changed, where its definition did not.
async fn files_of(client: &Client, diff: &ToolDiff) -> Result<String> {
    if diff.changed || diff.pinned.is_none() || !diff.tool_id.is_reference() {
        return Ok(String::new());
    }
    let Some(server) = client.tools().get(&diff.tool_id).await?.server else {
        return Ok(String::new());
    };
    if server.drift.is_empty() {
        return Ok(String::new());
    }
    let id = plain::line(&diff.tool_id);
    let lines: String =
        server.drift.iter().map(|line| format!("  {}\n", plain::line(line))).collect();
    Ok(format!(
        "{id} is defined as it was approved, and its files are others\n{lines}take them on with\n  \
         wharf tools approve {id}\n"
    ))
}

/// How these tools changed, for whoever is about to decide about them.
pub(crate) async fn of(client: &Client, tools: &[ToolId], output: Output) -> Result<String> {
    let mut text = String::new();
    for tool in tools {
        let diff = client.tools().diff(tool).await?;
        if diff.changed || diff.pinned.is_none() {
            text.push_str(&format!("\n{}", text_of(&diff, output)));
        }
    }
    Ok(text)
}

fn text_of(diff: &ToolDiff, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&diff.tool_id);
    let (old, new) = match (&diff.pinned, &diff.offered) {
        (Some(old), Some(new)) => (old, new),
        (_, None) => return format!("{id} is not offered\n"),
        (None, Some(new)) => {
            let about = plain::cut(&new.description, 300);
            return format!(
                "{} is new and has not been approved: {about}\napprove it with\n  \
                 wharf tools approve {id}\n",
                paint.strong(&id)
            );
        }
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
    text.push_str(&format!("approve it with\n  wharf tools approve {id}\n"));
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
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let mut shown = Vec::new();
    for group in group_diff_ops(ops, AROUND) {
        shown.push("@@".to_owned());
        let changes = group.iter().flat_map(|op| op.iter_changes(old, new));
        shown.extend(changes.map(|change| format!("{}{}", change.tag(), change.value())));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
        let shown = unified(&old, &new);
        let side = |gone: char| -> Vec<&str> {
            let lines = shown.iter().filter(|line| !line.starts_with([gone, '@']));
            lines.map(|line| &line[1..]).collect()
        };
        assert_eq!(side('+'), old);
        assert_eq!(side('-'), new);
        assert_eq!(shown.iter().filter(|line| line.starts_with(' ')).count(), 3);
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
