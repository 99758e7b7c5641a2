//! `wharf restore`: a home from a backup.

use std::path::PathBuf;

use super::backup::{Watcher, key_of, warn_of_missing};
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::{amount, moment, plain};

/// What `wharf restore` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf restore /mnt/backup/wharf
  wharf restore /mnt/backup/wharf --home /srv/wharf
  wharf restore /mnt/backup/wharf --replace --key-file ~/wharf-backup.key

The home must be empty or absent. --replace moves an existing one aside, to a name that ends in
.before-TIME; nothing is removed. A home that a core uses is never touched. Every byte is verified;
a home that was not restored completely cannot be started.")]
pub(crate) struct Args {
    /// The folder of the backup
    dir: PathBuf,
    /// Move an existing home aside
    #[arg(long)]
    replace: bool,
    /// The key that the backup was encrypted with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Restores the backup.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit> {
    let (output, home) = (context.output, context.home()?);
    let mut watcher = Watcher::new(output);
    let key = key_of(args.key_file.as_deref())?;
    let restored = home.restore(&args.dir, args.replace, key, &mut watcher)?;
    watcher.end();
    if output.is_json() {
        output.json(&restored)?;
        return Ok(Exit::Done);
    }
    let place = plain::line(&home.path().display().to_string());
    let (objects, bytes) = (restored.objects, amount::about(restored.bytes));
    let kept = if restored.by_reference { ", still in the S3" } else { "" };
    output.line(&format!(
        "restored {place} as it was at {}: {objects} files of worlds ({bytes}{kept})",
        moment::clock(restored.taken_at)
    ))?;
    if let Some(aside) = &restored.aside {
        output.note(&format!("the previous home is now {}", plain::line(aside)));
    }
    warn_of_missing(&restored.missing, output);
    Ok(Exit::Done)
}
