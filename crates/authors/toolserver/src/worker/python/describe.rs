//! Asking a Python file what tools it has, without serving any.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use wharf_wire::run_v1::code;

use super::super::settings::WorkerSettings;
use super::unpack;
use crate::Failure;

/// What the interpreter does: it takes modules of ours from the private folder only, and writes no
/// compiled ones.
const BOOT: &str = "import sys; sys.path[0] = sys.argv[1]; sys.dont_write_bytecode = True; \
                    from wharf_sdk.describe import leave, main; leave(main(sys.argv[2:]))";
/// The longest description.
const BYTES_MAX: u64 = 1 << 20;

/// Imports a file and gives what it says of its tools, or why it cannot be imported: the object that
/// `python3 -m wharf_sdk.describe` prints. What the file prints meanwhile goes to standard error.
pub async fn describe(
    file: &Path,
    python: &Path,
    settings: &WorkerSettings,
) -> Result<Value, Failure> {
    let failed = |message: String| Failure::new(code::WORKER, message);
    let folder = unpack(None).map_err(|error| {
        failed(format!("There is no room for the runtime of Python handlers: {error}."))
    })?;
    let mut child = Command::new(python)
        .args(["-E", "-c", BOOT])
        .arg(folder.path().join("runtime"))
        .arg(file)
        .env_clear()
        .envs(settings.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let name = python.display();
            failed(format!("The Python interpreter `{name}` cannot be started: {}.", error.kind()))
        })?;
    let mut said = Vec::new();
    let out = child.stdout.take();
    let read = async {
        if let Some(out) = out {
            out.take(BYTES_MAX + 1).read_to_end(&mut said).await?;
        }
        child.wait().await
    };
    let limit = settings.start_timeout;
    let slow = || failed(format!("The handler was not imported within {} s.", limit.as_secs()));
    let ended = timeout(limit, read).await.map_err(|_| slow())?;
    ended.map_err(|error| failed(format!("The interpreter was lost: {error}.")))?;
    if said.len() as u64 > BYTES_MAX {
        return Err(failed(format!("The handler says more than {BYTES_MAX} bytes of itself.")));
    }
    serde_json::from_slice(&said)
        .map_err(|_| failed("The interpreter ended while it imported the handler.".to_owned()))
}
