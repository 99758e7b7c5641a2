//! What a tool server asks for and what to do about it, in words for its owner.

use wharf_wire::rest_v1::{Tool, ToolServer};

use crate::commands::providers::words;
use crate::output::Output;
use crate::plain;

/// How the tool is served.
pub(super) fn kind(server: &ToolServer) -> String {
    let what = words::command(&server.command);
    match server.kind.as_str() {
        "handler" => format!("the handler {what}"),
        "program" => format!("the program {what}"),
        "image" => format!("the image {what}"),
        "remote" => format!("the server at {what}"),
        other => format!("{} {what}", plain::cut(other, 20)),
    }
}

/// What it asks for, one line each; what was approved is marked once anything was.
pub(super) fn requests(server: &ToolServer, output: Output) -> String {
    let decided = server.permissions_approved.is_some();
    let permissions = words::permissions(&server.permissions, decided, output);
    format!("{permissions}{}", words::wishes(&server.wishes, decided, output))
}

/// How it is to run, once it is approved.
pub(super) fn terms(server: &ToolServer) -> String {
    if server.kind == "remote" {
        return String::new();
    }
    words::terms(server.sandbox_wanted.as_deref(), server.isolation.as_deref(), &server.limits)
}

/// How to approve it, for someone who has not.
pub(super) fn how_to_approve(tool: &Tool, server: &ToolServer) -> String {
    let command = format!("wharf tools approve {}", plain::line(&tool.tool_id));
    words::how_to_approve(&command, "", &server.permissions_requested)
}

/// The state of the tool, and why.
pub(super) fn state(tool: &Tool) -> String {
    words::state(&tool.state, tool.state_reason.as_deref())
}

/// What its owner would do next.
pub(super) fn what_next(tool: &Tool, server: &ToolServer) -> String {
    let id = plain::line(&tool.tool_id);
    if tool.state == "quarantined" {
        return format!("\nsee what changed with\n  wharf tools diff {id}\n");
    }
    if !server.drift.is_empty() || server.state == "drifted" {
        let folder = plain::line(&server.folder);
        return format!(
            "\nread it again and approve it with\n  wharf tools add '{folder}' --approve\n"
        );
    }
    match server.state.as_str() {
        "added" => format!("\n{}", how_to_approve(tool, server)),
        "approved" | "stopped" => format!("\nlet it be called with\n  wharf tools enable {id}\n"),
        "unhealthy" | "backing_off" | "crashed" => {
            format!("\nsee what it said with\n  wharf tools logs {id}\n")
        }
        _ => String::new(),
    }
}
