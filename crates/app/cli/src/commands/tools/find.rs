//! Finds the tool that a typed id, or the beginning or the end of one, means.

use wharf_vocab::{Code, ToolId};
use wharf_wire::rest_v1::Tool;

use crate::client::Client;
use crate::commands::providers::pick::{Kind, pick};
use crate::failure::Result;
use crate::table;

use super::tool_id;

const TOOLS: Kind = Kind { word: "tool", command: "wharf tools", unknown: Code::ToolNotFound };

/// The tool that `typed` means.
pub(super) async fn find(client: &Client, typed: &str) -> Result<ToolId> {
    let (items, _) = client.list(&["v1", "tools"], &[], None).await?;
    let tools: Vec<Tool> = table::rows(items)?;
    let ids: Vec<&str> = tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    match pick(&ids, typed, TOOLS) {
        Ok(at) => tool_id(ids[at]),
        // The core may know one that it does not list, and says best what is wrong with it.
        Err(failure) if failure.is(Code::ToolNotFound) => ToolId::new(typed).map_err(|_| failure),
        Err(failure) => Err(failure),
    }
}
