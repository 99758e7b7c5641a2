//! How workers are started and bounded.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// What workers see of the server's own environment. Everything else is kept from them.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", "WHARF_SECRETS_DIR"];
/// The way out, if there is one. Programs ask for either spelling.
const WAY_OUT: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// How workers are started and bounded.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Variables that workers get beside the few that are always passed on.
    pub environment: Vec<(OsString, OsString)>,
    /// How much memory the processes of one run may use together. It is watched, not reserved: what
    /// counts is what they have in memory for themselves, not what they have mapped.
    pub memory_bytes_max: Option<u64>,
    /// The largest message of a worker, and so the largest outputs without a place of their own.
    pub line_bytes_max: usize,
    /// Printed lines of a run that are kept without a pause between them.
    pub log_lines_burst: u32,
    /// Printed lines of a run that are kept each second in the long run.
    pub log_lines_per_second: u32,
    /// The longest printed line; what is longer is cut.
    pub log_line_bytes_max: usize,
    /// How long a canceled run may take to end. It is told at once, gets a signal after half of
    /// this time, and is killed at its end.
    pub cancel_grace: Duration,
    /// How long a handler may take to get ready, imports included.
    pub start_timeout: Duration,
    /// Whether and where the workers of different runs are kept apart.
    pub apart: Option<Apart>,
}

/// Keeps the workers of different runs apart, where the kernel has Landlock: none can read or
/// change the memory of another, or signal it, and none sees what lies in these folders but what is
/// its own run's.
#[derive(Debug, Clone)]
pub struct Apart {
    /// Folders in which runs have folders of their own. Nothing that a worker may make files in
    /// may lie around them.
    pub folders: Vec<PathBuf>,
    /// The one among them in which the server keeps what workers need.
    pub scratch: PathBuf,
    /// What all workers may read of them.
    pub readable: Vec<PathBuf>,
}

impl Apart {
    /// Keeps runs apart that have folders in `scratch` and in these.
    pub fn new(scratch: impl Into<PathBuf>, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let scratch = scratch.into();
        let folders = others.into_iter().chain([scratch.clone()]).collect();
        Self { folders, scratch, readable: Vec::new() }
    }
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            environment: Vec::new(),
            memory_bytes_max: Some(4 << 30),
            line_bytes_max: 8 << 20,
            log_lines_burst: 1_000,
            log_lines_per_second: 200,
            log_line_bytes_max: 8 << 10,
            cancel_grace: Duration::from_secs(5),
            start_timeout: Duration::from_secs(120),
            apart: None,
        }
    }
}

impl WorkerSettings {
    /// The whole environment of a worker.
    pub(super) fn variables(&self) -> Vec<(OsString, OsString)> {
        let names = PASSED_ON.iter().chain(&WAY_OUT);
        let passed = names.filter_map(|name| Some(((*name).into(), env::var_os(name)?)));
        passed.chain(self.environment.iter().cloned()).collect()
    }
}

/// A folder that only this user can read, for what workers need; it goes with what it is for.
pub(super) fn private_folder(place: Option<&Path>, prefix: &str) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    match place {
        Some(place) => {
            std::fs::create_dir_all(place)?;
            builder.tempdir_in(place)
        }
        None => builder.tempdir(),
    }
}
