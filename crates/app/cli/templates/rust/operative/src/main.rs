//! The operative {{id}}: tools that are there for as long as this program runs.

use std::error::Error;

use tokio::signal::unix::{SignalKind, signal};
use wharf_sdk::operative::{self, Connect};

use {{crate}}::find::Core;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let tools = {{crate}}::tools()?;
    let core = Core::find()
        .ok_or("no core runs here; start one with `wharf up`, or set WHARF_URL and WHARF_TOKEN")?;
    let connect = Connect {
        token: Some(core.token),
        ..Connect::new("{{id}}")
    };
    let operative = operative::connect(&tools, &core.url, connect).await?;
    eprintln!("serving {}; Ctrl-C ends it", operative.tools().join(", "));
    tokio::select! {
        ended = tokio::signal::ctrl_c() => ended?,
        _ = terminated.recv() => {}
    }
    operative.stop().await;
    Ok(())
}
