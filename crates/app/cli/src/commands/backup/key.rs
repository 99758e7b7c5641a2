//! `wharf backup key`.

use std::path::PathBuf;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::{local, plain};

/// What `wharf backup key` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf backup key ~/wharf-backup.key

Keep it apart from the backups, and more than once: without it an encrypted backup is worth
nothing.")]
pub(super) struct Args {
    /// The file to make; it must not be there yet
    file: PathBuf,
}

/// Makes a key.
pub(super) fn run(args: &Args, context: &Context) -> Result<Exit> {
    local::make_backup_key(&args.file)?;
    let output = context.output;
    if output.is_json() {
        output.json(&serde_json::json!({"key_file": args.file}))?;
    } else {
        let file = plain::line(&args.file.display().to_string());
        output.line(&format!("made {file}; keep it apart from the backups"))?;
    }
    Ok(Exit::Done)
}
