//! Asking a file for Node what tools it has, without serving any.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;
use wharf_wire::run_v1::code;

use super::super::settings::WorkerSettings;
use crate::Failure;

/// The longest description.
const BYTES_MAX: u64 = 1 << 20;

/// A handler with all that a Node needs to do something with it.
#[derive(Debug)]
pub(super) struct UnpackedHandler {
    pub(super) unpacked: TempDir,
    pub(super) file: PathBuf,
    pub(super) node: PathBuf,
    pub(super) settings: WorkerSettings,
}

/// Imports a file and gives what it says of its tools, or why it cannot be imported. What the file
/// prints meanwhile goes to standard error.
pub async fn describe(
    file: &Path,
    node: &Path,
    settings: &WorkerSettings,
) -> Result<Value, Failure> {
    let handler = UnpackedHandler::new(file.to_owned(), node.to_owned(), None, settings.clone())?;
    ask(&handler, "describe").await
}

/// Starts a Node that writes its answer to a file, and reads that.
pub(super) async fn ask(handler: &UnpackedHandler, what: &str) -> Result<Value, Failure> {
    let failed = |message: String| Failure::new(code::WORKER, message);
    let answer = handler.unpacked.path().join(format!("{what}.json"));
    let words = handler.words(what, Some(&answer));
    let mut words = words.iter();
    let mut child = Command::new(words.next().map_or("node".as_ref(), |word| word.as_os_str()))
        .args(words)
        .env_clear()
        .envs(handler.settings.variables())
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let name = handler.node.display();
            failed(format!("Node `{name}` cannot be started: {}.", error.kind()))
        })?;
    let limit = handler.settings.start_timeout;
    let slow = || failed(format!("The handler was not imported within {} s.", limit.as_secs()));
    let ended = timeout(limit, child.wait()).await.map_err(|_| slow())?;
    ended.map_err(|error| failed(format!("Node was lost: {error}.")))?;
    let lost = || failed("Node ended while it imported the handler.".to_owned());
    if answer.metadata().map_err(|_| lost())?.len() > BYTES_MAX {
        return Err(failed(format!("The handler says more than {BYTES_MAX} bytes of itself.")));
    }
    let said = std::fs::read(&answer).map_err(|_| lost())?;
    serde_json::from_slice(&said).map_err(|_| lost())
}
