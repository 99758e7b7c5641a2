//! The tool {{id}} as a server, which a core starts.

use std::error::Error;
use std::process::ExitCode;

use wharf_sdk::toolserver::ToolServer;

use {{crate}}::{COUNT, tools};

const ID: &str = "{{id}}";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let tools = tools()?;
    Ok(ToolServer::of(ID, &tools, &COUNT).free().run())
}
