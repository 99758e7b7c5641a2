//! The agent {{id}}: a process that a core starts, with any number of tools.

use std::error::Error;
use std::process::ExitCode;

use wharf_sdk::face::Face;
use wharf_sdk::process::AgentProcess;

use {{crate}}::{GREET, tools};

const ID: &str = "{{id}}";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let tools = tools()?;
    let face = Face::of(&tools).side_effects(&GREET, false);
    Ok(AgentProcess::of(ID, env!("CARGO_PKG_VERSION"), face).run())
}
