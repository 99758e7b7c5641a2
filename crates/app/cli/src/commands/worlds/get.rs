//! `wharf worlds get`.

use std::path::PathBuf;

use serde_json::json;
use wharf_client::RemoteFile;

use crate::commands::{Context, Exit, Output, Result};
use crate::progress::TransferBar;
use crate::target::FileTarget;
use crate::{amount, plain};

/// What `wharf worlds get` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds get lab /out/small.jpg small.jpg
  wharf worlds get lab /out/src.tar - | tar t

The file is verified before it gets its name. An existing file is replaced and its permissions are
kept. If the download is interrupted, the same command resumes it. Links are followed. A pipe or a
device gets the bytes as they arrive.")]
pub(crate) struct WorldsGetArgs {
    /// The world's id
    world: String,
    /// The file's path in the world
    path: String,
    /// The local file, or - for standard output
    file: PathBuf,
}

/// Fetches a file.
pub(super) async fn run(args: WorldsGetArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let from = RemoteFile::new(&args.world, &args.path)?;
    let client = context.client()?;
    let target = FileTarget::of(&args.file, &from)?;
    // A bar between lines of text that are shown at the same time would be in the way.
    let quiet = !matches!(target, FileTarget::File(_)) && output.out_is_terminal();
    let shown = if quiet { Output::new(true) } else { output };
    let meter = TransferBar::new(shown, &plain::line(&from.path), None);
    let download = client.worlds().download(&from);
    let download = download.progress(meter.watch(&from.path, "are here already"));
    let ended = tokio::select! {
        fetched = target.fetch(download, output) => Some(fetched),
        _ = tokio::signal::ctrl_c() => None,
    };
    meter.finish();
    let ended = ended.transpose()?;
    let Some(fetched) = ended else {
        let hint = match target {
            FileTarget::File(_) => "; the same command resumes it",
            FileTarget::Stdout | FileTarget::Stream(_) => "",
        };
        output.note(&format!("stopped{hint}"));
        return Ok(Exit::Canceled);
    };
    if target == FileTarget::Stdout {
        return Ok(Exit::Done);
    }
    let file = args.file.display().to_string();
    let facts = json!({"file": file, "bytes": fetched.bytes, "b3": fetched.b3,
        "checked": fetched.checked});
    let checked = if fetched.checked { "" } else { "; the core knows no hash to compare it with" };
    let (file, about) = (plain::line(&file), amount::about(fetched.bytes));
    output.done(&facts, &format!("got {file} ({about}{checked})"))
}
