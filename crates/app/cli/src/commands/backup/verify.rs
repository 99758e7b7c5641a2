//! `wharf backup verify`.

use std::path::PathBuf;

use super::{Watcher, key_of, warn_of_missing};
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::{amount, local, moment, plain};

/// What `wharf backup verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf backup verify /mnt/backup/wharf
  wharf backup verify /mnt/backup/wharf --key-file ~/wharf-backup.key --json

Reads every byte and compares it with its hash. Needs no home. Exit code 1 if anything is wrong.")]
pub(super) struct Args {
    /// The folder of the backup
    dir: PathBuf,
    /// The key that it was encrypted with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Reads the backup and says what was found.
pub(super) fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let mut watcher = Watcher::new(output);
    let found = local::verify_backup(&args.dir, key_of(args.key_file.as_deref())?, &mut watcher)?;
    watcher.end();
    let exit = if found.findings.is_empty() { Exit::Done } else { Exit::Failed };
    if output.is_json() {
        output.json(&found)?;
        return Ok(exit);
    }
    let paint = output.out_paint();
    for finding in &found.findings {
        output.line(&format!("{} {}", paint.bad("finding:"), plain::line(finding)))?;
    }
    if exit == Exit::Failed {
        let verdict = paint.bad("the backup is damaged");
        output.line(&format!("{verdict}: {} findings", found.findings.len()))?;
        return Ok(exit);
    }
    let (objects, bytes, files) = (found.objects, amount::about(found.bytes), found.files);
    let kept = if found.by_reference { ", kept in the S3 and not read" } else { "" };
    let encrypted = if found.encrypted { ", encrypted" } else { "" };
    output.line(&format!(
        "{}: taken {}{encrypted}; {objects} files of worlds ({bytes}{kept}), {files} others",
        paint.good("the backup is whole"),
        moment::clock(found.taken_at),
    ))?;
    warn_of_missing(&found.missing, output);
    Ok(exit)
}
