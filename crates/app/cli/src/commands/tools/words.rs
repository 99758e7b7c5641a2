//! What a tool server asks for and what to do about it, in words for its owner.

use wharf_vocab::{ProviderState, ServerKind, ToolState};
use wharf_wire::rest_v1::{Tool, ToolServer};

use crate::commands::Output;
use crate::commands::providers::words;
use crate::plain;

/// How the tool is served.
pub(super) fn kind(server: &ToolServer) -> String {
    let what = words::command(&server.command);
    match server.kind {
        ServerKind::Handler => format!("the handler {what}"),
        ServerKind::Program => format!("the program {what}"),
        ServerKind::Image => format!("the image {what}"),
        ServerKind::Remote => format!("the server at {what}"),
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
    if server.kind == ServerKind::Remote {
        return String::new();
    }
    words::terms(server.sandbox_wanted, server.isolation, &server.limits)
}

/// What to know of a tool that says nothing of its price.
pub(super) fn price(tool: &Tool) -> &'static str {
    if tool.free || tool.max_cost_micro.is_some() {
        return "";
    }
    "it names no price; a run that reports no cost counts as $0\n"
}

/// How to approve it, for someone who has not.
pub(super) fn how_to_approve(tool: &Tool, server: &ToolServer) -> String {
    let command = format!("wharf tools approve {}", plain::line(&tool.tool_id));
    words::how_to_approve(&command, "", &server.permissions_requested)
}

/// The state of the tool, and why.
pub(super) fn state(tool: &Tool) -> String {
    words::state(tool.state.as_str(), tool.state_reason.as_deref())
}

/// What its owner would do next.
pub(super) fn what_next(tool: &Tool, server: &ToolServer) -> String {
    let id = plain::line(&tool.tool_id);
    if tool.state == ToolState::Quarantined {
        return format!("\nsee what changed with\n  wharf tools diff {id}\n");
    }
    if !server.drift.is_empty() || server.state == ProviderState::Drifted {
        let folder = plain::line(&server.folder);
        return format!(
            "\nread it again and approve it with\n  wharf tools add '{folder}' --approve\n"
        );
    }
    match server.state {
        ProviderState::Added => format!("\n{}", how_to_approve(tool, server)),
        ProviderState::Approved | ProviderState::Stopped => {
            format!("\nenable it with\n  wharf tools enable {id}\n")
        }
        ProviderState::Unhealthy | ProviderState::BackingOff | ProviderState::Crashed => {
            format!("\nsee what it said with\n  wharf tools logs {id}\n")
        }
        ProviderState::Starting
        | ProviderState::Running
        | ProviderState::Draining
        | ProviderState::Drifted => String::new(),
    }
}
