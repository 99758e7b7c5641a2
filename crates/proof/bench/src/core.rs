//! A core of the real parts for a measurement: SQLite, engine, built-in tools, HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use wharf_engine::NewRun;
use wharf_server::{Core, CoreOptions, Home};
use wharf_vocab::{Object, ToolId, WorldId};

/// A folder on the disk the benchmark was built on, since a memory file system never syncs.
pub(crate) fn scratch() -> anyhow::Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(beside()?)?)
}

/// The folder that the benchmark was built into.
pub(crate) fn beside() -> anyhow::Result<PathBuf> {
    std::env::current_exe()?.parent().map(PathBuf::from).context("no folder")
}

/// Any free loopback port.
pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

pub(crate) async fn start(dir: &tempfile::TempDir) -> anyhow::Result<Core> {
    let home = Home::resolve(Some(dir.path().join("home")))?;
    let options = CoreOptions { listen: Some(any_port()), ..CoreOptions::new(home) };
    Ok(Core::start(options).await?)
}

/// A request for a run of a built-in tool.
pub(crate) fn request(tool: &str, inputs: serde_json::Value) -> anyhow::Result<NewRun> {
    let inputs: Object = serde_json::from_value(inputs)?;
    Ok(NewRun::new(ToolId::new(tool)?, inputs, WorldId::new("default")?))
}
