//! The agent {{id}}: a process that a core starts, with any number of tools.

use std::error::Error;
use std::process::ExitCode;

use wharf_sdk::AgentProcess;

use {{crate}}::tools;

const ID: &str = "{{id}}";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let tools = tools()?;
    Ok(AgentProcess::of(ID, env!("CARGO_PKG_VERSION"), &tools).run())
}
