//! `wharf tools show`.

use serde_json::Value;
use wharf_vocab::{ServerKind, ToolState};
use wharf_wire::rest_v1::{Tool, ToolEnvironment, ToolServer};

use crate::commands::providers::{limits, words as shared};
use crate::commands::{Context, Exit, Output, Result, Table};
use crate::shape::{SchemaNode, plain_text};
use crate::{moment, output, plain};

use super::{diff, find, words};

/// Shows one tool.
pub(super) async fn run(typed: &str, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let tool = find(&client, typed).await?;
    let raw: Value = client.tools().get(&tool).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let shown: Tool = output::typed(raw)?;
        let changed = (shown.state == ToolState::Quarantined).then(|| shown.tool_id.clone());
        let changes = diff::of(&client, changed.as_slice(), output).await?;
        output.text(&format!("{}{changes}", text_of(&shown, output)))?;
    }
    Ok(Exit::Done)
}

pub(super) fn text_of(tool: &Tool, output: Output) -> String {
    let yes_no = |yes| if yes { "yes".to_owned() } else { "no".to_owned() };
    let mut head = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    head.row(["tool", &tool.tool_id]);
    head.row(["description", &tool.description]);
    match &tool.server {
        Some(server) => head.row(["served by", &words::kind(server)]),
        None => head.row(["provider", &tool.provider]),
    };
    head.row_with_state(["state", tool.state.as_str()], 1);
    head.facts([
        ("because", tool.state_reason.clone()),
        ("side effects", Some(yes_no(tool.side_effects))),
        ("needs an approval", Some(yes_no(tool.requires_directive))),
        ("mock mode", Some(yes_no(tool.mock))),
        ("capabilities", shared::some(&tool.capabilities.join(", "))),
        ("tags", shared::some(&tool.tags.join(", "))),
    ]);
    if let Some(server) = &tool.server {
        rows_of(server, &mut head);
    }
    let mut text = head.text();
    text.push_str(&fields_of("inputs", &tool.input_schema, output));
    if let Some(schema) = &tool.output_schema {
        text.push_str(&fields_of("outputs", schema, output));
    }
    if let Some(server) = &tool.server {
        text.push_str(&format!("\n{}", words::requests(server, output)));
        if server.permissions_approved.is_some() && server.kind != ServerKind::Remote {
            text.push_str(&shared::pinned_files(&server.pinned_files, output));
        }
        text.push_str(
            &server.environment.as_ref().map_or_else(String::new, |it| packages(it, output)),
        );
        text.push_str(&shared::drift(&server.drift));
        text.push_str(&words::what_next(tool, server));
    }
    if matches!(tool.state.as_str(), "available" | "starting") {
        text.push_str(&format!("\ntry\n  {}\n", example(tool)));
    }
    text
}

/// How the server fares.
fn rows_of(server: &ToolServer, head: &mut Table) {
    let fenced = server.permissions_approved.is_some() && server.kind != ServerKind::Remote;
    head.facts([
        ("process", server.pid.map(|pid| pid.to_string())),
        ("launch", server.launch_id.as_ref().map(ToString::to_string)),
        ("sandbox", fenced.then(|| shared::sandbox(server.sandbox, server.sandbox_wanted))),
    ]);
    for note in &server.sandbox_notes {
        head.row(["", note]);
    }
    head.facts([
        ("isolation", server.isolation.map(|isolation| isolation.to_string())),
        ("processes", (server.instances > 1).then(|| server.instances.to_string())),
        ("limits", shared::some(&limits::words(&server.limits))),
        ("kept", shared::some(&limits::kept(&server.limits_kept))),
        ("python", server.environment.as_ref().map(interpreter)),
        ("folder", Some(server.folder.clone())),
        ("added", Some(moment::shown(server.added_at))),
    ]);
}

fn interpreter(environment: &ToolEnvironment) -> String {
    format!("{} ({})", environment.version, environment.interpreter)
}

/// The packages that a handler runs with, as they are locked.
fn packages(environment: &ToolEnvironment, output: Output) -> String {
    let Some(key) = &environment.key else { return String::new() };
    let mut table = Table::bare(output);
    for package in &environment.packages {
        let hash = format!("sha256:{}", package.sha256.get(..16).unwrap_or(&package.sha256));
        table.row([&format!("  {}", package.name), &package.version, &hash]);
    }
    let none = if environment.packages.is_empty() { "  none\n" } else { "" };
    let file = environment.requirements.as_deref().unwrap_or_default();
    format!("\npackages of {file}, in the environment {key}\n{none}{}", table.text())
}

fn fields_of(title: &str, schema: &Value, output: Output) -> String {
    let shape = SchemaNode::new(schema);
    let fields = shape.fields();
    if fields.is_empty() {
        return format!("\n{title}: {}\n", plain::cut(&shape.kind(), 60));
    }
    let mut table = Table::bare(output);
    for (key, field) in fields {
        let need = match (field.default(), shape.requires(key)) {
            (Some(default), _) => format!("default {}", plain::cut(&plain_text(default), 40)),
            (None, true) => "required".to_owned(),
            (None, false) => "optional".to_owned(),
        };
        let words = field.words().unwrap_or_default();
        table.row([&format!("  {key}"), &field.kind(), &need, words]);
    }
    format!("\n{title}\n{}", table.text())
}

/// A command line that fills what the tool requires.
fn example(tool: &Tool) -> String {
    let shape = SchemaNode::new(&tool.input_schema);
    let mut line = format!("wharf run {}", plain::line(&tool.tool_id));
    for (key, field) in shape.fields() {
        if shape.requires(key) {
            line.push_str(&format!(" {}={}", plain::line(key), plain::line(&field.example())));
        }
    }
    line
}
