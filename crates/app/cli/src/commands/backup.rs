//! `wharf backup`: copies of a home that can be restored.

mod verify;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::local::{self, Backed, BackupKey};
use crate::meter::Meter;
use crate::output::Output;
use crate::{amount, plain};

/// What `wharf backup` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  wharf backup /mnt/backup/wharf
  wharf backup /mnt/backup/wharf --incremental
  wharf backup key ~/wharf-backup.key
  wharf backup /mnt/backup/wharf --key-file ~/wharf-backup.key
  wharf backup verify /mnt/backup/wharf

The backup holds everything that a home needs: database, files of worlds, keys, secrets, settings.
The core may be running; the backup is the state of one moment, and is complete only after it was
read back. --incremental keeps the last complete one until then, and copies only what is new.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    take: Take,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
struct Take {
    /// The folder of the backup; it must be empty or absent
    #[arg(required = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Update an existing backup, or continue an interrupted one
    #[arg(long)]
    incremental: bool,
    /// Encrypt it with the key in this file (see: wharf backup key)
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read a whole backup and say whether it can be restored
    Verify(verify::Args),
    /// Create a key for encrypted backups
    Key(KeyArgs),
}

/// Takes a backup, or does what the subcommand says.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit> {
    match &args.command {
        Some(Command::Verify(args)) => verify::run(args, context),
        Some(Command::Key(args)) => make_key(args, context),
        None => take(&args.take, context),
    }
}

fn take(args: &Take, context: &Context) -> Result<Exit> {
    let Some(dir) = &args.dir else { return Err(Failure::usage("say where the backup goes")) };
    let (output, home) = (context.output, context.home()?);
    let key = key_of(args.key_file.as_deref())?;
    let mut watcher = Watcher::new(output);
    let backed = home.back_up(dir, args.incremental, key, &mut watcher)?;
    watcher.end();
    // A file that is not there is no reason to have no backup, but one to look.
    let exit = if backed.missing.is_empty() { Exit::Done } else { Exit::Failed };
    if output.is_json() {
        output.json(&backed)?;
        return Ok(exit);
    }
    output.line(&sentence(dir, &backed))?;
    warn_of_missing(&backed.missing, output);
    Ok(exit)
}

fn sentence(dir: &Path, backed: &Backed) -> String {
    let (dir, all) = (plain::line(&dir.display().to_string()), amount::about(backed.bytes));
    let (objects, copied) = (backed.objects, amount::about(backed.copied_bytes));
    if backed.by_reference {
        return format!(
            "backed up to {dir} and read again; {objects} files of worlds ({all}) stay in the S3 \
             and are listed by key and hash"
        );
    }
    format!(
        "backed up to {dir} and read again: {objects} files of worlds ({all}), {copied} were copied"
    )
}

/// Names files that are in the database and nowhere else.
pub(super) fn warn_of_missing(missing: &[String], output: Output) {
    let Some(first) = missing.first() else { return };
    let (count, first) = (missing.len(), plain::line(first));
    let attention = output.err_paint().attention("warning:");
    output.note(&format!(
        "{attention} {count} files that the database knows were not in the store, the first is \
         {first}; see: wharf doctor"
    ));
}

/// The key that was named.
pub(super) fn key_of(path: Option<&Path>) -> Result<Option<BackupKey>> {
    path.map(local::read_backup_key).transpose()
}

/// Shows on a terminal what passes.
pub(super) struct Watcher {
    output: Output,
    meter: Option<Meter>,
}

impl Watcher {
    pub(super) fn new(output: Output) -> Self {
        Self { output, meter: None }
    }

    /// Takes the bar away.
    pub(super) fn end(&mut self) {
        if let Some(meter) = self.meter.take() {
            meter.finish();
        }
    }
}

impl local::BackupWatcher for Watcher {
    fn begin(&mut self, what: &str, bytes: Option<u64>) {
        self.end();
        self.meter = Some(Meter::new(self.output, what, bytes));
    }

    fn add(&mut self, bytes: u64) {
        if let Some(meter) = &self.meter {
            meter.add(bytes);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// What `wharf backup key` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf backup key ~/wharf-backup.key

Keep copies of it away from the backups: without it, an encrypted backup cannot be read.")]
pub(crate) struct KeyArgs {
    /// The file to create; it must not exist
    file: PathBuf,
}

/// Makes a key.
fn make_key(args: &KeyArgs, context: &Context) -> Result<Exit> {
    local::make_backup_key(&args.file)?;
    let output = context.output;
    if output.is_json() {
        output.json(&serde_json::json!({"key_file": args.file}))?;
    } else {
        let file = plain::line(&args.file.display().to_string());
        output.line(&format!("created {file}; keep it away from the backups"))?;
    }
    Ok(Exit::Done)
}
