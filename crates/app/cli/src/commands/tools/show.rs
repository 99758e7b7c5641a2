//! `wharf tools show`.

use serde_json::Value;
use wharf_vocab::{ServerKind, ToolState};
use wharf_wire::rest_v1::{Tool, ToolServer};

use crate::cli::Context;
use crate::commands::providers::{limits, words as shared};
use crate::exit::Exit;
use crate::failure::Result;
use crate::moment;
use crate::output::Output;
use crate::plain;
use crate::shape::{Shape, plain_text};
use crate::table::{self, Table};

use super::{diff, find, words};

/// What `wharf tools show` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools show wharf/count
  wharf tools show text/shout@1 --json")]
pub(crate) struct Args {
    /// The tool, such as wharf/count, or a unique beginning or end of its id
    tool: String,
}

/// Shows one tool.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let tool = find(&client, &args.tool).await?;
    let raw: Value = client.tools().get(&tool).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let shown: Tool = table::typed(raw)?;
        let changed = (shown.state == ToolState::Quarantined).then(|| shown.tool_id.clone());
        let changes = diff::of(&client, changed.as_slice(), output).await?;
        output.text(&format!("{}{changes}", text_of(&shown, output)))?;
    }
    Ok(Exit::Done)
}

pub(super) fn text_of(tool: &Tool, output: Output) -> String {
    let yes_no = |yes| if yes { "yes" } else { "no" };
    let mut head = Table::bare(output);
    head.row(["tool", &tool.tool_id]);
    head.row(["description", &tool.description]);
    match &tool.server {
        Some(server) => head.row(["served by", &words::kind(server)]),
        None => head.row(["provider", &tool.provider]),
    };
    head.row_with_state(["state", tool.state.as_str()], 1);
    if let Some(reason) = &tool.state_reason {
        head.row(["because", reason]);
    }
    head.row(["side effects", yes_no(tool.side_effects)]);
    head.row(["needs an approval", yes_no(tool.requires_directive)]);
    head.row(["mock mode", yes_no(tool.mock)]);
    if !tool.capabilities.is_empty() {
        head.row(["capabilities", &tool.capabilities.join(", ")]);
    }
    if !tool.tags.is_empty() {
        head.row(["tags", &tool.tags.join(", ")]);
    }
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
    if let Some(pid) = server.pid {
        head.row(["process", &pid.to_string()]);
    }
    if let Some(launch) = &server.launch_id {
        head.row(["launch", launch]);
    }
    if server.permissions_approved.is_some() && server.kind != ServerKind::Remote {
        head.row(["sandbox", &shared::sandbox(server.sandbox, server.sandbox_wanted)]);
    }
    for note in &server.sandbox_notes {
        head.row(["", note]);
    }
    if let Some(isolation) = &server.isolation {
        head.row(["isolation", isolation.as_str()]);
    }
    if server.instances > 1 {
        head.row(["processes", &server.instances.to_string()]);
    }
    let limits = limits::words(&server.limits);
    if !limits.is_empty() {
        head.row(["limits", &limits]);
    }
    let kept = limits::kept(&server.limits_kept);
    if !kept.is_empty() {
        head.row(["kept", &kept]);
    }
    head.row(["folder", &server.folder]);
    head.row(["added", &moment::shown(server.added_at)]);
}

fn fields_of(title: &str, schema: &Value, output: Output) -> String {
    let shape = Shape::new(schema);
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
    let shape = Shape::new(&tool.input_schema);
    let mut line = format!("wharf run {}", plain::line(&tool.tool_id));
    for (key, field) in shape.fields() {
        if shape.requires(key) {
            line.push_str(&format!(" {}={}", plain::line(key), plain::line(&field.example())));
        }
    }
    line
}
