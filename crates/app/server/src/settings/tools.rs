//! `[tools]`: how tool servers are run.

use std::time::Duration;

use serde::Deserialize;

/// How tool servers are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tools {
    /// The command that runs an image; without one images are not taken.
    pub(crate) container: Vec<String>,
    /// How long a server may have nothing to do before it is ended, when not as usual.
    pub(crate) idle: Option<Duration>,
}

/// `[tools]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    container: Vec<String>,
    idle_s: Option<u64>,
}

impl From<File> for Tools {
    fn from(file: File) -> Self {
        Self { container: file.container, idle: file.idle_s.map(Duration::from_secs) }
    }
}
