//! The edge that faces tool servers: looks after those the core launches, dials them and those
//! elsewhere, and hands them attempts over the run protocol.

mod added;
mod describe;
mod doors;
mod environment;
mod equip;
mod folder;
mod kind;
pub mod link;
mod manifest;
mod runtime;
mod station;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_hosting::Control;
use wharf_vocab::Fault;

use crate::tools::ToolServers;

/// What a launch may take beyond the time its server has to get well.
const CONNECT_SLACK: Duration = Duration::from_secs(10);

/// Takes up the tool servers that are known, and gives what steers them. None is started before a
/// run needs it.
pub async fn start(mut options: RunEdgeOptions) -> Result<Control, Fault> {
    options.hosting.connect_within = options.healthy_within + CONNECT_SLACK;
    let servers = Arc::new(ToolServers::new(options));
    servers.sweep_environments().await?;
    Control::start(servers).await
}

/// How the edge is set up.
#[derive(Clone)]
pub struct RunEdgeOptions {
    /// How servers are launched. How long one may take to be connected is said by
    /// [`RunEdgeOptions::healthy_within`].
    pub hosting: wharf_hosting::HostingOptions,
    /// The program that serves handlers: called with `tool serve` and where to listen.
    pub program: PathBuf,
    /// The command that runs an image; without one images are not taken. `{image}`, `{port}` and
    /// `{artifacts}` in it are replaced.
    pub container: Vec<String>,
    /// Where presigned addresses of files lead.
    pub storage: Storage,
    /// Where environments of handlers lie. Nothing else is kept there.
    pub environments: PathBuf,
    /// Where interpreters and the machine's own tools for packages are looked for, first to last.
    pub search: Vec<PathBuf>,
    /// How long a server may have nothing to do before it is ended.
    pub idle: Duration,
    /// How long a server may take until it says that it is well.
    pub healthy_within: Duration,
}

impl RunEdgeOptions {
    /// How long a server may have nothing to do, unless somebody says otherwise.
    pub const IDLE: Duration = Duration::from_secs(300);
    /// How long a server may take until it is well, unless somebody says otherwise.
    pub const HEALTHY_WITHIN: Duration = Duration::from_secs(60);
}

/// Where presigned addresses of files lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// What they begin with, such as `https://files.example.com`.
    pub origin: String,
    /// Whether they lead there from other machines, too.
    pub is_public: bool,
}
