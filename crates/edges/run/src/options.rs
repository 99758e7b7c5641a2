//! How the edge is set up.

use std::path::PathBuf;
use std::time::Duration;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// How servers are launched. How long one may take to be connected is said by
    /// [`Options::healthy_within`].
    pub hosting: wharf_hosting::Options,
    /// The program that serves handlers: called with `tool serve` and where to listen.
    pub program: PathBuf,
    /// The command that runs an image; without one images are not taken. `{image}`, `{port}` and
    /// `{artifacts}` in it are replaced.
    pub container: Vec<String>,
    /// Where presigned addresses of files lead.
    pub storage: Storage,
    /// How long a server may have nothing to do before it is ended.
    pub idle: Duration,
    /// How long a server may take until it says that it is well.
    pub healthy_within: Duration,
}

impl Options {
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
