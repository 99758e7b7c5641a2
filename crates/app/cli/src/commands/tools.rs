//! `wharf tools`: the catalog.

mod diff;

use clap::Subcommand;
use serde_json::Value;
use wharf_vocab::{Code, ToolId};
use wharf_wire::rest_v1::Tool;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::plain;
use crate::shape::{Shape, plain_text};
use crate::table::{self, Table};

/// What `wharf tools` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools
  wharf tools show wharf/count
  wharf tools diff                                 what changed and waits for you
  wharf tools approve dev.example.hello/echo       take the change on")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the tools there are
    #[command(after_help = "Examples:\n  wharf tools\n  wharf tools list --json")]
    List,
    /// Show one tool: what it does, takes and gives
    #[command(after_help = "Examples:\n  wharf tools show wharf/count")]
    Show {
        /// The tool, such as wharf/count
        tool: String,
    },
    /// Show how definitions differ from what was approved
    #[command(after_help = "\
Examples:
  wharf tools diff
  wharf tools diff dev.example.hello/echo

A tool whose definition changed cannot be called until it is approved again.")]
    Diff {
        /// The tool [default: all that changed]
        tool: Option<String>,
    },
    /// Take on a tool as it is offered now
    #[command(after_help = "Examples:\n  wharf tools approve dev.example.hello/echo")]
    Approve {
        /// The tool
        tool: String,
    },
}

/// Does what the subcommand says; lists tools when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list(context).await,
        Command::Show { tool } => show(&tool, context).await,
        Command::Diff { tool } => diff::run(tool.as_deref(), context).await,
        Command::Approve { tool } => approve(&tool, context).await,
    }
}

async fn list(context: &Context) -> Result<Exit> {
    let output = context.output;
    let (items, _) = context.client()?.list(&["v1", "tools"], &[], None).await?;
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let tools: Vec<Tool> = table::rows(items)?;
    let mut table =
        Table::new(output, &["TOOL", "STATE", "ACTS", "DESCRIPTION"]).keep_whole(&[0, 1]);
    for tool in &tools {
        let acts = if tool.side_effects { "yes" } else { "no" };
        let description = plain::cut(&tool.description, 100);
        table.row_with_state([&tool.tool_id, &tool.state, acts, &description], 1);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}

async fn show(id: &str, context: &Context) -> Result<Exit> {
    let output = context.output;
    let tool = tool_id(id)?;
    let provider = tool.provider();
    let path = ["v1", "tools", provider.as_str(), tool.name()];
    let raw: Value = context.client()?.get(&path, &[]).await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        output.text(&text_of(&table::typed(raw)?, output))?;
    }
    Ok(Exit::Done)
}

async fn approve(id: &str, context: &Context) -> Result<Exit> {
    let output = context.output;
    let tool = tool_id(id)?;
    let provider = tool.provider();
    let path = ["v1", "tools", provider.as_str(), tool.name(), "approve"];
    let raw: Value = context.client()?.act(&path).await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let tool: Tool = table::typed(raw)?;
        let (id, state) = (plain::line(&tool.tool_id), plain::line(&tool.state));
        output.line(&format!("{id} counts as it is offered now; it is {state}"))?;
    }
    Ok(Exit::Done)
}

/// The tool that was typed.
fn tool_id(id: &str) -> Result<ToolId> {
    ToolId::new(id).map_err(|_| {
        let message = format!(
            "{id:?} is no tool id such as wharf/count; see what there is with: wharf tools"
        );
        Failure::new(Code::ToolNotFound, message)
    })
}

fn text_of(tool: &Tool, output: Output) -> String {
    let yes_no = |yes| if yes { "yes" } else { "no" };
    let mut head = Table::bare(output);
    head.row(["tool", &tool.tool_id]);
    head.row(["description", &tool.description]);
    head.row(["provider", &tool.provider]);
    head.row_with_state(["state", &tool.state], 1);
    if let Some(reason) = &tool.state_reason {
        head.row(["because", reason]);
    }
    head.row(["acts on the world", yes_no(tool.side_effects)]);
    head.row(["needs an approval", yes_no(tool.requires_directive)]);
    let mut text = head.text();
    text.push_str(&fields_of("inputs", &tool.input_schema, output));
    if let Some(schema) = &tool.output_schema {
        text.push_str(&fields_of("outputs", schema, output));
    }
    text.push_str(&format!("\ntry\n  {}\n", example(tool)));
    text
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
