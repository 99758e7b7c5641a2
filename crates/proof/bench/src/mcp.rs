//! MCP through Wharf, both halves at once: a client calls a server of somebody else's, directly and
//! through `/mcp/{provider}`. Client, core and server are three processes; FastMCP as a proxy stands
//! where the core stands.

mod calls;
mod client;
pub(crate) mod echo;
mod era;
mod idle;
mod lists;
mod stage;

use crate::report::Report;
use crate::{Scale, core};
use echo::EchoServer;
use era::Era;
use stage::Stage;

const MANY: &str = "many";

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let server = EchoServer::start()?;
    let mut stage = Stage::start(dir.path()).await?;
    for era in Era::ALL {
        let name = era.name();
        stage.add(name, &format!("http://{}/{name}", server.address), 1).await?;
    }
    calls::measure(scale, &server, &stage, report).await?;
    stage.add(MANY, &format!("http://{}/{MANY}", server.address), echo::MANY_TOOLS).await?;
    lists::measure(scale, &server, &stage, MANY, report).await?;
    idle::measure(scale, &stage, Era::Legacy.name(), report).await?;
    stage.stop()
}
